"""Run preconditioned gradient descent on a stream, whose rows are read once."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from skdp import steps
from skdp._numbers import Array
from skdp.oracle import Cut
from skdp.oracle.public import TARGET_RANGE
from skdp.oracle.releases import moments
from skdp.solvers import base, defaults
from skdp.solvers.base import Oracle, Solution
from skdp.solvers.defaults import UNBOUNDED
from skdp.steps.shrinkage import Spectrum, bayes_step, spectrum

STREAM_TARGET = 0.25  # size of a target next to the expected length of a row
LEAST_RESIDUAL = 0.2  # size of residuals, in that of targets: smaller estimates are not reliable


class Settings(Protocol):
    """Hyperparameters of "whitened" that its one-pass form uses."""

    learning_rate: base.StepSize
    momentum: base.AnyMomentum
    noise_schedule: base.RelativeNoise
    clip_norm: base.ClipNorm

    @property
    def max_iter(self) -> int: ...

    @property
    def gram_share(self) -> float: ...

    @property
    def row_norm(self) -> float: ...

    @property
    def row_factor(self) -> float: ...


def solve_in_one_pass(solver: Settings, oracle: Oracle) -> Solution:
    """Return the solution for a stream, each release of which has a block to itself."""
    public, problem, n_steps = oracle.public, oracle.problem, solver.max_iter
    first = math.ceil(solver.gram_share * (public.n_rows - n_steps))
    others = public.n_rows - first
    cuts = (0, *(first + others * step // n_steps for step in range(n_steps + 1)))
    # 1. Coordinates, a start and the size of residuals.
    eigen, start, size_of_residuals = _first_block(solver, oracle, Cut(0, cuts, 0, once=True))
    lifted = eigen.values + eigen.noise_norm
    transform = eigen.vectors / np.sqrt(lifted)
    coordinates = moments.Coordinates(transform)
    expected = math.sqrt(float((eigen.values / lifted).sum()) / (first * public.mean_weight))
    row_norm = min(solver.row_factor * expected, UNBOUNDED)
    longest = solver.row_factor * math.sqrt(public.n_parameters)
    cap = steps.constant_clip(solver.clip_norm) / longest * size_of_residuals
    # 2. A step on each of the other blocks.
    sizes = steps.step_sizes(solver.learning_rate, n_steps)
    costs = steps.relative_noise(solver.noise_schedule, n_steps, sizes=sizes) ** -2.0
    shares = costs / costs.max()
    direction = steps.momentum_rule(solver.momentum).start()
    point = np.sqrt(lifted)[:, None] * (eigen.vectors.T @ start)
    for step, (size, share) in enumerate(zip(sizes, shares, strict=True)):
        coef = transform @ point
        request = moments.ShrunkGradientSum(coef, row_norm, cap, coordinates)
        block = Cut(0, cuts, step + 1, once=True)
        gradient, _ = oracle.with_share(request, float(share), block)
        # As if of as many rows as the matrix.
        pull = public.mean_weight * problem.penalty_gradient(coef)
        gradient = first / block.divisor(public) * gradient + transform.T @ (first * pull)
        oracle.note_direction(gradient)
        point = point - size * direction(gradient)
    return Solution(transform @ point, n_steps)


def _first_block(solver: Settings, oracle: Oracle, block: Cut) -> tuple[Spectrum, Array, float]:
    """Return a block's Gram matrix, a start, and the size of residuals in that of targets.

    Of targets that a moment suffices for, the matrix is joint with these: the start is one
    Newton step, shrunk according to the noise.
    """
    public, problem, n_parameters = oracle.public, oracle.problem, oracle.public.n_parameters
    start, weight = oracle.start(), block.divisor(public) * public.mean_weight
    curvature = defaults.typical_curvature(public, problem)
    penalty = weight / public.total_weight * defaults.penalty_hessian(problem, public) / curvature
    is_real = "quadratic_loss" in problem.provides
    # Residuals at zero are 1/2 less the label, and the constant's moments give the sum of rows.
    is_label = problem.loss.name == "logistic" and public.has_intercept and not start.any()
    if not (is_real or is_label):
        answer, std = oracle.with_share(moments.GramSum(solver.row_norm), 1.0, block)
        return spectrum(moments.unpack_gram(answer, n_parameters), std, penalty), start, 1.0
    largest, bound = 1.0, math.inf
    if is_real:
        largest = defaults.target_unit(public)
        bound = TARGET_RANGE * largest if oracle.is_noisy else math.inf
    unit = largest / (STREAM_TARGET * solver.row_norm) if oracle.is_noisy else largest
    norm = solver.row_norm * math.hypot(1.0, STREAM_TARGET)
    answer, std = oracle.with_share(moments.GramSum(norm, unit, bound), 1.0, block)
    joint = moments.unpack_gram(answer, n_parameters + public.n_outputs)
    gram, push = joint[:n_parameters, :n_parameters], joint[:n_parameters, n_parameters:] * unit
    eigen, noise = spectrum(gram, std, penalty), std * unit / math.sqrt(2)
    if is_label:
        push = push - 0.5 / public.intercept_size * gram[:, -1:]
        noise = math.hypot(noise, 0.5 / public.intercept_size * std)
        return eigen, bayes_step(eigen, push / curvature, noise / curvature, std), 1.0
    rest = push - gram @ start - weight * problem.penalty_gradient(start)
    point = start + bayes_step(eigen, rest, noise, std)
    squares = np.trace(joint[n_parameters:, n_parameters:]) * unit**2
    squares += float((point * (gram @ point - 2 * push)).sum())
    size = math.sqrt(max(squares, 0.0) / (weight * public.n_outputs)) / largest
    return eigen, point, min(max(size, LEAST_RESIDUAL), 1.0) if oracle.is_noisy else 1.0
