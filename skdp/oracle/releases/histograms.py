"""Histograms of all columns in one release: each record adds one to one bin of every column."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.oracle.kernels.histograms import N_MAGNITUDES, bin_counts, magnitude_counts
from skdp.oracle.releases import base
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.block_sizes import UNIT_ROUNDOFF

MAX_LOG_WEIGHT = 30  # keeps weighted counts of up to 2**33 rows exact in float64


def _contribution(log_weights: tuple[int, ...], n_bins: int, n_rows: int) -> base.Contribution:
    """Return the bounds: a record adds a weight to one bin of each column, a null record nothing.

    (A group adds shares of that weight, which add up to it at most, to several bins of a column.
    Such a vector lies in the convex hull of those of rows, so that all of this holds for it.)
    So its L2 norm is the root of the sum of the squared weights, and that of the difference of two
    records at most sqrt(2) times as long: in each column a weight moves from one bin to another.
    Weights are powers of two, so that products with counts, and differences of them, are exact;
    what is rounded is the bound itself, which is charged.
    """
    squares = math.fsum(4.0**weight for weight in log_weights)
    bound = math.sqrt(squares) * (1 + 8 * UNIT_ROUNDOFF)
    size = n_bins * len(log_weights)
    return base.Contribution(bound, math.sqrt(2), size, total=n_rows * 2.0 ** max(log_weights))


def _checked_weights(who: str, log_weights: object, n_columns: int) -> tuple[int, ...]:
    weights = tuple(int(weight) for weight in np.asarray(log_weights).ravel())
    if len(weights) != n_columns or not all(0 <= weight <= MAX_LOG_WEIGHT for weight in weights):
        raise ValueError(
            f"{who}: log_weights must hold {n_columns} integers from 0 to {MAX_LOG_WEIGHT}. "
            "Nothing was released."
        )
    return weights


def _n_columns(context: base.PublicContext, features: bool, targets: bool) -> int:
    """Return the number of columns that are requested."""
    public = context.public
    return features * public.n_features + targets * public.n_outputs


@base.audited
@dataclass(frozen=True, eq=False)
class MagnitudeCounts(base.Statistic):
    """Counts of values by sign and magnitude, for each column.

    Sensitivity: see :func:`_contribution`; the spread is sqrt(2), as in any histogram. A record
    whose weight is 0 is a null record: it is not counted.

    Parameters
    ----------
    features, targets : bool
        The columns: those of X, those of the targets, or both, in this order.
    log_weights : tuple of int
        Base-2 logarithm of the weight of every column in the joint release, at least 0: the noise
        next to the counts is smaller by it.
    """

    features: bool
    targets: bool
    log_weights: tuple[int, ...]
    kind: ClassVar[str] = "magnitudes"
    takes_groups: ClassVar[bool] = True

    @property
    def reads_targets(self) -> bool:
        return self.targets

    def _weights(self, context: base.PublicContext) -> tuple[int, ...]:
        n_columns = _n_columns(context, self.features, self.targets)
        return _checked_weights(type(self).__name__, self.log_weights, n_columns)

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        return _contribution(self._weights(context), N_MAGNITUDES, n_rows)

    def shape(self, context: base.PublicContext) -> tuple[int, ...]:
        return len(self._weights(context)), N_MAGNITUDES

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        weights = np.array(self._weights(context))[:, None]
        counts = rows.total(magnitude_counts, self.features, self.targets)
        return np.asarray(np.ldexp(counts.astype(np.float64), weights))


@base.audited
@dataclass(frozen=True, eq=False)
class BinCounts(base.Statistic):
    """Counts of values in equal bins between public edges, for each column.

    Sensitivity as in `MagnitudeCounts`: the outermost bins are open, so every value, of whatever
    size, lies in exactly one bin.

    Parameters
    ----------
    features, targets : bool
        The columns: those of X, those of the targets, or both, in this order.
    low, width : array of shape (n_columns,)
        Left end of the first bin, and width of a bin; finite, widths positive. They are copied.
    n_bins : int
        At least 1.
    log_weights : tuple of int
        As for `MagnitudeCounts`.
    """

    features: bool
    targets: bool
    low: Array = field(repr=False)
    width: Array = field(repr=False)
    n_bins: int
    log_weights: tuple[int, ...]
    kind: ClassVar[str] = "histograms"
    takes_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("low", "width"):
            values: Array = np.array(getattr(self, name), dtype=np.float64, copy=True, subok=False)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        object.__setattr__(self, "n_bins", int(self.n_bins))
        usable = np.isfinite(self.low).all() and np.isfinite(self.width).all()
        if not (usable and (self.width > 0).all() and self.n_bins >= 1):
            raise ValueError("BinCounts: edges must be finite, and widths positive.")

    @property
    def reads_targets(self) -> bool:
        return self.targets

    def _weights(self, context: base.PublicContext) -> tuple[int, ...]:
        n_columns = _n_columns(context, self.features, self.targets)
        if self.low.shape != (n_columns,) or self.width.shape != (n_columns,):
            raise ValueError(f"BinCounts: low and width must have shape ({n_columns},).")
        return _checked_weights(type(self).__name__, self.log_weights, n_columns)

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        return _contribution(self._weights(context), self.n_bins, n_rows)

    def shape(self, context: base.PublicContext) -> tuple[int, ...]:
        return len(self._weights(context)), self.n_bins

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        weights = np.array(self._weights(context))[:, None]
        arguments = self.features, self.targets, self.low, self.width, self.n_bins
        counts = rows.total(bin_counts, *arguments)
        return np.asarray(np.ldexp(counts.astype(np.float64), weights))
