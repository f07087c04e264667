"""The stage that scores a given model: tables and sums of facts about rows, with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from skdp._numbers import AnyArray, Array
from skdp._oracle import InfluenceSquares, Oracle, Public, Solution, Stage, TableCounts, UnitSum

# Scores of two classes are compared as log-odds. A first table counts them in equal cells up to the
# largest log-odds, in steps of 1/32. Its quantiles are the edges of the bins of a second one.
# Choices of ours.
LARGEST_LOG_ODDS, FINE_CELLS = 8.0, 512
FINE_SHARE = 0.2  # part of the two tables' common share that goes to the first
FINE_EDGES = np.linspace(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, FINE_CELLS - 1)
# Fewest and most bins of the second table. The quantiles of few rows are noisy, and their bins
# unequal, so that they hide more than equal ones: with 16 bins intervals of 400 heavy-tailed rows,
# kept apart from the tests, covered 0.92, with 24 0.95. The most is a bound on the time that a
# table takes.
LEAST_BINS, MOST_BINS = 24, 200
# Between the ranking scores of one subgroup and the next. Scores themselves lie within twice the
# largest log-odds on either side of 0.
SUBGROUP_DISTANCE = 8 * LARGEST_LOG_ODDS
LEAST_MEAN = 1e-3  # in a deviance, next to the largest target
RESOLUTION = 2.0**-44  # of sums of facts


@dataclass(frozen=True)
class Totals:
    """Number of records, or noisy sum of their weights, to which the weights' scale is the unit.

    Attributes
    ----------
    total : float
    std : float, default=0.0
        Of the noise, relative to the total.
    design : float, default=1.0
        Noisy sum of squared weights over the sum of weights: how much more a mean varies from one
        draw of records to another than that of as many records of weight 1 (Kish 1965). Weights are
        assumed to be independent of losses.
    """

    total: float
    std: float = 0.0
    design: float = 1.0

    @property
    def n_effective(self) -> float:
        """Number of records of equal weight whose mean varies as much from draw to draw."""
        return self.total / self.design


@dataclass(frozen=True)
class NoisyTable:
    """A table of counts with noise, its cells adding up to the number of records.

    Attributes
    ----------
    counts : array of shape (n_classes, n_bins)
    std : float
        Noise on a count, before the cells were made to add up.
    n_cells : float, default=inf
        Of the table that was released and made to add up to a known number, of which this may be a
        subgroup's part. It is inf if it was not, as the sum of weights is private.
    design : float, default=1.0
        Of `Totals`.
    """

    counts: Array
    std: float
    n_cells: float = math.inf
    design: float = 1.0

    def variance(self, one: Array, other: Array | None = None) -> float:
        """Covariance of the noise in two weighted sums of the cells.

        Making m cells add up to a known number subtracts the noise's mean from every cell, so that
        its covariance is ``std**2 (I - 1 1' / m)``.
        """
        other = one if other is None else other
        along = float(np.vdot(one, other)) - float(one.sum() * other.sum()) / self.n_cells
        return self.std**2 * along


@dataclass(frozen=True)
class NoisyMean:
    """Mean of a fact that is cut to [-1, 1], and the standard deviation of its noise."""

    value: float
    std: float


@dataclass(frozen=True)
class Deviance:
    """A deviance of Tweedie's family, and how D2, the share of it that is explained, follows.

    The deviance of a target y from a mean m is ``f(y) - f(m) - f'(m) (y - m)`` for a convex f, so
    that its mean about the mean of all targets is the mean of f(y) less f at that mean. A line that
    is added to f changes neither: it is chosen such that f is 0 at both ends of the targets.

    Attributes
    ----------
    power : float, default=0.0
        0, whose D2 is R2, or in [1, 2].
    least : float, default=-1.0
        Least target. The largest is 1. Positive for power 2, at least 0 for those between.
    largest : float, default=1.0
        Deviances above this count as this.
    """

    power: float = 0.0
    least: float = -1.0
    largest: float = 1.0

    def _convex(self, target: AnyArray | float) -> Array:
        p, y = self.power, np.asarray(target, dtype=np.float64)
        if p == 1:
            return np.asarray(2 * xlogy(y, y))
        return np.asarray(-2 * np.log(y) if p == 2 else 2 * y ** (2 - p) / ((1 - p) * (2 - p)))

    @property
    def _line(self) -> float:
        return float(self._convex(1.0) - self._convex(self.least)) / (1 - self.least)

    def potential(self, target: AnyArray | float) -> Array:
        """Return f, at most 0."""
        line = self._convex(self.least) + self._line * (np.asarray(target) - self.least)
        return np.asarray(self._convex(target) - line)

    def slope(self, mean: AnyArray | float) -> Array:
        """Return the derivative of f."""
        p, m = self.power, np.asarray(mean, dtype=np.float64)
        slope = 2 * np.log(m) + 2 if p == 1 else 2 * m ** (1 - p) / (1 - p)
        return np.asarray(slope - self._line)

    @property
    def depth(self) -> float:
        """How far below 0 f goes: its value where the derivative is 0."""
        p, line = self.power, self._line / 2
        lowest = math.exp(line - 1) if p == 1 else math.pow(line * (1 - p), 1 / (1 - p))
        return -float(self.potential(lowest))

    def of(self, targets: AnyArray | float, means: AnyArray | float) -> Array:
        """Return deviances of targets from means, which are positive but for power 0."""
        past = np.asarray(targets) - means
        exact = self.potential(targets) - self.potential(means) - self.slope(means) * past
        return np.asarray(np.maximum(exact, 0.0))

    def facts(self, targets: Array) -> tuple[Array, Array]:
        """Return the facts of targets that `DevianceMeans` are of, in [-1, 1]."""
        middle, half = (1 + self.least) / 2, (1 - self.least) / 2
        return (targets - middle) / half, 1 + 2 * self.potential(targets) / self.depth


@dataclass(frozen=True)
class DevianceMeans:
    """Noisy means that D2 is made of, of facts in [-1, 1], which are linear in three quantities.

    Attributes
    ----------
    deviances : NoisyMean
        Of ``2 d / largest - 1`` for deviances d of the model.
    targets : NoisyMean
        Targets, -1 for the least.
    potentials : NoisyMean
        Of ``1 + 2 f / depth``.
    deviance : Deviance
    total_std : float, default=0.0
        Of `Totals.std`, the noise in the total that all three were divided by.
    """

    deviances: NoisyMean
    targets: NoisyMean
    potentials: NoisyMean
    deviance: Deviance
    total_std: float = 0.0

    @property
    def residual(self) -> float:
        """Noisy mean deviance of the model."""
        return self.deviance.largest * (1 + self.deviances.value) / 2

    @property
    def half(self) -> float:
        """Half the range of targets, the unit of their fact."""
        return (1 - self.deviance.least) / 2

    @property
    def mean(self) -> float:
        """Noisy mean of the targets."""
        mean = 1 + self.half * (self.targets.value - 1)
        # A mean of 0 would make a deviance infinite.
        return min(max(mean, LEAST_MEAN), 1.0) if self.deviance.power else mean

    @property
    def _bend(self) -> float:
        """Standard deviation of what noise in the mean adds by the curvature of f there."""
        std = math.hypot(self.targets.std, self.targets.value * self.total_std)
        return float(self.mean**-self.deviance.power) * (self.half * std) ** 2

    @property
    def null(self) -> float:
        """Noisy mean deviance from the mean. Noise in the mean makes it too small by its square."""
        of = self.deviance
        mean = of.depth * (self.potentials.value - 1) / 2
        return mean - float(of.potential(self.mean)) + self._bend

    @property
    def noise(self) -> tuple[float, float, float]:
        """Variance of the noise in ``null - residual``, its covariance with `null`, and of that."""
        of = self.deviance
        slope = float(of.slope(self.mean)) * self.half
        along, around = slope * self.targets.std, of.depth * self.potentials.std / 2
        null = around**2 + along**2 + 2 * self._bend**2
        # Noise in the total divides all three.
        of_null = self.total_std * (
            of.depth * self.potentials.value / 2 - slope * self.targets.value
        )
        both = of_null - self.total_std * of.largest * self.deviances.value / 2
        model = (of.largest * self.deviances.std / 2) ** 2
        return null + model + both**2, null + both * of_null, null + of_null**2


@dataclass(frozen=True)
class ScoreStage(Stage):
    """Request the means and tables from which metrics follow.

    The results are by name, and of each subgroup in turn. Of all rows without subgroups.

    Parameters
    ----------
    means : tuple of (name, column, share)
        Facts whose means are requested.
    tables : tuple of (name, column, n_cells, share)
        Facts that are numbers of cells.
    ranking : tuple of (column, class column, share, bool) or None
        A score and the class, of two, by which its distribution is requested, and whether half of
        the bins divide the positives that the scores predict.
    explained : tuple of (name, columns, share, Deviance)
        The facts of `DevianceMeans`, which must be among the means: the mean square of a row's
        contribution to the numerator of D2 is requested after them. The result of this name has
        both.
    subgroups : tuple (column, n_subgroups) or None
        Fact that is the number of a row's subgroup. Every release is a table then, which a row adds
        one unit to, in the part of its subgroup: all subgroups together have the price of one
        under each relation, also where a record may move from one to another, or has rows in
        several. Scores for a ranking are moved by `SUBGROUP_DISTANCE` times this number.
    notes : tuple of str
        The privacy statement's sentences on assumptions of the metrics.
    totals : tuple of float
        Shares of the sum of weights and of the sum of their squares, if rows have weights.
    """

    means: tuple[tuple[str, int, float], ...] = ()
    tables: tuple[tuple[str, int, int, float], ...] = ()
    ranking: tuple[int, int, float, bool] | None = None
    explained: tuple[tuple[str, tuple[int, ...], float, Deviance], ...] = ()
    subgroups: tuple[int, int] | None = None
    share: float | None = None
    notes: tuple[str, ...] = ()
    totals: tuple[float, float] = (0.0, 0.0)

    def assumptions(self) -> tuple[str, ...]:
        return self.notes

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        totals = self._totals(oracle)
        groups = (0, 1) if self.subgroups is None else self.subgroups
        results: dict[str, Any] = {"totals": totals}
        means: dict[int, NoisyMean] = {}
        for name, column, share in self.means:
            if self.subgroups is not None:
                request = TableCounts(column, np.zeros(1), *groups, is_divided=True)
                results[name] = _noisy_tables(oracle, request, share, totals)
                continue
            answer, std = oracle.with_share(UnitSum(column), share)
            means[column] = NoisyMean(float(answer[0]) / totals.total, std / totals.total)
            results[name] = (means[column],)
        for name, columns, share, deviance in self.explained:
            model, targets, potentials = (means[one] for one in columns)
            of = DevianceMeans(model, targets, potentials, deviance, totals.std)
            results[name] = ((of, _mean_square_influence(oracle, of, columns, share, totals)),)
        for name, column, n_cells, share in self.tables:
            request = TableCounts(column, np.arange(1.0, n_cells) - 0.5, *groups)
            results[name] = _noisy_tables(oracle, request, share, totals)
        if self.ranking is not None:
            results["ranking"] = _ranking_tables(oracle, totals, *self.ranking, groups[1])
        return replace(solution, results=results)

    def _totals(self, oracle: Oracle) -> Totals:
        """Return the number of records, or request the sum of their weights."""
        if not oracle.public.weighted:
            return Totals(oracle.public.n_rows)
        of_weights, of_squares = self.totals
        (total,), std = oracle.with_share(TableCounts(0, np.empty(0)), of_weights)
        total = max(float(total), std, RESOLUTION)
        release = InfluenceSquares(np.zeros(oracle.public.n_features), 1.0)
        (squares,), noise = oracle.with_share(release, of_squares)
        # One standard deviation of its noise is added, so that it rarely is too small.
        design = min(max(float(squares), 0.0) + noise, total) / total
        return Totals(total, std / total, design)


def _ranking_tables(
    oracle: Oracle,
    totals: Totals,
    column: int,
    of_class: int,
    share: float,
    by_positives: bool,
    n_subgroups: int,
) -> tuple[NoisyTable, ...]:
    """Request scores by class, in bins with about as many rows of a subgroup each.

    The bins of all subgroups lie side by side in one table. A part of it is returned for each.
    """
    edges = _side_by_side([FINE_EDGES] * n_subgroups)
    table = _noisy_table(oracle, TableCounts(column, edges), FINE_SHARE * share, totals)
    fine = table.counts[0].reshape(n_subgroups, FINE_CELLS)
    n_rows = np.array([totals.total]) if n_subgroups == 1 else fine.sum(axis=1)
    expected = fine
    if n_subgroups > 1:
        # Where noise exceeds the counts of a small subgroup, bins follow those of all rows: these
        # are added to its own, as many as the noise in its size has standard deviations in rows.
        noise_of_size = table.std * math.sqrt(FINE_CELLS)
        expected = fine + noise_of_size / totals.total * fine.sum(axis=0)
    if by_positives:  # rows and predicted positives, each relative to their number
        chances = expit(np.linspace(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, FINE_CELLS))
        of_row = np.stack((np.ones(FINE_CELLS), chances))
        expected = expected * (1 / np.maximum(expected @ of_row.T, 1.0) @ of_row)
    edges_of = [
        quantiles(one, number_of_bins(oracle.public, float(rows)))
        for one, rows in zip(expected, n_rows, strict=True)
    ]
    statistic = TableCounts(column, _side_by_side(edges_of), of_class, 2)
    table = _noisy_table(oracle, statistic, (1 - FINE_SHARE) * share, totals)
    stops = np.cumsum([len(edges) + 1 for edges in edges_of])
    counts = np.split(table.counts, stops[:-1], axis=1)
    return tuple(replace(table, counts=one) for one in counts)


def _side_by_side(edges: list[Array]) -> Array:
    """Return the edges of all subgroups, moved apart, with one between each and the next."""
    parts = [edges[0]]
    for number, one in enumerate(edges[1:], start=1):
        parts += [np.array([(number - 0.5) * SUBGROUP_DISTANCE]), one + number * SUBGROUP_DISTANCE]
    return np.concatenate(parts)


def _mean_square_influence(
    oracle: Oracle, means: DevianceMeans, columns: tuple[int, ...], share: float, totals: Totals
) -> NoisyMean:
    """Request the mean square of ``d - ratio * deviance(y, mean)``, what a row adds to D2.

    d is the deviance of the model. ``ratio = 1 - D2`` and the mean are noisy themselves. With facts
    within [-1, 1] the parts lie between minus ratio times the larger of the deviances of the least
    and the largest target from the mean, and the largest that d counts as. So nothing is cut off by
    dividing by the larger of both. For R2 the mean square about any centre is no less than the
    variance.
    """
    of = means.deviance
    ratio = min(max(means.residual, 0.0), of.largest) / max(means.null, RESOLUTION)
    mean = min(max(means.mean, of.least), 1.0)
    furthest = float(np.max(of.of(np.array([of.least, 1.0]), mean)))
    bound = max(of.largest, ratio * furthest)
    slope = float(of.slope(mean))
    weights = np.zeros(oracle.public.n_features)
    along = ratio * slope * means.half
    weights[list(columns)] = of.largest / 2, along, -ratio * of.depth / 2
    at_middle = of.depth / 2 + float(of.potential(mean)) + slope * (1 - means.half - mean)
    offset = of.largest / 2 + ratio * at_middle
    release = InfluenceSquares(weights / bound, offset / bound)
    answer, std = oracle.with_share(release, share)
    mean, noise = float(answer[0]) / totals.total, max(std / totals.total, RESOLUTION)
    if oracle.public.weighted:  # the sum is of squares of weighted parts
        return NoisyMean(bound**2 * mean, bound**2 * noise)
    return NoisyMean(bound**2 / 2 * (1 + mean), bound**2 / 2 * noise)


def _noisy_table(
    oracle: Oracle, statistic: TableCounts, share: float, totals: Totals
) -> NoisyTable:
    """Request a table. Its cells are made to add up to n, which is public without weights."""
    answer, std = oracle.with_share(statistic, share)
    n_cells = math.inf
    if not oracle.public.weighted:
        answer, n_cells = answer + (totals.total - answer.sum()) / answer.size, answer.size
    counts = answer.reshape(statistic.n_classes, -1)
    return NoisyTable(counts, std, n_cells, totals.design)


def _noisy_tables(
    oracle: Oracle, statistic: TableCounts, share: float, totals: Totals
) -> tuple[NoisyTable, ...]:
    """Request a table, and return its rows, each as a part of it."""
    table = _noisy_table(oracle, statistic, share, totals)
    return tuple(replace(table, counts=row[None]) for row in table.counts)


def number_of_bins(public: Public, n_rows: float) -> int:
    """Return the number of bins of a table of scores, from a public or noisy number of rows.

    b bins of as many rows each hide the order of the rows within a bin. For classes of equal size
    whose densities rise and fall linearly from the lowest score to the highest, that subtracts ``1
    / (3 b**2)`` from an AUC of 5/6. The noise of the bins adds a standard deviation of ``1.08
    sqrt(b) / (mu n)``: 2 b counts, each weighed by its placement, at the table's share. So the bias
    is ``0.31 mu n / b**2.5`` times the noise, and less for unequal classes, whose noise is larger.
    An interval does not know of the bias: at a tenth of the noise it covers 0.949 for 0.95, which
    leaves room for classes that lie further apart. The least root mean square error has fewer bins,
    0.8 (mu n)**0.4, and covers 0.92.
    """
    rows = public.mu / public.sensitivity_factor * max(n_rows, 1.0)
    return int(np.clip(round((0.31 / 0.1 * rows) ** 0.4), LEAST_BINS, MOST_BINS))


def quantiles(fine: Array, n_bins: int) -> Array:
    """Edges of at most ``n_bins`` bins with about as many rows each, from noisy fine counts."""
    rising = np.cumsum(fine)
    below, above = np.maximum.accumulate(rising), np.minimum.accumulate(rising[::-1])[::-1]
    rising = (below + above) / 2
    aims = rising[-1] * np.arange(1, n_bins) / n_bins
    places = np.searchsorted(rising, aims)
    return np.unique(FINE_EDGES[np.clip(places, 0, len(FINE_EDGES) - 1)])
