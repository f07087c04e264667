"""Sums of second moments: plain loops, declared bounds on hostile records, mutants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from skdp.objective import Logistic, SquaredError
from skdp.oracle import (
    Coordinates,
    GramSum,
    NewtonDirection,
    ResidualSquares,
    ShrunkGradientSum,
    SmallestEigenvalue,
    kernels,
    moments,
    unpack_gram,
)
from skdp.oracle.sources.memory import MemorySource
from weighted_records import POINT, SIZE, data_for, records, rows_of, terms_for

TURN = np.array([[3.0, 0.5, 0.0, 0.1], [0, 0.2, 0, 0], [0.3, 0, 1.0, 0], [0, 0, 0.4, 0.05]])


@pytest.fixture
def data(rng):
    return data_for(rng)


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
    patch.setattr(MemorySource, "_inverse_in", lambda self, transform: self._inverse_norms)


def mutant_residuals_not_capped(patch):
    patch.setattr(kernels, "_clip", lambda residuals, clip_norm, inverse_norms: None)


def mutant_weights_after_shrinking(patch):
    original = MemorySource.gram_sum

    def gram(self, *args):
        weights, self._weights = self._weights, None
        total = original(self, *args)
        self._weights = weights
        return total * weights.max()

    patch.setattr(MemorySource, "gram_sum", gram)


def mutant_squares_not_cut(patch):
    original = MemorySource.residual_squares
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
    one = what.total(
        MemorySource.of(np.array([[4.0, 0, 0]]), np.zeros((1, 1)), None, None, 0.0), terms
    )
    other = what.total(
        MemorySource.of(np.array([[0, 4.0, 0]]), np.zeros((1, 1)), None, None, 0.0), terms
    )
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
