"""Which rows take part in a sum. The fields of a sampler are public, its draw is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skdp.accounting import Event
from skdp.oracle.noise import NoiseSource
from skdp.oracle.public import Public
from skdp.oracle.releases.base import audited

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows


@audited
@dataclass(frozen=True)
class Everyone:
    """All rows, every time."""

    def event(self, inner: Event, public: Public) -> Event:
        """Return the cost of ``inner`` on the rows that are drawn."""
        return inner

    def draw(self, rows: Rows, source: NoiseSource) -> Rows:
        """Return the rows that take part."""
        return rows

    def divisor(self, public: Public) -> float:
        """Public number of rows that take part, in expectation."""
        return float(public.n_rows)

    def most(self, public: Public) -> int:
        """Public bound on the number of rows that take part."""
        return public.n_rows
