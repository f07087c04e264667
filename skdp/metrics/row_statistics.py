"""Compute the statistics of rows that scores follow from: bounded losses, classes, log-odds.

Each follows only from one row and the model. The releases bound them once more.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
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

WHO = "evaluate"
# That of targets above 12 times their mean, and below a 20,000th of it.
LARGEST_GAMMA_DEVIANCE, LARGEST_OVER_MEAN = 20.0, 12.0
# How far the mean or median may lie from the centre that a fit estimated, relative to the largest
# distance of a target, and the least mean, relative to that centre, of positive targets.
OFF_CENTRE, LEAST_OF_CENTRE = 1 / 8, 3 / 4


def kind_of(model: BaseEstimator) -> str:
    """Return "classifier" or "regressor". ValueError for other models."""
    if hasattr(model, "__sklearn_tags__"):
        if is_classifier(model) and hasattr(model, "classes_"):
            return "classifier"
        if is_regressor(model):
            return "regressor"
    raise ValueError(
        f"{WHO}: model must be a fitted classifier or regressor of scikit-learn's kind, got "
        f"{type(model).__name__}, which is neither, or a classifier without classes_: fit it "
        "first. Nothing was released."
    )


def predictions(model: BaseEstimator, method: str, rows: Data) -> AnyArray:
    """Return the predictions of a model. No warning or message of its own comes through.

    Raises
    ------
    ValueError
        If it fails, or does not give one answer for each row. The message quotes no row.
    """
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            predicted = rows.predicted_by(getattr(model, method))
    except Exception as reason:  # anyone's model fails in its own way, and may quote rows
        raise ValueError(
            f"{WHO}: {type(model).__name__}.{method} failed on these rows, with "
            f"{type(reason).__name__}. Nothing was released."
        ) from None
    if predicted.shape[:1] != (rows.n_rows,) or predicted.ndim > 2:
        raise ValueError(
            f"{WHO}: {type(model).__name__}.{method} must give one answer for each of the "
            f"{rows.n_rows} rows. It gave an array of shape {predicted.shape}. Nothing was "
            "released."
        )
    return predicted


# ---------------------------------------------------------------- classifiers


def class_numbers(labels: AnyArray, classes: AnyArray, what: str) -> Indices:
    """Return the number of each label in the sorted classes."""
    kinds = [kind_in_words(values) for values in (labels, classes)]
    if len({*kinds, ""}) == 3:
        raise ValueError(
            f"{WHO}: {what} holds labels that are {kinds[0]}. The classes of the model are "
            f"{kinds[1]}. Nothing was released."
        )
    # A label runs code of its own when it is compared, and an error of that may quote the label.
    with without_cells(what, otherwise=NO_LABELS):
        places = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
        if not (classes[places] == labels).all():
            raise InputError(
                f"{WHO}: {what} holds a label that is none of the model's {len(classes)} classes. "
                "Declare all classes when the model is fitted (classes=...). Nothing was released."
            )
    return np.asarray(places, dtype=np.int64)


class ScoredRows:
    """Rows and a model's predictions, with a property for each statistic."""

    LOSSES: ClassVar[tuple[str, ...]]  # in [0, 1]

    def statistic(self, name: str) -> AnyArray:
        """Return the numbers of all rows. Losses, and squares, are moved to [-1, 1]."""
        values: AnyArray = getattr(self, name.removesuffix(" squared"))
        if name.endswith(" squared"):
            return 2 * values**2 - 1
        return 2 * values - 1 if name in self.LOSSES else values


