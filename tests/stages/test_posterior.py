"""The posterior mean of a slope and a shift: closed forms, and Hessians spoilt by noise."""

from __future__ import annotations

import numpy as np
import pytest

from skdp._stages import calibration
from skdp._stages.calibration import posterior_step

PRIOR_STD = np.array([0.35, 0.2])
HESSIAN = np.array([[0.2, 0.05], [0.05, 0.15]])


def test_one_dimension_is_the_closed_form():
    """A mean of prior and Newton's step, each weighted by its precision."""
    gradient, h, std = -0.06, 0.3, 0.05
    found = posterior_step(np.array([0.35]), np.array([gradient]), np.array([[h]]), std)
    precisions = 1 / 0.35**2, (h / std) ** 2
    assert found[0] == pytest.approx(precisions[1] * gradient / h / sum(precisions))


def test_it_is_the_mean_of_many_draws(rng):
    """Among draws of (minimum, gradient) those near a gradient have the posterior's mean."""
    std, told = 0.04, np.array([-0.03, 0.02])
    minima = rng.standard_normal((400_000, 2)) * PRIOR_STD  # around the point
    gradients = -minima @ HESSIAN + std * rng.standard_normal(minima.shape)
    near = minima[np.linalg.norm(gradients - told, axis=1) < 0.01]
    found = posterior_step(PRIOR_STD, told, HESSIAN, std)
    np.testing.assert_allclose(-found, near.mean(axis=0), atol=0.02)


@pytest.mark.parametrize("hessian", [np.diag([-0.3, 0.1]), np.zeros((2, 2)), -np.eye(2)])
def test_a_hessian_spoilt_by_noise_leads_downhill(hessian):
    gradient = np.array([0.002, -0.003])
    assert gradient @ posterior_step(PRIOR_STD, gradient, hessian, 0.05) > 0


def test_a_flat_minimum_is_found_where_there_is_hardly_any_noise(monkeypatch):
    """Small models have little curvature along themselves. A lift would keep them at the prior."""
    away = np.array([-0.5, 0.4])
    given = PRIOR_STD, 0.01 * HESSIAN @ away, 0.01 * HESSIAN, 1e-5
    np.testing.assert_allclose(posterior_step(*given), away, atol=1e-3)
    # Mutant: the same lift whatever the noise.
    monkeypatch.setattr(calibration, "LEAST_SEEN", np.inf)
    assert np.linalg.norm(posterior_step(*given) - away) > 0.3
