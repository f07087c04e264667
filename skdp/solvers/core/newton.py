"""Solve fits without noise to the precision of floating point, by damped Newton steps."""

import math

import numpy as np

from skdp._numbers import Array
from skdp._oracle import (
    CappedHessian,
    Coordinates,
    GradientSum,
    GramSum,
    LogisticStep,
    Statistic,
    gradient_weight,
    unpack_gram,
)
from skdp.objective import Loss
from skdp.solvers import base, checks, defaults
from skdp.solvers.base import Oracle, Problem, Public, Settings, Solution, Solver
from skdp.solvers.defaults import GRAM_COLUMNS, UNBOUNDED

# Relative to the largest: smaller eigenvalues are rounding errors.
SINGULAR = 1e-14
# Relative to the longest: gradients that are shorter, and no longer shrink, are rounding errors.
ROUNDED = 1e-10
# Factor by which damping falls after a step, and rises after one that went too far.
RELIEF = 64.0
# Most that remains of a step that went too far, and least.
LONGEST_PART, SHORTEST_PART = 0.9, 0.1
# Products of entries in a Hessian: more take over ten seconds.
MOST_PRODUCTS = 2e10


@base.hyperparameters
class Newton(Solver, registered=False):
    """Newton's method, for which ``solver="auto"`` stands without noise.

    Steps are damped in coordinates in which a bound on the Hessian is the identity, so that units
    of columns do not matter (Levenberg and Marquardt). If the objective rises at the end of a step,
    the secant of the slopes at both ends shortens the step. Directions that neither rows nor the
    penalty determine stay at the start.

    Parameters
    ----------
    max_iter : int, default=100
        Largest number of steps. The last step is the first one that changes no digit.
    """

    name = "newton"
    purpose = "Without noise: exact."
    needs = frozenset({"smooth_penalty", "unconstrained"})

    max_iter: int = 100

    @classmethod
    def solves(cls, public: Public, problem: Problem) -> bool:
        """Return whether there is no noise, and the Hessian is a fast sum.

        Returns
        -------
        bool
        """
        loss = problem.loss
        if public.is_noisy or public.streamed or not cls.needs <= problem.provides:
            return False
        if loss.quadratic:
            return public.n_parameters <= GRAM_COLUMNS
        size = public.n_parameters * loss.contrasts.shape[1]
        is_known = loss.weight_bound is not None and public.n_outputs == len(loss.contrasts)
        return is_known and size <= GRAM_COLUMNS and public.n_rows * size**2 <= MOST_PRODUCTS

    def automatic(self, public: Public, problem: Problem) -> Settings:
        return {}

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.count(max_iter=self.max_iter)
        if not self.solves(public, problem):
            raise ValueError(
                "solver 'newton' is for epsilon=inf, rows that can be read more than once, and a "
                "loss of one output or of classes. Nothing was released."
            )

    def solve(self, oracle: Oracle) -> Solution:
        public, problem, loss = oracle.public, oracle.problem, oracle.problem.loss
        contrasts = np.eye(public.n_outputs) if loss.quadratic else loss.contrasts
        n_blocks = 1 if loss.quadratic else contrasts.shape[1]
        gram = unpack_gram(oracle.with_share(GramSum(UNBOUNDED), 1.0)[0], public.n_parameters)
        penalty = np.kron(np.eye(n_blocks), defaults.penalty_hessian(problem, public))
        bound = np.kron(np.eye(n_blocks), loss.typical_curvature * gram) + penalty
        transform = np.eye(len(bound)) if oracle.is_rehearsal else _whitening(bound)
        # The parameter, blocks below each other, is ``first + transform @ u``.
        first = (oracle.start() @ contrasts).T.reshape(-1, len(bound)).T

        def parameter(z: Array) -> Array:
            return np.asarray(z.T.reshape(-1, public.n_parameters).T @ contrasts.T)

        u = move = np.zeros((transform.shape[1], first.shape[1]))
        own = Coordinates(np.eye(public.n_parameters))
        falling, damping = 0.0, float(not loss.quadratic)
        slopes: list[float] = []
        for _ in range(self.max_iter):
            z = first + transform @ u
            answers = _requested(oracle, parameter(z), own)
            if oracle.is_rehearsal:
                continue
            gradient, hessian = _derivatives(answers, loss, gram)
            # 1. The step before went too far if the objective rises steeply at its end.
            gradient = transform.T @ (gradient + penalty @ z)
            still_falling = float((move * gradient).sum())
            if slopes and not still_falling >= -falling / 2:
                part = falling / (falling - still_falling)
                part = min(max(SHORTEST_PART, part), LONGEST_PART)
                u = u + (1 - part) * move
                move, falling, damping = part * move, part * falling, min(damping * RELIEF, 1.0)
                continue
            # 2. The next one.
            shortest = min(slopes, default=math.inf)
            slopes.append(float(np.linalg.norm(gradient)))
            if shortest <= ROUNDED * max(slopes) and slopes[-1] >= shortest / 2:
                break
            curvature = transform.T @ (hessian + penalty) @ transform
            curvature = curvature + damping * np.eye(len(u))
            move = np.asarray(np.linalg.solve(curvature, gradient), dtype=np.float64)
            u, falling = u - move, float((move * gradient).sum())
            damping = max(damping / RELIEF, SINGULAR) if damping else 0.0
        return Solution(parameter(first + transform @ u), len(slopes), slopes=tuple(slopes))


def _whitening(matrix: Array) -> Array:
    """Return T with ``T' matrix T`` the identity, a column for each determined direction."""
    sizes = np.sqrt(np.diag(matrix))
    inverse = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    values, vectors = np.linalg.eigh(inverse[:, None] * matrix * inverse)
    kept = values > SINGULAR * len(values) * values.max(initial=0.0)
    return np.asarray(inverse[:, None] * vectors[:, kept] / np.sqrt(values[kept]))


def _requested(oracle: Oracle, point: Array, own: Coordinates) -> list[Array]:
    """Return answers about the gradient and, unless it is known, the Hessian."""
    loss = oracle.problem.loss
    statistics: list[Statistic] = [GradientSum(point, UNBOUNDED**2)]
    if loss.link == "logit":
        statistics = [LogisticStep(point, own, UNBOUNDED, UNBOUNDED)]
    elif not loss.quadratic:
        statistics.append(CappedHessian(point, own, UNBOUNDED, UNBOUNDED))
    return [oracle.with_share(statistic, 1.0)[0] for statistic in statistics]


def _derivatives(answers: list[Array], loss: Loss, gram: Array) -> tuple[Array, Array]:
    """Return the gradient and the Hessian of the summed loss, over all of its blocks."""
    first, *others = answers
    if loss.link == "logit":
        size = len(gram) * loss.contrasts.shape[1]
        gradient = first[-size:, None] / (gradient_weight(loss) * UNBOUNDED)
        return gradient, unpack_gram(first[:-size], size)
    return first, unpack_gram(others[0], len(gram)) if others else gram
