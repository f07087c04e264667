"""Run variance-reduced gradient descent: SVRG, and SVRG++ whose epochs double."""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from skdp._numbers import Array, is_real, require
from skdp.oracle import GaussianNoise, NoisyStatistic, SVRGPass, compiled, noisy_gradient
from skdp.solvers import checks, defaults
from skdp.solvers.base import Auto, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.batches import BatchSize, batch_rate, check_batches, samplers
from skdp.solvers.core.bound_rules import svrg_rule
from skdp.steps import ClipNorm, StepSize, clip_norms, constant_size

# Fewest and most inner steps.
STEPS = (60, 1000)
# Largest step size times curvature. Plain steps are stable up to 2; less allows for the variation
# among batches.
PLAIN_STEP = 1.8
# Distance travelled, next to that of gradient descent: two kinds of answers share the budget, so
# each is noisier.
TRAVEL = 0.6
# Rows of a batch: at least this many, and this share of all rows.
MIN_ROWS, SHARE_OF_ROWS = 256, 0.1
# The following three were chosen on the first data of `benchmarks.papers.next_to_gd`.
# Share of the squared budget that snapshots get: the last of them decides where the run ends.
SNAPSHOT_SHARE = 0.7
# Differences of gradients grow with this power of the norm of rows, see `difference_slope`.
SLOPE_POWER = 1.5
# Epochs by default, of "svrg" and of "svrg++".
EPOCHS, DOUBLING_EPOCHS = 5, 4
# Range of the clip of differences, which keeps the precision of float64.
LEAST_CLIP, LARGEST_CLIP = 1e-100, 1e20
SNAPSHOTS = ("once", "fresh")


