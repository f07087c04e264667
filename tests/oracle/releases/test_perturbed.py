"""The minimum of a perturbed objective: found, as near as promised, on any record."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import skdp
from skdp.objective import Logistic
from skdp.oracle import (
    GaussianNoise,
    NoisyMinimum,
    PerturbedMinimum,
    PublicContext,
    noise_source,
)
from skdp.oracle.kernels import second_moments as moments
from skdp.oracle.sources.memory import MemorySource
from weighted_records import POINT, context_for, data_for, records, rows_of


@pytest.fixture
def data(rng):
    return data_for(rng)


def plain_minimum(X, y, b, row_norm, damping, n_rows):
    Z, _ = records(X, np.ones(len(X)))
    f = np.minimum(1, row_norm / np.linalg.norm(Z, axis=1)) ** 2

    def objective(w):
        m = Z @ w
        value = np.sum(f * (np.logaddexp(0, m) - y * m)) + b @ w
        value += damping / 2 * w @ w + n_rows * 0.01 / 2 * w[:3] @ w[:3]
        gradient = Z.T @ (f * (1 / (1 + np.exp(-m)) - y)) + b + damping * w
        gradient[:3] += n_rows * 0.01 * w[:3]
        return value, gradient

    return minimize(objective, np.zeros(4), jac=True, tol=1e-14).x


def test_the_minimum_is_found(data):
    X, y, _ = data
    context = context_for(Logistic(), 70, scale=2.0)
    release = PerturbedMinimum(2.0, 3.0)
    b = release._perturbation(context, noise_source(0))
    found = release._minimum(rows_of(X, y), context, b)
    expected = plain_minimum(X, y, b[:, 0], 2.0, 3.0, 70)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


def in_long_precision(rows, context, release, b, point):
    """Gradient and Hessian of the objective in numpy's long doubles."""
    X, y = (part.astype(np.longdouble) for part in (rows.records.X, rows.records.targets))
    constant = np.full((len(X), 1), rows.records.constant)
    Z = np.hstack([rows.records.shrink[:, None] * X, constant])
    f = moments.gentle_factors(rows.records, release.row_norm).astype(np.longdouble)[:, None]
    lifted = np.full((4, 1), release.damping + context.problem.strong_convexity * len(X))
    lifted[-1] = release.damping
    p = 1 / (1 + np.exp(-Z @ point))
    return Z.T @ (f**2 * (p - y)) + lifted * point + b, Z.T @ (f**2 * p * (1 - p) * Z), lifted


def exact_minimum(rows, context, release, b, point):
    """Newton's method in long doubles, steps by float64; from a point that is near already."""
    point = point.astype(np.longdouble)
    for _ in range(30):
        gradient, hessian, lifted = in_long_precision(rows, context, release, b, point)
        hessian = hessian.astype(float) + np.diag(lifted[:, 0])
        point = point - np.linalg.solve(hessian, gradient.astype(float))
    return point


def test_the_minimum_is_as_near_as_its_noise_assumes(data):
    """What is released, before noise, lies within the promised distance of the minimiser."""
    X, y, _ = data
    context = context_for(Logistic(), 70, scale=2.0)
    release = PerturbedMinimum(2.0, 3.0)
    rows = rows_of(1e3 * X, y)
    distances = release._distances(context)
    assert len(distances) > 1
    for seed in range(5):
        b = release._perturbation(context, noise_source(seed))
        assert np.linalg.norm(b) <= release._longest(context) * (1 + 1e-12)
        found = release._minimum(rows, context, b)
        exact = exact_minimum(rows, context, release, b, found)
        assert np.linalg.norm((found - exact).astype(float)) <= distances[-1]
        assert np.linalg.norm(found) <= release._farthest(context)


def a_step_from_afar(rows, context, release, b, start):
    """Where the release goes on from ``start``, if a search ended there."""
    gradient = release._gradient(rows, context, b, start)
    _, _, lifted = in_long_precision(rows, context, release, b, start)
    arguments = context.problem.loss, start, release.row_norm, True
    hessian = rows.total(moments.bounded_hessian, *arguments) + np.diag(lifted[:, 0])
    return start - np.linalg.solve(hessian, gradient)


