"""What a budget recognises of the operations between its fits: chains, selected rows, weights."""

from __future__ import annotations

import pickle
import re
import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import AdaBoostClassifier, BaggingRegressor, VotingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RANSACRegressor
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputRegressor, RegressorChain
from sklearn.semi_supervised import SelfTrainingClassifier

import skdp
from skdp._fitting import budget as budgets
from skdp._fitting import parts
from skdp.model_selection import DPHoldout, dp_train_test_split

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


# ---------------------------------------------------------------- operations between fits

MISSING = np.where(np.array([1.0, 1.3, 1.6, 9.0]) < X, np.nan, X)
UNKNOWN = np.where(np.arange(400) < 200, -1, Y[:, 0])
ROWS, WEIGHTS = "different numbers of records", "sample weights that were not the same"
THREE = Y[:, 0] + Y[:, 1]
NOT_COUNTED = {
    "one versus one": (lambda: OneVsOneClassifier(LOGISTIC()), (X, THREE), ROWS),
    "consensus": (
        lambda: RANSACRegressor(
            skdp.DPRidge(), min_samples=200, residual_threshold=2, max_trials=2
        ),
        (X, MARGINS[:, 0]),
        ROWS,
    ),
    "self-training": (
        lambda: SelfTrainingClassifier(LOGISTIC(epsilon=9.0), threshold=0.6),
        (X, UNKNOWN),
        ROWS,
    ),
    "imputation": (lambda: IterativeImputer(skdp.DPRidge(), max_iter=1), (MISSING,), ROWS),
    "boosting": (
        lambda: AdaBoostClassifier(LOGISTIC(epsilon=1e4), n_estimators=3, learning_rate=0.1),
        (X, Y[:, 0]),
        WEIGHTS,
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("name", NOT_COUNTED)
def test_a_budget_warns_of_operations_it_does_not_count(name):
    make, data, said = NOT_COUNTED[name]
    with pytest.warns(skdp.PrivacyWarning, match=said) as caught, skdp.PrivacyBudget(1e9, DELTA):
        make().fit(*data)
    (warning,) = [one for one in caught if re.search(said, str(one.message))]
    assert warning.filename == __file__  # the line of the block
    assert not any(character.isdigit() for character in str(warning.message))


def test_a_budget_warns_of_rows_selected_within_a_part():
    """A split explains the sizes of its parts, not those of what is selected in one of them."""
    (part, _), X_train, y_train = parts.new_split(2), X[: len(X) // 2], THREE[: len(X) // 2]
    model = OneVsOneClassifier(LOGISTIC())
    warned = pytest.warns(skdp.PrivacyWarning, match=ROWS)
    with warned, skdp.PrivacyBudget(1e9, DELTA), parts.fits_on_part(part):
        model.fit(X_train, y_train)
    with pytest.raises(ValueError, match="OneVsOneClassifier is not known to fit"):
        DPHoldout(X, THREE).fit(model)


SAME_WEIGHTS = np.abs(X[:, 0])


def fit_twice_with_the_same_weights():
    for alpha in (1.0, 2.0):
        skdp.DPRidge(alpha).fit(X, MARGINS[:, 0], sample_weight=SAME_WEIGHTS)


def fit_part_and_all():
    part, _, targets, _ = dp_train_test_split(X, MARGINS[:, 0])
    skdp.DPRidge().fit(part, targets)
    skdp.DPRidge().fit(X, MARGINS[:, 0])


def fit_both_parts_with_weights():
    first, second, y, z, *weights = dp_train_test_split(X, MARGINS[:, 0], SAME_WEIGHTS)
    skdp.DPRidge().fit(first, y, sample_weight=weights[0])
    skdp.DPRidge().fit(second, z, sample_weight=weights[1])


COUNTED = {
    "voting": lambda: VotingClassifier([("a", LOGISTIC()), ("b", LOGISTIC())]).fit(X, Y[:, 0]),
    "one versus rest": lambda: OneVsRestClassifier(LOGISTIC()).fit(X, THREE),
    "the same weights": fit_twice_with_the_same_weights,
    "a known part": fit_part_and_all,
    "weights of both parts": fit_both_parts_with_weights,
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_budget_is_silent_where_nothing_else_happened(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.PrivacyWarning)
        with skdp.PrivacyBudget(50.0, DELTA):
            COUNTED[name]()
