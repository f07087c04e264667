"""A pass is the algorithm it says it is, its noise is exact, and a record shows in one step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from skdp._oracle import GaussianNoise, Public, ShuffledPass, noise_source
from skdp._oracle.kernels.clipped_gradients import gradient_rounding
from skdp._oracle.releases import shuffled_pass
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.base import STREAMED
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency, Gaussian, Shuffled
from skdp.objective import ElasticNet, L2Ball, Logistic, Problem, SquaredError

N, D, BOUND = 60, 4, 3.0


def context_for(problem, scale=0.0, adjacency=Adjacency.ZERO_OUT, n_outputs=1, **facts):
    public = Public(
        N, D, n_outputs, adjacency, 1.0, 1e-6, has_intercept=problem.fit_intercept,
        row_bound=BOUND, **facts,
    )  # fmt: skip
    return PublicContext(public, problem, scale)


def data(rng, loss=None):
    X = rng.standard_normal((N, D)) * rng.uniform(0.1, 3, (N, 1))
    y = X @ np.ones((D, 1)) + rng.standard_normal((N, 1))
    return X, (y > 0).astype(float) if isinstance(loss, Logistic) else y


def make_rows(X, y, problem, weights=None):
    return MemorySource.of(X, y, weights, BOUND, 2.5 if problem.fit_intercept else 0.0)


class Order:
    """A source whose permutation is known and whose noise is zero."""

    keeps_record = False

    def __init__(self, order):
        self._order = np.asarray(order)

    def permutation(self, n):
        return self._order

    def gaussian(self, scale, shape):
        return np.zeros(shape)


def reference(X, y, problem, order, size, clip, weights=None, rate=1.0):
    """Algorithm 1, as plainly as possible."""
    X = X * np.minimum(1, BOUND / np.linalg.norm(X, axis=1))[:, None]
    if problem.fit_intercept:
        X = np.hstack([X, np.full((N, 1), 2.5)])
    point, kept = np.zeros((X.shape[1], 1)), []
    rates = np.ones((X.shape[1], 1))
    rates[-1] = rate if problem.fit_intercept else 1.0
    for i in order:
        residual = problem.loss.residual(X[[i]] @ point, y[[i]])
        gradient = X[[i]].T @ residual * (1 if weights is None else weights[i])
        gradient *= min(1, clip / np.linalg.norm(gradient))
        point = problem.prox(point - size * rates * gradient, size)
        kept.append(point)
    return np.mean(kept[N // 2 :], axis=0)


PROBLEMS = {
    "plain": Problem(SquaredError()),
    "ridge": Problem(SquaredError(), ElasticNet(0.5)),
    "lasso in a ball": Problem(
        SquaredError(), ElasticNet(0.05, 1.0), L2Ball(1.0), fit_intercept=False
    ),
    "logistic": Problem(Logistic(), ElasticNet(0.1), fit_intercept=False),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("kind", ["dense", "csr", "weighted"])
def test_without_noise_it_is_the_printed_algorithm(rng, name, kind, monkeypatch):
    """With shorter steps of the intercept, if asked for."""
    for rate in [1.0, 0.3]:
        monkeypatch.setattr(shuffled_pass, "AT_ONCE", 13)
        problem = PROBLEMS[name]
        X, y = data(rng, problem.loss)
        weights = rng.uniform(0, 3, N) if kind == "weighted" else None
        rows = make_rows(sparse.csr_array(X) if kind == "csr" else X, y, problem, weights)
        order = rng.permutation(N)
        release = ShuffledPass(0.05, 1.5, intercept_rate=rate)
        context = context_for(problem, sparse=kind == "csr", weighted=kind == "weighted")
        found = release.answer(rows, context, Order(order))
        expected = reference(X, y, problem, order, 0.05, 1.5, weights, rate)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_noise_has_the_promised_size():
    """On null rows the first point is the first step's noise."""
    problem = Problem(SquaredError(), fit_intercept=False)
    rows = make_rows(np.zeros((N, D)), np.zeros((N, 1)), problem)
    context = context_for(problem, scale=3.0)
    release = ShuffledPass(0.5, 2.0, GaussianNoise(1.5), tail=0.0)
    source = noise_source(0)
    points = np.array([release.answer(rows, context, source) for _ in range(300)]).ravel()
    # Rows are null, so nothing pulls back: the last point is a sum of N noises.
    expected = 0.5 * release.std(context) * np.sqrt(N)
    assert abs(points.std() / expected - 1) < 0.1
    assert release.std(context) == pytest.approx(3.0 * 1.5 * 2.0, rel=1e-6)


def test_single_records_get_the_noise_of_the_mechanism(rng):
    """Each answer is what the mechanism makes of the gradient and the noise drawn for it."""
    problem, scale = Problem(SquaredError()), 2.7
    X, y = data(rng)
    rows, context = make_rows(X, y, problem), context_for(problem, scale)
    release = ShuffledPass(0.05, 1.5, GaussianNoise(1.3))
    pairs, _ = recorded(rows, context, release, np.arange(N), noise=noise_source(4))
    source, (size, _) = noise_source(4), context.public.shape
    mechanism, contribution = release.mechanism, release._contribution(context)
    grid, drawn = mechanism.draw(contribution, scale, source, (N, size))
    for (gradient, answer), noise in zip(pairs, drawn, strict=True):
        np.testing.assert_array_equal(answer, grid * (np.rint(gradient / grid) + noise))


