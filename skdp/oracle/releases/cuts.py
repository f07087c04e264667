"""Blocks of unequal size, cut from one order of the rows at public places."""

from __future__ import annotations

import functools
import itertools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skdp.accounting import Event, OnBlock, Partition
from skdp.oracle.noise import NoiseSource
from skdp.oracle.public import Public
from skdp.oracle.releases.base import audited
from skdp.oracle.releases.fields import store_integers
from skdp.oracle.releases.samplers import Numbers, Sampler

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows


@audited
@dataclass(frozen=True)
class Cut(Sampler):
    """Block ``[cuts[index], cuts[index + 1])`` of the rows in an order that is drawn once.

    Rows in memory are shuffled once for every ``epoch`` and ``cuts``; a stream of rows is cut as it
    arrives. In neither case does the order look at the rows, and a record keeps its place under
    both relations. It lies in one block, as the blocks are half-open and do not overlap; so
    blocks of the same epoch and cuts cost their maximum (McSherry 2009, Thm 4). The cuts are part
    of the partition's identity: blocks of other cuts, which would overlap, add up.

    Parameters
    ----------
    epoch : int
        At least 0.
    cuts : tuple of int
        At least two places, from 0 on, not falling, none above the number of rows.
    index : int
        Which block.
    """

    epoch: int
    cuts: tuple[int, ...]
    index: int

    def __post_init__(self) -> None:
        store_integers(self, "epoch", "index")
        object.__setattr__(self, "cuts", _checked(tuple(self.cuts)))
        if self.epoch < 0 or not 0 <= self.index < len(self.cuts) - 1:
            raise ValueError(
                f"Cut: epoch must be at least 0 and index lie in [0, {len(self.cuts) - 1}); got "
                f"epoch {self.epoch!r}, index {self.index!r}."
            )

    def event(self, inner: Event, public: Public) -> Event:
        if self.cuts[-1] > public.n_rows:
            raise ValueError(
                f"Cut: the last cut must not be above the number of rows, {public.n_rows}; got "
                f"{self.cuts[-1]}."
            )
        partition = Partition(self.epoch, len(self.cuts) - 1, cuts=self.cuts)
        return OnBlock(partition, self.index, inner)

    def numbers(self, rows: Rows, source: NoiseSource) -> Numbers:
        raise TypeError("Cut: rows that arrive one by one have no numbers to draw.")

    def draw(self, rows: Rows, source: NoiseSource) -> Rows:
        return rows.cut_block(self.epoch, self.cuts, self.index, source)

    def divisor(self, public: Public) -> float:
        return float(self.most(public))

    def most(self, public: Public) -> int:
        return max(1, self.cuts[self.index + 1] - self.cuts[self.index])


@functools.lru_cache(maxsize=16)
def _checked(cuts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the places as plain integers, the same object for the same places, or refuse them.

    A run asks for blocks of the same cuts hundreds of times: to look at every place each time would
    take time in the square of the number of blocks.
    """
    places = tuple(operator.index(place) for place in cuts)
    if not places or places[0] < 0 or any(a > b for a, b in itertools.pairwise(places)):
        raise ValueError(f"Cut: cuts must be at least 0 and not fall; got {places!r}.")
    return places
