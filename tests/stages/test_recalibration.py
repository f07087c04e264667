"""Recalibration as a stage: what it minimises, and its share of the budget."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import skdp
from replays import solvers_for
from skdp._oracle import Oracle, Public, Solution, noise_source
from skdp._oracle.oracle import AdmitAll, Ledger
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.memory import MemorySource
from skdp._stages.calibration import (
    SHARE,
    SHIFT_STD,
    SLOPE_STD,
    CalibrationPrior,
    Recalibration,
)
from skdp.accounting import Adjacency, gaussian_mu
from skdp.objective import ElasticNet, Logistic, Multinomial, Problem
from skdp.solvers import get_solver

WIDE = CalibrationPrior(np.array([1.0, 0.0]), np.array([30.0, 30.0]), clip_norm=1e4)
USUAL = CalibrationPrior(np.array([0.9, 0.0]), np.array([SLOPE_STD, SHIFT_STD]), clip_norm=5.0)
N, D = 400, 3


def recalibrated(oracle, coef, expected=WIDE):
    """What the stage makes of this parameter."""
    return Recalibration(expected).run(oracle, Solution(coef, 1)).coef


def setting(loss, strength, fit_intercept, rng, certainty=1.0):
    """Rows with weights, an oracle of them with next to no noise, and a model that is off."""
    outputs = loss.n_outputs
    X, truth = rng.standard_normal((N, D)), rng.standard_normal((D, outputs))
    margins = certainty * (X @ truth + 0.3)
    y = (rng.random((N, 1)) < 1 / (1 + np.exp(-margins))).astype(float)
    if outputs > 1:
        y = np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)
    weights = rng.uniform(0.2, 2.0, N)
    penalty = ElasticNet(strength) if strength else ElasticNet()
    problem = Problem(loss, penalty, fit_intercept=fit_intercept)
    public = Public(
        N, D, outputs, Adjacency.ZERO_OUT, 1.0, 1e-6, has_intercept=fit_intercept, weighted=True
    )
    size = public.intercept_size * fit_intercept
    rows = MemorySource.of(X, y, weights, None, size)
    context, ledger = PublicContext(public, problem, 1e-7), Ledger(AdmitAll())
    oracle = Oracle(context, ledger, np.random.default_rng(0), rows, noise_source(0))
    coef = 0.7 * truth + 0.1 * rng.standard_normal(truth.shape)
    if fit_intercept:
        coef = np.vstack([coef, np.full((1, outputs), 0.1)])
    Z = np.column_stack([X, np.full(N, size)]) if fit_intercept else X

    def objective(w):
        m = Z @ w
        values = (
            logsumexp(m, axis=1) - m[np.arange(N), y]
            if outputs > 1
            else (np.logaddexp(0, m[:, 0]) - y[:, 0] * m[:, 0])
        )
        return np.mean(weights * values) + problem.penalty.value(w[:-1] if fit_intercept else w)

    return oracle, coef, objective, size


def along_the_ray(coef, objective, size, with_shift):
    """The best slope and shift by scipy, from values of the objective alone."""

    def at(v):
        moved = v[0] * coef
        if with_shift:
            moved[-1] += v[1] / size
        return moved

    found = minimize(lambda v: objective(at(v)), [1.0, 0.0][: 1 + with_shift], tol=1e-10)
    return found.x, at(found.x)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(3)], ids=repr)
class TestMinimum:
    """Without noise a fit ends at the minimum along the ray, the penalty included."""

    def found(self, loss, strength, fit_intercept, rng):
        oracle, coef, objective, size = setting(loss, strength, fit_intercept, rng)
        with_shift = fit_intercept and loss.n_outputs == 1
        # Near enough for one of Newton's steps.
        coef *= along_the_ray(coef, objective, size, with_shift)[0][0] / 1.1
        best, point = along_the_ray(coef, objective, size, with_shift)
        assert best[0] == pytest.approx(1.1, abs=1e-3)
        return recalibrated(oracle, coef.copy()), point, coef

    @pytest.mark.parametrize("strength", [0.0, 0.2, 0.5])
    def test_it_is_found(self, loss, strength, fit_intercept, rng):
        found, point, coef = self.found(loss, strength, fit_intercept, rng)
        assert found.shape == coef.shape
        np.testing.assert_allclose(found, point, atol=0.02 * np.abs(coef).max())

    @pytest.mark.parametrize("strength", [0.2, 0.5])
    def test_a_forgotten_penalty_is_caught(self, loss, strength, fit_intercept, rng, monkeypatch):
        monkeypatch.setattr(Problem, "penalty_gradient", lambda self, w: np.zeros_like(w))
        found, point, coef = self.found(loss, strength, fit_intercept, rng)
        assert np.abs(found - point).max() > 0.2 * np.abs(coef).max()


def test_a_slope_grows_far_where_classes_are_apart(rng):
    oracle, coef, objective, size = setting(Logistic(), 0.0, True, rng, certainty=4.0)
    coef *= along_the_ray(coef, objective, size, True)[0][0] / 1.9
    best, _ = along_the_ray(coef, objective, size, True)
    found = recalibrated(oracle, coef.copy())
    assert best[0] == pytest.approx(1.9, abs=1e-3)
    assert found[0, 0] / coef[0, 0] > 1.7  # Newton's own steps: 1.48 to 1.62


def test_a_slope_that_is_too_large_is_at_most_halved(rng):
    """Rare rows on the wrong side are far from the margins where the loss curves."""
    oracle, coef, objective, _ = setting(Multinomial(3), 0.0, False, rng, certainty=3.0)
    coef = 30.0 * coef
    moved = recalibrated(oracle, coef)
    assert np.linalg.norm(moved) == pytest.approx(np.linalg.norm(coef) / 2, rel=1e-3)
    assert objective(moved) < objective(coef)


def test_noise_leaves_what_is_expected(rng):
    oracle, coef, _, size = setting(Logistic(), 0.1, True, rng)
    oracle.set_noise_unit(1e9)
    found = recalibrated(oracle, coef, USUAL)
    ratios = found[:-1] / coef[:-1]
    np.testing.assert_allclose(ratios, ratios[0, 0])
    assert ratios[0, 0] == pytest.approx(0.9, abs=0.35)
    assert size * (found - ratios[0, 0] * coef)[-1, 0] == pytest.approx(0, abs=0.3)


# ---------------------------------------------------------------------- shares


def public_for(n_rows=1000, **facts):
    facts = {"adjacency": Adjacency.ZERO_OUT, "epsilon": 1.0, "delta": 1e-6, **facts}
    return Public(n_rows, 10, 1, **facts)


BOUNDS = skdp.PublicRange(-4.0, 4.0)  # whose fits have no releases for scaling


def squared_mu(record, adjacency):
    """What a line of the statement costs, from its noise multiplier."""
    return record.count * (record.event.sensitivity(adjacency) / record.noise_multiplier) ** 2


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("scaling", [BOUNDS, "private"])
@pytest.mark.parametrize(("n_rows", "epsilon"), [(2000, 0.3), (2000, 1.0), (10**6, 3.0)])
def test_shares_add_up_in_mu_squared(n_rows, epsilon, scaling, adjacency):
    model = skdp.DPLogisticRegression(
        epsilon=epsilon,
        scaling=scaling,
        privacy=skdp.Privacy(adjacency=str(adjacency)),
    )
    statement = model.plan(n_rows, 10)
    spent: dict[str, float] = {}
    for record in statement.releases:
        spent[record.kind] = spent.get(record.kind, 0.0) + squared_mu(record, adjacency)
    whole = gaussian_mu(epsilon, 1e-6) ** 2
    assert sum(spent.values()) == pytest.approx(whole, rel=1e-6)
    left = 1 - sum(spent.get(kind, 0.0) for kind in ("magnitudes", "histograms")) / whole
    assert (left < 1) == (scaling == "private")
    assert spent["calibration"] / whole == pytest.approx(left * SHARE, rel=1e-6)
    last = statement.releases[-1]
    assert (last.kind, last.count) == ("calibration", 1)
    sensitivity = 1.0 if adjacency is Adjacency.ZERO_OUT else 2.0
    by_hand = sensitivity / math.sqrt(left * SHARE * whole)
    assert last.noise_multiplier == pytest.approx(by_hand, rel=1e-6)


# Those that plan their noise beforehand.
SOLVERS = [
    name
    for name in solvers_for(Problem(Logistic(), ElasticNet(0.1)))
    if not get_solver(name).adaptive
]


@pytest.mark.parametrize(
    ("solver", "adjacency"),
    [(solver, list(Adjacency)[place % 2]) for place, solver in enumerate(SOLVERS)],
)
def test_it_gets_its_share_whatever_the_solver(solver, adjacency):
    asked = {"solver": solver, "privacy": skdp.Privacy(adjacency=str(adjacency)), "scaling": BOUNDS}
    statement = skdp.DPLogisticRegression(**asked).plan(2000, 10)
    assert statement.epsilon == pytest.approx(1.0, rel=1e-3)
    assert statement.epsilon <= 1.0
    last = statement.releases[-1]
    assert (last.kind, last.count) == ("calibration", 1)
    if statement.accountant == "gdp":
        share = squared_mu(last, adjacency) / gaussian_mu(1.0, 1e-6) ** 2
        assert share == pytest.approx(SHARE, rel=1e-6)
