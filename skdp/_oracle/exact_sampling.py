"""Exact samples of rounded Gaussian, rounded Laplace and geometric integers, from random bits.

Floating-point samplers leave holes and biases that reveal values which the noise should hide
(Mironov 2012, "On significance of the least significant bits for differential privacy"). The cures
are discrete noise (Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential
privacy") or, as here, continuous noise rounded to a grid, for which the accounting of continuous
noise holds as it stands. As Karney 2016 ("Sampling exactly from the normal distribution") does, a
real number is held as its first bits. More bits are drawn whenever a decision hangs on them.
"""

import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp._numbers import Array, Indices, Mask

Words = Callable[[int], NDArray[np.uint64]]
"""words(n): n fresh, independent, uniform 64-bit words."""

LN2 = math.log(2.0)
OFFSET_BITS = 53  # of |X| within its step: as many as a float64 holds
U_BITS = 40  # of the uniform number that decides on acceptance
STEP_BITS = 24  # read at once for the number of the step
BAND = 2.0**-38  # see RejectionSampler
BATCH = 1 << 14  # candidates or indices at once: their arrays stay in the cache

LARGEST_GAUSSIAN = 2.0**49  # P(|X| > 2**53) < 2**-188: every sample is exact in float64
LARGEST_LAPLACE = 2.0**45  # P(|X| > 2**53) < 2**-369


