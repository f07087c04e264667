"""Epsilon and delta of composed dominating pairs: find the tail, sum losses by FFT, solve."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from skdp._numbers import Array
from skdp.accounting import loss_distribution
from skdp.accounting.pairs import Pair

Pairs = tuple[tuple[Pair, int], ...]  # dominating pairs with their numbers of occurrences

# Mass cut off at the far ends of all losses, as a share of delta; it is charged as infinite loss.
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
    ``deviation``; ``bound`` is an upper bound on the answer, ``guess`` an estimate of it.
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
    ) -> tuple[loss_distribution.AtomList, float]:
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
        return [
            (loss_distribution.lattice_atoms(pair, step, tail), times) for pair, times in pairs
        ], step


# FULL is for certified figures: with it epsilon agrees with dp-accounting's to the precision of
# theirs, 1e-5 (tests/accounting/test_reference.py). ROUGH is for searches.
FULL = LatticeResolution(2e-6, 3e-8, 400_000, 2_500, 2_000_000)
ROUGH = LatticeResolution(1e-4, 0.0, 40_000, 1_500, 200_000)


def epsilon_of(
    pairs: Pairs, coarse: Pairs, delta: float, resolution: LatticeResolution = FULL
) -> float:
    """Epsilon at ``delta`` of the composition of all pairs, the larger of both directions.

    Parameters
    ----------
    pairs : tuple of (Pair, count)
    coarse : tuple of (Pair, count)
        A shorter list that costs no less, with which the tail is found.
    delta : float
        Above 0.
    """
    if not pairs or delta >= 1:
        return 0.0
    count = sum(times for _, times in pairs)
    tail = max(delta * _CUT / count, _LEAST)
    sketch = [(loss_distribution.sketch_atoms(pair, tail), times) for pair, times in coarse]
    log_delta = math.log(delta)
    sides = _sides(pairs)
    aims = {side: _aim_at_delta(_seen_from(sketch, side), log_delta) for side in sides}
    if not all(math.isfinite(aim.bound) for aim in aims.values()):
        return math.inf

    def solved(side: int, pairs: Pairs, resolution: LatticeResolution) -> float:
        aim, epsilon = aims[side], aims[side].bound
        for attempt in range(_ATTEMPTS):
            if epsilon == 0:
                break
            atoms, step = resolution.lattice(pairs, aim, aim.guess, tail)
            loss = loss_distribution.SummedLoss(_seen_from(atoms, side), step, aim.tilt)
            epsilon = min(epsilon, _solve(loss, log_delta, aims[side].bound))
            if epsilon > aim.guess / 2 and loss.slack_share(epsilon) < resolution.precision:
                break
            # The tail lies elsewhere than expected: look again, from where it was found.
            aim = _aim_at_epsilon(_seen_from(sketch, side), epsilon, attempt)
        return epsilon

    costlier, *others = sorted(sides, key=lambda side: -aims[side].bound)
    larger = solved(costlier, pairs, resolution)
    for side in others:
        # Mostly a quick bound suffices to show that the second direction cannot matter.
        if aims[side].bound > larger and solved(side, coarse, ROUGH) > larger:
            larger = max(larger, solved(side, pairs, resolution))
    return (
        min(larger, _largest_loss(pairs))
        if loss_distribution.infinity_mass_of(pairs) <= delta
        else larger
    )


def delta_of(
    pairs: Pairs, coarse: Pairs, epsilon: float, resolution: LatticeResolution = FULL
) -> float:
    """Delta at ``epsilon`` of the composition of all pairs, the larger of both directions."""
    if not pairs:
        return 0.0
    if epsilon >= _largest_loss(pairs):
        return loss_distribution.infinity_mass_of(pairs)
    count = sum(times for _, times in pairs)
    tail = 1e-30
    for _ in range(2):  # the first bounds decide where to cut the tail for the second
        sketch = [(loss_distribution.sketch_atoms(pair, tail), times) for pair, times in coarse]
        bounds = {
            side: _aim_at_epsilon(_seen_from(sketch, side), epsilon).bound for side in _sides(pairs)
        }
        # The cube allows for a delta far below its first bound.
        tail = max(math.exp(min(0.0, max(bounds.values()))) * _CUT**3 / count, _LEAST)
    reach = sum(times * pair.reach(tail)[0] for pair, times in pairs) / count

    def solved(side: int) -> float:
        log_bound = 0.0
        for attempt in range(_ATTEMPTS):
            aim = _aim_at_epsilon(_seen_from(sketch, side), epsilon, attempt)
            # An error of 10 / tilt in epsilon is one of exp(10) in delta.
            fine = min(max(epsilon, 1e-3 * reach), 10 / aim.tilt)
            atoms, step = resolution.lattice(pairs, aim, fine, tail)
            loss = loss_distribution.SummedLoss(_seen_from(atoms, side), step, aim.tilt)
            log_bound = min(log_bound, loss.log_delta(epsilon))
            if loss.slack_share(epsilon) < resolution.precision:
                break
        return log_bound

    costlier, *others = sorted(bounds, key=lambda side: -bounds[side])
    log_bound = solved(costlier)
    for side in others:
        if bounds[side] > log_bound:
            log_bound = max(log_bound, min(solved(side), bounds[side]))
    return math.exp(log_bound)


def _largest_loss(pairs: Pairs) -> float:
    """Least epsilon that covers every finite loss in either direction; inf if there is none."""
    if not all(pair.bounded for pair, _ in pairs):
        return math.inf
    return sum(times * max(pair.reach(0.5)) for pair, times in pairs)


def _sides(pairs: Pairs) -> tuple[int, ...]:
    """0 for the pairs as they are; also 1, for all of them reversed, if that differs."""
    return (0,) if all(pair.symmetric for pair, _ in pairs) else (0, 1)


def _seen_from(atoms: loss_distribution.AtomList, side: int) -> loss_distribution.AtomList:
    return [(item.reversed(), count) for item, count in atoms] if side else atoms


def _trial_tilts(sketch: loss_distribution.AtomList) -> Array:
    reach = sum(count * float(item.gains[-1]) for item, count in sketch)
    return np.asarray(np.geomspace(0.1, 1e7, 64) / max(reach, _LEAST))


def _aim_at_delta(sketch: loss_distribution.AtomList, log_delta: float) -> _Aim:
    """Tilt under which the mean loss is about the epsilon at delta, and the Chernoff bound on it.

    At its mean under a tilt t a sum with variance v has a divergence of about the Chernoff bound
    over ``t (1+t) sqrt(2 pi v)`` (saddle point). For bounded losses, this needs far less tilt
    than the best Chernoff bound does; where single large losses dominate, for more.
    """
    left = -math.expm1(
        math.log(max(loss_distribution.infinity_mass_of(sketch), 1e-320)) - log_delta
    )
    if left <= 0:
        return _Aim(0.0, math.inf, math.inf, math.inf)
    aim = log_delta + math.log(left)
    tilts = _trial_tilts(sketch)
    moments, means, variances = loss_distribution.tilted_moments(sketch, tilts)
    bounds = np.maximum(moments + loss_distribution.log_heaviest(tilts) - aim, 0.0) / tilts
    bound = float(np.min(bounds))
    width = tilts * (1 + tilts) * np.sqrt(2 * math.pi * variances)
    reached = moments - tilts * means - np.log1p(width) <= aim
    best = int(np.argmax(bounds <= 1.001 * bound))
    if reached.any():
        best = min(best, int(np.argmax(reached)))
    guess = min(bound, max(float(means[best]), 1e-3 * bound))
    deviation = math.sqrt(float(variances[best]))
    return _Aim(float(tilts[best]), bound, guess, deviation)


def _aim_at_epsilon(sketch: loss_distribution.AtomList, epsilon: float, attempt: int = 0) -> _Aim:
    """Tilt under which the mean loss is nearly ``epsilon``, and Chernoff's bound on log delta.

    Where single large losses dominate, the mean jumps past epsilon as the tilt grows; a tilt below
    that keeps the other losses visible. Every further ``attempt`` takes a smaller tilt.
    """
    tilts = _trial_tilts(sketch)
    moments, means, variances = loss_distribution.tilted_moments(sketch, tilts)
    finite = float(np.min(moments + loss_distribution.log_heaviest(tilts) - tilts * epsilon))
    bound = float(
        np.logaddexp(finite, math.log(max(loss_distribution.infinity_mass_of(sketch), 1e-320)))
    )
    below = int(np.searchsorted(np.maximum.accumulate(means), epsilon, side="right")) - 1
    best = max(below - 2 * attempt, 0)
    return _Aim(float(tilts[best]), bound, epsilon, math.sqrt(float(variances[best])))


def _solve(loss: loss_distribution.SummedLoss, log_delta: float, guess: float) -> float:
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
