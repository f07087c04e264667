"""The minimum of a perturbed objective: found, as near as promised, on any record."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import skdp
from skdp.objective import Logistic
from skdp.oracle import GaussianNoise, PerturbedMinimum, PublicContext, moments
from skdp.oracle.noise import noise_source
from skdp.oracle.sources.memory import MemorySource
from weighted_records import POINT, data_for, records, rows_of, terms_for


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
    terms = terms_for(Logistic(), 70, scale=2.0)
    release = PerturbedMinimum(2.0, 3.0)
    b = release._perturbation(terms, noise_source(0))
    found = release._minimum(rows_of(X, y), terms, b)
    expected = plain_minimum(X, y, b[:, 0], 2.0, 3.0, 70)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


def in_long_precision(rows, terms, release, b, point):
    """Gradient and Hessian of the objective in numpy's long doubles."""
    X, y, size = rows._X, rows._targets.astype(np.longdouble), rows._intercept_size
    shrink = np.ones(len(X)) if rows._shrink is None else rows._shrink
    Z = np.hstack([shrink[:, None] * X.astype(np.longdouble), np.full((len(X), 1), size)])
    f = rows.record_factors(release.row_norm, gentle=True).astype(np.longdouble)[:, None]
    lifted = np.full((4, 1), release.damping + terms.problem.strong_convexity * len(X))
    lifted[-1] = release.damping
    p = 1 / (1 + np.exp(-Z @ point))
    return Z.T @ (f**2 * (p - y)) + lifted * point + b, Z.T @ (f**2 * p * (1 - p) * Z), lifted


def exact_minimum(rows, terms, release, b, point):
    """Newton's method in long doubles, steps by float64; from a point that is near already."""
    point = point.astype(np.longdouble)
    for _ in range(30):
        gradient, hessian, lifted = in_long_precision(rows, terms, release, b, point)
        hessian = hessian.astype(float) + np.diag(lifted[:, 0])
        point = point - np.linalg.solve(hessian, gradient.astype(float))
    return point


def test_the_minimum_is_as_near_as_its_noise_assumes(data):
    """What is released, before noise, lies within the promised distance of the minimiser."""
    X, y, _ = data
    terms = terms_for(Logistic(), 70, scale=2.0)
    release = PerturbedMinimum(2.0, 3.0)
    rows = rows_of(1e3 * X, y)
    distances = release._distances(terms)
    assert len(distances) > 1
    for seed in range(5):
        b = release._perturbation(terms, noise_source(seed))
        assert np.linalg.norm(b) <= release._longest(terms) * (1 + 1e-12)
        found = release._minimum(rows, terms, b)
        exact = exact_minimum(rows, terms, release, b, found)
        assert np.linalg.norm((found - exact).astype(float)) <= distances[-1]
        assert np.linalg.norm(found) <= release._farthest(terms)


def a_step_from_afar(rows, terms, release, b, start):
    """Where the release goes on from ``start``, if a search ended there."""
    factors = rows.record_factors(release.row_norm, gentle=True)
    gradient = release._gradient(rows, terms, b, factors, start)
    _, _, lifted = in_long_precision(rows, terms, release, b, start)
    hessian = rows.hessian_sum(terms.problem.loss, start, factors) + np.diag(lifted[:, 0])
    return start - np.linalg.solve(hessian, gradient)


@pytest.mark.parametrize("distance", [1e-6, 1e-4, 1e-2, 5e-2])
@pytest.mark.parametrize("kind", ["plain", "alike", "long", "null"])
def test_a_step_comes_as_near_as_is_promised(kind, distance, data, rng):
    """From any point within a distance of the minimum, on rows made to bend the loss most."""
    X, y, _ = data
    X = {"plain": X, "alike": np.tile(X[:1], (70, 1)), "long": 1e3 * X, "null": 0 * X}[kind]
    terms, release, rows = terms_for(Logistic(), 70, scale=2.0), PerturbedMinimum(2.0, 1.1), None
    rows, worst = rows_of(X, y), 0.0
    promised = release._nearer(terms, distance)
    for seed in range(5):
        b = release._perturbation(terms, noise_source(seed))
        exact = exact_minimum(rows, terms, release, b, release._minimum(rows, terms, b))
        for _ in range(10):
            away = rng.standard_normal((4, 1))
            start = (exact + distance * away / np.linalg.norm(away)).astype(float)
            reached = a_step_from_afar(rows, terms, release, b, start)
            missed = np.linalg.norm((reached - exact).astype(float))
            worst = max(worst, missed)
            assert missed <= promised
    if kind == "plain" and distance > 1e-5:
        # Most of it is the change of the Hessian on the way: without that it would be too little.
        assert worst > release._nearer(terms, 1e-9)


