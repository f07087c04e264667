"""The command ``python -m skdp``: a comparison of private models with non-private references.

``python -m skdp ledger`` reads a budget's file.
"""

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp._fitting import ledger
from skdp._numbers import Array, text_table
from skdp.accounting import PrivacyStatement
from skdp.linear_model import DPLogisticRegression, DPRidge

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
REPEATS, QUICK_REPEATS = 20, 2
BAND = (0.1, 0.5, 0.9)  # quantiles of scores: R2 has no lower limit, so a mean would show outliers
TITLE = "Private linear models beside their non-private references"
LEGEND = """\
score        on a quarter of the rows, which was held out: median (and middle 80 per cent)
             of {} splits, each with fresh noise
non-private  median score of LogisticRegression or Ridge of scikit-learn on the same splits
constant     the most frequent class, or the mean target

Scores are exact, which is harmless on these public rows; private rows need private scores.
Several fits on the same rows cost more together: skdp.total_privacy adds them up.
Warnings, such as of too much noise at a small epsilon, are left out here.

Privacy statement (privacy_) of the last model with epsilon 1 of breast cancer"""
EXPERIMENTS = {  # data and score: how to load the data, and a private model of them
    "breast cancer: accuracy": (load_breast_cancer, DPLogisticRegression(classes=range(2))),
    "digits: accuracy": (load_digits, DPLogisticRegression(classes=range(10))),
    "diabetes: R²": (load_diabetes, DPRidge()),
}


class Result(NamedTuple):
    """Scores of a private model and of its non-private references on held-out rows.

    ``scores`` are those of the private model, the quantiles ``BAND`` at each epsilon. ``reference``
    and ``constant`` are median scores of the non-private model and of a constant prediction.
    ``statements`` are those of the last fit with each epsilon.
    """

    data: str
    shape: tuple[int, int]
    scores: Array
    reference: float
    constant: float
    statements: list[PrivacyStatement]


def measure(data: str, repeats: int) -> Result:
    """Fit all models on ``repeats`` splits: three quarters of the rows fit, one quarter scores."""
    load, private = EXPERIMENTS[data]
    X, y = load(return_X_y=True)
    others = [make_pipeline(StandardScaler(), Ridge()), DummyRegressor()]
    if is_classifier(private):
        plain = LogisticRegression(max_iter=1000)
        others = [make_pipeline(StandardScaler(), plain), DummyClassifier()]
    models = [clone(private).set_params(epsilon=epsilon) for epsilon in EPSILONS]
    scores = []
    for seed in range(repeats):
        train, test, y_train, y_test = train_test_split(X, y, random_state=seed)
        fits = [model.fit(train, y_train) for model in (*models, *others)]
        scores.append([model.score(test, y_test) for model in fits])
    bands = np.quantile(scores, BAND, axis=0)
    statements = [model.privacy_ for model in models]
    return Result(data, train.shape, bands[:, :-2], bands[1, -2], bands[1, -1], statements)


def table(results: Sequence[Result]) -> str:
    """Return a table with a line for every data set and epsilon."""
    lines = [["data", "rows", "columns", "epsilon", "score", "non-private", "constant"]]
    for result in results:
        others = [f"{score:.3f}" for score in (result.reference, result.constant)]
        for epsilon, (low, median, high) in zip(EPSILONS, result.scores.T, strict=True):
            score = f"{median:.3f} ({low:.3f} to {high:.3f})"
            lines.append([result.data, *map(str, result.shape), f"{epsilon:g}", score, *others])
    return "\n".join(text_table(lines, "<>>>>>>"))


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw the scores of every data set against epsilon, and save the picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8, 3.8), layout="constrained")
    axes = figure.subplots()
    for number, result in enumerate(results):
        low, median, high = result.scores
        color = f"C{number}"
        axes.fill_between(EPSILONS, low, high, color=color, alpha=0.18)
        axes.plot(EPSILONS, median, marker="o", color=color, label=result.data)
        axes.axhline(result.reference, color=color, linestyle="--")
    axes.set(xscale="log", ylim=(-0.1, 1.05), xlabel="epsilon (left: more private)")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.set_title("score on held-out rows (dashed: without privacy)", fontsize="medium")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=200)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration.

    Parameters
    ----------
    arguments : sequence of str or None, default=None
        Command-line arguments. None uses the arguments of the process.

    Returns
    -------
    int
        Exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m skdp", description=TITLE)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, a few seconds")
    parser.add_argument("--output", type=Path, default=Path("skdp_report.png"), metavar="PATH")
    options = parser.parse_args(arguments)
    if not options.output.resolve().parent.is_dir():
        parser.error(f"--output: there is no directory {options.output.resolve().parent}.")
    if importlib.util.find_spec("matplotlib") is None:  # missed now, not after the work
        parser.error('matplotlib is missing: pip install ".[demo]" in the directory of skdp.')
    repeats = QUICK_REPEATS if options.quick else REPEATS
    start, results = time.perf_counter(), []
    with warnings.catch_warnings(action="ignore"):
        for data in EXPERIMENTS:
            print(f"fitting {data}: {repeats * len(EPSILONS)} private models", file=sys.stderr)
            results.append(measure(data, repeats))
    draw(results, options.output)
    shown = results[0].statements[EPSILONS.index(1.0)]
    print(TITLE, table(results), LEGEND.format(repeats), shown, sep="\n\n")
    print(f"\nPicture: {options.output}  ({time.perf_counter() - start:.0f} s in all)")
    return 0


if __name__ == "__main__":
    is_ledger = sys.argv[1:2] == ["ledger"]
    raise SystemExit(ledger.run_command(sys.argv[2:]) if is_ledger else main())
