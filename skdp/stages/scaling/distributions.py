"""Candidate distributions of columns, and their posterior given noisy histogram counts."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from skdp._numbers import Array, Indices, Mask
from skdp.oracle.releases.histograms import SIDE, STEPS

ZERO_SHARES = (0.3, 0.6, 0.9, 0.97, 0.995)  # shares of zeros in columns that hold many
# Centres of normal distributions in units of their scale, on the coarse and the fine grid. Beyond
# the last, one bin of magnitudes has all of the probability.
COARSE_CENTRES = (1.0, 2.0, 4.0, 8.0, 23.0)
FINE_CENTRES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 23.0)
# Log prior for each power of 2 between a scale and 1, and for each power of 4 where a column has
# zeros and few other values, which noise imitates most easily.
LOG_PRIOR_PER_OCTAVE, LOG_PRIOR_PER_OCTAVE_ZEROS = -0.25, -0.8
RANGE_IN_SCALES = 5.0  # half width of a clip range around the mean, without rare values
LOGNORMAL_STDS = (1.5, 3.0)  # standard deviations of the base-2 logarithm
# Scale of lognormal columns in units of the median, whatever the tail: a larger one would follow
# the tail alone. Targets get a larger one for the longer tail, as residuals are capped at a
# multiple of the scale.
LOGNORMAL_SCALE, LOGNORMAL_TARGET_SCALES = 2.0, (2.0, 4.0)
# Base-2 logarithms of the largest over the smallest nonzero magnitude in columns with many zeros,
# and the log prior of every width but the first.
LOG2_WIDTHS, LOG_PRIOR_WIDE = (0.5, 2.0), -2.0


@dataclass(frozen=True, eq=False)
class BinProbabilities:
    """Bin probabilities of candidate distributions, with their prior.

    Attributes
    ----------
    shapes : array of shape (n_distributions, n_bins)
        Rows add up to 1.
    log_prior : array of shape (n_distributions,)
    families, locations : arrays of int, of shape (n_distributions,)
        Features that columns may share: the family of a distribution, and where it lies.
    """

    shapes: Array
    log_prior: Array
    families: Indices
    locations: Indices

    @functools.cached_property
    def prior(self) -> Array:
        """Prior probability of each distribution."""
        weights = np.exp(self.log_prior - self.log_prior.max())
        return np.asarray(weights / weights.sum())

    @functools.cached_property
    def table(self) -> tuple[int, int]:
        """Numbers of families and of locations, whose table has a cell for each distribution."""
        return int(self.families.max()) + 1, int(self.locations.max()) + 1

    @functools.cached_property
    def n_in_cells(self) -> Array:
        """Numbers of distributions of a family (row) at a location (column)."""
        cells = np.ravel_multi_index((self.families, self.locations), self.table)
        return np.bincount(cells, minlength=math.prod(self.table)).reshape(self.table).astype(float)

    @functools.cached_property
    def half_squares(self) -> Array:
        """Half of the sum of the squared probabilities of each distribution."""
        return np.asarray(np.einsum("ij,ij->i", self.shapes, self.shapes) / 2)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Distributions that a column may have, one after the other for every column.

    Most distributions are out of the question, so that those left are few next to all.

    Attributes
    ----------
    n_columns : int
    column : array of int, in ascending order
        At least one of each column.
    distribution : array of int
    value : array
        Log likelihood, or likelihood, or posterior probability.
    """

    n_columns: int
    column: Indices
    distribution: Indices
    value: Array

    @functools.cached_property
    def _starts(self) -> Indices:
        return np.searchsorted(self.column, np.arange(self.n_columns))

    def of(self, columns: Indices) -> Candidates:
        """Return those of some columns, in ascending order, which are numbered anew."""
        places = np.full(self.n_columns, -1)
        places[columns] = np.arange(len(columns))
        column = places[self.column]
        kept = column >= 0
        return Candidates(len(columns), column[kept], self.distribution[kept], self.value[kept])

    def where(self, kept: Mask) -> Candidates:
        """Return some of them."""
        return replace(
            self,
            column=self.column[kept],
            distribution=self.distribution[kept],
            value=self.value[kept],
        )

    def likely(self) -> Candidates:
        """Return those whose log likelihood is not far below the highest of the column."""
        highest = np.maximum.reduceat(self.value, self._starts)
        return self.where(~(self.value < highest[self.column] - MAX_LOG_RATIO))

    def likelihoods(self) -> Candidates:
        """Return likely ones with their likelihoods, relative to the largest of the column."""
        kept = self.likely()
        highest = np.maximum.reduceat(kept.value, kept._starts)
        return replace(kept, value=np.exp(kept.value - highest[kept.column]))

    def normalised(self) -> Candidates:
        """Return them with values that add up to 1 for every column."""
        return replace(self, value=self.value / self.mean(np.array(1.0))[self.column])

    def mean(self, of_distributions: Array) -> Array:
        """Return, for each column, the sum of its values times a figure of every distribution."""
        figures = of_distributions
        factors = figures[self.distribution] if figures.ndim else figures
        return np.asarray(np.bincount(self.column, self.value * factors, self.n_columns), float)

    def by_label(self, labels: Indices, n_labels: int, values: Array) -> Array:
        """Return sums of values for every column (row) and label of distributions (column)."""
        cells = self.column * n_labels + labels
        sums = np.bincount(cells, values, self.n_columns * n_labels).astype(float, copy=False)
        return sums.reshape(self.n_columns, n_labels)

    def mixed(self, shapes: Array, rows: Indices) -> Array:
        """Return, for each column, the sum of its values times rows of shapes."""
        indptr = np.append(self._starts, len(self.column))
        weights = sparse.csr_array((self.value, rows, indptr), shape=(self.n_columns, len(shapes)))
        return np.asarray(weights @ shapes)

    def likeliest(self) -> Indices:
        """Return the first distribution of the largest value of every column."""
        largest = np.maximum.reduceat(self.value, self._starts)
        places = np.flatnonzero(self.value == largest[self.column])
        _, first = np.unique(self.column[places], return_index=True)
        return np.asarray(self.distribution[places[first]])


