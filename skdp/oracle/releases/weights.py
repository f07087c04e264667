"""Counts of the weights of records."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.oracle.releases import base
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.records import Records


def logarithms(weights: Array) -> Array:
    """Return binary logarithms, linear between powers of two, of positive weights.

    They follow from exponent and mantissa, so that those of a weight do not depend on other rows.
    """
    mantissas, exponents = np.frexp(weights)
    return np.asarray(exponents + (2 * mantissas - 2))


def weight_of(logarithm: float) -> float:
    """Return the weight of which `logarithms` gives this number, within the range of float64."""
    whole = math.floor(logarithm)
    if whole > 1023:
        return float(np.finfo(float).max)
    return max(math.ldexp(1 + logarithm - whole, whole), math.ulp(0.0))


def _given(records: Records) -> Array:
    return np.ones(records.n_rows) if records.weights is None else records.weights


def weight_counts(records: Records, low: float, width: float, n_bins: int) -> Array:
    """Count positive weights in equal bins of their logarithms, the outer ones open.

    Where there are groups, a row counts as its multiplier; sums of multipliers are exact.
    """
    weights, shares = _given(records), records.multipliers
    takes_part = weights > 0
    places = np.clip((logarithms(weights[takes_part]) - low) / width, 0, n_bins - 1)
    each = None if shares is None else shares[takes_part]
    return np.bincount(places.astype(np.intp), each, minlength=n_bins).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _OfWeights(base.Statistic):
    """A statistic of weights as they were given; ``order``, 1 or 2, is that of the norm."""

    order: base.Integer = field(default=2, kw_only=True)
    takes_groups: ClassVar[bool] = True

    @property
    def reads_targets(self) -> bool:
        return False


@base.audited
@dataclass(frozen=True, eq=False)
class WeightCounts(_OfWeights):
    """Counts of positive weights in equal bins of their logarithms.

    Sensitivity: a record adds 1 to one bin, a record of weight 0, which is a null record, nothing.
    So its part has norm 1, L1 or L2, and the difference of two parts at most 2 and sqrt(2): the
    spread. A group adds shares to several bins, which add up to 1 at most: that lies in the convex
    hull of the parts of rows. The outer bins are open, so a weight of any size lies in one bin.
    Counts are exact.

    Parameters
    ----------
    low, width : float
        Left end of the first bin and width of a bin, in binary logarithms; see `logarithms`.
    n_bins : int
        At least 1.
    order : {1, 2}, default=2
        Of the norm that is bounded: 1 for Laplace noise.
    """

    low: base.Finite
    width: base.Positive
    n_bins: base.Integer
    kind: ClassVar[str] = "weight_counts"

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        spread = 2.0 ** (1 / self.order)
        return base.Contribution(
            1.0, spread, self.n_bins, total=max(1.0, float(n_rows)), order=self.order
        )

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        return np.asarray(rows.total(weight_counts, self.low, self.width, self.n_bins))
