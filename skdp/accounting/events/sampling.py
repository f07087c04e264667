"""Events on a random sample of the rows, and on rows in a random order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from skdp.accounting.events.base import Composed, Event, NoiseChange


def _sample_flattened(sampled: Event, rate: float, inner: Event) -> Iterator[tuple[Event, int]]:
    if rate == 0 or not any(inner.flattened()):
        return
    if rate == 1:
        yield from inner.flattened()
    else:
        yield sampled, 1


@dataclass(frozen=True)
class PoissonSampled(Event):
    """An event on a sample that each record joins by its own coin.

    Meaning: ``event`` is applied to the rows whose secret, independent coins of probability
    ``rate`` fall heads. Contributions of rows left out are null, and anything the sum is divided
    by is public: the *expected* size of the sample, never the size that came out.
    Composed inside, all parts see the same sample.

    Parameters
    ----------
    rate : float
        In [0, 1].
    event : Event
    """

    rate: float
    event: Event

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise ValueError(f"PoissonSampled: rate must lie in [0, 1]; got {self.rate!r}.")

    def with_noise(self, change: NoiseChange) -> PoissonSampled:
        return replace(self, event=self.event.with_noise(change))

    def flattened(self) -> Iterator[tuple[Event, int]]:
        return _sample_flattened(self, self.rate, self.event)


@dataclass(frozen=True)
class FixedSizeSampled(Event):
    """An event on a secret sample of fixed size, drawn without replacement.

    Meaning: ``event`` is applied to ``sample_size`` of ``n_rows`` rows, every such subset being
    equally likely, a fresh one at every event. Composed inside, all parts see the same sample.
    Amplification is proved under replace-one only: to leave a record out changes ``n_rows``.

    Parameters
    ----------
    sample_size, n_rows : int
        ``0 <= sample_size <= n_rows``, ``n_rows >= 1``, both public.
    event : Event
    """

    sample_size: int
    n_rows: int
    event: Event

    def __post_init__(self) -> None:
        if not 0 <= self.sample_size <= self.n_rows or self.n_rows < 1:
            raise ValueError(
                "FixedSizeSampled: sample_size must lie in [0, n_rows] and n_rows be at least 1; "
                f"got sample_size={self.sample_size!r}, n_rows={self.n_rows!r}."
            )

    @property
    def rate(self) -> float:
        """Share of the rows in the sample."""
        return self.sample_size / self.n_rows

    def with_noise(self, change: NoiseChange) -> FixedSizeSampled:
        return replace(self, event=self.event.with_noise(change))

    def flattened(self) -> Iterator[tuple[Event, int]]:
        return _sample_flattened(self, self.rate, self.event)


@dataclass(frozen=True)
class Shuffled(Event):
    """One answer per record, the records taken in a secret random order.

    Meaning: a uniformly random permutation of ``n`` records is drawn; the t-th answer is
    ``randomiser`` applied to the t-th record *alone*, and may depend on the answers before it.
    All answers are released. Each record being used once, the pass costs no more than one
    answer; the secret order can make it cost far less. For that the guarantee of the randomiser
    must hold between any two records (and the null record), so it is taken under replace-one
    whatever relation is asked for.

    One answer per *batch* is another event: what tells batches apart is all of their rows, so no
    bound for one changed record makes them clones of each other.

    Parameters
    ----------
    n : int
        Number of records, each of which is used exactly once.
    randomiser : Gaussian, Laplace or ApproximateDP
        What is done to one record.
    """

    n: int
    randomiser: Event

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"Shuffled: n must be at least 1; got {self.n!r}.")
        if isinstance(self.randomiser, Composed):
            raise ValueError("Shuffled: the randomiser must be a single event, not a sequence.")

    def with_noise(self, change: NoiseChange) -> Shuffled:
        return replace(self, randomiser=self.randomiser.with_noise(change))
