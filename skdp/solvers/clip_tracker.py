"""Provide the clipping norm of each step: fixed beforehand, or adapted to noisy counts."""

import math

from sklearn.base import clone

from skdp._numbers import Array, shown
from skdp.accounting import Gaussian
from skdp.oracle import GaussianNoise, GradientCount, NoisyStatistic, Sampler, Statistic
from skdp.solvers import checks
from skdp.solvers.base import Oracle, Problem, Public, Solver
from skdp.solvers.defaults import descent_defaults
from skdp.solvers.descent import Path, Step, Wrapper
from skdp.steps import AdaptiveClipping, ClipNorm, clipping_rule, constant_clip


def resolve_clip(solver: Solver, public: Public, problem: Problem) -> None:
    """Check the clipping norm of a solver, and put a rule that adapts in place of its name.

    Raises
    ------
    ValueError
        If it is not positive and finite, or adapts to counts by L2 norm, which
        Laplace noise has no use for.
    """
    rule = clipping_rule(solver.clip_norm)
    if not isinstance(rule, AdaptiveClipping):
        constant_clip(rule)
        return
    mechanism = solver.get_params(deep=False).get("mechanism", "gaussian")
    if mechanism != "gaussian":
        raise ValueError(
            "adaptive clipping counts gradients by their L2 norm, for Gaussian noise; got "
            f"mechanism={shown(mechanism)}. Nothing was released."
        )
    solver.clip_norm = rule = clone(rule)
    if checks.is_auto(rule.initial):
        rule.initial = float(descent_defaults(public, problem)["clip_norm"])
    rule.check()


def count_ratio(public: Public) -> float:
    """Return a count's noise over that of a gradient of the same cost, each in its own unit."""
    return Gaussian(1.0, spread=1.0).sensitivity(public.adjacency) / public.sensitivity_factor


def noisy_count(oracle: Oracle, count: Statistic, noise: float, rows: Sampler) -> float:
    """Request a count; a gradient of the same cost would have the same relative ``noise``."""
    mechanism = GaussianNoise(noise * count_ratio(oracle.public))
    return float(oracle.request(NoisyStatistic(count, mechanism, rows))[0])


class TrackedClip(Wrapper):
    """A path whose clipping norm follows a noisy count before each step.

    Parameters
    ----------
    path : Path
    rule : AdaptiveClipping
        Resolved by `resolve_clip`.
    noises : array of shape (n_steps,)
        Relative noise of the gradients, if there were no counts.

    Attributes
    ----------
    noises : array of shape (n_steps,)
        Relative noise of the gradients, which leaves the counts their share of the budget.
    """

    def __init__(self, path: Path, rule: AdaptiveClipping, noises: Array) -> None:
        super().__init__(path)
        # Gradients keep 1 - share of the squared budget; all counts have the same noise.
        share, self._rule, self.norm = float(rule.share), rule, float(rule.initial)
        self.noises = noises * (1 - share) ** -0.5
        self._count_noise = math.sqrt(len(noises) / (share * float((noises**-2.0).sum())))

    def query(self, oracle: Oracle, step: Step) -> Array:
        count = GradientCount(self.at(step), self.norm)
        total = noisy_count(oracle, count, self._count_noise, step.batch)
        weight = step.batch.divisor(oracle.public) * oracle.public.weighted_share
        self.norm = self._rule.next_norm(self.norm, total / weight)
        return super().query(oracle, step._replace(clip_norm=self.norm))


def tracked(path: Path, rule: ClipNorm, noises: Array) -> tuple[Path, float, Array]:
    """Return a path with the clipping norms of a resolved rule, the first norm, and the noises."""
    if isinstance(rule, AdaptiveClipping):
        path = TrackedClip(path, rule, noises)
        return path, path.norm, path.noises
    return path, constant_clip(rule), noises
