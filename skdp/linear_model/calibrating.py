"""Whether a fit ends with a private calibration of its predictions."""

from __future__ import annotations

import math
from typing import Any

from skdp._numbers import shown
from skdp.objective import Problem
from skdp.oracle import Public

CALIBRATIONS = ("auto", "private", "none")


def check_calibration(calibration: Any) -> None:
    """Raise ValueError unless the parameter is one of its words."""
    if not isinstance(calibration, str) or calibration not in CALIBRATIONS:
        known = ", ".join(repr(word) for word in CALIBRATIONS)
        raise ValueError(f"calibration must be one of {known}; got {shown(calibration)}.")


def calibrates(
    who: str,
    calibration: str,
    plain: bool,
    public: Public,
    problem: Problem,
    accountant: str,
    adaptive: bool,
) -> bool:
    """Whether a fit is calibrated; all of it follows from parameters and public facts.

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
    if calibration == "none" or math.isinf(public.epsilon):
        return False
    if calibration == "auto" and not plain:
        return False
    lacking = {"smooth_loss", "smooth_penalty", "unconstrained"} - problem.provides
    why = None
    if lacking:
        why = "no L1 penalty, no constraint and a smooth loss"
    elif public.delta == 0 or accountant == "pure":
        why = "Gaussian noise: delta > 0, and an accountant other than 'pure'"
    elif public.streamed:
        why = "rows that can be read more than once"
    elif adaptive:
        why = "a solver that plans its noise beforehand"
    if why is not None and calibration == "private":
        raise ValueError(f"{who}: calibration='private' needs {why}. Nothing was released.")
    return why is None
