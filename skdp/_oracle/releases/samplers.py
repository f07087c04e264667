"""Samplers draw the rows of a statistic. Their fields are public, but draws are not.

Draws use the same source as the noise, because amplification by sampling rests on their secrecy.
The number that turns a sum into a mean is always public: the *expected* number of rows, never the
number that came out. An empty draw is answered like any other, with noise on a sum of nothing.
"""

import functools
import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from skdp._numbers import Indices
from skdp._oracle.noise import NoiseSource
from skdp._oracle.public import Public
from skdp._oracle.releases.base import Checked, Flag, Integer, audited
from skdp._oracle.sources import base
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Event, FixedSizeSampled, OnBlock, Partition, PoissonSampled


class Sampler(Checked, ABC):
    """A way to draw rows that does not look at them.

    Attributes
    ----------
    needs : str
        Capabilities that it needs of the source.
    """

    needs: ClassVar[str]

    @abstractmethod
    def event(self, inner: Event, public: Public) -> Event:
        """Return the cost of ``inner`` on the rows that are drawn.

        Returns
        -------
        Event
            The inner event, amplified by the sampling where a theorem allows it.
        """

    @abstractmethod
    def draw(self, source: base.Source, noise_source: NoiseSource) -> base.Source:
        """Return the sampled rows.

        Returns
        -------
        Source
            The rows drawn. With :class:`AllRows` the source itself.
        """

    @abstractmethod
    def divisor(self, public: Public) -> float:
        """Public expected number of sampled rows.

        Returns
        -------
        float
        """

    def max_rows(self, public: Public) -> int:
        """Public bound on the number of sampled rows.

        Returns
        -------
        int
        """
        return public.n_rows


class IndexSampler(Sampler):
    """A sampler that draws rows by their numbers."""

    needs = base.ADDRESSABLE

    @abstractmethod
    def indices(self, source: MemorySource, noise_source: NoiseSource) -> Indices:
        """Return the numbers of the sampled rows, in increasing order.

        Returns
        -------
        array of shape (n_drawn,), int64
            A new draw with each call.
        """

    def draw(self, source: base.Source, noise_source: NoiseSource) -> base.Source:
        rows = base.require_kind(source, MemorySource)
        indices = self.indices(rows, noise_source)
        noise_source.record_batch(indices, rows.n_rows)
        return rows.take(indices)


@audited
@dataclass(frozen=True)
class AllRows(IndexSampler):
    """All rows, every time."""

    needs: ClassVar[str] = base.REPEATABLE

    def event(self, inner: Event, public: Public) -> Event:
        return inner

    def indices(self, source: MemorySource, noise_source: NoiseSource) -> Indices:
        return np.arange(source.n_rows)

    def draw(self, source: base.Source, noise_source: NoiseSource) -> base.Source:
        return source

    def divisor(self, public: Public) -> float:
        return float(public.n_rows)


ALL_ROWS = AllRows()


@audited
@dataclass(frozen=True)
class Poisson(IndexSampler):
    """Every row independently with probability ``rate``, amplifies under both adjacencies.

    The time and memory of a draw are proportional to the number of sampled rows.
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", float(self.rate))
        if not 0 < self.rate <= 1:
            raise ValueError(f"Poisson: rate must lie in (0, 1], got {self.rate!r}.")

    def event(self, inner: Event, public: Public) -> Event:
        return PoissonSampled(self.rate, inner)

    def indices(self, source: MemorySource, noise_source: NoiseSource) -> Indices:
        return noise_source.bernoulli_subset(source.n_rows, self.rate)

    def divisor(self, public: Public) -> float:
        return self.rate * public.n_rows


@audited
@dataclass(frozen=True)
class FixedSize(IndexSampler):
    """``size`` rows without replacement. Its theorem holds under replace-one only."""

    size: Integer

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 1:
            raise ValueError(f"FixedSize: size must be at least 1, got {self.size!r}.")

    def event(self, inner: Event, public: Public) -> Event:
        return FixedSizeSampled(self.size, public.n_rows, inner)

    def indices(self, source: MemorySource, noise_source: NoiseSource) -> Indices:
        return noise_source.choose(source.n_rows, self.size)

    def divisor(self, public: Public) -> float:
        return float(self.size)

    def max_rows(self, public: Public) -> int:
        return min(self.size, public.n_rows)


class Places(tuple[int, ...]):
    """Places at least 0 that do not fall, a tuple that is checked and hashed once.

    A pass has as many blocks as places, and its time would grow with their square.
    """

    def __new__(cls, places: Iterable[int]) -> Self:
        if isinstance(places, cls):
            return places
        places = tuple(operator.index(place) for place in places)
        if not places or places[0] < 0 or any(a > b for a, b in itertools.pairwise(places)):
            raise ValueError(f"Cut: cuts must be at least 0 and not fall, got {places!r}.")
        return super().__new__(cls, places)

    @functools.cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


@audited
@dataclass(frozen=True)
class Cut(Sampler):
    """Block ``[cuts[index], cuts[index + 1])`` of the rows in an order that is drawn once.

    Rows in memory are shuffled once for every ``cuts``. A stream of rows is cut as it
    arrives. In neither case does the order look at the rows, and a record keeps its place under
    both relations. It lies in one block, as the blocks are half-open and do not overlap. So blocks
    of the same cuts cost their maximum (McSherry 2009, Thm 4). The cuts are part of the
    partition's identity: blocks of other cuts, which would overlap, add up.

    Parameters
    ----------
    cuts : tuple of int
        At least two places, from 0 on, not falling, none above the number of rows.
    index : int
        Which block.
    once : bool, default=False
        Whether the block is needed for only one sum, so that a stream need not hold it.
    """

    cuts: tuple[int, ...]
    index: Integer
    once: Flag = False
    needs: ClassVar[str] = base.ORDERED

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cuts", Places(self.cuts))
        n_blocks = len(self.cuts) - 1
        if not 0 <= self.index < n_blocks:
            raise ValueError(f"Cut: index must lie in [0, {n_blocks}), got {self.index!r}.")

    def event(self, inner: Event, public: Public) -> Event:
        if self.cuts[-1] > public.n_rows:
            raise ValueError(
                f"Cut: the last cut must not be above the number of rows, {public.n_rows}, got "
                f"{self.cuts[-1]}."
            )
        partition = Partition(0, len(self.cuts) - 1, cuts=self.cuts)
        return OnBlock(partition, self.index, inner)

    def draw(self, source: base.Source, noise_source: NoiseSource) -> base.Source:
        ordered = base.require_kind(source, base.OrderedSource)
        block = ordered.passing_block if self.once else ordered.block
        return block(self.cuts, self.index, noise_source)

    @classmethod
    def blocks(cls, cuts: Iterable[int], once: bool = False) -> list[Self]:
        """Return the blocks between all cuts."""
        places = Places(cuts)
        return [cls(places, index, once) for index in range(len(places) - 1)]

    def divisor(self, public: Public) -> float:
        return float(self.max_rows(public))

    def max_rows(self, public: Public) -> int:
        return max(1, self.cuts[self.index + 1] - self.cuts[self.index])
