"""A table of distributions that columns may have, and their posterior given noisy histograms.

A candidate is a family (normal, lognormal, or zeros beside others) at a location, a power of the
root of 2. Its probabilities of bins are known, so noisy counts have a likelihood: normal, with the
known noise and an error for what no candidate explains. Columns of one fit share the frequencies
of families and of locations, by empirical Bayes; targets have the prior of the table.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from skdp._numbers import AnyArray, Array, Indices
from skdp.oracle.releases.histograms import SIDE, STEPS

# All figures are choices of ours; docs/research/defaults.rst has the evidence for each.
LOCATIONS_PER_OCTAVE = 2  # for each power of 2
# Centres of normal distributions other than 0, in units of their scale. Beyond the last, one bin of
# magnitudes has all of the probability.
CENTRES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0, 23.0)
LOG2_STDS = (1.5, 3.0)  # standard deviations of base-2 logarithms of lognormal columns
ZERO_SHARES = (0.3, 0.6, 0.9, 0.97, 0.995)  # shares of zeros in columns that hold many
# Base-2 logarithms of the largest over the smallest nonzero magnitude in these.
LOG2_WIDTHS = (0.5, 2.0)
# Log priors: for each power of 2 between a scale, or a location, and 1; of unit normal
# distributions, as many users standardise; of zeros and ones, next to others with zeros; and of
# the wider ranges of these.
LOG_PRIOR_PER_OCTAVE, LOG_PRIOR_UNIT, LOG_PRIOR_INDICATOR, LOG_PRIOR_WIDE = -0.25, 5.0, 2.0, -2.0
LOG_PRIOR_PER_OCTAVE_ZEROS = -0.6  # of columns with zeros, which noise imitates most easily
# Scale of lognormal columns in units of the median, whatever the tail: a larger one would follow
# the tail alone. Targets get a larger one for the longer tail, as residuals are capped at a
# multiple of the scale.
LOGNORMAL_SCALES = (2.0, 4.0)
RANGE_IN_SCALES = 5.0  # half width of a clip range around the mean, without rare values

TAIL_SHARE = 0.004  # share of the records outside of a range at either end
MODEL_ERROR = 0.01  # error of bin probabilities, as a share of the rows: no candidate is exact
EM_ITERATIONS, MAX_COLUMNS = 3, 64  # of the empirical Bayes fit
PRIOR_STRENGTH = 5.0  # pseudo-columns
# Factor on a likelihood: not 0, as nothing else may fit a column at all. In float32 the product of
# two is not 0 either.
UNLIKELY = np.sqrt(np.finfo(np.float32).tiny)
REACH_OCTAVES = 12  # farther from the size of a range, all its bins but one are empty


def _steps(octaves: int) -> Array:
    """Return base-2 logarithms of the locations up to so many octaves from 1."""
    most = octaves * LOCATIONS_PER_OCTAVE
    return np.arange(-most, most + 1) / LOCATIONS_PER_OCTAVE


def locations() -> Array:
    """Return the base-2 logarithms of the locations."""
    return _steps(2 * STEPS)


@dataclass(frozen=True, eq=False)
class Families:
    """Distributions at location 1: normal, lognormal, and zeros beside log-uniform values.

    A distribution is a member of a family at a location, the unit of its values. Arrays have one
    entry for each family: normal ones, lognormal ones, those with zeros.

    Attributes
    ----------
    centre, spread : array of shape (n_normal,)
        Mean and standard deviation.
    log_std, positive, origin, unit : array of shape (n_lognormal,)
        Standard deviation of base-2 logarithms, and the share of positive values, of magnitudes
        with the median 1; mean and standard deviation to standardise them by, or 0 and 1.
    zeros, sign, octaves : array of shape (n_with_zeros,)
        Share of zeros; the sign of other values, and the base-2 logarithm of the largest of their
        magnitudes over the smallest. Logarithms are uniform between.
    """

    centre: Array
    spread: Array
    log_std: Array
    positive: Array
    origin: Array
    unit: Array
    zeros: Array
    sign: Array
    octaves: Array

    @functools.cached_property
    def skewed(self) -> Indices:
        """Families of standardised lognormal columns."""
        return len(self.centre) + np.flatnonzero(self.origin > 0)

    def below(self, points: Array) -> Array:
        """Return the distribution functions at points, shape (n_families, *points.shape)."""

        def each(values: Array) -> Array:
            return values.reshape(-1, *(1,) * points.ndim)

        bells = ndtr((points - each(self.centre)) / each(self.spread))
        moved = each(self.origin) + points * each(self.unit)
        with np.errstate(divide="ignore"):
            logs, moved_logs = np.log2(np.abs(points)), np.log2(np.abs(moved))
        positive, within = each(self.positive), ndtr(moved_logs / each(self.log_std))
        skewed = 1 - positive + np.where(moved > 0, positive, positive - 1) * within
        zeros, within = each(self.zeros), np.clip(logs / each(self.octaves), 0.0, 1.0)
        upwards = np.where(points > 0, zeros + (1 - zeros) * within, 0.0)
        downwards = np.where(points > 0, 1.0, (1 - zeros) * (1 - within))
        return np.concatenate([bells, skewed, np.where(each(self.sign) > 0, upwards, downwards)])

    def probabilities(self, inner_edges: Array, at: Array) -> Array:
        """Return probabilities of bins between edges, the outer ones open, at locations.

        The shape is (n_families, n_locations, n_bins).
        """
        below = self.below(inner_edges / 2.0 ** at[:, None])
        nothing = np.zeros((*below.shape[:-1], 1))
        return np.maximum(np.diff(below, axis=-1, prepend=nothing, append=nothing + 1), 0.0)

    @functools.cached_property
    def prior(self) -> Array:
        """Prior probability of each distribution, shape (n_families, n_locations).

        What lies below 0, or on both sides of it, is less likely by a factor of e.
        """
        at = locations()
        sizes = np.zeros(len(self.centre) + len(self.positive) + len(self.zeros))
        sizes[: len(self.centre)] = np.log2(self.spread)
        of_families = np.concatenate([
            np.where(self.centre == 0, 1.0, -math.log(len(CENTRES) / 2) - (self.centre < 0)),
            -1.0 * (self.positive < 1) - math.log(len(LOG2_STDS)) * (self.origin > 0),
            LOG_PRIOR_WIDE * (self.octaves > LOG2_WIDTHS[0]) - (self.sign < 0) - math.log(2),
        ])  # fmt: skip
        per_octave = np.full((len(sizes), 1), LOG_PRIOR_PER_OCTAVE)
        per_octave[-len(self.zeros) :] = LOG_PRIOR_PER_OCTAVE_ZEROS
        log = of_families[:, None] + per_octave * np.abs(np.add.outer(sizes, at))
        standardised = np.flatnonzero(np.append(self.centre == 0, self.origin > 0))
        log[standardised, at == 0] += LOG_PRIOR_UNIT
        log[-len(self.zeros) :][self.sign > 0, at == 0] += LOG_PRIOR_INDICATOR
        prior = np.exp(log)
        return np.asarray(prior / prior.sum(), np.float32)

    @functools.cached_property
    def moments(self) -> tuple[Array, Array, Array, Array]:
        """Mean, scale, scale as a target, and half width of the range in scales, at location 1.

        For lognormal ones, unless they are standardised: the median, and a multiple of it. Ranges
        include rare nonzero values.
        """
        others, log = 1 - self.zeros, math.log(2) * self.octaves
        mean = others * self.sign * np.expm1(log) / log
        scale = np.sqrt(others * np.expm1(2 * log) / (2 * log) - mean**2)
        longest, moved = self.log_std == LOG2_STDS[-1], self.origin > 0
        of_column = np.where(moved, 1.0, LOGNORMAL_SCALES[0])
        of_target = np.where(longest & ~moved, LOGNORMAL_SCALES[1], of_column)
        simple = np.zeros(len(self.centre) + len(longest))
        rare = np.abs(self.sign * 2.0**self.octaves - mean) / scale
        return (
            np.concatenate([self.centre, np.where(moved, 0.0, 2 * self.positive - 1), mean]),
            np.concatenate([self.spread, of_column, scale]),
            np.concatenate([self.spread, of_target, scale]),
            np.maximum(np.append(simple, rare), RANGE_IN_SCALES),
        )


def _moments_of_lognormal(log2_std: float) -> tuple[float, float]:
    """Return mean and standard deviation of a median of 1 and no values in the upper tail."""
    std, end = log2_std * math.log(2), -ndtri(TAIL_SHARE)
    mean, square = (math.exp((k * std) ** 2 / 2) * ndtr(end - k * std) for k in (1, 2))
    return mean, math.sqrt(square - mean**2)


@functools.cache
def families() -> Families:
    """Return the families of columns, centred or not, skewed or not, with or without zeros."""
    centre = np.array([0.0, *CENTRES, *(-one for one in CENTRES)])
    unit = np.maximum(np.abs(centre), 1.0)
    # Where spreads are below the distance of two locations, there are centres half way between.
    between, narrow = 2 ** (0.5 / LOCATIONS_PER_OCTAVE), unit > 2
    bells = np.hstack(
        [[centre, 1 + 0 * unit] / unit, between * ([centre, 1 + 0 * unit] / unit)[:, narrow]]
    )
    skewed = [(*one, 0.0, 1.0) for one in itertools.product(LOG2_STDS, (1.0, 0.0, 0.5))]
    skewed += [(one, 1.0, *_moments_of_lognormal(one)) for one in LOG2_STDS]
    with_zeros = np.array(list(itertools.product(ZERO_SHARES, (-1.0, 1.0), LOG2_WIDTHS))).T
    return Families(*bells, *np.array(skewed).T, *with_zeros)


@dataclass(frozen=True, eq=False)
class Binned:
    """Probabilities of bins, shape (n_families, n_locations, n_bins), in single precision."""

    probabilities: AnyArray

    @classmethod
    def of(cls, inner_edges: Array, at: Array) -> Binned:
        """Return those of bins between edges, the outer ones open, at locations."""
        return cls(families().probabilities(inner_edges, at).astype(np.float32))

    @functools.cached_property
    def half_squares(self) -> AnyArray:
        """Half of the sum of the squared probabilities of each distribution."""
        return np.asarray(np.einsum("ijk,ijk->ij", self.probabilities, self.probabilities) / 2)

    @functools.cached_property
    def by_bin(self) -> AnyArray:
        """Probabilities of each bin, one row for each: products with them take half the time."""
        return np.ascontiguousarray(self.probabilities.reshape(-1, self.probabilities.shape[-1]).T)

    @functools.cached_property
    def support(self) -> tuple[Indices, Indices]:
        """First and last bin between the tails of each distribution."""
        return between_tails(self.probabilities, TAIL_SHARE)

    def log_likelihood(self, noisy: NoisyCounts) -> AnyArray:
        """Return log likelihoods up to a constant, shape (n_columns, n_families, n_locations)."""
        shares = (noisy.counts / noisy.n_rows).astype(np.float32)
        precision = 1 / (noisy.noise**2 + MODEL_ERROR**2)
        fit = (shares @ self.by_bin).reshape(len(shares), *self.half_squares.shape)
        fit -= self.half_squares
        fit *= precision.astype(np.float32)[:, None, None]
        return np.asarray(fit)


@functools.cache
def by_magnitude() -> Binned:
    """Return probabilities of magnitudes of every distribution."""
    side = 4.0 ** (np.arange(SIDE) - STEPS)
    return Binned.of(np.concatenate([-side[::-1], side]), locations())


@functools.lru_cache(maxsize=32)
def in_bins(low: float, high: float, n_bins: int) -> Binned:
    """Return probabilities of equal bins of a range, at locations near that of the range."""
    edges = np.linspace(low, high, n_bins + 1)[1:-1]
    return Binned.of(edges, _steps(REACH_OCTAVES))


class BinnedRanges:
    """Distributions in equal bins of the range of each column.

    Probabilities depend on the unit of a range only through the location relative to it, so that
    ranges of one kind, which are many, have one table.
    """

    def __init__(self, low: Array, high: Array, n_bins: int) -> None:
        largest = np.maximum(np.abs(low), np.abs(high))
        unit = np.round(np.log2(largest) * LOCATIONS_PER_OCTAVE)
        size = 2.0 ** (unit / LOCATIONS_PER_OCTAVE)
        kinds, self._kind = np.unique((low + 1j * high) / size, return_inverse=True)
        self._n_bins = n_bins
        self._tables = [in_bins(one.real, one.imag, n_bins) for one in kinds]
        # Location relative to the unit: which of them is the first of the table, and the end.
        n_locations, n_near = len(locations()), len(_steps(REACH_OCTAVES))
        shift = unit.astype(int) + n_locations // 2 - n_near // 2
        self._slices = [
            (slice(max(one, 0), one + n_near), slice(max(-one, 0), n_locations - one))
            for one in np.clip(shift, 1 - n_near, n_locations - 1).tolist()
        ]

    def _parts(self, columns: Indices) -> Iterator[tuple[Binned, Indices]]:
        for kind in np.unique(self._kind[columns]):
            yield self._tables[kind], np.flatnonzero(self._kind[columns] == kind)

    def log_likelihood(self, bins: NoisyCounts, columns: Indices) -> AnyArray:
        """Return log likelihoods of columns, shape (n_columns, n_families, n_locations)."""
        logs = np.empty((len(columns), *families().prior.shape), np.float32)
        for table, part in self._parts(columns):
            fits = table.log_likelihood(bins.of(columns[part]))
            for one, fit in zip(part, fits, strict=True):
                to, of = self._slices[columns[one]]
                logs[one, :, : to.start], logs[one, :, to.stop :] = fit[:, :1], fit[:, -1:]
                logs[one, :, to] = fit[:, of]
        return logs

    def mixed(self, posterior: AnyArray, columns: Indices) -> Array:
        """Return the expected probabilities of bins, shape (n_columns, n_bins)."""
        shapes = np.empty((len(columns), self._n_bins))
        for table, part in self._parts(columns):
            weights = np.zeros((len(part), *table.half_squares.shape), np.float32)
            for one, weight in zip(part, weights, strict=True):
                of, to = self._slices[columns[one]]
                weight[:, to] = posterior[one, :, of]
                weight[:, 0] += posterior[one, :, : of.start].sum(axis=1)
                weight[:, -1] += posterior[one, :, of.stop :].sum(axis=1)
            flat = table.probabilities.reshape(-1, self._n_bins)
            shapes[part] = weights.reshape(len(part), -1) @ flat
        return shapes


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts of bins of each column, shape (n_columns, n_bins), and the noise on them."""

    counts: Array
    std: Array
    n_rows: int

    @classmethod
    def alike(cls, counts: Array, std: float, n_rows: int) -> NoisyCounts:
        """Return counts of columns with the same noise."""
        return cls(counts, np.full(len(counts), std), n_rows)

    @property
    def noise(self) -> Array:
        """Noise on the counts of each column, as a share of the rows."""
        return self.std / self.n_rows

    @functools.cached_property
    def fit_by_magnitude(self) -> AnyArray:
        """Log likelihoods of counts of magnitudes, which are not to be changed in place."""
        return by_magnitude().log_likelihood(self)

    def of(self, columns: Indices) -> NoisyCounts:
        """Return those of some columns, by number; itself if these are all."""
        if len(columns) == len(self.counts):
            return self
        return NoisyCounts(self.counts[columns], self.std[columns], self.n_rows)


