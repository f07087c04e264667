"""One pass over disjoint blocks of rows, with a noisy answer about each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from skdp.accounting.events.base import Event, NoiseChange


@dataclass(frozen=True)
class OnePass(Event):
    """``n_steps`` answers, each about the rows of its own block of one division of the rows.

    Meaning: the rows are divided in ``n_steps`` disjoint blocks without looking at them; the t-th
    answer is ``event`` applied to the rows of block t, and may depend on the answers before it. All
    answers are released. A record lies in one block, so the pass costs no more than one answer
    (parallel composition, McSherry 2009, Thm 4; valid here because both relations keep row numbers
    in place). It is what `OnBlock` says of each block, as one event however many blocks there are.
    A second pass over the same rows is another event, and costs add up.

    Parameters
    ----------
    n_steps : int
        Number of blocks.
    event : Event
        The answer on one block. Where the noise varies over the blocks, the least of it.
    """

    n_steps: int
    event: Event

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise ValueError(f"OnePass: n_steps must be at least 1; got {self.n_steps!r}.")

    def with_noise(self, change: NoiseChange) -> OnePass:
        return replace(self, event=self.event.with_noise(change))

    def flattened(self) -> Iterator[tuple[Event, int]]:
        yield from self.event.flattened()
