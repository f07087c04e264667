"""Sources of randomness: the operating system or, without privacy, a seed."""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import ClassVar, Literal, NoReturn, SupportsIndex, TypeAlias

import numpy as np

from skdp._numbers import Array, Indices
from skdp._oracle import exact_sampling
from skdp.accounting import Adjacency, Event, Gaussian, Laplace, NoisyMaximum

Size: TypeAlias = int | tuple[int, ...]

MOST_INDICES = 2**48  # exact_sampling.BATCH gaps of that size sum up to an int64


class NoiseSource(ABC):
    """Source of noise and of secret choices.

    A source can be neither pickled nor copied: two copies would give the same noise twice, and
    the difference of two releases would then be free of noise.

    Attributes
    ----------
    name : {"system", "seeded"}
        Only noise of "system" is private.
    keeps_record : bool
        Whether it wants to be shown every answer. See :func:`drawing_through`.
    """

    name: ClassVar[Literal["system", "seeded"]]
    keeps_record: ClassVar[bool] = False

    def record_charge(self, kind: str, event: Event, scale: float, adjacency: Adjacency) -> None:  # noqa: B027
        """Record that a release was charged, and will be answered.

        Parameters
        ----------
        kind : str
        event : Event
            Its cost, in relative units.
        scale : float
            Calibrated factor on the event's noise.
        adjacency : Adjacency
        """

    def record_answer(
        self,
        answer: Array,
        statistic: Array,
        event: Gaussian | Laplace | NoisyMaximum,
        bound: float,
        std: float,
    ) -> Array:
        """Record a noisy answer, and return the answer to use.

        Parameters
        ----------
        answer : array
        statistic : array
            The answer without noise.
        event : Gaussian, Laplace or NoisyMaximum
            The mechanism. Its sensitivity is in units of ``bound``.
        bound : float
            Largest contribution of one record to the statistic.
        std : float
            Standard deviation of the noise in each coordinate.

        Returns
        -------
        array
            ``answer``, unless a source for tests replaces it.
        """
        return answer

    def record_batch(self, rows: Indices, n_rows: int) -> None:  # noqa: B027
        """Record the numbers of the rows, of ``n_rows``, that are drawn for a release."""

    def answering(self) -> AbstractContextManager[None]:
        """Return a context in which a release is answered: only there are rows read.

        Returns
        -------
        context manager
        """
        return nullcontext()

    @abstractmethod
    def gaussian(self, scale: float, size: Size) -> Array:
        """Draw round(scale * Z), Z standard normal.

        Parameters
        ----------
        scale : float
            Standard deviation, in units of the grid, from 1 to 2**49.
        size : int or tuple of int
            Shape of the result.

        Returns
        -------
        ndarray of float64
            Exact integers.
        """

    @abstractmethod
    def laplace(self, scale: float, size: Size) -> Array:
        """Draw round(scale * L), L with density ``exp(-|x|)/2``: its std is sqrt(2) ``scale``.

        Parameters
        ----------
        scale : float
            Scale (not standard deviation), in units of the grid, from 1 to 2**45.
        size : int or tuple of int
            Shape of the result.

        Returns
        -------
        ndarray of float64
            Exact integers.
        """

    @abstractmethod
    def integers(self, high: int, size: Size) -> Indices:
        """Draw uniform integers from {0, ..., high - 1}, for high from 1 to 2**63.

        Returns
        -------
        int64 array of shape ``size``
        """

    @abstractmethod
    def permutation(self, n: int) -> Indices:
        """Draw a uniform permutation of range(n).

        Returns
        -------
        array of shape (n,), int64
        """

    @abstractmethod
    def bernoulli_subset(self, n: int, rate: float) -> Indices:
        """Draw each of range(n) independently with probability ``rate`` (Poisson sampling).

        Parameters
        ----------
        n : int
            At most 2**48.
        rate : float
            From 0 to 1. Time and memory are O(n rate) in expectation.

        Returns
        -------
        ndarray of int64
            The chosen, in increasing order.
        """

    def coins(self) -> np.random.Generator:
        """Return a generator for choices that need no secrecy, reproducible if the noise is.

        Returns
        -------
        numpy.random.Generator
        """
        return np.random.default_rng([int(part) for part in self.integers(2**32, 4)])

    def runs(self, n: int, mean: int) -> Iterator[int]:
        """Yield uniform integers from {0, ..., n - 1}: a geometric number, ``mean`` expected.

        Yields
        ------
        int
        """
        while True:
            yield int(self.integers(n, 1)[0])
            if self.integers(mean, 1)[0] == 0:
                return

    def choose(self, n: int, m: int) -> Indices:
        """Draw a uniform subset of m of range(n), without replacement.

        Uniform numbers are added to a set until it holds m. No step tells one index from another,
        so every permutation of range(n) leaves the distribution of the set as it is: it is uniform.

        Parameters
        ----------
        n : int
            At most 2**48.
        m : int
            At most n. Expected memory is O(m) and so is the time, but for sorting.

        Returns
        -------
        ndarray of int64
            The chosen, in increasing order.

        Raises
        ------
        ValueError
            If n exceeds 2**48, or m exceeds n.
        """
        n = _count("choose", n)
        m = operator.index(m)
        if not 0 <= m <= n:
            raise ValueError(f"choose: m must be from 0 to n = {n}, got {m}. Nothing was drawn.")
        if 2 * m > n:  # what is left out is fewer
            mask = np.ones(n, np.bool_)
            mask[self.choose(n, n - m)] = False
            return np.flatnonzero(mask).astype(np.int64, copy=False)
        # As many as are missing are drawn, so never too many, and repetitions dropped.
        chosen = np.empty(0, np.int64)
        while missing := m - len(chosen):
            chosen = np.unique(np.concatenate((chosen, self.integers(n, missing))))
        return chosen

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise TypeError(
            f"noise source {self.name!r} can be neither pickled nor copied: both copies would give "
            "the same noise, which could then be subtracted. Make a new source instead."
        )