@pytest.mark.parametrize("distance", [1e-6, 1e-4, 1e-2, 5e-2])
@pytest.mark.parametrize("kind", ["plain", "alike", "long", "null"])
def test_a_step_comes_as_near_as_is_promised(kind, distance, data, rng):
    """From any point within a distance of the minimum, on rows made to bend the loss most."""
    X, y, _ = data
    X = {"plain": X, "alike": np.tile(X[:1], (70, 1)), "long": 1e3 * X, "null": 0 * X}[kind]
    context, release = context_for(Logistic(), 70, scale=2.0), PerturbedMinimum(2.0, 1.1)
    rows, worst = rows_of(X, y), 0.0
    promised = release._nearer(context, distance)
    for seed in range(5):
        b = release._perturbation(context, noise_source(seed))
        exact = exact_minimum(rows, context, release, b, release._minimum(rows, context, b))
        for _ in range(10):
            away = rng.standard_normal((4, 1))
            start = (exact + distance * away / np.linalg.norm(away)).astype(float)
            reached = a_step_from_afar(rows, context, release, b, start)
            missed = np.linalg.norm((reached - exact).astype(float))
            worst = max(worst, missed)
            assert missed <= promised
    if kind == "plain" and distance > 1e-5:
        # Most of it is the change of the Hessian on the way: without that it would be too little.
        assert worst > release._nearer(context, 1e-9)


def test_errors_of_margins_are_multiplied_by_so_much_and_no_more(rng):
    """``|H^-1 A'M x|`` on the worst rows, all alike and as long as the damping calls for."""
    context, n_rows, damping, curvature = context_for(Logistic(), 70, scale=2.0), 70, 3.0, 0.25
    gain = PerturbedMinimum(2.0, damping)._gain(context)
    for length in (*np.geomspace(0.01, 10, 30), math.sqrt(damping / (n_rows * curvature))):
        A = np.zeros((n_rows, 4))
        A[:, 0] = length
        hessian = curvature * A.T @ A + damping * np.eye(4)
        moved = np.linalg.norm(np.linalg.solve(hessian, curvature * A.T @ np.ones(n_rows)))
        assert moved <= gain * (1 + 1e-12)
    assert moved == pytest.approx(gain)


def test_no_rounding_of_b_is_longer_than_is_paid_for():
    context, release = context_for(Logistic(), 70, scale=2.0), PerturbedMinimum(2.0, 3.0)
    corner = np.full(context.public.n_parameters, release._grid(context) / 2)
    assert release._half_grid(context) >= np.linalg.norm(corner) * (1 - 1e-12)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_the_minimum_is_no_farther_than_promised_whatever_the_weights(has_intercept):
    size = 2.5 * has_intercept  # the constant of these public facts
    X, y = np.full((5000, 3), 1e-6), np.ones((5000, 1))
    release = PerturbedMinimum(20.0, 520.0)
    context = context_for(
        Logistic(), 5000, scale=1.0, weighted=True, has_intercept=has_intercept, row_bound=20.0
    )
    for weight in (1.0, 1e3, 1e12):
        rows = MemorySource.of(X, y, np.full(5000, weight), 20.0, size)
        found = release._minimum(rows, context, release._perturbation(context, noise_source(0)))
        assert np.linalg.norm(found) <= release._farthest(context)


LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("row", [[LARGEST, 0, 0], [LARGEST, -LARGEST, 0], [1e150, 1e150, 1.0]])
def test_no_row_breaks_the_gradient_of_a_perturbed_objective(row, data):
    """It is one and the same function's, where products with the row overflow and elsewhere."""
    X, y, _ = data
    X[0], y[0] = row, 0.0
    release, context, rows = PerturbedMinimum(4.0, 6.0), context_for(Logistic(), 70), rows_of(X, y)
    Z, _ = records(X[1:], np.ones(69))
    f = moments.gentle_factors(rows.records, 4.0)[1:, None]
    for length in (0.1, 0.9, 1.1, 3.0):
        point = length * np.array([[1.0], [0.8], [0.1], [0.3]])
        found = rows.total(moments.accurate_gradients, Logistic(), point, 4.0)
        plain = Z.T @ (f**2 * (1 / (1 + np.exp(-Z @ point)) - y[1:, None]))
        assert np.linalg.norm(found - plain) <= release._rounding(context, 5.0)


def test_the_search_ends_where_a_product_overflows():
    """Coefficients near 1 would make the margin of the first row come and go."""
    X, y = np.full((8, 3), [2.0, 0, 0]), np.array([0.0, 1, 1, 1, 1, 0, 0, 0])
    X[0, 0] = LARGEST
    release, context, rows = PerturbedMinimum(4.0, 6.0), context_for(Logistic(), 8), rows_of(X, y)
    calls, edge = [], np.array([[1.0], [0], [0], [0.3]])
    b = -release._gradient(rows, context, 0.0, edge * (1 - 1e-9))
    b = (b - release._gradient(rows, context, 0.0, edge * (1 + 1e-9))) / 2

    def counted(rows, *args):
        calls.append(0)
        assert len(calls) < 1000
        return PerturbedMinimum._gradient(release, rows, *args)

    counting = PerturbedMinimum(4.0, 6.0)
    object.__setattr__(counting, "_gradient", counted)
    np.testing.assert_allclose(counting._minimum(rows, context, b), edge, atol=1e-6)


def test_a_loss_with_a_formula_of_its_own_is_refused():
    class SteeperError(Logistic):
        def residual_of_one(self, margin, target):
            return 2 * super().residual_of_one(margin, target)

    assert PerturbedMinimum(2.0, 3.0).event(context_for(Logistic(), 70)).ratio < 1
    with pytest.raises(ValueError, match="is for the logistic loss"):
        PerturbedMinimum(2.0, 3.0).event(context_for(SteeperError(), 70))


def test_rows_without_a_bound_are_refused():
    with pytest.raises(ValueError, match="have no bound"):
        PerturbedMinimum(2.0, 3.0).event(context_for(Logistic(), 70, row_bound=None))


def test_the_answer_hides_what_the_search_leaves_open(data, monkeypatch):
    """The noise on the minimum is that of the event, in units of twice the tolerance."""
    X, y, _ = data
    context, release, seen = context_for(Logistic(), 70, scale=2.0), PerturbedMinimum(2.0, 3.0), []

    def noisy(mechanism, statistic, contribution, scale, noise_source):
        seen.append((mechanism.relative_noise, contribution.bound, scale))
        return np.full_like(statistic, 7.0)

    monkeypatch.setattr(GaussianNoise, "noisy", noisy)
    answer = release.answer(rows_of(X, y), context, noise_source(0))
    assert (answer == 7.0).all()
    [(relative, bound, scale)] = seen
    assert relative >= release.event(context).output_noise
    half_grid = release._half_grid(context) / release.damping
    assert bound >= 2 * (release._distances(context)[-1] + half_grid)
    assert scale == 2.0


@pytest.mark.parametrize("layout", [np.asarray, np.float32, sparse.csr_array])
def test_accurate_gradients_are_those_of_a_plain_loop(layout, data, monkeypatch):
    monkeypatch.setattr(moments, "FEW_ROWS", 16)
    X, y, weights = data
    X = np.float32(X).astype(float)
    rows = rows_of(layout(X), y, weights)
    factors = moments.gentle_factors(rows.records, 2.0)
    Z, _ = records(X, weights)
    plain = Z.T @ (factors[:, None] ** 2 * (1 / (1 + np.exp(-Z @ POINT)) - y[:, None]))
    found = rows.total(moments.accurate_gradients, Logistic(), POINT, 2.0)
    np.testing.assert_allclose(found, plain, atol=1e-12)


