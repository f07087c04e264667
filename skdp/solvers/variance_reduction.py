"""What SVRG and SVRG++ share: epochs of a noisy snapshot and cheap noisy differences from it."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._docstrings import fill
from skdp._numbers import is_real, shown
from skdp.objective import Problem
from skdp.oracle import (
    AllRows,
    GaussianNoise,
    GradientSum,
    IndexSampler,
    NoisyStatistic,
    Oracle,
    Public,
    Solution,
    SVRGPass,
)
from skdp.solvers.base import Solver
from skdp.solvers.batches import SAMPLINGS, batch_rows, samplers
from skdp.solvers.checks import check_choice, check_count, is_auto
from skdp.solvers.defaults import descent_defaults
from skdp.steps import ClippingRule, clip_norms

Array = NDArray[np.float64]

FEWEST, MOST = 60, 1000
LEAST_CLIP, LARGEST_CLIP = 1e-100, 1e20
# Defaults of gradient descent bear steps of 38 over the curvature, by momentum; plain ones 2, and
# some less leaves room for what batches differ by.
PLAIN = 1.8 / 38
# Two kinds of answers share the budget, so each is noisier, and the run is more timid.
TRAVEL = 0.6
FEWEST_ROWS, SHARE_OF_ROWS = 256, 0.1
SNAPSHOTS = ("once", "fresh")

# What the docstrings of SVRG and SVRG++ have in common.
SHARED = """
batch_size : int, float, None or "auto", default="auto"
    Expected rows in a batch, as a number or a fraction; None takes all rows. Small batches are
    quick but need far more noise for the same budget: see the notes on `SVRG`.
sampling : {"poisson", "fixed_size", "shuffled", "balls_and_bins"}, default="poisson"
    How batches are drawn; "fixed_size" under replace_one only.
learning_rate : float, "bb" or "auto", default="auto"
    Step size. "bb" takes Barzilai and Borwein's from the noisy snapshots, noised "once".
clip_norm : float, ClippingRule or "auto", default="auto"
    L2 bound of one record's gradient in a snapshot; a rule goes by epochs.
difference_clip : float or "auto", default="auto"
    L2 bound of one record's difference. Whatever it is, the bound falls with the distance from
    the snapshot, and the noise with it: ``min(difference_clip, curvature * row_bound_**2 *
    |w - w~|)``, if there is a bound on rows and they have no weights. "auto" is
    ``2 * clip_norm``.
snapshot_share : float or "auto", default="auto"
    Part of the squared budget that snapshots get, in (0, 1). "auto" is 0.5.
snapshot_noise : {"once", "fresh"}, default="once"
    "fresh" draws new noise on the snapshot at every step, as the paper prints it: the same
    averaged noise at equal cost, more of it in a step.
