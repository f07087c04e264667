"""Privacy events: the releases of a plan, as data without rows or noise.

An event describes a release in units that do not depend on its scale: noise is measured against
the *contribution bound*, the most that one record can add to the released sum. The cost of an event
is computed by :func:`skdp.accounting.price`, from the events that a single record can meet.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from skdp._numbers import shown

__all__ = [
    "LABEL",
    "Adjacency",
    "ApproximateDP",
    "Composed",
    "Event",
    "EventWrapper",
    "FixedSizeSampled",
    "Gaussian",
    "Laplace",
    "NoisyMaximum",
    "OnBlock",
    "Partition",
    "PoissonSampled",
    "Selected",
    "Shuffled",
    "UnknownCost",
    "walk",
]

LABEL = "label"  # the adjacency if only targets are private: see `Adjacency.parse`
NoiseChange = Callable[[float], float]
Parts = tuple[tuple["Event", int], ...]  # events with their numbers of occurrences


class UnknownCost(ValueError):  # noqa: N818 - a result as much as an error
    """No available theorem covers this event under this adjacency. The message names both."""


class Adjacency(StrEnum):
    """Neighbouring relation between two data sets with the same, public number of rows.

    ``zero_out``
        One record is replaced by a null record, which contributes nothing to any sum.
    ``replace_one``
        One record is replaced by any other record. A sum of bounded contributions can move by up to
        twice the bound, so the same noise guarantees about twice the epsilon.
    """

    ZERO_OUT = "zero_out"
    REPLACE_ONE = "replace_one"

    @classmethod
    def parse(cls, value: object, labels: bool = False) -> Adjacency:
        """Return the relation with the name ``value``.

        Parameters
        ----------
        value : str
        labels : bool, default=False
            Whether "label" is also a name: the target of one record is replaced by any other, and
            all else is public. Its neighbours are neighbours under ``replace_one``, whose prices
            are valid for it (Ghazi, Golowich, Kumar, Manurangsi and Zhang 2021, "Deep learning with
            label differential privacy", Def. 1.2).

        Returns
        -------
        Adjacency

        Raises
        ------
        ValueError
            If ``value`` is no such name.
        """
        if isinstance(value, str) and value in [member.value for member in cls]:
            return cls(value)
        if labels and isinstance(value, str) and value == LABEL:
            return cls.REPLACE_ONE
        known = [member.value for member in cls] + [LABEL] * labels
        raise ValueError(
            f"adjacency must be one of {', '.join(map(repr, known))}, got {shown(value)}."
        )


@dataclass(frozen=True)
class Event:
    """Base class of all events, which are frozen, hashable and comparable.

    An event is one of three things. A *mechanism* is one noisy answer. An `EventWrapper` states to
    which rows, or how many times, the event inside it was applied. `Composed` is a sequence.
    """

    def inner(self) -> Parts:
        """Return the events directly inside this one, with the number of times each is answered.

        A mechanism has none.

        Returns
        -------
        tuple of (Event, int)
        """
        return ()

    def with_inner(self, change: Callable[[Event], Event]) -> Self:
        """Return the same event with each of its `inner` events passed through ``change``.

        Parameters
        ----------
        change : callable (Event) -> Event

        Returns
        -------
        Event
        """
        return self

    def with_noise(self, change: NoiseChange) -> Self:
        """Return the same event with every noise multiplier passed through ``change``.

        Parameters
        ----------
        change : callable (float) -> float

        Returns
        -------
        Event
        """
        return self.with_inner(lambda event: event.with_noise(change))

    def scaled(self, factor: float) -> Self:
        """Return the same event with ``factor`` times the noise.

        Parameters
        ----------
        factor : float
            At least 0.

        Returns
        -------
        Event
        """
        return self.with_noise(lambda noise_multiplier: factor * noise_multiplier)

    def flattened(self) -> Iterator[tuple[Event, int]]:
        """Yield, in order, the (event, count) pairs whose composition this event is.

        Sequences are opened. An event that is trivially a simpler one is replaced by it: a sample
        of all rows by the event on the sample, a sample of no rows by nothing.

        Yields
        ------
        event : Event
        count : int
        """
        yield self, 1


def check_field(owner: object, name: str, is_valid: bool, rule: str) -> None:
    """Raise ValueError, naming the owner, the field and its value, unless ``is_valid``."""
    if not is_valid:
        value = getattr(owner, name)
        raise ValueError(f"{type(owner).__name__}: {name} must {rule}, got {value!r}.")


class EventWrapper(Event):
    """Base class of events that contain another event, in the field ``event``."""

    event: Event

    @property
    def n_answers(self) -> int:
        """Number of times that the event inside is answered."""
        return 1

    def inner(self) -> Parts:
        return ((self.event, self.n_answers),)

    def with_inner(self, change: Callable[[Event], Event]) -> Self:
        return replace(self, event=change(self.event))  # type: ignore[call-arg]  # of subclasses


@dataclass(frozen=True)
class Composed(Event):
    """A sequence of events on the same rows, each of which may depend on the *answers* before it.

    Meaning: adaptive sequential composition of ``parts``, given as pairs (event, count).
    ``Composed()`` is the event in which nothing happened. It costs nothing.

    Parameters
    ----------
    parts : tuple of (Event, int), default=()
        Events with their numbers of occurrences, in order.

    Raises
    ------
    ValueError
        If a part is no pair of an event and an integer of at least 1.
    """

    parts: Parts = ()

    def __post_init__(self) -> None:
        for event, count in self.parts:
            if not (isinstance(event, Event) and count >= 1 and count % 1 == 0):
                raise ValueError(
                    "Composed: parts are pairs of an event and an integer of at least 1, got "
                    f"{event!r}, {count!r}."
                )

    @classmethod
    def of(cls, events: Iterable[Event]) -> Composed:
        """Compose single events, merging runs of equal ones.

        Parameters
        ----------
        events : iterable of Event

        Returns
        -------
        Composed
        """
        runs = itertools.groupby(events)
        return cls(tuple((event, len(list(run))) for event, run in runs))

    def inner(self) -> Parts:
        return self.parts

    def with_inner(self, change: Callable[[Event], Event]) -> Self:
        return replace(self, parts=tuple((change(event), count) for event, count in self.parts))

    def flattened(self) -> Iterator[tuple[Event, int]]:
        for event, count in self.parts:
            for part, times in event.flattened():
                yield part, times * count


def walk(
    event: Event, into: type[Event] | tuple[type[Event], ...] = Event
) -> Iterator[tuple[Event, int]]:
    """Yield ``event`` and the events inside it, outermost first, with their numbers of answers.

    Parameters
    ----------
    event : Event
    into : type or tuple of types, default=Event
        Types of the events to look into. With `Composed` samples, blocks and passes are not opened.

    Yields
    ------
    event : Event
    count : int
    """
    yield event, 1
    if isinstance(event, into):
        for part, count in event.inner():
            for sub_event, times in walk(part, into):
                yield sub_event, count * times


# ---------------------------------------------------------------------- mechanisms


@dataclass(frozen=True)
class _AdditiveNoise(Event):
    """Base class of sums with additive noise. The subclasses explain the fields."""

    noise_multiplier: float
    spread: float = 2.0

    def __post_init__(self) -> None:
        is_finite = 0 <= self.noise_multiplier < math.inf
        check_field(self, "noise_multiplier", is_finite, "be finite and >= 0")
        check_field(self, "spread", 1 <= self.spread <= 2, "lie in [1, 2]")

    def with_noise(self, change: NoiseChange) -> Self:
        return replace(self, noise_multiplier=change(self.noise_multiplier))

    def sensitivity(self, adjacency: Adjacency) -> float:
        """Return the sensitivity in units of the contribution bound, in the norm of that bound.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
            1 under zero-out, ``spread`` under replace-one.
        """
        return 1.0 if adjacency is Adjacency.ZERO_OUT else self.spread

    def _sensitivity_over_noise(self, adjacency: Adjacency) -> float:
        if self.noise_multiplier == 0:
            return math.inf
        return self.sensitivity(adjacency) / self.noise_multiplier


@dataclass(frozen=True)
class Gaussian(_AdditiveNoise):
    """A sum over all rows plus isotropic Gaussian noise.

    Meaning: ``S(D) + N(0, (noise_multiplier * C)**2 I)``, where one record adds a vector of L2
    norm at most ``C`` to ``S``. The sensitivity is ``C`` under zero-out and ``spread * C`` under
    replace-one, so the release is exactly mu-GDP with ``mu = sensitivity / (noise_multiplier * C)``
    (Dong, Roth, Su 2019, Thm 2.7).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in units of the contribution bound. 0 means no noise.
    spread : float, default=2.0
        Largest distance between two contributions, in units of the bound. 2 for vectors that may
        point anywhere. 1 for counts, sqrt(2) for Gram matrices.

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    def mu(self, adjacency: Adjacency) -> float:
        """Return the Gaussian-DP parameter.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
            inf without noise.
        """
        return self._sensitivity_over_noise(adjacency)


@dataclass(frozen=True)
class Laplace(_AdditiveNoise):
    """A sum over all rows plus independent Laplace noise on each coordinate.

    Meaning: ``S(D) + Lap(noise_multiplier * C)`` per coordinate, where one record adds a vector of
    *L1* norm at most ``C`` to ``S``. The release is (sensitivity / noise_multiplier)-DP with
    delta = 0 (Dwork, McSherry, Nissim, Smith 2006), the L1 sensitivity being 1 under zero-out and
    ``spread`` under replace-one, in units of ``C``.

    Parameters
    ----------
    noise_multiplier : float
        The *scale* ``b`` of the noise (its standard deviation is ``b * sqrt(2)``) in units of the
        contribution bound. 0 means no noise.
    spread : float, default=2.0
        Largest L1 distance between two contributions, in units of the bound: 2 for vectors, 1 for
        counts. Values in between hold for L2 distances (sqrt(2) for Gram matrices). They would be
        wrong for L1 and are refused.

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "as no theorem bounds an L1 distance by an L2 figure such as sqrt(2)"
        rule = f"be 1 (counts) or 2 (anything else), {why}"
        check_field(self, "spread", self.spread in (1, 2), rule)

    def pure_epsilon(self, adjacency: Adjacency) -> float:
        """Return the epsilon at delta = 0.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
            inf without noise.
        """
        return self._sensitivity_over_noise(adjacency)


@dataclass(frozen=True)
class NoisyMaximum(_AdditiveNoise):
    """The place and the sign of the largest entry, in absolute value, of a sum with Laplace noise.

    Meaning: the noise is that of `Laplace`, ``Lap(noise_multiplier * C)`` per coordinate, but no
    entry leaves, and one record adds a vector whose *largest entry* is at most ``C``. The release
    is ``2 sensitivity / noise_multiplier``-DP with delta = 0, whatever the number of entries
    ("report noisy max", Dwork and Roth 2014, Claim 3.9). The proof for two-sided entries is in
    `skdp._oracle.releases.gradients`. Only this epsilon is used. The cost of Laplace noise on one
    number is no bound.

    Parameters
    ----------
    noise_multiplier : float
        The *scale* of the noise in units of C. 0 means no noise.
    spread : float, default=2.0
        Largest distance between two entries, in units of C.

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    def pure_epsilon(self, adjacency: Adjacency) -> float:
        """Return the epsilon at delta = 0.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
            inf without noise.
        """
        return 2 * self._sensitivity_over_noise(adjacency)


@dataclass(frozen=True)
class ApproximateDP(Event):
    """A mechanism of which only its guarantee is known.

    Meaning: any mechanism that is (epsilon, delta)-DP under the adjacency at hand. The costliest of
    them is the randomised response of Kairouz, Oh and Viswanath 2015 (Thm 3.4). Its noise cannot be
    calibrated: ``scaled`` returns the event itself.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float, default=0.0
        In [0, 1].

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_field(self, "epsilon", self.epsilon >= 0, "be at least 0")
        check_field(self, "delta", 0 <= self.delta <= 1, "lie in [0, 1]")


# ---------------------------------------------------------------------- some of the rows


@dataclass(frozen=True)
class Partition:
    """A division of the row numbers into disjoint blocks, drawn without looking at the rows.

    Two partitions are the same only if all fields agree: the blocks of different epochs overlap,
    so their costs add up.

    Parameters
    ----------
    epoch : int
        Number of the division, at least 0. A new division of the same rows needs a new number.
    n_blocks : int or None
        None if blocks have names, which may be any: those of disjoint parts of the people.
    cuts : tuple of int or None, default=None
        Where blocks of unequal size begin and end, as n_blocks + 1 positions in the order of the
        rows. Block i is ``[cuts[i], cuts[i + 1])``. Divisions that differ in nothing else differ by
        their cuts. None for blocks of equal size.
    shared : str, default=""
        Name of a division that several fits share, such as a hold-out: fits that are composed name
        the very same one by it. Divisions without a name are a fit's own.

    Raises
    ------
    ValueError
        If the epoch is negative, there is no block, or the number of cuts is another.
    """

    epoch: int
    n_blocks: int | None
    cuts: tuple[int, ...] | None = None
    shared: str = ""

    def __post_init__(self) -> None:
        check_field(self, "epoch", self.epoch >= 0, "be at least 0")
        is_number = self.n_blocks is None or self.n_blocks >= 1
        check_field(self, "n_blocks", is_number, "be at least 1, or None")
        if self.n_blocks is None:
            is_fine = self.shared != "" and self.cuts is None
            check_field(self, "shared", is_fine, "name a division whose blocks have names")
            return
        fitting = self.cuts is None or len(self.cuts) == self.n_blocks + 1
        check_field(self, "cuts", fitting, f"be {self.n_blocks + 1} positions or None")


@dataclass(frozen=True)
class OnBlock(EventWrapper):
    """An event on the rows of one block of a partition that was drawn independently of the rows.

    Meaning: ``event`` is applied to the rows whose numbers lie in block ``block``. A record lies in
    one block of the partition only, so the costs of *different* blocks of the *same* partition do
    not add: their maximum is charged (parallel composition, McSherry 2009, Thm 4, valid here
    because both relations keep row numbers in place). Releases on the same block add up. A block
    may itself be divided: ``event`` may be on a block of a division of this block's rows.

    Parameters
    ----------
    partition : Partition
    block : int or str
        In [0, n_blocks), or a name.
    event : Event

    Raises
    ------
    ValueError
        If the partition has no such block.
    """

    partition: Partition
    block: int | str
    event: Event

    def __post_init__(self) -> None:
        n_blocks = self.partition.n_blocks
        if n_blocks is None or isinstance(self.block, str):
            is_name = n_blocks is None and isinstance(self.block, str)
            check_field(self, "block", is_name, "be a name if the partition has names")
            return
        check_field(self, "block", 0 <= self.block < n_blocks, f"lie in [0, {n_blocks})")

    @property
    def innermost(self) -> OnBlock:
        """The event on a block of the last division, if a block is itself divided."""
        return self.event.innermost if isinstance(self.event, OnBlock) else self

    def moved(self, block: int) -> OnBlock:
        """Return the same event on another block of the last division."""
        if isinstance(self.event, OnBlock):
            return replace(self, event=self.event.moved(block))
        return replace(self, block=block)

    def flattened(self) -> Iterator[tuple[Event, int]]:
        for part, count in self.event.flattened():
            yield replace(self, event=part), count


class Sampled(EventWrapper):
    """Base class of events on a secret random sample, which a record joins with some probability.

    Attributes
    ----------
    rate : float
        That probability, in [0, 1].
    """

    rate: float

    def flattened(self) -> Iterator[tuple[Event, int]]:
        if self.rate == 1:
            yield from self.event.flattened()
        elif self.rate > 0 and any(self.event.flattened()):
            yield self, 1


@dataclass(frozen=True)
class PoissonSampled(Sampled):
    """An event on a sample that each record joins by its own coin toss.

    Meaning: ``event`` is applied to the rows whose secret, independent coins of probability
    ``rate`` come up heads. Contributions of rows left out are null, and anything the sum is divided
    by is public: the *expected* size of the sample, never its actual size. If ``event`` is a
    sequence, all its parts see the same sample.

    Parameters
    ----------
    rate : float
        In [0, 1].
    event : Event

    Raises
    ------
    ValueError
        If the rate is out of its range.
    """

    rate: float
    event: Event

    def __post_init__(self) -> None:
        check_field(self, "rate", 0 <= self.rate <= 1, "lie in [0, 1]")


@dataclass(frozen=True)
class FixedSizeSampled(Sampled):
    """An event on a secret sample of fixed size, drawn without replacement.

    Meaning: ``event`` is applied to ``sample_size`` of ``n_rows`` rows, every such subset being
    equally likely, with a fresh subset for every event. If ``event`` is a sequence, all its parts
    see the same sample. Amplification is proved under replace-one only: leaving a record out
    changes ``n_rows``.

    Parameters
    ----------
    sample_size, n_rows : int
        ``0 <= sample_size <= n_rows``, ``n_rows >= 1``, both public.
    event : Event

    Raises
    ------
    ValueError
        If a number is out of its range.
    """

    sample_size: int
    n_rows: int
    event: Event

    def __post_init__(self) -> None:
        check_field(self, "n_rows", self.n_rows >= 1, "be at least 1")
        fitting = 0 <= self.sample_size <= self.n_rows
        check_field(self, "sample_size", fitting, f"lie in [0, {self.n_rows}]")

    @property
    def rate(self) -> float:  # type: ignore[override]  # follows from the fields
        """Share of the rows that are in the sample."""
        return self.sample_size / self.n_rows


@dataclass(frozen=True)
class Shuffled(EventWrapper):
    """One answer per record, in a secret random order of the records.

    Meaning: a uniformly random permutation of ``n`` records is drawn. The t-th answer is the local
    randomiser ``event`` applied only to the t-th record, and may depend on the answers before it.
    All answers are released. Each record being used once, the pass costs no more than one answer.
    The secret order can make it cost far less. For that the guarantee of the randomiser must hold
    between any two records (and the null record), so it uses replace-one whatever the adjacency of
    the plan.

    One answer per *batch* is another event: batches differ in all of their rows, so a bound for one
    changed record does not make them clones of each other.

    Parameters
    ----------
    n : int
        Number of records, each of which is used exactly once.
    event : Gaussian, Laplace or ApproximateDP
        The local randomiser: the release about one record.

    Raises
    ------
    ValueError
        If n is less than 1, or the event is a sequence.
    """

    n: int
    event: Event

    def __post_init__(self) -> None:
        check_field(self, "n", self.n >= 1, "be at least 1")
        check_field(self, "event", not isinstance(self.event, Composed), "be a single event")

    @property
    def n_answers(self) -> int:
        return self.n


@dataclass(frozen=True)
class Selected(EventWrapper):
    """The best of a random number of independent runs, the only one that is released.

    Meaning: ``K`` is drawn from the geometric distribution with mean ``mean_runs``. ``event`` is
    run ``K`` times with fresh noise on the same rows, each run ending in a pair (answer, score).
    The pair with the highest score is released, ties being broken by a fair coin, and nothing else
    is (Papernot and Steinke 2022, arXiv:2110.03620, Def. 1 with ``eta = 1``). A run must not depend
    on the runs before it.

    Parameters
    ----------
    event : Event
        One run, including the release of its score. Only Gaussian runs have a price.
    mean_runs : float
        Expected number of runs, greater than 1.

    Raises
    ------
    ValueError
        If the mean is out of its range.
    """

    event: Event
    mean_runs: float

    def __post_init__(self) -> None:
        check_field(self, "mean_runs", 1 < self.mean_runs < math.inf, "be finite and above 1")

    @property
    def gamma(self) -> float:
        """Probability that a run is the last one."""
        return 1 / self.mean_runs


# ---------------------------------------------------------------------- events that a record meets

# Distinct events with their numbers of occurrences. The order does not matter for the cost.
EventCounts = dict[Event, int]
Blocks = dict[int | str, EventCounts]

# Maximum number of combinations of blocks that a record can lie in. Plans with more raise
# UnknownCost. A choice of ours: each combination is priced separately.
MAX_PATHS = 256


def counts_of(event: Event) -> EventCounts:
    """Count the distinct events that ``event`` is composed of, in order of first appearance."""
    return _merged(event.flattened())


def _merged(pairs: Iterable[tuple[Event, int]]) -> EventCounts:
    total: EventCounts = {}
    for event, count in pairs:
        total[event] = total.get(event, 0) + count
    return total


def by_block(event: Event) -> tuple[EventCounts, dict[Partition, Blocks]]:
    """Separate the events on all rows from the events on each block of each partition."""
    common: EventCounts = {}
    blocks: dict[Partition, Blocks] = {}
    for part, count in counts_of(event).items():
        if not isinstance(part, OnBlock):
            common[part] = count
        else:
            blocks.setdefault(part.partition, {}).setdefault(part.block, {})[part.event] = count
    return common, blocks


def paths(event: Event, adjacency: Adjacency) -> list[EventCounts]:
    """Return the collections of events that a single record can meet. The costliest is the cost.

    A record lies in one block of each partition, and in one of the blocks of that block. So it
    meets the events on all rows and, for every partition, those on one of its blocks. Blocks that
    cannot be the costliest are left out. Parallel composition holds under both relations: a row
    keeps its number, hence its block.
    """
    common, partitions = by_block(event)
    choices = []
    for blocks in partitions.values():
        inside = (Composed(tuple(counts.items())) for counts in blocks.values())
        met = (path for content in inside for path in paths(content, adjacency))
        choices.append(_costliest(met, adjacency))
    if math.prod(map(len, choices)) > MAX_PATHS:
        raise UnknownCost(
            f"more than {MAX_PATHS} combinations of blocks, none of them plainly the costliest."
        )
    return [
        _merged(pair for part in (common, *chosen) for pair in part.items())
        for chosen in itertools.product(*choices)
    ]


def opened(path: EventCounts) -> EventCounts:
    """Return the events with shuffled passes as the one answer that uses the record."""
    pairs = ((part.event if isinstance(part, Shuffled) else part, n) for part, n in path.items())
    return counts_of(Composed(tuple(pairs)))


def _costliest(contents: Iterable[EventCounts], adjacency: Adjacency) -> list[EventCounts]:
    """Drop the blocks that cost no more than some other block."""
    distinct = {frozenset(item.items()): item for item in contents}.values()
    # Gaussian blocks are ordered: the one with the largest mu dominates all others.
    gaussian = [item for item in distinct if joint_mu(item, adjacency) is not None]
    left = [item for item in distinct if item not in gaussian]
    if gaussian:
        left.append(max(gaussian, key=lambda item: joint_mu(item, adjacency) or 0.0))
    kept: list[EventCounts] = []
    for item in sorted(left, key=_least_noise_first):
        if not any(_costs_no_less(other, item) for other in kept):
            kept.append(item)
    return kept


def _least_noise_first(counts: EventCounts) -> tuple[tuple[float, ...], int]:
    levels = [level for event in counts for level in noise_levels(event)]
    return tuple(sorted(levels)), -sum(counts.values())


def _costs_no_less(first: EventCounts, second: EventCounts) -> bool:
    """Whether every event of ``second`` has an event of its own in ``first`` that costs no less.

    Less noise of the same kind costs no less: further noise can be added to the answer afterwards
    (Gaussian and Laplace distributions are sums of one with less noise and another variable), and
    a noisy maximum is charged only by its epsilon.
    """
    if set(second) <= set(first):
        return all(first[event] >= count for event, count in second.items())
    if len(first) != 1 or len(second) != 1:
        return False
    (one, one_count), (other, other_count) = *first.items(), *second.items()
    same_kind = one.with_noise(lambda _: 1.0) == other.with_noise(lambda _: 1.0)
    if not same_kind or one_count < other_count:
        return False
    levels = zip(noise_levels(one), noise_levels(other), strict=True)
    return all(less <= more for less, more in levels)


def joint_mu(counts: EventCounts, adjacency: Adjacency) -> float | None:
    """Gaussian-DP parameter of Gaussian events together. None if there are other events.

    Squares add up (Dong, Roth, Su 2019, Cor. 3.3).
    """
    squares = 0.0
    for event, count in counts.items():
        if not isinstance(event, Gaussian):
            return None
        squares += count * event.mu(adjacency) ** 2
    return math.sqrt(squares)


def sampled_counts(event: Sampled, adjacency: Adjacency) -> EventCounts:
    """Count the events on one sample. UnknownCost if no sampling theorem can apply to them."""
    counts = counts_of(event.event)
    if isinstance(event, FixedSizeSampled) and adjacency is Adjacency.ZERO_OUT:
        raise UnknownCost(
            "FixedSizeSampled is amplified under replace_one only: a record left out changes the "
            "number of rows, and with it the rate."
        )
    if isinstance(event, PoissonSampled) and adjacency is Adjacency.REPLACE_ONE:
        for part in counts:
            if not isinstance(part, Gaussian | Laplace):
                raise UnknownCost(
                    "a guarantee under replace_one does not cover a record left out of the "
                    f"sample, so PoissonSampled of {type(part).__name__} has no theorem under "
                    "replace_one."
                )
    return counts


def noise_levels(event: Event) -> tuple[float, ...]:
    """Return the noise multipliers in ``event``, in order."""
    levels: list[float] = []

    def record(noise_multiplier: float) -> float:
        levels.append(noise_multiplier)
        return noise_multiplier

    event.with_noise(record)
    return tuple(levels)


def coarsened(counts: Parts, ratio: float) -> Parts:
    """Round every noise multiplier down to a power of ``ratio``, and merge equal events.

    Less noise costs no less, so the cost of the result is an upper bound.
    """

    def rounded(noise_multiplier: float) -> float:
        if noise_multiplier == 0:
            return 0.0
        power = math.floor(math.log(noise_multiplier) / math.log(ratio))
        return min(noise_multiplier, ratio**power)

    return tuple(_merged((event.with_noise(rounded), count) for event, count in counts).items())
