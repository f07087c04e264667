"""The posterior of a slope and a shift: closed forms, limits, and Hessians spoilt by noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from skdp._stages import calibration
from skdp._stages.calibration import (
    LEAST_CURVATURE,
    LEAST_SLOPE,
    MOST_SLOPE,
    GaussianPosterior,
)

PRIOR = GaussianPosterior.prior(np.array([0.8, 0.1]), np.array([0.35, 0.2]))
HESSIAN = np.array([[0.2, 0.05], [0.05, 0.15]])
MINIMUM = np.array([1.3, -0.4])


def seen(belief, at, std, hessian=HESSIAN, minimum=MINIMUM, noise=0.0):
    """The belief after the derivatives of a quadratic with this minimum."""
    at = np.asarray(at, dtype=float)
    return belief.after(at, hessian @ (at - minimum) + noise, hessian, std)


def test_the_prior_is_what_it_says():
    np.testing.assert_allclose(PRIOR.best, [0.8, 0.1])
    np.testing.assert_allclose(np.linalg.inv(PRIOR.precision), np.diag([0.35**2, 0.2**2]))


def test_one_dimension_is_the_closed_form():
    """A mean of prior and Newton's step, each weighted by its precision."""
    at, gradient, h, std = 0.7, -0.06, 0.3, 0.05
    prior = GaussianPosterior.prior(np.array([0.8]), np.array([0.35]))
    belief = prior.after(np.array([at]), np.array([gradient]), np.array([[h]]), std)
    precisions = 1 / 0.35**2, (h / std) ** 2
    means = 0.8, at - gradient / h
    expected = np.dot(precisions, means) / sum(precisions)
    assert belief.precision[0, 0] == pytest.approx(sum(precisions))
    assert belief.best[0] == pytest.approx(expected)


def test_the_belief_is_that_of_many_draws(rng):
    """Among draws of (minimum, gradient) those near a gradient have the posterior's moments."""
    std, at = 0.04, np.array([0.8, 0.1])
    minima = at + rng.standard_normal((400_000, 2)) * [0.35, 0.2]
    gradients = (at - minima) @ HESSIAN + std * rng.standard_normal(minima.shape)
    told = np.array([-0.03, 0.02])
    near = minima[np.linalg.norm(gradients - told, axis=1) < 0.01]
    belief = PRIOR.after(at, told, HESSIAN, std)
    np.testing.assert_allclose(belief.best, near.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(np.linalg.inv(belief.precision), np.cov(near.T), atol=0.005)


@pytest.mark.parametrize(("far", "limit"), [(-3.0, LEAST_SLOPE), (9.0, MOST_SLOPE)])
def test_the_slope_is_limited_and_the_shift_goes_with_it(far, limit):
    minimum = np.array([far, 0.5])
    belief = seen(PRIOR, [0.8, 0.1], 1e-4, minimum=minimum)
    found = belief.best
    assert found[0] == limit

    def value(shift):
        gap = np.array([limit, shift[0]]) - minimum
        return gap @ HESSIAN @ HESSIAN @ gap

    assert found[1] == pytest.approx(minimize(value, [0.0], tol=1e-12).x[0], abs=1e-3)
    alone = GaussianPosterior.prior(np.array([far]), np.array([0.1]))
    assert alone.best.tolist() == [limit]


@pytest.mark.parametrize(
    "hessian",
    [
        np.array([[-0.3, 0.0], [0.0, 0.1]]),
        np.array([[0.1, 0.4], [0.4, 0.1]]),
        np.zeros((2, 2)),
        -np.eye(2),
    ],
    ids=["negative", "saddle", "flat", "concave"],
)
def test_a_hessian_spoilt_by_noise_is_lifted(hessian):
    at, gradient = np.array([0.8, 0.1]), np.array([0.002, -0.003])
    belief = PRIOR.after(at, gradient, hessian, 0.05)
    added = np.linalg.eigvalsh(belief.precision - PRIOR.precision)
    assert added.min() >= (LEAST_CURVATURE / 0.05) ** 2 * (1 - 1e-9)
    # Downhill, whatever the Hessian says.
    assert gradient @ (belief.best - at) < 0


def test_a_flat_minimum_is_found_where_there_is_no_noise_to_speak_of(monkeypatch):
    """Small models have little curvature along themselves; a lift would hold them at the prior."""
    flat = 0.01 * HESSIAN
    belief = PRIOR
    for _ in range(2):
        belief = seen(belief, belief.best, 1e-5, hessian=flat)
    np.testing.assert_allclose(belief.best, MINIMUM, atol=1e-3)
    # Mutant: the same lift whatever the noise.
    monkeypatch.setattr(calibration, "LEAST_SEEN", np.inf)
    held = seen(PRIOR, PRIOR.best, 1e-5, hessian=flat).best
    assert np.linalg.norm(held - MINIMUM) > 0.3
