"""No row shows except through the releases: replay on hostile neighbours, and mutants of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import skdp
from skdp.accounting import Adjacency
from skdp.linear_model import base, logistic
from skdp.linear_model.parameters import constraint_set
from skdp.objective import L2, Logistic, Multinomial, Problem, SquaredError
from skdp.oracle import kernels
from skdp.oracle.releases.mechanisms import GaussianNoise
from skdp.oracle.releases.sums import GradientSum
from skdp.oracle.rows import Rows
from skdp.solvers import GradientDescent, get_solver

N_ROWS = 60
# Solvers that need a strongly convex penalty, which "linear" has not: they refuse it.
PENALISED = ("heavy_ball", "multistage_nesterov", "nesterov")


def few_steps(parameters):
    """The parameters with 12 steps, for solvers that let one say so."""
    solver = parameters.get("solver", "gd")
    if isinstance(solver, str) and "max_iter" in get_solver(solver).get_params():
        return {"max_iter": 12, **parameters}
    return parameters


def make_logistic(**parameters):
    return skdp.DPLogisticRegression(classes=[0, 1], random_state=0, **few_steps(parameters))


def make_multinomial(**parameters):
    return skdp.DPLogisticRegression(classes=[0, 1, 2], random_state=0, **few_steps(parameters))


def make_linear(**parameters):
    return skdp.DPLinearRegression(random_state=0, **few_steps(parameters))


def make_ridge(**parameters):
    return skdp.DPRidge(alpha=2.0, random_state=0, **few_steps(parameters))


ESTIMATORS = {
    "logistic": make_logistic,
    "multinomial": make_multinomial,
    "linear": make_linear,
    "ridge": make_ridge,
}


# What a solver needs of a problem that the estimators do not have by themselves.
ASKED_BY = {"accelerated_mirror_descent": {"constraint": "l1_ball", "radius": 2.0}}


def asked_by(solver):
    return ASKED_BY.get(solver, {})


LOSSES = {"logistic": Logistic(), "multinomial": Multinomial(3)}


def takes(solver, kind):
    """Whether a solver can do an estimator's problem; where not it says so, in its own tests."""
    asked = asked_by(solver)
    wanted = constraint_set(asked.get("constraint"), asked.get("radius", 1.0))
    problem = Problem(LOSSES.get(kind, SquaredError()), L2(0.1), wanted)
    return not get_solver(solver).needs - problem.provides


SOLVERS = sorted(skdp.solvers.available())
PAIRS = [(kind, solver) for kind in ESTIMATORS for solver in SOLVERS if takes(solver, kind)]


def data_for(kind, rng):
    X = rng.standard_normal((N_ROWS, 4))
    if kind == "logistic":
        return X, (X[:, 0] > 0).astype(int)
    if kind == "multinomial":
        return X, np.arange(N_ROWS) % 3
    return X, X @ np.array([1.0, -1.0, 0.5, 0.0]) + 0.1 * rng.standard_normal(N_ROWS)


def targets_for(kind):
    return {"logistic": [0, 1], "multinomial": [0, 1, 2]}.get(
        kind, [-1e300, -3.0, 0.0, 1e-310, 1e12]
    )


def rows():
    """Records that have broken something somewhere."""
    ones = np.ones(4)
    return [
        0 * ones,
        -0.0 * ones,
        1e5 * ones,
        -1e5 * ones,
        1e300 * ones,
        np.array([1e308, -1e308, 1e308, 1e308]),
        1e-170 * ones,
        5e-324 * ones,
        np.array([1e200, 1e-200, 0.0, 1.0]),
    ]


def neighbours(kind, X, y, adjacency, records=None):
    """Pairs of (X, y, sample_weight) in which one record differs."""
    ones = np.ones(len(y))
    for place, row, target in records or hostile_records(kind):
        Z, t, w = X.copy(), y.copy(), ones.copy()
        Z[place], t[place] = row, target
        w[place] = 1e6 if place % 2 else 1.0
        if adjacency is Adjacency.ZERO_OUT:
            null = X.copy(), y.copy(), ones.copy()
            null[0][place], null[1][place], null[2][place] = 0.0, 0, 0.0
            yield (Z, t, w), null
        else:
            yield (X, y, ones), (Z, t, w)


def hostile_records(kind):
    """Places, rows and targets: every row with every target."""
    return [
        (place, row, target) for place, row in enumerate(rows()) for target in targets_for(kind)
    ]