class ClassifiedRows(ScoredRows):
    """Rows and a classifier's predictions, each made once and when needed.

    Parameters
    ----------
    model : fitted classifier
    data : Data
    log_loss_bound : float
    needs_probability : bool
        Whether to refuse a model that ranks rows only by decision values.
    """

    LOSSES = ("correct", "brier", "log_loss")

    def __init__(
        self, model: BaseEstimator, data: Data, log_loss_bound: float, needs_probability: bool
    ) -> None:
        self.model, self._data, self._bound = model, data, log_loss_bound
        self._needs_probability = needs_probability
        self._labels = np.asarray(model.classes_)
        self.classes = class_numbers(data.y, self._labels, "y")  # numbers of the true labels

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

    @property
    def hits(self) -> Indices:
        """Number of the pair of true class and whether it is predicted right."""
        return np.asarray(2 * self.classes + (self.classes == self._predicted))

    @cached_property
    def _probabilities(self) -> Array:
        """The predicted probability of each class, each in [0, 1]."""
        if not hasattr(self.model, "predict_proba"):
            raise ValueError(
                f"{WHO}: this {type(self.model).__name__} has no predict_proba, which log loss, "
                "Brier score and calibration need. Nothing was released."
            )
        predicted = predictions(self.model, "predict_proba", self._data)
        if predicted.shape != (self._data.n_rows, len(self._labels)):
            raise ValueError(
                f"{WHO}: predict_proba must have a column for each of the {len(self._labels)} "
                f"classes. It has shape {predicted.shape}. Nothing was released."
            )
        return np.asarray(np.clip(np.nan_to_num(predicted.astype(np.float64)), 0.0, 1.0))

    @cached_property
    def log_loss(self) -> Array:
        """Log losses, in units of their bound. Probabilities below ``exp(-bound)`` are clipped."""
        chosen = self._probabilities[np.arange(len(self.classes)), self.classes]
        losses = -np.log(np.maximum(chosen, math.exp(-self._bound)))
        return np.asarray(np.minimum(losses, self._bound) / self._bound)

    @property
    def brier(self) -> Array:
        """Squared errors of the predicted probability of the second of two classes."""
        return np.asarray((self._probabilities[:, -1] - self.classes) ** 2)

    @property
    def ranking(self) -> Array:
        """Scores that rank rows of two classes: log-odds where there are probabilities."""
        if hasattr(self.model, "predict_proba") or self._needs_probability:
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


