"""An analysis under one budget: planned, charged, refused where it does not fit."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

import skdp
from skdp.model_selection import DPSearchCV

RIDGE = partial(skdp.DPRidge, scaling="none", max_iter=3, target_bound=5.0)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_split_search_fit_score(regression, adjacency):
    analysis = skdp.Analysis(
        2.0, 1e-6, ["search", "fit", "score"], n_candidates=5, adjacency=adjacency
    )
    before = str(analysis)
    assert "0 spent" in before
    assert [step.name for step in analysis.steps] == ["search", "fit", "score"]
    assert all(0.5 < step.epsilon < 1.6 for step in analysis.steps[:2])
    assert analysis.steps[2].epsilon == pytest.approx(2.0, rel=5e-3)
    analysis.split(*regression)
    found = analysis.search(DPSearchCV(RIDGE(), {"alpha": [0.1, 10.0]}))
    model = analysis.fit(RIDGE(**found.best_params_))
    scores = analysis.score(model, ["r2"], target_range=(-3, 3))
    assert 1.9 < analysis.budget.spent <= 2.0
    assert analysis.budget.n_fits == 3
    for step, made in zip(analysis.steps, (found, model, scores), strict=True):
        assert step.spent == pytest.approx(made.privacy_.epsilon)
        assert made.privacy_.epsilon <= step.epsilon * (1 + 1e-9)
    assert "planned" not in str(analysis)
    with pytest.raises(TypeError, match="holds rows"):
        pickle.dumps(analysis)
    assert analysis._repr_html_().count("<tr>") == 3
    for again in (lambda: analysis.fit(RIDGE()), lambda: analysis.score(model)):
        with pytest.raises(skdp.PrivacyBudgetError, match="has been made already"):
            again()


def test_a_fit_and_scores_have_the_whole_budget_each(regression):
    analysis = skdp.Analysis(1.0, 1e-6).split(*regression)
    assert [step.epsilon for step in analysis.steps] == pytest.approx([1.0, 1.0], rel=1e-5)
    model = analysis.fit(RIDGE(epsilon=50.0))
    analysis.score(model)
    assert 0.999 < analysis.budget.spent <= 1.0


def test_a_fit_alone_takes_all_rows(regression):
    analysis = skdp.Analysis(1.0, 1e-6, "fit").split(*regression)
    assert analysis.fit(RIDGE()).privacy_.n_rows == 400
    with pytest.raises(skdp.PrivacyBudgetError, match="a score is not in the plan"):
        analysis.score(RIDGE())


def test_shares_are_followed():
    few, many = (
        skdp.Analysis(1.0, 1e-6, ["search", "fit"], shares={"search": 1.0, "fit": fit}).steps
        for fit in (1.0, 9.0)
    )
    assert many[0].epsilon < few[0].epsilon < few[1].epsilon * 1.01 < many[1].epsilon


def test_a_step_that_does_not_fit_is_refused(regression):
    analysis = skdp.Analysis(1.0, 1e-6).split(*regression)
    RIDGE(epsilon=0.5, privacy=skdp.Privacy(budget=analysis.budget)).fit(*regression)
    with pytest.raises(skdp.PrivacyBudgetError, match=r"budget allows 1.*nothing was released"):
        analysis.fit(RIDGE())
    assert analysis.steps[0].spent is None


@pytest.mark.parametrize(
    ("message", "arguments", "options"),
    [
        ("steps must be some of", (1.0, 1e-6, ["fit", "search"]), {}),
        ("steps must be some of", (1.0, 1e-6, []), {}),
        ("steps must be some of", (1.0, 1e-6, ["fit", "fit"]), {}),
        ("nothing to score", (1.0, 1e-6, ["score"]), {}),
        ("shares must", (1.0, 1e-6), {"shares": {"search": 1.0}}),
        ("shares must", (1.0, 1e-6), {"shares": {"fit": 0.0}}),
        ("epsilon must be", (-1.0, 1e-6), {}),
        ("delta must", (1.0, 0.0), {}),
        ("delta must", (np.inf, 1e-6), {}),
        ("n_candidates must", (1.0, 1e-6), {"n_candidates": 1}),
        ("adjacency must", (1.0, 1e-6), {"adjacency": "x"}),
        ("too small next to delta", (1e-6, 0.9), {}),
    ],
)
def test_refused(message, arguments, options):
    with pytest.raises(ValueError, match=message):
        skdp.Analysis(*arguments, **options)


def test_rows_are_split_once(regression):
    analysis = skdp.Analysis(1.0, 1e-6)
    with pytest.raises(ValueError, match=r"call split\(X, y\) first"):
        analysis.fit(RIDGE())
    analysis.split(*regression)
    with pytest.raises(ValueError, match="split already"):
        analysis.split(*regression)