class _Collection:
    """Priors and labels of distributions while a grid is built."""

    def __init__(self) -> None:
        self.log_prior: list[float] = []
        self.families: dict[object, int] = {}
        self.labels: list[tuple[int, int]] = []

    def add(self, log_prior: float, family: object, location: int) -> None:
        """Add a distribution of a family at a location."""
        self.log_prior.append(log_prior)
        self.labels.append((self.families.setdefault(family, len(self.families)), location))

    def finished(self) -> tuple[Array, Indices, Indices]:
        """Return log priors, families and locations."""
        families, locations = np.array(self.labels).T
        return np.array(self.log_prior), families, locations


@dataclass(frozen=True, eq=False)
class Distributions:
    """A grid of candidate distributions: normal, lognormal, and zeros beside log-uniform values.

    Attributes
    ----------
    centre, scale : array of shape (n_normal,)
        Of normal distributions.
    log_median, log_std, positive : array of shape (n_lognormal,)
        Base-2 logarithm of the median, standard deviation of base-2 logarithms, and the share of
        positive values.
    zeros, least, sign, octaves : array of shape (n_with_zeros,)
        Share of zeros; the smallest magnitude of other values, their sign, and the base-2 logarithm
        of the largest magnitude over the smallest. Logarithms are uniform between.
    log_prior : array of shape (n_distributions,)
        Of all of them, in this order, as are the other attributes.
    families, locations : arrays of int, of shape (n_distributions,)
    """

    centre: Array
    scale: Array
    log_median: Array
    log_std: Array
    positive: Array
    zeros: Array
    least: Array
    sign: Array
    octaves: Array
    log_prior: Array
    families: Indices
    locations: Indices

    def below(self, points: Array, some: Indices) -> Array:
        """Return the distribution function at each point (column), of some distributions (rows).

        ``some`` are indices of distributions, in ascending order. ``points`` may have a row for
        each of them.
        """
        n_normal, n_simple = len(self.centre), len(self.centre) + len(self.log_median)
        first, second = np.searchsorted(some, (n_normal, n_simple))
        points = np.broadcast_to(points, (len(some), points.shape[-1]))
        one = some[:first]
        bells = ndtr((points[:first] - self.centre[one, None]) / self.scale[one, None])
        above_0 = points[first:] > 0
        with np.errstate(divide="ignore"):
            logs = np.log2(np.abs(points[first:]))
        logs, others = np.split(logs, [second - first])
        above_0, others_above_0 = np.split(above_0, [second - first])
        one = some[first:second] - n_normal
        within = ndtr((logs - self.log_median[one, None]) / self.log_std[one, None])
        positive = self.positive[one, None]
        skewed = 1 - positive + np.where(above_0, positive, positive - 1) * within
        one = some[second:] - n_simple
        within = (others - np.log2(self.least)[one, None]) / self.octaves[one, None]
        within = np.clip(within, 0.0, 1.0)
        zeros, is_positive = self.zeros[one, None], self.sign[one, None] > 0
        upwards = np.where(others_above_0, zeros + (1 - zeros) * within, 0.0)
        downwards = np.where(others_above_0, 1.0, (1 - zeros) * (1 - within))
        return np.vstack([bells, skewed, np.where(is_positive, upwards, downwards)])

    def shapes(self, inner_edges: Array, some: Indices) -> Array:
        """Probabilities of bins between edges, the outer ones open, under some distributions."""
        below = self.below(inner_edges, some)
        shapes = np.empty((len(below), below.shape[1] + 1))
        shapes[:, 0], shapes[:, -1] = below[:, 0], 1 - below[:, -1]
        np.subtract(below[:, 1:], below[:, :-1], out=shapes[:, 1:-1])
        return np.maximum(shapes, 0.0, out=shapes)

    def binned(self, inner_edges: Array) -> BinProbabilities:
        """Return the bin probabilities of all distributions between these edges."""
        shapes = self.shapes(inner_edges, np.arange(len(self.log_prior)))
        return BinProbabilities(shapes, self.log_prior, self.families, self.locations)

    @functools.cached_property
    def moments(self) -> tuple[Array, Array, Array]:
        """Mean, scale, and scale as a target, of each distribution.

        For lognormal ones: the median, and a multiple of it.
        """
        median = 2.0**self.log_median
        others = 1 - self.zeros
        log = math.log(2) * self.octaves
        mean = others * self.sign * self.least * np.expm1(log) / log
        square = others * self.least**2 * np.expm1(2 * log) / (2 * log)
        means = self.centre, median * (2 * self.positive - 1), mean
        scale = np.sqrt(square - mean**2)
        of_target = np.select(
            [self.log_std == one for one in LOGNORMAL_STDS], LOGNORMAL_TARGET_SCALES
        )
        sizes, sizes_of_targets = (
            np.concatenate([self.scale, skewed * median, scale])
            for skewed in (LOGNORMAL_SCALE, of_target)
        )
        return np.concatenate(means), sizes, sizes_of_targets

    @functools.cached_property
    def half_width(self) -> Array:
        """Half width of each clip range in units of the scale; it includes rare nonzero values."""
        means, sizes, _ = self.moments
        rest = len(self.centre) + len(self.log_median)
        farthest = self.sign * self.least * 2.0**self.octaves
        widths = np.full(len(sizes), RANGE_IN_SCALES)
        widths[rest:] = np.maximum(np.abs(farthest - means[rest:]) / sizes[rest:], RANGE_IN_SCALES)
        return widths


