"""Shapes that columns may have, and how probable each is for a column, given its noisy counts."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from skdp._numbers import Array, Indices
from skdp.oracle.kernels.histograms import SIDE, STEPS

ZEROS = (0.3, 0.6, 0.9, 0.97, 0.995)  # shares of zeros in columns that hold many
OFFSETS = (1.0, 2.0, 4.0, 8.0, 23.0)  # centres in units of the size; beyond, one bin holds all
# Log prior of each power of 2 that a size lies away from 1, and of each power of 4 where a column
# holds zeros and little else, which noise imitates most easily.
UNUSUAL, UNUSUAL_ZEROS = -0.25, -0.8
SPREADS = (1.5, 3.0)  # of lognormal columns, in powers of 2


@dataclass(frozen=True, eq=False)
class Templates:
    """Bin probabilities of shapes, and how likely each is before anything is asked.

    Attributes
    ----------
    shapes : array of shape (n_templates, n_bins)
        Rows add up to 1.
    log_prior : array of shape (n_templates,)
    kinds, places : arrays of int, of shape (n_templates,)
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
    def squares(self) -> Array:
        """Squared length of each shape."""
        return np.asarray(np.einsum("ij,ij->i", self.shapes, self.shapes))

    @functools.cached_property
    def of_kinds(self) -> Array:
        """Whether a shape (row) is of a kind (column): 1 or 0."""
        return np.asarray(np.eye(self.kinds.max() + 1)[self.kinds])

    @functools.cached_property
    def of_places(self) -> Array:
        """Whether a shape (row) lies at a place (column): 1 or 0."""
        return np.asarray(np.eye(self.places.max() + 1)[self.places])


def magnitude_edges() -> Array:
    """Upper ends of the magnitudes: of zero, then of each bin; the last one is open."""
    return np.append(4.0 ** (np.arange(SIDE) - STEPS), np.inf)


def _bell(centre: float, size: float) -> Array:
    """Probabilities of the magnitude bins under a normal law."""
    edges = magnitude_edges()
    line = np.concatenate([-edges[::-1], edges])
    return np.asarray(np.maximum(np.diff(ndtr((line - centre) / size)), 0.0))


class _Collection:
    """Templates in the making."""

    def __init__(self) -> None:
        self.shapes: list[Array] = []
        self.log_prior: list[float] = []
        self.kinds: dict[object, int] = {}
        self.labels: list[tuple[int, int]] = []

    def add(self, shape: Array, log_prior: float, kind: object, place: int) -> None:
        """Add a shape of a kind at a place."""
        self.shapes.append(shape / shape.sum())
        self.log_prior.append(log_prior)
        self.labels.append((self.kinds.setdefault(kind, len(self.kinds)), place))

    def finished(self) -> Templates:
        """Return them all."""
        kinds, places = np.array(self.labels).T
        return Templates(np.array(self.shapes), np.array(self.log_prior), kinds, places)


@functools.cache
def magnitude_templates() -> Templates:
    """Shapes of columns of any size, centred or not, skewed or not, with or without zeros."""
    made, middle = _Collection(), SIDE
    for power in range(-36, 37):
        size, place = 2.0**power, power + 2 * STEPS
        usual = UNUSUAL * abs(power)
        # 1. Bell-shaped columns. Many users standardise: unit size around 0 is likely.
        made.add(_bell(0.0, size), usual + 1 + 5 * (power == 0), "bell", place)
        for offset in OFFSETS:
            further = min(place + round(math.log2(offset)), 4 * STEPS)
            for sign in (-1.0, 1.0):
                shape = _bell(sign * offset * size, size)
                made.add(shape, usual - (sign < 0), ("bell", sign * offset), further)
        # 2. Skewed ones, which have one sign.
        for spread in SPREADS:
            with np.errstate(divide="ignore"):
                inner = ndtr((np.log2(magnitude_edges()) - power) / spread)
            shape = np.zeros(2 * SIDE + 1)
            shape[middle] = inner[0]
            shape[middle + 1 :] = np.diff(inner)
            made.add(shape, usual, ("skewed", spread, 1), place)
            made.add(shape[::-1], usual - 1, ("skewed", spread, -1), place)
            made.add((shape + shape[::-1]) / 2, usual - 1, ("heavy", spread), place)
    # 3. Zeros and one other magnitude, as indicators have.
    for step in range(SIDE):
        for zeros in ZEROS:
            for sign in (-1, 1):
                shape = np.zeros(2 * SIDE + 1)
                shape[middle], shape[middle + sign * (1 + step)] = zeros, 1 - zeros
                usual = (
                    UNUSUAL_ZEROS * abs(step - STEPS)
                    - (sign < 0)
                    + 2 * (step == STEPS and sign > 0)
                )
                made.add(shape, usual, ("zeros", zeros, sign), 2 * step + 1)
    return made.finished()