def test_the_noise_for_rounding_stays_below_the_perturbation():
    """An entry of b moves one of the minimum by b over the mean eigenvalue, or more."""
    scale, row_norm = 7.0, 8.0
    release = PerturbedMinimum(row_norm, 83.0)
    for n_rows in (10**3, 10**5):
        context = context_for(Logistic(), n_rows, scale, n_features=50, row_bound=16.0)
        hidden = GaussianNoise(release.event(context).output_noise)
        std = hidden.std(release.contribution(context), scale)
        largest_mean_eigenvalue = n_rows * row_norm**2 / (4 * 51)
        assert std < 0.05 * scale * row_norm / largest_mean_eigenvalue


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_for_rounding_is_small_for_a_million_rows(epsilon):
    """Next to what b does to the minimum where p is 0.2 or 0.8 and columns have unit size."""
    model = skdp.DPLogisticRegression(
        solver="objective_perturbation", scaling="none", epsilon=epsilon
    )
    prepared = model._prepare(10**6, 20)
    context = PublicContext(prepared.public, prepared.problem, prepared.plan.calibration.scale)
    release = PerturbedMinimum(prepared.solver.row_norm, prepared.solver.damping)
    hidden = GaussianNoise(release.event(context).output_noise)
    std = hidden.std(release.contribution(context), context.scale)
    eigenvalue = 10**6 * 0.2 * 0.8 + release.damping
    assert std < 0.1 * context.scale * release.row_norm / eigenvalue


def test_the_perturbation_has_the_promised_size():
    context = context_for(Logistic(), 70, scale=7.0)
    release = PerturbedMinimum(2.0, 3.0)
    draws = [release._perturbation(context, noise_source(seed)) for seed in range(2000)]
    assert np.std(draws) == pytest.approx(14.0, rel=0.03)


def test_no_weight_raises_the_curvature_of_a_record():
    X = np.array([[0.1, 0, 0], [4.0, 0, 0], [0, 0, 0]])
    for weight in (0.0, 1.0, 50.0, 1e300):
        rows = rows_of(X, [0, 1, 0], np.full(3, weight))
        squares = moments.gentle_factors(rows.records, 2.0) ** 2
        norms = np.linalg.norm(records(X, np.ones(3))[0], axis=1)
        assert (squares * norms <= 2.0 * (1 + 1e-12)).all()
        assert (squares * norms**2 <= 4.0 * (1 + 1e-12)).all()


@pytest.mark.parametrize("damping", [0.5, 20.0, 500.0])
def test_no_record_moves_the_minimum_by_more_than_is_charged(damping, data, rng):
    """Without noise; on rows that all pull one way and a record that pulls the other way, too."""
    context, release = context_for(Logistic(), 70, scale=2.0), NoisyMinimum(2.0, damping)
    contribution, zeros = release.contribution(context), np.zeros(context.public.shape)
    moved = []
    for X, y in (data[:2], (np.tile([[1.8, 0, 0]], (70, 1)), np.ones(70))):
        first = release._minimum(rows_of(X, y), context, zeros)
        for row, label in (([-1.8, 0, 0], 1.0), ([1.8, 0, 0], 0.0), ([1e5, -1e5, 1e5], 1.0)):
            Z, t = X.copy(), y.copy()
            Z[0], t[0] = row, label
            replaced = release._minimum(rows_of(Z, t), context, zeros)
            null = release._minimum(rows_of(Z, t, np.r_[0.0, np.ones(69)]), context, zeros)
            assert np.linalg.norm(replaced - null) <= contribution.bound
            moved.append(np.linalg.norm(replaced - first) / contribution.bound)
    assert max(moved) <= contribution.spread
    # The curvature of the rows, which is not charged, does the rest where there is little damping.
    assert damping < 100 or max(moved) > 0.5
    assert contribution.bound < 1.1 * 2.0 / damping  # what floating point adds is small
