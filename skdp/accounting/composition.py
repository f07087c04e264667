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
    log_moments,
    sketch_atoms,
)
from skdp.accounting.pairs import Array, Pair

Pairs = tuple[tuple[Pair, int], ...]
AtomList = list[tuple[Atoms, int]]

# Mass cut off at the far end, as a share of delta; it is charged as lost.
_CUT = 1e-5
_LEAST = 1e-290  # below this, doubles lose their precision


@dataclass(frozen=True)
class _Aim:
    """Where to look in one direction: the tilt, and the Chernoff bound that it proves."""

    tilt: float
    bound: float


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
        aim = aims[side]
        atoms, step = effort.lattice(pairs, aim, aim.bound, tail)
        loss = SummedLoss(_directions(atoms)[side], step, aim.tilt)
        return _solve(loss, log_delta, aim.bound)

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


def _trials(sketch: AtomList) -> tuple[Array, Array]:
    """Tilts worth trying, and the log moments at them."""
    reach = sum(count * float(item.gains[-1]) for item, count in sketch)
    tilts = np.geomspace(0.1, 1e7, 64) / max(reach, _LEAST)
    return tilts, log_moments(sketch, tilts)


def _aim_at_delta(sketch: AtomList, log_delta: float) -> _Aim:
    """Least tilt of those that (nearly) give the least Chernoff bound on epsilon."""
    infinite = -math.expm1(sum(count * math.log1p(-item.infinite) for item, count in sketch))
    left = -math.expm1(math.log(max(infinite, 1e-320)) - log_delta)
    if left <= 0:
        return _Aim(0.0, math.inf)
    tilts, moments = _trials(sketch)
    bounds = (moments - log_delta - math.log(left)) / tilts
    best = int(np.argmax(bounds <= 1.001 * bounds.min()))
    return _Aim(float(tilts[best]), float(bounds[best]))


def _aim_at_epsilon(sketch: AtomList, epsilon: float) -> _Aim:
    """Tilt that gives the least Chernoff bound on the logarithm of delta."""
    tilts, moments = _trials(sketch)
    bounds = moments - tilts * epsilon
    best = int(np.argmin(bounds))
    return _Aim(float(tilts[best]), float(bounds[best]))


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
