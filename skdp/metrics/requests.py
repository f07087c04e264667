"""The table of scores: which statistics of rows each follows from, and of which subgroups.

A score is a function and a line of `METRICS`. A statistic is a property of `ClassifiedRows`, or a
line of `row_statistics.STATISTICS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from skdp._fitting import tables
from skdp._fitting.data import Data
from skdp._fitting.refusals import InputError, without_cells
from skdp._numbers import AnyArray, Array, Indices, is_real, shown
from skdp._oracle import Weights
from skdp._stages.scores import LEAST_MEAN, SUBGROUP_DISTANCE, Deviance, ScoreStage, Totals
from skdp.metrics import row_statistics
from skdp.metrics import scores as estimates
from skdp.metrics.row_statistics import LOG_LOSS_BOUND, ClassifiedRows, PredictedRows, TargetRange
from skdp.metrics.scores import Answers, Metric, Score

# Part of the budget of a mean loss that its square gets, which standard errors of sampling need.
# For R2 and D2 it is the mean square of what a row adds to it: the noise of R2 is 4 % larger.
SQUARE = 0.1
# Parts of the sum of weights, which divides means, and of the sum of their squares, next to those
# of the metrics. Tables have a sum of their own, and need it for sampling errors only.
TOTAL, TOTAL_OF_TABLES, SQUARE_OF_WEIGHTS = 0.5, 0.02, 0.02
# R2 and D2 cannot be compared between subgroups.
EXPLAINED = ("r2", "d2_tweedie")
ROOTS = ("root_mean_squared_error", "neg_root_mean_squared_error")


# ---------------------------------------------------------------- the metrics


Metrics: TypeAlias = Mapping[str, Metric]


def _losses(
    loss: str, *names: str, square: str = "", estimate: Any = estimates.mean_loss
) -> dict[str, Metric]:
    """Return a mean loss by its names. Those that begin with "neg_" have the other sign."""
    needs = {loss: 1 - SQUARE, square or f"{loss} squared": SQUARE}
    return {
        name: Metric(loss, estimate, needs, sign)
        for sign, name in zip((1, -1), names or (f"mean_{loss}", f"neg_mean_{loss}"), strict=True)
    }


def _of_two(name: str, estimate: Any, **needs: float) -> Metric:
    return Metric(name, estimate, needs, of_two=True)


def _explained(name: str, **needs: float) -> Metric:
    return Metric(name, estimates.explained, {**needs, f"{name} influence": SQUARE})


# Noise is drawn in the order of the table.
METRICS: dict[str, Metrics] = {
    "classifier": {
        "accuracy": Metric("accuracy", estimates.accuracy, {"labels": 1.0}),
        "balanced_accuracy": _of_two("balanced_accuracy", estimates.balanced_accuracy, labels=1.0),
        **{
            name: _of_two(name, estimates.of_second_class, labels=1.0)
            for name in ("precision", "recall", "f1")
        },
        **_losses("log_loss", "log_loss", "neg_log_loss"),
        **{
            estimate.__name__: _of_two(estimate.__name__, estimate, ranking=1.0, classes=0.0)
            for estimate in (estimates.roc_auc, estimates.average_precision)
        },
    },
    "regressor": {
        **_losses("squared_error"),
        **_losses("squared_error", *ROOTS, estimate=estimates.root),
        # The square of an absolute error is a squared error.
        **_losses("absolute_error", square="squared_error"),
        **_losses("poisson_deviance"),
        **_losses("gamma_deviance"),
        **_losses("pinball_loss"),
        "r2": _explained(
            "r2", squared_error=1 - SQUARE, targets=SQUARE, squared_targets=2 * SQUARE
        ),
        # The mean, where the potential is steep, adds most of the noise.
        "d2_tweedie": _explained(
            "d2_tweedie",
            tweedie_deviance=1 - SQUARE,
            tweedie_targets=1 - SQUARE,
            tweedie_potentials=3 * SQUARE,
        ),
    },
}


def default_metric(model: BaseEstimator) -> str:
    """Return the metric of what a model predicts: classes, means or quantiles."""
    if is_classifier(model):
        return "accuracy"
    if is_real(getattr(row_statistics.final_model(model), "quantile", None)):
        return "neg_mean_pinball_loss"
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
            f"metrics of a {kind} must be among {', '.join(map(repr, sorted(known)))}, got "
            f"{shown(unknown[0]) if unknown else 'none'}."
        )
    for name in names:
        if n_classes != 2 and known[name].of_two:
            raise ValueError(f"{name!r} is for two classes. This model has {n_classes}.")
        if known[name].quantity == "log_loss" and not hasattr(model, "predict_proba"):
            kind = type(model).__name__
            raise ValueError(f"{name!r} needs probabilities, and {kind} has no predict_proba.")
        if by_subgroup and name in EXPLAINED:
            raise ValueError(
                f"{name!r} cannot be compared between subgroups, as it divides errors by the "
                "variance of each subgroup's own targets. Request 'mean_squared_error' or another "
                "mean loss (metrics=...)."
            )
    return {name: known[name] for name in names}


# ---------------------------------------------------------------- requests


class ScoreRequest:
    """A request for the scores of a model, in which there are no rows.

    Attributes
    ----------
    model : estimator
    metrics : mapping from str to Metric
    subgroups : Subgroups or None
    classes : array
        Labels of a classifier.
    assumptions : list of str
    bounds : dict of str to float
        Bounds of losses by name.
    deviances : dict of str to Deviance
        Of the quantities that are deviances, or follow from them.
    notes : dict of str to str
        By quantity, the target of its score if targets or losses were clipped.
    """

    def __init__(
        self, model: BaseEstimator, metrics: Metrics, subgroups: Subgroups | None = None
    ) -> None:
        self.model, self.metrics, self.subgroups = model, metrics, subgroups
        self.classes: AnyArray = np.empty(0)
        self.assumptions: list[str] = []
        self.bounds: dict[str, float] = {}
        self.deviances: dict[str, Deviance] = {}
        self.notes: dict[str, str] = {}

    def rows(self, data: Data) -> ClassifiedRows | PredictedRows:
        """Return rows with the model's predictions."""
        raise NotImplementedError

    @property
    def quantities(self) -> set[str]:
        """What the metrics estimate."""
        return {metric.quantity for metric in self.metrics.values()}

    @property
    def labels(self) -> str:
        """Statistic of predicted labels: right or not, or the pair of true and predicted class."""
        of_labels = {one.quantity for one in self.metrics.values() if "labels" in one.needs}
        return "correct" if of_labels == {"accuracy"} else "cells"

    @cached_property
    def weights(self) -> dict[str, float]:
        """Parts of the budget, relative to each other, of the statistics that the metrics need."""
        weights: dict[str, float] = {}
        for metric in METRICS["classifier" if len(self.classes) else "regressor"].values():
            for name, weight in metric.needs.items() if metric.quantity in self.quantities else ():
                own = self.labels if name == "labels" else name
                weights[own] = max(weight, weights.get(own, 0.0))
        return weights

    @property
    def columns(self) -> list[str]:
        """Statistics of single rows that the metrics need."""
        return [name for name in self.weights if not name.endswith(" influence")]

    def statistics_of(self, data: Data) -> Array:
        """Return the statistics of rows, an array of shape (n_rows, n_statistics).

        Losses, and their squares, are moved to [-1, 1].

        Raises
        ------
        ValueError
            If the targets or the model's predictions are refused.
        """
        rows = self.rows(data)
        columns = {}
        for name in self.columns:
            values = rows.statistic(name.removesuffix(" squared"))
            values = values**2 if name.endswith(" squared") else values
            is_loss = name.removesuffix(" squared") in (*self.bounds, "correct", "tweedie_deviance")
            columns[name] = 2 * values - 1 if is_loss else values
        if self.subgroups is not None:
            numbers = self.subgroups.numbers_of(data)
            if "ranking" in columns:
                columns["ranking"] = columns["ranking"] + SUBGROUP_DISTANCE * numbers
            columns["subgroup"] = numbers
        return np.column_stack([np.asarray(one, dtype=np.float64) for one in columns.values()])

    def stage(self, weighted: bool) -> ScoreStage:
        """Return the stage that releases the statistics, each with its part of the budget.

        ``weighted`` says whether rows have weights, whose sum is released as well.
        """
        groups, columns = self.subgroups, self.columns
        totals = 0.0, 0.0
        if weighted:
            is_divided = groups is None and not {"ranking", "classes", "cells"}.issuperset(columns)
            totals = TOTAL if is_divided else TOTAL_OF_TABLES, SQUARE_OF_WEIGHTS
        total = sum(self.weights.values()) + sum(totals)
        shares = {name: weight / total for name, weight in self.weights.items() if weight > 0}
        ranking, tables, explained = None, [], []
        if "ranking" in shares:
            places = columns.index("ranking"), columns.index("classes")
            ranking = *places, shares.pop("ranking"), "average_precision" in self.quantities
        if "cells" in shares:
            tables = [("cells", columns.index("cells"), 4, shares.pop("cells"))]
        for quantity in sorted(self.quantities.intersection(EXPLAINED)):
            *needed, last = METRICS["regressor"][quantity].needs
            several = tuple(map(columns.index, needed))
            explained.append((last, several, shares.pop(last), self.deviances[quantity]))
        return ScoreStage(
            tuple((name, columns.index(name), share) for name, share in shares.items()),
            tuple(tables),
            ranking,
            tuple(sorted(explained, reverse=True)),
            None if groups is None else (len(columns), groups.n_subgroups),
            notes=(*self.assumptions, *(() if groups is None else groups.assumptions())),
            totals=(totals[0] / total, totals[1] / total),
        )

    def scores(
        self, released: Mapping[str, Any], weights: Weights | None
    ) -> list[dict[str, Score]]:
        """Return the scores, by name, of all records, or of those of each declared subgroup.

        Parameters
        ----------
        released : mapping from str to object
            Released values of the stage.
        weights : Weights or None
            The weights' units.
        """
        by_name = dict(released)
        totals: Totals | None = by_name.pop("totals")
        n_subgroups = 1
        if self.subgroups is not None:
            totals, n_subgroups = None, len(self.subgroups.names)
        unit = 1.0 if weights is None else weights.scale
        clipped = [f"weights clipped to {unit:g}"] * (weights is not None and weights.is_clipped)
        several = []
        for number in range(n_subgroups):
            of = {name: answers[number] for name, answers in by_name.items()}
            answers = Answers(of, totals, unit, self.bounds, self.classes)
            scores = {}
            for name, metric in self.metrics.items():
                of_what = [*filter(None, [self.notes.get(metric.quantity)]), *clipped]
                note = f"of {' and '.join(of_what)}" if of_what else ""
                score = metric.estimate(name, metric, answers)
                scores[name] = replace(score, sign=metric.sign, note=note)
            several.append(scores)
        return several


