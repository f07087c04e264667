"""Smoothness of an objective, as far as anyone may know it without asking."""

from __future__ import annotations

from skdp.objective import Problem
from skdp.oracle import Public, smoothness

# Squared norm of a row with the enforced default bound, twice what columns of unit size give.
EXPECTED = 4.0


def public_smoothness(public: Public, problem: Problem) -> float:
    """Smoothness of mean loss and penalty: ``curvature * R**2 + lambda``, R the bound on rows.

    Without a bound, where there is no noise either, rows are taken to be at most twice as long as
    columns of unit size make them. Weights are not accounted for: they change the curvature.
    """
    bound = smoothness(public, problem)
    if bound is None:
        constant = (public.intercept_size * public.has_intercept) ** 2
        bound = problem.loss.curvature * (EXPECTED * public.n_parameters + constant)
    return bound + problem.strong_convexity
