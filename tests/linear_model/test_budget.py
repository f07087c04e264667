"""Budgets across fits: charged before rows are used, never copied, never fooled by workers."""

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
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

import skdp
from skdp.accounting import gaussian_epsilon, gaussian_mu
from skdp.linear_model import base, charging
from skdp.linear_model.budget import PrivacyBudget
from skdp.oracle.oracle import Oracle
from skdp.solvers import GradientDescent

RIDGE = partial(skdp.DPRidge, scaling="none")
HOW = r"n_jobs=1.*threading.*budget in each worker.*[Nn]othing was released"
DELTA = 1e-6


@pytest.fixture
def asked(monkeypatch):
    """Number of answers about rows."""
    answers = []
    ask = Oracle.ask

    def counted(self, release):
        if self._rows is not None:
            answers.append(release)
        return ask(self, release)

    monkeypatch.setattr(Oracle, "ask", counted)
    return answers


def together(*epsilons, delta=DELTA):
    """By hand: fits calibrated to each epsilon are one Gaussian of the summed squares of mu."""
    return gaussian_epsilon(math.sqrt(sum(gaussian_mu(e, delta) ** 2 for e in epsilons)), delta)


# ---------------------------------------------------------------- the charge


@pytest.mark.parametrize("as_parameter", [True, False])
def test_total_is_the_closed_form(regression, as_parameter):
    budget = PrivacyBudget(3.0, DELTA)
    if as_parameter:
        for epsilon in (1.0, 0.5, 1.0):
            RIDGE(epsilon=epsilon, budget=budget).fit(*regression)
    else:
        with budget:
            for epsilon in (1.0, 0.5, 1.0):
                RIDGE(epsilon=epsilon).fit(*regression)
        RIDGE().fit(*regression)  # outside: nobody's debt
    assert budget.n_fits == 3
    assert budget.spent == pytest.approx(together(1.0, 0.5, 1.0), rel=1e-6)
    assert budget.spent < 2.5


def test_fits_at_another_delta(regression):
    with PrivacyBudget(5.0, 1e-8) as budget:
        model = RIDGE(delta=1e-6).fit(*regression)
    assert budget.spent == pytest.approx(model.privacy_.epsilon_at(1e-8))
    assert budget.spent > 1.0


def test_all_estimators(regression, classification):
    with PrivacyBudget(9.0, DELTA) as budget:
        skdp.DPRidge().fit(*regression)
        skdp.DPLinearRegression().fit(*regression)
        skdp.DPLogisticRegression().fit(*classification)
    assert budget.spent == pytest.approx(together(1, 1, 1), rel=1e-6)


def check_overspending(data, asked):
    """The fit that would overspend is refused before rows are used, and costs nothing."""
    with PrivacyBudget(1.5, DELTA) as budget:
        RIDGE(max_iter=5).fit(*data)
        RIDGE(max_iter=5, epsilon=0.5).fit(*data)
        spent, answers = budget.spent, len(asked)
        assert answers == 10
        model = RIDGE(max_iter=5)
        try:
            model.fit(*data)
        except skdp.PrivacyBudgetError as refusal:
            said = str(refusal)
        else:
            raise AssertionError("it was not refused")
        assert len(asked) == answers, "rows were used"
        assert not hasattr(model, "coef_")
        assert (budget.spent, budget.n_fits) == (spent, 2)
        RIDGE(max_iter=5, epsilon=0.3).fit(*data)
        assert budget.spent <= 1.5
    return said


def test_overspending_is_refused(regression, asked):
    said = check_overspending(regression, asked)
    for part in (
        "DPRidge asked for a fit of epsilon=1, delta=1e-06",  # who, what
        f"epsilon={together(1, 0.5, 1):.6g}",
        "allows 1.5",
        f"{together(1, 0.5):.6g} is spent by 2 fits",
        "can ask for epsilon=0.",  # what is left
        "nothing was released and nothing was charged",
    ):
        assert part in said


def test_a_refusal_is_a_value_error():
    assert issubclass(skdp.PrivacyBudgetError, ValueError)
    again = pickle.loads(pickle.dumps(skdp.PrivacyBudgetError("why")))
    assert str(again) == "why"


