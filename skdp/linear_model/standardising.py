"""Whether and how a fit standardises its records, and its coefficients in the user's units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp._numbers import shown
from skdp.objective import Problem
from skdp.oracle import Columns, Public, Scaling
from skdp.oracle.kernels import quotient, row_norms
from skdp.oracle.public import TARGET_RANGE
from skdp.scaling import ScalingStage, shares

Array = NDArray[np.float64]

SCALINGS = ("auto", "private", "none")
BLOCK_VALUES = 1 << 20  # of sparse records that are made dense at once


def check_scaling(scaling: Any, bounds: Any, data_norm: Any, constraint: Any) -> None:
    """Raise ValueError unless the parameters on scaling are in order and agree."""
    if not isinstance(scaling, str) or scaling not in SCALINGS:
        known = ", ".join(repr(word) for word in SCALINGS)
        raise ValueError(f"scaling must be one of {known}; got {shown(scaling)}.")
    if bounds is not None:
        _ends(bounds)
    asked = "scaling='private'" if scaling == "private" else "bounds"
    if scaling == "private" or bounds is not None:
        if scaling == "none":
            raise ValueError("bounds are for scaling, and scaling='none' was asked for.")
        if data_norm is not None:
            raise ValueError(
                f"{asked} standardises columns, and data_norm bounds rows as they are given; set "
                "one of the two."
            )
        if constraint is not None:
            raise ValueError(
                f"{asked} standardises columns, and a constraint bounds coefficients of columns as "
                "they are given; set one of the two."
            )


def _ends(bounds: Any) -> tuple[Array, Array]:
    """Return the declared ends of columns."""
    try:
        low, high = (np.array(end, dtype=float) for end in bounds)
    except (TypeError, ValueError):
        low = high = np.array(np.nan)
    fine = low.ndim <= 1 and high.ndim <= 1
    if not (fine and np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(
            "bounds must be None or a pair (low, high) of numbers or of one number for each "
            f"column, finite, low < high; got {shown(bounds)}."
        )
    return low, high


def declared_columns(bounds: Any, n_features: int, centred: bool) -> Columns:
    """Columns between declared ends, taken for evenly spread; costs nothing."""
    low, high = _ends(bounds)
    for end in (low, high):
        if end.ndim == 1 and len(end) != n_features:
            raise ValueError(f"bounds: {len(end)} ends were given for {n_features} columns.")
    low, high = (np.broadcast_to(end, n_features).astype(float) for end in (low, high))
    if not centred:
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    centre = low / 2 + high / 2 if centred else np.zeros(n_features)
    size = (high / 2 - low / 2) / math.sqrt(3)
    return Columns(low, high, centre, size)


def choose_stage(
    who: str, scaling: str, bounds: Any, public: Public, problem: Problem, accountant: str = "auto"
) -> ScalingStage | None:
    """Return the scaling stage of a fit, None if records are taken as they are.

    All of it follows from parameters and public facts.
    """
    if scaling == "none":
        return None
    pure = (public.delta == 0 or accountant == "pure") and not math.isinf(public.epsilon)
    if scaling == "auto" and bounds is None:
        if pure or public.data_norm is not None or "unconstrained" not in problem.provides:
            return None
    elif pure and (bounds is None):
        raise ValueError(
            f"{who}: scaling='private' adds Gaussian noise, which needs delta > 0, and an "
            "accountant other than 'pure'. Declare bounds, or set scaling='none'. Nothing was "
            "released."
        )
    centred = (public.has_intercept and not public.sparse, public.has_intercept)
    columns = targets = None
    if bounds is not None:
        columns = declared_columns(bounds, public.n_features, centred[0])
    is_regression = "quadratic_loss" in problem.provides
    if is_regression and public.target_bound is not None:
        bound = np.full(public.n_outputs, float(public.target_bound))
        targets = Columns(-bound, bound, np.zeros(public.n_outputs), bound / TARGET_RANGE)
    asks = columns is None, is_regression and targets is None and not pure
    asked = shares(public, *asks, insist=scaling == "private")
    known = Scaling(columns, targets)
    if asked.share == 0 and columns is None and targets is None:
        return None
    return ScalingStage(asked, centred, known)


def in_raw_units(coef: Array, intercept: Array, scaling: Scaling | None) -> tuple[Array, Array]:
    """Coefficients (features by outputs) and intercept for records in the user's units."""
    if scaling is None:
        return coef, intercept
    if scaling.targets is not None:
        coef = coef * scaling.targets.size
        intercept = intercept * scaling.targets.size + scaling.targets.centre
    if scaling.columns is not None:
        coef = coef / scaling.columns.size[:, None]
        intercept = intercept - scaling.columns.centre @ coef
    return coef, intercept


def scaled_scores(
    X: Any, coef: Array, intercept: Any, scaling: Scaling | None, row_bound: float | None
) -> Array:
    """Scores of records that are clipped, and scaled down where they are long, as in the fit."""
    columns = None if scaling is None else scaling.columns
    if columns is not None:
        if sparse.issparse(X) and not columns.keeps_zeros:
            return _in_dense_blocks(X, coef, intercept, scaling, row_bound)
        X = columns.apply(X)
        intercept = intercept + columns.centre @ coef
        coef = coef * columns.size[:, None]
    scores = np.asarray(X @ coef)
    if row_bound is not None:
        scores *= np.minimum(1.0, quotient(row_bound, row_norms(X)))[:, None]
    return np.asarray(scores + intercept)


def _in_dense_blocks(
    X: Any, coef: Array, intercept: Any, scaling: Scaling | None, row_bound: float | None
) -> Array:
    """Scores of sparse records by a fit that moved the zeros of its columns."""
    rows = max(1, BLOCK_VALUES // max(1, X.shape[1]))
    starts = range(0, X.shape[0], rows)
    blocks = (X[start : start + rows].toarray() for start in starts)
    return np.concatenate(
        [scaled_scores(block, coef, intercept, scaling, row_bound) for block in blocks]
    )
