"""Release the minimiser of an objective: of a randomly perturbed one, or with noise added to it."""

import math
from abc import abstractmethod

from skdp.oracle import NoisyMinimum, PerturbedMinimum
from skdp.oracle.releases.perturbed import perturbation_damping
from skdp.solvers import base, checks
from skdp.solvers.base import AUTO, Oracle, Problem, Public, Resolved, Settings, Solution, Solver
from skdp.solvers.defaults import GRAM_COLUMNS, gram_row_norm


@base.hyperparameters
class PerturbedMinimisation(Solver):
    """Base of the solvers that release the minimiser of a damped logistic loss.

    Parameters
    ----------
    row_norm : float or "auto", default="auto"
        Rows longer than this have less weight, as if they were shrunk to it.
    """

    needs = frozenset({"logistic_loss", "smooth_penalty", "unconstrained"})
    max_columns = GRAM_COLUMNS
    takes_start = False

    row_norm: Resolved[float] = AUTO
    damping: Resolved[float] = AUTO

    def automatic(self, public: Public, problem: Problem) -> Settings:
        row_norm = gram_row_norm(public, 0.8) if checks.is_auto(self.row_norm) else self.row_norm
        return {"row_norm": row_norm, "damping": self._damping(public, problem, row_norm)}

    @abstractmethod
    def _damping(self, public: Public, problem: Problem, row_norm: float) -> float:
        """Return the damping by default."""

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.positive(row_norm=self.row_norm, damping=self.damping)


class ObjectivePerturbation(PerturbedMinimisation):
    """Objective perturbation for logistic regression, with the tight bound on its cost.

    A random linear term b'w is added to the objective, whose minimiser is released. The noise is
    that of one gradient, however many steps the minimisation takes; in return there is an
    additional L2 penalty, ``damping / 2 |w|**2`` on the summed loss, intercept included.

    Parameters
    ----------
    {Parameters}
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
    purpose = "For research. Accuracy on breast cancer, epsilon 1: 0.82; 'gd' 0.93."

    def _damping(self, public: Public, problem: Problem, row_norm: float) -> float:
        # A fifth of epsilon is for the curvature of a record, which determines the damping.
        return perturbation_damping(public, problem.loss.curvature, row_norm, 0.2)

    def solve(self, oracle: Oracle) -> Solution:
        return Solution(oracle.request(PerturbedMinimum(self.row_norm, self.damping)), 1)


class OutputPerturbation(PerturbedMinimisation):
    """Output perturbation for logistic regression: one release, the minimiser with Gaussian noise.

    The noise is calibrated to how far one record can move the minimiser: ``row_norm / damping``. An
    additional L2 penalty, ``damping / 2 |w|**2`` on the summed loss, intercept included, makes that
    small. It is the baseline of Wang, Ye, Xu (2017), in their words the method of Zhang, Zheng,
    Mou, Wang (2017), who stop the minimisation early; here it goes to the end, and what floating
    point leaves open is charged.

    Parameters
    ----------
    {Parameters}
    damping : float or "auto", default="auto"
        Positive. "auto" balances what noise and penalty cost, for coefficients of length 1.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, A. D. Sarwate: Differentially Private Empirical Risk Minimization.
    JMLR 2011 (Alg. 1; here with Gaussian noise).
    J. Zhang, K. Zheng, W. Mou, L. Wang: Efficient Private ERM for Smooth Objectives. IJCAI 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(
    ...     classes=[0, 1], epsilon=3.0, solver="output_perturbation"
    ... ).fit(X, y)
    >>> [release.kind for release in model.privacy_.releases][-2:]
    ['noisy_minimum', 'calibration']
    """

    name = "output_perturbation"
    purpose = "Baseline of papers, mostly behind objective perturbation."

    def _damping(self, public: Public, problem: Problem, row_norm: float) -> float:
        """Return the damping d at which noise and penalty cost the same.

        With curvature c for each row, noise of standard deviation ``L / (d mu)`` in p coefficients
        costs ``n c p (L / (d mu))**2 / 2`` of the summed loss, and the penalty ``d**2 / (2 n c)``.
        """
        if not public.is_noisy:
            return 1e-9 * public.n_rows
        n_rows, size = public.n_rows, public.n_parameters
        mu = public.signal_to_noise * size / n_rows
        return math.sqrt(n_rows * problem.loss.curvature * row_norm * math.sqrt(size) / mu)

    def solve(self, oracle: Oracle) -> Solution:
        return Solution(oracle.request(NoisyMinimum(self.row_norm, self.damping)), 1)