class ClassifierScores(ScoreRequest):
    """A request for scores of a fitted classifier, whose log losses are clipped to a bound."""

    def __init__(self, model: BaseEstimator, metrics: Metrics, subgroups: Subgroups | None) -> None:
        super().__init__(model, metrics, subgroups)
        self.classes = np.asarray(model.classes_)
        self.bounds = {"log_loss": LOG_LOSS_BOUND}
        self.notes = {"log_loss": f"losses clipped to {LOG_LOSS_BOUND:g}"}
        self.assumptions = [
            "The classes of the model are public, and that every label is one of them: other "
            "labels are refused."
        ]
        if "log_loss" in self.quantities:
            self.assumptions.append(f"Log losses above {LOG_LOSS_BOUND:g} count as that.")

    def rows(self, data: Data) -> ClassifiedRows:
        return ClassifiedRows(self.model, data)


class RegressorScores(ScoreRequest):
    """A request for scores of a fitted regressor, targets being clipped to a range."""

    def __init__(
        self,
        model: BaseEstimator,
        metrics: Metrics,
        subgroups: Subgroups | None,
        within: TargetRange,
    ) -> None:
        powers = {"poisson_deviance": 1.0, "gamma_deviance": 2.0}
        if any(one.quantity == "d2_tweedie" for one in metrics.values()):
            powers["d2_tweedie"] = row_statistics.deviance_power(model)
            if powers["d2_tweedie"] == 0:  # whose D2 is R2
                r2 = {"d2_tweedie": METRICS["regressor"]["r2"]}
                metrics = {name: r2.get(one.quantity, one) for name, one in metrics.items()}
        super().__init__(model, metrics, subgroups)
        self._within, quantiles = within, row_statistics.quantiles_of(model)
        if len(quantiles) > 1 and self.quantities != {"pinball_loss"}:
            raise ValueError(
                "a model of several quantiles has one score for all of them, "
                "'mean_pinball_loss' or 'neg_mean_pinball_loss': the mean of their pinball losses."
            )
        low, high, reach = within.low, within.high, within.reach
        clipped = f"targets clipped to [{low:g}, {high:g}]"
        self.notes = dict.fromkeys(self.quantities, clipped)
        self.assumptions = [
            f"Scores are of {clipped}. Predictions were clipped to this range, and residuals to "
            f"{reach:g}. The range is public, or follows from private answers in the model.",
        ]
        self.bounds = {
            "squared_error": reach * reach,
            "absolute_error": reach,
            "pinball_loss": row_statistics.largest_pinball(quantiles) * reach,
        }
        self.deviances = {"r2": Deviance(largest=(reach / ((high - low) / 2)) ** 2)}
        for quantity in sorted(self.quantities & powers.keys()):
            deviance = row_statistics.bounded_deviance(quantity, powers[quantity], within)
            self.deviances[quantity] = deviance
            self.bounds[quantity] = deviance.largest * math.pow(high, 2 - deviance.power)
            if quantity == "d2_tweedie":
                self.assumptions.append(
                    f"D2 is of deviances with power {deviance.power:g}. Targets below "
                    f"{deviance.least * high:g} count as that."
                )
            self.assumptions.append(
                f"Of {quantity.replace('_', ' ')}s those above {self.bounds[quantity]:g} count as "
                f"that, and predictions below {LEAST_MEAN * high:g} as that."
            )
        if not all(0 < self.bounds.get(one, 1.0) < math.inf for one in self.quantities):
            raise ValueError(
                f"squares of targets in the range [{low:g}, {high:g}] leave the range of float64. "
                "Divide targets by a public unit before the fit, or request another metric."
            )

    def rows(self, data: Data) -> PredictedRows:
        return PredictedRows(self.model, data, self._within, self.deviances)


