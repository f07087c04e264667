"""Test the draws of all fits of a replay: size of noise, independence, membership."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import special, stats

from skdp._numbers import Array, Indices
from skdp.accounting import FixedSizeSampled, PoissonSampled, walk
from skdp.audit.recording import Recording

# Standard errors beyond which noise that was drawn is not the noise that was charged. A false alarm
# has probability 1e-9, or less for Laplace noise, whose fourth moment is allowed for.
SURE = 6.0
# Probability of a false alarm of all tests of independence in a replay together, and likewise of
# all tests of membership: each test gets an equal part of it (Bonferroni).
FALSE_ALARM = 1e-9
# Decimals, in standard deviations, to which draws of noise are compared with each other: fewer than
# the grid of mechanisms has (2**-30). Chance repeats two numbers in a row, in either order, once in
# 5e14 pairs of answers.
DECIMALS = 7
TINY = np.finfo(np.float64).tiny  # divides in place of 0
# Answers of one shape, the first of a fit, whose noise is tested for independence.
MOST_ANSWERS = 64


class Randomness:
    """Accumulates the draws of fits, and reports results that cannot be chance."""

    def __init__(self) -> None:
        # Of each kind of release the number of draws, the sum of their squares in units of the
        # variance, and the variance of that sum.
        self._sizes: dict[str, Array] = {}
        self._repeats = _RepeatedNoise()
        self._dependence = _Dependence()
        self._membership = _Membership()

    def add(self, recording: Recording) -> None:
        """Add the draws of a fit."""
        for charged in recording.charged:
            size = self._sizes.setdefault(charged.kind, np.zeros(3))
            for answer in charged.answers:
                # What is not finite is a finding of its own, and would hide all others.
                if answer.is_noisy and np.isfinite(answer.noise).all():
                    n, fourth = answer.noise.size, 2.0 if answer.order == 2 else 5.0
                    size += n, (answer.noise**2).sum(), n * fourth
        self._repeats.add(recording)
        self._dependence.add(recording)
        self._membership.add(recording)

    def findings(self) -> Iterator[str]:
        """Yield results that cannot be chance."""
        for kind, (n, squares, variance) in self._sizes.items():
            if n == 0:
                yield f"{kind}: there was no noise"
            elif (n - squares) / math.sqrt(variance) > SURE:
                yield (
                    f"{kind}: the noise that was drawn is too small: its standard deviation is "
                    f"{math.sqrt(squares / n):.3f} of what was said"
                )
        if self._repeats.finding:
            yield self._repeats.finding
        else:  # noise that comes again is not independent, either
            yield from self._dependence.findings()
        yield from self._membership.findings()


class _RepeatedNoise:
    """Finds noise that was drawn before, in any earlier answer or fit, in either order.

    The noise of an answer is compared by its first two numbers with the first or last two of
    another. That of a single number, by it and the one before it, from a release of the same kind.
    """

    def __init__(self) -> None:
        self.finding = ""
        self._first_fit: dict[bytes, int] = {}
        self._before: dict[str, Array] = {}
        self._n_fits = 0

    def add(self, recording: Recording) -> None:
        """Take in the noise of a fit."""
        self._n_fits += 1
        for charged in recording.charged:
            for answer in charged.answers:
                noise = answer.noise if answer.is_noisy else np.empty(0)
                if len(noise) == 1:
                    before = self._before.get(charged.kind, np.empty(0))
                    self._before[charged.kind] = noise
                    noise = np.append(before, noise)
                if len(noise) >= 2 and np.isfinite(noise).all():
                    self._compare(noise)

    def _compare(self, noise: Array) -> None:
        for start in (noise[:2], noise[:-3:-1]):
            digits = _digits(start)
            if digits in self._first_fit and not self.finding:
                unit = "answer" if self._first_fit[digits] == self._n_fits else "fit"
                self.finding = f"the noise of one {unit} came again in another one"
        self._first_fit.setdefault(_digits(noise[:2]), self._n_fits)


def _digits(start: Array) -> bytes:
    # Noise with its sign changed is not new, either. Adding 0.0 makes 0.0 of -0.0.
    return bytes(((start * math.copysign(1.0, start[0])).round(DECIMALS) + 0.0).tobytes())


class _Dependence:
    """Tests whether the noise of an answer follows from that of earlier answers of its fit.

    The noise of the answers at one place in the sequence, over all fits, makes one long vector. It
    is correlated with that of every earlier place, in both orders of the coordinates, and regressed
    on the places just before. The squared correlation of independent Gaussian vectors of n numbers
    has the distribution Beta(1/2, (n - 1)/2), and the share of variance that k of them explain has
    Beta(k/2, (n - k)/2): both need only one of the vectors to be isotropic. For Laplace noise they
    are approximate. Tests compare both kinds with simulations.
    """

    def __init__(self) -> None:
        self._fits: dict[tuple[int, int], list[Array]] = {}

    def add(self, recording: Recording) -> None:
        """Take in the noise of a fit."""
        by_size: dict[int, list[Array]] = {}
        for charged in recording.charged:
            for answer in charged.answers:
                if answer.is_noisy and np.isfinite(answer.noise).all():
                    by_size.setdefault(answer.value.size, []).append(answer.noise)
        for size, vectors in by_size.items():
            self._fits.setdefault((size, len(vectors)), []).append(np.array(vectors[:MOST_ANSWERS]))

    def findings(self) -> Iterator[str]:
        """Yield the least probable dependence, if it cannot be chance."""
        least, n_tests = 1.0, 0
        for fits in self._fits.values():
            p_values = tail_probabilities(np.stack(fits))
            least, n_tests = min([least, *p_values]), n_tests + len(p_values)
        if n_tests and least * n_tests < FALSE_ALARM:
            yield "the noise of an answer follows, in part, from that of earlier answers"


def tail_probabilities(noise: Array) -> list[float]:
    """Return the p-values of all tests on noise of shape (fits, answers, coordinates)."""
    n_answers, n = noise.shape[1], noise.shape[0] * noise.shape[2]
    forward, backward = (
        np.moveaxis(one, 1, 0).reshape(n_answers, n) for one in (noise, noise[:, :, ::-1])
    )
    p_values: list[float] = []
    for place in range(1, n_answers if n > 2 else 0):
        target, reach = forward[place], min(place, n // 4)
        earlier = np.concatenate([forward[:place], backward[:place]])
        lengths = np.linalg.norm(earlier, axis=1) * np.linalg.norm(target)
        squares = np.minimum((earlier @ target / np.maximum(lengths, TINY)) ** 2, 1.0)
        p_values += special.betainc((n - 1) / 2, 0.5, 1 - squares).tolist()
        if reach >= 2:
            basis = np.linalg.qr(forward[place - reach : place].T)[0]
            rest = target - basis @ (basis.T @ target)
            unexplained = min(1.0, float(rest @ rest) / max(float(target @ target), TINY))
            p_values.append(float(special.betainc((n - reach) / 2, reach / 2, unexplained)))
    return p_values


class _Membership:
    """Tests whether every record is in batches as often as was charged.

    Over D draws that include a record with probability q, its number of memberships is
    Binomial(D, q).
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[int, float], tuple[int, Indices]] = {}

    def add(self, recording: Recording) -> None:
        """Take in the batches of a fit."""
        for charged in recording.charged:
            sampled = [one for one, _ in walk(charged.event)]
            rates = {
                one.rate for one in sampled if isinstance(one, PoissonSampled | FixedSizeSampled)
            }
            for rows, n_rows in charged.batches if len(rates) == 1 else []:
                key = n_rows, next(iter(rates))
                n_draws, counts = self._counts.get(key, (0, np.zeros(n_rows, dtype=np.int64)))
                self._counts[key] = n_draws + 1, counts + np.bincount(rows, minlength=n_rows)

    def findings(self) -> Iterator[str]:
        """Yield results that cannot be chance."""
        for (n_rows, rate), (n_draws, counts) in self._counts.items():
            tests = [(counts, n_draws), (counts.sum(), n_draws * n_rows)]
            for number, n_coins in tests:
                below = stats.binom.cdf(number, n_coins, rate)
                above = stats.binom.sf(number - 1, n_coins, rate)
                least = 2 * float(np.min(np.minimum(below, above)))
                if least * (n_rows + 1) * len(self._counts) < FALSE_ALARM:
                    farthest = np.max(number) / n_coins
                    yield (
                        f"batches do not hold records as often as was charged: {farthest:.3g} of "
                        f"the time, at most, where {rate:.3g} was charged"
                    )
                    return
