"""Events on some of the rows, or repeated a random number of times; partitions of the rows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from scipy.optimize import brentq

from skdp.accounting.events.base import Composed, Event, EventWrapper, check_field


@dataclass(frozen=True)
class Partition:
    """A division of the row numbers into disjoint blocks, drawn without looking at the rows.

    Two partitions are the same only if all fields agree: the blocks of different epochs overlap,
    so their costs add up.

    Parameters
    ----------
    epoch : int
        Number of the division, at least 0; a new division of the same rows needs a new number.
    n_blocks : int
    cuts : tuple of int or None, default=None
        Where blocks of unequal size begin and end, as n_blocks + 1 positions in the order of the
        rows; block i is ``[cuts[i], cuts[i + 1])``. Divisions that differ in nothing else
        differ by their cuts. None for blocks of equal size.
    shared : str, default=""
        Name of a division that several fits share, such as a hold-out: fits that are composed name
        the very same one by it. Divisions without a name are a fit's own.

    Raises
    ------
    ValueError
        If the epoch is negative, there is no block, or the number of cuts is another.
    """

    epoch: int
    n_blocks: int
    cuts: tuple[int, ...] | None = None
    shared: str = ""

    def __post_init__(self) -> None:
        check_field(self, "epoch", self.epoch >= 0, "be at least 0")
        check_field(self, "n_blocks", self.n_blocks >= 1, "be at least 1")
        fitting = self.cuts is None or len(self.cuts) == self.n_blocks + 1
        check_field(self, "cuts", fitting, f"be {self.n_blocks + 1} positions or None")


@dataclass(frozen=True)
class OnBlock(EventWrapper):
    """An event on the rows of one block of a partition that was drawn independently of the rows.

    Meaning: ``event`` is applied to the rows whose numbers lie in block ``block``. A record lies in
    one block of the partition only, so the costs of *different* blocks of the *same* partition do
    not add: their maximum is charged (parallel composition, McSherry 2009, Thm 4; valid here
    because both relations keep row numbers in place). Releases on the same block add up. A block
    may itself be divided: ``event`` may be on a block of a division of this block's rows.

    Parameters
    ----------
    partition : Partition
    block : int
        In [0, n_blocks).
    event : Event

    Raises
    ------
    ValueError
        If the partition has no such block.
    """

    partition: Partition
    block: int
    event: Event

    def __post_init__(self) -> None:
        n_blocks = self.partition.n_blocks
        check_field(self, "block", 0 <= self.block < n_blocks, f"lie in [0, {n_blocks})")

    def flattened(self) -> Iterator[tuple[Event, int]]:
        for part, count in self.event.flattened():
            yield replace(self, event=part), count


@dataclass(frozen=True)
class DisjointPass(EventWrapper):
    """``n_steps`` answers, each computed on a different block of one partition of the rows.

    Meaning: the rows are divided into ``n_steps`` disjoint blocks without looking at them; the t-th
    answer is ``event`` applied to the rows of block t, and may depend on the answers before it. All
    answers are released. A record lies in one block, so the pass costs no more than one answer
    (parallel composition, McSherry 2009, Thm 4; valid here because both relations keep row numbers
    in place). It is equivalent to one `OnBlock` for each block, but a single event however many
    blocks there are. A second pass over the same rows is another event, and costs add up.

    Parameters
    ----------
    n_steps : int
        Number of blocks.
    event : Event
        The answer on one block. Where the noise varies between blocks, the one with the least.

    Raises
    ------
    ValueError
        If there is no block.
    """

    count_field = "n_steps"
    n_steps: int
    event: Event

    def __post_init__(self) -> None:
        check_field(self, "n_steps", self.n_steps >= 1, "be at least 1")

    def flattened(self) -> Iterator[tuple[Event, int]]:
        yield from self.event.flattened()


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
    """One answer per record, the records being taken in a secret random order.

    Meaning: a uniformly random permutation of ``n`` records is drawn; the t-th answer is the local
    randomiser ``event`` applied to the t-th record *alone*, and may depend on the answers before
    it. All answers are released. Each record being used once, the pass costs no more than one
    answer; the secret order can make it cost far less. For that the guarantee of the randomiser
    must hold between any two records (and the null record), so it is taken under replace-one
    whatever the adjacency of the plan.

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

    count_field = "n"
    n: int
    event: Event

    def __post_init__(self) -> None:
        check_field(self, "n", self.n >= 1, "be at least 1")
        check_field(self, "event", not isinstance(self.event, Composed), "be a single event")


@dataclass(frozen=True)
class Selected(EventWrapper):
    """The best of a random number of independent runs, the only one that is released.

    Meaning: ``K`` is drawn from the truncated negative binomial distribution with shape ``eta``
    and mean ``mean_runs``; ``event`` is run ``K`` times with fresh noise on the same rows, each
    run ending in a pair (answer, score); the pair with the highest score is released, ties being
    broken by a fair coin, and nothing else is (Papernot and Steinke 2022, arXiv:2110.03620,
    Def. 1). What a run does must not depend on the runs before it.

    Parameters
    ----------
    event : Event
        One run, including the release of its score.
    mean_runs : float
        Expected number of runs, greater than 1.
    shape : float, default=1.0
        ``eta >= 0``. 1 is the geometric distribution; 0 the logarithmic one, which is slightly
        cheaper but far more often makes a single run.

    Raises
    ------
    ValueError
        If the mean or the shape is out of its range.
    """

    event: Event
    mean_runs: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        check_field(self, "mean_runs", 1 < self.mean_runs < math.inf, "be finite and above 1")
        check_field(self, "shape", 0 <= self.shape < math.inf, "be finite and >= 0")

    @property
    def gamma(self) -> float:
        """Parameter of the distribution that gives the mean, rounded down, which is safe."""
        if self.shape == 1:
            return 1 / self.mean_runs
        # The mean falls from infinity at gamma = 0 to 1 at gamma = 1.
        log_gamma = brentq(
            lambda log_gamma: math.log(
                _mean_runs(math.exp(log_gamma), self.shape) / self.mean_runs
            ),
            -700.0 / max(1.0, self.shape),
            -1e-12,
            xtol=1e-14,
        )
        return math.exp(log_gamma) * (1 - 1e-12)


def _mean_runs(gamma: float, shape: float) -> float:
    """Mean of the truncated negative binomial distribution (Papernot and Steinke 2022, Def. 1)."""
    odds = (1 - gamma) / gamma
    if shape == 0:
        return odds / -math.log(gamma)
    return shape * odds / -math.expm1(shape * math.log(gamma))