def _likelier_prior(likelihoods: Array) -> tuple[Array, Array]:
    """Return common priors, without skewed standardised families if columns fit better without.

    Each column of a table that lies below 0 may look like one of these: all of them decide.
    """
    prior = families().prior
    others = prior.copy()
    others[families().skewed] *= UNLIKELY
    evidence, *with_skewed = _common_prior(likelihoods, prior)
    of_others, *without = _common_prior(likelihoods, others)
    # They are likely a priori, but a few columns far from 0 are no table of standardised ones.
    odds = min(LOG_PRIOR_UNIT, -LOG_PRIOR_PER_OCTAVE * len(likelihoods))
    (family, location), of_more = with_skewed if evidence + odds >= of_others else without
    return family[:, :, None] * location[:, None], np.multiply.outer(*of_more)


def _common_prior(likelihoods: Array, prior: Array) -> tuple[float, list[Array], list[Array]]:
    """Return the evidence of empirical Bayes priors, those of columns, and that of others.

    Columns share the frequencies of families and of locations, each on its own, as there are too
    many distributions to count them one by one: a prior is the product of these two. The prior of a
    column leaves the column itself out, so that its own counts are not used twice.
    """
    posterior = likelihoods * prior
    shares = [posterior.sum(axis=2), posterior.sum(axis=1)]
    known = [PRIOR_STRENGTH * prior.sum(axis=1), PRIOR_STRENGTH * prior.sum(axis=0)]
    for _ in range(EM_ITERATIONS):
        for one in shares:
            one /= one.sum(axis=1, keepdims=True)
        of_more = [before + one.sum(axis=0) for before, one in zip(known, shares, strict=True)]
        family, location = own = [
            np.maximum(one - share, before)
            for one, share, before in zip(of_more, shares, known, strict=True)
        ]
        shares = [
            family * np.matmul(likelihoods, location[:, :, None])[:, :, 0],
            location * np.matmul(family[:, None], likelihoods)[:, 0],
        ]
    products = [one.sum(axis=1) for one in (shares[0], *own)]
    return np.log(products[0] / products[1] / products[2]).sum(), own, of_more


