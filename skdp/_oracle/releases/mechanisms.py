"""Draw the rows of a statistic, add noise on a power-of-two grid, and release the result.

That release is behind nearly every algorithm.
"""

import functools
import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from skdp._numbers import Array, Indices
from skdp._oracle.noise import NoiseSource
from skdp._oracle.public import Public
from skdp._oracle.releases.base import (
    Checked,
    Contribution,
    Flag,
    Integer,
    PublicContext,
    Release,
    Statistic,
    audited,
)
from skdp._oracle.sources import base
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import (
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    NoisyMaximum,
    OnBlock,
    Partition,
    PoissonSampled,
)

GRID_BITS = 30  # the grid is at most 2**-30 standard deviations wide
LEAST_GRID, LARGEST_GRID = 2.0**-900, 2.0**900  # where it is neither subnormal nor nearly infinite


class Mechanism(ABC):
    """Noise for statistics that are bounded in the norm of this noise. Others are refused.

    Attributes
    ----------
    order : {1, 2, inf}
        Of the norm in which sensitivity is measured.
    std_of_unit : float
        Standard deviation of noise of scale 1.
    relative_noise : float
        How noisy, relative to the solver's other releases.
    """

    order: ClassVar[float]
    std_of_unit: ClassVar[float] = 1.0
    relative_noise: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "relative_noise", float(self.relative_noise))
        if not (0 < self.relative_noise < math.inf):
            raise ValueError(
                f"{type(self).__name__}: relative_noise must be positive, got "
                f"{self.relative_noise!r}."
            )

    @abstractmethod
    def event(self, spread: float) -> Gaussian | Laplace | NoisyMaximum:
        """Return the cost of one answer, in relative units."""

    def std(self, contribution: Contribution, scale: float) -> float:
        """Return the standard deviation of the noise on each coordinate."""
        return self.std_of_unit * self.scale_of_noise(contribution, scale)

    def scale_of_noise(self, contribution: Contribution, scale: float) -> float:
        """Return the scale of the noise on each coordinate: b for Laplace noise, else the std."""
        self.require_norm(contribution)
        if scale == 0:
            return 0.0
        grid, size = self._grid(contribution, scale), contribution.size
        rounded = contribution.bound + grid * float(size ** (1 / self.order))
        noise = self.relative_noise * scale * rounded
        if noise < grid:
            raise ValueError(
                f"{type(self).__name__}: a noise multiplier of {self.relative_noise * scale:g} is "
                "too fine to distinguish from rounding errors. Choose a smaller epsilon, or "
                "epsilon=inf, which adds no noise. Nothing was released."
            )
        return noise

    def add_noise(
        self, statistic: Array, contribution: Contribution, scale: float, noise_source: NoiseSource
    ) -> Array:
        """Return the statistic plus noise. With scale 0 the statistic itself.

        This is the answer that leaves: a source that keeps a record is shown it.
        """
        answer = self.noisy(statistic, contribution, scale, noise_source)
        if not noise_source.keeps_record:
            return answer
        event, std = self.event(contribution.spread), self.std(contribution, scale)
        return noise_source.record_answer(answer, statistic, event, contribution.bound, std)

    def noisy(
        self, statistic: Array, contribution: Contribution, scale: float, noise_source: NoiseSource
    ) -> Array:
        """Return the statistic plus noise, of which more is made before it leaves."""
        self.require_norm(contribution)
        if scale == 0:
            return statistic
        grid, noise = self.draw(contribution, scale, noise_source, statistic.shape)
        return grid * (np.rint(statistic / grid) + noise)

    def draw(
        self,
        contribution: Contribution,
        scale: float,
        noise_source: NoiseSource,
        shape: tuple[int, ...],
    ) -> tuple[float, Array]:
        """Return the grid of an answer, and noise in units of it."""
        noise, grid = self.scale_of_noise(contribution, scale), self._grid(contribution, scale)
        draw = noise_source.gaussian if self.order == 2 else noise_source.laplace
        return grid, draw(noise / grid, shape)

    def require_norm(self, contribution: Contribution) -> None:
        """Raise ValueError unless the sum is bounded in the norm of this noise."""
        if contribution.order != self.order:
            raise ValueError(
                f"{type(self).__name__} is for statistics whose records are bounded in the "
                f"L{self.order} norm. This one is bounded in the L{contribution.order} norm. "
                "Nothing was released for it."
            )

    def _grid(self, contribution: Contribution, scale: float) -> float:
        """Grid width: fine next to the noise, coarse enough that sums on it are exact."""
        finest = max(
            self.relative_noise * scale * contribution.bound * 2.0**-GRID_BITS,
            contribution.total * 2.0**-51,
        )
        if not LEAST_GRID <= finest <= LARGEST_GRID:
            raise ValueError(
                f"{type(self).__name__}: what one record can add, {contribution.bound:g}, times a "
                f"noise multiplier of {self.relative_noise * scale:g} is out of the range in which "
                "numbers keep their precision. Choose bounds and clipping norms of a common size, "
                "or another unit. Nothing was released for it."
            )
        return 2.0 ** math.ceil(math.log2(finest))


