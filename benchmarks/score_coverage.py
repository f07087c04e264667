"""How often intervals of private scores hold the exact score of the same rows.

    python -m benchmarks scores --runs 1000             scores.csv; a quarter of an hour of one core
    python -m benchmarks scores --verdict               what the file says about the aim

Classes are "even", "rare" (about 7 % positive), "very rare" (1.4 %) or three of unequal size;
targets are "normal", or "skewed" so that their range holds much more than they need. Every metric
is asked for by itself, with all the budget. For a matrix or a curve the figures are means over its
entries, and "least" is the worst of them. "silent" is the share of intervals that are all that is
possible, as noise leaves nothing to say; they are never wrong, so coverage may exceed its level.
"""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path

import numpy as np
from sklearn import metrics as plain
from sklearn.linear_model import LinearRegression, LogisticRegression

import skdp
from benchmarks import results_file
from skdp.linear_model import SeededNoiseWarning
from skdp.metrics import evaluate
from skdp.metrics.scores import ScoreCurve, ScoreMatrix

LEVEL, BAND = 0.95, (0.93, 0.97)  # of intervals; the coverage that is aimed at
ROWS = (500, 3_000, 30_000)
EPSILONS = (1.0, 0.3, 3.0)
# Offsets of the margins of classes, which make them rare.
CLASSES = {"even": (0.0,), "rare": (-3.0,), "very rare": (-5.0,), "three": (0.0, -1.0, -3.0)}
OF_ALL = ("accuracy", "balanced_accuracy", "confusion_matrix", "log_loss")
OF_TWO = (
    *OF_ALL, "precision", "recall", "f1", "brier_score_loss", "roc_auc", "roc_curve",
    "calibration_curve",
)  # fmt: skip
OF_NUMBERS = ("r2", "mean_squared_error", "mean_absolute_error")
TARGETS = {"normal": (-6.0, 6.0), "skewed": (-10.0, 30.0)}  # with the range that they are cut to
KEY = ("epsilon", "rows", "kind", "metric")
COLUMNS = (*KEY, "runs", "coverage", "least", "silent", "noise_std")