class VarianceReduced(Solver):
    """Base of the solvers whose steps are differences of gradients from those at a snapshot.

    Parameters
    ----------
    batch_size : int, float, None or "auto", default="auto"
        Expected rows in a batch, as a number or a fraction; None takes all rows. Small batches are
        fast but require far more noise for the same budget: see the notes on `SVRG`.
    sampling : {"poisson", "fixed_size", "shuffled", "balls_and_bins"}, default="poisson"
        How batches are drawn; "fixed_size" under replace_one only.
    learning_rate : float, "bb" or "auto", default="auto"
        Step size. "bb" takes Barzilai and Borwein's from the noisy snapshots, noised "once".
    clip_norm : float, str, tuple (str, dict), ClippingRule or "auto", default="auto"
        L2 bound of one record's gradient in a snapshot; a rule, by name, too ("geometric"), counts
        epochs as steps.
    difference_clip : float or "auto", default="auto"
        L2 bound of one record's difference. The bound in force falls with the distance from the
        snapshot, and the noise with it: ``min(difference_clip, difference_slope * curvature *
        row_bound_**2 * |w - w~|)``, if rows are bounded and have no weights. "auto" is
        ``2 * clip_norm``.
    difference_slope : float or "auto", default="auto"
        In (0, 1]. With 1 the part of the bound that falls cuts no difference. It is for the longest
        rows, along ``w - w~``; "auto" is for rows of unit columns in most directions, and has a
        tenth of the noise or less.
    snapshot_share : float or "auto", default="auto"
        Share of the squared budget that snapshots get, in (0, 1). "auto" is 0.7.
    snapshot_noise : {"once", "fresh"}, default="once"
        "fresh" draws new noise on the snapshot in every step, as printed in the paper: at equal
        cost the average has the same noise, and each step more.
    condition_number, initial_gap : float or None, default=None
        Public guesses, both or neither, of kappa and of the excess at the start, as for "gd". With
        them "auto" follows the paper's theorems: steps of the size and number of Thm 4.2
        for "svrg" (some 200 kappa a short epoch), and of Thm 4.4 for "svrg++". These are far more
        steps than the defaults take.

    References
    ----------
    D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
    More General. NeurIPS 2017.
    """

    inner_steps: Resolved[int]
    batch_size: Resolved[BatchSize]
    difference_clip: Resolved[float]
    difference_slope: Resolved[float]
    snapshot_share: Resolved[float]

    def __init__(
        self,
        *,
        max_iter: int | Auto = "auto",
        inner_steps: int | Auto = "auto",
        batch_size: int | float | str | None = "auto",
        sampling: str = "poisson",
        learning_rate: StepSize = "auto",
        clip_norm: ClipNorm = "auto",
        difference_clip: float | str = "auto",
        difference_slope: float | str = "auto",
        snapshot_share: float | str = "auto",
        snapshot_noise: str = "once",
        condition_number: float | None = None,
        initial_gap: float | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.inner_steps = inner_steps
        self.batch_size = batch_size
        self.sampling = sampling
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.difference_clip = difference_clip
        self.difference_slope = difference_slope
        self.snapshot_share = snapshot_share
        self.snapshot_noise = snapshot_noise
        self.condition_number = condition_number
        self.initial_gap = initial_gap

    @abstractmethod
    def _epochs(self) -> Iterator[int]:
        """Yield the numbers of steps of the epochs, without end."""

    @abstractmethod
    def _next_start(self, last: Array, mean: Array) -> Array:
        """Return the start of the next epoch, given the last iterate and the mean of this one."""

    @abstractmethod
    def _automatic_inner_steps(self, max_iter: int) -> int:
        """Return the steps of an epoch by default, given the number of all steps."""

    def automatic(self, public: Public, problem: Problem) -> Settings:
        """Return the distance and clip of gradient descent, in plain steps."""
        longest = defaults.longest_plain_step(public, problem, PLAIN_STEP)
        distance = defaults.travelled_distance(public, problem, TRAVEL)
        clip = self.clip_norm
        if not is_real(clip):
            clip = defaults.descent_defaults(public, problem)["clip_norm"]
        max_iter, size = checks.given_steps(self.max_iter, self.learning_rate)
        rule = svrg_rule(self, public, problem, float(clip), isinstance(self, SVRGPlusPlus))
        if max_iter is None:
            wanted = defaults.count_within(distance / (size or longest), STEPS)
            max_iter = rule.get("max_iter", wanted)
        rows = max(MIN_ROWS, round(SHARE_OF_ROWS * public.n_rows))
        return {
            "max_iter": max_iter,
            "inner_steps": self._automatic_inner_steps(max_iter),
            "learning_rate": min(distance / max_iter, longest),
            "batch_size": min(rows, public.n_rows),
            "clip_norm": clip,
            "difference_clip": min(2.0 * float(clip), LARGEST_CLIP),
            "difference_slope": difference_slope(public),
            "snapshot_share": SNAPSHOT_SHARE,
            **{name: rule[name] for name in rule if name != "max_iter"},
        }

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.count(inner_steps=self.inner_steps)
        checks.choice("snapshot_noise", self.snapshot_noise, SNAPSHOTS)
        check_batches(self.batch_size, self.sampling, public)
        follows = checks.is_word(self.learning_rate, "bb")
        if not follows:
            constant_size(self.learning_rate)
        if follows and self.snapshot_noise == "fresh":
            raise ValueError(
                "learning_rate='bb' follows snapshots that are released, which "
                "snapshot_noise='fresh' does not do; take snapshot_noise='once' or a number as "
                "learning_rate."
            )
        clip_norms(self.clip_norm, self.n_epochs)
        clip = self.difference_clip
        holds = is_real(clip) and LEAST_CLIP <= clip <= LARGEST_CLIP
        allowed = f"be 'auto' or a number from {LEAST_CLIP:g} to {LARGEST_CLIP:g}"
        require("difference_clip", clip, allowed, holds)
        slope = self.difference_slope
        holds = is_real(slope) and 0 < slope <= 1
        require("difference_slope", slope, "be 'auto' or a number in (0, 1]", holds)
        checks.share(snapshot_share=self.snapshot_share)

    def has_long_passes(self, public: Public) -> bool:
        if public.sparse or public.grouped or public.n_outputs > 1:
            return False  # these are left to numpy
        rows = next(samplers(self.batch_size, self.sampling, public)).divisor(public)
        return compiled.is_long(max(self._lengths()), rows, public.n_parameters)

    @property
    def n_epochs(self) -> int:
        """Number of epochs; the last one may be cut short by ``max_iter``."""
        return len(self._lengths())

    def _lengths(self) -> list[int]:
        """Return the steps in each epoch, ``max_iter`` in total."""
        lengths, remaining = [], int(self.max_iter)
        for length in self._epochs():
            lengths.append(min(length, remaining))
            remaining -= lengths[-1]
            if not remaining:
                return lengths
        return lengths

    def solve(self, oracle: Oracle) -> Solution:
        public, lengths = oracle.public, self._lengths()
        clips = clip_norms(self.clip_norm, len(lengths))
        batches = samplers(self.batch_size, self.sampling, public)
        snapshots, inner = self._noises(public, lengths)
        longest = defaults.longest_plain_step(public, oracle.problem, PLAIN_STEP)
        step = BarzilaiBorwein(longest) if checks.is_word(self.learning_rate, "bb") else None
        size = longest if step is not None else constant_size(self.learning_rate)
        point = anchor = oracle.problem.prox(oracle.start(), 0.0)
        for length, clip_norm in zip(lengths, clips, strict=True):
            # 1. The snapshot: released once, or noised afresh for each step inside of the pass.
            snapshot: Array | NoisyStatistic
            if self.snapshot_noise == "once":
                snapshot = oracle.gradient(anchor, clip_norm, snapshots)
                if step is not None:
                    size = step.next(anchor, snapshot, length, size)
            else:
                snapshot = noisy_gradient(anchor, clip_norm, snapshots)
            # 2. The inner steps.
            chosen = tuple(itertools.islice(batches, length))
            sampler = chosen if any(one != chosen[0] for one in chosen) else chosen[0]
            sizes, noise = np.full(length, size), GaussianNoise(inner)
            clip, slope = self.difference_clip, self.difference_slope
            inner_pass = SVRGPass(point, anchor, snapshot, sizes, clip, noise, sampler, slope)
            last, mean = oracle.ask(inner_pass)
            oracle.note_direction((last - point) / (length * size))
            # 3. The next epoch.
            point, anchor = self._next_start(last, mean), mean
        return Solution(anchor, int(self.max_iter))

    def _noises(self, public: Public, lengths: list[int]) -> tuple[float, float]:
        """Return the relative noise of a snapshot and of a step, for their shares of the budget.

        A share q of the squared budget needs 1/sqrt(q) of the noise, divided over the answers. A
        step sees a record with the probability of its sampler, by which its noise is smaller.
        """
        steps = sum(lengths)
        copies = steps if self.snapshot_noise == "fresh" else len(lengths)
        rate = batch_rate(self.batch_size, public.n_rows)
        snapshots = math.sqrt(copies / self.snapshot_share)
        return snapshots, rate * math.sqrt(steps / (1 - self.snapshot_share))


def difference_slope(public: Public) -> float:
    """Return the share of the steepest bound on differences that rows of unit columns need.

    A difference is ``curvature * |x| * |x'(w - w~)|`` long. The steepest bound puts the longest row
    along the way: ``R**2``. For rows of the expected norm r it is about r where columns are
    independent, and ``r**2`` where they are equal; this takes ``r**1.5``.
    """
    if public.row_norm is None or not public.is_noisy:
        return 1.0
    usual = defaults.expected_row_norm(public) ** SLOPE_POWER
    return float(min(1.0, usual / public.row_norm**2))


class BarzilaiBorwein:
    """Step sizes from noisy snapshots: ``|dw|**2 / (m <dw, dg>)`` (Tan et al. 2016, SVRG-BB).

    They are functions of released answers, and cost nothing. The old step size is kept if noise
    makes the product negative. Sizes are at most ``longest``, as noise may make the product tiny.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._before: tuple[Array, Array] | None = None

    def next(self, anchor: Array, snapshot: Array, n_steps: int, size: float) -> float:
        """Return the step size for an epoch, given the step size of the epoch before."""
        before, self._before = self._before, (anchor, snapshot)
        if before is None:
            return size
        moved, turned = anchor - before[0], snapshot - before[1]
        product = float(np.vdot(moved, turned))
        if not product > 0:
            return size
        new_size = float(np.vdot(moved, moved)) / (n_steps * product)
        return min(new_size, self._longest) if new_size > 0 else size


class SVRG(VarianceReduced):
    """Variance-reduced gradient descent: a full gradient per epoch, then differences (DP-SVRG).

    An epoch takes a noisy full gradient g~ at a snapshot w~, then ``inner_steps`` steps
    ``w = prox(w - eta * (noisy mean difference of gradients over a batch + g~))`` from w~, each
    record's difference between w and w~ clipped by itself. The mean of the iterates is the next
    snapshot, and the solution in the end (Wang, Ye, Xu 2017, Alg. 1).

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of inner steps in all epochs together, at least 1: T epochs of m steps are ``T * m``.
    inner_steps : int or "auto", default="auto"
        Steps in an epoch, m; the last epoch may be shorter. "auto" makes five epochs.
    {Parameters}

    Notes
    -----
    The paper's noise is sufficient for ``epsilon <= c T m / n**2``, which its own experiments
    exceed by far. Here the accountant computes the noise. A `NoiseWarning` names batches that
    are too small for it.

    References
    ----------
    {References}
    C. Tan, S. Ma, Y.-H. Dai, Y. Qian: Barzilai-Borwein Step Size for Stochastic Gradient Descent.
    NeurIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1], solver="svrg", epsilon=3.0).fit(X, y)
    >>> model.score(X, y) > 0.85  # public rows: an exact score is fine
    True
    """

    name = "svrg"
    purpose = "DP-SVRG (Wang, Ye, Xu 2017): ahead of 'gd' after few passes, behind after many."

    def _epochs(self) -> Iterator[int]:
        return itertools.repeat(self.inner_steps)

    def _next_start(self, last: Array, mean: Array) -> Array:
        return mean

    def _automatic_inner_steps(self, max_iter: int) -> int:
        return math.ceil(max_iter / EPOCHS)


class SVRGPlusPlus(VarianceReduced):
    """Variance-reduced gradient descent with epochs that double, for convex losses (DP-SVRG++).

    This is "svrg", except that epoch s has ``2**s * inner_steps`` steps and starts at the last
    iterate of the epoch before, while the snapshot is the mean of its iterates (Wang, Ye, Xu 2017,
    Alg. 2). It requires no strong convexity. The paper's steps are ``1 / (13 L)``, with L the
    curvature of the loss.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps in all epochs together, at least 1: T epochs are
        ``(2**(T + 1) - 2) * inner_steps``.
    inner_steps : int or "auto", default="auto"
        Steps m: the first epoch has 2 m steps, and each epoch twice the steps of the one before;
        the last may be cut short. "auto" makes about four epochs.
    {Parameters}

    References
    ----------
    {References}
    Z. Allen-Zhu, Y. Yuan: Improved SVRG for Non-Strongly-Convex or Sum-of-Non-Convex Objectives.
    ICML 2016.

    Examples
    --------
    >>> from skdp.solvers import SVRGPlusPlus
    >>> SVRGPlusPlus(inner_steps=10, max_iter=140).n_epochs  # 20 + 40 + 80
    3
    """

    name = "svrg++"
    purpose = "DP-SVRG++ (Wang, Ye, Xu 2017): ahead of 'gd' after few passes, behind after many."

    def _epochs(self) -> Iterator[int]:
        length = int(self.inner_steps)
        while True:
            length *= 2
            yield length

    def _next_start(self, last: Array, mean: Array) -> Array:
        return last

    def _automatic_inner_steps(self, max_iter: int) -> int:
        return math.ceil(max_iter / (2.0 ** (DOUBLING_EPOCHS + 1) - 2))