@functools.cache
def bin_templates(n_bins: int) -> Templates:
    """Shapes of columns inside their range: bells, blocks, and zeros with something else.

    Narrow shapes have many places, so each of them is less likely.
    """
    edges = np.arange(n_bins + 1, dtype=float)
    edges[0], edges[-1] = -np.inf, np.inf  # the outer bins are open
    made = _Collection()
    for size in n_bins / np.array([4.0, 5.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0, 64.0]):
        centres = np.arange(0.0, n_bins + 1e-9, max(0.5, size / 3))
        narrow = 0.5 * max(0.0, math.log2(n_bins / 5 / size))
        for centre in centres:
            shape = np.diff(ndtr((edges - centre) / size))
            made.add(shape, -math.log(len(centres)) - narrow, ("bell", size), int(centre))
    for width in (n_bins, 3 * n_bins // 4, n_bins // 2, n_bins // 3, n_bins // 4, n_bins // 6):
        starts = range(0, n_bins - width + 1, max(1, width // 8))
        for start in starts:
            shape = np.zeros(n_bins)
            shape[start : start + width] = 1.0
            narrow = 0.5 * math.log2(n_bins / width)
            place = start + width // 2
            made.add(shape, -math.log(len(starts)) - narrow, ("block", width), place)
    for rate in (1 / 3, 1 / 6, 1 / 12):  # falling away from one end
        shape = np.exp(-np.arange(n_bins) / (rate * n_bins))
        made.add(shape, -1.0, ("falling", rate), 0)
        made.add(shape[::-1], -1.0, ("rising", rate), n_bins)
    for zeros in ZEROS:
        for place in range(1, n_bins):
            shape = np.zeros(n_bins)
            shape[0], shape[place] = zeros, 1 - zeros
            usual = -math.log(n_bins) - 2.0
            made.add(shape, usual, ("zeros", zeros), place)
            made.add(shape[::-1], usual, ("zeros above", zeros), n_bins - place)
    return made.finished()


MISFIT = 0.01  # of shapes, as a share of the rows: no column is exactly one of them
ROUNDS, MOST_COLUMNS = 6, 64  # of fitting what columns have in common
COLUMNS_AT_ONCE = 256  # a number for each of them and each shape is held
FEW_COLUMNS = 64  # of which a copy of all probabilities is made
OWN = 5.0  # weight of what is known beforehand, in columns


def _likelihood(counts: Array, std: Array, n_rows: int, templates: Templates) -> Array:
    """Of each column (row) under each shape (column), next to that of its likeliest shape."""
    variance = std[:, None] ** 2 + (MISFIT * n_rows) ** 2
    fit = counts @ templates.shapes.T
    fit -= n_rows / 2 * templates.squares
    fit *= n_rows / variance
    fit -= fit.max(axis=1, keepdims=True)
    return np.asarray(np.exp(fit, out=fit))


def _common_prior(likelihood: Array, templates: Templates) -> tuple[Array, Array]:
    """Return priors with what columns have in common: empirical Bayes.

    Columns share how often each kind of shape and each place occur, the two on their own, as there
    are too many shapes to count each of them. Each column gets a prior of its own, without what
    the column itself adds: otherwise a find in mere noise would vouch for itself. Returned are
    those priors, and one for columns that were not looked at.
    """
    kinds, places = templates.of_kinds, templates.of_places
    known_kinds, known_places = OWN * (templates.prior @ kinds), OWN * (templates.prior @ places)
    prior = templates.prior[None, :]
    of_kinds = of_places = prior
    for _ in range(ROUNDS):
        posterior = likelihood * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        of_kinds, of_places = posterior @ kinds, posterior @ places
        prior = _product(
            templates,
            known_kinds + np.maximum(of_kinds.sum(axis=0) - of_kinds, 0.0),
            known_places + np.maximum(of_places.sum(axis=0) - of_places, 0.0),
        )
    others = _product(
        templates,
        known_kinds + of_kinds.sum(axis=0, keepdims=True),
        known_places + of_places.sum(axis=0, keepdims=True),
    )
    return prior, others


def _product(templates: Templates, of_kinds: Array, of_places: Array) -> Array:
    """Prior of every shape: that of its kind, and of its place among those of the kind."""
    place = np.take(of_places, templates.places, axis=1)
    same_kind = place @ templates.of_kinds
    kind = of_kinds / of_kinds.sum(axis=1, keepdims=True) / same_kind
    place *= np.take(kind, templates.kinds, axis=1)
    return place


def posteriors_of(
    counts: Array, std: Array, n_rows: int, templates: Templates, in_common: bool
) -> Iterator[tuple[slice, Array]]:
    """Yield the probability of every shape (column) for columns of the data (rows), a few at once.

    With them comes which columns they are.
    """
    n_columns = len(counts)
    parts = [slice(i, i + COLUMNS_AT_ONCE) for i in range(0, n_columns, COLUMNS_AT_ONCE)]

    def likelihood(columns: slice | Indices) -> Array:
        return _likelihood(counts[columns], std[columns], n_rows, templates)

    few = likelihood(parts[0]) if len(parts) == 1 else None
    looked_at, prior = np.arange(0), templates.prior[None]
    if in_common and n_columns > 1:
        looked_at = np.arange(0, n_columns, -(-n_columns // MOST_COLUMNS))
        among = likelihood(looked_at) if few is None else few[looked_at]
        own, prior = _common_prior(among, templates)
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
    order = np.argsort(ends, kind="stable")
    found = np.empty(len(posterior), dtype=np.intp)
    for start in range(0, len(posterior), FEW_COLUMNS):
        columns = slice(start, start + FEW_COLUMNS)
        reached = posterior[columns][:, order]
        np.cumsum(reached, axis=1, out=reached)
        found[columns] = np.argmax(reached >= 0.5, axis=1)
    return np.asarray(ends[order][found])
