"""Quantile regression: solutions, coverage, several quantiles, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from replays import seeded

EXACT = pytest.mark.filterwarnings("ignore:.*adds no noise:skdp.PrivacyWarning")
QUANTILES = [0.1, 0.5, 0.9]


def draws(n_rows, noise=1.0, seed=0):
    """Rows, and targets whose spread depends on a column."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 5))
    spread = noise * np.exp(0.2 * X[:, 1])
    return X, 10 + X @ [1, -0.5, 0.3, 0, 0] + spread * rng.standard_normal(n_rows)


def test_the_share_below_is_the_quantile():
    X, y = draws(40_000)
    for quantile in QUANTILES:
        model = skdp.DPQuantileRegressor(quantile, privacy=seeded(0)).fit(X[:20_000], y[:20_000])
        below = np.mean(y[20_000:] <= model.predict(X[20_000:]))
        assert below == pytest.approx(quantile, abs=0.012)


@pytest.mark.parametrize("target", [None, (0, 60), (0, 2000)], ids=["estimated", "fitting", "wide"])
def test_high_quantiles_of_skewed_targets_are_right_in_any_declared_range(target):
    X, y = draws(20_000)
    y = np.exp(0.3 * (y - 10))
    scaling = skdp.PublicRange(-4, 4, target=target)
    for quantile in (0.9, 0.95):
        model = skdp.DPQuantileRegressor(quantile, epsilon=10, scaling=scaling, privacy=seeded(0))
        below = np.mean(y[10_000:] <= model.fit(X[:10_000], y[:10_000]).predict(X[10_000:]))
        assert below == pytest.approx(quantile, abs=0.012)


def test_several_quantiles_share_the_releases_and_do_not_cross():
    X, y = draws(40_000)
    given = {"solver": "whitened", "max_iter": 20, "privacy": seeded(0)}
    one = skdp.DPQuantileRegressor(0.5, **given).fit(X[:20_000], y[:20_000])
    several = skdp.DPQuantileRegressor(quantiles=[0.9, 0.1, 0.5], **given)
    several.fit(X[:20_000], y[:20_000])
    counts = [
        {part.kind: part.count for part in model.privacy_.releases} for model in (one, several)
    ]
    assert len({count["gradient"] for count in counts}) == 1, counts
    assert several.coef_.shape == (3, 5)
    high, low, middle = several.predict(30 * X).T
    assert (low <= middle).all()
    assert (middle <= high).all()
    below = (y[20_000:, None] <= several.predict(X[20_000:])).mean(axis=0)
    np.testing.assert_allclose(below, [0.9, 0.1, 0.5], atol=0.02)


@pytest.mark.parametrize(
    "given",
    [
        {"quantile": 0},
        {"quantile": "0.5"},
        {"quantile": [0.1, 0.9]},
        {"quantiles": []},
        {"quantiles": [0.5, 1.0]},
    ],
    ids=str,
)
def test_quantiles_out_of_range_are_refused(given):
    X, y = draws(50)
    model = skdp.DPQuantileRegressor(**given)
    for attempt in (lambda: model.fit(X, y), lambda: model.plan(500, 3)):
        with pytest.raises(ValueError, match=r"in \(0, 1\).*quantiles=\[|quantiles must be a list"):
            attempt()
    with pytest.raises(ValueError, match=r"1d array|one column"):
        skdp.DPQuantileRegressor().fit(X, np.c_[y, y])


def test_coefficients_are_named_by_quantile():
    model = skdp.DPQuantileRegressor(quantiles=QUANTILES, solver="gd", max_iter=2)
    table = model.fit(*draws(2000)).coefficients()
    assert [*table.columns[:3]] == [f"coefficient {quantile}" for quantile in QUANTILES]
