"""What a budget recognises of the operations between its fits: chains, selected rows, weights."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import BaggingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.multioutput import ClassifierChain, MultiOutputRegressor, RegressorChain

import skdp
from skdp._fitting import budget as budgets

RNG = np.random.default_rng(5)
X = RNG.standard_normal((400, 4))
MARGINS = X @ RNG.standard_normal((4, 3)) + 0.1 * RNG.standard_normal((400, 3))
Y = (MARGINS > 0).astype(int)
DELTA = 1e-6
LABEL = skdp.Privacy(adjacency="label")
RIDGE = partial(skdp.DPRidge, privacy=LABEL)
LOGISTIC = partial(skdp.DPLogisticRegression, classes=[0, 1])
QUICK = partial(LOGISTIC, privacy=LABEL, solver="gd", max_iter=3, scaling="none")


# ---------------------------------------------------------------- chains under adjacency="label"

CHAINS = {
    "regressor": (lambda: RegressorChain(RIDGE()), X, MARGINS),
    "another order": (lambda: RegressorChain(RIDGE(), order=[2, 0, 1]), X, MARGINS),
    "float32": (lambda: RegressorChain(RIDGE()), X.astype(np.float32), MARGINS),
    "sparse": (lambda: RegressorChain(RIDGE()), sparse.csr_array(X), MARGINS),
    "very small unit": (lambda: RegressorChain(RIDGE()), X, 1e-60 * MARGINS),
    "resampled": (lambda: BaggingRegressor(RegressorChain(RIDGE()), 2), X, MARGINS),
    "classifier": (lambda: ClassifierChain(LOGISTIC(privacy=LABEL)), X, Y),
    "other labels": (
        lambda: ClassifierChain(LOGISTIC(privacy=LABEL, classes=[3, 7])),
        X,
        3 + 4 * Y,
    ),
}


@pytest.mark.parametrize(
    ("name", "as_parameter"), [("regressor", True), *((name, False) for name in CHAINS)]
)
def test_a_chain_is_refused_before_its_second_fit(name, as_parameter, asked):
    make, rows, targets = CHAINS[name]
    budget = skdp.PrivacyBudget(9.0, DELTA, adjacency="label")
    chain = make()
    if as_parameter:
        _model_of(chain).privacy = skdp.Privacy(adjacency="label", budget=budget)
    message = r"equals the target of an earlier fit.*nothing was charged"
    block = nullcontext() if as_parameter else budget
    with block, pytest.raises(skdp.PrivacyBudgetError, match=message):
        chain.fit(rows, targets)
    n_answers = len(asked)
    assert budget.n_fits == 1
    assert budget.spent == pytest.approx(1.0, rel=1e-6)
    # The first fit alone asks as much: the refused one asked nothing.
    first = _model_of(chain)
    order = getattr(chain, "order", None) or [0]
    first.set_params(privacy=LABEL).fit(rows, targets[:, order[0]])
    assert len(asked) == 2 * n_answers


def _model_of(chain):
    """The model in a chain, which scikit-learn before 1.7 calls its base estimator."""
    for name in ("estimator", "base_estimator"):
        if name in chain.get_params(deep=False):
            return _model_of(getattr(chain, name))
    return chain


def test_what_is_not_a_chain_is_not_refused():
    indicator = np.column_stack([X, np.roll(Y[:, 0], 1), np.zeros(400)])  # as many ones as Y has
    with skdp.PrivacyBudget(30.0, DELTA, adjacency="label") as budget:
        MultiOutputRegressor(RIDGE()).fit(X, MARGINS)
        for _ in range(2):
            QUICK().fit(indicator, Y[:, 0])
            QUICK().fit(indicator, 0 * Y[:, 0])  # a constant is not compared
        RIDGE().fit(X, QUICK().fit(X, Y[:, 0]).predict_proba(X)[:, 1])
    assert budget.n_fits == 9
    with skdp.PrivacyBudget(9.0, DELTA) as budget:  # columns are protected there
        RegressorChain(skdp.DPRidge()).fit(X, MARGINS)
    assert budget.n_fits == 3


def test_no_row_and_no_fingerprint_leaves():
    """A budget's pickle, copies and attributes are the same, whatever the targets were."""
    kept = []
    for targets in (MARGINS[:, 0], MARGINS[:, 1]):
        budget = skdp.PrivacyBudget(9.0, DELTA, adjacency="label")
        with budget:
            model = RIDGE(privacy=skdp.Privacy(adjacency="label", budget=budget)).fit(X, targets)
        names = {**vars(budget), "_key": "", "_identity": "", "_charged": vars(budget._charged)}
        kept.append((len(pickle.dumps(budget)), repr(names)))
        history = budgets._histories[budget]
        assert b"fingerprint" not in pickle.dumps(model).lower()
        assert all(len(one) == 16 for one in history._targets)
        assert not any(isinstance(one, np.ndarray) for one in vars(history).values())
        del model
    assert kept[0] == kept[1]
    n_budgets = len(budgets._histories)
    del budget, history
    assert len(budgets._histories) == n_budgets - 1
