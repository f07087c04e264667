"""What a budget must never let happen, and mutants that do: each must be caught."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

import skdp
from composition import DELTA, together
from replays import seeded
from skdp.fitting.budget import PrivacyBudget
from skdp.oracle.oracle import Oracle

RIDGE = partial(skdp.DPRidge, scaling="none", solver="gd")


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
        "DPRidge requested epsilon=1, delta=1e-06",  # who, what
        f"epsilon={together(1, 0.5, 1):.6g}",
        "allows 1.5",
        f"{together(1, 0.5):.6g} is spent by 2 fits",
        "can have epsilon=0.",  # what is left
        "nothing was released and nothing was charged",
    ):
        assert part in said


def check_failed_fit(data, monkeypatch):
    """A fit that fails half way keeps its debt."""
    ask, answers = Oracle.request, []

    def failing(self, release):
        answers.append(self._source is not None)
        if sum(answers) == 3:
            raise RuntimeError("half way")
        return ask(self, release)

    with PrivacyBudget(3.0, DELTA) as budget:
        with monkeypatch.context() as patch:
            patch.setattr(Oracle, "request", failing)
            with pytest.raises(RuntimeError, match="half way"):
                RIDGE(max_iter=5).fit(*data)
        assert budget.spent == pytest.approx(1.0, rel=1e-5)


def test_a_failed_fit_keeps_its_debt(regression, monkeypatch):
    check_failed_fit(regression, monkeypatch)


def check_seed(data):
    """Two fits with the same seed share their noise, which their difference takes off."""
    with PrivacyBudget(9.0, DELTA, allow_seeded_noise=True) as budget:
        RIDGE(privacy=seeded(3)).fit(*data)
        for same in (3, np.int64(3)):
            with pytest.raises(skdp.PrivacyBudgetError, match=r"draw the same noise.*nothing"):
                RIDGE(0.5, privacy=seeded(same)).fit(*data)
        RIDGE(privacy=seeded(4)).fit(*data)
    assert budget.n_fits == 2
    assert budget.statement.noise_source == "seeded"


def test_a_seed_is_used_once(regression):
    check_seed(regression)


def check_one_budget(data):
    budget = PrivacyBudget(2.0, DELTA)
    model = RIDGE(privacy=skdp.Privacy(budget=budget))
    for twin in (clone(model), clone(clone(model)), copy.copy(model), copy.deepcopy(model)):
        assert twin.privacy.budget is budget
    assert copy.copy(budget) is copy.deepcopy(budget) is clone(budget, safe=False) is budget
    assert pickle.loads(pickle.dumps(model)).privacy.budget is budget
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
            RIDGE(max_iter=5, privacy=skdp.Privacy(budget=budget)),
            {"alpha": [0.1, 1.0, 10.0]},
            cv=2,
            error_score="raise",
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


def check_threads(data):
    with (
        PrivacyBudget(20.0, DELTA) as budget,
        joblib.parallel_config(backend="threading"),
    ):
        cross_validate(RIDGE(max_iter=5), *data, cv=4, n_jobs=2, error_score="raise")
    assert budget.spent == pytest.approx(together(*[1.0] * 4), rel=1e-5)


def test_threads_are_charged(regression):
    check_threads(regression)