def distributions(
    centres: tuple[float, ...], bells: int, widths: tuple[float, ...]
) -> Distributions:
    """Build a grid: columns of any scale, centred or not, skewed or not, with or without zeros.

    Parameters
    ----------
    centres : tuple of float
        Centres of normal distributions other than 0, in units of the scale.
    bells : int
        Number of scales of normal distributions for each power of 2.
    widths : tuple of float
        Base-2 logarithms of the largest over the smallest nonzero magnitude.
    """
    collected = _Collection()
    normal, skewed, with_zeros = [], [], []
    # The more centres there are, the less likely is each.
    among = math.log(len(COARSE_CENTRES) / len(centres))
    for step in range(-36 * bells, 36 * bells + 1):
        log_median, location = step / bells, step + 2 * STEPS * bells
        size, usual = 2.0**log_median, LOG_PRIOR_PER_OCTAVE * abs(log_median) - math.log(bells)
        # Many users standardise: unit size around 0 is likely.
        normal.append((0.0, size))
        collected.add(usual + 1 + 5 * (log_median == 0), "bell", location)
        for centre in centres:
            farther = min(location + max(0, round(bells * math.log2(centre))), 4 * STEPS * bells)
            for sign in (-1.0, 1.0):
                normal.append((sign * centre * size, size))
                collected.add(usual + among - (sign < 0), ("bell", sign * centre), farther)
    for size, log_std, positive in itertools.product(
        range(-36, 37), LOGNORMAL_STDS, (1.0, 0.0, 0.5)
    ):
        skewed.append((size, log_std, positive))
        usual = LOG_PRIOR_PER_OCTAVE * abs(size) - (positive < 1)
        collected.add(usual, ("skewed", log_std, positive), (size + 2 * STEPS) * bells)
    # Zeros and values of similar size, as indicators have: 0 and 1 above all.
    steps = np.arange(-2 * STEPS, 2 * STEPS, widths[0])
    for log_median, zeros, sign, octaves in itertools.product(steps, ZERO_SHARES, (-1, 1), widths):
        with_zeros.append((zeros, 2.0**log_median, sign, octaves))
        usual = LOG_PRIOR_PER_OCTAVE_ZEROS * abs(log_median) / 2 + math.log(widths[0] / 2)
        usual += (
            2 * (log_median == 0 and sign > 0) - (sign < 0) + LOG_PRIOR_WIDE * (octaves > widths[0])
        )
        location = min(round((log_median + 2 * STEPS + octaves / 2) * bells), 4 * STEPS * bells)
        collected.add(usual, ("zeros", zeros, sign, octaves), location)
    centre, scale = np.array(normal).T
    log_median, log_std, positive = np.array(skewed).T
    others = *np.array(with_zeros).T, *collected.finished()
    return Distributions(centre, scale, log_median, log_std, positive, *others)


