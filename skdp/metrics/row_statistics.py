"""Compute the statistics of rows that scores follow from: bounded losses, classes, log-odds.

Each follows from one row and the model alone. The releases bound them once more.
Subgroups that scores are computed for are declared, and rows numbered by them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skdp._numbers import AnyArray, Array, Indices, Mask, are_numbers, is_real, shown
from skdp.fitting import tables
from skdp.fitting.data import Data
from skdp.fitting.labels import kind_in_words
from skdp.fitting.refusals import NO_LABELS, public_refusal, without_cells
from skdp.oracle.public import TARGET_RANGE
from skdp.stages.column_bounds import declared_targets
from skdp.stages.scores import LARGEST_LOG_ODDS, LEAST_MEAN, Deviance

WHO = "evaluate"
# That of targets above 12 times their mean, and below a 20,000th of it.
LARGEST_GAMMA_DEVIANCE, LARGEST_OVER_MEAN = 20.0, 12.0
# How far the mean or median may lie from the centre that a fit estimated, relative to the largest
# distance of a target; and the least mean, relative to that centre, of positive targets.
OFF_CENTRE, LEAST_OF_CENTRE = 1 / 8, 3 / 4


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


def predictions(model: BaseEstimator, method: str, rows: Data) -> AnyArray:
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
    kinds = [kind_in_words(values) for values in (labels, classes)]
    if len({*kinds, ""}) == 3:
        raise ValueError(
            f"{WHO}: {what} holds labels that are {kinds[0]}; the classes of the model are "
            f"{kinds[1]}. Nothing was released."
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
    data : Data
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
        self, model: BaseEstimator, data: Data, log_loss_bound: float, needs_probability: bool
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


@dataclass(frozen=True)
class TargetRange:
    """The range that targets and predictions are clipped to.

    Attributes
    ----------
    low, high : float
    centre : float or None
        The centre of the targets that a private fit estimated, in this range; None if it is not
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
    model = _final_model(model)
    known = declared_targets(getattr(model, "scaling", None))
    targets = getattr(getattr(model, "scaling_", None), "targets", None)
    if targets is not None and (len(targets.low) > 1 or known is not None):
        targets = None  # of one output only; with a declared bound their centre is no estimate
    if declared is not None:
        try:
            low, high = declared  # type: ignore[misc]  # anything that is no pair is refused
        except (TypeError, ValueError):
            low = high = None
        if not (is_real(low) and is_real(high) and 0 < (high - low) / 2 < math.inf):
            raise ValueError(
                "target_range must be None or a pair (low, high) of finite numbers, low < high; "
                f"got {shown(declared)}."
            )
        centre = None if targets is None else float(np.clip(targets.centre[0], low, high))
        return TargetRange(float(low), float(high), centre)
    least = 0.0 if get_tags(model).target_tags.positive_only else -math.inf
    if known is not None:
        return TargetRange(max(known[0], least), known[1], None)
    if targets is not None:
        # Ranges that became wider halfway would make scores as much noisier.
        reach = TARGET_RANGE * targets.scale
        low = np.maximum(targets.low, targets.centre - reach)
        high = np.minimum(targets.high, targets.centre + reach)
        return TargetRange(max(float(low[0]), least), float(high[0]), float(targets.centre[0]))
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


def quantile_of(model: BaseEstimator) -> float:
    """Return the quantile that a model predicts; the median if it says nothing of one."""
    quantile = getattr(_final_model(model), "quantile", None)
    return float(quantile) if is_real(quantile) else 0.5


def bounded_deviance(power: float, within: TargetRange) -> Deviance:
    """Return a deviance of targets in units of the largest one, and what it is clipped to.

    That is no less than the deviance of any target from the centre, so that a constant prediction
    explains nothing, as with `TargetRange.reach`.
    """
    low, high = within.low, within.high
    deviance = Deviance(power, max(low / high, LEAST_MEAN if power == 2 else 0.0))
    mean = 1 / LARGEST_OVER_MEAN
    if within.centre is not None:
        mean = max(LEAST_OF_CENTRE * within.centre / high, LEAST_MEAN)
    furthest = deviance.of(np.array([deviance.least, 1.0]), mean)
    largest = max(math.pow(LARGEST_GAMMA_DEVIANCE, power - 1), float(np.max(furthest)))
    return replace(deviance, largest=largest)


