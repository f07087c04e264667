"""Compute the statistics of rows that scores follow from: bounded losses, classes, log-odds.

Each follows only from one row and the model. The releases bound them once more.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skdp._fitting.data import Data
from skdp._fitting.refusals import NO_LABELS, InputError, without_cells
from skdp._fitting.targets import kind_in_words
from skdp._numbers import AnyArray, Array, Indices, are_numbers, is_real, shown
from skdp._oracle.public import TARGET_RANGE
from skdp._stages.column_bounds import declared_targets
from skdp._stages.scores import LARGEST_LOG_ODDS, LEAST_MEAN, Deviance

# A predicted probability of the true class below exp(-6) = 0.0025 counts as that. A choice of ours:
# a larger bound needs more noise, a smaller one hides more of what a model gets very wrong.
LOG_LOSS_BOUND = 6.0
# That of targets above 12 times their mean, and below a 20,000th of it.
LARGEST_GAMMA_DEVIANCE, LARGEST_OVER_MEAN = 20.0, 12.0
# How far the mean or median may lie from the centre that a fit estimated, relative to the largest
# distance of a target, and the least mean, relative to that centre, of positive targets.
OFF_CENTRE, LEAST_OF_CENTRE = 1 / 8, 3 / 4


def predictions(model: BaseEstimator, method: str, rows: Data) -> AnyArray:
    """Return the predictions of a model. No warning or message of its own comes through.

    Raises
    ------
    ValueError
        If it fails, or does not give one answer for each row. The message quotes no row.
    """
    who = f"{type(model).__name__}.{method}"
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            predicted = rows.predicted_by(getattr(model, method))
    except InputError:  # which quotes no row
        raise
    except Exception as reason:  # anyone's model fails in its own way, and may quote rows
        raise InputError(f"{who} failed on these rows, with {type(reason).__name__}.") from None
    if predicted.shape[:1] != (rows.n_rows,) or predicted.ndim > 2:
        raise InputError(
            f"{who} must give one answer for each of the {rows.n_rows} rows. It gave an array of "
            f"shape {predicted.shape}."
        )
    return predicted


# ---------------------------------------------------------------- classifiers


def class_numbers(labels: AnyArray, classes: AnyArray, what: str) -> Indices:
    """Return the number of each label in the sorted classes."""
    kinds = [kind_in_words(values) for values in (labels, classes)]
    if len({*kinds, ""}) == 3:
        raise InputError(
            f"{what} holds labels that are {kinds[0]}. The classes of the model are {kinds[1]}."
        )
    # A label runs code of its own when it is compared, and an error of that may quote the label.
    with without_cells(what, otherwise=NO_LABELS):
        places = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
        if not (classes[places] == labels).all():
            raise InputError(
                f"{what} holds a label that is none of the model's {len(classes)} classes. "
                "Declare all classes when the model is fitted (classes=...)."
            )
    return np.asarray(places, dtype=np.int64)


class ClassifiedRows:
    """Rows and a classifier's predictions, each made once and when needed.

    Parameters
    ----------
    model : fitted classifier
    data : Data
    """

    def __init__(self, model: BaseEstimator, data: Data) -> None:
        self.model, self._data = model, data
        self._labels = np.asarray(model.classes_)
        self.classes = class_numbers(data.y, self._labels, "y")  # numbers of the true labels

    def statistic(self, name: str) -> AnyArray:
        """Return the numbers of all rows. Losses are between 0 and 1."""
        values: AnyArray = getattr(self, name)
        return values

    @cached_property
    def _predicted(self) -> Indices:
        labels = predictions(self.model, "predict", self._data)
        return class_numbers(labels.reshape(self._data.n_rows), self._labels, "predict")

    @property
    def correct(self) -> Array:
        """1 for each row that is predicted right, 0 for others."""
        return np.asarray(self.classes == self._predicted, dtype=np.float64)

    @property
    def cells(self) -> Indices:
        """Number of the pair of true and predicted class."""
        return np.asarray(len(self._labels) * self.classes + self._predicted)

    @cached_property
    def _probabilities(self) -> Array:
        """The predicted probability of each class, each in [0, 1]."""
        predicted = predictions(self.model, "predict_proba", self._data)
        if predicted.shape != (self._data.n_rows, len(self._labels)):
            raise InputError(
                f"predict_proba must have a column for each of the {len(self._labels)} classes. "
                f"It has shape {predicted.shape}."
            )
        return np.asarray(np.clip(np.nan_to_num(predicted.astype(np.float64)), 0.0, 1.0))

    @property
    def log_loss(self) -> Array:
        """Log losses, in units of their bound. Probabilities below ``exp(-bound)`` are clipped."""
        chosen = self._probabilities[np.arange(len(self.classes)), self.classes]
        losses = -np.log(np.maximum(chosen, math.exp(-LOG_LOSS_BOUND)))
        return np.asarray(losses / LOG_LOSS_BOUND)

    @property
    def ranking(self) -> Array:
        """Scores that rank rows of two classes: log-odds where there are probabilities."""
        if hasattr(self.model, "predict_proba"):
            positive = self._probabilities[:, 1]
            with np.errstate(divide="ignore"):
                odds = np.log(positive) - np.log1p(-positive)
        else:
            decisions = predictions(self.model, "decision_function", self._data)
            odds = np.arcsinh(decisions.astype(np.float64))
        largest = 2 * LARGEST_LOG_ODDS
        return np.asarray(np.clip(np.nan_to_num(odds), -largest, largest))


# ---------------------------------------------------------------- regressors


def final_model(model: BaseEstimator) -> BaseEstimator:
    """Return the model itself, what a pipeline ends with, or the best one of a search."""
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        model = model.steps[-1][1] if isinstance(model, Pipeline) else model.best_estimator_
    return model


@dataclass(frozen=True)
class TargetRange:
    """The range that targets and predictions are clipped to.

    Attributes
    ----------
    low, high : float
    centre : float or None
        The centre of the targets that a private fit estimated, in this range. None if it is not
        known.
    """

    low: float
    high: float
    centre: float | None

    @property
    def reach(self) -> float:
        """Largest distance of a target from points near the centre, or from any point of the range.

        Residuals are clipped to it. A smaller limit would clip residuals of the mean of the
        targets, but not the variance, so that a model without information would explain some.
        """
        width = self.high - self.low
        if self.centre is None:
            return width
        return min(width, (1 + OFF_CENTRE) * max(self.high - self.centre, self.centre - self.low))


def target_range(model: BaseEstimator, declared: Any, is_fitted: bool = True) -> TargetRange:
    """Return the range that targets and predictions are clipped to: declared, or the model's own.

    Before a fit it stands for one that is not known yet.

    Raises
    ------
    ValueError
        If none is declared and the model has estimated none privately.
    """
    model = final_model(model)
    known = declared_targets(getattr(model, "scaling", None))
    targets = getattr(getattr(model, "scaling_", None), "targets", None)
    n_outputs = len(quantiles_of(model))  # several quantiles are of one target
    if targets is not None and (len(targets.low) != n_outputs or known is not None):
        targets = None  # with a declared bound their centre is no estimate
    if declared is not None:
        low, high = declared if np.shape(declared) == (2,) else (None, None)
        if not (is_real(low) and is_real(high) and 0 < (high - low) / 2 < math.inf):
            raise ValueError(
                "target_range must be None or a pair (low, high) of finite numbers, low < high, "
                f"got {shown(declared)}."
            )
        centre = None if targets is None else float(np.clip(targets.centre.mean(), low, high))
        return TargetRange(float(low), float(high), centre)
    least = 0.0 if get_tags(model).target_tags.positive_only else -math.inf
    if not is_fitted and known is None:
        return TargetRange(max(least, -1.0), 1.0, None)
    if known is not None:
        return TargetRange(max(known[0], least), known[1], None)
    if targets is not None:
        # Ranges that became wider halfway would make scores as much noisier.
        reach = TARGET_RANGE * targets.scale
        low = np.maximum(targets.low, targets.centre - reach)
        high = np.minimum(targets.high, targets.centre + reach)
        centre = float(targets.centre.mean())
        return TargetRange(max(float(low.min()), least), float(high.max()), centre)
    raise ValueError(
        "targets have to be cut to a range that is known without looking at them, and this "
        f"{type(model).__name__} has estimated none privately, has several targets, or is not "
        "fitted. Pass target_range=(low, high), public figures of the targets' unit, and score one "
        "target at a time."
    )


def deviance_power(model: BaseEstimator) -> float:
    """Return the power of the deviance of a model's D2: its own, and else that of squared errors.

    Raises
    ------
    ValueError
        If it is none that bounded targets have bounded deviances for.
    """
    model = final_model(model)
    if isinstance(model, PoissonRegressor | GammaRegressor):
        return 1.0 if isinstance(model, PoissonRegressor) else 2.0
    power = getattr(model, "power", 0.0)
    if not (is_real(power) and (power == 0 or 1 <= power <= 2)):
        raise ValueError(
            f"d2_tweedie is of the model's power, which must be 0 or lie in [1, 2], got "
            f"{shown(power)}."
        )
    # Near 1 and 2 the terms of a deviance cancel each other.
    nearest = round(float(power))
    return float(nearest if abs(power - nearest) < 1e-6 else power)


def quantiles_of(model: BaseEstimator) -> Array:
    """Return the quantiles that a model predicts. The median if it says nothing of one."""
    model = final_model(model)
    several, quantile = getattr(model, "quantiles", None), getattr(model, "quantile", None)
    if several is None:
        several = [quantile if is_real(quantile) else 0.5]
    return np.array(several, dtype=np.float64)


def largest_pinball(quantiles: Array) -> float:
    """Return the largest mean of pinball losses over quantiles, for residuals within [-1, 1]."""
    return float(np.maximum(quantiles, 1 - quantiles).mean())


def bounded_deviance(quantity: str, power: float, within: TargetRange) -> Deviance:
    """Return a deviance of targets in units of the largest one, and its clip range.

    That is no less than the deviance of any target from the centre, so that a constant prediction
    explains nothing, as with `TargetRange.reach`.
    """
    low, high = within.low, within.high
    if low < 0:
        raise ValueError(
            f"a {quantity.replace('_', ' ')} is for targets of at least 0, and their range is not "
            "known to be that. Pass target_range=(0, high)."
        )
    deviance = Deviance(power, max(low / high, LEAST_MEAN if power == 2 else 0.0))
    mean = 1 / LARGEST_OVER_MEAN
    if within.centre is not None:
        mean = max(LEAST_OF_CENTRE * within.centre / high, LEAST_MEAN)
    furthest = deviance.of(np.array([deviance.least, 1.0]), mean)
    largest = max(math.pow(LARGEST_GAMMA_DEVIANCE, power - 1), float(np.max(furthest)))
    return replace(deviance, largest=largest)


def require_targets(y: AnyArray, deviances: Mapping[str, Deviance]) -> None:
    """Raise ValueError for targets that have no such deviance, as clipping would hide them."""
    for quantity, deviance in deviances.items():
        is_positive = deviance.power == 2
        if deviance.power and ((y <= 0) if is_positive else (y < 0)).any():
            allowed = "positive" if is_positive else "at least 0"
            raise InputError(f"y must be {allowed} everywhere for a {quantity.replace('_', ' ')}.")


class PredictedRows:
    """Targets of a regressor in units of half their range, in [-1, 1], and its residuals.

    Parameters
    ----------
    model : fitted regressor
    data : Data
    within : TargetRange
    deviances : mapping from str to Deviance
        Of the quantities that are deviances.
    """

    def __init__(
        self,
        model: BaseEstimator,
        data: Data,
        within: TargetRange,
        deviances: Mapping[str, Deviance],
    ) -> None:
        if not are_numbers(data.y) or not np.isfinite(data.y).all():
            raise InputError("y must hold finite numbers.")
        require_targets(data.y, deviances)
        predicted = predictions(model, "predict", data)
        self.quantiles, self._deviances = quantiles_of(model), deviances
        if predicted.size != data.n_rows * len(self.quantiles):
            raise InputError(
                f"a score is of one prediction for each row, and {type(model).__name__}.predict "
                f"gives an array of shape {predicted.shape}: score models of one target."
            )
        low, high = within.low, within.high
        middle, half = low + (high - low) / 2, (high - low) / 2
        targets = (np.clip(data.y, low, high).astype(np.float64) - middle) / half
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = predicted.reshape(data.n_rows, -1).astype(np.float64)
            fitted = np.clip(np.nan_to_num(predicted), low, high)
        self.targets: Array = np.clip(targets, -1.0, 1.0)
        # Of each quantile, in units of their bound.
        self.residuals = (targets[:, None] - (fitted - middle) / half) * (half / within.reach)
        # In units of the largest target. A mean of 0 would make a deviance infinite.
        self._means = np.maximum(fitted[:, 0], max(low, LEAST_MEAN * high)) / high
        self.y = np.clip(data.y.astype(np.float64), max(low, 0.0), high) / high

    def statistic(self, name: str) -> AnyArray:
        """Return the numbers of all rows. Losses are in units of their bounds, between 0 and 1."""
        values = STATISTICS[name](self)
        return values if name in FACTS else np.minimum(values, 1.0)

    def deviance(self, quantity: str, least: float | None = None) -> Array:
        """Return the deviances of a quantity, of targets that count as at least so much."""
        deviance = self._deviances[quantity]
        targets = np.maximum(self.y, deviance.least if least is None else least)
        return deviance.of(targets, self._means) / deviance.largest

    def tweedie_facts(self) -> tuple[Array, Array]:
        """Return the facts of a D2."""
        deviance = self._deviances["d2_tweedie"]
        return deviance.facts(np.maximum(self.y, deviance.least))


def _pinball(rows: PredictedRows) -> Array:
    """Return the mean of the pinball losses over the quantiles."""
    quantiles, residuals = rows.quantiles, rows.residuals
    losses = np.maximum(quantiles * residuals, (quantiles - 1) * residuals).mean(axis=1)
    return np.asarray(losses / largest_pinball(quantiles))


# Of rows, in [-1, 1]. See `Deviance`.
FACTS: dict[str, Callable[[PredictedRows], Array]] = {
    "targets": lambda rows: rows.targets,
    "squared_targets": lambda rows: 2 * rows.targets**2 - 1,
    "tweedie_targets": lambda rows: rows.tweedie_facts()[0],
    "tweedie_potentials": lambda rows: rows.tweedie_facts()[1],
}
STATISTICS: dict[str, Callable[[PredictedRows], Array]] = {
    **FACTS,
    "squared_error": lambda rows: rows.residuals[:, 0] ** 2,
    "absolute_error": lambda rows: np.abs(rows.residuals[:, 0]),
    "pinball_loss": _pinball,
    "poisson_deviance": lambda rows: rows.deviance("poisson_deviance"),
    "gamma_deviance": lambda rows: rows.deviance("gamma_deviance", np.finfo(float).tiny),
    "tweedie_deviance": lambda rows: rows.deviance("d2_tweedie"),
}
