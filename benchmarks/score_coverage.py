"""How often intervals of private scores cover the exact score: of the same rows, of a population.

    python -m benchmarks scores rows --runs 1000        scores.csv; a quarter of an hour of one core
    python -m benchmarks scores population --runs 240   scores.csv; five minutes of one core
    python -m benchmarks scores --verdict               what the file says about the aim

Names of metrics after the kind of interval measure those alone. Runs of "rows" draw noise anew, for
the same rows; runs of "population" draw other rows, too, for the same model, whose score is that of
a million rows. Classes are "even", "rare" (about 7 % positive), "very rare" (1.4 %) or three of
unequal size; targets are "normal", or "skewed" so that their range holds much more than they need,
or have errors of a Student distribution with 2.5 degrees of freedom or of a log-normal one. Every
metric is requested by itself, with all the budget. For a matrix or a curve the figures are means
over its entries, and "least" is the worst of them. "silent" is the share of intervals that are all
that is possible, as noise leaves nothing to say; they are never wrong, so coverage may exceed its
level.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from pathlib import Path

import numpy as np
from sklearn import metrics as plain
from sklearn.linear_model import LinearRegression, LogisticRegression

import skdp
from benchmarks import results_file
from skdp import SeededNoiseWarning
from skdp.metrics import evaluate

LEVEL, BAND = 0.95, (0.93, 0.97)  # of intervals; the coverage that is aimed at
ROWS = {"rows": (500, 3_000, 30_000), "population": (300, 5_000)}
POPULATION, TRAINING = 1_000_000, 3_000  # rows that stand for the population; that its model has
EPSILONS = (1.0, 0.3, 3.0)
# Offsets of the margins of classes, which make them rare.
CLASSES = {"even": (0.0,), "rare": (-3.0,), "very rare": (-5.0,), "three": (0.0, -1.0, -3.0)}
OF_ALL = ("accuracy", "log_loss")
OF_TWO = (
    *OF_ALL, "precision", "recall", "f1", "roc_auc",
)  # fmt: skip
OF_NUMBERS = ("r2", "mean_squared_error", "mean_absolute_error")
# Errors by the name of the targets, and the range that targets are cut to.
ERRORS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: 3 * (rng.exponential(size=n) - 1),
    "student": lambda rng, n: rng.standard_t(2.5, size=n),
    "log-normal": lambda rng, n: rng.lognormal(size=n) - math.exp(0.5),
}
TARGETS = {
    "normal": (-6.0, 6.0), "skewed": (-10.0, 30.0), "student": (-9.0, 9.0),
    "log-normal": (-6.0, 14.0),
}  # fmt: skip
KINDS = {
    "rows": {
        **dict.fromkeys(CLASSES, OF_TWO), "three": OF_ALL,
        **dict.fromkeys(("normal", "skewed"), OF_NUMBERS),
    },
    "population": {
        **dict.fromkeys(("even", "rare"), OF_TWO),
        **dict.fromkeys(TARGETS, OF_NUMBERS),
    },
}  # fmt: skip
KEY = ("of", "epsilon", "rows", "kind", "metric")
COLUMNS = (*KEY, "runs", "coverage", "least", "silent", "noise_std")


def drawn(kind: str, n_rows: int, rng):
    """Return rows and their labels or targets."""
    X = rng.standard_normal((n_rows, 5))
    margins = X @ [1.0, -1.0, 0.5, 0.0, 0.0]
    if kind in ERRORS:
        return X, margins + ERRORS[kind](rng, n_rows)
    if kind == "three":
        margins = np.column_stack([margins, -margins, X[:, 2]]) + CLASSES[kind]
        y = np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)
    else:
        y = (margins + CLASSES[kind][0] + rng.logistic(size=n_rows) > 0).astype(int)
    return X, y


def fitted(kind: str, n_rows: int):
    """Return a model without privacy, and the rows that it was fitted on."""
    X, y = drawn(kind, n_rows, np.random.default_rng(1))
    model = LinearRegression() if kind in TARGETS else LogisticRegression()
    return model.fit(X, y), X, y


@functools.cache
def population_score(kind: str, name: str) -> float:
    """Return the score of the model of `TRAINING` rows on a population."""
    X, y = drawn(kind, POPULATION, np.random.default_rng(2))
    return exact(fitted(kind, TRAINING)[0], X, y, name, options_of(kind))


def options_of(kind: str) -> dict:
    """Return what `evaluate` needs to know of targets."""
    return {"target_range": TARGETS[kind]} if kind in TARGETS else {}


def exact(model, X, y, name: str, options):
    """Return the exact score of these rows, one of a ranking without bins."""
    if name == "roc_auc":
        return plain.roc_auc_score(y, model.predict_proba(X)[:, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.PrivacyWarning)
        return evaluate(model, X, y, name, epsilon=math.inf, **options)[name].value


def held(score, truth, of):
    """Which intervals hold the truth, and which say nothing."""
    (low, high), limits = score.interval(LEVEL, of), score.limits
    return np.array([low <= truth <= high]), np.array([low <= min(limits) and high >= max(limits)])


def measure(kind: str, n_rows: int, name: str, epsilon: float, runs: int, of: str = "rows") -> dict:
    """Return the line of one metric on one set of rows, or of one population."""
    options = options_of(kind)
    if of == "rows":
        model, X, y = fitted(kind, n_rows)
        truth = exact(model, X, y, name, options)
    else:
        model, truth = fitted(kind, TRAINING)[0], population_score(kind, name)
    covered, silent, stds = [], [], []
    for seed in range(runs):
        if of == "population":
            X, y = drawn(kind, n_rows, np.random.default_rng((3, seed)))
        seeded = skdp.Privacy(noise=skdp.SeededNoise(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            found = evaluate(model, X, y, name, epsilon=epsilon, privacy=seeded, **options)
        score = found[name]
        one, nothing = held(score, truth, of)
        covered.append(one)
        silent.append(np.mean(nothing))
        stds.append(getattr(score, "noise_std", math.nan))
    by_entry = np.mean(covered, axis=0)
    return {
        "of": of, "epsilon": epsilon, "rows": n_rows, "kind": kind, "metric": name, "runs": runs,
        "coverage": np.mean(by_entry), "least": np.min(by_entry), "silent": np.mean(silent),
        "noise_std": np.median(stds),
    }  # fmt: skip


def cells(names=()):
    """Kind of interval, kind of rows, their number, metric: those of one kind side by side.

    Parameters
    ----------
    names : sequence of str
        Of intervals ("rows", "population") and of metrics; all where none is named.
    """
    intervals = [of for of in KINDS if of in names] or list(KINDS)
    chosen = {name for name in names if name not in KINDS}
    return [
        (of, kind, n_rows, name)
        for of in intervals
        for n_rows, (kind, metrics) in itertools.product(ROWS[of], KINDS[of].items())
        for name in metrics
        if not chosen or name in chosen
    ]


def run(output: Path, command: str, runs: int, epsilons=EPSILONS, names=()) -> None:
    """Measure and write the table after every line; lines that it has are kept."""
    lines = results_file.read(output)[1]
    for epsilon, (of, kind, n_rows, name) in itertools.product(epsilons, cells(names)):
        key = (of, f"{epsilon:g}", str(n_rows), kind, name)
        if any(tuple(line[part] for part in KEY) == key for line in lines):
            continue
        found = measure(kind, n_rows, name, epsilon, runs, of)
        results_file.add(output, command, COLUMNS, lines, [found], digits=4)


def verdict(path: Path) -> list[str]:
    """Say which lines miss the aim, allowing for silent intervals and for chance.

    Intervals of the population may cover more: where noise hides the fourth moments that they need,
    these are taken to be as large as the noise allows.
    """
    missed, lines = [], results_file.read(path)[1]
    for line in lines:
        chance = 2 * math.sqrt(0.05 * 0.95 / float(line["runs"]))
        most = max(BAND[1], LEVEL + float(line["silent"])) + chance
        most = 1.0 if line["of"] == "population" else most
        if not BAND[0] - chance <= float(line["coverage"]) <= most:
            missed.append(", ".join(f"{part} {value}" for part, value in line.items()))
    inside = sum(BAND[0] <= float(line["coverage"]) <= BAND[1] for line in lines)
    return [
        f"{len(lines)} metrics and sets of rows: {inside} cover {BAND[0]:g} to {BAND[1]:g}.",
        f"{len(missed)} miss it by more than chance and silent intervals explain:",
        *missed,
    ]
