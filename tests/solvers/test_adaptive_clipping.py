"""A clip that follows noisy counts: what it costs, where it goes, and that nothing else shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from replays import differing
from skdp.accounting import Adjacency, Gaussian, calibrate
from skdp.objective import Problem, SquaredError
from skdp.oracle import Public, SolverStage, make_plan
from skdp.solvers import AdaptiveNoiseSGD, GradientDescent
from skdp.solvers.descent import TrackedClip
from skdp.steps import AdaptiveClipping, ExponentialNoise

PROBLEM = Problem(SquaredError())


def planned(solver, adjacency=Adjacency.ZERO_OUT):
    public = Public(5000, 4, 1, adjacency, 1.0, 1e-6)
    resolved = solver.resolve(public, PROBLEM)
    return resolved, make_plan((SolverStage(resolved),), public, PROBLEM)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("schedule", ["uniform", ExponentialNoise(0.9)])
@pytest.mark.parametrize("share", [0.01, 0.4])
def test_counts_get_their_share_of_the_budget(adjacency, schedule, share):
    rule = AdaptiveClipping(share=share)
    solver = GradientDescent(max_iter=20, clip_norm=rule, noise_schedule=schedule)
    _, plan = planned(solver, adjacency)
    scale = plan.calibration.scale
    spent = {"gradient": 0.0, "gradient_count": 0.0}
    for entry in plan.entries:
        spent[entry.kind] += entry.count * entry.event.scaled(scale).mu(adjacency) ** 2
    assert spent["gradient_count"] / sum(spent.values()) == pytest.approx(share)
    whole = calibrate(Gaussian(1.0), 1.0, 1e-6, adjacency).scale
    unit = Gaussian(1.0).sensitivity(adjacency)
    assert sum(spent.values()) == pytest.approx((unit / whole) ** 2, rel=1e-6)


@pytest.mark.parametrize("make", [GradientDescent, AdaptiveNoiseSGD])
def test_the_word_stands_for_the_rule(make):
    rule = AdaptiveClipping(initial=3.0)
    resolved, _ = planned(make(max_iter=5, clip_norm=rule))
    assert resolved.clip_norm.initial == 3.0
    resolved, plan = planned(make(max_iter=5, clip_norm="adaptive"))
    assert isinstance(resolved.clip_norm, AdaptiveClipping)
    assert 0 < resolved.clip_norm.initial < math.inf
    assert [entry.kind for entry in plan.entries][:2] == ["gradient_count", "gradient"]
    assert AdaptiveClipping().initial == "auto"
    assert clone(rule).get_params() == rule.get_params()


@pytest.mark.parametrize("quantile", [0.3, 0.9])
def test_the_norm_finds_the_quantile(quantile, monkeypatch):
    """Without noise in the way, the clip ends where that share of gradients is."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3))
    y = X @ np.array([1.0, -1.0, 0.5]) + rng.standard_normal(4000)
    seen = []
    original = TrackedClip.query

    def query(self, *arguments):
        answer = original(self, *arguments)
        seen.append(self.norm)
        return answer

    monkeypatch.setattr(TrackedClip, "query", query)
    rule = AdaptiveClipping(quantile=quantile, initial=50.0, share=0.2)
    model = skdp.DPLinearRegression(
        solver=GradientDescent(max_iter=200, clip_norm=rule),
        epsilon=20.0,
        fit_intercept=False,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
    ).fit(X, y)
    norms = np.linalg.norm(X * (X @ model.coef_ - y)[:, None], axis=1)
    assert (norms <= seen[-1]).mean() == pytest.approx(quantile, abs=0.05)


def test_error_falls_with_the_noise_of_the_data():
    def excess(clip_norm, sigma):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((10000, 5))
        w = np.ones(5) / math.sqrt(5)
        model = skdp.DPLinearRegression(
            clip_norm=clip_norm,
            fit_intercept=False,
            scaling="none",
            privacy=skdp.Privacy(noise=skdp.SeededNoise(1)),
        ).fit(X, X @ w + sigma * rng.standard_normal(10000))
        return np.sum((model.coef_ - w) ** 2)

    assert excess("adaptive", 1e-2) < 0.05 * excess("adaptive", 1.0)
    assert excess("auto", 1e-2) > 0.05 * excess("auto", 1.0)


@pytest.mark.parametrize(
    "rule",
    [
        AdaptiveClipping(quantile=0.0),
        AdaptiveClipping(share=1.0),
        AdaptiveClipping(rate=-1.0),
        AdaptiveClipping(initial=0.0),
    ],
)
def test_impossible_rules_are_refused(rule):
    with pytest.raises(ValueError, match="AdaptiveClipping"):
        planned(GradientDescent(max_iter=5, clip_norm=rule))


def test_solvers_that_ask_no_counts_say_so(regression):
    model = skdp.DPRidge(solver="residual_budget", clip_norm=AdaptiveClipping())
    with pytest.raises(ValueError, match="adaptive clipping"):
        model.fit(*regression)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("sampling", [None, "poisson", "shuffled"])
@pytest.mark.parametrize("make", [GradientDescent, AdaptiveNoiseSGD])
def test_nothing_but_releases(replay, rng, make, sampling, adjacency):
    X = rng.standard_normal((60, 4))
    y = X @ np.ones(4)
    batches = {} if sampling is None else {"batch_size": 20, "sampling": sampling}
    replay.check_each(
        lambda: skdp.DPLinearRegression(
            solver=make(max_iter=9, clip_norm="adaptive", **batches),
            privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
            scaling="none",
        ),
        [
            differing(X, y, adjacency, 7, row, target)[::-1]
            for row, target in ((1e5, -1e300), (1e300, 1.0), (0.0, 0.0), (5e-324, 1e12))
        ],
        adjacency,
    )