def records_for(kind, solver, turn):
    """All hostile records for "gd"; for other solvers every row once, with targets in turn.

    Solvers differ in what they ask; what is summed up, and how it is bounded, is the same code.
    """
    if solver == "gd":
        return hostile_records(kind)
    targets = targets_for(kind)
    return [
        (place, row, targets[(place + turn) % len(targets)]) for place, row in enumerate(rows())
    ]


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize(("kind", "solver"), PAIRS)
class TestReplay:
    @pytest.fixture(autouse=True)
    def refusal(self, kind, solver, rng):
        """What a solver does not take it refuses before any row is read; that is all to see."""
        if kind == "linear" and solver in PENALISED:
            with pytest.raises(ValueError, match=r"strongly convex.*Nothing was released"):
                make_linear(solver=solver).fit(*data_for(kind, rng))
            pytest.skip("refused, as it should be")

    def test_nothing_but_releases(self, replay, rng, kind, adjacency, solver):
        X, y = data_for(kind, rng)

        def make():
            return ESTIMATORS[kind](adjacency=str(adjacency), solver=solver, **asked_by(solver))

        records = records_for(kind, solver, turn=0)
        for data, neighbour in neighbours(kind, X, y, adjacency, records):
            replay.check(make, data, neighbour, adjacency)

    def test_with_declared_bounds(self, replay, rng, kind, adjacency, solver):
        X, y = data_for(kind, rng)
        declared = {"data_norm": 1.5, **asked_by(solver)}
        if kind in ("linear", "ridge"):
            declared["target_bound"] = 2.0

        def make():
            return ESTIMATORS[kind](adjacency=str(adjacency), solver=solver, **declared)

        records = records_for(kind, solver, turn=1)
        for data, neighbour in neighbours(kind, X, y, adjacency, records):
            replay.check(make, data, neighbour, adjacency)

    def test_sparse_entries_in_parts(self, replay, rng, kind, adjacency, solver):
        """1e30 and -1e30 for one entry: small in a norm, large in a sum of parts."""
        X, y = data_for(kind, rng)
        dense = sparse.csr_array(X)
        for place in (0, 7, 30):
            for part in (1e17, 1e30):
                start = dense.indptr[place + 1]
                data = np.insert(dense.data, start, [part, -part])
                indices = np.insert(dense.indices, start, [1, 1])
                indptr = dense.indptr + 2 * (np.arange(N_ROWS + 1) > place)
                hostile = sparse.csr_array((data, indices, indptr), shape=X.shape)
                weights = np.ones(N_ROWS)
                if adjacency is Adjacency.ZERO_OUT:
                    weights[place] = 0.0
                replay.check(
                    lambda: ESTIMATORS[kind](
                        adjacency=str(adjacency), solver=solver, **asked_by(solver)
                    ),
                    (hostile, y, np.ones(N_ROWS)),
                    (dense, y, weights),
                    adjacency,
                )

    def test_sparse_float32(self, replay, rng, kind, adjacency, solver):
        X, y = data_for(kind, rng)

        def make():
            return ESTIMATORS[kind](adjacency=str(adjacency), solver=solver, **asked_by(solver))

        def convert(data):
            Z, t, w = data
            return sparse.csr_array(np.clip(Z, -1e30, 1e30).astype(np.float32)), t, w

        for data, neighbour in list(neighbours(kind, X, y, adjacency))[::4]:
            replay.check(make, convert(data), convert(neighbour), adjacency)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("sampling", ["poisson", "fixed_size", "shuffled", "balls_and_bins"])
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_nothing_but_releases_on_batches(replay, rng, kind, adjacency, sampling):
    """With the coins of the sampler fixed by the seed, batches are the same on both."""
    if sampling == "fixed_size" and adjacency is Adjacency.ZERO_OUT:
        return  # refused, see tests/solvers/test_gd.py
    X, y = data_for(kind, rng)

    def make():
        solver = GradientDescent(max_iter=9, batch_size=15, sampling=sampling)
        estimator = skdp.DPLogisticRegression if kind == "logistic" else skdp.DPRidge
        return estimator(solver=solver, adjacency=str(adjacency), random_state=0)

    for data, neighbour in list(neighbours(kind, X, y, adjacency))[::3]:
        replay.check(make, data, neighbour, adjacency)


# Bugs that were seen in other libraries, seeded one by one. Each must be caught.


def _patched_sum(monkeypatch, change):
    original = GradientSum.total
    monkeypatch.setattr(
        GradientSum, "total", lambda self, rows, terms: change(original, self, rows, terms)
    )


def mutant_intercept_not_clipped(monkeypatch):
    hypot = np.hypot
    monkeypatch.setattr(np, "hypot", lambda a, b: a if np.ndim(a) else hypot(a, b))


def mutant_no_clipping(monkeypatch):
    monkeypatch.setattr(kernels, "_clip", lambda residuals, clip_norm, inverse_norms: None)


def mutant_clip_twice_as_large(monkeypatch):
    original = kernels._clip
    monkeypatch.setattr(
        kernels,
        "_clip",
        lambda residuals, clip_norm, inverse: original(residuals, 2 * clip_norm, inverse),
    )


