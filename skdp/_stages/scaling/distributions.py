"""A table of distributions that columns may have, and their posterior given noisy histograms.

A candidate is a family (normal, lognormal, or zeros beside others) at a location, a power of the
root of 2. Its probabilities of bins are known, so noisy counts have a likelihood, normal or Laplace
as their noise is, with an error for counts that no candidate explains. Columns of one fit share the
frequencies of families and of locations, by empirical Bayes. Targets have the prior of the table.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from skdp._numbers import AnyArray, Array, Indices, Mask
from skdp._oracle.releases.histograms import SIDE, STEPS

# All figures are choices of ours. Docs/research/defaults.rst has the evidence for each. Centres of
# normal distributions other than 0, in units of their scale. Beyond the last, one bin of magnitudes
# has all of the probability.
CENTRES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 23.0)
LOG2_STDS = (1.5, 3.0)  # standard deviations of base-2 logarithms of lognormal columns
ZERO_SHARES = (0.3, 0.6, 0.9, 0.97, 0.995)  # shares of zeros in columns that hold many
# Base-2 logarithms of the largest over the smallest nonzero magnitude in these.
LOG2_WIDTHS = (0.5, 2.0)
# Log priors: for each power of 2 between a scale, or a location, and 1. Of unit normal
# distributions, as many users standardise. Of zeros and ones, next to others with zeros, and of the
# wider ranges of these.
LOG_PRIOR_PER_OCTAVE, LOG_PRIOR_UNIT, LOG_PRIOR_INDICATOR, LOG_PRIOR_WIDE = -0.25, 5.0, 2.0, -2.0
LOG_PRIOR_PER_OCTAVE_ZEROS = -0.6  # of columns with zeros, which noise imitates most easily
# Scale of lognormal columns in units of the median, whatever the tail: a larger one would only
# follow the tail.
LOGNORMAL_SCALE = 2.0
RANGE_IN_SCALES = 5.0  # half width of a clip range around the mean, without rare values

TAIL_SHARE = 0.004  # share of the records outside of a range at either end
MAX_RELATIVE_WIDTH = 0.5  # of a range far from 0, relative to its distance from 0
MODEL_ERROR = 0.01  # error of bin probabilities, as a share of the rows: no candidate is exact
EM_ITERATIONS, MAX_COLUMNS = 3, 64  # of the empirical Bayes fit
PRIOR_STRENGTH = 5.0  # pseudo-columns
# Logarithm of a factor on a likelihood, which is not 0, as nothing else may fit a column at all.
LOG_UNLIKELY = math.log(np.finfo(np.float32).tiny) / 2
# Logarithm of a posterior, next to the largest, that a sum in single precision does not show.
LOG_NEGLIGIBLE = math.log(np.finfo(np.float32).eps)
REACH = 24  # half octaves: farther from the size of a range, all its bins but one are empty

# ------------------------------------------------------------------ the table of distributions


def locations() -> Array:
    """Return the base-2 logarithms of the locations."""
    return _half_octaves(4 * STEPS)


def _half_octaves(most: int) -> Array:
    """Return base-2 logarithms from 1, both ways."""
    return np.arange(-most, most + 1) / 2


class Family(NamedTuple):
    """A distribution at location 1, the unit of its values, and its log prior at all locations.

    ``below`` is the distribution function, ``half_width`` half the width of its range in scales.
    Standardised skewed values have a scale of 1, or less where rare large ones make up the
    variance: at other locations they are unlikely.
    """

    below: Callable[[Array], Array]
    log_prior: Array
    mean: float
    scale: float
    half_width: float
    is_standardised: bool = False


def _log_prior(family: float, per_octave: float, at_1: float, log2_size: float = 0.0) -> Array:
    """Return the log prior at all locations: of a family, by octaves of its size from 1, and at 1.

    What lies below 0, or on both sides of it, is less likely by a factor of e.
    """
    at = locations()
    return np.asarray(family + per_octave * np.abs(at + log2_size) + at_1 * (at == 0))


def normal(centre: float, scale: float) -> Family:
    """Return a normal distribution. Its centre is in scales."""
    of_centre = 1.0 if centre == 0 else -math.log(len(CENTRES) / 2) - (centre < 0)
    at_1 = LOG_PRIOR_UNIT * (centre == 0)
    log_prior = _log_prior(of_centre, LOG_PRIOR_PER_OCTAVE, at_1, math.log2(scale))

    def below(values: Array) -> Array:
        return np.asarray(ndtr(values / scale - centre))

    return Family(below, log_prior, centre * scale, scale, RANGE_IN_SCALES)


def lognormal(log2_std: float, positive: float, is_standardised: bool = False) -> Family:
    """Return magnitudes with the median 1, and this share of positive values.

    Standardised ones have the mean 0 and standard deviation 1 without their upper tail. Others have
    the mean of signs, and a multiple of the median as their scale.
    """
    mean, std = 0.0, 1.0
    own, scale = 2 * positive - 1, LOGNORMAL_SCALE
    if is_standardised:
        own, scale = 0.0, 1.0
        of_log, end = log2_std * math.log(2), -ndtri(TAIL_SHARE)
        mean, square = (math.exp((k * of_log) ** 2 / 2) * ndtr(end - k * of_log) for k in (1, 2))
        std = math.sqrt(square - mean**2)
    of_family = -math.log(len(LOG2_STDS)) * is_standardised - (positive < 1)
    log_prior = _log_prior(of_family, LOG_PRIOR_PER_OCTAVE, LOG_PRIOR_UNIT * is_standardised)

    def below(values: Array) -> Array:
        raw = mean + std * values
        within = ndtr(np.log2(np.abs(raw)) / log2_std)
        return np.asarray(1 - positive + np.where(raw > 0, positive, positive - 1) * within)

    return Family(below, log_prior, own, scale, RANGE_IN_SCALES, is_standardised)


def with_zeros(zeros: float, sign: float, octaves: float) -> Family:
    """Return zeros, with this share, beside values of one sign that are log-uniform over octaves.

    Ranges include the values, which may be rare.
    """
    of_family = LOG_PRIOR_WIDE * (octaves > LOG2_WIDTHS[0]) - (sign < 0) - math.log(2)
    log_prior = _log_prior(of_family, LOG_PRIOR_PER_OCTAVE_ZEROS, LOG_PRIOR_INDICATOR * (sign > 0))
    others, log = 1 - zeros, math.log(2) * octaves
    mean = others * sign * math.expm1(log) / log
    scale = math.sqrt(others * math.expm1(2 * log) / (2 * log) - mean**2)
    half_width = max(abs(sign * 2.0**octaves - mean) / scale, RANGE_IN_SCALES)

    def below(values: Array) -> Array:
        nearer = others * np.clip(np.log2(np.abs(values)) / octaves, 0.0, 1.0)
        if sign < 0:
            return np.where(values > 0, 1.0, others - nearer)
        return np.where(values > 0, zeros + nearer, 0.0)

    return Family(below, log_prior, mean, scale, half_width)


@functools.cache
def families() -> tuple[Family, ...]:
    """Return the families of columns, centred or not, skewed or not, with or without zeros."""
    centres = 0.0, *CENTRES, *(-one for one in CENTRES)
    # Where spreads are below the distance of two locations, there are centres half way between.
    between = 2**0.25
    return (
        *(normal(one, 1 / max(abs(one), 1)) for one in centres),
        *(normal(one, between / abs(one)) for one in centres if abs(one) > 2),
        *itertools.starmap(lognormal, itertools.product(LOG2_STDS, (1.0, 0.0, 0.5))),
        *(lognormal(one, 1.0, is_standardised=True) for one in LOG2_STDS),
        *itertools.starmap(with_zeros, itertools.product(ZERO_SHARES, (-1.0, 1.0), LOG2_WIDTHS)),
    )


@functools.cache
def prior() -> AnyArray:
    """Return the prior probability of each distribution, shape (n_families, n_locations)."""
    prior = np.exp([one.log_prior for one in families()])
    return np.asarray(prior / prior.sum(), np.float32)


@functools.cache
def moments() -> AnyArray:
    """Return mean, scale, and half width in scales, of each distribution."""
    unit = 2.0 ** locations()
    each = [(one.mean * unit, one.scale * unit, one.half_width + 0 * unit) for one in families()]
    return np.swapaxes(each, 0, 1).reshape(3, -1).astype(np.float32)


@functools.cache
def log_prior() -> AnyArray:
    """Return the log prior of each distribution, far less for standardised ones of other scales."""
    elsewhere = (locations() < -2) | (locations() > 0)
    table = np.multiply.outer([one.is_standardised for one in families()], elsewhere)
    return np.asarray(np.log(prior()) + table * LOG_UNLIKELY, np.float32)


# ------------------------------------------------------------------ histograms


@dataclass(frozen=True)
class Ranges:
    """Lower and upper limit of the range of every column, or of every bin of it."""

    low: Array
    high: Array

    @property
    def width(self) -> Array:
        """Width of every range."""
        return self.high - self.low

    @property
    def farthest(self) -> Array:
        """Largest distance from 0 in every range."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def far_from_0(self) -> Mask:
        """Which ranges are short next to their distance from 0: a long tail's are not."""
        return self.width <= MAX_RELATIVE_WIDTH * np.maximum(self.low, -self.high)

    def have_distinct_bins(self, n_bins: int) -> Mask:
        """Which ranges may be narrower: floating point distinguishes values in such bins."""
        return self.width / n_bins > 2.0**-40 * self.farthest

    def rounded(self) -> Ranges:
        """Return ranges with ends at 0 or powers of 4, of which few kinds differ in more than unit.

        An end nearer to 0 than a sixteenth of the other one lies at that, or at 0.
        """
        least = 4.0 ** np.ceil(np.log2(self.farthest) / 2) / 16

        def outward(distance: Array) -> Array:
            log = np.log2(np.maximum(np.abs(distance), least)) / 2
            inward = np.where(distance > -least, 0.0, -(4.0 ** np.floor(log)))
            return np.where(distance > 0, 4.0 ** np.ceil(log), inward)

        return Ranges(-outward(-self.low), outward(self.high))

    def __getitem__(self, columns: Indices) -> Ranges:
        """Return the ranges of some columns."""
        return Ranges(self.low[columns], self.high[columns])

    def put(self, columns: Indices, other: Ranges) -> Ranges:
        """Return the ranges, others for columns by number."""
        low, high = self.low.copy(), self.high.copy()
        low[columns], high[columns] = other.low, other.high
        return Ranges(low, high)

    def where(self, chosen: Mask, other: Ranges) -> Ranges:
        """Return the ranges, others for the chosen columns."""
        return Ranges(*np.where(chosen, [other.low, other.high], [self.low, self.high]))