def check_failed_fit(data, monkeypatch):
    """A fit that fails half way keeps its debt."""
    ask, answers = Oracle.ask, []

    def failing(self, release):
        answers.append(self._rows is not None)
        if sum(answers) == 3:
            raise RuntimeError("half way")
        return ask(self, release)

    with PrivacyBudget(3.0, DELTA) as budget:
        with monkeypatch.context() as patch:
            patch.setattr(Oracle, "ask", failing)
            with pytest.raises(RuntimeError, match="half way"):
                RIDGE(max_iter=5).fit(*data)
        assert budget.spent == pytest.approx(1.0, rel=1e-5)


def test_a_failed_fit_keeps_its_debt(regression, monkeypatch):
    check_failed_fit(regression, monkeypatch)


@pytest.mark.parametrize("parameters", [{"random_state": "seed"}, {"alpha": -1.0}, {"solver": "x"}])
def test_a_fit_refused_for_another_reason_costs_nothing(regression, parameters):
    with PrivacyBudget(3.0, DELTA) as budget:
        with pytest.raises(ValueError, match="must be"):
            RIDGE(**parameters).fit(*regression)
        with pytest.raises(ValueError, match="NaN"):
            RIDGE().fit(np.full((9, 2), np.nan), np.zeros(9))
    assert (budget.spent, budget.n_fits) == (0.0, 0)


def test_planning_costs_nothing(regression):
    with PrivacyBudget(3.0, DELTA) as budget:
        RIDGE(budget=budget).plan(100, 5)
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
        RIDGE(adjacency="replace_one").fit(*regression)
    assert budget.spent == pytest.approx(1.0, rel=1e-6)


def test_nested_budgets_are_all_charged(regression):
    with PrivacyBudget(3.0, DELTA) as outer:
        RIDGE().fit(*regression)
        with PrivacyBudget(1.2, DELTA) as inner, inner:
            RIDGE(budget=outer).fit(*regression)
            with pytest.raises(skdp.PrivacyBudgetError, match=r"allows 1\.2"):
                RIDGE().fit(*regression)
        assert inner.spent == pytest.approx(1.0, rel=1e-6)
        assert (outer.n_fits, inner.n_fits) == (2, 1)  # refused by one, charged to none
        RIDGE(epsilon=0.5).fit(*regression)
    assert outer.spent == pytest.approx(together(1, 1, 0.5), rel=1e-6)
    assert not charging._open


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


BATCHES = GradientDescent(batch_size=0.1, max_iter=20)


def test_batches(regression):
    with PrivacyBudget(2.0, DELTA) as budget:
        models = [RIDGE(solver=clone(BATCHES)).fit(*regression) for _ in range(2)]
        left = budget.remaining_epsilon()
        assert 0.5 < left < 2.0
        RIDGE(epsilon=left).fit(*regression)
    assert budget.spent <= 2.0
    total = skdp.total_privacy(*models, delta=DELTA).epsilon
    assert total < budget.spent
    assert total == pytest.approx(1.41, abs=0.1)


def test_a_filter_admits_gaussian_fits_only(regression, asked):
    with PrivacyBudget(2.0, DELTA, accountant="gdp") as budget:
        RIDGE(max_iter=3).fit(*regression)
        answers = len(asked)
        with pytest.raises(skdp.PrivacyBudgetError, match=r"cannot price.*PoissonSampled"):
            RIDGE(solver=clone(BATCHES)).fit(*regression)
    assert len(asked) == answers
    assert budget.spent == pytest.approx(1.0, rel=1e-6)
    assert "privacy filter" in str(budget.statement)


def test_divisions_of_different_fits_are_not_the_same(regression):
    """Both fits draw blocks; a record may be in the dearest block of each."""

    def fit(noise):
        solver = GradientDescent(
            batch_size=200, sampling="shuffled", max_iter=2, noise_schedule=noise, momentum=0.0
        )
        return RIDGE(solver=solver).fit(*regression)

    with PrivacyBudget(9.0, DELTA) as budget:
        fit([1.0, 20.0])
        fit([20.0, 1.0])
    assert budget.spent == pytest.approx(together(1, 1), rel=1e-5)


