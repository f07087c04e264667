"""Budgets across fits: what they charge, refuse and tell."""

from __future__ import annotations

import copy
import math
import pickle
import threading
import warnings
from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

import skdp
from composition import DELTA, together
from replays import seeded
from skdp._fitting import budget as budgets
from skdp._fitting.budget import PrivacyBudget
from skdp._oracle.oracle import Oracle
from skdp.solvers import GradientDescent, ShuffledSGD

RIDGE = partial(skdp.DPRidge, scaling="none")


# ---------------------------------------------------------------- the charge


@pytest.mark.parametrize("as_parameter", [True, False])
def test_total_is_the_closed_form(regression, as_parameter):
    budget = PrivacyBudget(3.0, DELTA)
    if as_parameter:
        for epsilon in (1.0, 0.5, 1.0):
            RIDGE(epsilon=epsilon, privacy=skdp.Privacy(budget=budget)).fit(*regression)
    else:
        with budget:
            for epsilon in (1.0, 0.5, 1.0):
                RIDGE(epsilon=epsilon).fit(*regression)
        RIDGE().fit(*regression)  # outside: nobody's debt
    assert budget.n_fits == 3
    assert budget.spent == pytest.approx(together(1.0, 0.5, 1.0), rel=1e-6)
    assert budget.spent < 2.5


@pytest.mark.parametrize(
    "parameters",
    [{"privacy": skdp.Privacy(noise="seed")}, {"alpha": -1.0}, {"solver": "x"}],
)
def test_a_fit_refused_for_another_reason_costs_nothing(regression, parameters):
    with PrivacyBudget(3.0, DELTA) as budget:
        with pytest.raises(ValueError, match="must be"):
            RIDGE(**parameters).fit(*regression)
        with pytest.raises(ValueError, match="NaN"):
            RIDGE().fit(np.full((9, 2), np.nan), np.zeros(9))
    assert (budget.spent, budget.n_fits) == (0.0, 0)


def test_planning_costs_nothing(regression):
    with PrivacyBudget(3.0, DELTA) as budget:
        RIDGE(privacy=skdp.Privacy(budget=budget)).plan(100, 5)
    assert budget.n_fits == 0


def test_no_noise_is_refused(regression, asked):
    with (
        PrivacyBudget(100.0, DELTA),
        pytest.warns(skdp.PrivacyWarning, match="NOT private"),
        pytest.raises(skdp.PrivacyBudgetError, match="total at delta=1e-06 to epsilon=inf"),
    ):
        RIDGE(epsilon=math.inf).fit(*regression)
    assert not asked


def test_other_adjacency_is_refused(regression, asked):
    with (
        PrivacyBudget(9.0, DELTA, adjacency="replace_one") as budget,
        pytest.raises(
            skdp.PrivacyBudgetError, match=r"under 'zero_out'.*counts under 'replace_one'"
        ),
    ):
        RIDGE().fit(*regression)
    assert not asked
    with budget:
        RIDGE(privacy=skdp.Privacy(adjacency="replace_one")).fit(*regression)
    assert budget.spent == pytest.approx(1.0, rel=1e-6)


def test_nested_budgets_are_all_charged(regression):
    with PrivacyBudget(3.0, DELTA) as outer:
        RIDGE().fit(*regression)
        with PrivacyBudget(1.2, DELTA) as inner, inner:
            RIDGE(privacy=skdp.Privacy(budget=outer)).fit(*regression)
            with pytest.raises(skdp.PrivacyBudgetError, match=r"allows 1\.2"):
                RIDGE().fit(*regression)
        assert inner.spent == pytest.approx(1.0, rel=1e-6)
        assert (outer.n_fits, inner.n_fits) == (2, 1)  # refused by one, charged to none
        RIDGE(epsilon=0.5).fit(*regression)
    assert outer.spent == pytest.approx(together(1, 1, 0.5), rel=1e-6)
    assert not budgets._open


def test_an_error_closes_the_block(regression):
    with pytest.raises(ZeroDivisionError), PrivacyBudget(1.0, DELTA) as budget:
        1 / 0  # noqa: B018
    RIDGE().fit(*regression)
    assert budget.n_fits == 0


@pytest.mark.parametrize("delta", [DELTA, 1e-8])
def test_what_remains_can_be_spent(regression, delta):
    with PrivacyBudget(2.0, DELTA) as budget:
        assert budget.remaining_epsilon() == pytest.approx(2.0)
        RIDGE(epsilon=1.0).fit(*regression)
        left = budget.remaining_epsilon(delta)
        assert left > 1.0 or delta < DELTA
        with pytest.raises(skdp.PrivacyBudgetError):
            RIDGE(epsilon=left * 1.001, delta=delta).fit(*regression)
        RIDGE(epsilon=left, delta=delta).fit(*regression)
    assert 1.999 < budget.spent <= 2.0
    assert budget.remaining_epsilon() < 0.01