def posteriors(
    log_likelihood: Callable[[Indices], Array], n_columns: int, pooled: bool
) -> Iterator[tuple[Indices, Array]]:
    """Yield columns and the posterior of their distributions, a chunk at a time.

    ``log_likelihood`` returns that of columns, shape (n_columns, n_families, n_locations). Columns
    that are ``pooled`` share a prior, which the first chunk determines.
    """
    step, prior = -(-n_columns // MAX_COLUMNS), families().prior
    for start in range(step):
        columns = np.arange(start, n_columns, step)
        values = log_likelihood(columns)
        values -= values.max(axis=(1, 2), keepdims=True)
        np.exp(values, out=values)
        # Their scale is 1, or less where rare large values make up the variance.
        elsewhere = np.flatnonzero((locations() < -2) | (locations() > 0))
        values[:, families().skewed[:, None], elsewhere] *= UNLIKELY
        own = prior
        if pooled and start == 0 and n_columns > 1:
            own, prior = _likelier_prior(values)
        values *= own
        values /= values.sum(axis=(1, 2), keepdims=True)
        yield columns, values


def between_tails(probabilities: Array, trim: Array | float) -> tuple[Indices, Indices]:
    """First and last bin outside of tails of this probability."""
    first = np.argmax(np.cumsum(probabilities, axis=-1) > trim, axis=-1)
    back = np.argmax(np.cumsum(probabilities[..., ::-1], axis=-1) > trim, axis=-1)
    return first, probabilities.shape[-1] - 1 - back


def median_bin(posterior: Array, bins: Indices) -> Indices:
    """Posterior median of a bin that each distribution has."""
    sums = [np.bincount(bins.ravel(), one.ravel()) for one in posterior]
    return np.asarray(np.argmax(np.cumsum(sums, axis=1) >= 0.5, axis=1))
