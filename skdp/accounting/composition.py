"""Epsilon and delta of composed dominating pairs, by privacy-loss distributions on a lattice.

All approximations err upwards. Connecting the dots of a profile (Doroshenko, Ghazi, Kamath, Kumar,
Manurangsi 2022, arXiv:2207.04380) gives a pair that dominates the true one. The sum uses an
exponential tilt, with weights ``exp(tilt * loss)``, so that FFT errors and wrap-around are small
compared with the *tail* of interest and not only with 1. Both are bounded and added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq

from skdp._numbers import Array
from skdp.accounting.pairs import Pair

# Largest argument of exp. The range of float64 ends at exp(709.78).
MAX_EXPONENT = 700.0
# Bound on the error of an FFT of n numbers, relative to their Euclidean norm, over log2(n). It is
# at least five times the error against extended precision (tests/accounting/test_pairs.py).
FFT_ERROR = float(np.finfo(float).eps)
# The mass that wraps around the circle on either side is at most exp(-26) = 5e-12 of the total.
_WRAP_EXPONENT = 26.0
# Weights below this are set to 0, the sum being 1: subnormal numbers have slow arithmetic.
_NEGLIGIBLE = 1e-200
# Weights below exp(-60) = 1e-26 relative to the largest one are left out, and added to the bound.
_WEIGHT_EXPONENT = 60.0


@dataclass(frozen=True)
class Atoms:
    """Masses of a discrete dominating pair (P, Q) at given privacy losses log(P/Q).

    ``up`` are masses of P at the losses ``gains`` > 0. ``down`` are masses of Q at the losses
    ``-drops`` < 0 (those of P are ``down * exp(-drops)``). ``centre`` is the mass at loss 0.
    ``infinity_mass`` is the mass of P where Q has none, and ``reverse_infinity_mass`` that of Q
    where P has none.
    """

    gains: Array
    up: Array
    drops: Array
    down: Array
    centre: float
    infinity_mass: float
    reverse_infinity_mass: float

    def reversed(self) -> Atoms:
        """Return the same atoms with P and Q exchanged."""
        masses = self.reverse_infinity_mass, self.infinity_mass
        return Atoms(self.drops, self.down, self.gains, self.up, self.centre, *masses)

    def log_masses(self) -> tuple[Array, Array]:
        """Finite losses in ascending order, and the logarithms of the masses of P there."""
        losses = np.concatenate((-self.drops[::-1], [0.0], self.gains))
        with np.errstate(divide="ignore"):
            below = np.log(self.down[::-1]) - self.drops[::-1]
            masses = np.concatenate((below, np.log([self.centre]), np.log(self.up)))
        return losses, masses


AtomList = list[tuple[Atoms, int]]


def connect_the_dots(pair: Pair, gains: Array, drops: Array) -> Atoms:
    """Atoms whose profile is linear in exp(epsilon) between the true values at the dots.

    ``gains`` and ``drops`` ascend from 0 (included). A profile is convex in exp(epsilon), so the
    chords lie above it: the atoms dominate the pair, whatever the grid.
    """
    forward, up, first_gain = _masses(pair.forward(gains), gains)
    backward, down, first_drop = _masses(pair.backward(drops), drops)
    centre = 1.0 - max(forward[0], backward[0]) - first_gain - first_drop
    return Atoms(
        gains[1:], up, drops[1:], down, max(centre, 0.0), float(forward[-1]), float(backward[-1])
    )


def _masses(profile: Array, grid: Array) -> tuple[Array, Array, float]:
    """One side: the decreasing profile, the masses at grid[1:], and the mass taken from grid[0].

    The chord between two dots adds mass at the upper one and takes mass from the lower one.
    """
    profile = np.minimum.accumulate(np.maximum(profile, 0.0))
    fall, width = -np.diff(profile), np.diff(grid)
    below = fall / np.expm1(np.minimum(width, MAX_EXPONENT))
    above = fall / -np.expm1(-width)
    masses = above.copy()
    masses[:-1] -= below[1:]
    return profile, np.maximum(masses, 0.0), float(below[0])


def lattice_atoms(pair: Pair, step: float, tail: float) -> Atoms:
    """Atoms at multiples of ``step``, as far out as the profile exceeds ``tail``."""
    forward, backward = pair.reach(tail)
    gains: Array = step * np.arange(math.ceil(forward / step) + 2, dtype=float)
    drops: Array = step * np.arange(math.ceil(backward / step) + 2, dtype=float)
    return connect_the_dots(pair, gains, drops)


# Relative places of the dots of a sketch, in units of the reach: evenly spaced near the far end,
# where single large losses lie. Geometric near 0, where small ones do.
_SKETCH = np.concatenate(([0.0], np.geomspace(1e-6, 1e-2, 40), np.linspace(0, 1, 81)[1:]))


def sketch_atoms(pair: Pair, tail: float) -> Atoms:
    """Atoms in small number: quick and rough, but still dominating."""
    forward, backward = pair.reach(tail)
    beyond = (1 + 1e-9) * _SKETCH  # so that rounding leaves no mass past the last dot
    return connect_the_dots(pair, max(forward, 1e-300) * beyond, max(backward, 1e-300) * beyond)


def tilted_moments(atoms: AtomList, tilts: Array) -> tuple[Array, Array, Array]:
    """``log E exp(tilt * loss)`` of the summed finite losses, with its first two derivatives."""
    log_moment, mean, variance = (np.zeros_like(tilts) for _ in range(3))
    for item, count in atoms:
        losses, masses = item.log_masses()
        exponents = np.multiply.outer(tilts, losses) + masses
        top = exponents.max(axis=1, keepdims=True)
        weights = np.exp(exponents - top)
        norms = weights.sum(axis=1)
        first = weights @ losses / norms
        log_moment += count * (top[:, 0] + np.log(norms))
        mean += count * first
        variance += count * np.maximum(weights @ losses**2 / norms - first**2, 0.0)
    return log_moment, mean, variance


def infinity_mass_of(items: Sequence[tuple[Atoms | Pair, int]]) -> float:
    """Mass at infinite loss of a composition: probability that any of its losses is infinite."""
    return -math.expm1(sum(count * math.log1p(-item.infinity_mass) for item, count in items))


def log_heaviest(tilt: Array) -> Array:
    """Logarithm of the largest ``exp(-tilt x) (1 - exp(-x))``, at ``exp(-x) = tilt / (1 + tilt)``.

    By this factor Chernoff's bound is smaller for a hockey-stick divergence than for a tail.
    """
    return np.asarray(-tilt * np.log1p(1 / np.maximum(tilt, 1e-300)) - np.log1p(tilt))


class _TiltedAtoms:
    """Lattice atoms weighted by ``exp(tilt * loss)`` and normalised."""

    def __init__(self, atoms: Atoms, tilt: float) -> None:
        losses, masses = atoms.log_masses()
        exponents = tilt * losses + masses
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        weights[weights < _NEGLIGIBLE] = 0.0
        norm = float(weights.sum())
        self.weights: Array = weights / norm
        self.zero_at = len(atoms.drops)
        self.log_moment = top + math.log(norm)
        self.mean = _dot(self.weights, losses)
        self.variance = max(_dot(self.weights, losses**2) - self.mean**2, 0.0)

    def transform(self, n: int) -> npt.NDArray[np.complex128]:
        """Fourier transform on a circle of ``n`` lattice points."""
        padded = np.zeros(-(-len(self.weights) // n) * n)
        padded[: len(self.weights)] = self.weights
        circle = np.roll(padded.reshape(-1, n).sum(axis=0), -self.zero_at % n)
        spectrum: npt.NDArray[np.complex128] = rfft(circle)
        return spectrum


class SummedLoss:
    """The distribution of a sum of independent losses, under a tilt that centres the wanted tail.

    Parameters
    ----------
    atoms : list of (Atoms, count)
        All on the same lattice.
    step : float
        Step of that lattice.
    tilt : float
        At least 0: losses x are weighted by ``exp(tilt * x)`` before the FFT.
    """

    def __init__(self, atoms: AtomList, step: float, tilt: float) -> None:
        self.tilt = tilt
        self.infinity_mass = infinity_mass_of(atoms)
        parts = [(_TiltedAtoms(item, tilt), count) for item, count in atoms]
        self.log_moment = sum(count * part.log_moment for part, count in parts)
        start, n = _window(parts, step)
        spectrum = np.ones(n // 2 + 1, dtype=complex)
        for done, (part, count) in enumerate(parts, start=1):
            spectrum *= part.transform(n) if count == 1 else part.transform(n) ** count
            if done % 32 == 0:
                spectrum[np.abs(spectrum) < _NEGLIGIBLE] = 0.0
        self.losses: Array = step * np.arange(start, start + n, dtype=float)
        self.tilted: Array = np.maximum(np.roll(irfft(spectrum, n), -start % n), 0.0)
        self._error = FFT_ERROR * math.log2(n) * (sum(count for _, count in parts) + 2)

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of a bound on ``H(P||Q)`` at exp(epsilon) of the sum."""
        delta, slack = self._tail(epsilon)
        finite = self.log_moment - self.tilt * epsilon + math.log(delta + slack + 1e-300)
        return float(np.logaddexp(finite, math.log(max(self.infinity_mass, 1e-320))))

    def slack_share(self, epsilon: float) -> float:
        """Share of the bound that is an allowance for FFT errors and wrap-around."""
        delta, slack = self._tail(epsilon)
        return slack / (delta + slack + 1e-300)

    def _tail(self, epsilon: float) -> tuple[float, float]:
        """Tilted divergence beyond ``epsilon``, and a bound on its error."""
        # Weights fall by exp(-tilt) for each unit of loss.
        window = (epsilon, epsilon + _WEIGHT_EXPONENT / max(self.tilt, 1e-300))
        first, last = np.searchsorted(self.losses, window, side="right")
        beyond = self.losses[first:last] - epsilon
        weights = np.exp(-self.tilt * beyond) * -np.expm1(-beyond)
        heaviest = float(np.exp(log_heaviest(np.array(self.tilt))))
        slack = self._error * math.sqrt(_dot(weights, weights))
        slack += 2 * math.exp(-_WRAP_EXPONENT) * heaviest + math.exp(-_WEIGHT_EXPONENT)
        return _dot(weights, self.tilted[first:last]) * (1 + 1e-9), slack