# ---------------------------------------------------------------------- one record, one step


class Recording(Order):
    """Keeps each statistic and its answer, which is that of another run if one is given."""

    keeps_record = True

    def __init__(self, order, noise, forced):
        super().__init__(order)
        self.gaussian = noise.gaussian
        self.pairs, self._forced = [], forced

    def record_answer(self, answer, statistic, *event):
        if self._forced is not None:
            answer = self._forced[len(self.pairs)][1].reshape(answer.shape)
        self.pairs.append((statistic.ravel().copy(), answer.ravel()))
        return answer


def recorded(rows, context, release, order, forced=None, noise=None):
    """Statistics and answers of all steps, and the answer of the pass."""
    source = Recording(order, noise or noise_source(1), forced)
    answer = release.answer(rows, context, source)
    return source.pairs, answer


HOSTILE_ROWS = [
    np.zeros(D), np.full(D, 1e5), np.full(D, -1e300), np.full(D, 1e308), np.full(D, 1e-170),
    np.full(D, 5e-324), np.array([1e200, 1e-200, 0.0, 1.0]), np.array([50.0, 0, 0, 0]),
]  # fmt: skip


def worst_moves(adjacency, seeds=range(3)):
    """Largest number of steps that moved, and by how many times the sensitivity."""
    problem = Problem(SquaredError())
    context = context_for(problem, scale=1.0, adjacency=adjacency)
    release = ShuffledPass(0.05, 0.7)
    most, farthest = 0, 0.0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, y = data(rng)
        order = rng.permutation(N)
        for place, row in zip(rng.permutation(N), HOSTILE_ROWS, strict=False):
            for target in (0.0, -1e300, 1e12):
                Z, t = X.copy(), y.copy()
                Z[place], t[place] = row, target
                there = X.copy(), y.copy()
                if adjacency is Adjacency.ZERO_OUT:
                    # Null: no row, no residual; the weight takes the constant away.
                    weights = np.ones(N)
                    weights[place] = 0.0
                    other = make_rows(*there, problem, weights)
                else:
                    other = make_rows(*there, problem)
                one, answer = recorded(make_rows(Z, t, problem), context, release, order)
                two, again = recorded(other, context, release, order, one)
                np.testing.assert_array_equal(answer, again)
                assert len(one) == len(two) == N
                slack = 1 + gradient_rounding(N, D, 1, False) + 2.0**-28
                unit = (1 if adjacency is Adjacency.ZERO_OUT else 2) * 0.7 * slack
                moved = [
                    np.linalg.norm((a - b) / unit) for (a, _), (b, _) in zip(one, two, strict=True)
                ]
                most = max(most, int(np.count_nonzero(moved)))
                farthest = max(farthest, *moved)
    return most, farthest


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_a_record_moves_one_step_by_its_sensitivity(adjacency):
    most, farthest = worst_moves(adjacency)
    assert most <= 1
    assert 0.5 < farthest <= 1


def test_an_unclipped_residual_is_caught(monkeypatch):
    original = shuffled_pass._single_records

    def unclipped(records, clip_norm):
        return original(records, 1e90)

    monkeypatch.setattr(shuffled_pass, "_single_records", unclipped)
    rng = np.random.default_rng(0)
    problem = Problem(SquaredError())
    X, y = data(rng)
    X[0] = 1.0
    y[0] = 1e6
    other = np.ones(N)
    other[0] = 0.0
    context, release = context_for(problem, scale=1.0), ShuffledPass(0.05, 0.7)
    order = np.arange(N)
    one, _ = recorded(make_rows(X, y, problem), context, release, order)
    two, _ = recorded(make_rows(X, y, problem, other), context, release, order, one)
    assert np.linalg.norm(one[0][0] - two[0][0]) > 100 * 0.7


# ---------------------------------------------------------------------- what it costs


def test_only_secret_orders_of_single_records_are_shuffled(rng):
    plain = Problem(SquaredError())
    assert ShuffledPass(0.1, 1.0).event(context_for(plain)) == Shuffled(N, Gaussian(1.0))
    for others in ({"provides": STREAMED}, {"n_outputs": 2}, {"has_offset": True}):
        with pytest.raises(ValueError, match="one target of ungrouped records in memory"):
            ShuffledPass(0.1, 1.0).event(context_for(plain, **others))
    rows = make_rows(*data(rng), plain).take(np.arange(N - 1))
    with pytest.raises(ValueError, match="59 rows, and 60"):
        ShuffledPass(0.1, 1.0).answer(rows, context_for(plain), noise_source(0))


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, 1.0),
        (np.inf, 1.0),
        (0.1, -1.0),
        (0.1, np.nan),
        (0.1, 1.0, GaussianNoise(), 0.5, 0.0),
        (0.1, 1.0, GaussianNoise(), 0.5, 2.0),
    ],
    ids=str,
)
def test_impossible_passes_are_refused(arguments):
    with pytest.raises(ValueError, match="ShuffledPass"):
        ShuffledPass(*arguments)
