"""What a careless or hostile solver may ask of the oracle, and what must hold all the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from skdp._oracle import (
    Columns,
    Coordinates,
    Cut,
    DirectionalSum,
    GaussianNoise,
    GradientDifference,
    GradientSum,
    GramSum,
    NoisyStatistic,
    Public,
    ResidualSquares,
    Scaling,
    ShrunkGradientSum,
    ShuffledPass,
    Solution,
    SolverStage,
    TailSum,
    make_plan,
    noise_source,
    run,
)
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.memory import MemorySource, row_threads
from skdp._oracle.sources.records import Records
from skdp.accounting import Adjacency
from skdp.objective import Problem, SquaredError

LARGEST = float(np.finfo(np.float64).max)
PUBLIC = Public(
    n_rows=60,
    n_features=3,
    n_outputs=1,
    adjacency=Adjacency.ZERO_OUT,
    epsilon=1.0,
    delta=1e-6,
    has_intercept=False,
    row_bound=2.0,
)
PROBLEM = Problem(SquaredError(), fit_intercept=False)
ZERO = np.zeros((3, 1))
OWN = Coordinates(np.eye(3))

# Ends, size and type: maps whose quotients overflow, and the cell that makes them.
MAPS = {
    "no clipping": (LARGEST, 0.5, np.float64, 1.7e308),
    "single precision": (1e38, 1e-3, np.float32, 1e36),
    "tiny size": (1e300, 1e-300, np.float64, 1e100),
    "least size": (1e300, 5e-324, np.float64, -1e100),
}
ASKED = {
    "gradient": GradientSum(ZERO + 0.5, 1.0),
    "gram": GramSum(1.0),
}


class Solver:
    """A solver made of one function of the oracle."""

    adaptive = False

    def __init__(self, function):
        self._function = function

    def solve(self, oracle):
        self._function(oracle)
        return Solution(oracle.start(), 1)


def carried_out(function, rows, public=PUBLIC):
    stages = (SolverStage(Solver(function)),)
    plan = make_plan(stages, public, PROBLEM)
    run(plan, stages, public, PROBLEM, rows, noise_source(None), np.random.default_rng(0))
    return plan


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", MAPS)
def test_a_map_that_overflows_shows_no_record(name, is_sparse, asked, rng):
    """Attack: inf times 0 would be nan if, and only if, the record is there."""
    end, size, dtype, cell = MAPS[name]
    X = rng.standard_normal((60, 3)).astype(dtype)
    X[0] = cell
    columns = Columns(*(np.full(3, value) for value in (-end, end, 0.0, size)))
    answers = []

    def attack(oracle):
        oracle.standardise(Scaling(columns))
        answers.append(oracle.request(NoisyStatistic(ASKED[asked], GaussianNoise())))

    with row_threads() as spread, warnings.catch_warnings():
        warnings.simplefilter("error")
        table = sparse.csr_array(X) if is_sparse else X
        records = Records.of(table, np.ones((60, 1), dtype=dtype), None, 2.0, 0.0)
        rows = MemorySource(records, 2.0, spread)
        carried_out(attack, rows)
    assert np.isfinite(answers[-1]).all()


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-10, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maps_give_finite_numbers(size, dtype):
    largest = float(np.finfo(dtype).max)
    columns = Columns([-LARGEST, -1.0], [LARGEST, LARGEST], [0.0, 1.0], [size, size])
    X = np.array([[largest, -largest], [-1.0, 0.0], [0.0, largest]], dtype=dtype)
    assert np.isfinite(columns.apply(X)).all()
    flat = Columns([-LARGEST] * 2, [LARGEST] * 2, [0.0] * 2, [size] * 2)
    assert np.isfinite(flat.apply(sparse.csr_array(X)).data).all()


def test_standardising_does_not_redraw_a_division(rng, monkeypatch):
    """Attack: blocks asked for before and after would overlap, and be priced as disjoint."""
    n_blocks, seen, take = 20, [], MemorySource.take
    cuts = tuple(range(0, 61, 3))

    def watched(source, indices):
        seen.append(indices)
        return take(source, indices)

    def attack(oracle):
        for index in range(n_blocks):
            oracle.gradient(ZERO, 1.0, sampler=Cut(cuts, index))
            oracle.standardise(Scaling())

    monkeypatch.setattr(MemorySource, "take", watched)
    X = rng.standard_normal((60, 3))
    carried_out(attack, MemorySource.of(X, X[:, :1].copy(), None, 2.0, 0.0))
    assert sorted(np.concatenate(seen)) == list(range(60))


@pytest.mark.parametrize(
    "make",
    [
        lambda value: GradientSum(ZERO, value),
        lambda value: GradientDifference(ZERO, ZERO, value),
        lambda value: ShrunkGradientSum(ZERO, OWN, value, 1.0),
        lambda value: ShrunkGradientSum(ZERO, OWN, 1.0, value),
        lambda value: GramSum(value),
        lambda value: ResidualSquares(ZERO, value),
        lambda value: DirectionalSum(ZERO, ZERO, value),
        lambda value: TailSum(ZERO, ZERO[:, 0], ZERO[:, 0], value, 1.0),
        lambda value: TailSum(ZERO, ZERO[:, 0], ZERO[:, 0], 1.0, value),
        lambda value: ShuffledPass(0.1, value),
    ],
)
def test_bounds_out_of_range_are_refused(make):
    for value in (5e-324, 1e-120, 1e120, np.inf, np.nan, 0.0, -1.0):
        with pytest.raises(ValueError, match="positive and finite, from 1e-100 to 1e\\+100"):
            make(value)


@pytest.mark.parametrize("row_norm", [1e-100, 1e-3, 1e100])
@pytest.mark.parametrize("bound", [1e-100, 1.0, 1e100])
def test_no_record_adds_more_than_its_bound_at_the_ends_of_the_range(row_norm, bound):
    context = PublicContext(PUBLIC, PROBLEM, 1.0)
    for row in ([1e-200, 0, 0], [1e300, 1.0, 0], [1.992, 0, 0], [1e-5, 1e-5, 1e-5]):
        for target in (1e-300, 1.0, 1e300, -LARGEST):
            release = ShrunkGradientSum(ZERO, OWN, row_norm, bound)
            rows = MemorySource.of(np.array([row]), np.array([[target]]), None, 2.0, 0.0)
            moved = np.linalg.norm(
                release.total(rows, context) / release.contribution(context, 1).bound
            )
            assert moved <= 1
