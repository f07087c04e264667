"""Empirical-Bayes steps: exact without noise, timid where there is none but noise."""

from __future__ import annotations

import numpy as np
import pytest

from skdp.solvers.core.shrinkage import bayes_step, spectrum


def gram_of(rng, n=500, p=6):
    X = rng.standard_normal((n, p)) * np.geomspace(1, 0.2, p)
    return X, X.T @ X


def noise_like(rng, p, std):
    upper = np.triu(rng.standard_normal((p, p)) * std / np.sqrt(2), 1)
    return upper + upper.T + np.diag(std * rng.standard_normal(p))


def test_without_noise_it_is_the_newton_step(rng):
    _, A = gram_of(rng)
    g = rng.standard_normal((6, 2))
    step = bayes_step(spectrum(A, 0.0), g, 0.0, 0.0)
    np.testing.assert_allclose(step, np.linalg.solve(A, g), rtol=1e-9)


def test_it_beats_the_plain_solution_where_noise_is_large(rng):
    better = 0
    for _ in range(20):
        _, A = gram_of(rng)
        truth = 0.3 * rng.standard_normal((6, 1))
        noisy, g = A + noise_like(rng, 6, 20.0), A @ truth + 20.0 * rng.standard_normal((6, 1))
        ours = bayes_step(spectrum(noisy, 20.0), g, 20.0, 20.0)
        plain = np.linalg.solve(noisy, g)
        error = [(v - truth)[:, 0] @ A @ (v - truth)[:, 0] for v in (ours, plain)]
        better += error[0] < error[1]
    assert better >= 15


@pytest.mark.parametrize("std", [0.0, 1.0, 1e6])
def test_eigenvalues_are_positive_whatever_comes(rng, std):
    for gram in (np.zeros((5, 5)), -np.eye(5), noise_like(rng, 5, max(std, 1.0))):
        found = spectrum(gram, std)
        assert (found.values > 0).all()
        assert np.isfinite(found.values).all()