def check_seed(data):
    """Two fits with the same seed share their noise, which their difference takes off."""
    with PrivacyBudget(9.0, DELTA) as budget:
        RIDGE(random_state=3).fit(*data)
        for same in (3, np.int64(3)):
            with pytest.raises(skdp.PrivacyBudgetError, match=r"draw the same noise.*nothing"):
                RIDGE(0.5, random_state=same).fit(*data)
        RIDGE(random_state=4).fit(*data)
        for make in (np.random.RandomState, np.random.default_rng):
            generator = make(0)
            RIDGE(random_state=copy.deepcopy(generator)).fit(*data)
            with pytest.raises(skdp.PrivacyBudgetError, match="draw the same noise"):
                RIDGE(random_state=copy.deepcopy(generator)).fit(*data)
            generator.random()
            RIDGE(random_state=generator).fit(*data)
    assert budget.n_fits == 6
    assert budget.statement.noise_source == "seeded"


def test_a_seed_is_used_once(regression):
    check_seed(regression)


# ---------------------------------------------------------------- what it tells


def test_statement(regression):
    budget = PrivacyBudget(3.0, DELTA)
    assert budget.statement.releases == ()
    assert budget.spent == budget.statement.epsilon == 0.0
    models = [RIDGE(max_iter=7, budget=budget).fit(*regression) for _ in range(2)]
    total = skdp.total_privacy(*models, delta=DELTA)
    statement = budget.statement
    assert (statement.epsilon, statement.releases) == (total.epsilon, total.releases)
    assert set(total.assumptions) < set(statement.assumptions)
    assert "scores on these rows" in statement.assumptions[0]
    assert "'pure'" in statement.assumptions[1]
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
        ((1.0, 1e-6, "zero_out", "moments"), "accountant must be one of"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        PrivacyBudget(*arguments)


def test_bad_budget_parameter(regression):
    for bad in (1.0, PrivacyBudget, "3"):
        with pytest.raises(ValueError, match="budget must be None or a PrivacyBudget"):
            RIDGE(budget=bad).fit(*regression)


def test_terms_cannot_be_changed():
    budget = PrivacyBudget(1.0, DELTA)
    for name in ("epsilon", "delta", "adjacency", "accountant", "spent"):
        with pytest.raises(AttributeError):
            setattr(budget, name, 100.0)


# ---------------------------------------------------------------- never two of one


def check_one_budget(data):
    budget = PrivacyBudget(2.0, DELTA)
    model = RIDGE(budget=budget)
    for twin in (clone(model), clone(clone(model)), copy.copy(model), copy.deepcopy(model)):
        assert twin.budget is budget
    assert copy.copy(budget) is copy.deepcopy(budget) is clone(budget, safe=False) is budget
    assert pickle.loads(pickle.dumps(model)).budget is budget
    for _ in range(3):
        clone(model).fit(*data)
    assert budget.n_fits == 3
    with pytest.raises(skdp.PrivacyBudgetError, match="total"):
        clone(model).fit(*data)


def test_clones_share_the_budget(regression):
    check_one_budget(regression)


def check_search(data, asked, budget=None):
    """A search is charged fit by fit, and refused in the middle when the budget runs out."""
    with PrivacyBudget(2.0, DELTA) as around:
        search = GridSearchCV(
            RIDGE(max_iter=5, budget=budget), {"alpha": [0.1, 1.0, 10.0]}, cv=2, error_score="raise"
        )
        try:
            search.fit(*data)
        except skdp.PrivacyBudgetError as refusal:
            assert "3 fits" in str(refusal)  # noqa: PT017
        else:
            raise AssertionError("it was not refused")
        assert len(asked) == 15
        assert (around.n_fits, around.spent) == (3, pytest.approx(together(1, 1, 1), rel=1e-5))


def test_a_search_is_charged_for_every_fit(regression, asked):
    check_search(regression, asked)
    asked.clear()
    budget = PrivacyBudget(9.0, DELTA)
    check_search(regression, asked, budget)
    assert budget.n_fits == 3


def test_a_search_within_its_budget(regression):
    with PrivacyBudget(9.0, DELTA) as budget:
        GridSearchCV(RIDGE(max_iter=5), {"alpha": [0.1, 1.0]}, cv=3).fit(*regression)
    assert budget.spent == pytest.approx(together(*[1.0] * 7), rel=1e-5)


def test_a_search_that_goes_on_after_refusals(regression):
    search = GridSearchCV(RIDGE(max_iter=5), {"alpha": [0.1, 1.0]}, cv=2)
    with (
        PrivacyBudget(2.0, DELTA) as budget,
        pytest.warns(match="fits failed"),
        pytest.warns(match="non-finite"),
        pytest.raises(skdp.PrivacyBudgetError, match="3 fits"),
    ):
        search.fit(*regression)
    assert budget.n_fits == 3


# ---------------------------------------------------------------- threads


def check_threads(data):
    with (
        PrivacyBudget(20.0, DELTA) as budget,
        joblib.parallel_config(backend="threading"),
    ):
        cross_validate(RIDGE(max_iter=5), *data, cv=4, n_jobs=2, error_score="raise")
    assert budget.spent == pytest.approx(together(*[1.0] * 4), rel=1e-5)


def test_threads_are_charged(regression):
    check_threads(regression)


def test_no_race(regression):
    budget = PrivacyBudget(2.0, DELTA)
    outcomes = []

    def fit():
        try:
            RIDGE(max_iter=3, budget=budget).fit(*regression)
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


# ---------------------------------------------------------------- mutants: each must be caught


def copied(self, *_):
    twin = object.__new__(PrivacyBudget)
    vars(twin).update(vars(self))
    return twin


def late(self):
    """Take the charge out, and pay after the fit."""

    def fit(model, *arguments, **checks):
        with self._patch.context() as patch:
            patch.setattr(base, "charge", lambda *_: None)
            fitted = self._fit(model, *arguments, **checks)
        charging.charge("late", fitted.privacy_, model.budget, None, None)
        return fitted

    return fit


class Mutants:
    def __init__(self, patch):
        self._patch = patch
        self._fit = base.DPLinearModel._fit

    def copied_by_clone(self):
        self._patch.setattr(PrivacyBudget, "__sklearn_clone__", copied)

    def copied_by_deepcopy(self):
        self._patch.setattr(PrivacyBudget, "__deepcopy__", copied)

    def copied_by_pickle(self):
        self._patch.setattr(PrivacyBudget, "__reduce__", lambda self: (PrivacyBudget, self._terms))

    def charged_late(self):
        self._patch.setattr(base.DPLinearModel, "_fit", late(self))

    def not_charged(self):
        self._patch.setattr(base, "charge", lambda *_: None)

    def charged_when_refused(self):
        admit = PrivacyBudget.admit

        def admitted(budget, who, asked, seed):
            budget._n_fits += 1
            return admit(budget, who, asked, seed)

        self._patch.setattr(PrivacyBudget, "admit", admitted)

    def debt_forgotten(self):
        self._patch.setattr(PrivacyBudget, "owe", lambda self, total, seed: None)

    def only_this_thread(self):
        class Local(threading.local):
            def __init__(self):
                self.items = []

        local = Local()

        class Stack:
            def append(self, item):
                local.items.append(item)

            def __iter__(self):
                return iter(local.items)

            def __delitem__(self, place):
                del local.items[place]

        self._patch.setattr(charging, "_open", Stack())

    def seeds_forgotten(self):
        self._patch.setattr(base, "seed_of", lambda random_state: None)


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        ("copied_by_clone", lambda data, asked, patch: check_one_budget(data)),
        ("copied_by_deepcopy", lambda data, asked, patch: check_one_budget(data)),
        ("copied_by_pickle", lambda data, asked, patch: check_one_budget(data)),
        ("charged_late", lambda data, asked, patch: check_overspending(data, asked)),
        ("charged_late", lambda data, asked, patch: check_failed_fit(data, patch)),
        ("charged_late", lambda data, asked, patch: check_search(data, asked)),
        ("not_charged", lambda data, asked, patch: check_overspending(data, asked)),
        ("not_charged", lambda data, asked, patch: check_search(data, asked)),
        ("charged_when_refused", lambda data, asked, patch: check_overspending(data, asked)),
        ("debt_forgotten", lambda data, asked, patch: check_overspending(data, asked)),
        ("only_this_thread", lambda data, asked, patch: check_threads(data)),
        ("seeds_forgotten", lambda data, asked, patch: check_seed(data)),
    ],
)
def test_mutants_are_caught(mutant, check, regression, asked, monkeypatch):
    getattr(Mutants(monkeypatch), mutant)()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(regression, asked, monkeypatch)


def test_kfold_counts_every_training(regression):
    """A budget does not know that folds are disjoint: it errs on the private side."""
    with PrivacyBudget(20.0, DELTA) as budget:
        search = GridSearchCV(RIDGE(max_iter=5), {"alpha": [1.0, 2.0]}, cv=KFold(4)).fit(
            *regression
        )
    assert budget.n_fits == 9
    assert skdp.privacy_of(search).epsilon < budget.spent