@functools.cache
def binned_by_magnitude() -> BinProbabilities:
    """Bin probabilities of the coarse grid, whose members differ in their magnitudes."""
    return distributions(COARSE_CENTRES, bells=1, widths=(2.0,)).binned(magnitude_edges())


@functools.cache
def support_by_magnitude(trim: float) -> tuple[Indices, Indices]:
    """First and last bin between the tails of every distribution of the coarse grid."""
    return between_tails(binned_by_magnitude().shapes, trim)


def between_tails(probabilities: Array, trim: Array | float) -> tuple[Indices, Indices]:
    """First and last bin outside of tails of this probability."""
    first = np.argmax(np.cumsum(probabilities, axis=1) > trim, axis=1)
    back = np.argmax(np.cumsum(probabilities[:, ::-1], axis=1) > trim, axis=1)
    return first, probabilities.shape[1] - 1 - back


@functools.cache
def fine_distributions() -> tuple[Distributions, BinProbabilities]:
    """Return the fine grid, whose neighbours have nearly equal counts, and its probabilities."""
    candidates = distributions(FINE_CENTRES, bells=4, widths=LOG2_WIDTHS)
    return candidates, candidates.binned(magnitude_edges())


def magnitude_edges() -> Array:
    """Inner edges of the magnitudes: negative ones from large to small, positive ones back."""
    edges = 4.0 ** (np.arange(SIDE) - STEPS)
    return np.concatenate([-edges[::-1], edges])


@functools.cache
def fine_distributions_in_bins(n_bins: int, half_width: float) -> BinProbabilities:
    """Bin probabilities of the fine grid in equal bins of a range around 0."""
    edges = np.linspace(-half_width, half_width, n_bins + 1)[1:-1]
    return fine_distributions()[0].binned(edges)


