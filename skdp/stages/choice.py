"""Which stages a fit has around its solver: a function of parameters and public facts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdp._numbers import Array, is_real, listed, require, shown
from skdp.objective import Problem
from skdp.oracle import Columns, Public, Scaling
from skdp.oracle.public import TARGET_RANGE, Moments
from skdp.oracle.sources.base import IN_ONE_PLACE
from skdp.solvers.defaults import GRAM_COLUMNS
from skdp.stages import correction
from skdp.stages.inference.stage import InferenceStage
from skdp.stages.public_sample import PublicSample
from skdp.stages.recalibration import Recalibration
from skdp.stages.scaling.shares import scaling_budget, whole_budget
from skdp.stages.scaling.stage import ScalingStage
from skdp.stages.scaling.widening import Widening

CHOICES = ("auto", "private", "none")  # values of the parameters scaling and calibration
INFERENCES = ("none", "coefficients")  # values of the parameter inference


Declared = tuple[Array, Array] | PublicSample  # what is public of the columns


def _require_one_of(name: str, value: Any, choices: tuple[str, ...]) -> None:
    allowed = f"be one of {', '.join(map(repr, choices))}"
    require(name, value, allowed, isinstance(value, str) and value in choices)


def check_stages(
    scaling: Any, bounds: Any, data_norm: Any, constraint: Any, calibration: Any
) -> None:
    """Raise ValueError unless the parameters of the stages are in order and agree."""
    for name, value in (("scaling", scaling), ("calibration", calibration)):
        _require_one_of(name, value, CHOICES)
    if bounds is not None:
        declared_ends(bounds)
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


def declared_ends(
    bounds: Any, n_features: int | None = None, names: Sequence[str] | None = None
) -> Declared:
    """Return the declared ends of columns, numbers or one number for each column.

    A public sample is returned as it is, if it has these columns.

    Parameters
    ----------
    bounds : tuple (low, high), sequence of pairs, dict, or PublicSample
        As the estimators take it.
    n_features : int or None, default=None
        Number of columns, if it is to agree.
    names : sequence of str or None, default=None
        Names of the columns, empty if they have none; None if they are not known yet.

    Raises
    ------
    ValueError
        If the bounds are of another form, or can be read in two ways.
    """
    if isinstance(bounds, PublicSample):
        bounds.check(n_features, names)
        return bounds
    pairs: Any = bounds
    if isinstance(bounds, Mapping):
        pairs = _pairs_in_order(bounds, n_features, names)
    elif isinstance(bounds, str) or not _is_ends(bounds):
        pairs = np.asarray(_numbers(bounds))
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(BOUNDS.format(shown(bounds)))
    if pairs is bounds:
        low, high = (_numbers(end) for end in bounds)
        if low.shape == high.shape == (2,):
            raise ValueError(
                "bounds: two pairs of numbers can be (low, high) of two columns, or (low, high) "
                "for each of them. Write which: bounds={0: (low, high), 1: (low, high)}, by the "
                "number of the column, or by its name in a data frame."
            )
    else:
        low, high = np.asarray(pairs, dtype=float).T
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(BOUNDS.format(shown(bounds)))
    for end in (low, high):
        if n_features is not None and end.ndim == 1 and len(end) != n_features:
            raise ValueError(
                f"bounds: {len(end)} ends were given for {n_features} columns. {FORMS}"
            )
    return low, high


FORMS = (
    "Give a pair (low, high) of numbers, or of one number for each column; a list with a pair for "
    "each column; or a dict with a pair for each column, by its name or number."
)
BOUNDS = "bounds must be None, or finite numbers with low < high; got {}. " + FORMS


def _numbers(value: Any) -> Array:
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _is_ends(bounds: Any) -> bool:
    """Whether bounds are a pair of numbers, or of one number for each column."""
    try:
        low, high = (_numbers(end) for end in bounds)
    except (TypeError, ValueError):
        return False
    return low.ndim <= 1 and high.ndim <= 1 and not (np.isnan(low).any() or np.isnan(high).any())


def _pairs_in_order(
    bounds: Mapping[Any, Any], n_features: int | None, names: Sequence[str] | None
) -> Any:
    """Return the pairs of a dict in the order of the columns."""
    pairs = {name: _numbers(pair) for name, pair in bounds.items()}
    wrong = [name for name, pair in pairs.items() if pair.shape != (2,)]
    if wrong or not pairs:
        raise ValueError(
            "bounds must hold a pair (low, high) of numbers for each column; not so for "
            f"{listed(wrong) or 'an empty dict'}."
        )
    if n_features is None or (names is None and any(isinstance(name, str) for name in pairs)):
        return np.array(list(pairs.values()))  # the order of columns is not known yet
    by_number = not any(isinstance(name, str) for name in pairs)
    known: Sequence[Any] = range(n_features) if by_number else list(names or ())
    if not by_number and not names:
        raise ValueError(
            "bounds name columns, and X is no data frame whose columns have names; number the "
            "columns: bounds={0: (low, high), ...}. Nothing was released."
        )
    unknown, missing = [n for n in pairs if n not in known], [n for n in known if n not in pairs]
    if unknown or missing:
        raise ValueError(
            "bounds must hold a pair for every column of X, and for no other"
            f"{'; not in X: ' + listed(unknown) if unknown else ''}"
            f"{'; without a pair: ' + listed(missing) if missing else ''}. Nothing was released."
        )
    return np.array([pairs[name] for name in known])


def declared_columns(
    ends: Declared | None, n_features: int, centred: bool, sparse: bool
) -> Columns | None:
    """Columns between declared ends, taken for evenly spread, or of a sample; costs nothing.

    Sparse columns whose ends hold 0 are not: most of their values are 0. The middle of their range
    is no centre to move them to.
    """
    if ends is None:
        return None
    if isinstance(ends, PublicSample):
        return ends.columns(centred)
    low, high = (np.broadcast_to(end, n_features).astype(float) for end in ends)
    moved = np.full(n_features, centred)
    if sparse:
        moved &= (low > 0) | (high < 0)
    low = np.where(moved, low, np.minimum(low, 0.0))
    high = np.where(moved, high, np.maximum(high, 0.0))
    centre = np.where(moved, low / 2 + high / 2, 0.0)
    size = (high / 2 - low / 2) / math.sqrt(3)
    return Columns(low, high, centre, size)


def scaling_stage(
    who: str,
    scaling: str,
    ends: Declared | None,
    public: Public,
    problem: Problem,
    accountant: str = "auto",
) -> ScalingStage | None:
    """Return the scaling stage of a fit, None if records are taken as they are.

    ``ends`` are those of :func:`declared_ends`, None if nothing was declared.
    """
    if scaling == "none":
        return None
    pure = (public.is_pure or accountant == "pure") and public.is_noisy
    if scaling == "auto" and ends is None:
        if pure or public.data_norm is not None or "unconstrained" not in problem.provides:
            return None
    elif pure and ends is None:
        raise ValueError(
            f"{who}: scaling='private' adds Gaussian noise, which needs delta > 0, and an "
            "accountant other than 'pure'. Declare bounds, or set scaling='none'. Nothing was "
            "released."
        )
    centred = (public.has_intercept, public.has_intercept)
    columns, targets = declared_columns(ends, public.n_features, centred[0], public.sparse), None
    is_regression = "quadratic_loss" in problem.provides
    if is_regression and public.target_bound is not None:
        bound = np.full(public.n_outputs, float(public.target_bound))
        targets = Columns(-bound, bound, np.zeros(public.n_outputs), bound / TARGET_RANGE)
    asks = columns is None, is_regression and targets is None and not pure
    asked = scaling_budget(public, *asks, insist=scaling == "private")
    if not asked.has_requests and columns is None and targets is None:
        return None
    return ScalingStage(asked, centred, Scaling(columns, targets), note=_note_on(ends))


def _note_on(ends: Declared | None) -> str:
    """Return what the statement says of columns that are public."""
    if isinstance(ends, PublicSample):
        return (
            f"Ranges, centres, sizes and second moments of columns come from {ends.n_rows} rows "
            "that were declared public; values outside these ranges were clipped."
        )
    return "bounds were chosen without looking at the rows; values outside were clipped."


def known_moments(ends: Declared | None, centred: bool) -> Moments | None:
    """Return the second moments of standardised columns, None if they are not public."""
    if not isinstance(ends, PublicSample):
        return None
    return Moments(ends.second_moments(centred), ends.n_rows)


def scaling_alone(public: Public, ends: Declared | None) -> ScalingStage:
    """Return the stage that spends the whole budget on the columns, or none if they are known."""
    centred = not public.sparse
    columns = declared_columns(ends, public.n_features, centred, public.sparse)
    if columns is None:
        return ScalingStage(whole_budget(public), (centred, centred), standardises=False)
    shares_of_none = whole_budget(public, known=True)
    return ScalingStage(
        shares_of_none, known=Scaling(columns), standardises=False, note=_note_on(ends)
    )


def calibration_stage(
    who: str,
    calibration: str,
    plain: bool,
    public: Public,
    problem: Problem,
    accountant: str,
    adaptive: bool,
) -> Recalibration | correction.Correction | None:
    """Return the slope and shift that end a fit, None if there are none.

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
    is_regression = "quadratic_loss" in problem.provides
    why = correction.lacks(public) if is_regression else None
    if lacking:
        why = "no L1 penalty, no constraint and a smooth loss"
    elif public.is_pure or accountant == "pure":
        why = "Gaussian noise: delta > 0, and an accountant other than 'pure'"
    elif public.streamed:
        why = "rows that can be read more than once"
    elif adaptive:
        why = "a solver that plans its noise beforehand"
    if why is None and is_regression:
        found = correction.Correction.for_public(public)
        return found if calibration == "private" or found.tells(public) else None
    if why is None:
        return Recalibration.for_problem(public, problem)
    if calibration == "private":
        raise ValueError(f"{who}: calibration='private' needs {why}. Nothing was released.")
    return None