class SystemSource(NoiseSource):
    """Exact noise from the operating system's secure random bits (`os.urandom`), the default.

    Every draw follows its distribution exactly, not only up to the precision of float64.
    `RejectionSampler` has the argument. The noise is continuous noise rounded to integers. For an
    integer k, round(k + x) = k + round(x), so adding it to k is post-processing of continuous noise
    added to k: the accounting of the Gaussian and Laplace mechanisms holds with no slack for
    floating point.

    The time of a call depends weakly on its result. This source does not defend against an attacker
    who can time single calls.
    """

    name = "system"

    def __init__(self) -> None:
        self._words = exact_sampling.SystemWords()
        self._buffer = exact_sampling.SampleBuffer()

    def gaussian(self, scale: float, size: Size) -> Array:
        """Draw round(scale * Z), Z standard normal, exactly. See `NoiseSource.gaussian`."""
        sampler = exact_sampling.gaussian(float(scale))
        return self._buffer.rounded(sampler, _length(size), self._words).reshape(size)

    def laplace(self, scale: float, size: Size) -> Array:
        """Draw round(scale * L) exactly. See `NoiseSource.laplace`."""
        sampler = exact_sampling.laplace(float(scale))
        return self._buffer.rounded(sampler, _length(size), self._words).reshape(size)

    def integers(self, high: int, size: Size) -> Indices:
        """Draw uniform integers from {0, ..., high - 1}: bits are drawn until they are below."""
        high = _high(high)
        width = (high - 1).bit_length()
        out = np.zeros(_length(size), np.int64)
        filled = 0 if width else len(out)
        share = high / 2**width
        while filled < len(out):
            wanted = len(out) - filled
            enough = int((wanted + 3.0 * math.sqrt(wanted)) / share) + 4
            drawn = self._words(min(enough, exact_sampling.BATCH)) >> np.uint64(64 - width)
            drawn = drawn[drawn < np.uint64(high)][:wanted]
            out[filled : filled + len(drawn)] = drawn.view(np.int64)
            filled += len(drawn)
        return out.reshape(size)

    def permutation(self, n: int) -> Indices:
        """Draw a uniform permutation of range(n): the order of n keys, redrawn until all differ."""
        n = _count("permutation", n)
        while True:
            keys = self._words(n)
            order = np.argsort(keys)
            ranked = keys[order]
            if (ranked[1:] != ranked[:-1]).all():
                return order.astype(np.int64, copy=False)

    def bernoulli_subset(self, n: int, rate: float) -> Indices:
        """Draw each of range(n) independently. See `NoiseSource.bernoulli_subset`.

        Up to rounding to 2^-52 at most, and never more often than ``rate``: see
        `skdp._oracle.exact_sampling.bernoulli_subset`.
        """
        n, rate = _count("bernoulli_subset", n), _rate(rate)
        return exact_sampling.bernoulli_subset(n, rate, self._words)


