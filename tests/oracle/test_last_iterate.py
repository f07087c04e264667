"""The hidden run: what it computes, what it costs, and that both fit together."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from skdp.accounting import Adjacency, GaussianDP
from skdp.objective import (
    L1,
    L2,
    Box,
    ElasticNet,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    Multinomial,
    NoPenalty,
    Problem,
    Simplex,
    SquaredError,
)
from skdp.oracle import (
    GaussianNoise,
    GradientSum,
    LastIterate,
    NoisySum,
    NotAudited,
    Oracle,
    Public,
    noise_source,
    smoothness,
)
from skdp.oracle.ledger import Anything, FollowPlan, Ledger
from skdp.oracle.releases import Terms
from skdp.oracle.rows import Rows

N_ROWS = 40
ROW_BOUND = 2.0
CLIP = 0.7


def public_for(n_features=3, **facts):
    known = {
        "n_rows": N_ROWS,
        "n_outputs": 1,
        "adjacency": Adjacency.ZERO_OUT,
        "epsilon": 1.0,
        "delta": 1e-6,
        "has_intercept": False,
        "row_bound": ROW_BOUND,
        **facts,
    }
    return Public(n_features=n_features, **known)


RIDGE, SQUARED = L2(0.5), SquaredError()


def problem_for(penalty=RIDGE, loss=SQUARED, **parts):
    return Problem(loss, penalty, fit_intercept=False, **parts)


def terms_for(problem=None, scale=5.0, n_features=3, **facts):
    return Terms(public_for(n_features, **facts), problem or problem_for(), scale)


def rows_for(X, y, dtype=np.float64):
    return Rows(X.astype(dtype), y.reshape(-1, 1).astype(dtype), None, ROW_BOUND, 0.0)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((N_ROWS, 3))
    return X, X @ np.array([1.0, -1.0, 0.5]) + 0.1 * rng.standard_normal(N_ROWS)


class Script:
    """Puts noise of one's own in the place of the mechanism's, and keeps what is hidden."""

    def __init__(self, monkeypatch, noise):
        self.hidden = []

        def hide(mechanism, statistic, contribution, scale, source):
            self.hidden.append(statistic + noise(len(self.hidden), statistic.shape))
            return self.hidden[-1]

        monkeypatch.setattr(GaussianNoise, "hide", hide)


def run(monkeypatch, release, rows, terms, noise):
    with monkeypatch.context() as patch:
        script = Script(patch, noise)
        point = release.answer(rows, terms, noise_source(0))
    return point, np.array(script.hidden)


def silence(step, shape):
    return np.zeros(shape)


def image(monkeypatch, release, rows, terms, first):
    """What is hidden in the second step, before its noise, where ``first`` was in the first."""
    _, (there,) = run(monkeypatch, dataclasses.replace(release, n_steps=1), rows, terms, silence)

    def noise(step, shape):
        return first - there if step == 0 else np.zeros(shape)

    return run(monkeypatch, dataclasses.replace(release, n_steps=2), rows, terms, noise)[1][1]


# The run is gradient descent.


def test_without_noise_it_is_proximal_gradient_descent(data):
    X, y = data
    release = LastIterate(30, 0.3, CLIP)
    point = release.answer(rows_for(X, y), terms_for(scale=0.0), noise_source(0))
    short = X * np.minimum(1, ROW_BOUND / np.linalg.norm(X, axis=1))[:, None]
    w = np.zeros(3)
    for _ in range(30):
        gradients = short * (short @ w - y)[:, None]
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        w = w - 0.3 * (gradients * np.minimum(1, CLIP / lengths)).mean(axis=0)
        w = w / (1 + 0.3 * 0.5)
    np.testing.assert_allclose(point[:, 0], w, atol=1e-12)


def test_with_noise_it_is_the_run_whose_gradients_are_shown(data):
    """Same seed, same noise: up to the grids, which are 2**-30 of the noise."""
    terms = terms_for(scale=5.0)
    rows = rows_for(*data)
    noise = GaussianNoise(1.5)
    hidden = LastIterate(20, 0.3, CLIP, noise).answer(rows, terms, noise_source(1))
    source, w = noise_source(1), np.zeros((3, 1))
    for _ in range(20):
        answer = NoisySum(GradientSum(w, CLIP), noise).answer(rows, terms, source)
        w = terms.problem.prox(w - 0.3 * answer / N_ROWS, 0.3)
    np.testing.assert_allclose(hidden, w, rtol=1e-6)


def test_single_precision_rows_are_taken_in_double_precision(data):
    X, y = (part.astype(np.float32) for part in data)
    release, terms = LastIterate(30, 0.3, CLIP), terms_for(scale=0.0)
    single = release.answer(rows_for(X, y, np.float32), terms, noise_source(0))
    double = release.answer(rows_for(X, y), terms, noise_source(0))
    np.testing.assert_allclose(single, double, rtol=1e-13)


# The map is what the event says it is.

PROBLEMS = {
    "ridge": problem_for(),
    "logistic": problem_for(loss=Logistic()),
    "huber": problem_for(loss=Huber(0.2)),
    "elastic net": problem_for(ElasticNet(0.8, 0.4)),
    "ball": problem_for(constraint=L2Ball(0.3)),
    "lasso in a box": problem_for(L1(0.1), constraint=Box(-0.2, 0.3)),
    "cross-polytope": problem_for(NoPenalty(), constraint=L1Ball(0.4)),
    "simplex": problem_for(NoPenalty(), constraint=Simplex(0.5)),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_steps_do_not_move_points_further_apart_than_announced(kind, rng, monkeypatch):
    """Over hostile rows, from pairs of points: the Lipschitz constant and the way to it."""
    problem = PROBLEMS[kind]
    terms = terms_for(problem)
    step = 2 / smoothness(terms.public, problem)
    release = LastIterate(2, step, CLIP)
    event = release.event(terms)
    X = rng.standard_normal((N_ROWS, 3)) * np.exp(3 * rng.standard_normal((N_ROWS, 1)))
    X[:4] = [[1e300, -1e300, 1.0], [1e-300, 0, 0], [0, 0, 0], [1e200, 1e-200, 1e100]]
    y = rng.integers(0, 2, N_ROWS).astype(float)
    rows = rows_for(X, y)
    scale = N_ROWS / step
    for _ in range(100):
        apart = np.exp(rng.uniform(-12, 3)) * rng.standard_normal((3, 1))
        start = np.exp(rng.uniform(-5, 3)) * rng.standard_normal((3, 1))
        one = image(monkeypatch, release, rows, terms, scale * start)
        other = image(monkeypatch, release, rows, terms, scale * (start + apart))
        moved = np.linalg.norm(one - other)
        assert moved <= event.contraction * scale * np.linalg.norm(apart) + 1e-9 * scale


@pytest.mark.parametrize(
    ("penalty", "strength"), [(L2(0.5), 0.5), (ElasticNet(0.8, 0.25), 0.6), (L2(30.0), 30.0)]
)
def test_contraction_is_that_of_the_prox(penalty, strength):
    event = LastIterate(9, 0.25, CLIP).event(terms_for(problem_for(penalty)))
    assert event.contraction == pytest.approx(1 / (1 + 0.25 * strength), rel=1e-9)
    assert event.contraction >= 1 / (1 + 0.25 * strength)
    assert (event.n_steps, event.reach) == (9, math.inf)


def test_reach_is_the_diameter_in_units_of_one_records_push():
    problem = problem_for(NoPenalty(), constraint=L2Ball(0.5))
    terms = Terms(public_for(n_rows=10), problem, 1.0)
    event = LastIterate(1000, 0.1, 5.0, GaussianNoise(16.0)).event(terms)
    assert event.contraction == 1.0
    assert event.reach == pytest.approx(1.0 * 10 / (0.1 * 5.0))
    # sensitivity of the mean gradient 0.5, noise 8: the published figure
    assert GaussianDP().mu(event, Adjacency.ZERO_OUT) == pytest.approx(0.5590169943749475)


def mu_of_the_code(monkeypatch, release, terms, first, second):
    """Exact Gaussian-DP parameter of a run that is linear, found by running it.

    Where the map is affine the last point is Gaussian. The distance of its means comes from two
    runs without noise, its variance from one run for every step that is nudged.
    """
    quiet, _ = run(monkeypatch, release, first, terms, silence)
    moved = run(monkeypatch, release, second, terms, silence)[0] - quiet
    nudge = 1e-3
    responses = [
        run(
            monkeypatch,
            release,
            first,
            terms,
            lambda t, shape, at=at: nudge * np.ones(shape) * (t == at),
        )[0]
        - quiet
        for at in range(release.n_steps)
    ]
    step_std = release.std(terms) / (release.step_size / N_ROWS)
    deviation = step_std * math.sqrt(sum(float(item[0, 0] / nudge) ** 2 for item in responses))
    return abs(float(moved[0, 0])) / deviation


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize(("strength", "step"), [(0.5, 0.3), (3.0, 0.49), (0.05, 0.05)])
def test_cost_is_exact_where_the_run_is_linear(monkeypatch, adjacency, strength, step):
    """Null rows but for one record whose residual is always clipped: the worst case there is."""
    terms = terms_for(problem_for(L2(strength)), scale=4.0, n_features=1, adjacency=adjacency)
    X, y = np.zeros((N_ROWS, 1)), np.zeros(N_ROWS)
    there, other = X.copy(), X.copy()
    there[0] = 1.0
    target = y.copy()
    target[0] = 1e9
    other[0] = -1.0 if adjacency is Adjacency.REPLACE_ONE else 0.0
    release = LastIterate(40, step, CLIP)
    found = mu_of_the_code(
        monkeypatch, release, terms, rows_for(there, target), rows_for(other, target)
    )
    promised = GaussianDP().mu(release.event(terms).scaled(terms.scale), adjacency)
    assert found <= promised
    assert found == pytest.approx(promised, rel=1e-6)


def test_cost_covers_rows_that_add_curvature(monkeypatch, rng):
    """With rows the same record costs less, as the loss contracts, too."""
    terms = terms_for(problem_for(L2(0.05)), scale=4.0, n_features=1)
    X, y = rng.uniform(-2, 2, (N_ROWS, 1)), np.zeros(N_ROWS)
    other = X.copy()
    X[0], y[0], other[0] = 1.0, 1e9, 0.0
    release = LastIterate(40, 2 / smoothness(terms.public, terms.problem), 100.0)
    found = mu_of_the_code(monkeypatch, release, terms, rows_for(X, y), rows_for(other, y))
    promised = GaussianDP().mu(release.event(terms).scaled(terms.scale), Adjacency.ZERO_OUT)
    assert 0 < found < promised


# On neighbours, and the rounding.


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("kind", PROBLEMS)
def test_neighbouring_runs_stay_as_close_as_the_recursion_says(kind, adjacency, monkeypatch, rng):
    problem = PROBLEMS[kind]
    terms = terms_for(problem, adjacency=adjacency)
    release = LastIterate(25, 2 / smoothness(terms.public, problem), CLIP)
    event = release.event(terms)
    X, y = rng.standard_normal((N_ROWS, 3)), rng.integers(0, 2, N_ROWS).astype(float)
    Z, t = X.copy(), y.copy()
    X[0], y[0] = 1e5, 1.0
    Z[0], t[0] = (0.0, 0.0) if adjacency is Adjacency.ZERO_OUT else (-1e5, 1.0)
    draws = 10 * rng.standard_normal((25, 3, 1))
    hidden = [
        run(monkeypatch, release, rows_for(*side), terms, lambda step, shape: draws[step])[1]
        for side in ((X, y), (Z, t))
    ]
    sensitivity = release._contribution(terms).bound * event.sensitivity(adjacency)
    bound = 0.0
    for one, other in zip(*hidden, strict=True):
        bound = event.contraction * bound + sensitivity
        assert np.linalg.norm(one - other) <= bound
    assert np.linalg.norm(hidden[0][0] - hidden[1][0]) > 0.5 * CLIP  # the record is felt


def test_both_roundings_are_charged():
    """That of the sum by the mechanism; that of the noise, for the steps that stay hidden, here."""
    terms = terms_for(scale=5.0)
    release = LastIterate(30, 0.3, CLIP)
    contribution = release._contribution(terms)
    plain = GradientSum(np.zeros((3, 1)), CLIP).contribution(terms, N_ROWS)
    grid = release.mechanism._grid(contribution, terms.scale)
    rounding = release._rounding(terms, release._ball(terms).radius)
    assert contribution.bound >= plain.bound + grid * math.sqrt(3) + rounding
    assert contribution.bound <= CLIP * (1 + 1e-6)
    rate = 0.3 / N_ROWS
    assert release.std(terms) / rate >= 5.0 * (CLIP + 2 * grid * math.sqrt(3))


@pytest.mark.parametrize(("row_bound", "scale"), [(ROW_BOUND, 5.0), (1e-6, 1e4)])
def test_rounding_of_the_map_is_within_its_bound(monkeypatch, rng, row_bound, scale):
    """Against eighty-bit numbers, at points as far out as there can be.

    First margins make for most of it, then the points themselves.
    """
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("no extended precision here")
    n_rows, step = 3000, 0.2
    X, y = rng.standard_normal((n_rows, 3)) / 2, rng.standard_normal(n_rows)
    problem = problem_for(loss=Logistic())
    terms = Terms(public_for(n_rows=n_rows, row_bound=row_bound), problem, scale)
    release = LastIterate(2, step, CLIP)
    longest = release._ball(terms).radius
    rows = Rows(X, y.reshape(-1, 1), None, row_bound, 0.0)
    worst = 0.0
    for _ in range(50):
        w = rng.standard_normal((3, 1))
        w *= 0.9 * longest / np.linalg.norm(w)
        first = -w * n_rows / step
        computed = image(monkeypatch, release, rows, terms, first)
        start = first.astype(np.longdouble)
        rate = np.longdouble(step / n_rows)
        point = -rate * start / (1 + np.longdouble(step) * np.longdouble(0.5))
        long = X.astype(np.longdouble)
        norms = np.sqrt((long**2).sum(axis=1, keepdims=True))
        shrunk = long * np.minimum(1, row_bound / norms)
        residuals = 1 / (1 + np.exp(-(shrunk @ point))) - y.astype(np.longdouble)[:, None]
        limits = CLIP / np.minimum(norms, row_bound)
        exact = shrunk.T @ np.clip(residuals, -limits, limits) - point / rate
        worst = max(worst, float(np.linalg.norm((computed - exact).astype(float))))
    plain = GradientSum(np.zeros((3, 1)), CLIP).contribution(terms, n_rows)
    charged = release._rounding(terms, longest) + plain.bound - CLIP
    assert 0 < worst < charged / 2


def test_rounding_of_points_alone_is_within_its_bound(monkeypatch, rng):
    """Null rows and a tiny bound on them: what is left is the rounding of points."""
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("no extended precision here")
    terms = terms_for(scale=1e4, row_bound=1e-6)
    release = LastIterate(2, 0.3, CLIP)
    rows = Rows(np.zeros((N_ROWS, 3)), np.zeros((N_ROWS, 1)), None, 1e-6, 0.0)
    longest = release._ball(terms).radius
    worst = 0.0
    for _ in range(50):
        first = rng.standard_normal((3, 1))
        first *= 0.9 * longest * N_ROWS / 0.3 / np.linalg.norm(first)
        exact = first.astype(np.longdouble) / (1 + np.longdouble(0.3) * np.longdouble(0.5))
        error = image(monkeypatch, release, rows, terms, first) - exact
        worst = max(worst, float(np.linalg.norm(error.astype(float))))
    assert 0 < worst < release._rounding(terms, longest) / 2


def test_rounding_of_margins_grows_with_the_rows():
    """A margin is a sum of d products: off by d units at most, for each row, times the row."""
    release = LastIterate(2, 1e-12, CLIP)
    for n_rows in (40, 4000):
        terms = Terms(public_for(n_rows=n_rows, row_bound=1e6), problem_for(), 1.0)
        without = Terms(public_for(n_rows=n_rows, row_bound=1e-6), problem_for(), 1.0)
        found = release._rounding(terms, 1e20) - release._rounding(without, 1e20)
        # of two runs; unit roundoff, rows, curvature 1, squared norm, distance
        assert found >= 2 * 3 * 2.0**-53 * n_rows * 1e12 * 1e20


def test_points_lie_on_the_grid_of_the_noise(data):
    """Noise on the gradient alone would leave the low bits of the point before, which tell it."""
    terms = terms_for(scale=5.0)
    release = LastIterate(4, 0.25, CLIP)
    grid = release.mechanism._grid(release._contribution(terms), terms.scale)
    for seed in range(5):
        point = release.answer(rows_for(*data), terms, noise_source(seed))
        steps = point * (1 + 0.25 * 0.5) / (0.25 / N_ROWS) / grid
        assert np.abs(steps).max() > 1e6
        np.testing.assert_allclose(steps, np.rint(steps), rtol=0, atol=1e-4)


def test_ball_is_out_of_reach(data):
    for problem in (problem_for(), problem_for(L2(1e-9)), PROBLEMS["simplex"]):
        terms = terms_for(problem, scale=50.0)
        release = LastIterate(50, 0.3, CLIP)
        radius = release._ball(terms).radius
        point = release.answer(rows_for(*data), terms, noise_source(3))
        assert np.linalg.norm(point) < radius / 2


def test_so_much_noise_that_its_rounding_counts_is_refused():
    with pytest.raises(ValueError, match="needs less noise than"):
        LastIterate(5, 0.3, CLIP).std(terms_for(scale=1e10))


# The conditions: who, what, what was allowed; before anything is charged.

REFUSALS = {
    "intercept": (
        {"problem": Problem(SquaredError(), L2(0.5)), "has_intercept": True},
        r"needs fit_intercept=False: .* would save nothing",
    ),
    "intercept of the problem alone": (
        {"problem": Problem(SquaredError(), L2(0.5))},
        "needs fit_intercept=False",
    ),
    "multinomial": (
        {"problem": problem_for(loss=Multinomial(3)), "n_outputs": 3},
        r"needs one output, .* the loss is 'multinomial' with 3 output",
    ),
    "two targets": ({"n_outputs": 2}, "needs one output, .* 'squared_error' with 2 output"),
    "weights": ({"weighted": True}, "needs rows without sample_weight and class_weight"),
    "no bound on rows": ({"row_bound": None}, "needs a bound on the norm of rows; set data_norm"),
    "nothing that contracts": (
        {"problem": problem_for(NoPenalty())},
        r"needs a strongly convex penalty.*NoPenalty.*Unconstrained",
    ),
    "L1 in a half-space": (
        {"problem": problem_for(L1(0.2), constraint=Box(0, math.inf))},
        "needs a strongly convex penalty",
    ),
    "long steps": ({"row_bound": 3.0}, r"needs learning_rate <= 2 / .* = 0.222222.*got 0.3"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case, data):
    facts, message = REFUSALS[case]
    facts = dict(facts)
    terms = terms_for(facts.pop("problem", None), **facts)
    ledger = Ledger(Anything())
    oracle = Oracle(terms, ledger, np.random.default_rng(0), rows_for(*data), noise_source(0))
    with pytest.raises(ValueError, match=rf"(?s)release='last' {message}.*Nothing was released\."):
        oracle.ask(LastIterate(20, 0.3, CLIP))
    assert ledger.entries == ()


def test_a_loss_without_a_bound_on_its_curvature_is_refused():
    @dataclasses.dataclass(frozen=True)
    class KinkedError(SquaredError):
        curvature = math.inf

    with pytest.raises(ValueError, match="a loss of finite curvature"):
        LastIterate(20, 0.3, CLIP).event(terms_for(problem_for(loss=KinkedError())))


def test_largest_step_that_is_allowed():
    terms = terms_for()
    largest = 2 / smoothness(terms.public, terms.problem)
    LastIterate(20, largest, CLIP).event(terms)
    with pytest.raises(ValueError, match="needs learning_rate <="):
        LastIterate(20, largest * (1 + 1e-12), CLIP).event(terms)


def test_infinite_epsilon_needs_no_bound_on_rows(data):
    X, y = data
    terms = terms_for(scale=0.0, epsilon=math.inf, row_bound=None)
    rows = Rows(X, y.reshape(-1, 1), None, None, 0.0)
    assert np.isfinite(LastIterate(20, 0.3, CLIP).answer(rows, terms, noise_source(0))).all()


@pytest.mark.parametrize("change", ["weights", "bound", "number"])
def test_rows_that_are_not_as_announced_are_refused(data, change):
    X, y = data
    weights = np.ones(N_ROWS) if change == "weights" else None
    bound = 3.0 if change == "bound" else ROW_BOUND
    rows = Rows(X, y.reshape(-1, 1), weights, bound, 0.0)
    if change == "number":
        rows = rows.take(np.arange(5))
    with pytest.raises(ValueError, match="needs the public number of rows"):
        LastIterate(5, 0.3, CLIP).answer(rows, terms_for(), noise_source(0))


@pytest.mark.parametrize(
    "bad", [(0, 0.3, CLIP), (5, 0.0, CLIP), (5, math.nan, CLIP), (5, 0.3, math.inf)]
)
def test_numbers_out_of_range(bad):
    with pytest.raises(ValueError, match=r"LastIterate: .* must be"):
        LastIterate(*bad)


# The boundary.


def test_only_audited_noise(data):
    class Quiet(GaussianNoise):
        def hide(self, statistic, contribution, scale, source):
            return statistic

    oracle = Oracle(
        terms_for(), Ledger(Anything()), np.random.default_rng(0), rows_for(*data), noise_source(0)
    )
    with pytest.raises(NotAudited):
        oracle.ask(LastIterate(5, 0.3, CLIP, Quiet()))


def test_one_debt_and_nothing_kept(data):
    terms = terms_for()
    release = LastIterate(5, 0.3, CLIP)
    before = dict(vars(release))
    rehearsed = Ledger(Anything())
    stand_in = Oracle(terms, rehearsed, np.random.default_rng(0)).ask(release)
    ledger = Ledger(FollowPlan(rehearsed.entries))
    oracle = Oracle(terms, ledger, np.random.default_rng(0), rows_for(*data), noise_source(0))
    answer = oracle.ask(release)
    assert answer.shape == stand_in.shape == (3, 1)
    assert [(entry.kind, entry.count) for entry in ledger.entries] == [("last_iterate", 1)]
    assert vars(release) == before
    with pytest.raises(Exception, match="after the end of its plan"):
        oracle.ask(release)