@audited
@dataclass(frozen=True)
class GaussianNoise(Mechanism):
    """Isotropic Gaussian noise. ``relative_noise`` says how noisy next to the other releases.

    The sum s is rounded to k = rint(s / g) on a grid g = 2**j, and the release is g * (k +
    round(N(0, (std/g)**2))). As k is an integer, that is a rounding of k + N(0, (std/g)**2):
    post-processing of the Gaussian mechanism on k (Balle and Wang 2018, Thm 8), with no slack for
    floating point. Rounding moves each coordinate by at most g/2, so two neighbouring k are at most
    ``sensitivity/g + sqrt(size)`` apart. That is charged: the noise multiplier is applied to
    ``bound + g sqrt(size)``, which covers both adjacencies since spread >= 1.
    """

    relative_noise: float = 1.0
    order: ClassVar[float] = 2

    def event(self, spread: float) -> Gaussian:
        """Return the cost of one answer, in relative units."""
        return Gaussian(self.relative_noise, spread)


@audited
@dataclass(frozen=True)
class LaplaceNoise(Mechanism):
    """Independent Laplace noise on every coordinate. ``relative_noise`` is multiplied by the scale.

    The sum S is rounded to g k on a grid of width g, a power of two, and ``g * round(b/g * L)`` is
    added, L with density ``exp(-|x|)/2``. As ``round(k + x) = k + round(x)`` for whole k, the
    answer is a function of ``g k + b L``: continuous Laplace noise of *scale* b, whose standard
    deviation is ``sqrt(2) b``, on the rounded sum. Sums that differ by s in L1 norm differ by at
    most ``s + g * size`` once they are rounded: each of the ``size`` coordinates by g more. That is
    paid for: b is the noise multiplier times ``bound + g * size``, which covers both adjacencies
    since spread >= 1. The ratio of densities is then at most ``exp(sensitivity / multiplier)``
    everywhere (Dwork, McSherry, Nissim, Smith 2006, Prop. 1, Kuru, Birbil, Gurbuzbalaban, Yildirim
    2022, Thm A.1).
    """

    relative_noise: float = 1.0
    order: ClassVar[float] = 1
    std_of_unit: ClassVar[float] = math.sqrt(2)

    def event(self, spread: float) -> Laplace:
        """Return the cost of one answer, in relative units."""
        return Laplace(self.relative_noise, spread)


