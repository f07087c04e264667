"""Newton steps with Laplace noise, for few columns under pure privacy."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from benchmarks.methods.simple_regression import NoisyStats
from benchmarks.registry import Split
from skdp._oracle import GramSum
from skdp.accounting import Adjacency


def line(n_rows, seed):
    """Rows and targets in [0, 1], and the ends of the line of least squares at 1/4 and 3/4."""
    rng = np.random.default_rng(seed)
    x = rng.beta(2, 3, n_rows)
    y = np.clip(0.3 + 0.4 * x + 0.15 * rng.standard_normal(n_rows), 0, 1)
    return x, y, np.polyval(np.polyfit(x, y, 1), [0.25, 0.75])


def errors(n_rows, epsilon, solver):
    found = []
    for seed in range(20):
        x, y, ends = line(n_rows, seed)
        if solver is None:
            split = Split(x[:, None], x[:, None], y, y, False)
            guess = NoisyStats(split, epsilon, 0.0, seed).fit(x[:, None], y).ends
        else:
            model = skdp.DPLinearRegression(
                epsilon=epsilon,
                delta=0,
                solver=solver,
                scaling=skdp.PublicRange(0, 1, target=(0, 1)),
                privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
            ).fit(x[:, None], y)
            guess = model.predict([[0.25], [0.75]])
        found.append(np.abs(guess - ends).mean())
    return np.mean(found)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize(("n_rows", "epsilon"), [(30, 8.0), (100, 4.0), (1000, 1.0)])
def test_one_column_is_ahead_of_noisy_statistics_and_of_gradient_descent(n_rows, epsilon):
    ours = errors(n_rows, epsilon, "auto")
    assert ours < 0.9 * errors(n_rows, epsilon, "gd")
    assert ours < 0.9 * errors(n_rows, epsilon, None)


def test_the_default_takes_it_for_one_column_without_delta(rng):
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    for columns, delta, chosen in ((1, 0, "laplace_newton"), (2, 0, "gd"), (1, 1e-6, "whitened")):
        model = skdp.DPRidge(delta=delta, epsilon=4.0, scaling="none").fit(X[:, :columns], y)
        assert model.solver_.name == chosen
        assert model.privacy_.delta == delta


def test_orders_of_other_norms_are_refused():
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        GramSum(1.0, order=3)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_its_fits_are_replayed(adjacency):
    privacy = skdp.Privacy(adjacency=str(adjacency))
    model = skdp.DPRidge(delta=0, solver="laplace_newton", scaling="none", privacy=privacy)
    report = skdp.audit.replay(model)
    assert report.ok, report
