"""Provide the clipping norm of each step: fixed beforehand, or adapted to noisy counts."""

import math

from sklearn.base import clone

from skdp._numbers import Array, shown
from skdp.accounting import Gaussian
from skdp.oracle import GaussianNoise, GradientCount, NoisyStatistic, Sampler, Statistic
from skdp.solvers import checks
from skdp.solvers.base import Oracle, Problem, Public, Solver
from skdp.solvers.defaults import descent_defaults
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


class ClipTracker:
    """Yields the clipping norm of each step; an adaptive rule requests a count before each.

    Parameters
    ----------
    rule : float or AdaptiveClipping
        Resolved by `resolve_clip`.
    noises : array of shape (n_steps,)
        Relative noise of the gradients, if there were no counts.

    Attributes
    ----------
    noises : array of shape (n_steps,)
        Relative noise of the gradients, which leaves the counts their share of the budget.
    """

    def __init__(self, rule: ClipNorm, noises: Array) -> None:
        self.noises = noises
        self._rule = rule if isinstance(rule, AdaptiveClipping) else None
        if self._rule is None:
            self._norm = constant_clip(rule)
            return
        # Gradients keep 1 - share of the squared budget; all counts have the same noise.
        share = float(self._rule.share)
        self._norm = float(self._rule.initial)
        self.noises = noises * (1 - share) ** -0.5
        total = float((noises**-2.0).sum())
        self._count_noise = math.sqrt(len(noises) / (share * total))

    def next(self, oracle: Oracle, point: Array, rows: Sampler) -> float:
        """Return the norm for the step from ``point`` on the rows that a sampler draws."""
        if self._rule is None:
            return self._norm
        count = noisy_count(oracle, GradientCount(point, self._norm), self._count_noise, rows)
        self._norm = self._rule.next_norm(
            self._norm, count / (rows.divisor(oracle.public) * oracle.public.weighted_share)
        )
        return self._norm