def test_what_remains_of_a_pure_budget_can_be_spent(regression):
    with PrivacyBudget(2.0, 0.0) as budget:
        RIDGE(epsilon=1.2, delta=0.0).fit(*regression)
        with pytest.raises(skdp.PrivacyBudgetError, match=r"can have epsilon=0\.79\d* at most"):
            RIDGE(epsilon=1.0, delta=0.0).fit(*regression)
        assert budget.remaining_epsilon(DELTA) == 0.0
        RIDGE(epsilon=budget.remaining_epsilon(), delta=0.0).fit(*regression)
    assert 1.999 < budget.spent <= 2.0
    assert budget.remaining_epsilon() < 0.01


BATCHES = GradientDescent(batch_size=0.1, max_iter=20)


@pytest.mark.parametrize(
    ("terms", "parameters", "filtering"),
    [
        ((2.0, DELTA), {"max_iter": 3}, True),
        ((2.0, DELTA), {"solver": ShuffledSGD(batch_size=200)}, True),
        ((2.0, 0.0), {"delta": 0.0, "max_iter": 3}, True),
        ((2.0, DELTA), {"solver": BATCHES}, False),
        ((math.inf, DELTA), {"max_iter": 3}, False),
    ],
)
def test_a_filter_says_so_without_being_told(regression, terms, parameters, filtering):
    """Gaussian or pure fits in a finite budget may be chosen by looking at earlier models."""
    budget = PrivacyBudget(*terms)
    privacy = skdp.Privacy(budget=budget)
    RIDGE(**clone(parameters, safe=False), privacy=privacy).fit(*regression)
    stated = budget.statement.assumptions[1]
    assert ("The whole budget, epsilon=2, is then the guarantee" in stated) == filtering
    assert ("were not chosen by looking" in stated) != filtering
    if filtering and budget.delta > 0:  # one fit of another kind, and the assumption is back
        RIDGE(epsilon=0.5, solver=clone(BATCHES), privacy=privacy).fit(*regression)
        assert "were not chosen by looking" in budget.statement.assumptions[1]


def test_divisions_of_different_fits_are_not_the_same(regression):
    """Both fits draw blocks; a record may be in a block of each."""
    with PrivacyBudget(9.0, DELTA) as budget:
        for _ in range(2):
            RIDGE(solver=ShuffledSGD(max_iter=4)).fit(*regression)
    assert budget.spent == pytest.approx(together(1, 1), rel=1e-5)


# ---------------------------------------------------------------- what must never happen

STEPS = partial(RIDGE, solver="gd", max_iter=5)


def test_overspending_is_refused_before_rows_are_used(regression, asked):
    with PrivacyBudget(1.5, DELTA) as budget:
        STEPS().fit(*regression)
        STEPS(epsilon=0.5).fit(*regression)
        spent, answers = budget.spent, len(asked)
        assert answers == 10
        model = STEPS()
        with pytest.raises(skdp.PrivacyBudgetError) as refusal:
            model.fit(*regression)
        assert len(asked) == answers
        assert not hasattr(model, "coef_")
        assert (budget.spent, budget.n_fits) == (spent, 2)
        STEPS(epsilon=0.3).fit(*regression)
        assert budget.spent <= 1.5
    for part in (
        "DPRidge requested epsilon=1, delta=1e-06",  # who, what
        f"epsilon={together(1, 0.5, 1):.6g}",
        "allows 1.5",
        f"{together(1, 0.5):.6g} is spent by 2 fits",
        "can have epsilon=0.",  # what is left
        "nothing was released and nothing was charged",
    ):
        assert part in str(refusal.value)


def test_a_fit_that_fails_half_way_keeps_its_debt(regression, monkeypatch):
    ask, answers = Oracle.request, []

    def failing(self, release):
        answers.append(self._source is not None)
        if sum(answers) == 3:
            raise RuntimeError("half way")
        return ask(self, release)

    with PrivacyBudget(3.0, DELTA) as budget:
        monkeypatch.setattr(Oracle, "request", failing)
        with pytest.raises(RuntimeError, match="half way"):
            STEPS().fit(*regression)
        assert budget.spent == pytest.approx(1.0, rel=1e-5)


def test_a_seed_is_used_once(regression):
    """Two fits with the same seed share their noise, which their difference takes off."""
    with PrivacyBudget(9.0, DELTA, allow_seeded_noise=True) as budget:
        STEPS(privacy=seeded(3)).fit(*regression)
        for same in (3, np.int64(3)):
            with pytest.raises(skdp.PrivacyBudgetError, match=r"draw the same noise.*nothing"):
                STEPS(0.5, privacy=seeded(same)).fit(*regression)
        STEPS(privacy=seeded(4)).fit(*regression)
    assert budget.n_fits == 2
    assert budget.statement.noise_source == "seeded"


def test_copies_share_the_budget(regression):
    budget = PrivacyBudget(2.0, DELTA)
    model = STEPS(privacy=skdp.Privacy(budget=budget))
    for twin in (clone(model), clone(clone(model)), copy.copy(model), copy.deepcopy(model)):
        assert twin.privacy.budget is budget
    assert copy.copy(budget) is copy.deepcopy(budget) is clone(budget, safe=False) is budget
    assert pickle.loads(pickle.dumps(model)).privacy.budget is budget
    for _ in range(3):
        clone(model).fit(*regression)
    assert budget.n_fits == 3
    with pytest.raises(skdp.PrivacyBudgetError, match="total"):
        clone(model).fit(*regression)