class SystemWords(threading.local):
    """Fresh 64-bit words from `os.urandom`, in blocks to save system calls.

    Each thread has a block of its own, and a forked process drops the one it inherits, so no word
    is ever given twice. Words that were given are wiped from the block.
    """

    BLOCK: ClassVar[int] = 1024

    def __init__(self) -> None:
        self._block = np.zeros(self.BLOCK, np.uint64)
        self._used = self.BLOCK
        self._pid = os.getpid()

    def __call__(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` words that nobody has seen."""
        if count >= self.BLOCK:
            return np.frombuffer(os.urandom(8 * count), np.uint64)
        if count > self.BLOCK - self._used or self._pid != os.getpid():
            self._pid = os.getpid()
            self._used = self.BLOCK  # an interrupt from here on leaves an empty block
            self._block[:] = np.frombuffer(os.urandom(8 * self.BLOCK), np.uint64)
            self._used = 0
        start, stop = self._used, self._used + count
        self._used = stop  # first of all: an interrupt may waste words, never repeat them
        words = self._block[start:stop].copy()
        self._block[start:stop] = 0
        return words


@dataclass(frozen=True)
class RejectionSampler:
    """Rejection sampler of the density proportional to exp(-(|x|/scale)^power / power).

    A candidate is a sign, a step G with P(G = g) = 2^-(g+1), and an offset V uniform in [0, 1):
    |X| = (G + V) W, with W = 2^log2_width. It is accepted if U < p, for U uniform in [0, 1) and
    p = exp(G ln 2 - (|X|/scale)^power / power - ceiling). As ``ceiling``, some double, is at least
    the supremum of the first two terms, p <= 1, and the accepted |X| have exactly this density.
    The tail is not cut: G goes on past the 24 bits that are read at once.

    *Undecided band.* float64 sees the first 40 bits of U and 53 of V. With G <= 23 the exponent is
    off by less than 2^-41 (its terms are at most 288, each with less than 8 roundings, the bits of
    V not seen count for 24 * 2^-53), exp by less than 32 ulp, U by 2^-40: together less than 2^-39
    < ``band``. Closer to p than the band, and where the 24 bits of G are all zero, `is_accepted`
    decides, with `decimal` intervals and as many further bits as necessary. Hence the outcome is
    that of real arithmetic on infinitely many bits.

    Attributes
    ----------
    power : int
        1 for Laplace, 2 for Gaussian.
    ratio : float
        scale / W, exact.
    log2_width : int
        From 0 to 49.
    ceiling : float
        At least sup over x of G ln 2 - (x/scale)^power / power.
    acceptance : float
        Probability that a candidate is accepted. It only sizes batches.
    band : float
        Half width of the undecided band.
    """

    power: int
    ratio: float
    log2_width: int
    ceiling: float
    acceptance: float
    band: float = BAND

    def rounded(self, size: int, words: Words) -> Array:
        """Return ``size`` independent samples of round(X), integers held as float64."""
        halves, negative = self._truncated(size, words, 1)
        # floor(|X| + 1/2). A tie has probability 0. Negated as integers: no zero is negative.
        magnitude = (halves + 1) >> 1
        return np.where(negative, -magnitude, magnitude).astype(np.float64)

    def floors(self, size: int, words: Words) -> Indices:
        """Return ``size`` independent samples of floor(|X|)."""
        return self._truncated(size, words, 0)[0]

    def _truncated(self, size: int, words: Words, more_bits: int) -> tuple[Indices, Mask]:
        """Return ``size`` samples of floor(|X| 2**more_bits), and whether X is negative."""
        out, signs, filled = np.empty(size, np.int64), np.empty(size, np.bool_), 0
        width = self.log2_width + more_bits
        while filled < size:
            bits = words(self._n_words(size - filled))
            step, offset, negative = self._accepted(size - filled, bits, words)
            rows = slice(filled, filled + len(step))
            out[rows], signs[rows] = (step << width) + (offset >> (OFFSET_BITS - width)), negative
            filled = rows.stop
        return out, signs

    def _n_words(self, wanted: int) -> int:
        """Return how many words to draw for ``wanted`` samples, usually enough of them.

        It depends on nothing that was drawn but on how many samples are still missing.
        """
        return 2 * min(int((wanted + 3.0 * math.sqrt(wanted)) / self.acceptance) + 4, BATCH)

    def _accepted(
        self, wanted: int, bits: NDArray[np.uint64], words: Words
    ) -> tuple[Indices, Indices, Mask]:
        """Return at most ``wanted`` accepted (step, offset in units of 2^-53 W, is negative)."""
        # 1. Two words are a candidate.
        n = len(bits) // 2
        first, second = bits[:n], bits[n:]
        offset = (first >> np.uint64(64 - OFFSET_BITS)).view(np.int64)
        low = (second & np.uint64((1 << STEP_BITS) - 1)).view(np.int64).astype(np.float64)
        # 2. The step is the number of leading zeros of the 24 bits, read off the exponent of the
        #    float64 (1023 is its bias), and of more bits where these are all zero.
        step = (1023 + STEP_BITS - 1) - (low.view(np.int64) >> 52)
        deep = np.flatnonzero(low == 0.0)
        for i in deep:
            step[i] = STEP_BITS + leading_zeros(words)
        # 3. p in float64, and the distance of U from it.
        x = offset.astype(np.float64)
        x *= 2.0**-OFFSET_BITS
        x += step
        x *= 1.0 / self.ratio
        if self.power == 2:
            x *= x
            x *= 0.5
        gap = step * LN2
        gap -= x
        gap -= self.ceiling
        np.exp(gap, out=gap)
        u = (second >> np.uint64(64 - U_BITS)).view(np.int64)
        gap -= u * 2.0**-U_BITS
        # 4. Far enough from U the decision is certain.
        accepted = gap > self.band
        undecided = np.abs(gap) <= self.band
        undecided[deep] = True
        # 5. The rest is decided exactly.
        if undecided.any():
            for i in np.flatnonzero(undecided):
                accepted[i] = self.is_accepted(int(step[i]), int(offset[i]), int(u[i]), words)
        chosen = np.flatnonzero(accepted)[:wanted]
        negative = (first[chosen] & np.uint64(1)).astype(np.bool_)
        return step[chosen], offset[chosen], negative

    def is_accepted(self, step: int, offset: int, u: int, words: Words) -> bool:
        """Decide U < p exactly, given G, 53 bits of V and 40 bits of U. Draw more if needed.

        V lies in [v, v + 1) 2^-b, U likewise. `decimal` rounds each operation correctly, so the
        exponent is known to 10 (G + 2)^2 10^(1 - precision), and p to the relative ``slack``.
        """
        v_bits, u_bits = OFFSET_BITS, U_BITS
        while True:
            precision = 40 + v_bits // 2  # grows faster than the 0.302 digits a bit needs
            with localcontext(_context(precision)):
                slack = Decimal(100 * (step + 2) ** 2).scaleb(1 - precision)
                unit = Decimal(2) ** -v_bits
                p_most = self._probability(step, step + offset * unit) * (1 + slack)
                p_least = self._probability(step, step + (offset + 1) * unit) * (1 - slack)
                if (u + 1) * Decimal(2) ** -u_bits <= p_least:
                    return True
                if u * Decimal(2) ** -u_bits >= p_most:
                    return False
            more_v, more_u = words(2).tolist()
            offset, v_bits = (offset << 64) | more_v, v_bits + 64
            u, u_bits = (u << 64) | more_u, u_bits + 64

    def _probability(self, step: int, x: Decimal) -> Decimal:
        """Return p for |X| = x W, in the precision of the current context."""
        exponent = (x / Decimal(self.ratio)) ** self.power / self.power
        return (step * Decimal(2).ln() - exponent - Decimal(self.ceiling)).exp()


class SampleBuffer(threading.local):
    """Samples of one distribution drawn ahead, for fits that need a few at each of many steps.

    From one draw of the same distribution to the next, twice as many requests are provided for, so
    about half are drawn in vain at most. As in `SystemWords` each thread has its own, a forked
    process drops inherited words, and used words are wiped: no sample is ever given twice.
    """

    MOST: ClassVar[int] = 1 << 12

    def __init__(self) -> None:
        self._sampler: RejectionSampler | None = None
        self._drawn = np.empty(0)
        self._used = self._ahead = 0
        self._pid = os.getpid()

    def rounded(self, sampler: RejectionSampler, size: int, words: Words) -> Array:
        """Return ``size`` independent samples of round(X). See `RejectionSampler.rounded`."""
        if sampler is not self._sampler or self._pid != os.getpid():
            self._sampler, self._pid = sampler, os.getpid()
            self._drawn, self._used, self._ahead = np.empty(0), 0, 1
        if size > len(self._drawn) - self._used:
            if size > self.MOST:
                return sampler.rounded(size, words)
            self._used = len(self._drawn)  # an interrupt from here on leaves an empty buffer
            self._drawn = sampler.rounded(max(size, min(self._ahead * size, self.MOST)), words)
            self._used, self._ahead = 0, 2 * self._ahead
        start, stop = self._used, self._used + size
        self._used = stop  # first of all: an interrupt may waste samples, never repeat them
        samples = self._drawn[start:stop].copy()
        self._drawn[start:stop] = 0.0
        return samples


def leading_zeros(words: Words) -> int:
    """Return the number of zeros before the first one in a fresh sequence of bits."""
    zeros = 0
    while (word := int(words(1)[0])) == 0:
        zeros += 64
    return zeros + 64 - word.bit_length()


def _context(precision: int) -> Context:
    """Return a `decimal` context that nothing outside can have changed."""
    return Context(
        prec=precision, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, clamp=0, traps=[]
    )


@lru_cache(maxsize=256)
def gaussian(scale: float) -> RejectionSampler:
    """Return the sampler of X = scale * N(0, 1), for 1 <= scale <= 2^49."""
    _check("Gaussian", scale, LARGEST_GAUSSIAN)
    log2_width = math.frexp(scale)[1] - 1  # W <= scale < 2 W
    ratio = math.ldexp(scale, -log2_width)
    # Within a step the supremum is at its left end. Over the steps, g ln 2 - g^2 / (2 ratio^2) is
    # concave and largest at g = ratio^2 ln 2 < 2.8. The 2^-40 covers the rounding errors here.
    ceiling = max(g * LN2 - (g / ratio) ** 2 / 2 for g in range(4)) + 2.0**-40
    acceptance = ratio * math.sqrt(math.pi / 8) * math.exp(-ceiling)
    return RejectionSampler(2, ratio, log2_width, ceiling, acceptance)


@lru_cache(maxsize=256)
def laplace(scale: float) -> RejectionSampler:
    """Return the sampler of X = scale * Laplace(0, 1), for 1 <= scale <= 2^45."""
    _check("Laplace", scale, LARGEST_LAPLACE)
    log2_width = math.frexp(scale)[1] - 1
    if math.ldexp(1.0, log2_width) < scale * 0.6931471805599454:  # just over ln 2
        log2_width += 1
    # Now W >= scale ln 2, so that g ln 2 - g W / scale <= 0, with 0 at g = 0.
    ratio = math.ldexp(scale, -log2_width)
    return RejectionSampler(1, ratio, log2_width, 0.0, ratio / 2)


@lru_cache(maxsize=256)
def geometric(rate: float) -> RejectionSampler:
    """Return the sampler whose floors are the failures before a success of probability ``rate``.

    P(floor(|X|) >= j) = exp(-j / scale) for Laplace noise, so scale = -1 / ln(1 - rate) would do.
    It is made 2^-50 (relative) larger, more than log1p, the division and the product can err: the
    rate got, 1 - exp(-1 / scale), is never above ``rate``, and below it by less than rate * 2^-49.
    For 2^-40 <= rate <= 1/8.
    """
    return laplace(-1.0 / math.log1p(-rate) * (1.0 + 2.0**-50))


def bernoulli_subset(n: int, rate: float, words: Words) -> Indices:
    """Return, in order, the members of range(n) that independent coins of one rate choose.

    The rate is ``rate`` itself from 1/8 on, where a 64-bit word per index is compared with rate *
    2^64, an integer. Below, the gaps between the chosen are exact samples of the geometric
    distribution of a rate that is never above ``rate``, and below it by less than 2^-52 (see
    `geometric`). Below 2^-40, a subset of rate 2^-40 is thinned by rate * 2^40, cut to 64 bits:
    never above, and below by less than 2^-88. Expected time and memory are O(n * max(rate, 2^-40)).
    The mask from 1/8 on needs a byte per index.
    """
    if rate == 1.0:
        return np.arange(n, dtype=np.int64)
    if rate >= 2.0**-3:
        return _one_by_one(n, rate, words)
    if rate >= 2.0**-40:
        return _by_gaps(n, rate, words)
    rare = _by_gaps(n, 2.0**-40, words)
    return rare[_one_by_one(len(rare), rate * 2.0**40, words)]


def _one_by_one(n: int, rate: float, words: Words) -> Indices:
    """Compare a word with ``rate`` < 1, cut to 64 bits, for each index."""
    threshold = np.uint64(int(rate * 2.0**64))
    mask = np.empty(n, np.bool_)
    for start in range(0, n, BATCH):
        part = mask[start : start + BATCH]
        np.less(words(len(part)), threshold, out=part)
    return np.flatnonzero(mask).astype(np.int64, copy=False)


def _by_gaps(n: int, rate: float, words: Words) -> Indices:
    """Walk from one chosen index to the next: the failures in between are geometric."""
    staircase = geometric(rate)
    parts = []
    last = -1
    while last < n:
        expected = max(n - 1 - last, 0) * rate
        size = min(int(expected + 4.0 * math.sqrt(expected)) + 4, BATCH)
        gaps = np.minimum(staircase.floors(size, words), n)  # so that no sum overflows
        parts.append(last + np.cumsum(gaps + 1))
        last = int(parts[-1][-1])
    chosen = np.concatenate(parts)
    return chosen[: np.searchsorted(chosen, n)]


def _check(kind: str, scale: float, largest: float) -> None:
    if not 1.0 <= scale <= largest:
        raise ValueError(
            f"{kind} noise on the integers needs 1 <= scale <= 2**{math.log2(largest):.0f} "
            "(below, the grid is coarser than the noise; above, the tail outgrows float64); "
            f"got {scale!r}. Nothing was drawn."
        )