def range_test(
    before: ScalingStage | None, suits: bool, public: Public, problem: Problem, accountant: str
) -> Widening | None:
    """Return what may widen the ranges of columns that a fit reads, None if nothing does.

    Parameters
    ----------
    before : ScalingStage or None
    suits : bool
        Whether the algorithm is the default, and looks halfway.
    public : Public
    problem : Problem
    accountant : str
    """
    if before is None or not before.shares.features or not suits or not public.is_noisy:
        return None
    # For other losses, and for several outputs at once, it gained less than it cost.
    suits = "quadratic_loss" in problem.provides and public.n_outputs == 1
    if not suits or public.is_pure or accountant == "pure":
        return None
    return Widening(targets=before.shares.targets)


def check_inference(inference: Any, share: Any) -> None:
    """Raise ValueError unless the parameters of the inference are in order."""
    _require_one_of("inference", inference, INFERENCES)
    fine = is_real(share) and 0 < share < 1
    require("inference_share", share, "be a number in (0, 1)", fine)


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
    if IN_ONE_PLACE not in public.provides and not public.streamed:
        return "rows in memory; files and clusters are not supported yet"
    if adaptive:
        return "a solver that plans its noise beforehand, such as solver='auto'"
    if public.weighted:
        return "records without weights: sample_weight=None and class_weight=None"
    if public.n_features > GRAM_COLUMNS:
        return f"at most {GRAM_COLUMNS} columns, as it releases matrices of them"
    return None
