"""Candidate distributions of columns, and their posterior given noisy histogram counts."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from skdp._numbers import Array, Indices
from skdp.oracle.kernels.histograms import SIDE, STEPS

ZERO_SHARES = (0.3, 0.6, 0.9, 0.97, 0.995)  # shares of zeros in columns that hold many
# Centres of normal distributions in units of their scale, on the coarse and the fine grid. Beyond the
# last, one bin of magnitudes has all of the probability.
COARSE_CENTRES = (1.0, 2.0, 4.0, 8.0, 23.0)
FINE_CENTRES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 23.0)
# Log prior of each power of 2 that a size lies away from 1, and of each power of 4 where a column
# holds zeros and little else, which noise imitates most easily.
LOG_PRIOR_PER_OCTAVE, LOG_PRIOR_PER_OCTAVE_ZEROS = -0.25, -0.8
RANGE_IN_SCALES = 5.0  # how far from its mean a column goes, in sizes, if no values are rare
LOGNORMAL_STDS = (1.5, 3.0)  # of lognormal columns, in powers of 2
# Size of lognormal columns, in medians, whatever the tail: more would be all tail. Targets get more
# for the longer tail, since residuals are capped at a multiple of this size.
LOGNORMAL_SCALE, LOGNORMAL_TARGET_SCALES = 2.0, (2.0, 4.0)
# Logarithmic widths, in powers of 2, of what columns with zeros hold beside them, and the log prior
# of all widths but the first.
LOG2_WIDTHS, LOG_PRIOR_WIDE = (0.5, 2.0), -2.0


@dataclass(frozen=True, eq=False)
class BinProbabilities:
    """Bin probabilities of shapes, and how likely each is before anything is asked.

    Attributes
    ----------
    shapes : array of shape (n_distributions, n_bins)
        Rows add up to 1.
    log_prior : array of shape (n_distributions,)
    kinds, places : arrays of int, of shape (n_distributions,)
        What columns may have in common: the kind of a shape, and where it lies.
    """

    shapes: Array
    log_prior: Array
    kinds: Indices
    places: Indices

    @functools.cached_property
    def prior(self) -> Array:
        """Probability of each shape before anything is asked."""
        found = np.exp(self.log_prior - self.log_prior.max())
        return np.asarray(found / found.sum())

    @functools.cached_property
    def table(self) -> tuple[int, int]:
        """Number of kinds and of places: every shape lies in one cell of their table."""
        return int(self.kinds.max()) + 1, int(self.places.max()) + 1

    @functools.cached_property
    def of_cells(self) -> sparse.csr_array:
        """Whether a shape (row) lies in a cell (column) of that table: 1 or 0."""
        cells = np.ravel_multi_index((self.kinds, self.places), self.table)
        return indicators(cells, math.prod(self.table))

    @functools.cached_property
    def n_in_cells(self) -> Array:
        """Return how many shapes there are of a kind (row) at a place (column)."""
        return np.asarray(self.of_cells.sum(axis=0)).reshape(self.table)


def indicators(labels: Indices, n_labels: int) -> sparse.csr_array:
    """One row for each label, with a 1 in its column."""
    n_rows = len(labels)
    parts = np.ones(n_rows), labels, np.arange(n_rows + 1)
    return sparse.csr_array(parts, shape=(n_rows, n_labels))


class _Collection:
    """Priors and labels of shapes in the making."""

    def __init__(self) -> None:
        self.log_prior: list[float] = []
        self.kinds: dict[object, int] = {}
        self.labels: list[tuple[int, int]] = []

    def add(self, log_prior: float, kind: object, place: int) -> None:
        """Add a shape of a kind at a place."""
        self.log_prior.append(log_prior)
        self.labels.append((self.kinds.setdefault(kind, len(self.kinds)), place))

    def finished(self) -> tuple[Array, Indices, Indices]:
        """Return log priors, kinds and places."""
        kinds, places = np.array(self.labels).T
        return np.array(self.log_prior), kinds, places


@dataclass(frozen=True, eq=False)
class Distributions:
    """Distributions that columns may follow: normal, lognormal, zeros with other values of similar size.

    Attributes
    ----------
    centre, deviation : array of shape (n_bells,)
        Of normal distributions.
    power, spread, positive : array of shape (n_lognormal,)
        Mean and deviation of base-2 logarithms, and the share of positive values.
    zeros, least, sign, octaves : array of shape (n_with_zeros,)
        Share of zeros; of other values the least size, and the base-2 logarithm of the largest next
        to it. They lie evenly in logarithms between.
    log_prior : array of shape (n_laws,)
        Of all of them, in this order, as are the other attributes.
    kinds, places : arrays of int, of shape (n_laws,)
    """

    centre: Array
    deviation: Array
    power: Array
    spread: Array
    positive: Array
    zeros: Array
    least: Array
    sign: Array
    octaves: Array
    log_prior: Array
    kinds: Indices
    places: Indices

    def below(self, points: Array, some: Indices) -> Array:
        """Return the probability of less than each point (column) under some distributions (rows).

        ``some`` are places of the distributions, in ascending order.
        """
        n_bells, n_simple = len(self.centre), len(self.centre) + len(self.power)
        one = some[some < n_bells]
        bells = ndtr((points - self.centre[one, None]) / self.deviation[one, None])
        size, above_0 = np.abs(points), points > 0
        with np.errstate(divide="ignore"):
            logs = np.log2(size)
        one = some[(some >= n_bells) & (some < n_simple)] - n_bells
        within = ndtr((logs - self.power[one, None]) / self.spread[one, None])
        positive = self.positive[one, None]
        skewed = 1 - positive + np.where(above_0, positive, positive - 1) * within
        one = some[some >= n_simple] - n_simple
        within = (logs - np.log2(self.least)[one, None]) / self.octaves[one, None]
        within = np.clip(within, 0.0, 1.0)
        zeros, is_positive = self.zeros[one, None], self.sign[one, None] > 0
        upwards = np.where(above_0, zeros + (1 - zeros) * within, 0.0)
        downwards = np.where(above_0, 1.0, (1 - zeros) * (1 - within))
        return np.vstack([bells, skewed, np.where(is_positive, upwards, downwards)])

    def shapes(self, inner_edges: Array, some: Indices) -> Array:
        """Probabilities of bins between these edges, the outer ones open, under some distributions."""
        below = self.below(inner_edges, some)
        ends = np.zeros((len(below), 1)), np.ones((len(below), 1))
        return np.maximum(np.diff(np.hstack([ends[0], below, ends[1]]), axis=1), 0.0)

    def binned(self, inner_edges: Array) -> BinProbabilities:
        """Return the shapes of all distributions in bins between these edges."""
        shapes = self.shapes(inner_edges, np.arange(len(self.log_prior)))
        return BinProbabilities(shapes, self.log_prior, self.kinds, self.places)

    @functools.cached_property
    def moments(self) -> tuple[Array, Array, Array]:
        """Mean, deviation, and deviation as a target, of each law.

        Of lognormal ones they are the median, and what is taken for a size.
        """
        median = 2.0**self.power
        others = 1 - self.zeros
        log = math.log(2) * self.octaves
        mean = others * self.sign * self.least * np.expm1(log) / log
        square = others * self.least**2 * np.expm1(2 * log) / (2 * log)
        means = self.centre, median * (2 * self.positive - 1), mean
        deviation = np.sqrt(square - mean**2)
        of_target = np.select(
            [self.spread == one for one in LOGNORMAL_STDS], LOGNORMAL_TARGET_SCALES
        )
        sizes, sizes_of_targets = (
            np.concatenate([self.deviation, skewed * median, deviation])
            for skewed in (LOGNORMAL_SCALE, of_target)
        )
        return np.concatenate(means), sizes, sizes_of_targets

    @functools.cached_property
    def half_width(self) -> Array:
        """How far from its mean each law goes, in sizes: to the other values of rare ones."""
        means, sizes, _ = self.moments
        rest = len(self.centre) + len(self.power)
        farthest = self.sign * self.least * 2.0**self.octaves
        found = np.full(len(sizes), RANGE_IN_SCALES)
        found[rest:] = np.maximum(np.abs(farthest - means[rest:]) / sizes[rest:], RANGE_IN_SCALES)
        return found


def distributions(
    offsets: tuple[float, ...], bells: int, widths: tuple[float, ...]
) -> Distributions:
    """Distributions of columns of any size, centred or not, skewed or not, with or without zeros.

    Parameters
    ----------
    offsets : tuple of float
        Centres of normal distributions, in deviations, beside 0.
    bells : int
        Number of sizes of normal distributions for each power of 2.
    widths : tuple of float
        Logarithmic widths of the other values where there are zeros, in powers of 2.
    """
    collected = _Collection()
    normal, skewed, with_zeros = [], [], []
    among = math.log(
        len(COARSE_CENTRES) / len(offsets)
    )  # the more there are, the less likely is each
    for step in range(-36 * bells, 36 * bells + 1):
        power, place = step / bells, step + 2 * STEPS * bells
        size, usual = 2.0**power, LOG_PRIOR_PER_OCTAVE * abs(power) - math.log(bells)
        # Many users standardise: unit size around 0 is likely.
        normal.append((0.0, size))
        collected.add(usual + 1 + 5 * (power == 0), "bell", place)
        for offset in offsets:
            farther = min(place + max(0, round(bells * math.log2(offset))), 4 * STEPS * bells)
            for sign in (-1.0, 1.0):
                normal.append((sign * offset * size, size))
                collected.add(usual + among - (sign < 0), ("bell", sign * offset), farther)
    for size, spread, positive in itertools.product(
        range(-36, 37), LOGNORMAL_STDS, (1.0, 0.0, 0.5)
    ):
        skewed.append((size, spread, positive))
        usual = LOG_PRIOR_PER_OCTAVE * abs(size) - (positive < 1)
        collected.add(usual, ("skewed", spread, positive), (size + 2 * STEPS) * bells)
    # Zeros and values of similar size, as indicators have: 0 and 1 above all.
    steps = np.arange(-2 * STEPS, 2 * STEPS, widths[0])
    for power, zeros, sign, octaves in itertools.product(steps, ZERO_SHARES, (-1, 1), widths):
        with_zeros.append((zeros, 2.0**power, sign, octaves))
        usual = LOG_PRIOR_PER_OCTAVE_ZEROS * abs(power) / 2 + math.log(widths[0] / 2)
        usual += 2 * (power == 0 and sign > 0) - (sign < 0) + LOG_PRIOR_WIDE * (octaves > widths[0])
        place = min(round((power + 2 * STEPS + octaves / 2) * bells), 4 * STEPS * bells)
        collected.add(usual, ("zeros", zeros, sign, octaves), place)
    centre, deviation = np.array(normal).T
    power, spread, positive = np.array(skewed).T
    others = *np.array(with_zeros).T, *collected.finished()
    return Distributions(centre, deviation, power, spread, positive, *others)


@functools.cache
def binned_by_magnitude() -> BinProbabilities:
    """Shapes of distributions whose magnitudes differ."""
    return distributions(COARSE_CENTRES, bells=1, widths=(2.0,)).binned(magnitude_edges())


@functools.cache
def ends_by_magnitude(trim: float) -> tuple[Indices, Indices]:
    """First and last bin between the tails of every shape that magnitudes may have."""
    return between_tails(binned_by_magnitude().shapes, trim)


def between_tails(probabilities: Array, trim: Array | float) -> tuple[Indices, Indices]:
    """First and last bin between the tails."""
    first = np.argmax(np.cumsum(probabilities, axis=1) > trim, axis=1)
    back = np.argmax(np.cumsum(probabilities[:, ::-1], axis=1) > trim, axis=1)
    return first, probabilities.shape[1] - 1 - back


@functools.cache
def fine_distributions() -> tuple[Distributions, BinProbabilities]:
    """Distributions so close that a column between two of them has nearly their counts; and magnitudes."""
    found = distributions(FINE_CENTRES, bells=4, widths=LOG2_WIDTHS)
    return found, found.binned(magnitude_edges())


def magnitude_edges() -> Array:
    """Inner edges of the magnitudes: negative ones from large to small, positive ones back."""
    edges = 4.0 ** (np.arange(SIDE) - STEPS)
    return np.concatenate([-edges[::-1], edges])


MODEL_ERROR = 0.01  # of shapes, as a share of the rows: no column is exactly one of them
EM_ITERATIONS, MAX_COLUMNS = 6, 64  # of fitting what columns have in common
COLUMNS_PER_CHUNK = 256  # a number for each of them and each shape is held
PRIOR_STRENGTH = 5.0  # weight of what is known beforehand, in columns


def log_likelihood(counts: Array, std: Array, n_rows: int, shapes: Array) -> Array:
    """Return that of each column (row) under each shape (column), but for a term of the column."""
    variance = std[:, None] ** 2 + (MODEL_ERROR * n_rows) ** 2
    fit = counts @ shapes.T
    fit -= n_rows / 2 * np.einsum("ij,ij->i", shapes, shapes)
    fit *= n_rows / variance
    return np.asarray(fit)


def _common_prior(likelihood: Array, binned: BinProbabilities) -> tuple[Array, Array]:
    """Return priors with what columns have in common: empirical Bayes.

    Columns share how often each kind of shape and each place occur, the two on their own, as there
    are too many shapes to count each of them. Each column gets a prior of its own, without what
    the column itself adds: otherwise a find in mere noise would vouch for itself. Returned are
    those priors, and one for columns that were not looked at.
    """
    # The prior of a shape is a factor of its kind times one of its place. So all that is needed of
    # the likelihoods are sums over the shapes in every cell of the table of kinds and places.
    table, of_cells = (-1, *binned.table), binned.of_cells
    known = (binned.prior @ of_cells).reshape(binned.table)
    known_kinds, known_places = (
        PRIOR_STRENGTH * known.sum(axis=1),
        PRIOR_STRENGTH * known.sum(axis=0),
    )
    cells = np.ascontiguousarray(likelihood @ of_cells).reshape(table)
    posterior = ((likelihood * binned.prior) @ of_cells).reshape(table)
    posterior /= posterior.sum(axis=(1, 2), keepdims=True)
    of_kinds, of_places = posterior.sum(axis=2), posterior.sum(axis=1)

    def own_factors() -> tuple[Array, Array]:
        from_others = np.maximum(of_kinds.sum(axis=0) - of_kinds, 0.0)
        place_from_others = np.maximum(of_places.sum(axis=0) - of_places, 0.0)
        return _factors(binned, known_kinds + from_others, known_places + place_from_others)

    for _ in range(EM_ITERATIONS - 1):
        kind, place = own_factors()
        of_kinds = kind * np.matmul(cells, place[:, :, None])[:, :, 0]
        of_places = place * np.matmul(kind[:, None, :], cells)[:, 0, :]
        whole = of_kinds.sum(axis=1, keepdims=True)
        of_kinds, of_places = of_kinds / whole, of_places / whole
    of_all = known_kinds + of_kinds.sum(axis=0), known_places + of_places.sum(axis=0)
    others = _factors(binned, of_all[0][None], of_all[1][None])
    return _product(binned, *own_factors()), _product(binned, *others)


def _factors(binned: BinProbabilities, of_kinds: Array, of_places: Array) -> tuple[Array, Array]:
    """Factors of a prior: of each kind, and of each place.

    A shape is as probable as its kind, and as its place among those of the kind.
    """
    same_kind = of_places @ binned.n_in_cells.T
    return of_kinds / of_kinds.sum(axis=1, keepdims=True) / same_kind, of_places


def _product(binned: BinProbabilities, kind: Array, place: Array) -> Array:
    """Prior of every shape from the factors of kinds and places."""
    prior = np.take(place, binned.places, axis=1)
    prior *= np.take(kind, binned.kinds, axis=1)
    return np.asarray(prior)


def posteriors_of(
    fit: Callable[[slice | Indices], Array], n_columns: int, binned: BinProbabilities, pooled: bool
) -> Iterator[tuple[slice, Array]]:
    """Yield the probability of every shape (column) for columns of the data (rows), a few at once.

    With them comes which columns they are. ``fit`` returns the log likelihood of columns, which is
    overwritten.
    """
    parts = [slice(i, i + COLUMNS_PER_CHUNK) for i in range(0, n_columns, COLUMNS_PER_CHUNK)]

    def likelihood(columns: slice | Indices) -> Array:
        found = fit(columns)
        found -= found.max(axis=1, keepdims=True)
        return np.asarray(np.exp(found, out=found))

    few = likelihood(parts[0]) if len(parts) == 1 else None
    looked_at, prior = np.arange(0), binned.prior[None]
    if pooled and n_columns > 1:
        looked_at = np.arange(0, n_columns, -(-n_columns // MAX_COLUMNS))
        among = likelihood(looked_at) if few is None else few[looked_at]
        own, prior = _common_prior(among, binned)
        among *= own
    for columns in parts:
        found = likelihood(columns) if few is None else few
        if len(looked_at) < n_columns:
            found *= prior
        here = (looked_at >= columns.start) & (looked_at < columns.stop)
        if here.any():
            found[looked_at[here] - columns.start] = among[here]
        found /= found.sum(axis=1, keepdims=True)
        yield columns, found


def median_end(posterior: Array, ends: Indices) -> Indices:
    """Median, over the shapes that a column may have, of the bin in which they end."""
    reached = np.cumsum(posterior @ indicators(ends, int(ends.max()) + 1), axis=1)
    return np.asarray(np.argmax(reached >= 0.5, axis=1))
