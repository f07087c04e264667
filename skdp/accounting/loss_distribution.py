"""Privacy-loss distributions on a lattice: connect-the-dots atoms, and their sum by FFT.

All approximations err upwards. Connecting the dots of a profile (Doroshenko, Ghazi, Kamath, Kumar,
Manurangsi 2022, arXiv:2207.04380) gives a pair that dominates the true one. The sum is taken under
an exponential tilt, with weights ``exp(tilt * loss)``, so that FFT errors and wrap-around are small
compared with the *tail* of interest and not only with 1; both are bounded and added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft

from skdp._numbers import Array
from skdp.accounting.accountant import MAX_EXPONENT
from skdp.accounting.pairs import Pair

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

    ``up`` are masses of P at the losses ``gains`` > 0; ``down`` are masses of Q at the losses
    ``-drops`` < 0 (those of P are ``down * exp(-drops)``); ``centre`` is the mass at loss 0;
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
# where single large losses lie; geometric near 0, where small ones do.
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