class PredictedRows:
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
        if predicted.size != data.n_rows:
            raise ValueError(
                f"{WHO}: a score is of one prediction for each row, and {type(model).__name__}."
                f"predict gives an array of shape {predicted.shape}: score models of one target "
                "and one quantile each. Nothing was released."
            )
        predicted = predicted.reshape(data.n_rows)
        low, high = within.low, within.high
        middle, half = low + (high - low) / 2, (high - low) / 2
        targets = (np.clip(data.y, low, high).astype(np.float64) - middle) / half
        with np.errstate(over="ignore", invalid="ignore"):
            fitted = np.clip(np.nan_to_num(predicted.astype(np.float64)), low, high)
        self.targets: Array = np.clip(targets, -1.0, 1.0)
        residuals = (targets - (fitted - middle) / half) * (half / within.reach)
        self.squared_errors: Array = np.minimum(residuals**2, 1.0)
        self.absolute_errors: Array = np.minimum(np.abs(residuals), 1.0)
        quantile = quantile_of(model)
        pinball = np.maximum(quantile * residuals, (quantile - 1) * residuals)
        self.pinball_losses: Array = np.minimum(pinball / max(quantile, 1 - quantile), 1.0)
        # A mean of 0 would make a deviance infinite.
        self._fitted = np.maximum(fitted, max(low, LEAST_MEAN * high))
        self._y = np.clip(data.y.astype(np.float64), max(low, 0.0), high)
        self._high, self._deviances = high, deviances

    @cached_property
    def _ratio(self) -> Array:
        # Of a subnormal target it would be 0, and its logarithm infinite.
        return np.asarray(np.maximum(self._y / self._fitted, np.finfo(float).tiny))

    @property
    def poisson_deviances(self) -> Array:
        """Poisson deviances, clipped."""
        y, mean = self._y, self._fitted
        largest = self._deviances["poisson_deviance"].largest * self._high
        return np.asarray(np.minimum(2 * (xlogy(y, self._ratio) - y + mean) / largest, 1.0))

    @property
    def gamma_deviances(self) -> Array:
        """Gamma deviances, clipped."""
        largest = self._deviances["gamma_deviance"].largest
        return np.asarray(np.minimum(2 * (self._ratio - 1 - np.log(self._ratio)) / largest, 1.0))

    @cached_property
    def tweedie_facts(self) -> tuple[Array, Array, Array]:
        """Deviance, target and potential of a D2, in [-1, 1]; see `Deviance`."""
        deviance = self._deviances["d2_tweedie"]
        targets = np.maximum(self._y / self._high, deviance.least)
        return deviance.facts(targets, self._fitted / self._high)


@dataclass(frozen=True)
class Subgroups:
    """Disjoint subgroups, each with the labels that rows of it have; all of this is public.

    Attributes
    ----------
    column : str, int or None
        Name or number of the column of X that has the labels; None if they come by themselves.
    names : tuple
        Of the subgroups.
    numbers : dict
        Number of the subgroup of each declared label.
    other : int
        Number of the subgroup of all other labels; ``len(names)`` if none is declared.
    """

    column: str | int | None
    names: tuple[Any, ...]
    numbers: Mapping[Any, int] = field(repr=False)
    other: int

    @property
    def n_subgroups(self) -> int:
        """Number of the declared subgroups, and one for rows of none if there may be some."""
        return max(len(self.names), self.other + 1)

    def assumptions(self) -> tuple[str, ...]:
        """Return the privacy statement's sentences."""
        return (
            f"The subgroups ({', '.join(map(str, self.names))}) and their labels were declared "
            "without looking at the rows. Which rows lie in which subgroup, and how many, is "
            "private: each release is a table of all subgroups, to which a record adds one unit, "
            "so that the price is for all of them together.",
        )

    def numbers_of(self, data: Data) -> Indices:
        """Return the number of the subgroup of each row.

        Raises
        ------
        ValueError
            If X has no such column, or its labels are of another type than the declared ones.
        """
        labels = data.by if self.column is None else self._column_of(data.X)
        assert labels is not None
        present, declared = tables.kinds_of_labels(labels), tables.kinds_of_labels([*self.numbers])
        if present and ((), "lists") not in present and not present & declared:
            given = tables.in_words(kind for _, kind in present)
            raise public_refusal(
                f"{WHO}: the labels of subgroups are {given} in by, and none of those in "
                f"subgroups is; declare them as {given}. Nothing was released."
            )
        # A label runs code of its own when it is hashed, and an error of that may quote it.
        with without_cells(WHO, "by", otherwise="holds labels that cannot be hashed"):
            return np.fromiter(
                (self.numbers.get(label, self.other) for label in labels.tolist()),
                dtype=np.int64,
                count=len(labels),
            )

    def _column_of(self, X: Any) -> AnyArray:
        names = tables.names_of(X)
        X = np.asarray(X) if isinstance(X, list) else X
        places = list(range(np.shape(X)[1])) if names is None else names
        if places.count(self.column) != 1:
            raise public_refusal(
                f"{WHO}: by is {shown(self.column)}, and X has no column of this "
                f"{'number' if names is None else 'name'}, or several. Pass another, or the labels "
                "themselves. Nothing was released."
            )
        return tables.column(X, places.index(self.column))


