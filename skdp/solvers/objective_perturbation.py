"""Minimise the objective with a random linear term: noise first, then optimise."""

from __future__ import annotations

from typing import Any, ClassVar

from skdp.objective import Problem
from skdp.oracle import Oracle, PerturbedMinimum, Public, Solution
from skdp.oracle.releases.perturbed import perturbation_damping
from skdp.solvers.base import Solver
from skdp.solvers.checks import check_positive, is_auto
from skdp.solvers.gram_defaults import check_columns, gram_row_norm

CURVATURE_SHARE = 0.2  # of epsilon, for the curvature of a record


class ObjectivePerturbation(Solver):
    """Objective perturbation for logistic regression, with the tight bound on its cost.

    A random linear term b'w is added to the objective, whose minimiser is released. The noise
    needs no more than one gradient's worth of budget, however many steps the search takes; the
    price is an extra L2 penalty, ``damping / 2 |w|**2`` on the summed loss, intercept included.

    Parameters
    ----------
    row_norm : float or "auto", default="auto"
        Rows longer than this weigh less, as if they were shrunk to it.
    damping : float or "auto", default="auto"
        More than ``row_norm**2 / 4``. "auto": a fifth of epsilon goes into the curvature.

    Notes
    -----
    Under "replace_one" the cost follows from that of "zero_out" by group privacy for two, about
    twice the noise of what a theorem of its own might ask. delta must be positive.

    References
    ----------
    R. Redberg, A. Koskela, Y. Wang: Improving the Privacy and Practicality of Objective
    Perturbation for Differentially Private Linear Learners. NeurIPS 2023.
    R. Iyengar, J. Near, D. Song, O. Thakkar, A. Thakurta, L. Wang: Towards Practical Differentially
    Private Convex Optimization. IEEE S&P 2019 (the noise that hides an inexact minimum).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     epsilon=3.0, solver="objective_perturbation", scaling="none"
    ... ).fit(scale(X), y)
    >>> [release.kind for release in model.privacy_.releases]
    ['perturbed_minimum']
    """

    name: ClassVar[str] = "objective_perturbation"
    needs: ClassVar[frozenset[str]] = frozenset(
        {
            "smooth_loss",
            "bounded_residual",
            "separable_loss",
            "smooth_penalty",
            "unconstrained",
        }
    )

    def __init__(self, *, row_norm: Any = "auto", damping: Any = "auto") -> None:
        self.row_norm = row_norm
        self.damping = damping

    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        row_norm = gram_row_norm(public, 0.8) if is_auto(self.row_norm) else self.row_norm
        damping = perturbation_damping(public, problem.loss.curvature, row_norm, CURVATURE_SHARE)
        values = {"row_norm": row_norm, "damping": damping}
        return {name: value for name, value in values.items() if is_auto(getattr(self, name))}

    def resolve(self, public: Public, problem: Problem) -> ObjectivePerturbation:
        resolved = super().resolve(public, problem)
        check_columns(self.name, public)
        for name in ("row_norm", "damping"):
            check_positive(name, getattr(resolved, name))
        return resolved

    def solve(self, oracle: Oracle) -> Solution:
        return Solution(oracle.ask(PerturbedMinimum(self.row_norm, self.damping)), 1)
