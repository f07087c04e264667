"""Statistics of the one-step correction: their bounds are attained, and they are what they say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp._oracle import (
    CappedResiduals,
    Coordinates,
    CutCount,
    Public,
    ShrunkGradientSum,
    unpack_gram,
)
from skdp._oracle.releases import moments
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Groups, Records
from skdp.accounting import Adjacency, Gaussian
from skdp.objective import (
    ElasticNet,
    Logistic,
    Multinomial,
    Problem,
    SmoothedHinge,
    SquaredError,
    TweedieLog,
)


def totals(statistic, problem, records, adjacency=Adjacency.ZERO_OUT, **facts):
    """A statistic of each of several records (X, target, weight), over its sensitivity."""
    shape = len(records[0][0]), problem.loss.n_outputs or 1
    public = Public(1, *shape, adjacency, 1.0, 1e-6, has_intercept=False, **facts)
    context = PublicContext(public, problem, 1.0)
    contribution = statistic.contribution(context, 1)
    spread = Gaussian(1.0, contribution.spread).sensitivity(adjacency) * contribution.bound
    found = []
    for row, target, weight in records:
        targets = np.array([target] if shape[1] > 1 else [[float(target)]])
        rows = MemorySource.of(np.array([row], float), targets, np.array([weight]), constant=0.0)
        found.append(statistic.total(rows, context) / spread)
    return found


def whitened(cls, point=(0.0, 0.0), row_norm=2.0, cap=1.5):
    """A statistic in coordinates that are not those of the rows."""
    turn = Coordinates(np.array([[3.0, 1.0], [0.0, 0.5]]))
    return cls(np.array(point).reshape(2, -1), turn, row_norm, cap)


NULL = ([0.0, 0.0], 0.0, 0.0)
SQUARED = Problem(SquaredError(), ElasticNet(), fit_intercept=False)
LOGISTIC = Problem(Logistic(), ElasticNet(), fit_intercept=False)


def far(one, other):
    return float(np.linalg.norm(one - other))


@pytest.mark.parametrize(
    ("statistic", "pair"),
    [
        # The residual of target 0 at point 0 is 0: a long row adds its outer product.
        (whitened(moments.CappedHessian), [([5.0, 0.0], 0.0, 1.0), ([0.0, 90.0], 0.0, 1.0)]),
        (
            whitened(moments.ScoreSquares),
            [([5.0, 0.0], 90.0, 1.0), ([0.0, 90.0], -900.0, 1.0)],
        ),
        (CappedResiduals(np.zeros((2, 1)), 3.0), [([0, 0], 5.0, 1), ([0, 0], -9.0, 1)]),
        (whitened(CutCount), [([500.0, 0.0], 0.0, 1.0), NULL]),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_bounds_are_attained_by_squared_error(statistic, pair):
    one, other, null = totals(statistic, SQUARED, [*pair, NULL])
    assert 0.99 < far(one, null) <= 1
    # Directions that are orthogonal in whitened coordinates are sqrt(2) apart, targets 2.
    one, other = totals(statistic, SQUARED, pair, Adjacency.REPLACE_ONE)
    assert 0.8 < far(one, other) <= 1


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_the_bound_of_weighted_hessians_is_attained(power, bounded):
    """By a record with a large mean, and a target near it; and never exceeded."""
    loss = TweedieLog(power, bounded=bounded)
    problem = Problem(loss, ElasticNet(), fit_intercept=False)
    statistic = whitened(moments.CappedHessian, point=(0.0, 0.2), cap=1e6)
    rows = [([0.0, m / 0.2], 4.0, 1.0) for m in (-1e300, -30.0, 1.0, 7.0, 1e300)]
    *found, null = totals(statistic, problem, [*rows, NULL])
    sizes = [far(one, null) for one in found]
    assert max(sizes) <= 1
    assert sizes[3] > 0.99


@pytest.mark.parametrize("weight", [1.0, 0.2, 30.0])
@pytest.mark.parametrize("in_rows", [False, True])
def test_no_row_exceeds_the_bound_of_the_hessian(monkeypatch, weight, in_rows):
    monkeypatch.setattr(moments, "MOST_ROUNDING", 1.0 if in_rows else 0.0)
    """Whatever its length and its weight."""
    statistic = whitened(moments.CappedHessian, cap=1e90)
    rows = [([0.0, length], 0.0, weight) for length in np.geomspace(1e-3, 1e60, 190)]
    *found, null = totals(statistic, SQUARED, [*rows, NULL])
    assert max(far(one, null) for one in found) <= 1


def test_losses_without_working_weights_are_refused(monkeypatch):
    monkeypatch.setattr(SmoothedHinge, "weight_bound", None)
    problem = Problem(SmoothedHinge(), ElasticNet(), fit_intercept=False)
    with pytest.raises(ValueError, match="no working weight"):
        totals(whitened(moments.CappedHessian), problem, [NULL])


def test_the_bound_of_the_joint_release_is_attained():
    """By a record that the model is sure about, and wrong; by two whose gradients are opposite."""
    # In whitened coordinates the second column is half as long: these rows are as long as R.
    statistic = whitened(moments.LogisticStep, point=(1e5, 0.0))
    wrong, opposite = ([1e-3, 4.0], 0.0, 1.0), ([1e-3, -4.0], 0.0, 1.0)
    one, null = totals(statistic, LOGISTIC, [wrong, NULL])
    assert 0.999 < far(one, null) <= 1
    one, other = totals(statistic, LOGISTIC, [wrong, opposite], Adjacency.REPLACE_ONE)
    assert 0.999 < far(one, other) <= 1


def tightest(weight, margins):
    """Largest norm of what a record as long as the bound adds, over the sensitivity."""
    norms = []
    for margin in margins:
        statistic = whitened(moments.LogisticStep, point=(0.0, margin), row_norm=0.5)
        one, null = totals(statistic, LOGISTIC, [([0.0, 1.0], 1.0, weight), NULL])
        norms.append(far(one, null))
    return max(norms)


@pytest.mark.parametrize(("weight", "least"), [(1.0, 0.999), (0.3, 0.2), (1e8, 0.999)])
def test_the_joint_bound_holds_for_every_probability(weight, least):
    """It is attained where q is 0, and nearly so where q is (3 - sqrt(5)) / 2."""
    assert least < tightest(weight, np.linspace(-40, -6, 30)) <= 1
    assert least < tightest(weight, np.linspace(-3, 6, 181)) <= 1


# ---------------------------------------------------------------- several classes


def norms_of_classes(cls, points, row=(0.0, 4.0), n_classes=3, cap=2.0):
    """What a record of class 0 adds, over the sensitivity, with these margins of the classes."""
    problem = Problem(Multinomial(n_classes), ElasticNet(), fit_intercept=False)
    norms = []
    for margins in points:
        statistic = whitened(cls, point=[np.zeros(n_classes), np.array(margins) / 4.0], cap=cap)
        one, null = totals(statistic, problem, [(row, 0, 1.0), (row, 0, 0.0)])
        norms.append(far(one, null))
    return norms


def test_the_joint_bound_of_classes_is_attained_and_never_exceeded(rng):
    """By a sure, wrong class; two wrong classes, with even odds, come to it, too."""
    sure, even, *others = norms_of_classes(
        moments.LogisticStep,
        [[-90.0, 90.0, 0.0], [-90.0, 0.0, 0.0], *10 ** rng.uniform(-2, 2, (300, 1))
         * rng.standard_normal((300, 3))],
    )  # fmt: skip
    assert 0.9999 < sure <= 1
    assert 0.9999 < even <= 1
    assert max(others) <= 1
    assert max(norms_of_classes(moments.ScoreSquares, [[-90.0, 90.0, 0.0]])) <= 1
    capped = norms_of_classes(moments.ScoreSquares, [[-90.0, 90.0, 0.0]], cap=1.0)
    assert 0.9999 < capped[0] <= 1
    five = 10 ** rng.uniform(-2, 2, (300, 1)) * rng.standard_normal((300, 5))
    assert max(norms_of_classes(moments.LogisticStep, five, n_classes=5)) <= 1
    two = norms_of_classes(moments.LogisticStep, [[-90.0, 90.0], [0.0, 0.0]], n_classes=2)
    assert max(two) <= 1


@pytest.mark.parametrize("groups", [False, True])
def test_the_statistics_of_classes_are_what_they_say(rng, groups):
    """Against products written out, in coordinates of contrasts; with groups, of means."""
    X, labels, norm, cap = rng.standard_normal((60, 2)), rng.integers(0, 3, 60), 1.2, 0.7
    point, transform = (
        rng.standard_normal((3, 3)),
        np.array([[1.0, 0.5, 0.0], [0.0, 0.8, 0.1], [0.2, 0.0, 1.5]]),
    )
    codes = rng.permutation(np.append(np.arange(12), rng.integers(0, 12, 48)))
    codes = codes if groups else np.arange(60)
    mean = np.array([(codes == one) / (codes == one).sum() for one in range(codes.max() + 1)])
    Z = np.column_stack([X, np.ones(60)])
    u = Z @ transform
    lengths = np.linalg.norm(u, axis=1)
    f = np.minimum(1.0, norm / lengths)
    f = np.minimum(f, np.sqrt(np.maximum(1.0, norm / lengths)))
    loss = Multinomial(3)
    C, p = loss.contrasts, np.exp(Z @ point)
    p /= p.sum(axis=1, keepdims=True)
    r = (p - np.eye(3)[labels]) @ C
    capped = r * f[:, None] * np.minimum(1, cap / np.linalg.norm(r * f[:, None], axis=1))[:, None]
    terms = np.stack([np.kron(c, v) for c, v in zip(capped, f[:, None] * u, strict=True)])
    hessian, gradient = np.zeros((6, 6)), np.zeros(6)
    for row, q, s, one, share in zip(u, p, r, f, mean.sum(axis=0), strict=True):
        hessian += (
            share * one**2 * np.kron(C.T @ (np.diag(q) - np.outer(q, q)) @ C, np.outer(row, row))
        )
        gradient += share * one**2 * np.kron(s, row)
    public = Public(
        len(mean), 2, 3, Adjacency.ZERO_OUT, 1.0, 1e-6, **({"unit": "group"} if groups else {})
    )
    context = PublicContext(public, Problem(loss, ElasticNet()), 1.0)
    rows = MemorySource.of(X, labels)
    if groups:
        rows = MemorySource(Records.of(X, labels), groups=Groups.of(codes, len(mean)))
    about = point, Coordinates(transform), norm, cap
    found = moments.LogisticStep(*about).total(rows, context)
    np.testing.assert_allclose(unpack_gram(found[:-6], 6), hessian, rtol=1e-6, atol=1e-9)
    unit = moments.gradient_weight(loss) * norm
    np.testing.assert_allclose(found[-6:] / unit, gradient, rtol=1e-6)
    found = moments.ScoreSquares(*about).total(rows, context)
    expected = (mean @ terms).T @ (mean @ terms)
    np.testing.assert_allclose(unpack_gram(found, 6), expected, rtol=1e-6, atol=1e-9)
    cut = (f < 1) | (np.linalg.norm(r * f[:, None], axis=1) > cap)
    found = CutCount(*about).total(rows, context)
    assert found[0] == pytest.approx(mean.sum(axis=0)[cut].sum(), rel=1e-6)


# ---------------------------------------------------------------- two classes, again


def test_counts_with_the_mean_weight_are_what_they_say(rng):
    """Its bound is attained by a record that is cut and undecided; a null record adds nothing."""
    turn = Coordinates(np.array([[3.0, 1.0], [0.0, 0.5]]))
    statistic = CutCount(np.array([[0.0], [0.01]]), turn, 2.0, 1.5, with_weights=True)
    one, null = totals(statistic, LOGISTIC, [([500.0, 0.0], 0.0, 1.0), NULL])
    assert not null.any()
    assert 0.99 < far(one, null) <= 1
    X, labels = rng.standard_normal((50, 2)), rng.integers(0, 2, 50) * 1.0
    public = Public(50, 2, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, has_intercept=False)
    point = np.array([[0.4], [-0.2]])
    statistic = CutCount(point, turn, 2.0, 1.5, with_weights=True)
    rows = MemorySource.of(X, labels[:, None], constant=0.0)
    q = 1 / (1 + np.exp(-X @ point[:, 0]))
    found = statistic.total(rows, PublicContext(public, LOGISTIC, 1.0))
    assert found[1] == pytest.approx((4 * q * (1 - q)).sum())
    assert found[0] == (np.linalg.norm(X @ turn.matrix, axis=1) > 2.0).sum()


def test_the_weight_of_the_gradient_is_the_least_that_will_do():
    q = np.linspace(0, 1, 100_001)
    least = math.sqrt(np.max(q * (1 - q) ** 2 / (2 - q)))
    assert least == pytest.approx(math.sqrt((5 * math.sqrt(5) - 11) / 2), rel=1e-9)
    assert least < moments.GRADIENT_WEIGHT < 1.001 * least


@pytest.mark.parametrize("in_rows", [False, True])
def test_the_statistics_are_what_they_say(rng, monkeypatch, in_rows):
    monkeypatch.setattr(moments, "MOST_ROUNDING", 1.0 if in_rows else 0.0)
    """Against sums over records, written out."""
    X, y = rng.standard_normal((50, 2)), rng.standard_normal(50)
    point, transform = np.array([0.4, -0.2]), np.array([[3.0, 1.0], [0.0, 0.5]])
    norm, cap = 2.0, 0.8
    matrices, labels = {"hessian": 0.0, "score_squares": 0.0}, (y > 0).astype(float)
    joint, cut, gradient = [0.0, 0.0], 0, np.zeros(2)
    for row, target, label in zip(X, y, labels, strict=True):
        u = transform.T @ row
        f = min(1.0, norm / np.linalg.norm(u))
        h = f
        r = h * (row @ point - target)
        gradient += f * np.clip(r, -cap, cap) * u
        matrices["hessian"] += (abs(r) <= cap) * f * h * np.outer(u, u)
        matrices["score_squares"] += np.clip(r, -cap, cap) ** 2 * f**2 * np.outer(u, u)
        cut += f < 1 or abs(r) > cap
        q = 1 / (1 + np.exp(-row @ point))
        joint[0] += q * (1 - q) * f**2 * np.outer(u, u)
        joint[1] += f**2 * (q - label) * u
    public = Public(50, 2, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, has_intercept=False)
    rows = MemorySource.of(X, y[:, None], constant=0.0)
    about = point[:, None], Coordinates(transform), norm, cap
    context = PublicContext(public, SQUARED, 1.0)
    request = ShrunkGradientSum(point[:, None], about[1], norm, cap, True)
    found = request.total(rows, context)[:, 0]
    np.testing.assert_allclose(found, gradient, rtol=1e-10)
    for cls in (moments.CappedHessian, moments.ScoreSquares):
        found = unpack_gram(cls(*about).total(rows, context), 2)
        np.testing.assert_allclose(found, matrices[cls.kind], rtol=1e-12)
    assert CutCount(*about).total(rows, context) == cut
    rows = MemorySource.of(X, labels[:, None], constant=0.0)
    both_sums = moments.LogisticStep(*about).total(rows, PublicContext(public, LOGISTIC, 1.0))
    np.testing.assert_allclose(unpack_gram(both_sums[:-2], 2), joint[0], rtol=1e-12)
    unit = moments.GRADIENT_WEIGHT * norm
    np.testing.assert_allclose(both_sums[-2:] / unit, joint[1], rtol=1e-12)


@pytest.mark.parametrize("in_rows", [False, True])
def test_the_statistics_are_those_of_groups(rng, monkeypatch, in_rows):
    monkeypatch.setattr(moments, "MOST_ROUNDING", 1.0 if in_rows else 0.0)
    """Means over rows, and the squares of means, by hand."""
    codes = rng.permutation(np.append(np.arange(12), rng.integers(0, 5, 48)))
    X, y = rng.standard_normal((60, 2)), rng.standard_normal((60, 1))
    records = Records.of(X, y, row_bound=2.0)
    source = MemorySource(records, groups=Groups.of(codes, 12))
    transform = np.array([[1.0, 0.5, 0.0], [0.0, 0.8, 0.1], [0.2, 0.0, 1.5]])
    point, row_norm, cap = np.array([[0.5], [-0.2], [0.1]]), 1.2, 0.7
    about = point, Coordinates(transform), row_norm, cap
    Z = np.column_stack([X * records.shrink[:, None], np.ones(60)])
    u = Z @ transform
    f = np.minimum(1.0, row_norm / np.linalg.norm(u, axis=1))
    mean = np.array([(codes == group) / (codes == group).sum() for group in range(12)])

    def totals(statistic, loss, values):
        public = Public(12, 2, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=2.0, unit="group")
        context = PublicContext(public, Problem(loss, ElasticNet()), 1.0)
        rows = MemorySource(replace(records, targets=values), groups=Groups.of(codes, 12))
        return statistic.total(rows, context)

    plain = (Z @ point - y)[:, 0]
    h = f
    r = h * plain
    capped = np.clip(r, -cap, cap)
    terms = mean @ ((f * capped)[:, None] * u)
    kept = np.abs(r) <= cap
    found = unpack_gram(totals(moments.CappedHessian(*about), SquaredError(), y), 3)
    expected = np.einsum(
        "gi,ij,ik->jk", mean[:, kept], (f[:, None] * u)[kept], (h[:, None] * u)[kept]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    found = unpack_gram(totals(moments.ScoreSquares(*about), SquaredError(), y), 3)
    np.testing.assert_allclose(found, terms.T @ terms, rtol=1e-7)
    found = totals(CutCount(*about), SquaredError(), y)
    assert found[0] == pytest.approx(mean.sum(axis=0)[(f < 1) | ~kept].sum(), rel=1e-7)
    found = totals(CappedResiduals(point, cap), SquaredError(), y)
    assert found[0] == pytest.approx((mean @ np.clip(plain, -cap, cap)).sum(), rel=1e-7)
    labels = (y > 0).astype(float)
    q = 1 / (1 + np.exp(-(Z @ point)[:, 0]))
    found = totals(moments.LogisticStep(*about), Logistic(), labels)
    gradient = (mean @ ((f**2 * (q - labels[:, 0]))[:, None] * u)).sum(axis=0)
    unit = moments.GRADIENT_WEIGHT * row_norm
    np.testing.assert_allclose(found[-3:] / unit, gradient, rtol=1e-6)
    assert source.n_rows == 12


@pytest.mark.parametrize("row", [[1.7e308, 0.0], [1.7e308, -1.7e308]], ids=str)
@pytest.mark.parametrize(
    ("cls", "problem"),
    [
        (moments.CappedHessian, SQUARED),
        (moments.ScoreSquares, SQUARED),
        (moments.LogisticStep, LOGISTIC),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_rows_beyond_the_range_of_numbers_add_nothing(cls, problem, row):
    """In whitened coordinates they are infinite, and 0 times that would show they are there."""
    (found,) = totals(whitened(cls, point=(1.0, 1.0)), problem, [(row, 1.0, 1.0)])
    assert not found.any()


def test_the_joint_release_is_for_the_logistic_loss():
    with pytest.raises(ValueError, match="only for logistic losses"):
        totals(whitened(moments.LogisticStep), SQUARED, [NULL])


def test_weights_of_several_classes_are_summed_in_slices(monkeypatch, rng):
    problem = Problem(Multinomial(3), ElasticNet(), fit_intercept=False)
    context = PublicContext(
        Public(7, 2, 3, Adjacency.ZERO_OUT, 1.0, 1e-6, has_intercept=False), problem, 1.0
    )
    rows = MemorySource.of(rng.standard_normal((7, 2)), np.arange(7) % 3, constant=0.0)
    step = whitened(moments.LogisticStep, point=rng.standard_normal((2, 3)))
    whole = step.total(rows, context)
    monkeypatch.setattr(moments, "MOST_WEIGHTS", 8)  # two rows of two by two
    np.testing.assert_allclose(step.total(rows, context), whole, rtol=1e-12)