def fitted(kind: str, n_rows: int):
    """Return a model without privacy, and the rows that it is judged by."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n_rows, 5))
    margins = X @ [1.0, -1.0, 0.5, 0.0, 0.0]
    if kind in TARGETS:
        errors = rng.exponential(size=n_rows) - 1 if kind == "skewed" else rng.normal(size=n_rows)
        y = margins + (3 * errors if kind == "skewed" else errors)
        return LinearRegression().fit(X, y), X, y
    if kind == "three":
        margins = np.column_stack([margins, -margins, X[:, 2]]) + CLASSES[kind]
        y = np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)
    else:
        y = (margins + CLASSES[kind][0] + rng.logistic(size=n_rows) > 0).astype(int)
    return LogisticRegression().fit(X, y), X, y


def exact(model, X, y, name: str, options):
    """Return the exact score of these rows, an AUC without bins; None for a curve."""
    if name in ("roc_curve", "calibration_curve"):
        return None
    if name == "roc_auc":
        return plain.roc_auc_score(y, model.predict_proba(X)[:, 1])
    if name == "confusion_matrix":
        return plain.confusion_matrix(y, model.predict(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.PrivacyWarning)
        return evaluate(model, X, y, name, epsilon=math.inf, **options)[name].value


def exact_curve(curve: ScoreCurve, positives, negatives):
    """Return the exact y of a curve at the thresholds that were released."""
    at = curve.thresholds if curve.name == "roc_curve" else np.append(curve.thresholds, np.inf)
    above = len(positives) - np.searchsorted(positives, at)
    if curve.name == "roc_curve":
        return above / len(positives)
    with np.errstate(invalid="ignore"):
        hits = -np.diff(above)
        return hits / (hits - np.diff(len(negatives) - np.searchsorted(negatives, at)))


def held(score, truth, ranked):
    """Which intervals hold the truth, and which say nothing, entry by entry."""
    if isinstance(score, ScoreMatrix):
        low, high = score.interval(LEVEL)
        return ((low <= truth) & (truth <= high)).ravel(), np.zeros(truth.size, dtype=bool)
    if isinstance(score, ScoreCurve):
        points, truth = score.y, exact_curve(score, *ranked)
        limits = (0.0, 1.0)
    else:
        points, truth, limits = (score,), np.array([truth]), score.limits
    ends = np.array([point.interval(LEVEL) for point in points])
    silent = (ends[:, 0] <= min(limits)) & (ends[:, 1] >= max(limits))
    # A bin without rows has no share of positives to hold.
    return (ends[:, 0] <= truth) & (truth <= ends[:, 1]) | np.isnan(truth), silent


def measure(kind: str, n_rows: int, name: str, epsilon: float, runs: int) -> dict:
    """Return the line of one metric on one set of rows."""
    model, X, y = fitted(kind, n_rows)
    options = {"target_range": TARGETS[kind]} if kind in TARGETS else {}
    truth, ranked = exact(model, X, y, name, options), None
    if name.endswith("_curve"):
        chances = model.predict_proba(X)[:, 1]
        ranked = np.sort(chances[y == 1]), np.sort(chances[y == 0])
    covered, silent, stds = [], [], []
    for seed in range(runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            score = evaluate(
                model, X, y, name, epsilon=epsilon, noise_source="seeded", random_state=seed,
                **options,
            )[name]  # fmt: skip
        one, nothing = held(score, truth, ranked)
        # Bins of a curve differ in number, and its ends are known: means over its points.
        covered.append(np.mean(one) if ranked else one)
        silent.append(np.mean(nothing))
        stds.append(getattr(score, "noise_std", math.nan))
    by_entry = np.mean(covered, axis=0)
    return {
        "epsilon": epsilon, "rows": n_rows, "kind": kind, "metric": name, "runs": runs,
        "coverage": np.mean(by_entry), "least": np.min(by_entry), "silent": np.mean(silent),
        "noise_std": np.median(stds),
    }  # fmt: skip


def cells(names=()):
    """Kind, number of rows, metric: those of one kind side by side."""
    kinds = {
        **dict.fromkeys(CLASSES, OF_TWO),
        "three": OF_ALL,
        **dict.fromkeys(TARGETS, OF_NUMBERS),
    }
    return [
        (kind, n_rows, name)
        for n_rows, (kind, metrics) in itertools.product(ROWS, kinds.items())
        for name in metrics
        if not names or name in names
    ]


def run(output: Path, command: str, runs: int, epsilons=EPSILONS, names=()) -> None:
    """Measure and write the table after every line; lines that it has are kept."""
    lines = results_file.read(output)[1]
    for epsilon, (kind, n_rows, name) in itertools.product(epsilons, cells(names)):
        key = (f"{epsilon:g}", str(n_rows), kind, name)
        if any(tuple(line[part] for part in KEY) == key for line in lines):
            continue
        found = measure(kind, n_rows, name, epsilon, runs)
        lines.append({part: _text(found[part]) for part in COLUMNS})
        print(*lines[-1].values(), flush=True)
        results_file.write(output, [command], COLUMNS, lines)


def verdict(path: Path) -> list[str]:
    """Say which lines miss the aim, allowing for silent intervals and for chance."""
    missed, lines = [], results_file.read(path)[1]
    for line in lines:
        chance = 2 * math.sqrt(0.05 * 0.95 / float(line["runs"]))
        most = max(BAND[1], LEVEL + float(line["silent"])) + chance
        if not BAND[0] - chance <= float(line["coverage"]) <= most:
            missed.append(", ".join(f"{part} {value}" for part, value in line.items()))
    inside = sum(BAND[0] <= float(line["coverage"]) <= BAND[1] for line in lines)
    return [
        f"{len(lines)} metrics and sets of rows: {inside} cover {BAND[0]:g} to {BAND[1]:g}.",
        f"{len(missed)} miss it by more than chance and silent intervals explain:",
        *missed,
    ]


def _text(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
