"""Facts about each row that scores are made of: bounded losses, cells of tables, log-odds.

Every fact follows from one row and the model alone. The releases bound them once more.
"""

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from skdp._numbers import AnyArray, Array, Indices, is_real, shown
from skdp.fitting.labels import type_in_a_word
from skdp.fitting.refusals import NO_LABELS, public_refusal, without_cells
from skdp.metrics.dataset import Dataset
from skdp.oracle.public import TARGET_RANGE
from skdp.stages.scores import LARGEST_LOG_ODDS

WHO = "evaluate"


@dataclass
class Facts:
    """Columns of facts by name, as they are needed.

    Attributes
    ----------
    columns : dict of str to array of shape (n_rows,)
    weights : dict of str to float
        How much of the budget each release of facts gets, next to the others.
    n_cells : dict of str to int
        Of the facts that are numbers of cells.
    """

    columns: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    n_cells: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, values: AnyArray, weight: float, n_cells: int | None = None) -> None:
        """Add a fact to be asked for; asked for twice, it gets the larger weight."""
        self.columns[name] = np.asarray(values, dtype=np.float64)
        self.weights[name] = max(weight, self.weights.get(name, 0.0))
        if n_cells is not None:
            self.n_cells[name] = n_cells

    def number(self, name: str) -> int:
        """Return the number of a column."""
        return list(self.columns).index(name)

    @property
    def array(self) -> Array:
        """All facts, shape (n_rows, n_facts)."""
        return np.column_stack(list(self.columns.values()))


def kind_of(model: Any) -> str:
    """Return "classifier" or "regressor"; ValueError for other models."""
    if is_classifier(model):
        if not hasattr(model, "classes_"):
            raise ValueError(
                f"{WHO}: this {type(model).__name__} has no classes_: fit it first. Nothing was "
                "released."
            )
        return "classifier"
    if is_regressor(model):
        return "regressor"
    raise ValueError(
        f"{WHO}: model must be a fitted classifier or regressor of scikit-learn's kind; got "
        f"{type(model).__name__}. Nothing was released."
    )


def predictions(model: Any, method: str, rows: Dataset) -> AnyArray:
    """Return the predictions of a model; no warning or message of its own comes through.

    Raises
    ------
    ValueError
        If it fails, or does not give one answer for each row. The message quotes no row.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = rows.predicted_by(getattr(model, method))
    except Exception as reason:  # anyone's model fails in its own way, and may quote rows
        raise ValueError(
            f"{WHO}: {type(model).__name__}.{method} failed on these rows, with "
            f"{type(reason).__name__}. Nothing was released."
        ) from None
    if found.shape[:1] != (rows.n_rows,) or found.ndim > 2:
        raise ValueError(
            f"{WHO}: {type(model).__name__}.{method} must give one answer for each of the "
            f"{rows.n_rows} rows; it gave an array of shape {found.shape}. Nothing was released."
        )
    return found


# ---------------------------------------------------------------- classifiers


def class_numbers(labels: AnyArray, classes: AnyArray, what: str) -> Indices:
    """Return the number of each label in the sorted classes."""
    if (labels.dtype.kind in "biuf") != (classes.dtype.kind in "biuf"):
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


def probabilities(model: Any, rows: Dataset, n_classes: int) -> Array:
    """Return the predicted probability of each class, each in [0, 1]."""
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{WHO}: this {type(model).__name__} has no predict_proba, which log loss, Brier score "
            "and calibration need. Nothing was released."
        )
    found = predictions(model, "predict_proba", rows)
    if found.shape != (rows.n_rows, n_classes):
        raise ValueError(
            f"{WHO}: predict_proba must have a column for each of the {n_classes} classes; it has "
            f"shape {found.shape}. Nothing was released."
        )
    return np.asarray(np.clip(np.nan_to_num(found.astype(np.float64)), 0.0, 1.0))


def ranking_scores(model: Any, rows: Dataset, needs_probability: bool) -> Array:
    """Return scores by which two classes are told apart: log-odds where there are probabilities."""
    if hasattr(model, "predict_proba") or needs_probability:
        positive = probabilities(model, rows, 2)[:, 1]
        with np.errstate(divide="ignore"):
            odds = np.log(positive) - np.log1p(-positive)
    else:
        odds = np.arcsinh(predictions(model, "decision_function", rows).astype(np.float64))
    return np.asarray(np.clip(np.nan_to_num(odds), -2 * LARGEST_LOG_ODDS, 2 * LARGEST_LOG_ODDS))


def threshold_values(edges: Array, model: Any) -> Array:
    """Return edges between ranking scores in the unit of the model: probability or decision."""
    if hasattr(model, "predict_proba"):
        return np.asarray(1 / (1 + np.exp(-edges)))
    return np.asarray(np.sinh(edges))


def log_losses(found: Array, classes: Indices, bound: float) -> Array:
    """Return log losses, probabilities below ``exp(-bound)`` counting as that."""
    chosen = found[np.arange(len(classes)), classes]
    return np.minimum(-np.log(np.maximum(chosen, math.exp(-bound))), bound)


# ---------------------------------------------------------------- regressors


def target_range(model: Any, declared: Any) -> tuple[float, float]:
    """Return the range that targets and predictions are cut to: declared, or the model's own.

    Raises
    ------
    ValueError
        If none is declared and the model has found none privately.
    """
    if declared is not None:
        try:
            low, high = declared
        except (TypeError, ValueError):
            low = high = None
        if not (is_real(low) and is_real(high) and -math.inf < low < high < math.inf):
            raise ValueError(
                "target_range must be None or a pair (low, high) of finite numbers, low < high; "
                f"got {shown(declared)}."
            )
        return float(low), float(high)
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    bound = getattr(model, "target_bound", None)
    if is_real(bound):
        return -float(bound), float(bound)
    targets = getattr(getattr(model, "scaling_", None), "targets", None)
    if targets is not None and len(targets.low) == 1:
        # Ranges that became wider halfway would make scores as much noisier.
        reach = TARGET_RANGE * targets.scale
        low = np.maximum(targets.low, targets.centre - reach)
        high = np.minimum(targets.high, targets.centre + reach)
        return float(low[0]), float(high[0])
    raise ValueError(
        f"{WHO}: targets have to be cut to a range that is known without looking at them, and this "
        f"{type(model).__name__} has found none privately, or is not fitted. Pass "
        "target_range=(low, high), public figures of the targets' unit. Nothing was released."
    )


def residual_facts(
    y: AnyArray, predicted: AnyArray, ends: tuple[float, float]
) -> tuple[Array, Array]:
    """Return targets and residuals in units of half the range, both cut to [-1, 1]."""
    low, high = ends
    middle, half = low + (high - low) / 2, (high - low) / 2
    targets = (np.clip(y, low, high).astype(np.float64) - middle) / half
    with np.errstate(over="ignore", invalid="ignore"):
        fitted = np.clip(np.nan_to_num(predicted.astype(np.float64)), low, high)
    residuals = targets - (fitted - middle) / half
    return np.clip(targets, -1.0, 1.0), np.clip(residuals, -1.0, 1.0)