def test_errors_of_margins_are_multiplied_by_so_much_and_no_more(rng):
    """``|H^-1 A'M x|`` on the worst rows, all alike and as long as the damping calls for."""
    terms, n_rows, damping, curvature = terms_for(Logistic(), 70, scale=2.0), 70, 3.0, 0.25
    gain = PerturbedMinimum(2.0, damping)._gain(terms)
    for length in (*np.geomspace(0.01, 10, 30), math.sqrt(damping / (n_rows * curvature))):
        A = np.zeros((n_rows, 4))
        A[:, 0] = length
        hessian = curvature * A.T @ A + damping * np.eye(4)
        moved = np.linalg.norm(np.linalg.solve(hessian, curvature * A.T @ np.ones(n_rows)))
        assert moved <= gain * (1 + 1e-12)
    assert moved == pytest.approx(gain)


def test_no_rounding_of_b_is_longer_than_is_paid_for():
    terms, release = terms_for(Logistic(), 70, scale=2.0), PerturbedMinimum(2.0, 3.0)
    corner = np.full(terms.public.n_parameters, release._grid(terms) / 2)
    assert release._half_grid(terms) >= np.linalg.norm(corner) * (1 - 1e-12)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_the_minimum_is_no_farther_than_promised_whatever_the_weights(has_intercept):
    size = 2.5 * has_intercept  # the constant of these public facts
    X, y = np.full((5000, 3), 1e-6), np.ones((5000, 1))
    release = PerturbedMinimum(20.0, 520.0)
    terms = terms_for(
        Logistic(), 5000, scale=1.0, weighted=True, has_intercept=has_intercept, row_bound=20.0
    )
    for weight in (1.0, 1e3, 1e12):
        rows = MemorySource.of(X, y, np.full(5000, weight), 20.0, size)
        found = release._minimum(rows, terms, release._perturbation(terms, noise_source(0)))
        assert np.linalg.norm(found) <= release._farthest(terms)


LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("row", [[LARGEST, 0, 0], [LARGEST, -LARGEST, 0], [1e150, 1e150, 1.0]])
def test_no_row_breaks_the_gradient_of_a_perturbed_objective(row, data):
    """It is one and the same function's, where products with the row overflow and elsewhere."""
    X, y, _ = data
    X[0], y[0] = row, 0.0
    release, terms, rows = PerturbedMinimum(4.0, 6.0), terms_for(Logistic(), 70), rows_of(X, y)
    factors = rows.record_factors(4.0, gentle=True)
    Z, _ = records(X[1:], np.ones(69))
    f = factors[1:, None]
    for length in (0.1, 0.9, 1.1, 3.0):
        point = length * np.array([[1.0], [0.8], [0.1], [0.3]])
        found = rows.weighted_gradient_sum(Logistic(), point, factors)
        plain = Z.T @ (f**2 * (1 / (1 + np.exp(-Z @ point)) - y[1:, None]))
        assert np.linalg.norm(found - plain) <= release._rounding(terms, 5.0)


def test_the_search_ends_where_a_product_overflows():
    """Coefficients near 1 would make the margin of the first row come and go."""
    X, y = np.full((8, 3), [2.0, 0, 0]), np.array([0.0, 1, 1, 1, 1, 0, 0, 0])
    X[0, 0] = LARGEST
    release, terms, rows = PerturbedMinimum(4.0, 6.0), terms_for(Logistic(), 8), rows_of(X, y)
    factors, calls = rows.record_factors(4.0, gentle=True), []
    edge = np.array([[1.0], [0], [0], [0.3]])
    b = -release._gradient(rows, terms, 0.0, factors, edge * (1 - 1e-9))
    b = (b - release._gradient(rows, terms, 0.0, factors, edge * (1 + 1e-9))) / 2

    def counted(rows, *args):
        calls.append(0)
        assert len(calls) < 1000
        return PerturbedMinimum._gradient(release, rows, *args)

    counting = PerturbedMinimum(4.0, 6.0)
    object.__setattr__(counting, "_gradient", counted)
    np.testing.assert_allclose(counting._minimum(rows, terms, b), edge, atol=1e-6)