MECHANISMS: dict[str, type[GaussianNoise] | type[LaplaceNoise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
}


def mechanism_by_name(name: str, relative_noise: float) -> GaussianNoise | LaplaceNoise:
    """Return the mechanism of a name.

    Parameters
    ----------
    name : {"gaussian", "laplace"}
    relative_noise : float
        Noise relative to that of the plan, positive.

    Returns
    -------
    GaussianNoise or LaplaceNoise

    Raises
    ------
    ValueError
        If there is no mechanism of this name.
    """
    if name not in MECHANISMS:
        known = ", ".join(repr(word) for word in sorted(MECHANISMS))
        raise ValueError(f"mechanism must be one of {known}, got {name!r}.")
    return MECHANISMS[name](relative_noise)


# ---------------------------------------------------------------- samplers
#
# Samplers draw the rows of a statistic. Their fields are public, but draws are not. Draws use the
# same source as the noise, because amplification by sampling rests on their secrecy. The number
# that turns a sum into a mean is always public: the *expected* number of rows, never the number
# that came out. An empty draw is answered like any other, with noise on a sum of nothing.


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


# ---------------------------------------------------------------- a statistic with noise


@audited
@dataclass(frozen=True, eq=False)
class NoisyStatistic(Release):
    """A statistic of the rows that ``sampler`` draws, plus the noise of ``mechanism``.

    If only the targets are private (adjacency "label"), a statistic of all rows that does not
    depend on them is the same for all neighbours. Its sensitivity is 0, so it is answered exactly.

    Sensitivity: that of the statistic, which enforces it. The cost is the mechanism's, as seen
    through the sampler. :meth:`divisor` is the public number that makes a sum a mean.

    Parameters
    ----------
    statistic : Statistic
    mechanism : GaussianNoise or LaplaceNoise
        Of the norm that the statistic is bounded in.
    sampler : Sampler, default=AllRows()
    """

    statistic: Statistic
    mechanism: Mechanism
    sampler: Sampler = ALL_ROWS

    @property
    def kind(self) -> str:
        return self.statistic.kind

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.sampler.needs})

    @property
    def takes_groups(self) -> bool:
        return self.statistic.takes_groups

    def is_public(self, context: PublicContext) -> bool:
        return type(self.sampler) is AllRows and self.statistic.is_public(context)

    def parts(self) -> tuple[object, ...]:
        return self.statistic, self.mechanism, self.sampler

    def contribution(self, context: PublicContext) -> Contribution:
        """Return the bound on a record's part in the statistic of the rows that are drawn.

        Returns
        -------
        Contribution
        """
        # Requested by event, std and answer in turn: remembered for the context at hand.
        n_rows = self.sampler.max_rows(context.public)
        known = vars(self.statistic).get("_known")
        if known is None or known[0] is not context or known[1] != n_rows:
            known = context, n_rows, self.statistic.contribution(context, n_rows)
            object.__setattr__(self.statistic, "_known", known)
        contribution: Contribution = known[2]
        return contribution

    def event(self, context: PublicContext) -> Event:
        event = self.mechanism.event(self.contribution(context).spread)
        return self.sampler.event(event, context.public)

    def std(self, context: PublicContext) -> float:
        if self.is_public(context):
            return 0.0
        return self.mechanism.std(self.contribution(context), context.scale)

    def divisor(self, context: PublicContext) -> float:
        """Public expected number of sampled rows.

        Returns
        -------
        float
        """
        return self.sampler.divisor(context.public)

    def n_gradients(self, context: PublicContext) -> float:
        return self.statistic.gradients * self.divisor(context)

    def answer(
        self, source: base.Source, context: PublicContext, noise_source: NoiseSource
    ) -> Array:
        rows = base.require_kind(self.sampler.draw(source, noise_source), base.RepeatableSource)
        total = self.statistic.total(rows, context)
        if self.is_public(context):
            return total
        contribution = self.contribution(context)
        return self.mechanism.add_noise(total, contribution, context.scale, noise_source)

    def placeholder(self, context: PublicContext, rng: np.random.Generator) -> Array:
        # As large as one record's part: enough to move a solver, too little to make it diverge.
        contribution = self.contribution(context)
        noise = rng.standard_normal(self.statistic.shape(context))
        spread = contribution.size if contribution.order == 1 else math.sqrt(contribution.size)
        return contribution.bound / spread * noise