@pytest.mark.parametrize("own", [None, PrivacyBudget(9.0, DELTA)], ids=["around", "own"])
def test_a_search_is_charged_for_every_fit(regression, asked, own):
    """It is refused in the middle when the budget runs out."""
    model = STEPS(privacy=skdp.Privacy(budget=own))
    search = GridSearchCV(model, {"alpha": [0.1, 1.0, 10.0]}, cv=2, error_score="raise")
    with (
        PrivacyBudget(2.0, DELTA) as around,
        pytest.raises(skdp.PrivacyBudgetError, match=r"3 fits.*DPSearchCV.*privacy_of\(search, "),
    ):
        search.fit(*regression)
    assert len(asked) == 15
    assert (around.n_fits, around.spent) == (3, pytest.approx(together(1, 1, 1), rel=1e-5))
    assert own is None or own.n_fits == 3


def test_threads_are_charged(regression):
    with PrivacyBudget(20.0, DELTA) as budget, joblib.parallel_config(backend="threading"):
        cross_validate(STEPS(), *regression, cv=4, n_jobs=2, error_score="raise")
    assert budget.spent == pytest.approx(together(*[1.0] * 4), rel=1e-5)


# ---------------------------------------------------------------- what it tells


def test_statement(regression):
    budget = PrivacyBudget(3.0, DELTA)
    assert budget.statement.releases == ()
    assert budget.spent == budget.statement.epsilon == 0.0
    models = [
        RIDGE(solver="gd", max_iter=7, privacy=skdp.Privacy(budget=budget)).fit(*regression)
        for _ in range(2)
    ]
    total = skdp.total_privacy(*models, delta=DELTA)
    statement = budget.statement
    assert (statement.epsilon, statement.releases) == (total.epsilon, total.releases)
    assert set(total.assumptions) < set(statement.assumptions)
    assert "scores on these rows" in statement.assumptions[0]
    assert "epsilon=3, is then the guarantee" in statement.assumptions[1]
    assert statement.n_rows == 400
    assert [record.count for record in statement.releases] == [14]
    assert repr(budget) == (
        f"<PrivacyBudget: epsilon=3, delta=1e-06, zero_out, {total.epsilon:.6g} spent by 2 fits>"
    )
    assert repr(budget) in repr(models[0]).replace("\n", " ").replace("  ", "")


def test_a_budget_without_end_counts(regression):
    with PrivacyBudget(math.inf, DELTA) as budget, warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.PrivacyWarning)
        RIDGE().fit(*regression)
        assert budget.spent == pytest.approx(1.0, rel=1e-6)
        assert budget.remaining_epsilon() == math.inf
        RIDGE(epsilon=math.inf).fit(*regression)
    assert budget.spent == math.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1e-6), "epsilon must be a positive"),
        ((math.nan, 1e-6), "epsilon must be a positive"),
        ((1.0, 1.0), r"delta must be a number in \[0, 1\)"),
        ((1.0, 1e-6, "add_one"), "adjacency must be one of"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        PrivacyBudget(*arguments)


def test_terms_cannot_be_changed():
    budget = PrivacyBudget(1.0, DELTA)
    for name in ("epsilon", "delta", "adjacency", "spent"):
        with pytest.raises(AttributeError):
            setattr(budget, name, 100.0)


# ---------------------------------------------------------------- threads


def test_no_race(regression):
    budget = PrivacyBudget(2.0, DELTA)
    outcomes = []

    def fit():
        try:
            RIDGE(max_iter=3, privacy=skdp.Privacy(budget=budget)).fit(*regression)
            outcomes.append(True)
        except skdp.PrivacyBudgetError:
            outcomes.append(False)

    threads = [threading.Thread(target=fit) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(outcomes) == budget.n_fits == 3
    assert len(outcomes) == 12


def test_blocks_of_threads_close_in_any_order(regression):
    first, second = PrivacyBudget(1.0, DELTA), PrivacyBudget(2.0, DELTA)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    RIDGE().fit(*regression)
    second.__exit__(None, None, None)
    assert (first.n_fits, second.n_fits) == (0, 1)


@pytest.mark.parametrize("spent", [0.7, 0.31])
def test_the_epsilon_that_a_refusal_names_is_admitted(regression, spent):
    """It is rounded down, to what is left."""
    with PrivacyBudget(1.0, DELTA):
        RIDGE(epsilon=spent).fit(*regression)
        with pytest.raises(skdp.PrivacyBudgetError, match="can have epsilon=") as refusal:
            RIDGE(epsilon=0.99).fit(*regression)
        left = str(refusal.value).partition("can have epsilon=")[2].split()[0]
        RIDGE(epsilon=float(left)).fit(*regression)