"""

PAPER = """
D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
More General. NeurIPS 2017.
"""

documented = fill(shared=SHARED, paper=PAPER)


class VarianceReduced(Solver):
    """Base of the solvers whose steps are differences of gradients from those at a snapshot."""

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        inner_steps: Any = "auto",
        batch_size: int | float | str | None = "auto",
        sampling: str = "poisson",
        learning_rate: float | str = "auto",
        clip_norm: float | ClippingRule | str = "auto",
        difference_clip: float | str = "auto",
        snapshot_share: float | str = "auto",
        snapshot_noise: str = "once",
    ) -> None:
        self.max_iter = max_iter
        self.inner_steps = inner_steps
        self.batch_size = batch_size
        self.sampling = sampling
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.difference_clip: Any = difference_clip
        self.snapshot_share: Any = snapshot_share
        self.snapshot_noise = snapshot_noise

    @abstractmethod
    def _epochs(self) -> Iterator[int]:
        """Yield the numbers of steps of the epochs, without end."""

    @abstractmethod
    def _next_start(self, last: Array, mean: Array) -> Array:
        """Where the next epoch starts, given the last iterate and the mean of this one."""

    @abstractmethod
    def _automatic_inner_steps(self, max_iter: int) -> int:
        """Return what "auto" stands for, given the number of all steps."""

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        for name in ("max_iter", "inner_steps"):
            if not is_auto(getattr(self, name)):
                check_count(name, getattr(self, name))
        given = float(self.learning_rate) if is_real(self.learning_rate) else None
        max_iter = None if is_auto(self.max_iter) else self.max_iter
        values = reduced_defaults(public, problem, max_iter, given)
        if is_auto(self.inner_steps):
            values["inner_steps"] = self._automatic_inner_steps(values["max_iter"])
        if is_real(self.clip_norm):
            values["difference_clip"] = min(2.0 * float(self.clip_norm), LARGEST_CLIP)
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def resolve(self, public: Public, problem: Problem) -> Any:
        resolved = super().resolve(public, problem)
        check_choice("sampling", resolved.sampling, SAMPLINGS)
        check_choice("snapshot_noise", resolved.snapshot_noise, SNAPSHOTS)
        if resolved.batch_size is not None:
            batch_rows(resolved.batch_size, public.n_rows)
        rate = resolved.learning_rate
        if rate != "bb" and not (is_real(rate) and 0 < rate < math.inf):
            raise ValueError(
                f"learning_rate must be 'auto', 'bb' or a positive number; got {shown(rate)}."
            )
        if rate == "bb" and resolved.snapshot_noise == "fresh":
            raise ValueError(
                "learning_rate='bb' goes by snapshots that are seen, which snapshot_noise='fresh' "
                "does not show; take snapshot_noise='once' or a number as learning_rate."
            )
        clip_norms(resolved.clip_norm, resolved.n_epochs)
        clip = resolved.difference_clip
        if not (is_real(clip) and LEAST_CLIP <= clip <= LARGEST_CLIP):
            raise ValueError(
                f"difference_clip must be 'auto' or a number from {LEAST_CLIP:g} to "
                f"{LARGEST_CLIP:g}; got {shown(clip)}."
            )
        share = resolved.snapshot_share
        if not (is_real(share) and 0 < share < 1):
            raise ValueError(
                f"snapshot_share must be 'auto' or a number between 0 and 1; got {shown(share)}."
            )
        return resolved

    @property
    def n_epochs(self) -> int:
        """Number of epochs; the last one may be cut short by ``max_iter``."""
        return len(self._lengths())

    def _lengths(self) -> list[int]:
        """Return the steps in each epoch, ``max_iter`` in total."""
        lengths, left = [], int(self.max_iter)
        for length in self._epochs():
            lengths.append(min(length, left))
            left -= lengths[-1]
            if not left:
                return lengths
        return lengths

    def _batches(self, public: Public) -> Iterator[IndexSampler]:
        return samplers(self.batch_size, self.sampling, public)

    def solve(self, oracle: Oracle) -> Solution:
        lengths = self._lengths()
        clips = clip_norms(self.clip_norm, len(lengths))
        batches = self._batches(oracle.public)
        snapshots, inner = self._noises(oracle.public, lengths)
        longest = longest_step(oracle.public, oracle.problem)
        step = BarzilaiBorwein(longest) if self.learning_rate == "bb" else None
        size = longest if step is not None else float(self.learning_rate)
        point = anchor = oracle.problem.prox(oracle.start(), 0.0)
        for length, clip_norm in zip(lengths, clips, strict=True):
            # 1. the snapshot: noised once, or, behind the boundary, afresh for every step
            snapshot: Any
            if self.snapshot_noise == "once":
                snapshot = oracle.gradient(anchor, clip_norm, snapshots)
            else:
                what, noise = GradientSum(anchor, clip_norm), GaussianNoise(snapshots)
                snapshot = NoisyStatistic(what, noise, AllRows())
            if step is not None:
                size = step.next(anchor, snapshot, length, size)
            # 2. the inner steps
            chosen = tuple(itertools.islice(batches, length))
            sampler = chosen if any(one != chosen[0] for one in chosen) else chosen[0]
            last, mean = oracle.ask(
                SVRGPass(
                    point,
                    anchor,
                    snapshot,
                    np.full(length, size),
                    self.difference_clip,
                    GaussianNoise(inner),
                    sampler,
                )
            )
            oracle.note_direction((last - point) / (length * size))
            # 3. the next epoch
            point, anchor = self._next_start(last, mean), mean
        return Solution(anchor, int(self.max_iter))

    def _noises(self, public: Public, lengths: list[int]) -> tuple[float, float]:
        """Relative noise of a snapshot and of a step, from their shares of the budget.

        A share q of the squared budget is 1/sqrt(q) of the noise, divided over the answers; a step
        sees a record with the chance of its sampler, which is what its noise can be smaller by.
        """
        steps = sum(lengths)
        copies = steps if self.snapshot_noise == "fresh" else len(lengths)
        chance = 1.0
        if self.batch_size is not None:
            chance = batch_rows(self.batch_size, public.n_rows) / public.n_rows
        snapshots = math.sqrt(copies / self.snapshot_share)
        return snapshots, chance * math.sqrt(steps / (1 - self.snapshot_share))


class BarzilaiBorwein:
    """Step sizes from noisy snapshots: ``|dw|**2 / (m <dw, dg>)`` (Tan et al. 2016, SVRG-BB).

    Being functions of what was released, they cost nothing. Where noise leaves no positive product
    the old step is kept; steps longer than ``longest`` are cut, as noise may leave a tiny one.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._before: tuple[Array, Array] | None = None

    def next(self, anchor: Array, snapshot: Array, n_steps: int, size: float) -> float:
        """Return the step size for an epoch, given that of the last one."""
        before, self._before = self._before, (anchor, snapshot)
        if before is None:
            return size
        moved, turned = anchor - before[0], snapshot - before[1]
        product = float(np.vdot(moved, turned))
        if not product > 0:
            return size
        found = float(np.vdot(moved, moved)) / (n_steps * product)
        return min(found, self._longest) if found > 0 else size


def longest_step(public: Public, problem: Problem) -> float:
    """Longest plain step for rows of the expected size, from public facts."""
    return PLAIN * float(descent_defaults(public, problem, 1)["learning_rate"])


def reduced_defaults(
    public: Public, problem: Problem, max_iter: int | None, learning_rate: float | None
) -> dict[str, Any]:
    """Return what "auto" stands for: distance and clip of gradient descent, in plain steps."""
    values = descent_defaults(public, problem, 10**9)
    distance = TRAVEL * 1e9 * values["learning_rate"]
    longest = longest_step(public, problem)
    if max_iter is None:
        step = longest if learning_rate is None else learning_rate
        max_iter = min(max(math.ceil(min(distance / step, MOST)), FEWEST), MOST)
    rows = max(FEWEST_ROWS, round(SHARE_OF_ROWS * public.n_rows))
    return {
        "max_iter": max_iter,
        "learning_rate": min(distance / max_iter, longest),
        "batch_size": min(rows, public.n_rows),
        "clip_norm": values["clip_norm"],
        "difference_clip": min(2 * values["clip_norm"], LARGEST_CLIP),
        "snapshot_share": 0.5,
    }
