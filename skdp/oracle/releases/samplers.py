"""Which rows take part in a sum. The fields of a sampler are public, its draw is not.

Draws use the same source as the noise, because amplification by sampling rests on their secrecy.
The number that turns a sum into a mean is always public: the *expected* number of rows, never the
number that came out. An empty draw is answered like any other, with noise on a sum of nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.accounting import Event, FixedSizeSampled, OnBlock, Partition, PoissonSampled
from skdp.oracle.noise import NoiseSource
from skdp.oracle.public import Public
from skdp.oracle.releases.base import audited
from skdp.oracle.releases.fields import store_integers

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows

Numbers = NDArray[np.int64]


def _check_place(who: str, epoch: int, n_blocks: int, index: int) -> None:
    if epoch < 0 or not 0 <= index < n_blocks:
        raise ValueError(
            f"{who}: epoch must be at least 0 and the index lie in [0, {n_blocks}); got epoch "
            f"{epoch!r}, index {index!r}."
        )


class Sampler(ABC):
    """A way to draw rows that does not look at them."""

    @abstractmethod
    def event(self, inner: Event, public: Public) -> Event:
        """Return the cost of ``inner`` on the rows that are drawn."""

    @abstractmethod
    def numbers(self, rows: Rows, source: NoiseSource) -> Numbers:
        """Return the numbers of the rows that take part, in increasing order."""

    def draw(self, rows: Rows, source: NoiseSource) -> Rows:
        """Return the rows that take part."""
        return rows.take(self.numbers(rows, source))

    def draws(
        self, rows: Rows, n_draws: int, source: NoiseSource
    ) -> tuple[Numbers, NDArray[np.int64]]:
        """Draw several times, one after the other, which may be quicker at one go.

        Returns
        -------
        numbers : array
            Row numbers of the first draw, then of the second, and so on.
        edges : array of shape (n_draws + 1,)
            Where each draw begins in ``numbers``, and where the last one ends.
        """
        parts = [self.numbers(rows, source) for _ in range(n_draws)]
        edges = np.concatenate(([0], np.cumsum([len(part) for part in parts], dtype=np.int64)))
        return np.concatenate([np.empty(0, np.int64), *parts]), edges

    @abstractmethod
    def divisor(self, public: Public) -> float:
        """Public number of rows that take part, in expectation."""

    def most(self, public: Public) -> int:
        """Public bound on the number of rows that take part."""
        return public.n_rows


@audited
@dataclass(frozen=True)
class Everyone(Sampler):
    """All rows, every time."""

    def event(self, inner: Event, public: Public) -> Event:
        return inner

    def numbers(self, rows: Rows, source: NoiseSource) -> Numbers:
        return np.arange(rows.n_rows)

    def draw(self, rows: Rows, source: NoiseSource) -> Rows:
        return rows

    def divisor(self, public: Public) -> float:
        return float(public.n_rows)


@audited
@dataclass(frozen=True)
class Poisson(Sampler):
    """Every row independently with probability ``rate``; amplifies under both adjacencies.

    A draw takes time and memory in proportion to the rows that are drawn.
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", float(self.rate))
        if not 0 < self.rate <= 1:
            raise ValueError(f"Poisson: rate must lie in (0, 1]; got {self.rate!r}.")

    def event(self, inner: Event, public: Public) -> Event:
        return PoissonSampled(self.rate, inner)

    def numbers(self, rows: Rows, source: NoiseSource) -> Numbers:
        return source.bernoulli_subset(rows.n_rows, self.rate)

    def draws(
        self, rows: Rows, n_draws: int, source: NoiseSource
    ) -> tuple[Numbers, NDArray[np.int64]]:
        # A coin for every row of every draw: one subset of the pairs, with the very same law.
        chosen = source.bernoulli_subset(rows.n_rows * n_draws, self.rate)
        which, numbers = np.divmod(chosen, rows.n_rows)
        return numbers, np.searchsorted(which, np.arange(n_draws + 1)).astype(np.int64)

    def divisor(self, public: Public) -> float:
        return self.rate * public.n_rows


@audited
@dataclass(frozen=True)
class FixedSize(Sampler):
    """``size`` rows without replacement; its theorem holds under replace-one only."""

    size: int

    def __post_init__(self) -> None:
        store_integers(self, "size")
        if self.size < 1:
            raise ValueError(f"FixedSize: size must be at least 1; got {self.size!r}.")

    def event(self, inner: Event, public: Public) -> Event:
        return FixedSizeSampled(self.size, public.n_rows, inner)

    def numbers(self, rows: Rows, source: NoiseSource) -> Numbers:
        return source.choose(rows.n_rows, self.size)

    def draws(
        self, rows: Rows, n_draws: int, source: NoiseSource
    ) -> tuple[Numbers, NDArray[np.int64]]:
        if self.size**2 > rows.n_rows:
            return super().draws(rows, n_draws, source)
        # Samples with replacement that hold no row twice are uniform among those without; the few
        # others are drawn afresh, whatever they were.
        drawn = np.sort(source.integers(rows.n_rows, (n_draws, self.size)), axis=1)
        for i in np.flatnonzero((drawn[:, 1:] == drawn[:, :-1]).any(axis=1)):
            drawn[i] = source.choose(rows.n_rows, self.size)
        return drawn.ravel(), np.arange(n_draws + 1, dtype=np.int64) * self.size

    def divisor(self, public: Public) -> float:
        return float(self.size)

    def most(self, public: Public) -> int:
        return min(self.size, public.n_rows)


@audited
@dataclass(frozen=True)
class Block(Sampler):
    """Block ``index`` of a division of the rows that is drawn once for every ``epoch``.

    Each epoch shuffles the row numbers and cuts them in ``n_blocks`` half-open blocks of equal
    size, up to one row. A record lies in one block, so the blocks of an epoch cost their maximum.
    """

    epoch: int
    n_blocks: int
    index: int

    def __post_init__(self) -> None:
        # An epoch that is not equal to itself would be divided anew at every call.
        store_integers(self, "epoch", "n_blocks", "index")
        _check_place("Block", self.epoch, self.n_blocks, self.index)

    def event(self, inner: Event, public: Public) -> Event:
        return OnBlock(Partition(self.epoch, self.n_blocks), self.index, inner)

    def numbers(self, rows: Rows, source: NoiseSource) -> Numbers:
        return rows.shuffled_block(self.epoch, self.n_blocks, self.index, source)

    def divisor(self, public: Public) -> float:
        return max(1.0, public.n_rows / self.n_blocks)

    def most(self, public: Public) -> int:
        return -(-public.n_rows // self.n_blocks)


@audited
@dataclass(frozen=True)
class Bin(Sampler):
    """Bin ``index``: in each ``epoch`` every row picks one of ``n_bins`` bins, alone and in secret.

    Sizes are random and never shown. This is the one-pass sampling that amplifies (Chua et al.
    2025); where its accountant is not installed it costs what disjoint blocks cost.
    """

    epoch: int
    n_bins: int
    index: int

    def __post_init__(self) -> None:
        store_integers(self, "epoch", "n_bins", "index")
        _check_place("Bin", self.epoch, self.n_bins, self.index)

    def event(self, inner: Event, public: Public) -> Event:
        return OnBlock(Partition(self.epoch, self.n_bins, allocation=True), self.index, inner)

    def numbers(self, rows: Rows, source: NoiseSource) -> Numbers:
        return rows.random_bin(self.epoch, self.n_bins, self.index, source)

    def divisor(self, public: Public) -> float:
        return public.n_rows / self.n_bins