def test_rows_without_a_bound_are_refused():
    with pytest.raises(ValueError, match="have no bound"):
        PerturbedMinimum(2.0, 3.0).event(terms_for(Logistic(), 70, row_bound=None))


def test_the_answer_hides_what_the_search_leaves_open(data, monkeypatch):
    """The noise on the minimum is that of the event, in units of twice the tolerance."""
    X, y, _ = data
    terms, release, seen = terms_for(Logistic(), 70, scale=2.0), PerturbedMinimum(2.0, 3.0), []

    def hide(mechanism, statistic, contribution, scale, source):
        seen.append((mechanism.relative, contribution.bound, scale))
        return np.full_like(statistic, 7.0)

    monkeypatch.setattr(GaussianNoise, "add_noise", hide)
    answer = release.answer(rows_of(X, y), terms, noise_source(0))
    assert (answer == 7.0).all()
    [(relative, bound, scale)] = seen
    assert relative >= release.event(terms).output_noise
    half_grid = release._half_grid(terms) / release.damping
    assert bound >= 2 * (release._distances(terms)[-1] + half_grid)
    assert scale == 2.0


@pytest.mark.parametrize("layout", [np.asarray, np.float32, sparse.csr_array])
def test_weighted_gradients_are_those_of_a_plain_loop(layout, data, monkeypatch):
    monkeypatch.setattr(moments, "FEW_ROWS", 16)
    X, y, weights = data
    X = np.float32(X).astype(float)
    rows = rows_of(layout(X), y, weights)
    factors = rows.record_factors(2.0, gentle=True)
    Z, _ = records(X, weights)
    plain = Z.T @ (factors[:, None] ** 2 * (1 / (1 + np.exp(-Z @ POINT)) - y[:, None]))
    found = rows.weighted_gradient_sum(Logistic(), POINT, factors)
    np.testing.assert_allclose(found, plain, atol=1e-12)


def test_the_noise_for_rounding_stays_below_the_perturbation():
    """An entry of b moves one of the minimum by b over the mean eigenvalue, or more."""
    scale, row_norm = 7.0, 8.0
    release = PerturbedMinimum(row_norm, 83.0)
    for n_rows in (10**3, 10**5):
        terms = terms_for(Logistic(), n_rows, scale, n_features=50, row_bound=16.0)
        hidden = GaussianNoise(release.event(terms).output_noise)
        std = hidden.std(release.contribution(terms), scale)
        largest_mean_eigenvalue = n_rows * row_norm**2 / (4 * 51)
        assert std < 0.05 * scale * row_norm / largest_mean_eigenvalue


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_noise_for_rounding_is_small_for_a_million_rows(epsilon):
    """Next to what b does to the minimum where p is 0.2 or 0.8 and columns have unit size."""
    model = skdp.DPLogisticRegression(
        solver="objective_perturbation", scaling="none", epsilon=epsilon
    )
    public, problem, _, solver, plan = model._prepare(10**6, 20, 1, False, False)
    terms = PublicContext(public, problem, plan.calibration.scale)
    release = PerturbedMinimum(solver.row_norm, solver.damping)
    hidden = GaussianNoise(release.event(terms).output_noise)
    std = hidden.std(release.contribution(terms), terms.scale)
    eigenvalue = 10**6 * 0.2 * 0.8 + release.damping
    assert std < 0.1 * terms.scale * release.row_norm / eigenvalue


def test_the_perturbation_has_the_promised_size():
    terms = terms_for(Logistic(), 70, scale=7.0)
    release = PerturbedMinimum(2.0, 3.0)
    draws = [release._perturbation(terms, noise_source(seed)) for seed in range(2000)]
    assert np.std(draws) == pytest.approx(14.0, rel=0.03)


def test_no_weight_raises_the_curvature_of_a_record():
    X = np.array([[0.1, 0, 0], [4.0, 0, 0], [0, 0, 0]])
    for weight in (0.0, 1.0, 50.0, 1e300):
        rows = rows_of(X, [0, 1, 0], np.full(3, weight))
        squares = rows.record_factors(2.0, gentle=True) ** 2
        norms = np.linalg.norm(records(X, np.ones(3))[0], axis=1)
        assert (squares * norms <= 2.0 * (1 + 1e-12)).all()
        assert (squares * norms**2 <= 4.0 * (1 + 1e-12)).all()