def request_for(
    model: BaseEstimator,
    names: str | Iterable[str] | None,
    subgroups: Subgroups | None,
    declared_range: object,
) -> ScoreRequest:
    """Return the request for the scores of a fitted model, by names of metrics."""
    has_tags = hasattr(model, "__sklearn_tags__")
    if has_tags and is_classifier(model) and hasattr(model, "classes_"):
        metrics = metrics_by_name(model, names, len(model.classes_), subgroups is not None)
        return ClassifierScores(model, metrics, subgroups)
    if has_tags and is_regressor(model):
        metrics = metrics_by_name(model, names, 1, subgroups is not None)
        within = row_statistics.target_range(model, declared_range)
        return RegressorScores(model, metrics, subgroups, within)
    raise ValueError(
        "model must be a fitted classifier or regressor of scikit-learn's kind, got "
        f"{type(model).__name__}, which is neither, or a classifier without classes_: fit it first."
    )


def deviances_of(
    model: BaseEstimator, names: str | Iterable[str] | None, n_classes: int, declared_range: object
) -> Mapping[str, Deviance]:
    """Return the deviances in scores of a model that is not fitted. ValueError for such scores."""
    metrics = metrics_by_name(model, names, n_classes, by_subgroup=False)
    if is_classifier(model):
        return {}
    within = row_statistics.target_range(model, declared_range, is_fitted=False)
    return RegressorScores(model, metrics, None, within).deviances


