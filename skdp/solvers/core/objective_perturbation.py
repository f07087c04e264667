"""Minimise the objective plus a random linear term, and release the minimiser."""

from skdp.oracle import PerturbedMinimum
from skdp.oracle.releases.perturbed import perturbation_damping
from skdp.solvers import base, checks
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.defaults import GRAM_COLUMNS, gram_row_norm


@base.hyperparameters
class ObjectivePerturbation(Solver):
    """Objective perturbation for logistic regression, with the tight bound on its cost.

    A random linear term b'w is added to the objective, whose minimiser is released. The noise is
    that of one gradient, however many steps the minimisation takes; in return there is an
    additional L2 penalty, ``damping / 2 |w|**2`` on the summed loss, intercept included.

    Parameters
    ----------
    row_norm : float or "auto", default="auto"
        Rows longer than this have less weight, as if they were shrunk to it.
    damping : float or "auto", default="auto"
        More than ``row_norm**2 / 4``. "auto" spends a fifth of epsilon on the curvature.

    Notes
    -----
    Under "replace_one" the cost follows from that of "zero_out" by group privacy for two records,
    with about twice the noise that a dedicated theorem might require. delta must be positive.

    References
    ----------
    R. Redberg, A. Koskela, Y. Wang: Improving the Privacy and Practicality of Objective
    Perturbation for Differentially Private Linear Learners. NeurIPS 2023.
    R. Iyengar, J. Near, D. Song, O. Thakkar, A. Thakurta, L. Wang: Towards Practical Differentially
    Private Convex Optimization. IEEE S&P 2019 (the noise that covers an inexact minimum).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     classes=[0, 1], epsilon=3.0, solver="objective_perturbation"
    ... ).fit(X, y)
    >>> [release.kind for release in model.privacy_.releases][-2:]
    ['perturbed_minimum', 'calibration']
    """

    name = "objective_perturbation"
    purpose = "For research. Accuracy on breast cancer, epsilon 1: 0.87; 'gd' 0.94."
    needs = frozenset(
        {"smooth_loss", "bounded_residual", "separable_loss", "smooth_penalty", "unconstrained"}
    )
    max_columns = GRAM_COLUMNS
    takes_start = False

    row_norm: Resolved[float] = AUTO
    damping: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        row_norm = gram_row_norm(public, 0.8) if checks.is_auto(self.row_norm) else self.row_norm
        # A fifth of epsilon is for the curvature of a record, which determines the damping.
        damping = perturbation_damping(public, problem.loss.curvature, row_norm, 0.2)
        return {"row_norm": row_norm, "damping": damping}

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.positive(row_norm=self.row_norm, damping=self.damping)

    def solve(self, oracle: Oracle) -> Solution:
        return Solution(oracle.request(PerturbedMinimum(self.row_norm, self.damping)), 1)