def _dot(a: Array, b: Array) -> float:
    """Inner product without BLAS, whose threads cost more than they save here."""
    return float(np.einsum("i,i", a, b))


def _window(parts: list[tuple[_TiltedAtoms, int]], step: float) -> tuple[int, int]:
    """First point and length of a circle that holds all but exp(-_WRAP_EXPONENT) on either side."""
    mean = sum(count * part.mean for part, count in parts)
    variance = sum(count * part.variance for part, count in parts)
    before = max(part.zero_at for part, _ in parts)
    after = max(len(part.weights) - part.zero_at for part, _ in parts)
    lattice = step * np.arange(-before, after)

    def distance(push: float) -> float:
        """Chernoff bound: distance from the mean that a further tilt by ``push`` proves."""
        if abs(push) * max(-lattice[0], lattice[-1]) > 300:
            return math.inf
        growth = np.exp(push * lattice)
        grown = 0.0
        for part, count in parts:
            first = before - part.zero_at
            moment = _dot(part.weights, growth[first : first + len(part.weights)])
            grown += count * math.log(moment)
        return (grown + _WRAP_EXPONENT) / abs(push) - math.copysign(mean, push)

    def least_distance(push: float) -> float:
        best = distance(push)
        for factor in (0.5, 2.0):
            trial = push * factor
            while (gap := distance(trial)) < best or math.isinf(best):
                best, trial = gap, trial * factor
        return max(best, 0.0)

    # Start with the best push for a normal distribution, then search downhill by powers of 2.
    push = math.sqrt(2 * _WRAP_EXPONENT) / max(math.sqrt(variance), step)
    start = math.floor((mean - least_distance(-push)) / step)
    stop = math.ceil((mean + least_distance(push)) / step) + 1
    return start, 8 * next_fast_len((stop - start) // 8 + 1, real=True)


Pairs = tuple[tuple[Pair, int], ...]  # dominating pairs with their numbers of occurrences

# Mass cut off at the far ends of all losses, as a share of delta. It is charged as infinite loss.
_CUT = 1e-5
# Least number of standard deviations of the sum that the lattice has to cover.
_DEVIATIONS = 16.0
# Maximum number of searches for the tail, which are repeated if it was not where it was expected.
_ATTEMPTS = 5
# Smaller positive numbers become subnormal in float64, and lose precision, in later operations.
_LEAST = 1e-290


@dataclass(frozen=True)
class _Aim:
    """Where to look for the tail in one direction.

    Under ``tilt`` the tail is in the middle of the sum, whose standard deviation is then about
    ``deviation``. ``bound`` is an upper bound on the answer, ``guess`` an estimate of it.
    """

    tilt: float
    bound: float
    guess: float
    deviation: float


@dataclass(frozen=True)
class LatticeResolution:
    """How fine a lattice is.

    Attributes
    ----------
    precision, precision_each : float
        Relative error of epsilon that the lattice may cause: the first, plus the second for each
        distinct pair.
    atoms, atoms_each : int
        Number of atoms in all discretised losses: the first, plus the second for each distinct
        pair.
    points : int
        Approximate number of lattice points of the sum.
    """

    precision: float
    precision_each: float
    atoms: int
    atoms_each: int
    points: int

    def lattice(
        self, pairs: Pairs, aim: _Aim, epsilon: float, tail: float
    ) -> tuple[AtomList, float]:
        """Atoms of all pairs on one lattice, and its step.

        A step h adds at most ``h**2 / 8`` times ``tilt (1 + tilt)`` to the log moment of each loss,
        and that over ``tilt`` to epsilon.
        """
        count = sum(times for _, times in pairs)
        precision = self.precision + self.precision_each * len(pairs)
        precise = math.sqrt(8 * precision * epsilon / (count * (1 + aim.tilt)))
        length = sum(sum(pair.reach(tail)) for pair, _ in pairs)
        step = max(precise, length / (self.atoms + self.atoms_each * len(pairs)), _LEAST)
        step = max(step, _DEVIATIONS * aim.deviation / self.points)
        largest_losses = [pair.reach(tail)[0] for pair, _ in pairs if pair.bounded]
        if largest_losses and (smallest := min(largest_losses)) > step:
            step = smallest / math.ceil(smallest / step)  # a bounded loss ends on the lattice
        return [(lattice_atoms(pair, step, tail), times) for pair, times in pairs], step


# FULL is for certified figures: with it epsilon agrees with dp-accounting's to the precision of
# theirs, 1e-5 (tests/accounting/test_reference.py). ROUGH is for searches.
FULL = LatticeResolution(2e-6, 3e-8, 400_000, 2_500, 2_000_000)
ROUGH = LatticeResolution(1e-4, 0.0, 40_000, 1_500, 200_000)


@lru_cache(maxsize=256)
def epsilon_of(pairs: Pairs, delta: float, resolution: LatticeResolution = FULL) -> float:
    """Epsilon at ``delta`` of the composition of all pairs, the larger of both directions.

    Parameters
    ----------
    pairs : tuple of (Pair, count)
    delta : float
        At 0 it is the sum of the largest losses.
    """
    if not pairs or delta >= 1:
        return 0.0
    if delta == 0:
        return _largest_loss(pairs) if infinity_mass_of(pairs) == 0 else math.inf
    count = sum(times for _, times in pairs)
    tail = max(delta * _CUT / count, _LEAST)
    sketch = [(sketch_atoms(pair, tail), times) for pair, times in pairs]
    log_delta = math.log(delta)
    sides = _sides(pairs)
    aims = {side: _aim_at_delta(_seen_from(sketch, side), log_delta) for side in sides}
    if not all(math.isfinite(aim.bound) for aim in aims.values()):
        return math.inf

    def solved(side: int, resolution: LatticeResolution) -> float:
        aim, epsilon = aims[side], aims[side].bound
        for attempt in range(_ATTEMPTS):
            if epsilon == 0:
                break
            atoms, step = resolution.lattice(pairs, aim, aim.guess, tail)
            loss = SummedLoss(_seen_from(atoms, side), step, aim.tilt)
            epsilon = min(epsilon, _solve(loss, log_delta, aims[side].bound))
            if epsilon > aim.guess / 2 and loss.slack_share(epsilon) < resolution.precision:
                break
            # The tail lies elsewhere than expected: search again, from its new place.
            aim = _aim_at_epsilon(_seen_from(sketch, side), epsilon, attempt)
        return epsilon

    costlier, *others = sorted(sides, key=lambda side: -aims[side].bound)
    larger = solved(costlier, resolution)
    for side in others:
        # Mostly a quick bound suffices to show that the second direction cannot matter.
        if aims[side].bound > larger and solved(side, ROUGH) > larger:
            larger = max(larger, solved(side, resolution))
    return min(larger, _largest_loss(pairs)) if infinity_mass_of(pairs) <= delta else larger


def _largest_loss(pairs: Pairs) -> float:
    """Least epsilon that covers every finite loss in either direction; inf if there is none."""
    if not all(pair.bounded for pair, _ in pairs):
        return math.inf
    return sum(times * max(pair.reach(0.5)) for pair, times in pairs)


def _sides(pairs: Pairs) -> tuple[int, ...]:
    """0 for the pairs as they are. Also 1, for all of them reversed, if that differs."""
    return (0,) if all(pair.symmetric for pair, _ in pairs) else (0, 1)


def _seen_from(atoms: AtomList, side: int) -> AtomList:
    return [(item.reversed(), count) for item, count in atoms] if side else atoms


def _trial_tilts(sketch: AtomList) -> Array:
    reach = sum(count * float(item.gains[-1]) for item, count in sketch)
    return np.asarray(np.geomspace(0.1, 1e7, 64) / max(reach, _LEAST))


def _aim_at_delta(sketch: AtomList, log_delta: float) -> _Aim:
    """Tilt under which the mean loss is about the epsilon at delta, and the Chernoff bound on it.

    At its mean under a tilt t a sum with variance v has a divergence of about the Chernoff bound
    over ``t (1+t) sqrt(2 pi v)`` (saddle point). For bounded losses, this needs far less tilt than
    the best Chernoff bound does. Where single large losses dominate, for more.
    """
    left = -math.expm1(math.log(max(infinity_mass_of(sketch), 1e-320)) - log_delta)
    if left <= 0:
        return _Aim(0.0, math.inf, math.inf, math.inf)
    aim = log_delta + math.log(left)
    tilts = _trial_tilts(sketch)
    moments, means, variances = tilted_moments(sketch, tilts)
    bounds = np.maximum(moments + log_heaviest(tilts) - aim, 0.0) / tilts
    bound = float(np.min(bounds))
    width = tilts * (1 + tilts) * np.sqrt(2 * math.pi * variances)
    reached = moments - tilts * means - np.log1p(width) <= aim
    best = int(np.argmax(bounds <= 1.001 * bound))
    if reached.any():
        best = min(best, int(np.argmax(reached)))
    guess = min(bound, max(float(means[best]), 1e-3 * bound))
    deviation = math.sqrt(float(variances[best]))
    return _Aim(float(tilts[best]), bound, guess, deviation)


def _aim_at_epsilon(sketch: AtomList, epsilon: float, attempt: int) -> _Aim:
    """Tilt under which the mean loss is nearly ``epsilon``.

    Where single large losses dominate, the mean jumps past epsilon as the tilt grows. A tilt below
    that keeps the other losses visible. Every further ``attempt`` takes a smaller tilt.
    """
    tilts = _trial_tilts(sketch)
    _, means, variances = tilted_moments(sketch, tilts)
    below = int(np.searchsorted(np.maximum.accumulate(means), epsilon, side="right")) - 1
    best = max(below - 2 * attempt, 0)
    return _Aim(float(tilts[best]), math.inf, epsilon, math.sqrt(float(variances[best])))


def _solve(loss: SummedLoss, log_delta: float, guess: float) -> float:
    """Least epsilon at which the divergence of the summed loss is at most delta, rounded up."""

    def excess(epsilon: float) -> float:
        return loss.log_delta(epsilon) - log_delta

    if excess(0.0) <= 0:
        return 0.0
    high = guess
    while excess(high) > 0:
        high *= 1.1
        if high > 10 * guess:
            return math.inf
    root = float(brentq(excess, 0.0, high, xtol=1e-9 * high))
    return root + 2e-9 * high