@dataclass(frozen=True, eq=False)
class Table:
    """Probabilities that distributions have of each bin, shape (n_bins, n_families * n_near).

    ``place`` is the number of each location among those near the range: probabilities depend on the
    unit of a range only through the location relative to it, so that ranges of one kind, which are
    many, have one table.
    """

    by_bin: AnyArray
    half_squares: AnyArray
    place: Indices | None = None

    @classmethod
    def of(cls, inner_edges: Array, at: Array) -> Table:
        """Return that of bins between edges, the outer ones open, at locations."""
        points = np.divide.outer(inner_edges, 2.0**at)
        with np.errstate(divide="ignore"):
            below = np.hstack([one.below(points) for one in families()])
        nothing = np.zeros((1, below.shape[1]))
        shares = np.diff(below, axis=0, prepend=nothing, append=nothing + 1)
        by_bin = np.maximum(shares, 0.0).astype(np.float32)
        return cls(by_bin, np.einsum("ij,ij->j", by_bin, by_bin) / 2)

    @functools.cached_property
    def support(self) -> tuple[Indices, Indices]:
        """First and last bin between the tails of each distribution."""
        return between_tails(self.by_bin.T, TAIL_SHARE)

    def log_likelihood(self, shares: Array, noise: Array, is_laplace: bool = False) -> AnyArray:
        """Return log likelihoods up to a constant, shape (n_columns, n_families, n_near)."""
        shares = shares.astype(np.float32)
        precision = (1 / (noise**2 + MODEL_ERROR**2)).astype(np.float32)[:, None]
        if is_laplace:
            fit = np.stack([-np.abs(one[:, None] - self.by_bin).sum(axis=0) for one in shares])
            fit *= np.sqrt(2 * precision)
        else:
            fit = shares @ self.by_bin
            fit -= self.half_squares
            fit *= precision
        return np.asarray(fit.reshape(len(shares), len(prior()), -1))

    def add_near(self, total: AnyArray, fit: AnyArray) -> None:
        """Add log likelihoods at locations near the range. Farther ones are as the last of them."""
        assert self.place is not None
        last = fit.shape[2] - 1
        start = max(int(np.searchsorted(self.place, 1)) - 1, 0)
        stop = min(int(np.searchsorted(self.place, last)) + 1, len(self.place))
        total[:, :, :start] += fit[:, :, :1]
        first, end = self.place.take([start, stop - 1]).tolist()
        total[:, :, start:stop] += fit[:, :, first : end + 1]
        total[:, :, stop:] += fit[:, :, last:]

    def mixed(self, posterior: AnyArray, near: Indices) -> AnyArray:
        """Return the expected probabilities of bins, shape (n_columns, n_bins)."""
        if self.place is not None:
            n_near = self.by_bin.shape[1] // len(prior())
            place = np.take(self.place, near % len(self.place))
            near = near // len(self.place) * n_near + place
        return np.asarray(posterior @ self.by_bin[:, near].T)


