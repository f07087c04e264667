"""Events on disjoint blocks of the rows, and the partitions into such blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from skdp.accounting.events.base import Event, Wrapper, check_field


@dataclass(frozen=True)
class Partition:
    """A division of the row numbers into disjoint blocks, drawn without looking at the rows.

    Two partitions are the same only if all fields agree: the blocks of different epochs overlap,
    so their costs add up.

    Parameters
    ----------
    epoch : int
        Number of the division; a new division of the same rows needs a new number.
    n_blocks : int
    allocation : bool, default=False
        Whether every record draws its block uniformly and independently of all others (balls and
        bins), the draws stay secret, and empty blocks are answered like any other.
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
        If there is no block, or the number of cuts is another.
    """

    epoch: int
    n_blocks: int
    allocation: bool = False
    cuts: tuple[int, ...] | None = None
    shared: str = ""

    def __post_init__(self) -> None:
        check_field(self, "n_blocks", self.n_blocks >= 1, "be at least 1")
        fitting = self.cuts is None or len(self.cuts) == self.n_blocks + 1
        check_field(self, "cuts", fitting, f"be {self.n_blocks + 1} positions or None")


@dataclass(frozen=True)
class OnBlock(Wrapper):
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
class DisjointPass(Wrapper):
    """``n_steps`` answers, each about the rows of its own block of one division of the rows.

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

    n_steps: int
    event: Event

    def __post_init__(self) -> None:
        check_field(self, "n_steps", self.n_steps >= 1, "be at least 1")

    @property
    def n_answers(self) -> int:
        return self.n_steps

    def flattened(self) -> Iterator[tuple[Event, int]]:
        yield from self.event.flattened()


@dataclass(frozen=True)
class BallsAndBins(Wrapper):
    """One pass over blocks to which the records were assigned like balls thrown into bins.

    Meaning: every record draws one of ``n_bins`` bins uniformly, independently of all others, and
    the draws stay secret; then ``event`` is applied to each bin in turn, each time allowed to
    depend on earlier answers. All ``n_bins`` answers are released, empty bins included, and no
    answer is divided by the private number of rows in a bin. Each record being used once, the pass
    costs no more than one answer. For Gaussian answers under zero-out the secret draws make it
    cost less: the pair ``(mean over j of N(e_j), N(0))`` dominates (Chua et al. 2025,
    arXiv:2412.16802; Feldman and Shenfeld 2026, arXiv:2602.17284).

    Parameters
    ----------
    n_bins : int
        At least 1.
    event : Gaussian
        The answer on one bin. Where the noise varies between bins, the one with the least.

    Raises
    ------
    ValueError
        If there is no bin.
    """

    n_bins: int
    event: Event

    def __post_init__(self) -> None:
        check_field(self, "n_bins", self.n_bins >= 1, "be at least 1")

    @property
    def n_answers(self) -> int:
        return self.n_bins

    def flattened(self) -> Iterator[tuple[Event, int]]:
        yield from self.event.flattened() if self.n_bins == 1 else ((self, 1),)
