"""Columns that do not determine their coefficients: constants, duplicates, all labels."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import skdp
from replays import seeded

N = 20_000
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
T = X @ [2.0, -1.0, 0.5] + RNG.standard_normal(N)
CONSTANTS = np.c_[X, np.ones(N), np.full(N, 1e6), np.full(N, -12.34)]
LABELS = np.eye(3)[RNG.integers(0, 3, N)]
MODELS = {
    "DPLinearRegression": (T, {}),
    "DPRidge": (T, {"alpha": 0.0}),
    "DPLasso": (T, {"alpha": 0.01}),
    "DPElasticNet": (T, {"alpha": 0.01}),
    "DPQuantileRegressor": (T, {}),
    "DPHuberRegressor": (T, {}),
    "DPPoissonRegressor": (np.exp(T / 3).round(), {}),
    "DPGammaRegressor": (np.exp(T / 3), {}),
    "DPLogisticRegression": ((T > 0) + 0, {"classes": [0, 1], "C": 1e6}),
    "DPLinearSVC": ((T > 0) + 0, {"classes": [0, 1]}),
}

OF_GD = {"DPLasso", "DPElasticNet", "DPHuberRegressor"}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("epsilon", [1.0, np.inf])
@pytest.mark.parametrize("name", MODELS)
def test_constant_columns_have_coefficient_0(name, epsilon):
    y, parameters = MODELS[name]
    model = getattr(skdp, name)(epsilon=epsilon, privacy=seeded(1), **parameters)
    model.fit(CONSTANTS, y)
    assert (np.atleast_2d(model.coef_)[:, 3:] == 0).all()
    assert np.abs(model.coef_).max() > 0.1
    other = CONSTANTS[:5] + np.array([0.0, 0.0, 0.0, 1e9, -1e9, 1e9])
    np.testing.assert_allclose(model.predict(other), model.predict(CONSTANTS[:5]))
    np.testing.assert_allclose(model.to_sklearn().coef_.ravel(), np.ravel(model.coef_), rtol=1e-12)


@pytest.mark.parametrize("n_rows", [2000, N])
@pytest.mark.parametrize("name", sorted(set(MODELS) - OF_GD))
def test_the_default_solver_gives_columns_without_visible_variance_coefficient_0(name, n_rows):
    """Zeros, of which counts cannot tell that no rare value is among them, and other constants."""
    y, parameters = MODELS[name]
    y = y[:n_rows]
    columns = np.c_[X[:n_rows], np.zeros(n_rows), np.full(n_rows, 7.0)]
    model = getattr(skdp, name)(privacy=seeded(2), **parameters).fit(columns, y)
    assert model.solver_.name == "whitened"  # no other solver releases variances
    assert (np.atleast_2d(model.coef_)[:, 3:] == 0).all()
    assert (np.atleast_2d(model.coef_)[:, :3] != 0).any()


def test_rare_labels_keep_coefficients(rng):
    """Their variance is visible in their own unit, though counts hardly show them."""
    labels = (rng.random((N, 5)) < 0.01).astype(float)
    y = T + labels @ np.full(5, 8.0)
    model = skdp.DPRidge(epsilon=3.0, privacy=seeded(0)).fit(np.c_[X, labels], y)
    np.testing.assert_allclose(model.coef_[3:], 8.0, rtol=0.4)


def test_so_they_have_with_other_kinds_of_rows():
    three = (T > -1).astype(int) + (T > 1)
    logistic = skdp.DPLogisticRegression(classes=[0, 1, 2], privacy=seeded(1))
    assert (logistic.fit(CONSTANTS, three).coef_[:, 3:] == 0).all()
    groups = np.repeat(np.arange(N // 2), 2)
    ridge = skdp.DPRidge(privacy=seeded(1))
    assert (ridge.fit(sparse.csr_array(CONSTANTS), T).coef_[3:] == 0).all()
    ridge.set_params(epsilon=5.0)  # there are half as many groups
    assert (ridge.fit(CONSTANTS, T, groups=groups).coef_[3:] == 0).all()
    blocks = zip(np.array_split(CONSTANTS, 9), np.array_split(T, 9), strict=True)
    ridge.set_params(epsilon=20.0).fit_blocks(blocks, n_samples=N, n_features=6)
    assert (ridge.coef_[3:] == 0).all()


def test_columns_absorbed_by_fixed_effects_are_0():
    groups = np.repeat(np.arange(N // 10), 10)
    Z = np.c_[X, groups % 2]
    for seed in range(3):
        model = skdp.DPLinearRegression(fixed_effects=True, privacy=seeded(seed))
        coef = model.fit(Z, T, groups=groups).coef_
        np.testing.assert_allclose(coef[:3], [2.0, -1.0, 0.5], atol=0.2)
        assert coef[3] == 0


def test_inference_tells_collinear_columns_from_noise():
    frame = pd.DataFrame(np.c_[X, LABELS], columns=["x", "y", "z", "a", "b", "c"])
    y = T + LABELS @ [0.0, 1.0, 2.0]
    model = skdp.DPLinearRegression(inference="coefficients", epsilon=5.0, privacy=seeded(1))
    assert "all labels of a category" in model.plan(N, 6).expectations[0]
    assert "Events that occur in few rows" in model.plan(N, 6).expectations[0]
    with pytest.warns(skdp.NoiseWarning, match="columns 'a', 'b', 'c' are not determined"):
        model.fit(frame, y)
    assert "No budget determines the coefficients" in str(model.summary())
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.NoiseWarning)
        model.fit(frame.drop(columns="a"), y)
    assert model.determined_.all()


@pytest.mark.parametrize("n_rows", [2000, 5000])
def test_constants_whose_counts_are_noisy_have_no_huge_coefficient(n_rows):
    constants = np.tile([5.0, 1e6], (n_rows, 1))
    for seed in range(3):  # up to 1e9 where noise was divided by the width of a point
        model = skdp.DPRidge(privacy=seeded(seed)).fit(np.c_[X[:n_rows], constants], T[:n_rows])
        assert np.abs(model.coef_[3:] * [5.0, 1e6]).max() < 4 * T.std()
