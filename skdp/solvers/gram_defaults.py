"""Public figures that solvers with a Gram matrix share: sizes of rows, signal to noise.

Write p for the rows of the parameter, K for the outputs, mu for the Gaussian-DP parameter of the
budget, halved under replace-one, and

    a = mu n / (p sqrt(K)),

the signal-to-noise ratio of the whole budget spent on one gradient. The bounds that rows are
shrunk to grow with powers of a, so that their bias vanishes while noise stays in proportion.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdp.objective import Problem
from skdp.oracle import Public

Array = NDArray[np.float64]

UNBOUNDED = 1e30  # in place of bounds, for a fit without noise
TARGET_UNITS = 4.0  # a declared bound on targets is taken for this many standard deviations
MOST_COLUMNS = 2000  # of a Gram matrix; beyond, its noise and its eigenvectors cost too much
AMPLE = 50.0  # from this ratio on bounds grow


def check_columns(solver: str, public: Public) -> None:
    """Raise ValueError if there are too many columns for a Gram matrix."""
    if public.n_parameters > MOST_COLUMNS:
        raise ValueError(
            f"solver {solver!r} works with a matrix of all pairs of columns, and takes at most "
            f"{MOST_COLUMNS} of them, intercept included; got {public.n_parameters}. Solver 'gd' "
            "does without. Nothing was released."
        )


def growth(public: Public, power: float, start: float = AMPLE) -> float:
    """Return ``(a / start)**power``, at least 1."""
    return float(max(1.0, public.signal_to_noise / start) ** power)


def expected_row_norm(public: Public) -> float:
    """Norm of a row with columns of unit size, constant included, or of the declared bound."""
    columns = math.sqrt(public.n_features)
    if public.data_norm is not None:
        columns = min(columns, public.data_norm)
    return math.hypot(columns, public.intercept_size * public.has_intercept)


def gram_row_norm(public: Public, factor: float, power: float = 0.25) -> float:
    """Bound that rows are shrunk to before their Gram matrix is taken."""
    if not public.is_noisy:
        return UNBOUNDED
    bound = factor * expected_row_norm(public) * growth(public, power)
    return bound if public.row_norm is None else min(bound, public.row_norm)


def target_unit(public: Public) -> float:
    """Size that targets are taken to have."""
    return 1.0 if public.target_bound is None else public.target_bound / TARGET_UNITS


def penalty_hessian(problem: Problem, public: Public) -> Array:
    """Hessian of a smooth penalty, times the number of rows, as a matrix over the parameter."""
    diagonal = np.full(public.n_parameters, problem.strong_convexity * public.n_rows)
    if public.has_intercept:
        diagonal[-1] = 0.0
    return np.diag(diagonal)
