"""Nothing but releases leaves the calibration: replay on hostile neighbours, and mutants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import skdp
from skdp.accounting import Adjacency, Gaussian
from skdp.oracle import directional
from skdp.oracle.releases.directional import DirectionalSum
from skdp.oracle.sources.memory import MemorySource
from skdp.stages.recalibration import stage

N_ROWS = 60
HOSTILE = [
    np.zeros(4),
    np.full(4, 1e5),
    np.full(4, -1e300),
    np.array([1e308, -1e308, 1e308, 1e308]),
    np.full(4, 5e-324),
    np.array([1e200, 1e-200, 0.0, 1.0]),
    np.array([3.0, -4.0, 1.0, 9.0]),
]
WEIGHTS = [1.0, 1e12, 0.5, 1e300, 3.0]


def make(n_classes, adjacency, **parameters):
    return skdp.DPLogisticRegression(
        classes=range(n_classes),
        adjacency=str(adjacency),
        noise_source="seeded",
        random_state=0,
        **parameters,
    )


def data_for(n_classes, rng):
    X = rng.standard_normal((N_ROWS, 4))
    return X, np.arange(N_ROWS) % n_classes


def neighbours(n_classes, X, y, adjacency, weighted=True, convert=lambda X: X):
    """Pairs of data sets in which one record differs; a null record has weight 0."""
    for place, row in enumerate(HOSTILE):
        Z, t, w = X.copy(), y.copy(), np.linspace(0.5, 2.0, N_ROWS) if weighted else np.ones(N_ROWS)
        v = w.copy()
        Z[place], t[place] = row, place % n_classes
        if weighted:
            w[place] = WEIGHTS[place % len(WEIGHTS)]
        if adjacency is Adjacency.ZERO_OUT:
            null, s = X.copy(), y.copy()
            null[place], s[place], v[place] = 0.0, 0, 0.0
            yield (convert(Z), t, w), (convert(null), s, v)
        else:
            yield (convert(X), y, v), (convert(Z), t, w)


both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
classes = pytest.mark.parametrize("n_classes", [2, 3])


@both
@classes
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"scaling": "private"},
        {"fit_intercept": False},
        {"C": np.inf, "scaling": "none"},
        {"data_norm": 1.5, "epsilon": 20.0},
        {"class_weight": {0: 5.0}},
    ],
    ids=str,
)
def test_nothing_but_releases(replay, rng, n_classes, adjacency, parameters):
    X, y = data_for(n_classes, rng)

    def model():
        return make(n_classes, adjacency, **parameters)

    kinds = [record.kind for record in model().plan(N_ROWS, 4).releases]
    assert kinds[-1] == "calibration"
    for data, neighbour in neighbours(n_classes, X, y, adjacency):
        replay.check(model, data, neighbour, adjacency)


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows(replay, rng, adjacency, dtype):
    X, y = data_for(2, rng)
    X[rng.random(X.shape) < 0.5] = 0.0
    largest = 1e38 if dtype is np.float32 else 1e308

    def convert(X):
        return sparse.csr_array(np.clip(X, -largest, largest).astype(dtype))

    for data, neighbour in neighbours(2, X, y, adjacency, convert=convert):
        replay.check(lambda: make(2, adjacency), data, neighbour, adjacency)


def solvers():
    """Those that a calibration can follow."""
    for name in sorted(skdp.solvers.available()):
        solver = skdp.solvers.get_solver(name)
        provides = skdp.DPLogisticRegression()._problem(N_ROWS, 1).provides
        if not solver.adaptive and not solver.needs - provides:
            yield name


@both
@pytest.mark.parametrize("solver", list(solvers()))
def test_after_any_solver(replay, rng, solver, adjacency):
    X, y = data_for(2, rng)
    few = {"max_iter": 6} if "max_iter" in skdp.solvers.get_solver(solver).get_params() else {}
    pairs = list(neighbours(2, X, y, adjacency, weighted=solver == "gd"))
    for data, neighbour in pairs[1::2]:
        replay.check(
            lambda: make(2, adjacency, solver=solver, calibration="private", **few),
            data,
            neighbour,
            adjacency,
        )


# ---------------------------------------------------------------- mutants


def mutant_a_third_of_the_bound(patch):
    original = DirectionalSum.contribution

    def contribution(self, context, n_rows):
        found = original(self, context, n_rows)
        object.__setattr__(found, "bound", found.bound / 3)
        return found

    patch.setattr(DirectionalSum, "contribution", contribution)


def mutant_nothing_clipped(patch):
    patch.setattr(directional, "clipped", lambda vectors, bound: np.clip(vectors, -1e9, 1e9))


def mutant_null_records_count(patch):
    original = MemorySource.directional_sum

    def directional_sum(self, *args):
        weights, self._weights = self._weights, None
        found = original(self, *args)
        self._weights = weights
        return found + 10 * (weights > 0).all()

    patch.setattr(MemorySource, "directional_sum", directional_sum)


def mutant_mean_over_the_weights(patch):
    original = MemorySource.directional_sum
    patch.setattr(
        Rows,
        "directional_sum",
        lambda self, *args: original(self, *args) * N_ROWS / self._weights.sum(),
    )


def mutant_slope_from_the_rows(patch):
    original = stage.Calibrated._calibrated

    def calibrated(self, oracle, coef):
        found = original(self, oracle, coef)
        if oracle._rows is not None:
            found = found * (1 + 1e-9 * np.clip(oracle._rows._X, -10, 10).mean())
        return found

    patch.setattr(stage.Calibrated, "_calibrated", calibrated)


def mutant_bound_from_the_rows(patch):
    original = stage.DirectionalSum

    def directional_sum(point, coef, clip_norm, with_shift):
        return original(point, coef, clip_norm * seen[-1], with_shift)

    seen = [1.0]
    rows = MemorySource.__init__

    def init(self, X, *args):
        rows(self, X, *args)
        seen.append(1.0 + (np.abs(X).max() > 100))

    patch.setattr(stage, "DirectionalSum", directional_sum)
    patch.setattr(MemorySource, "__init__", init)


def mutant_asked_until_it_fits(patch):
    original = stage.Calibrated._calibrated

    def calibrated(self, oracle, coef):
        found = original(self, oracle, coef)
        if oracle._rows is not None and np.abs(oracle._rows._X).max() > 100:
            oracle._ledger.charge = lambda kind, event: None
            found = original(self, oracle, coef)
        return found

    patch.setattr(stage.Calibrated, "_calibrated", calibrated)


MUTANTS = {name: value for name, value in globals().items() if name.startswith("mutant_")}


@both
@pytest.mark.parametrize("mutant", MUTANTS)
def test_replay_catches_mutants(replay, leak, rng, monkeypatch, mutant, adjacency):
    if mutant == "mutant_null_records_count" and adjacency is Adjacency.REPLACE_ONE:
        return  # no record is null there
    X, y = data_for(2, rng)
    MUTANTS[mutant](monkeypatch)
    for data, neighbour in neighbours(2, X, y, adjacency):
        try:
            replay.check(
                lambda: make(2, adjacency, scaling="none", epsilon=20.0), data, neighbour, adjacency
            )
        except leak:
            return
    raise AssertionError(f"{mutant} went unnoticed")


def test_replay_catches_a_forgotten_factor_of_replace_one(replay, leak, rng, monkeypatch):
    """Two records that pull apart move the sum by more than the bound of one."""
    X, y = data_for(2, rng)
    Z, t, ones = X.copy(), y.copy(), np.ones(N_ROWS)
    X[0], y[0], Z[0], t[0] = 5.0, 0, 5.0, 1
    w = ones.copy()
    w[0] = 40.0
    monkeypatch.setattr(Gaussian, "sensitivity", lambda self, adjacency: 1.0)
    # The solver's own sums would be caught first.
    monkeypatch.setattr(
        MemorySource, "clipped_gradient_sum", lambda self, loss, point, *a, **k: point + 1
    )
    with pytest.raises(leak, match="times its sensitivity"):
        replay.check(
            lambda: make(2, "replace_one", scaling="none", epsilon=20.0),
            (X, y, w),
            (Z, t, w),
            Adjacency.REPLACE_ONE,
        )
