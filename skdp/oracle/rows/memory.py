"""Rows in memory, with all that the oracle asks of them."""

from __future__ import annotations

from skdp.oracle.rows.counts import Counts
from skdp.oracle.rows.gradients import GradientSums
from skdp.oracle.rows.passing import Passing
from skdp.oracle.rows.second_moments import SecondMoments


class MemoryRows(GradientSums, SecondMoments, Counts, Passing):
    """Records in memory; see :class:`skdp.oracle.rows.held.HeldRows` for what they are made of."""

    __slots__ = ()