@functools.cache
def by_magnitude() -> Table:
    """Return probabilities of magnitudes of every distribution."""
    side = 4.0 ** (np.arange(SIDE) - STEPS)
    return Table.of(np.concatenate([-side[::-1], side]), locations())


@functools.lru_cache(maxsize=32)
def _in_bins(low: float, high: float, n_bins: int) -> Table:
    """Return probabilities of equal bins of a range, at locations near that of the range."""
    return Table.of(np.linspace(low, high, n_bins + 1)[1:-1], _half_octaves(REACH))


def in_bins(low: float, high: float, n_bins: int) -> Table:
    """Return probabilities of equal bins of a range. Farther locations are as the last ones."""
    unit = round(2 * math.log2(max(abs(low), abs(high))))
    size = 2.0 ** (unit / 2)
    place = np.clip(np.arange(-4 * STEPS, 4 * STEPS + 1) - unit, -REACH, REACH) + REACH
    return replace(_in_bins(low / size, high / size, n_bins), place=place)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Noisy shares of the rows by sign and magnitude, for each column.

    Attributes
    ----------
    shares : array of shape (n_columns, n_bins)
    noise : array of shape (n_columns,)
        Standard deviation of the noise on each share of a column.
    is_laplace : bool, default=False
        Whether the noise is Laplace's, and not normal.
    """

    shares: Array
    noise: Array
    is_laplace: bool = field(default=False, kw_only=True)

    def z_of_largest(self, n_counts: int, more: Array | float = 0.0) -> AnyArray:
        """Return the threshold of many noisy counts, for the law of their noise."""
        return z_of_largest(n_counts, more, self.is_laplace)

    @functools.cached_property
    def edges(self) -> Ranges:
        """Lower and upper edge of every bin: magnitudes below 0 go from large to small."""
        return Ranges(*(np.broadcast_to(one, self.shares.shape) for one in magnitude_bounds()))

    @functools.cached_property
    def _by_magnitude(self) -> AnyArray:
        return by_magnitude().log_likelihood(self.shares, self.noise, self.is_laplace)

    def add_log_likelihood(self, total: AnyArray) -> None:
        """Add log likelihoods to a total in place, shape (n_columns, n_families, n_locations)."""
        total += self._by_magnitude

    def of(self, columns: Indices) -> Self:
        """Return that of some columns, by number. Itself if these are all."""
        if len(columns) == len(self.shares):
            return self
        arrays = (one.name for one in fields(self) if not one.kw_only)
        return replace(self, **{name: getattr(self, name)[columns] for name in arrays})


@dataclass(frozen=True, eq=False)
class Bins(Histogram):
    """Noisy shares of the rows in equal bins of ranges."""

    ranges: Ranges

    @functools.cached_property
    def edges(self) -> Ranges:
        n_edges = self.shares.shape[1] + 1
        edges = np.linspace(self.ranges.low, self.ranges.high, n_edges, axis=1)
        return Ranges(edges[:, :-1], edges[:, 1:])

    def add_log_likelihood(self, total: AnyArray) -> None:
        for table, columns in self._tables:
            own, some = total[columns], (self.shares[columns], self.noise[columns])
            table.add_near(own, table.log_likelihood(*some, self.is_laplace))
            total[columns] = own

    def mixed(self, posterior: AnyArray, near: Indices) -> Array:
        """Return the expected probabilities of bins, for a posterior of some distributions."""
        shapes = np.empty(self.shares.shape)
        for table, columns in self._tables:
            shapes[columns] = table.mixed(posterior[columns], near)
        return shapes

    @functools.cached_property
    def _tables(self) -> list[tuple[Table, Indices]]:
        """Tables of ranges, and the columns with each of them."""
        ranges, number = np.unique(self.ranges.low + 1j * self.ranges.high, return_inverse=True)
        return [
            (in_bins(one.real, one.imag, self.shares.shape[1]), np.flatnonzero(number == place))
            for place, one in enumerate(ranges.tolist())
        ]


def z_of_largest(n_counts: int, more: Array | float = 0.0, is_laplace: bool = False) -> AnyArray:
    """Return the threshold of many noisy counts: one standard deviation above the largest.

    That is the expected largest one of as many values that are only noise, and ``more`` standard
    deviations. A Laplace variable exceeds its threshold as rarely as a normal one exceeds its own.
    """
    z = math.sqrt(2 * math.log(max(n_counts, 1))) + 1 + np.asarray(more)
    return np.asarray(-(math.log(2) + log_ndtr(-z)) / math.sqrt(2) if is_laplace else z)


def magnitude_bounds() -> tuple[Array, Array]:
    """Return the lower and upper edge of every bin of magnitudes, negative ones first.

    Negative ones go from large to small. Zero has no width.
    """
    edges = 4.0 ** (np.arange(SIDE + 1) - STEPS)
    low = np.concatenate([-edges[:0:-1], [0.0], edges[:-1]])
    return low, -low[::-1]


# ------------------------------------------------------------------ the posterior


def _with_shared_prior(likelihoods: AnyArray, near: Indices) -> tuple[AnyArray, AnyArray]:
    """Return posteriors by empirical Bayes priors, not normalised, and the prior of other columns.

    Columns share the frequencies of families and of locations, each on its own, as there are too
    many distributions to count them one by one: a prior is the product of these two. The prior of a
    column leaves the column itself out, so that its own counts are not used twice. Likelihoods are
    those of the distributions with these numbers.
    """
    groups = [*map(EqualColumns.of, np.divmod(near, prior().shape[1]))]
    known = [PRIOR_STRENGTH * prior().sum(axis=1), PRIOR_STRENGTH * prior().sum(axis=0)]
    values = likelihoods * prior().take(near)
    for _ in range(EM_ITERATIONS):
        values /= values.sum(axis=1, keepdims=True)
        shares = [np.zeros((len(values), len(one)), np.float32) for one in known]
        for share, group in zip(shares, groups, strict=True):
            share[:, group.distinct] = group.sums(values)
        of_more = [before + one.sum(axis=0) for before, one in zip(known, shares, strict=True)]
        values = likelihoods.copy()
        for more, share, before, group in zip(of_more, shares, known, groups, strict=True):
            values *= np.take(np.maximum(more - share, before), group.numbers, axis=1)
    return values, np.multiply.outer(*of_more)


class EqualColumns(NamedTuple):
    """Columns of a matrix with the same number: the distinct ones, and where each starts."""

    numbers: Indices
    distinct: Indices
    order: Indices
    starts: Indices

    @classmethod
    def of(cls, numbers: Indices) -> Self:
        """Return the groups of columns with these numbers, each from 0 to 255."""
        order = np.argsort(numbers.astype(np.uint8), kind="stable")  # quick for bytes
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        return cls(numbers, numbers[order[starts]], order, starts)

    def sums(self, values: AnyArray) -> AnyArray:
        """Return the sums of the columns of each distinct number."""
        return np.add.reduceat(np.take(values, self.order, axis=1), self.starts, axis=1)


def posteriors(
    histograms: Sequence[Histogram], pooled: bool
) -> Iterator[tuple[Indices, Indices, AnyArray]]:
    """Yield columns, numbers of distributions and their posterior, a chunk of columns at a time.

    Columns that are ``pooled`` share a prior, which the first chunk determines. The posterior of
    other distributions than those of the numbers is negligible in single precision.
    """
    n_columns, of_others = len(histograms[0].shares), prior()
    step = -(-n_columns // MAX_COLUMNS)
    for start in range(step):
        columns = np.arange(start, n_columns, step)
        logs = np.repeat(log_prior()[None], len(columns), axis=0)
        for one in histograms:
            one.of(columns).add_log_likelihood(logs)
        logs = logs.reshape(len(columns), -1)
        largest = logs.max(axis=1, keepdims=True)
        near = np.flatnonzero((logs > largest + LOG_NEGLIGIBLE).any(axis=0))
        values = np.exp(logs[:, near] - largest) / prior().take(near)
        if pooled and start == 0 and n_columns > 1:
            values, of_others = _with_shared_prior(values, near)
        else:
            values *= of_others.take(near)
        yield columns, near, values / values.sum(axis=1, keepdims=True)


def between_tails(probabilities: Array, trim: Array | float) -> tuple[Indices, Indices]:
    """First and last bin outside of tails of this probability."""
    first = np.argmax(np.cumsum(probabilities, axis=-1) > trim, axis=-1)
    back = np.argmax(np.cumsum(probabilities[..., ::-1], axis=-1) > trim, axis=-1)
    return first, probabilities.shape[-1] - 1 - back


def median_bin(posterior: AnyArray, bins: Indices) -> Indices:
    """Posterior median of a bin that each distribution has."""
    groups = EqualColumns.of(bins)
    sums = np.cumsum(groups.sums(posterior), axis=1)
    return np.asarray(groups.distinct[np.argmax(sums >= 0.5, axis=1)])