def target_range(model: BaseEstimator, declared: object) -> TargetRange:
    """Return the range that targets and predictions are clipped to: declared, or the model's own.

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
        try:
            low, high = declared  # type: ignore[misc]  # anything that is no pair is refused
        except (TypeError, ValueError):
            low = high = None
        if not (is_real(low) and is_real(high) and 0 < (high - low) / 2 < math.inf):
            raise ValueError(
                "target_range must be None or a pair (low, high) of finite numbers, low < high, "
                f"got {shown(declared)}."
            )
        centre = None if targets is None else float(np.clip(targets.centre.mean(), low, high))
        return TargetRange(float(low), float(high), centre)
    least = 0.0 if get_tags(model).target_tags.positive_only else -math.inf
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
        f"{WHO}: targets have to be cut to a range that is known without looking at them, and this "
        f"{type(model).__name__} has estimated none privately, or is not fitted. Pass "
        "target_range=(low, high), public figures of the targets' unit. Nothing was released."
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
            f"{WHO}: d2_tweedie is of the model's power, which must be 0 or lie in [1, 2], got "
            f"{shown(power)}. Nothing was released."
        )
    # Near 1 and 2 the terms of a deviance cancel each other.
    nearest = round(float(power))
    return float(nearest if abs(power - nearest) < 1e-6 else power)


def quantiles_of(model: BaseEstimator) -> Array:
    """Return the quantiles that a model predicts. The median if it says nothing of one."""
    model = final_model(model)
    several = getattr(model, "quantiles", None)
    if several is not None:
        return np.array(several, dtype=np.float64)
    quantile = getattr(model, "quantile", None)
    return np.array([float(quantile) if is_real(quantile) else 0.5])


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
            f"{WHO}: a {quantity.replace('_', ' ')} is for targets of at least 0, and their "
            f"range is [{low:g}, {high:g}]. Pass target_range=(0, high). Nothing was released."
        )
    deviance = Deviance(power, max(low / high, LEAST_MEAN if power == 2 else 0.0))
    mean = 1 / LARGEST_OVER_MEAN
    if within.centre is not None:
        mean = max(LEAST_OF_CENTRE * within.centre / high, LEAST_MEAN)
    furthest = deviance.of(np.array([deviance.least, 1.0]), mean)
    largest = max(math.pow(LARGEST_GAMMA_DEVIANCE, power - 1), float(np.max(furthest)))
    return replace(deviance, largest=largest)


class PredictedRows(ScoredRows):
    """Targets of a regressor in units of half their range, in [-1, 1], and its bounded losses.

    Losses are in units of their bounds, in [0, 1].

    Parameters
    ----------
    model : fitted regressor
    data : Data
    within : TargetRange
    deviances : mapping from str to Deviance
        Of the quantities that are deviances.
    """

    LOSSES = (
        "squared_error",
        "absolute_error",
        "pinball_loss",
        "poisson_deviance",
        "gamma_deviance",
        "tweedie_deviance",
    )

    def __init__(
        self,
        model: BaseEstimator,
        data: Data,
        within: TargetRange,
        deviances: Mapping[str, Deviance],
    ) -> None:
        if not are_numbers(data.y) or not np.isfinite(data.y).all():
            raise ValueError(f"{WHO}: y must hold finite numbers. Nothing was released.")
        predicted = predictions(model, "predict", data)
        quantiles = quantiles_of(model)
        if predicted.size != data.n_rows * len(quantiles):
            raise ValueError(
                f"{WHO}: a score is of one prediction for each row, and {type(model).__name__}."
                f"predict gives an array of shape {predicted.shape}: score models of one target. "
                "Nothing was released."
            )
        low, high = within.low, within.high
        middle, half = low + (high - low) / 2, (high - low) / 2
        targets = (np.clip(data.y, low, high).astype(np.float64) - middle) / half
        with np.errstate(over="ignore", invalid="ignore"):
            predicted = predicted.reshape(data.n_rows, -1).astype(np.float64)
            fitted = np.clip(np.nan_to_num(predicted), low, high)
        self.targets: Array = np.clip(targets, -1.0, 1.0)
        residuals = (targets[:, None] - (fitted - middle) / half) * (half / within.reach)
        self._residuals, self._of_quantiles = residuals[:, 0], residuals
        self._quantiles, self._deviances = quantiles, deviances
        # In units of the largest target. A mean of 0 would make a deviance infinite.
        self._means = np.maximum(fitted[:, 0], max(low, LEAST_MEAN * high)) / high
        self._y = np.clip(data.y.astype(np.float64), max(low, 0.0), high) / high

    @property
    def squared_targets(self) -> Array:
        """Squares of targets, moved to [-1, 1]."""
        return np.asarray(2 * self.targets**2 - 1)

    @property
    def squared_error(self) -> Array:
        """Squared residuals."""
        return np.asarray(np.minimum(self._residuals**2, 1.0))

    @property
    def absolute_error(self) -> Array:
        """Absolute residuals."""
        return np.asarray(np.minimum(np.abs(self._residuals), 1.0))

    @property
    def pinball_loss(self) -> Array:
        """Pinball losses at the quantile of the model, or their mean over its quantiles."""
        quantiles, residuals = self._quantiles, self._of_quantiles
        losses = np.maximum(quantiles * residuals, (quantiles - 1) * residuals).mean(axis=1)
        return np.asarray(np.minimum(losses / largest_pinball(quantiles), 1.0))

    @property
    def poisson_deviance(self) -> Array:
        """Poisson deviances."""
        return self._deviance_of("poisson_deviance", self._y)

    @property
    def gamma_deviance(self) -> Array:
        """Gamma deviances."""
        return self._deviance_of("gamma_deviance", np.maximum(self._y, np.finfo(float).tiny))

    @property
    def tweedie_deviance(self) -> Array:
        """Deviances of D2."""
        return self._deviance_of("d2_tweedie", self._tweedie_y)

    @property
    def tweedie_targets(self) -> Array:
        """Targets of a D2, in [-1, 1]. See `Deviance`."""
        return self._deviances["d2_tweedie"].facts(self._tweedie_y)[0]

    @property
    def tweedie_potentials(self) -> Array:
        """Potentials of a D2, in [-1, 1]. See `Deviance`."""
        return self._deviances["d2_tweedie"].facts(self._tweedie_y)[1]

    @property
    def _tweedie_y(self) -> Array:
        return np.asarray(np.maximum(self._y, self._deviances["d2_tweedie"].least))

    def _deviance_of(self, quantity: str, y: Array) -> Array:
        deviance = self._deviances[quantity]
        return np.asarray(np.minimum(deviance.of(y, self._means) / deviance.largest, 1.0))
