"""Rivals do what their papers say: calibrated noise, and without noise the non-private answer."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks import rivals
from benchmarks.methods import adassp, amp, boosted_adassp, dp_gd, output_perturbation, tukey_em
from benchmarks.methods import objective_perturbation as perturbation
from skdp.accounting import gaussian_delta, gaussian_mu

ENOUGH = 1e6


@pytest.fixture(scope="module")
def line():
    """Rows within all bounds, and targets that depend on them linearly."""
    rng = np.random.default_rng(0)
    X = np.clip(rng.standard_normal((4000, 3)), -0.9, 0.9)
    return X, X @ [0.5, -0.3, 0.2] + 0.1 + 0.1 * rng.standard_normal(4000)


@pytest.fixture(scope="module")
def labels(line):
    X, _ = line
    chances = 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1]))
    return X, (np.random.default_rng(1).random(len(X)) < chances).astype(int)


# ------------------------------------------------------------------ what all of them share


def test_rows_are_no_longer_than_their_bound():
    X = np.array([[1e100, 0.0], [0.0, 0.0], [0.1, 0.2], [-30.0, 40.0]])
    rows = rivals.Rival(1.0, 1e-6, 0).rows(X)
    assert np.all(np.linalg.norm(rows, axis=1) <= np.sqrt(3) * (1 + 1e-12))
    assert_allclose(rows[2], [0.1, 0.2, 1.0])


def test_symmetric_noise_has_unit_variance_everywhere():
    rng = np.random.default_rng(0)
    draws = np.array([rivals.symmetric_noise(3, rng) for _ in range(5000)])
    assert_allclose(draws, draws.transpose(0, 2, 1))
    assert_allclose(draws.std(axis=0), 1.0, rtol=0.05)


def test_the_minimum_is_that_of_scikit_learn(labels):
    X, y = labels
    w = rivals.minimise_logistic(X, y.astype(float), 2.0, np.zeros(3), 1e-9)
    twin = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12).fit(X, y)
    assert_allclose(w, twin.coef_[0], rtol=1e-5)


def test_a_tilt_moves_the_minimum_as_it_should(labels):
    X, y = labels
    tilt = np.array([3.0, -2.0, 1.0])
    w = rivals.minimise_logistic(X, y.astype(float), 1.0, tilt, 1e-9)
    gradient = X.T @ (1 / (1 + np.exp(-X @ w)) - y) + w
    assert_allclose(gradient, -tilt, atol=1e-8)


# ------------------------------------------------------------------ AdaSSP and its boosted form


@pytest.mark.parametrize("method", [adassp.AdaSSP, boosted_adassp.BoostedAdaSSP])
def test_releases_share_the_budget(method):
    """Each release is 1/sigma-GDP, so n of them with sigma = sqrt(n) / mu are mu-GDP."""
    model = method(1.0, 1e-6, 0)
    sigma = np.sqrt(model.n_releases) / model.mu
    spent = np.sqrt(model.n_releases / sigma**2)
    assert gaussian_delta(spent, 1.0) == pytest.approx(1e-6, rel=1e-6)
    assert boosted_adassp.BoostedAdaSSP.n_releases == boosted_adassp.ROUNDS + 2


def test_the_product_gets_its_noise():
    model = adassp.AdaSSP(1.0, 1e-6, 0)
    Z = model.rows(np.zeros((5, 3)))
    draws = np.array([model.noisy_product(Z, np.zeros(5), 3.0, 0.7) for _ in range(10000)])
    assert_allclose(draws.std(axis=0), 3.0 * 2.0 * 0.7, rtol=0.03)


def test_the_gram_matrix_gets_its_noise():
    model = adassp.AdaSSP(1.0, 1e-6, 0)
    Z = model.rows(np.zeros((5, 3)))
    draws = np.array([model.noisy_gram(Z, 0.7) for _ in range(3000)])
    assert_allclose(draws[:, 0, 1].std(), 4.0 * 0.7, rtol=0.06)
    assert np.linalg.eigvalsh(draws).min(axis=1).mean() > 0  # what the ridge is for


@pytest.mark.parametrize("method", [adassp.AdaSSP, boosted_adassp.BoostedAdaSSP])
def test_without_noise_it_is_least_squares(line, method):
    X, y = line
    twin = LinearRegression().fit(X, y)
    model = method(ENOUGH, 1e-6, 0).fit(X, y)
    assert_allclose(model.coef, [*twin.coef_, twin.intercept_], atol=5e-3)


# ------------------------------------------------------------------ objective perturbation, AMP


@pytest.mark.parametrize(
    ("epsilon", "sigma", "ridge", "L", "beta"),
    [(1.0, 4.0, 50.0, 1.0, 0.25), (0.1, 30.0, 400.0, 3.0, 2.25), (0.5, 1.0, 3.0, 1.0, 0.25),
     (0.05, 2.0, 4.0, 1.5, 0.5)],
)  # fmt: skip
def test_the_tight_bound_is_the_integral_it_stands_for(epsilon, sigma, ridge, L, beta):
    """The loss is at most |ln(1 - beta / ridge)| + s^2 / 2 + |G|, G ~ N(0, s^2), s = L / sigma."""
    rest = epsilon - abs(np.log(1 - beta / ridge)) - L**2 / (2 * sigma**2)
    spread = L / sigma

    def lost(g):
        return max(0.0, 1 - np.exp(rest - g)) * 2 * norm.pdf(g, scale=spread)

    start = max(rest, 0.0)
    expected, _ = quad(lost, start, start + 12 * spread, epsabs=1e-14, epsrel=1e-11)
    assert perturbation.delta_of(epsilon, sigma, ridge, L, beta) == pytest.approx(
        expected, rel=1e-7
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_noise_and_ridge_cost_the_budget(epsilon):
    sigma, ridge = perturbation.calibrated(epsilon, 1e-6, 3.0, 2.25)
    assert 0.99e-6 < perturbation.delta_of(epsilon, sigma, ridge, 3.0, 2.25) <= 1e-6
    assert perturbation.delta_of(epsilon, 0.98 * sigma, ridge, 3.0, 2.25) > 1e-6
    assert perturbation.delta_of(epsilon, sigma, 0.9 * ridge, 3.0, 2.25) > 1e-6
    assert sigma > 3.0 / gaussian_mu(epsilon, 1e-6)


def test_amp_splits_epsilon():
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        noise, curvature, output = amp.split_budget(epsilon)
        assert noise + curvature + output == pytest.approx(epsilon)
        assert min(noise, curvature, output) > 0
        assert curvature < 1  # a condition of the theorem


def test_output_perturbation_adds_noise_to_the_ridge_minimum(labels, monkeypatch):
    """Its noise is the row bound over the ridge, for a Gaussian release of the whole budget."""
    X, y = labels
    monkeypatch.setattr(output_perturbation, "RIDGE", 5 / len(X))
    model = output_perturbation.OutputPerturbation(ENOUGH, 1e-6, 0)
    twin = LogisticRegression(C=1 / 5, fit_intercept=False, tol=1e-12)
    twin.fit(np.column_stack([X, np.ones(len(X))]), y)
    assert_allclose(model.fit(X, y).coef.ravel(), twin.coef_[0], atol=5e-3)
    coefs = [output_perturbation.OutputPerturbation(1.0, 1e-6, k).fit(X[:99], y[:99]).coef.ravel()
             for k in range(300)]  # fmt: skip
    size = 2 / (99 * 5 / len(X)) / gaussian_mu(1.0, 1e-6)
    assert_allclose(np.std(coefs, axis=0), size, rtol=0.15)


@pytest.mark.parametrize("method", [amp.AMP, perturbation.ObjectivePerturbation])
def test_with_a_large_budget_it_is_logistic_regression(labels, method):
    X, y = labels
    twin = LogisticRegression(C=1e9, tol=1e-10).fit(X, y)
    model = method(300.0, 1e-6, 0).fit(X, y)
    assert_allclose(model.predict_proba(X), twin.predict_proba(X), atol=0.03)


def test_classes_share_the_budget(labels):
    X, y = labels
    asked = []

    class Spy(rivals.ClassificationRival):
        def weights(self, Z, y, epsilon, delta):
            asked.append((epsilon, delta))
            return np.zeros(Z.shape[1])

    chances = Spy(1.0, 1e-6, 0).fit(X, y + (X[:, 0] > 0.5)).predict_proba(X)
    assert asked == [(1 / 3, 1e-6 / 3)] * 3
    assert_allclose(chances, 1 / 3)


# ------------------------------------------------------------------ DP-GD and TukeyEM


def test_gradient_descent_without_noise(line, labels):
    X, y = line
    model = dp_gd.GradientDescent(ENOUGH, 1e-6, 0, False).fit(X, y)
    assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), atol=0.02)
    X, y = labels
    twin = LogisticRegression(C=1e9).fit(X, y)
    model = dp_gd.GradientDescent(ENOUGH, 1e-6, 0, True).fit(X, y)
    assert_allclose(model.predict_proba(X), twin.predict_proba(X), atol=0.05)


def test_gradient_descent_gets_its_noise():
    """With rows that pull nowhere, the first step of a one-step run is noise alone."""
    X, y = np.zeros((400, 3)), np.zeros(400)
    steps, width = dp_gd.STEPS[False], np.sqrt(4)
    model = dp_gd.GradientDescent(1.0, 1e-6, 0, False)
    model.mu = gaussian_mu(1.0, 1e-6)
    noise = np.random.default_rng([0, 77]).standard_normal((4, 1))
    first = -noise * 0.7 * width * np.sqrt(steps) / model.mu * (2.0 / 4) / 400
    dp_gd.STEPS, kept = {False: 1, True: 1}, dp_gd.STEPS
    try:
        model.fit(X, y)
    finally:
        dp_gd.STEPS = kept
    assert_allclose(model.coef, first / np.sqrt(steps))


def test_tukey_needs_no_bounds(line):
    X, y = line
    X, y = 1e3 * X, 1e4 * y
    model = tukey_em.TukeyEM(10.0, 1e-6, 0, False).fit(X, y)
    twin = LinearRegression().fit(X, y)
    assert_allclose(model.predict(X), twin.predict(X), atol=0.02 * np.ptp(y))


def test_tukey_gives_up_where_the_budget_is_small(line):
    assert not tukey_em.TukeyEM(0.1, 1e-6, 0, False).fit(*line).coef.any()


@pytest.mark.parametrize("depth", [1, 3, 7])
def test_a_drawn_point_has_the_depth_that_was_asked_for(depth):
    rng = np.random.default_rng(0)
    ordered = np.sort(rng.standard_normal((3, 21)), axis=1)
    for _ in range(200):
        point = tukey_em.draw_at_depth(ordered, depth, rng)
        below = [np.searchsorted(row, value) for row, value in zip(ordered, point, strict=True)]
        assert min(min(k, 21 - k) for k in below) == depth


def test_volumes_fall_with_depth():
    ordered = np.sort(np.random.default_rng(0).standard_normal((2, 30)), axis=1)
    volumes = tukey_em.log_volumes(ordered)
    assert len(volumes) == 15
    assert np.all(np.diff(volumes) < 0)
    assert volumes[0] == pytest.approx(np.log(np.prod(np.ptp(ordered, axis=1))))


def test_distance_to_unsafety_grows_with_the_budget():
    rng = np.random.default_rng(0)
    ordered = np.sort(rng.standard_normal((2, 400)), axis=1)
    volumes = tukey_em.log_volumes(ordered)
    distances = [tukey_em.distance_to_unsafety(volumes, e, 1e-6, 100) for e in (0.1, 1.0, 10.0)]
    assert distances == sorted(distances)
    assert distances[0] < distances[-1] <= 98
