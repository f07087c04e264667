"""Scaling under pure privacy: histograms with Laplace noise, whose epsilons add up."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from skdp._oracle import Public
from skdp._stages.scaling.shares import scaling_budget
from skdp.accounting import Adjacency


def raw(n_rows, rng):
    """Columns and targets in units of their own, far from 0."""
    X = rng.standard_normal((n_rows, 3))
    y = X @ [1.0, -0.5, 0.5] + rng.standard_normal(n_rows)
    return X * [5.0, 200.0, 0.1] + [50.0, 0.0, 3.0], 10 * y + 100


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_raw_columns_are_scaled_within_the_budget(epsilon, rng):
    """Unscaled, the model was far worse than a constant."""
    X, y = raw(2000, rng)
    privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
    model = skdp.DPLinearRegression(epsilon=epsilon, delta=0, privacy=privacy).fit(X, y)
    assert model.score(X, y) > 0.5  # 0.6 without noise
    assert model.privacy_.accountant == "pure"
    assert 0.999 * epsilon < model.privacy_.epsilon <= epsilon
    labels = (y > 100).astype(int)
    classifier = skdp.DPLogisticRegression(classes=[0, 1], delta=0, privacy=privacy)
    assert classifier.fit(X, labels).score(X, labels) > 0.7


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("n_rows", [30, 200])
@pytest.mark.parametrize("estimator", [skdp.DPRidge, skdp.DPPoissonRegressor])
def test_far_tails_of_noise_are_no_scale(estimator, n_rows, rng):
    """Noise gave 5 to 10 % of fits to unit columns a scale of up to 1e288."""
    X = rng.standard_normal((n_rows, 3))
    y = rng.poisson(np.exp(0.3 * X[:, 0])).astype(float)
    for seed in range(60):
        privacy = skdp.Privacy(noise=skdp.SeededNoise(seed))
        model = estimator(delta=0.0, privacy=privacy).fit(X, y)
        known = [one for one in (model.scaling_.columns, model.scaling_.targets) if one is not None]
        sizes = np.concatenate([(one.scale, 1 / one.scale, one.high - one.low) for one in known], 1)
        assert max(sizes.max(), np.abs(model.coef_).max(), abs(model.intercept_)) < 1e5


@pytest.mark.parametrize("unit", [1e-100, 1e-14, 1e-9, 1e9, 1e14, 1e100])
def test_units_are_found_by_laplace_counts(unit, rng):
    X, y = rng.standard_normal((2000, 2)), rng.standard_normal(2000)
    for seed in range(5):
        privacy = skdp.Privacy(noise=skdp.SeededNoise(seed))
        model = skdp.DPRidge(delta=0.0, privacy=privacy).fit(unit * X, unit * y)
        known = model.scaling_.columns, model.scaling_.targets
        sizes = np.concatenate([one.scale / unit for one in known])
        assert sizes.min() > 0.5
        assert sizes.max() < 2.5


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_shares_have_the_noise_that_they_promise(adjacency):
    """Of a plan of histograms next to a solver: the noise of a count, as a share of the rows."""
    privacy = skdp.Privacy(adjacency=str(adjacency))
    plan = skdp.DPRidge(delta=0, privacy=privacy).plan(4000, 3)
    spent = {}
    for release in plan.releases:
        cost = release.count * release.event.sensitivity(adjacency) / release.noise_multiplier
        spent[release.kind] = spent.get(release.kind, 0.0) + cost
    whole = sum(spent.values())
    assert whole == pytest.approx(1.0, rel=1e-3)
    share = (spent["magnitudes"] + spent["histograms"]) / whole
    assert share == pytest.approx(0.35, rel=0.02)
    features, _ = scaling_budget(Public(4000, 3, 1, adjacency, 1.0, 0.0), True, False, False)
    told = next(one for one in plan.releases if one.kind == "histograms")
    expected = 2**0.5 * told.noise_multiplier * 3 / 4000  # a record counts in three columns
    assert features.noise == pytest.approx(expected, rel=0.02)


def test_many_columns_of_few_rows_are_left_as_they_are(rng):
    plan = skdp.DPLogisticRegression(classes=[0, 1], delta=0).plan(300, 40)
    assert {release.kind for release in plan.releases} == {"gradient"}
    model = skdp.DPRidge(delta=0)
    with pytest.warns(skdp.NoiseWarning, match="does not standardise columns"):
        model.fit(rng.standard_normal((300, 40)), rng.standard_normal(300))


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("estimator", [skdp.DPRidge, skdp.DPLogisticRegression])
def test_its_fits_are_replayed(estimator, adjacency):
    model = estimator(
        delta=0, epsilon=4.0, scaling="private", privacy=skdp.Privacy(adjacency=str(adjacency))
    )
    report = skdp.audit.replay(model)
    assert report.ok, report
