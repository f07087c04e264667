"""Compute the statistics of rows that scores follow from: bounded losses, classes, log-odds.

Each follows from one row and the model alone. The releases bound them once more.
"""

from __future__ import annotations

import math
import warnings
from functools import cached_property

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skdp._numbers import AnyArray, Array, Indices, Mask, are_numbers, is_real, shown
from skdp.fitting.labels import type_in_a_word
from skdp.fitting.refusals import NO_LABELS, public_refusal, without_cells
from skdp.metrics.dataset import Dataset
from skdp.oracle.public import TARGET_RANGE
from skdp.stages.scores import LARGEST_LOG_ODDS, LEAST_MEAN, Deviance

WHO = "evaluate"
# That of targets above 12 times their mean, and below a 20,000th of it.
LARGEST_GAMMA_DEVIANCE = 20.0


def kind_of(model: BaseEstimator) -> str:
    """Return "classifier" or "regressor"; ValueError for other models."""
    is_tagged = hasattr(model, "__sklearn_tags__")
    if is_tagged and is_classifier(model):
        if not hasattr(model, "classes_"):
            raise ValueError(
                f"{WHO}: this {type(model).__name__} has no classes_: fit it first. Nothing was "
                "released."
            )
        return "classifier"
    if is_tagged and is_regressor(model):
        return "regressor"
    raise ValueError(
        f"{WHO}: model must be a fitted classifier or regressor of scikit-learn's kind; got "
        f"{type(model).__name__}. Nothing was released."
    )


