"""Request the statistics of rows that metrics need, and estimate scores from the noisy answers.

A score is a function and a line of `METRICS`; a statistic of rows that no other score needs is a
line of `CLASSIFIER_STATISTICS` or `REGRESSOR_STATISTICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from skdp._numbers import AnyArray, Array, shown
from skdp.fitting.data import Data
from skdp.metrics import estimates, row_statistics
from skdp.metrics.estimates import Answers
from skdp.metrics.row_statistics import ClassifiedRows, PredictedRows, Subgroups, TargetRange
from skdp.metrics.scores import AnyScore, Score
from skdp.stages.scores import LEAST_MEAN, SUBGROUP_DISTANCE, Deviance, ScoreStage, Totals

# A predicted probability of the true class below exp(-6) = 0.0025 counts as that. A choice of ours:
# a larger bound needs more noise, a smaller one hides more of what a model gets very wrong.
LOG_LOSS_BOUND = 6.0
# Part of the budget of a mean loss that its square gets, which standard errors of sampling need.
# For R2 and D2 it is the mean square of what a row adds to it: the noise of R2 is 4 % larger.
SQUARE = 0.1
# Parts of the sum of weights, which divides means, and of the sum of their squares, next to those
# of the metrics. Tables have a sum of their own, and need it for sampling errors only.
TOTAL, TOTAL_OF_TABLES, SQUARE_OF_WEIGHTS = 0.5, 0.02, 0.02
RANKED = ("roc_auc", "roc_curve", "calibration_curve")
# R2 and D2 follow from the means of these, and the influence of rows from them.
EXPLAINED = {
    "r2": ("squared_error", "targets", "squared targets"),
    "d2_tweedie": ("tweedie_deviance", "targets of D2", "potentials of D2"),
}


# ---------------------------------------------------------------- the metrics


@dataclass(frozen=True)
class Metric:
    """A metric, under a name of scikit-learn's.

    Attributes
    ----------
    quantity : str
        What is estimated; "log_loss" and "neg_log_loss" share it.
    estimate : callable
        Returns the score from its name, the quantity and the answers.
    sign : {1, -1}, default=1
        -1 for losses under names like "neg_log_loss".
    is_number : bool, default=True
    """

    quantity: str
    estimate: Callable[[str, str, Answers], AnyScore]
    sign: int = 1
    is_number: bool = True

    @property
    def greater_is_better(self) -> bool:
        """Whether it is a single number of which more is better."""
        return self.is_number and (self.sign < 0 or self.estimate is not estimates.mean_loss)


Metrics: TypeAlias = Mapping[str, Metric]


def _losses(quantities: Mapping[str, str]) -> dict[str, Metric]:
    """Return mean losses by their names; names that begin with "neg_" have the other sign."""
    return {
        name: Metric(quantity, estimates.mean_loss, -1 if name.startswith("neg_") else 1)
        for name, quantity in quantities.items()
    }


def _of_both_signs(*quantities: str) -> dict[str, Metric]:
    return _losses({f"{sign}mean_{one}": one for one in quantities for sign in ("", "neg_")})


METRICS: dict[str, Metrics] = {
    "classifier": {
        "accuracy": Metric("accuracy", estimates.accuracy),
        "balanced_accuracy": Metric("balanced_accuracy", estimates.balanced_accuracy),
        "confusion_matrix": Metric("confusion_matrix", estimates.confusion, is_number=False),
        **_losses({"log_loss": "log_loss", "neg_log_loss": "log_loss"}),
        "precision": Metric("precision", estimates.of_second_class),
        "recall": Metric("recall", estimates.of_second_class),
        "f1": Metric("f1", estimates.of_second_class),
        **_losses({"brier_score_loss": "brier", "neg_brier_score": "brier"}),
        "roc_auc": Metric("roc_auc", estimates.roc_auc),
        "roc_curve": Metric("roc_curve", estimates.roc_curve, is_number=False),
        "calibration_curve": Metric(
            "calibration_curve", estimates.calibration_curve, is_number=False
        ),
    },
    "regressor": {
        "r2": Metric("r2", estimates.explained),
        "d2_tweedie": Metric("d2_tweedie", estimates.explained),
        **_of_both_signs("squared_error", "absolute_error", "poisson_deviance", "gamma_deviance"),
        **_losses({"mean_pinball_loss": "pinball_loss"}),
    },
}
OF_TWO_CLASSES = ("precision", "recall", "f1", "brier", *RANKED)


def default_metric(model: BaseEstimator) -> str:
    """Return the metric that the ``score`` of a model computes; it need not be fitted."""
    if is_classifier(model):
        return "accuracy"
    return "d2_tweedie" if row_statistics.deviance_power(model) else "r2"


def metrics_by_name(
    model: BaseEstimator, names: str | Iterable[str] | None, n_classes: int, by_subgroup: bool
) -> Metrics:
    """Return the metrics of these names.

    Parameters
    ----------
    model : classifier or regressor
    names : str, iterable of str or None
        None for that of `default_metric`.
    n_classes : int
        Of a classifier.
    by_subgroup : bool
        Whether scores of subgroups are requested.

    Returns
    -------
    dict of str to Metric

    Raises
    ------
    ValueError
        If there is none, one is not known, one is for two classes and there are others, or one
        cannot be compared between subgroups.
    """
    names = default_metric(model) if names is None else names
    names = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    kind = "classifier" if is_classifier(model) else "regressor"
    known = METRICS[kind]
    unknown = [name for name in names if not isinstance(name, str) or name not in known]
    if unknown or not names:
        raise ValueError(
            f"evaluate: metrics of a {kind} must be among {_quoted(sorted(known))}; got "
            f"{shown(unknown[0]) if unknown else 'none'}. Nothing was released."
        )
    refused = [name for name in dict.fromkeys(names) if known[name].quantity in OF_TWO_CLASSES]
    if n_classes != 2 and refused:
        raise ValueError(
            f"evaluate: {_quoted(refused)} is for two classes; this model has {n_classes}. Nothing "
            "was released."
        )
    refused = [name for name in dict.fromkeys(names) if known[name].quantity in EXPLAINED]
    if by_subgroup and refused:
        raise ValueError(
            f"evaluate: {_quoted(refused)} cannot be compared between subgroups, as it divides "
            "errors by the variance of each subgroup's own targets; request 'mean_squared_error' "
            "or another mean loss (metrics=...). Nothing was released."
        )
    return {name: known[name] for name in names}


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


# ---------------------------------------------------------------- statistics of rows


@dataclass(frozen=True)
class RowStatistic:
    """A bounded number of each row, released as a mean or as counts in a table.

    Attributes
    ----------
    name : str
    values : callable or None
        Returns the numbers of all rows, in [-1, 1] for a mean; None if they follow from others.
    weights : dict of str to float
        Part of the budget, next to other statistics, by the quantity that needs this one.
    n_cells : int or None, default=None
        Of a table, if the numbers are those of its cells.
    """

    name: str
    values: Callable[[Any], AnyArray] | None
    weights: Mapping[str, float]
    n_cells: int | None = None


def _mean_and_square(loss: str, values: Callable[[Any], Array]) -> tuple[RowStatistic, ...]:
    """Return the statistics of a loss in [0, 1]: the loss and its square, moved to [-1, 1]."""
    return (
        RowStatistic(loss, lambda rows: 2 * values(rows) - 1, {loss: 1 - SQUARE}),
        RowStatistic(f"{loss} squared", lambda rows: 2 * values(rows) ** 2 - 1, {loss: SQUARE}),
    )


# Noise is drawn in this order.
CLASSIFIER_STATISTICS = (
    *_mean_and_square("brier", lambda rows: rows.brier_losses),
    *_mean_and_square("log_loss", lambda rows: rows.log_losses),
    RowStatistic("ranking", lambda rows: rows.ranking_scores, dict.fromkeys(RANKED, 1.0)),
    RowStatistic("class", lambda rows: rows.classes, dict.fromkeys(RANKED, 0.0)),
)
REGRESSOR_STATISTICS = (
    RowStatistic(
        "squared_error",
        lambda rows: 2 * rows.squared_errors - 1,
        {"r2": 1 - SQUARE, "squared_error": 1 - SQUARE},
    ),
    RowStatistic(
        "squared_error squared",
        lambda rows: 2 * rows.squared_errors**2 - 1,
        {"squared_error": SQUARE},
    ),
    RowStatistic(
        "absolute_error",
        lambda rows: 2 * rows.absolute_errors - 1,
        {"absolute_error": 1 - SQUARE},
    ),
    RowStatistic(
        "squared_error", lambda rows: 2 * rows.squared_errors - 1, {"absolute_error": SQUARE}
    ),
    *_mean_and_square("poisson_deviance", lambda rows: rows.poisson_deviances),
    *_mean_and_square("gamma_deviance", lambda rows: rows.gamma_deviances),
    *_mean_and_square("pinball_loss", lambda rows: rows.pinball_losses),
    RowStatistic("targets", lambda rows: rows.targets, {"r2": SQUARE}),
    RowStatistic("squared targets", lambda rows: 2 * rows.targets**2 - 1, {"r2": 2 * SQUARE}),
    # The mean, where the potential is steep, adds most of the noise.
    RowStatistic(
        "tweedie_deviance", lambda rows: rows.tweedie_facts[0], {"d2_tweedie": 1 - SQUARE}
    ),
    RowStatistic("targets of D2", lambda rows: rows.tweedie_facts[1], {"d2_tweedie": 1 - SQUARE}),
    RowStatistic(
        "potentials of D2", lambda rows: rows.tweedie_facts[2], {"d2_tweedie": 3 * SQUARE}
    ),
    RowStatistic("r2 influence", None, {"r2": SQUARE}),
    RowStatistic("d2_tweedie influence", None, {"d2_tweedie": SQUARE}),
)
OF_LABELS = ("accuracy", "balanced_accuracy", "confusion_matrix", "precision", "recall", "f1")


def _label_statistic(quantities: set[str], n_classes: int) -> RowStatistic:
    """Return the least informative statistic from which all metrics of predicted labels follow."""
    weights = dict.fromkeys(OF_LABELS, 1.0)
    if quantities & set(OF_LABELS) == {"accuracy"}:
        return RowStatistic("correct", lambda rows: np.where(rows.is_correct, 1.0, -1.0), weights)
    if n_classes == 2 or "confusion_matrix" in quantities:
        return RowStatistic(
            "classes", lambda rows: n_classes * rows.classes + rows.predicted, weights, n_classes**2
        )
    return RowStatistic(
        "classes", lambda rows: 2 * rows.classes + rows.is_correct, weights, 2 * n_classes
    )


# ---------------------------------------------------------------- requests


@dataclass(frozen=True, eq=False)
class ScoreRequest:
    """A request for the scores of a model, in which there are no rows.

    Attributes
    ----------
    model : estimator
    metrics : mapping from str to Metric
    statistics : tuple of RowStatistic
        Those that metrics of its kind follow from.
    predicted : callable
        Returns rows with what the model predicts for them.
    assumptions : tuple of str
    bounds : mapping from str to float
        Bounds of losses by name.
    classes : array
        Labels of a classifier.
    subgroups : Subgroups or None
    deviances : mapping from str to Deviance
        Of the quantities that are deviances, or follow from them.
    notes : mapping from str to str
        By quantity, what its score is of if targets or losses were clipped.
    """

    model: BaseEstimator
    metrics: Metrics
    statistics: tuple[RowStatistic, ...]
    predicted: Callable[[Data], ClassifiedRows | PredictedRows]
    assumptions: tuple[str, ...]
    bounds: Mapping[str, float]
    classes: AnyArray
    subgroups: Subgroups | None = None
    deviances: Mapping[str, Deviance] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def weights(self) -> dict[str, float]:
        """Parts of the budget, relative to each other, of the statistics that the metrics need."""
        quantities = {metric.quantity for metric in self.metrics.values()}
        weights: dict[str, float] = {}
        for one in self.statistics:
            for quantity in quantities & one.weights.keys():
                weights[one.name] = max(one.weights[quantity], weights.get(one.name, 0.0))
        return weights

    @cached_property
    def columns(self) -> dict[str, RowStatistic]:
        """Statistics of single rows that the metrics need, by name."""
        own = (one for one in self.statistics if one.name in self.weights)
        return {one.name: one for one in own if one.values is not None}

    def statistics_of(self, data: Data) -> Array:
        """Return the statistics of rows, an array of shape (n_rows, n_statistics).

        Raises
        ------
        ValueError
            If the targets or the model's predictions are refused.
        """
        rows = self.predicted(data)
        columns = {one.name: one.values(rows) for one in self.columns.values() if one.values}
        if self.subgroups is not None:
            numbers = self.subgroups.numbers_of(data)
            if "ranking" in columns:
                columns["ranking"] = columns["ranking"] + SUBGROUP_DISTANCE * numbers
            columns["subgroup"] = numbers
        arrays = [np.asarray(column, dtype=np.float64) for column in columns.values()]
        return np.column_stack(arrays)

    def stage(self, weighted: bool) -> ScoreStage:
        """Return the stage that releases the statistics, each with its part of the budget.

        ``weighted`` says whether rows have weights, whose sum is released as well.
        """
        own, totals = sum(self.weights.values()), (0.0, 0.0)
        if weighted:
            is_mean = any(one.n_cells is None for one in self.columns.values())
            has_means = is_mean and self.subgroups is None
            totals = TOTAL if has_means else TOTAL_OF_TABLES, SQUARE_OF_WEIGHTS
        total = own + sum(totals)
        shares = {name: weight / total for name, weight in self.weights.items() if weight > 0}
        numbers = {name: number for number, name in enumerate(self.columns)}
        ranking = None
        if "ranking" in shares:
            ranking = numbers["ranking"], numbers["class"], shares.pop("ranking")
        explained = []
        for quantity, (first, second, third) in EXPLAINED.items():
            if (name := f"{quantity} influence") in shares:
                columns = numbers[first], numbers[second], numbers[third]
                explained.append((name, columns, shares.pop(name), self.deviances[quantity]))
        cells = {name: self.columns[name].n_cells for name in shares}
        groups = self.subgroups
        return ScoreStage(
            tuple((numbers[name], shares[name]) for name, n in cells.items() if n is None),
            tuple((numbers[name], n, shares[name]) for name, n in cells.items() if n is not None),
            ranking,
            tuple(explained),
            None if groups is None else (len(numbers), groups.n_subgroups),
            notes=self.assumptions + (() if groups is None else groups.assumptions()),
            totals=(totals[0] / total, totals[1] / total),
        )

    def scores(self, released: Mapping[str, Any], unit: float = 1.0) -> list[dict[str, AnyScore]]:
        """Return the scores, by name, of all records, or of those of each declared subgroup.

        Parameters
        ----------
        released : mapping from str to object
            What the stage released.
        unit : float, default=1.0
            The weights' scale.
        """
        answers = dict(released)
        totals = answers.pop("totals")
        if self.subgroups is None:
            return [self._scores_from(answers, totals, unit)]
        return [
            self._scores_from({name: tables[n] for name, tables in answers.items()}, None, unit)
            for n in range(len(self.subgroups.names))
        ]

    def _scores_from(
        self, released: Mapping[str, Any], totals: Totals | None, unit: float
    ) -> dict[str, AnyScore]:
        by_statistic = dict(released)
        for number, name in enumerate(self.columns):
            for kind in ("mean", "table"):
                if f"{kind} {number}" in released:
                    by_statistic[name] = released[f"{kind} {number}"]
        if "classes" in by_statistic:
            table = by_statistic["classes"]
            counts = table.counts.reshape(len(self.classes), -1)
            by_statistic["classes"] = replace(table, counts=counts)
        thresholds = partial(row_statistics.threshold_values, model=self.model)
        answers = Answers(by_statistic, totals, unit, self.bounds, self.classes, thresholds)
        scores = {}
        for name, one in self.metrics.items():
            score = one.estimate(name, one.quantity, answers)
            if isinstance(score, Score):
                score = replace(score, sign=one.sign, note=self.notes.get(one.quantity, ""))
            scores[name] = score
        return scores


def request_for_classifier(
    model: BaseEstimator,
    metrics: Metrics,
    log_loss_bound: float,
    subgroups: Subgroups | None = None,
) -> ScoreRequest:
    """Return the request for scores of a classifier.

    Parameters
    ----------
    model : fitted classifier
    metrics : dict of str to Metric
    log_loss_bound : float
    subgroups : Subgroups or None, default=None

    Returns
    -------
    ScoreRequest
    """
    quantities = {metric.quantity for metric in metrics.values()}
    classes = np.asarray(model.classes_)
    statistics = (_label_statistic(quantities, len(classes)), *CLASSIFIER_STATISTICS)
    assumptions: tuple[str, ...] = (
        "The classes of the model are public, and that every label is one of them: other "
        "labels are refused.",
    )
    if "log_loss" in quantities:
        assumptions += (f"Log losses above {log_loss_bound:g} count as that.",)
    bounds = {"log_loss": log_loss_bound, "brier": 1.0}
    notes = {"log_loss": f"of losses clipped to {log_loss_bound:g}"}

    def predicted(data: Data) -> ClassifiedRows:
        return ClassifiedRows(model, data, log_loss_bound, "calibration_curve" in quantities)

    given = model, metrics, statistics, predicted, assumptions, bounds
    return ScoreRequest(*given, classes, subgroups, notes=notes)


def request_for_regressor(
    model: BaseEstimator,
    metrics: Metrics,
    within: TargetRange,
    subgroups: Subgroups | None = None,
) -> ScoreRequest:
    """Return the request for scores of a regressor, targets being clipped to a range.

    Parameters
    ----------
    model : fitted regressor
    metrics : dict of str to Metric
    within : TargetRange
    subgroups : Subgroups or None, default=None

    Returns
    -------
    ScoreRequest
    """
    low, high, reach = within.low, within.high, within.reach
    clipped = f"targets clipped to [{low:g}, {high:g}]"
    assumptions: tuple[str, ...] = (
        f"Scores are of {clipped}. Predictions were clipped to this range, and residuals to "
        f"{reach:g}. The range is public, or follows from private answers in the model.",
    )
    quantities = {metric.quantity for metric in metrics.values()}
    power = row_statistics.deviance_power(model) if "d2_tweedie" in quantities else 0.0
    if power == 0:  # whose D2 is R2
        by_power = {"d2_tweedie": METRICS["regressor"]["r2"]}
        metrics = {name: by_power.get(one.quantity, one) for name, one in metrics.items()}
        quantities = {metric.quantity for metric in metrics.values()}
    powers = {"poisson_deviance": 1.0, "gamma_deviance": 2.0, "d2_tweedie": power}
    quantile = row_statistics.quantile_of(model)
    bounds = {
        "squared_error": reach * reach,
        "absolute_error": reach,
        "pinball_loss": max(quantile, 1 - quantile) * reach,
    }
    deviances = {"r2": Deviance(largest=(reach / ((high - low) / 2)) ** 2)}
    for quantity in sorted(quantities & powers.keys()):
        if low < 0:
            raise ValueError(
                f"evaluate: a {quantity.replace('_', ' ')} is for targets of at least 0, and their "
                f"range is [{low:g}, {high:g}]; pass target_range=(0, high). Nothing was released."
            )
        deviance = row_statistics.bounded_deviance(powers[quantity], within)
        deviances[quantity] = deviance
        bounds[quantity] = deviance.largest * math.pow(high, 2 - deviance.power)
        if quantity == "d2_tweedie":
            assumptions += (
                f"D2 is of deviances with power {power:g}; targets below "
                f"{deviance.least * high:g} count as that.",
            )
        assumptions += (
            f"Of {quantity.replace('_', ' ')}s those above {bounds[quantity]:g} count as that, "
            f"and predictions below {LEAST_MEAN * high:g} as that.",
        )

    if not all(0 < bounds.get(quantity, 1.0) < math.inf for quantity in quantities):
        raise ValueError(
            f"evaluate: squares of targets in the range [{low:g}, {high:g}] leave the range of "
            "float64. Divide targets by a public unit before the fit, or request another metric. "
            "Nothing was released."
        )

    def predicted(data: Data) -> PredictedRows:
        return PredictedRows(model, data, within, deviances)

    given = model, metrics, REGRESSOR_STATISTICS, predicted, assumptions, bounds
    notes = dict.fromkeys(quantities, f"of {clipped}")
    return ScoreRequest(*given, np.empty(0), subgroups, deviances, notes)
