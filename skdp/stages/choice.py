"""Which stages a fit has around its solver: a function of parameters and public facts."""

import math
from typing import Any

import numpy as np

from skdp._numbers import Array, is_real, shown
from skdp.objective import Problem
from skdp.oracle import Columns, Public, Scaling
from skdp.oracle.public import TARGET_RANGE
from skdp.solvers.defaults import GRAM_COLUMNS
from skdp.stages.inference.stage import InferenceStage
from skdp.stages.recalibration import Recalibration
from skdp.stages.scaling.shares import shares, whole_budget
from skdp.stages.scaling.stage import ScalingStage

CHOICES = ("auto", "private", "none")  # values of the parameters scaling and calibration
INFERENCES = ("none", "coefficients")  # values of the parameter inference


def check_stages(
    scaling: Any, bounds: Any, data_norm: Any, constraint: Any, calibration: Any
) -> None:
    """Raise ValueError unless the parameters of the stages are in order and agree."""
    for name, value in (("scaling", scaling), ("calibration", calibration)):
        if not isinstance(value, str) or value not in CHOICES:
            known = ", ".join(repr(word) for word in CHOICES)
            raise ValueError(f"{name} must be one of {known}; got {shown(value)}.")
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


def scaling_stage(
    who: str, scaling: str, bounds: Any, public: Public, problem: Problem, accountant: str = "auto"
) -> ScalingStage | None:
    """Return the scaling stage of a fit, None if records are taken as they are."""
    if scaling == "none":
        return None
    pure = (public.is_pure or accountant == "pure") and public.is_noisy
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
    if asked.share == 0 and columns is None and targets is None:
        return None
    return ScalingStage(asked, centred, Scaling(columns, targets))


def scaling_alone(public: Public, bounds: Any) -> ScalingStage:
    """Return the stage that spends the whole budget on the columns, or none if they are known."""
    centred = not public.sparse
    if bounds is None:
        return ScalingStage(whole_budget(public), (centred, centred), standardises=False)
    columns = declared_columns(bounds, public.n_features, centred)
    shares_of_none = whole_budget(public, asked=False)
    return ScalingStage(shares_of_none, known=Scaling(columns), standardises=False)


def recalibration_stage(
    who: str,
    calibration: str,
    plain: bool,
    public: Public,
    problem: Problem,
    accountant: str,
    adaptive: bool,
) -> Recalibration | None:
    """Return the recalibration of a fit's probabilities, None if there is none.

    Parameters
    ----------
    who : str
        The estimator, for a refusal.
    calibration : {"auto", "private", "none"}
    plain : bool
        Whether the solver and its hyperparameters are all "auto".
    public : Public
    problem : Problem
    accountant : str
    adaptive : bool
        Whether the solver decides its noise on the way.

    Raises
    ------
    ValueError
        If it is asked for and cannot be had.
    """
    if calibration == "none" or not public.is_noisy:
        return None
    if calibration == "auto" and not plain:
        return None
    lacking = {"smooth_loss", "smooth_penalty", "unconstrained"} - problem.provides
    why = None
    if lacking:
        why = "no L1 penalty, no constraint and a smooth loss"
    elif public.is_pure or accountant == "pure":
        why = "Gaussian noise: delta > 0, and an accountant other than 'pure'"
    elif public.streamed:
        why = "rows that can be read more than once"
    elif adaptive:
        why = "a solver that plans its noise beforehand"
    if why is None:
        return Recalibration.for_problem(public, problem)
    if calibration == "private":
        raise ValueError(f"{who}: calibration='private' needs {why}. Nothing was released.")
    return None


def check_inference(inference: Any, share: Any) -> None:
    """Raise ValueError unless the parameters of the inference are in order."""
    if not isinstance(inference, str) or inference not in INFERENCES:
        known = ", ".join(repr(word) for word in INFERENCES)
        raise ValueError(f"inference must be one of {known}; got {shown(inference)}.")
    if not (is_real(share) and 0 < share < 1):
        raise ValueError(f"inference_share must be a number in (0, 1); got {shown(share)}.")


def inference_stage(
    who: str,
    inference: str,
    share: float,
    public: Public,
    problem: Problem,
    accountant: str,
    adaptive: bool,
) -> InferenceStage | None:
    """Return the inference of a fit about its coefficients, None if none is asked for.

    Raises
    ------
    ValueError
        If it is asked for and cannot be had.
    """
    if inference == "none":
        return None
    why = lacking_for_inference(public, problem, accountant, adaptive)
    if why is not None:
        raise ValueError(f"{who}: inference='coefficients' needs {why}. Nothing was released.")
    return InferenceStage(float(share))


def lacking_for_inference(
    public: Public, problem: Problem, accountant: str, adaptive: bool
) -> str | None:
    """Return what an inference needs and a fit does not have."""
    if public.n_outputs != 1:
        return "one target, or two classes; fit each target, or one class against the rest, alone"
    if {"smooth_loss", "smooth_penalty", "unconstrained"} - problem.provides:
        return "no L1 penalty and no constraint: the estimate would not be normal around the truth"
    if (public.is_pure or accountant == "pure") and public.is_noisy:
        return "Gaussian noise: delta > 0, and an accountant other than 'pure'"
    if public.streamed:
        return "rows that can be read more than once; fit_blocks reads them once"
    if adaptive:
        return "a solver that plans its noise beforehand, such as solver='auto'"
    if public.weighted:
        return "records without weights: sample_weight=None and class_weight=None"
    if public.n_features > GRAM_COLUMNS:
        return f"at most {GRAM_COLUMNS} columns, as it releases matrices of them"
    return None
