"""What is asked of rows for each metric, and how scores follow from the answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from skdp._numbers import AnyArray, Array, shown
from skdp.metrics import estimates, facts
from skdp.metrics.dataset import Dataset
from skdp.metrics.scores import AnyScore
from skdp.stages.scores import NoisyTable, R2Means, ScoreStage

Metrics: TypeAlias = dict[str, tuple[str, int]]

# Names of scikit-learn's scorers, and of its functions: what they are called here, and the sign.
CLASSIFIER_METRICS: Metrics = {
    "accuracy": ("accuracy", 1),
    "balanced_accuracy": ("balanced_accuracy", 1),
    "confusion_matrix": ("confusion_matrix", 1),
    "precision": ("precision", 1),
    "recall": ("recall", 1),
    "f1": ("f1", 1),
    "log_loss": ("log_loss", 1),
    "neg_log_loss": ("log_loss", -1),
    "brier_score_loss": ("brier", 1),
    "neg_brier_score": ("brier", -1),
    "roc_auc": ("roc_auc", 1),
    "roc_curve": ("roc_curve", 1),
    "calibration_curve": ("calibration_curve", 1),
}
REGRESSOR_METRICS: Metrics = {
    "r2": ("r2", 1),
    "mean_squared_error": ("squared_error", 1),
    "neg_mean_squared_error": ("squared_error", -1),
    "mean_absolute_error": ("absolute_error", 1),
    "neg_mean_absolute_error": ("absolute_error", -1),
}
METRICS = {"classifier": CLASSIFIER_METRICS, "regressor": REGRESSOR_METRICS}
OF_TWO_CLASSES = frozenset(
    {"precision", "recall", "f1", "brier", "roc_auc", "roc_curve", "calibration_curve"}
)
OF_LABELS = frozenset(
    {"accuracy", "balanced_accuracy", "confusion_matrix", "precision", "recall", "f1"}
)
# A predicted probability of the true class below exp(-6) = 0.0025 counts as that. A choice of ours:
# a larger bound needs more noise, a smaller one hides more of what a model gets very wrong.
LOG_LOSS_BOUND = 6.0
# Part of the budget of a mean loss that its square gets, which standard errors of sampling need.
# For R2 it is the mean square of what a row adds to it; that makes its noise 4 per cent larger.
SQUARE = 0.1
OF_R2 = ("squared_error", "targets", "squared targets")  # facts whose means R2 is made of


def metrics_of(kind: str, asked: Any, n_classes: int) -> Metrics:
    """Return the metrics that are asked for, or raise ValueError.

    Parameters
    ----------
    kind : {"classifier", "regressor"}
    asked : str, iterable of str or None
        None for "accuracy" or "r2".
    n_classes : int
        Of a classifier.
    """
    if asked is None:
        asked = "accuracy" if kind == "classifier" else "r2"
    names = [asked] if isinstance(asked, str) else list(asked)
    known = METRICS[kind]
    unknown = [name for name in names if not isinstance(name, str) or name not in known]
    if unknown or not names:
        raise ValueError(
            f"evaluate: metrics of a {kind} must be among {_listed(sorted(known))}; got "
            f"{shown(unknown[0]) if unknown else 'none'}. Nothing was released."
        )
    found = {name: known[name] for name in names}
    refused = [name for name, (what, _) in found.items() if what in OF_TWO_CLASSES]
    if kind == "classifier" and n_classes != 2 and refused:
        raise ValueError(
            f"evaluate: {_listed(refused)} is for two classes; this model has {n_classes}. Nothing "
            "was released."
        )
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))


@dataclass(frozen=True)
class Question:
    """What is asked of the rows, and how scores follow from the answers.

    Attributes
    ----------
    facts : Facts
    stage : ScoreStage
    scores : callable
        From the answers, by name, to the scores, which hold no rows.
    """

    facts: facts.Facts
    stage: ScoreStage
    scores: Callable[[dict[str, Any]], dict[str, AnyScore]]


def of_classifier(model: Any, names: Metrics, rows: Dataset, bound: float) -> Question:
    """Return what is asked for scores of a classifier.

    Parameters
    ----------
    model : fitted classifier
    names : dict of str to (str, int)
        Metrics that are asked for: what they are called here, and their sign.
    rows : Dataset
    bound : float
        On log losses.
    """
    what = {kind for kind, _ in names.values()}
    labels = np.asarray(model.classes_)
    size, classes = len(labels), facts.class_numbers(rows.y, labels, "y")
    asked, n_records = facts.Facts(), rows.n_records
    table = ""
    if what & OF_LABELS:
        predicted = facts.predictions(model, "predict", rows)
        guessed = facts.class_numbers(predicted.reshape(rows.n_rows), labels, "predict")
        if what & OF_LABELS == {"accuracy"}:
            asked.add("right", np.where(classes == guessed, 1.0, -1.0), 1.0)
        elif size == 2 or "confusion_matrix" in what:
            table = "confusion"
            asked.add(table, size * classes + guessed, 1.0, size * size)
        else:
            table = "by class"
            asked.add(table, 2 * classes + (classes == guessed), 1.0, 2 * size)
    if what & {"log_loss", "brier"}:
        chances = facts.probabilities(model, rows, size)
        losses = {
            "log_loss": facts.log_losses(chances, classes, bound) / bound,
            "brier": (chances[:, -1] - classes) ** 2,
        }
        for kind in sorted(what & {"log_loss", "brier"}):
            asked.add(kind, 2 * losses[kind] - 1, 1 - SQUARE)
            asked.add(f"{kind} squared", 2 * losses[kind] ** 2 - 1, SQUARE)
    if what & {"roc_auc", "roc_curve", "calibration_curve"}:
        needed = "calibration_curve" in what
        asked.add("ranking", facts.ranking_scores(model, rows, needed), 1.0)
        asked.add("class", classes, 0.0)
    bounds = {"log_loss": bound, "brier": 1.0}

    def scores(found: dict[str, Any]) -> dict[str, AnyScore]:
        def answer(name: str) -> Any:
            kind = "table" if name in asked.n_cells else "mean"
            return found[f"{kind} {asked.number(name)}"]

        by_class = right = None
        if table:
            by_class = estimates.by_class(answer(table), size)
            right = estimates.right_cells(by_class)
        made: dict[str, AnyScore] = {}
        for name, (kind, sign) in names.items():
            if kind in bounds:
                pair = answer(kind), answer(f"{kind} squared")
                made[name] = estimates.mean_loss(name, *pair, bounds[kind], n_records, sign)
            elif kind == "roc_auc":
                made[name] = estimates.roc_auc(name, found["ranking"])
            elif kind == "roc_curve":
                made[name] = estimates.roc_curve(
                    name, found["ranking"], lambda edges: facts.threshold_values(edges, model)
                )
            elif kind == "calibration_curve":
                made[name] = estimates.calibration_curve(name, found["ranking"])
            elif by_class is None or right is None:
                made[name] = estimates.accuracy_of_mean(name, answer("right"), n_records)
            else:
                made[name] = _of_table(name, kind, by_class, right, labels, n_records)
        return made

    said_so = (
        "The classes of the model are public, and that every label is one of them: other "
        "labels are refused.",
        *((f"Log losses above {bound:g} count as that.",) if "log_loss" in what else ()),
    )
    return Question(asked, _stage(asked, said_so), scores)


def of_regressor(model: Any, names: Metrics, rows: Dataset, ends: tuple[float, float]) -> Question:
    """Return what is asked for scores of a regressor, targets being cut to a range.

    Parameters
    ----------
    model : fitted regressor
    names, rows
        As for `of_classifier`.
    ends : tuple (low, high)
    """
    what, y, n_records = {kind for kind, _ in names.values()}, rows.y, rows.n_records
    if y.dtype.kind not in "biuf" or not np.isfinite(y).all():
        raise ValueError("evaluate: y must hold finite numbers. Nothing was released.")
    low, high = ends
    predicted = facts.predictions(model, "predict", rows).reshape(rows.n_rows)
    targets, residuals = facts.residual_facts(y, predicted, ends)
    half, asked = (high - low) / 2, facts.Facts()
    if what & {"r2", "squared_error"}:
        asked.add("squared_error", 2 * residuals**2 - 1, 1 - SQUARE)
    if "squared_error" in what:
        asked.add("squared_error squared", 2 * residuals**4 - 1, SQUARE)
    if "absolute_error" in what:
        asked.add("absolute_error", 2 * np.abs(residuals) - 1, 1 - SQUARE)
        asked.add("squared_error", 2 * residuals**2 - 1, SQUARE)
    if "r2" in what:
        asked.add("targets", targets, SQUARE)
        asked.add("squared targets", 2 * targets**2 - 1, 2 * SQUARE)
        asked.weights["influence"] = SQUARE  # its fact follows from the answers on the others

    def scores(found: dict[str, Any]) -> dict[str, AnyScore]:
        def answer(name: str) -> Any:
            return found[f"mean {asked.number(name)}"]

        made: dict[str, AnyScore] = {}
        for name, (kind, sign) in names.items():
            if kind == "r2":
                means = R2Means(*map(answer, OF_R2))
                made[name] = estimates.r2(name, means, found["influence"], n_records)
            elif kind == "squared_error":
                pair = answer(kind), answer("squared_error squared")
                made[name] = estimates.mean_loss(name, *pair, half**2, n_records, sign)
            else:
                pair = answer(kind), answer("squared_error")
                made[name] = estimates.mean_loss(name, *pair, half, n_records, sign)
        return made

    said_so = (
        f"Targets and predictions were cut to [{low:g}, {high:g}], and residuals to "
        f"{half:g}; the range is public, or follows from private answers in the model.",
    )
    return Question(asked, _stage(asked, said_so), scores)


def _stage(asked: facts.Facts, notes: tuple[str, ...]) -> ScoreStage:
    """Return the stage that asks for facts, each with its part of the budget."""
    whole = sum(asked.weights.values())
    shares = {name: weight / whole for name, weight in asked.weights.items() if weight > 0}
    means, tables, ranking, influence = [], [], None, None
    for name, share in shares.items():
        if name == "influence":
            squares, targets, target_squares = map(asked.number, OF_R2)
            influence = (squares, targets, target_squares), share
            continue
        column = asked.number(name)
        if name in asked.n_cells:
            tables.append((column, asked.n_cells[name], share))
        elif name == "ranking":
            ranking = column, asked.number("class"), share
        else:
            means.append((column, share))
    return ScoreStage(tuple(means), tuple(tables), ranking, influence, notes=notes)


def _of_table(
    name: str, kind: str, table: NoisyTable, right: Array, classes: AnyArray, n_records: int
) -> AnyScore:
    """Return a score that follows from predicted classes."""
    if kind == "confusion_matrix":
        return estimates.confusion(name, table, classes)
    if kind == "accuracy":
        return estimates.accuracy(name, table, right, n_records)
    if kind == "balanced_accuracy":
        return estimates.balanced_accuracy(name, table, right)
    return estimates.of_second_class(name, table)
