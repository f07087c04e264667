"""What a composition of dominating pairs costs: aim at the tail, compose by FFT, solve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from skdp.accounting.loss_distribution import (
    Atoms,
    SummedLoss,
    lattice_atoms,
    sketch_atoms,
    tilted_moments,
)
from skdp.accounting.pairs import Array, Pair

Pairs = tuple[tuple[Pair, int], ...]
AtomList = list[tuple[Atoms, int]]

# Mass cut off at the far end, as a share of delta; it is charged as lost.
_CUT = 1e-5
_LEAST = 1e-290  # below this, doubles lose their precision


@dataclass(frozen=True)
class _Aim:
    """Where to look in one direction.

    ``tilt`` brings the tail to the middle; ``bound`` is a bound on the answer, ``guess`` about it.
    """

    tilt: float
    bound: float
    guess: float


@dataclass(frozen=True)
class Effort:
    """How fine a lattice is: what share it may add to epsilon, and how many atoms it may have.

    Both are a number and so much more for each distinct pair.
    """

    precision: float
    precision_each: float
    atoms: int
    atoms_each: int

    def lattice(
        self, pairs: Pairs, aim: _Aim, epsilon: float, tail: float
    ) -> tuple[AtomList, float]:
        """Atoms of all pairs on one lattice, and its step.

        A step h adds at most ``h**2 / 8`` times ``tilt (1 + tilt)`` to the log moment of each loss,
        and so much over ``tilt`` to epsilon.
        """
        count = sum(times for _, times in pairs)
        precision = self.precision + self.precision_each * len(pairs)
        precise = math.sqrt(8 * precision * epsilon / (count * (1 + aim.tilt)))
        length = sum(sum(pair.reach(tail)) for pair, _ in pairs)
        step = max(precise, length / (self.atoms + self.atoms_each * len(pairs)), _LEAST)
        return [(lattice_atoms(pair, step, tail), times) for pair, times in pairs], step


FULL = Effort(3e-6, 3e-8, 400_000, 2_500)
ROUGH = Effort(1e-4, 0.0, 40_000, 1_500)


def epsilon_of(pairs: Pairs, coarse: Pairs, delta: float, effort: Effort = FULL) -> float:
    """Epsilon at ``delta`` of the composition of all pairs, the larger of both directions.

    Parameters
    ----------
    pairs : tuple of (Pair, count)
    coarse : tuple of (Pair, count)
        A shorter list that costs no less, to find where to look.
    delta : float
        Above 0.
    """
    if not pairs or delta >= 1:
        return 0.0
    count = sum(times for _, times in pairs)
    tail = max(delta * _CUT / count, _LEAST)
    sketch = [(sketch_atoms(pair, tail), times) for pair, times in coarse]
    log_delta = math.log(delta)
    aims = [_aim_at_delta(side, log_delta) for side in _directions(sketch)]
    if not all(math.isfinite(aim.bound) for aim in aims):
        return math.inf

    def solved(side: int, pairs: Pairs, effort: Effort) -> float:
        aim, found = aims[side], math.inf
        atoms, step = effort.lattice(pairs, aim, min(aim.bound, aim.guess), tail)
        for _ in range(3):
            loss = SummedLoss(_directions(atoms)[side], step, aim.tilt)
            found = min(found, _solve(loss, log_delta, aims[side].bound))
            if loss.slack_share(found) < effort.precision:
                break
            # The tail lay elsewhere than aimed at: look again, from where it was found.
            aim = _aim_at_epsilon(_directions(sketch)[side], found)
        return found

    dearer, *others = sorted(range(len(aims)), key=lambda side: -aims[side].bound)
    found = solved(dearer, pairs, effort)
    for side in others:
        # Mostly a bound that is quick to find shows that the second direction cannot matter.
        if aims[side].bound > found and solved(side, coarse, ROUGH) > found:
            found = max(found, solved(side, pairs, effort))
    return found


def delta_of(pairs: Pairs, coarse: Pairs, epsilon: float, effort: Effort = FULL) -> float:
    """Delta at ``epsilon`` of the composition of all pairs, the larger of both directions."""
    if not pairs:
        return 0.0
    if math.isinf(epsilon):
        far = np.array([1e300])
        kept = 0.0
        for pair, times in pairs:
            leak = max(float(pair.forward(far)[0]), float(pair.backward(far)[0]))
            kept += times * math.log1p(-leak)
        return -math.expm1(kept)
    count = sum(times for _, times in pairs)
    tail = 1e-30
    for _ in range(2):  # the second time with a tail cut where the first bound says
        sketch = [(sketch_atoms(pair, tail), times) for pair, times in coarse]
        aims = [_aim_at_epsilon(side, epsilon) for side in _directions(sketch)]
        bound = max(aim.bound for aim in aims)
        tail = max(math.exp(min(0.0, bound)) * _CUT / count, _LEAST)
    reach = sum(times * pair.reach(tail)[0] for pair, times in pairs) / count
    logs = []
    for side, aim in enumerate(aims):
        atoms, step = effort.lattice(pairs, aim, max(epsilon, 1e-3 * reach), tail)
        logs.append(SummedLoss(_directions(atoms)[side], step, aim.tilt).log_delta(epsilon))
    return min(1.0, math.exp(max(logs)))


def _directions(atoms: AtomList) -> list[AtomList]:
    """All atoms as they are, and all reversed unless that changes nothing."""
    if all(np.array_equal(item.up, item.down) for item, _ in atoms):
        return [atoms]
    return [atoms, [(item.reversed(), count) for item, count in atoms]]


def _trial_tilts(sketch: AtomList) -> Array:
    reach = sum(count * float(item.gains[-1]) for item, count in sketch)
    tilts: Array = np.geomspace(0.1, 1e7, 64) / max(reach, _LEAST)
    return tilts


def _aim_at_delta(sketch: AtomList, log_delta: float) -> _Aim:
    """Tilt under which the mean loss is about the epsilon asked for, and the Chernoff bound on it.

    At its mean under a tilt t a sum with variance v has a divergence of about the Chernoff bound
    over ``t (1+t) sqrt(2 pi v)`` (saddle point).
    """
    infinite = -math.expm1(sum(count * math.log1p(-item.infinite) for item, count in sketch))
    left = -math.expm1(math.log(max(infinite, 1e-320)) - log_delta)
    if left <= 0:
        return _Aim(0.0, math.inf, math.inf)
    aim = log_delta + math.log(left)
    tilts = _trial_tilts(sketch)
    moments, means, variances = tilted_moments(sketch, tilts)
    bound = float(np.min((moments - aim) / tilts))
    width = tilts * (1 + tilts) * np.sqrt(2 * math.pi * variances)
    reached = moments - tilts * means - np.log1p(width) <= aim
    best = int(np.argmax(reached)) if reached.any() else len(tilts) - 1
    return _Aim(float(tilts[best]), bound, max(float(means[best]), 1e-3 * bound))


def _aim_at_epsilon(sketch: AtomList, epsilon: float) -> _Aim:
    """Tilt under which the mean loss is ``epsilon``, and the Chernoff bound on log delta."""
    tilts = _trial_tilts(sketch)
    moments, _, _ = tilted_moments(sketch, tilts)
    bounds = moments - tilts * epsilon
    best = int(np.argmin(bounds))
    return _Aim(float(tilts[best]), float(bounds[best]), epsilon)


def _solve(loss: SummedLoss, log_delta: float, guess: float) -> float:
    """Least epsilon at which the summed loss is within delta, rounded up."""

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