class SeededSource(NoiseSource):
    """Noise from a seed, for tests and benchmarks: reproducible, hence removable, not private.

    Parameters
    ----------
    seed_or_generator : int or numpy.random.Generator
        With an integer the stream is not that of ``numpy.random.default_rng(seed)``: data made
        with the same seed do not come back as noise. A generator is used as it is.
    """

    name = "seeded"

    def __init__(self, seed_or_generator: int | np.random.Generator) -> None:
        if isinstance(seed_or_generator, np.random.Generator):
            self._generator = seed_or_generator
        else:
            self._generator = _generator(operator.index(seed_or_generator))

    def gaussian(self, scale: float, size: Size) -> Array:
        """Draw round(scale * Z) in float64. See `NoiseSource.gaussian`."""
        scale = float(scale)
        exact_sampling.gaussian(scale)  # refuses the scales that SystemSource refuses
        return _rint(scale * self._generator.standard_normal(_shape(size)))

    def laplace(self, scale: float, size: Size) -> Array:
        """Draw round(scale * L) in float64. See `NoiseSource.laplace`."""
        scale = float(scale)
        exact_sampling.laplace(scale)
        return _rint(self._generator.laplace(0.0, scale, _shape(size)))

    def integers(self, high: int, size: Size) -> Indices:
        """Draw uniform integers from {0, ..., high - 1}."""
        return self._generator.integers(_high(high), size=_shape(size), dtype=np.int64)

    def permutation(self, n: int) -> Indices:
        """Draw a uniform permutation of range(n)."""
        return self._generator.permutation(_count("permutation", n)).astype(np.int64, copy=False)

    def bernoulli_subset(self, n: int, rate: float) -> Indices:
        """Draw each of range(n) independently: a binomial number of them."""
        n, rate = _count("bernoulli_subset", n), _rate(rate)
        return self.choose(n, int(self._generator.binomial(n, rate)))


def noise_source(random_state: object) -> NoiseSource:
    """Return the source of noise that scikit-learn's ``random_state`` stands for.

    Parameters
    ----------
    random_state : None, int, numpy.random.RandomState or numpy.random.Generator
        None draws from the operating system's secure source. An integer makes the noise
        reproducible, hence removable: nothing is private then. A RandomState gives a seed (it moves
        on, so two fits differ). A Generator is used as it is, and moves on as well.

    Returns
    -------
    NoiseSource
    """
    through = _through.get()
    source = _source_of(random_state)
    return source if through is None else through(source)


_through: ContextVar[Callable[[NoiseSource], NoiseSource] | None] = ContextVar(
    "through", default=None
)


@contextmanager
def drawing_through(wrap: Callable[[NoiseSource], NoiseSource]) -> Iterator[None]:
    """Let all fits of this thread, inside the block, draw from the source that ``wrap`` returns.

    `skdp.audit` uses it to record and replay fits. Whoever keeps a record sees the rows.
    """
    token = _through.set(wrap)
    try:
        yield
    finally:
        _through.reset(token)


def _source_of(random_state: object) -> NoiseSource:
    if random_state is None:
        return SystemSource()
    if isinstance(random_state, np.random.Generator):
        return SeededSource(random_state)
    if isinstance(random_state, np.random.RandomState):
        entropy = random_state.randint(0, 2**32, size=4, dtype=np.uint32)
        return SeededSource(_generator(entropy.tolist()))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return SeededSource(int(random_state))
    raise ValueError(
        "random_state must be None (private noise), an integer, a numpy RandomState or a numpy "
        f"Generator (reproducible noise, not private), got {random_state!r}."
    )


def _generator(entropy: int | list[int]) -> np.random.Generator:
    """Return a generator whose stream no other use of the same seed shares."""
    sequence = np.random.SeedSequence(entropy, spawn_key=(0x736B6470,))  # "skdp"
    return np.random.Generator(np.random.PCG64(sequence))


def _rint(x: Array) -> Array:
    """Round to integers. Zeros are positive."""
    return np.rint(x) + 0.0


def _shape(size: Size) -> tuple[int, ...]:
    return size if isinstance(size, tuple) else (size,)


def _length(size: Size) -> int:
    return int(math.prod(_shape(size)))


def _count(what: str, n: int) -> int:
    n = operator.index(n)
    if not 0 <= n <= MOST_INDICES:
        raise ValueError(f"{what}: n must be from 0 to 2**48, got {n}. Nothing was drawn.")
    return n


def _high(high: int) -> int:
    high = operator.index(high)
    if not 1 <= high <= 2**63:
        raise ValueError(f"integers: high must be from 1 to 2**63, got {high}. Nothing was drawn.")
    return high


def _rate(rate: float) -> float:
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"bernoulli_subset: rate must be in [0, 1], got {rate!r}.")
    return float(rate)