def predictions(model: BaseEstimator, method: str, rows: Dataset) -> AnyArray:
    """Return the predictions of a model; no warning or message of its own comes through.

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
            f"{rows.n_rows} rows; it gave an array of shape {predicted.shape}. Nothing was "
            "released."
        )
    return predicted


# ---------------------------------------------------------------- classifiers


def class_numbers(labels: AnyArray, classes: AnyArray, what: str) -> Indices:
    """Return the number of each label in the sorted classes."""
    if are_numbers(labels) != are_numbers(classes):
        raise ValueError(
            f"{WHO}: {what} holds labels that are {type_in_a_word(labels)}; the classes of the "
            f"model are {type_in_a_word(classes)}. Nothing was released."
        )
    # A label runs code of its own when it is compared, and an error of that may quote the label.
    with without_cells(WHO, what, otherwise=NO_LABELS):
        places = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
        if not (classes[places] == labels).all():
            raise public_refusal(
                f"{WHO}: {what} holds a label that is none of the model's {len(classes)} classes. "
                "Declare all classes when the model is fitted (classes=...). Nothing was released."
            )
    return np.asarray(places, dtype=np.int64)


class ClassifiedRows:
    """Rows and what a classifier predicts for them, each prediction made once and when needed.

    Parameters
    ----------
    model : fitted classifier
    data : Dataset
    log_loss_bound : float
    needs_probability : bool
        Whether to refuse a model that ranks rows by decision values alone.

    Attributes
    ----------
    labels : array of shape (n_classes,)
    classes : array of shape (n_rows,)
        Numbers of the true labels.
    """

    def __init__(
        self, model: BaseEstimator, data: Dataset, log_loss_bound: float, needs_probability: bool
    ) -> None:
        self.model, self._data, self._bound = model, data, log_loss_bound
        self._needs_probability = needs_probability
        self.labels = np.asarray(model.classes_)
        self.n_classes = len(self.labels)
        self.classes = class_numbers(data.y, self.labels, "y")

    @cached_property
    def predicted(self) -> Indices:
        """Numbers of the predicted labels."""
        labels = predictions(self.model, "predict", self._data)
        return class_numbers(labels.reshape(self._data.n_rows), self.labels, "predict")

    @property
    def is_correct(self) -> Mask:
        """Whether each row is predicted right."""
        return np.asarray(self.classes == self.predicted)

    @cached_property
    def probabilities(self) -> Array:
        """The predicted probability of each class, each in [0, 1]."""
        if not hasattr(self.model, "predict_proba"):
            raise ValueError(
                f"{WHO}: this {type(self.model).__name__} has no predict_proba, which log loss, "
                "Brier score and calibration need. Nothing was released."
            )
        predicted = predictions(self.model, "predict_proba", self._data)
        if predicted.shape != (self._data.n_rows, self.n_classes):
            raise ValueError(
                f"{WHO}: predict_proba must have a column for each of the {self.n_classes} "
                f"classes; it has shape {predicted.shape}. Nothing was released."
            )
        return np.asarray(np.clip(np.nan_to_num(predicted.astype(np.float64)), 0.0, 1.0))

    @cached_property
    def log_losses(self) -> Array:
        """Log losses, in units of their bound."""
        return log_losses(self.probabilities, self.classes, self._bound) / self._bound

    @property
    def brier_losses(self) -> Array:
        """Squared errors of the predicted probability of the second of two classes."""
        return np.asarray((self.probabilities[:, -1] - self.classes) ** 2)

    @property
    def ranking_scores(self) -> Array:
        """Scores that rank rows of two classes: log-odds where there are probabilities."""
        if hasattr(self.model, "predict_proba") or self._needs_probability:
            positive = self.probabilities[:, 1]
            with np.errstate(divide="ignore"):
                odds = np.log(positive) - np.log1p(-positive)
        else:
            decisions = predictions(self.model, "decision_function", self._data)
            odds = np.arcsinh(decisions.astype(np.float64))
        largest = 2 * LARGEST_LOG_ODDS
        return np.asarray(np.clip(np.nan_to_num(odds), -largest, largest))


def threshold_values(edges: Array, model: BaseEstimator) -> Array:
    """Return edges between ranking scores in the unit of the model: probability or decision."""
    if hasattr(model, "predict_proba"):
        return np.asarray(1 / (1 + np.exp(-edges)))
    return np.asarray(np.sinh(edges))


def log_losses(probabilities: Array, classes: Indices, bound: float) -> Array:
    """Return log losses, probabilities below ``exp(-bound)`` counting as that."""
    chosen = probabilities[np.arange(len(classes)), classes]
    return np.minimum(-np.log(np.maximum(chosen, math.exp(-bound))), bound)


# ---------------------------------------------------------------- regressors


def _final_model(model: BaseEstimator) -> BaseEstimator:
    """Return the model itself, what a pipeline ends with, or the best one of a search."""
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        model = model.steps[-1][1] if isinstance(model, Pipeline) else model.best_estimator_
    return model


def target_range(model: BaseEstimator, declared: object) -> tuple[float, float]:
    """Return the range that targets and predictions are cut to: declared, or the model's own.

    Raises
    ------
    ValueError
        If none is declared and the model has estimated none privately.
    """
    if declared is not None:
        try:
            low, high = declared  # type: ignore[misc]  # anything that is no pair is refused
        except (TypeError, ValueError):
            low = high = None
        if not (is_real(low) and is_real(high) and -math.inf < low < high < math.inf):
            raise ValueError(
                "target_range must be None or a pair (low, high) of finite numbers, low < high; "
                f"got {shown(declared)}."
            )
        return float(low), float(high)
    model = _final_model(model)
    bound = getattr(model, "target_bound", None)
    least = 0.0 if get_tags(model).target_tags.positive_only else -math.inf
    if is_real(bound):
        return max(-float(bound), least), float(bound)
    targets = getattr(getattr(model, "scaling_", None), "targets", None)
    if targets is not None and len(targets.low) == 1:
        # Ranges that became wider halfway would make scores as much noisier.
        reach = TARGET_RANGE * targets.scale
        low = np.maximum(targets.low, targets.centre - reach)
        high = np.minimum(targets.high, targets.centre + reach)
        return max(float(low[0]), least), float(high[0])
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
    model = _final_model(model)
    if isinstance(model, PoissonRegressor | GammaRegressor):
        return 1.0 if isinstance(model, PoissonRegressor) else 2.0
    power = getattr(model, "power", 0.0)
    if not (is_real(power) and (power == 0 or 1 <= power <= 2)):
        raise ValueError(
            f"{WHO}: d2_tweedie is of the model's power, which must be 0 or lie in [1, 2]; got "
            f"{shown(power)}. Nothing was released."
        )
    # Near 1 and 2 the terms of a deviance cancel each other.
    nearest = round(float(power))
    return float(nearest if abs(power - nearest) < 1e-6 else power)


class PredictedRows:
    """Targets and residuals of a regressor, in units of half the range of targets, in [-1, 1].

    Losses are in units of their bounds, in [0, 1].

    Parameters
    ----------
    model : fitted regressor
    data : Dataset
    target_range : tuple (low, high)
    deviance : Deviance
        Of D2, with the largest target as the unit.
    """

    def __init__(
        self,
        model: BaseEstimator,
        data: Dataset,
        target_range: tuple[float, float],
        deviance: Deviance,
    ) -> None:
        if not are_numbers(data.y) or not np.isfinite(data.y).all():
            raise ValueError(f"{WHO}: y must hold finite numbers. Nothing was released.")
        predicted = predictions(model, "predict", data)
        if predicted.size != data.n_rows:
            raise ValueError(
                f"{WHO}: a score is of one prediction for each row, and {type(model).__name__}."
                f"predict gives an array of shape {predicted.shape}: score models of one target "
                "and one quantile each. Nothing was released."
            )
        predicted = predicted.reshape(data.n_rows)
        low, high = target_range
        middle, half = low + (high - low) / 2, (high - low) / 2
        targets = (np.clip(data.y, low, high).astype(np.float64) - middle) / half
        with np.errstate(over="ignore", invalid="ignore"):
            fitted = np.clip(np.nan_to_num(predicted.astype(np.float64)), low, high)
        self.targets: Array = np.clip(targets, -1.0, 1.0)
        self.residuals: Array = np.clip(targets - (fitted - middle) / half, -1.0, 1.0)
        # A mean of 0 would make a deviance infinite.
        self._fitted = np.maximum(fitted, max(low, LEAST_MEAN * high))
        self._y = np.clip(data.y.astype(np.float64), max(low, 0.0), high)
        self._high, self._deviance = high, deviance
        quantile = getattr(_final_model(model), "quantile", None)
        self._quantile = float(quantile) if is_real(quantile) else 0.5

    @property
    def poisson_deviances(self) -> Array:
        """Poisson deviances, those above the largest target counting as that."""
        y, mean = self._y, self._fitted
        return np.asarray(np.minimum(2 * (xlogy(y, y / mean) - y + mean) / self._high, 1.0))

    @property
    def gamma_deviances(self) -> Array:
        """Gamma deviances, those above `LARGEST_GAMMA_DEVIANCE` counting as that."""
        ratio = np.maximum(self._y / self._fitted, np.finfo(float).tiny)
        return np.asarray(np.minimum(2 * (ratio - 1 - np.log(ratio)) / LARGEST_GAMMA_DEVIANCE, 1.0))

    @cached_property
    def tweedie_facts(self) -> tuple[Array, Array, Array]:
        """Deviance, target and potential of a D2, in [-1, 1]; see `Deviance`."""
        targets = np.maximum(self._y / self._high, self._deviance.least)
        return self._deviance.facts(targets, self._fitted / self._high)

    @property
    def pinball_losses(self) -> Array:
        """Pinball losses of the model's quantile, in units of half the range of targets."""
        quantile = self._quantile
        return np.maximum(quantile * self.residuals, (quantile - 1) * self.residuals)