def declared_subgroups(
    column: str | int | None, is_given: bool, declared: Iterable[Any] | Mapping[str, Any] | None
) -> Subgroups | None:
    """Return the declared subgroups, or None if scores are of all rows.

    Parameters
    ----------
    column : str, int or None
        Of X, with labels.
    is_given : bool
        Whether there are labels.
    declared : iterable, mapping or None
        As `skdp.metrics.evaluate` gets it.

    Raises
    ------
    ValueError
        If there are labels and no declaration, or the reverse, or subgroups are not disjoint.
    """
    if is_given != (declared is not None):
        raise ValueError(
            f"{WHO}: by= and subgroups= need each other: the labels of rows are private, and which "
            "of them to look for must be declared without looking at the rows, as in "
            "by='sex', subgroups=['f', 'm']. Nothing was released."
        )
    if declared is None:
        return None
    if isinstance(declared, str) or not isinstance(declared, Iterable):
        raise ValueError(
            f"{WHO}: subgroups must be a list of labels, or a mapping from names to labels; got "
            f"{shown(declared)}. Nothing was released."
        )
    if not isinstance(declared, Mapping):
        declared = {label: [label] for label in _distinct(declared)}
    labels_of = {
        name: list(labels) if isinstance(labels, list | tuple | set | range) else [labels]
        for name, labels in declared.items()
    }
    others = [number for number, labels in enumerate(labels_of.values()) if labels == [None]]
    labels = [
        (label, number)
        for number, group in enumerate(labels_of.values())
        if number not in others
        for label in group
    ]
    _distinct(label for label, _ in labels)
    if len(others) > 1 or not labels or not all(labels_of.values()):
        raise ValueError(
            f"{WHO}: each of the subgroups must have a label, and at most one of them None for all "
            "labels that are not declared, next to one that has some. Nothing was released."
        )
    other = others[0] if others else len(labels_of)
    return Subgroups(column, tuple(labels_of), dict(labels), other)


def _distinct(labels: Iterable[Any]) -> list[Any]:
    """Return declared labels; ValueError if one is missing, comes twice, or cannot be hashed."""
    several = list(labels)
    try:
        distinct = len(set(several)) == len(several)
    except TypeError:
        distinct = False
    if not distinct or any(label is None or label != label for label in several):
        raise ValueError(
            f"{WHO}: subgroups must be disjoint: each label must be declared once, be hashable and "
            "not be missing. Nothing was released."
        )
    return several


def subgroup_labels(by: Any) -> AnyArray:
    """Return the labels of rows as an array of one dimension."""
    with without_cells(WHO, "by", otherwise="must hold a label for each row"):
        if np.ndim(by) != 1 and not isinstance(by, list | tuple):
            raise public_refusal(
                f"{WHO}: by must be a column of X, or a label for each row; got "
                f"{type(by).__name__}. Nothing was released."
            )
        if isinstance(by, list | tuple):
            # The type that NumPy gives labels of a list depends on each of them.
            return np.fromiter(by, dtype=object, count=len(by))
        if np.ma.isMaskedArray(by) or sparse.issparse(by):
            raise public_refusal(
                f"{WHO}: by must not be a masked or sparse array; pass by.filled(...), with a "
                "label that is not declared, or by.toarray(). Nothing was released."
            )
        return np.asarray(by)