MODEL_ERROR = 0.01  # error of bin probabilities, as a share of the rows: no candidate is exact
# Candidates are dropped whose log likelihood is lower than the best by more, which saves time. A
# column's own magnitudes decide, whichever other columns are looked at.
MAX_LOG_RATIO = 50.0
EM_ITERATIONS, MAX_COLUMNS = 6, 64  # of the empirical Bayes fit
COLUMNS_PER_CHUNK = 256  # bounds the memory for a number per column and distribution
VALUES_PER_CHUNK = 2**15  # bounds that for a number per candidate and bin
PRIOR_STRENGTH = 5.0  # pseudo-columns


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts of bins of each column, shape (n_columns, n_bins), and the noise on them."""

    counts: Array
    std: Array
    n_rows: int

    def of(self, columns: Indices) -> NoisyCounts:
        """Return those of some columns."""
        return NoisyCounts(self.counts[columns], self.std[columns], self.n_rows)

    @functools.cached_property
    def fine(self) -> Candidates:
        """Likely distributions of the fine grid, if the counts are of magnitudes."""
        return self.candidates(fine_distributions()[1])

    @property
    def _factor(self) -> Array:
        """Rows over the variance of counts."""
        return self.n_rows / (self.std**2 + (MODEL_ERROR * self.n_rows) ** 2)

    def candidates(self, binned: BinProbabilities) -> Candidates:
        """Return likely distributions of each column, with log likelihoods up to a constant."""
        fit = self.counts @ binned.shapes.T
        fit -= self.n_rows * binned.half_squares
        fit *= self._factor[:, None]
        least = fit.max(axis=1, keepdims=True) - MAX_LOG_RATIO
        column, distribution = np.nonzero(~(fit < least))
        return Candidates(len(fit), column, distribution, fit[column, distribution])

    def added_to(self, candidates: Candidates, shapes: Array, which: Indices) -> Candidates:
        """Return candidates, their log likelihood including these bins.

        ``which`` is the row of ``shapes`` with the bin probabilities of each candidate.
        """
        factor, column = self._factor, candidates.column
        half_squares = np.einsum("ij,ij->i", shapes, shapes) / 2
        logs, step = candidates.value.copy(), max(VALUES_PER_CHUNK // shapes.shape[1], 1)
        for start in range(0, len(which), step):
            some = slice(start, start + step)
            fit = np.einsum("ij,ij->i", self.counts[column[some]], shapes[which[some]])
            fit -= self.n_rows * half_squares[which[some]]
            logs[some] += factor[column[some]] * fit
        return replace(candidates, value=logs)


def _common_prior(likelihoods: Candidates, binned: BinProbabilities) -> tuple[Array, Array]:
    """Return empirical Bayes priors: factors of families (column), and of locations.

    There is a row for each column, and a last one for columns that were not used. Columns share the
    frequencies of families and of locations, each on its own, as there are too many distributions
    to count them one by one. The prior of a column leaves the column itself out, so that its own
    counts are not used twice.
    """
    n_families, n_locations = binned.table
    distribution = likelihoods.distribution
    families, locations = binned.families[distribution], binned.locations[distribution]
    cell_of_family = likelihoods.column * n_families + families
    cell_of_location = likelihoods.column * n_locations + locations
    known_families, known_locations = (
        PRIOR_STRENGTH * np.bincount(labels, binned.prior, n_labels)
        for labels, n_labels in zip((binned.families, binned.locations), binned.table, strict=True)
    )
    posterior = likelihoods.value * binned.prior[distribution]
    posterior /= np.bincount(likelihoods.column, posterior)[likelihoods.column]
    of_families = likelihoods.by_label(families, n_families, posterior)
    of_locations = likelihoods.by_label(locations, n_locations, posterior)

    def own_factors() -> tuple[Array, Array]:
        from_others = np.maximum(of_families.sum(axis=0) - of_families, 0.0)
        location_from_others = np.maximum(of_locations.sum(axis=0) - of_locations, 0.0)
        return _factors(
            binned, known_families + from_others, known_locations + location_from_others
        )

    for _ in range(EM_ITERATIONS - 1):
        family, location = own_factors()
        posterior = likelihoods.value * np.take(family, cell_of_family)
        posterior *= np.take(location, cell_of_location)
        of_families = likelihoods.by_label(families, n_families, posterior)
        of_locations = likelihoods.by_label(locations, n_locations, posterior)
        whole = of_families.sum(axis=1, keepdims=True)
        of_families, of_locations = of_families / whole, of_locations / whole
    of_all = known_families + of_families.sum(axis=0), known_locations + of_locations.sum(axis=0)
    others = _factors(binned, of_all[0][None], of_all[1][None])
    family, location = (np.vstack(both) for both in zip(own_factors(), others, strict=True))
    return family, location


def _factors(
    binned: BinProbabilities, of_families: Array, of_locations: Array
) -> tuple[Array, Array]:
    """Factors of a prior: of each family, and of each location.

    A distribution is as probable as its family, and as its location among those of the family.
    """
    same_family = of_locations @ binned.n_in_cells.T
    return of_families / of_families.sum(axis=1, keepdims=True) / same_family, of_locations


def posteriors_of(
    fit: Callable[[Indices], Candidates], n_columns: int, binned: BinProbabilities, pooled: bool
) -> Iterator[tuple[Indices, Candidates]]:
    """Yield columns of the data and the posterior of their distributions, chunk by chunk.

    ``fit`` returns candidates of columns with their log likelihood.
    """
    every = np.arange(n_columns)
    parts = [every[i : i + COLUMNS_PER_CHUNK] for i in range(0, n_columns, COLUMNS_PER_CHUNK)]
    few = fit(every).likelihoods() if len(parts) == 1 else None
    family = location = row = None
    if pooled and n_columns > 1:
        used = every[:: -(-n_columns // MAX_COLUMNS)]
        if few is None:
            among = fit(used).likelihoods()
        else:
            among = few if len(used) == n_columns else few.of(used)
        family, location = _common_prior(among, binned)
        row = np.full(n_columns, len(used))
        row[used] = np.arange(len(used))
    for columns in parts:
        likelihoods = fit(columns).likelihoods() if few is None else few
        distribution = likelihoods.distribution
        if family is None or location is None or row is None:
            prior = binned.prior[distribution]
        else:
            rows = row[columns][likelihoods.column]
            prior = location[rows, binned.locations[distribution]]
            prior *= family[rows, binned.families[distribution]]
        yield columns, replace(likelihoods, value=likelihoods.value * prior).normalised()


def median_bin(posterior: Candidates, bins: Indices) -> Indices:
    """Posterior median of a bin that each distribution has."""
    each = bins[posterior.distribution]
    sums = posterior.by_label(each, int(bins.max()) + 1, posterior.value)
    return np.asarray(np.argmax(np.cumsum(sums, axis=1) >= 0.5, axis=1))