# ---------------------------------------------------------------- subgroups


@dataclass(frozen=True)
class Subgroups:
    """Disjoint subgroups, each with the labels that rows of it have. All of this is public.

    Attributes
    ----------
    column : str, int or None
        Name or number of the column of X that has the labels. None if they come by themselves.
    names : tuple
        Of the subgroups.
    numbers : dict
        Number of the subgroup of each declared label.
    other : int
        Number of the subgroup of all other labels. ``len(names)`` if none is declared.
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
        if present and "values of other types" not in present and not present & declared:
            given = tables.in_words(present)
            raise InputError(
                f"the labels of subgroups are {given} in by, and none of those in "
                f"subgroups is. Declare them as {given}."
            )
        # A label runs code of its own when it is hashed, and an error of that may quote it.
        with without_cells("by", otherwise="holds labels that cannot be hashed"):
            return np.fromiter(
                (self.numbers.get(label, self.other) for label in labels.tolist()),
                dtype=np.int64,
                count=len(labels),
            )

    def _column_of(self, X: Any) -> AnyArray:
        names = tables.names_of(X)
        X = np.asarray(X) if isinstance(X, list) else X
        places: list[object] = list(range(np.shape(X)[1])) if names is None else names
        if places.count(self.column) != 1:
            raise InputError(
                f"by={shown(self.column)} must name exactly one column of X. Pass a column "
                f"{'number' if names is None else 'name'}, or an array of labels."
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
            "by= and subgroups= need each other: the labels of rows are private, and which "
            "of them to look for must be declared without looking at the rows, as in "
            "by='sex', subgroups=['f', 'm']."
        )
    if declared is None:
        return None
    if isinstance(declared, str) or not isinstance(declared, Iterable):
        raise ValueError(
            f"subgroups must be a list of labels, or a mapping from names to labels, got "
            f"{shown(declared)}."
        )
    names: tuple[Any, ...] = tuple(declared)
    of, others = [[name] for name in names], []
    if isinstance(declared, Mapping):
        given = declared.values()
        of = [list(one) if isinstance(one, list | tuple | set | range) else [one] for one in given]
        others = [number for number, own in enumerate(of) if own == [None]]
    labels = [(one, i) for i, own in enumerate(of) if i not in others for one in own]
    try:
        numbers = dict(labels)
    except TypeError:  # one cannot be hashed
        numbers = {}
    are_labels = all(label is not None and label == label for label in numbers)
    if not (are_labels and len(labels) == len(numbers) > 0 and len(others) < 2 and all(of)):
        raise ValueError(
            "subgroups must be disjoint: each must have a label, and each label must be "
            "declared once, be hashable and not be missing. In a mapping, one subgroup may have "
            "the label None, for all labels that are not declared."
        )
    return Subgroups(column, names, numbers, others[0] if others else len(of))


def subgroup_labels(by: Any) -> AnyArray:
    """Return the labels of rows as an array of one dimension."""
    with without_cells("by", otherwise="must hold a label for each row"):
        column = None
        if not (np.ma.isMaskedArray(by) or sparse.issparse(by)):
            column = tables.one_dimensional(by)
        if column is None or column.ndim != 1:
            raise InputError(
                "by must be a column of X, or an array with a label for each row, which is neither "
                f"masked nor sparse, got {type(by).__name__}."
            )
        return column