def mutant_weights_after_clipping(monkeypatch):
    original = Rows.clipped_gradient_sum

    def total(self, loss, point, clip_norm, **options):
        weights, self._weights = self._weights, None
        numbers = np.arange(self.n_rows)
        parts = [
            original(self.take(numbers[i : i + 1]), loss, point, clip_norm, **options)
            for i in numbers
        ]
        self._weights = weights
        return sum(weight * part for weight, part in zip(weights, parts, strict=True))

    monkeypatch.setattr(Rows, "clipped_gradient_sum", total)


def mutant_private_attribute(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, X, y, sample_weight, **checks):
        original(self, X, y, sample_weight, **checks)
        self.solver_.notes = {"mean": np.clip(X, -1e9, 1e9).mean()}
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_warning_about_the_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, X, y, sample_weight, **checks):
        if np.abs(X).max() > 1000:
            warnings.warn("X has outliers", UserWarning, stacklevel=2)
        return original(self, X, y, sample_weight, **checks)

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_less_noise_at_the_end(monkeypatch):
    original = GaussianNoise.std
    asked = []

    def std(self, contribution, scale):
        asked.append(1)
        return original(self, contribution, scale) / (1000 if len(asked) % 30 > 20 else 1)

    monkeypatch.setattr(GaussianNoise, "std", std)


def mutant_mean_over_private_count(monkeypatch):
    def change(original, self, rows, terms):
        return original(self, rows, terms) / (1 + (rows._targets > 0).sum())

    _patched_sum(monkeypatch, change)


def mutant_step_size_from_the_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, X, y, sample_weight, **checks):
        self.max_iter = 12
        self.learning_rate = 1 / np.linalg.norm(np.where(np.abs(X) < 1e9, X, 1e9), 2) ** 2
        return original(self, X, y, sample_weight, **checks)

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_stopping_by_the_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, X, y, sample_weight, **checks):
        self.max_iter = 5 + int(np.abs(X).max() > 100)
        return original(self, X, y, sample_weight, **checks)

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_polished_without_noise(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, X, y, sample_weight, **checks):
        original(self, X, y, sample_weight, **checks)
        self.coef_ = self.coef_ + 1e-9 * np.clip(X, -1e9, 1e9).mean()
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_centred_by_the_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, X, y, sample_weight, **checks):
        original(self, X, y, sample_weight, **checks)
        self.intercept_ = self.intercept_ - np.clip(X, -1e9, 1e9).mean(axis=0) @ self.coef_.ravel()
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_classes_from_the_rows(monkeypatch):
    def read(self, y, dtype):
        return base.Targets((y > 0).astype(dtype)[:, None], 1, classes=np.unique(y))

    monkeypatch.setattr(logistic.DPLogisticRegression, "_read_targets", read)


def mutant_score_kept(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, X, y, sample_weight, **checks):
        original(self, X, y, sample_weight, **checks)
        self.loss_ = float(np.clip(X, -1e9, 1e9).sum())
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


MUTANTS = {name: value for name, value in globals().items() if name.startswith("mutant_")}


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_replay_catches_mutants(replay, leak, rng, monkeypatch, mutant, adjacency):
    X, y = data_for("logistic", rng)
    y[:] = 0  # the label 1 is at most in one record
    MUTANTS[mutant](monkeypatch)
    caught = 0
    for place, row in enumerate([1e4 * np.ones(4), np.zeros(4), np.full(4, 3.0), -np.ones(4)]):
        for target in (0, 1):
            Z, t, w = X.copy(), y.copy(), np.ones(len(y))
            Z[place], t[place] = row, target
            w[place] = 40.0
            neighbour = (Z, t, w)
            if adjacency is Adjacency.ZERO_OUT:
                Z[place], t[place], w[place] = 0.0, 0, 0.0
                there = (X.copy(), y.copy(), np.ones(len(y)))
                there[0][place], there[1][place], there[2][place] = row, target, 40.0
            else:
                there = (X, y, np.ones(len(y)))
            try:
                replay.check(
                    lambda: make_logistic(adjacency=str(adjacency), clip_norm=0.3, scaling="none"),
                    there,
                    neighbour,
                    adjacency,
                )
            except leak:
                caught += 1
    assert caught, f"{mutant} went unnoticed"


def test_replay_catches_forgotten_factor_of_replace_one(replay, leak, rng, monkeypatch):
    """Under replace-one a sum moves by twice the bound: halving that must be seen."""
    from skdp.accounting import Gaussian

    monkeypatch.setattr(Gaussian, "sensitivity", lambda self, adjacency: 1.0)
    X, y = data_for("logistic", rng)
    Z, t = X.copy(), y.copy()
    X[0], y[0], Z[0], t[0] = 50.0, 0, -50.0, 0
    ones = np.ones(len(y))
    with pytest.raises(leak, match="times its sensitivity"):
        replay.check(
            lambda: make_logistic(adjacency="replace_one", clip_norm=0.3),
            (X, y, ones),
            (Z, t, ones),
            Adjacency.REPLACE_ONE,
        )
