"""Releases of second moments: plain loops, declared bounds on hostile records, mutants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import skdp
from skdp.accounting import Adjacency
from skdp.objective import L2, Logistic, Problem, SquaredError
from skdp.oracle import (
    Coordinates,
    GramSum,
    NewtonDirection,
    PerturbedMinimum,
    Public,
    ResidualSquares,
    ShrunkGradientSum,
    SmallestEigenvalue,
    kernels,
    moments,
    unpack_gram,
)
from skdp.oracle.noise import noise_source
from skdp.oracle.releases import GaussianNoise, Terms
from skdp.oracle.rows import Rows

SIZE, ROW_BOUND = 0.8, 5.0
TURN = np.array([[3.0, 0.5, 0.0, 0.1], [0, 0.2, 0, 0], [0.3, 0, 1.0, 0], [0, 0, 0.4, 0.05]])


def terms_for(loss, n_rows, scale=1.0, weighted=False, is_sparse=False, **facts):
    facts = {"n_features": 3, "n_outputs": 1, "row_bound": ROW_BOUND, **facts}
    public = Public(
        n_rows=n_rows,
        adjacency=Adjacency.ZERO_OUT,
        epsilon=1.0,
        delta=1e-6,
        data_norm=None,
        weighted=weighted,
        sparse=is_sparse,
        **facts,
    )
    return Terms(public, Problem(loss, L2(0.01)), scale)


def rows_of(X, y, weights=None):
    return Rows(X, np.asarray(y, float).reshape(-1, 1), weights, ROW_BOUND, SIZE)


def records(X, weights):
    """Rows with their constant, shrunk to the public bound."""
    norms = np.linalg.norm(X, axis=1)
    Z = X * np.minimum(1, ROW_BOUND / np.maximum(norms, 1e-300))[:, None]
    return np.column_stack([Z, np.full(len(X), SIZE)]), np.sqrt(weights)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((70, 3)) * rng.choice([0.1, 1, 10], (70, 1))
    return X, (rng.random(70) > 0.5).astype(float), rng.choice([0.0, 0.5, 1.0, 9.0], 70)


POINT = np.array([[0.5], [-1.0], [0.2], [0.3]])


@pytest.mark.parametrize("layout", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("unit", [None, 0.25])
def test_gram_is_that_of_a_plain_loop(data, layout, unit, monkeypatch):
    monkeypatch.setattr(moments, "BLOCK_BYTES", 16 * 3 * 8)
    X, y, weights = data
    convert = {"dense": np.asarray, "float32": np.float32, "sparse": sparse.csr_array}[layout]
    answer = GramSum(2.0, unit, 0.7).total(
        rows_of(convert(X), y, weights), terms_for(Logistic(), 70, weighted=True)
    )
    Z, roots = records(X, weights)
    if unit is not None:
        Z = np.column_stack([Z, np.minimum(y, 0.7) / unit])
    V = Z * roots[:, None]
    V = V * np.minimum(1, 2.0 / np.maximum(np.linalg.norm(V, axis=1), 1e-300))[:, None]
    tolerance = 1e-4 if layout == "float32" else 1e-9
    np.testing.assert_allclose(unpack_gram(answer, Z.shape[1]), V.T @ V, atol=tolerance)
    # The vector is as long as the matrix.
    assert np.linalg.norm(answer) == pytest.approx(np.linalg.norm(V.T @ V), rel=1e-4)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_shrunk_gradients_are_those_of_a_plain_loop(data, whole, turned):
    X, y, weights = data
    T = TURN if turned else np.eye(4)
    what = ShrunkGradientSum(POINT, 1.5, 0.4, Coordinates(TURN) if turned else None, whole)
    answer = what.total(rows_of(X, y, weights), terms_for(Logistic(), 70, weighted=True))
    Z, roots = records(X, weights)
    U = Z @ T
    residuals = 1 / (1 + np.exp(-Z @ POINT)) - y[:, None]
    lengths = np.linalg.norm(U, axis=1, keepdims=True)
    if whole:
        f = np.minimum(roots[:, None], 1.5 / lengths)
        plain = f * U * np.clip(f * residuals, -0.4, 0.4)
    else:
        f = np.minimum(1, 1.5 / lengths)
        plain = f * U * np.clip(weights[:, None] * residuals, -0.4, 0.4)
    np.testing.assert_allclose(answer[:, 0], plain.sum(axis=0), atol=1e-10)


HOSTILE = [
    [0, 0, 0],
    [1e300, -1e300, 1e300],
    [1e-170, 0, 0],
    [5e-324, 5e-324, 0],
    [1e5, 1.0, -3.0],
    [0.3, 0.2, 0.1],
    [3.0, -4.0, 1.0],
    [-1e200, 1e-200, 7.0],
]
SUMS = {
    "gram": lambda: GramSum(2.0),
    "joint gram": lambda: GramSum(2.0, 0.25, 3.0),
    "shrunk": lambda: ShrunkGradientSum(POINT, 1.5, 0.4),
    "shrunk records": lambda: ShrunkGradientSum(POINT, 1.5, 0.4, whole_records=True),
    "turned": lambda: ShrunkGradientSum(POINT, 0.7, 0.4, Coordinates(TURN)),
    "turned records": lambda: ShrunkGradientSum(POINT, 0.7, 0.4, Coordinates(TURN), True),
    "squares": lambda: ResidualSquares(POINT, 0.6),
    "direction": lambda: NewtonDirection(POINT, POINT[::-1], 3.0, 2.0),
    "eigenvalue": lambda: SmallestEigenvalue(2.0),
}


def worst(make, rng):
    """Largest move of a sum, in units of the declared bound, for zero-out and replace-one."""
    X = rng.standard_normal((12, 3))
    y = rng.standard_normal(12)
    weights = np.ones(12)
    zero_out = replace_one = 0.0
    for loss in (SquaredError(), Logistic()):
        terms = terms_for(loss, 12, weighted=True)
        targets = (0.0, 1.0) if loss.name == "logistic" else (0.0, 1e300, -2.0, 1e-310)
        what = make()
        bound = what.contribution(terms, 12).bound
        base = np.clip(np.rint(y), 0, 1) if loss.name == "logistic" else y
        answers = []
        for row in [None, *HOSTILE]:
            for target in targets:
                for weight in (0.0,) if row is None else (1.0, 1e6, 1e300):
                    Z, t, w = X.copy(), base.copy(), weights.copy()
                    Z[4], t[4], w[4] = (0, 0, 0) if row is None else row, target, weight
                    with np.errstate(over="ignore", invalid="ignore"):
                        answers.append(what.total(rows_of(Z, t, w), terms))
                    assert np.isfinite(answers[-1]).all()
        away = [np.linalg.norm(answer - answers[0]) / bound for answer in answers]
        zero_out = max(zero_out, *away)
        apart = [np.linalg.norm(a - b) for a in answers for b in answers]
        replace_one = max(replace_one, max(apart) / bound)
    return zero_out, replace_one


@pytest.mark.parametrize("name", SUMS)
def test_no_record_moves_a_sum_by_more_than_is_declared(name, rng):
    zero_out, replace_one = worst(SUMS[name], rng)
    spread = SUMS[name]().contribution(terms_for(Logistic(), 12), 12).spread
    assert 0.05 < zero_out <= 1
    assert replace_one <= spread * (1 + 1e-12)


def mutant_off_diagonals_without_root_two(patch):
    patch.setattr(moments, "pack", lambda matrix: 2 * matrix[np.triu_indices(len(matrix))])


def mutant_rows_not_shrunk(patch):
    patch.setattr(moments, "factors_within", lambda bound, inverse, roots: np.ones(len(inverse)))


def mutant_norms_of_the_rows_themselves(patch):
    patch.setattr(Rows, "_inverse_in", lambda self, transform: self._inverse_norms)


def mutant_residuals_not_capped(patch):
    patch.setattr(kernels, "_clip", lambda residuals, clip_norm, inverse_norms: None)


def mutant_weights_after_shrinking(patch):
    original = Rows.gram_sum

    def gram(self, *args):
        weights, self._weights = self._weights, None
        total = original(self, *args)
        self._weights = weights
        return total * weights.max()

    patch.setattr(Rows, "gram_sum", gram)


def mutant_squares_not_cut(patch):
    original = Rows.residual_squares
    patch.setattr(
        Rows, "residual_squares", lambda self, loss, point, b: original(self, loss, point, 2 * b)
    )


def mutant_target_left_out_of_the_norm(patch):
    patch.setattr(moments, "joint_norms", lambda inverse, extra: 1 / inverse)


MUTANTS = {name: value for name, value in globals().items() if name.startswith("mutant_")}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant, rng, monkeypatch):
    MUTANTS[mutant](monkeypatch)
    caught = []
    for name, make in SUMS.items():
        spread = make().contribution(terms_for(Logistic(), 12), 12).spread
        try:
            zero_out, replace_one = worst(make, rng)
        except AssertionError:
            caught.append(name)
            continue
        if zero_out > 1 or replace_one > spread * (1 + 1e-12):
            caught.append(name)
    assert caught, f"{mutant} went unnoticed"


@pytest.mark.parametrize("n_features", [1, 3, 400])
@pytest.mark.parametrize("n_outputs", [1, 30])
def test_rounding_is_charged_for_as_many_rows_as_are_summed_at_once(n_features, n_outputs):
    """No product adds up more rows than a charge counts, whatever stands next to the columns."""
    n_rows = 2**23 if n_features < 400 else 2**16
    X = np.broadcast_to(np.float32(0), (n_rows, n_features))
    largest = max(
        rows.stop - rows.start
        for itemsize in (4, 8)
        for part in kernels.parts(n_rows, n_features, itemsize, False)
        for rows in moments.blocks(X, part)
    )
    terms = terms_for(SquaredError(), n_rows, n_features=n_features, n_outputs=n_outputs)
    turned = Coordinates(np.eye(n_features + 1))
    shape = (n_features + 1, n_outputs)
    for what in (
        GramSum(1.0),
        GramSum(1.0, 1.0),
        SmallestEigenvalue(1.0),
        ShrunkGradientSum(np.zeros(shape), 1.0, 1.0, turned),
    ):
        slack = what.contribution(terms, n_rows).bound - 1
        assert slack >= 2 * largest * n_rows * 2.0**-53


def test_the_spread_of_gram_matrices_is_met(rng):
    """Two orthogonal records at the bound are sqrt(2) apart."""
    what, terms = GramSum(2.0), terms_for(Logistic(), 1)
    one = what.total(Rows(np.array([[4.0, 0, 0]]), np.zeros((1, 1)), None, None, 0.0), terms)
    other = what.total(Rows(np.array([[0, 4.0, 0]]), np.zeros((1, 1)), None, None, 0.0), terms)
    assert np.linalg.norm(one - other) == pytest.approx(math.sqrt(2) * 4.0)


def direction_moves():
    """How far the steepest record moves a direction along it, in units of the bound."""
    x = math.sqrt(4.0 - SIZE**2)
    terms = terms_for(Logistic(), 1, weighted=True)
    what = NewtonDirection(np.zeros((4, 1)), np.array([[x], [0], [0], [SIZE]]), 3.0, 2.0)
    answers = [
        what.total(rows_of(np.array([[x, 0, 0]]), [1.0], np.array([weight])), terms)
        for weight in (0.0, 1.0)
    ]
    return np.linalg.norm(answers[1] - answers[0]) / what.contribution(terms, 1).bound


def test_the_bound_on_a_direction_is_met(monkeypatch):
    assert 0.98 < direction_moves() <= 1
    # Mutant: a Hessian above the declared curvature.
    monkeypatch.setattr(Logistic, "second_derivative", lambda self, m: np.ones_like(m))
    assert direction_moves() > 1


def test_singular_coordinates_are_refused():
    with pytest.raises(ValueError, match="singular"):
        Coordinates(np.ones((3, 3)))
    with pytest.raises(TypeError, match="must be Coordinates"):
        ShrunkGradientSum(POINT, 1.0, 1.0, TURN)


# ------------------------------------------------------------------ the perturbed minimum


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


@pytest.mark.parametrize("has_intercept", [False, True])
def test_the_minimum_is_no_farther_than_promised_whatever_the_weights(has_intercept):
    size = 2.5 * has_intercept  # the constant of these public facts
    X, y = np.full((5000, 3), 1e-6), np.ones((5000, 1))
    release = PerturbedMinimum(20.0, 520.0)
    terms = terms_for(
        Logistic(), 5000, scale=1.0, weighted=True, has_intercept=has_intercept, row_bound=20.0
    )
    for weight in (1.0, 1e3, 1e12):
        rows = Rows(X, y, np.full(5000, weight), 20.0, size)
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

    monkeypatch.setattr(GaussianNoise, "hide", hide)
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
    terms = Terms(public, problem, plan.calibration.scale)
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
