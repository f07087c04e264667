"""The demonstration behind ``python -m skdp``: private models beside non-private references."""

import argparse
import csv
import importlib
import re
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp._numbers import AnyArray, text_table
from skdp.accounting import PrivacyStatement
from skdp.linear_model import DPLogisticRegression, DPRidge, NoiseWarning

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SHOWN_EPSILON = 1.0  # of the model whose privacy statement is printed
REPEATS, QUICK_REPEATS = 20, 2
FIGURES = "data,measure,rows,columns,epsilon,splits,score,low,high,non_private,constant"
TITLE = "Private linear models beside their non-private references"


@dataclass(frozen=True)
class Experiment:
    """A data set, a private model of it, a non-private reference, and a constant prediction.

    Attributes
    ----------
    data, measure : str
        Name of the data, and of the score on held-out rows.
    load : callable () -> (X, y)
    private : callable (epsilon) -> estimator
    reference, constant : callable () -> estimator
    """

    data: str
    measure: str
    load: Callable[[], tuple[AnyArray, AnyArray]]
    private: Callable[[float], DPLogisticRegression | DPRidge]
    reference: Callable[[], Any]
    constant: Callable[[], Any]


@dataclass
class Result:
    """Scores for one data set and one epsilon, over all repeats."""

    experiment: Experiment
    epsilon: float
    scores: list[float] = field(default_factory=list)
    reference_scores: list[float] = field(default_factory=list)
    constant_scores: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    shape: tuple[int, int] = (0, 0)
    model: Any = None

    @property
    def statement(self) -> PrivacyStatement:
        """The privacy statement of the last model."""
        statement: PrivacyStatement = self.model.privacy_
        return statement


EXPERIMENTS = (
    Experiment(
        "breast cancer",
        "accuracy",
        lambda: datasets.load_breast_cancer(return_X_y=True),
        lambda epsilon: DPLogisticRegression(epsilon=epsilon, classes=[0, 1]),
        lambda: LogisticRegression(max_iter=1000),
        DummyClassifier,
    ),
    Experiment(
        "digits",
        "accuracy",
        lambda: datasets.load_digits(return_X_y=True),
        lambda epsilon: DPLogisticRegression(epsilon=epsilon, classes=list(range(10))),
        lambda: LogisticRegression(max_iter=1000),
        DummyClassifier,
    ),
    Experiment(
        "diabetes",
        "R²",
        lambda: datasets.load_diabetes(return_X_y=True),
        lambda epsilon: DPRidge(epsilon=epsilon),
        Ridge,
        DummyRegressor,
    ),
)


def measure(
    experiments: Iterable[Experiment],
    epsilons: Sequence[float],
    repeats: int,
    advance: Callable[[str], object] = lambda data: None,
) -> list[Result]:
    """Fit every private model and its non-private reference on ``repeats`` splits of the data.

    Parameters
    ----------
    experiments : iterable of Experiment
    epsilons : sequence of float
    repeats : int
        Splits into three quarters for fitting and one for scoring, the same for all epsilons.
    advance : callable (data) -> object
        Called after every fit, with the name of the data.

    Returns
    -------
    list of Result
        By experiment, then by epsilon.
    """
    results = []
    for experiment in experiments:
        X, y = experiment.load()
        row = [Result(experiment, epsilon) for epsilon in epsilons]
        for seed in range(repeats):
            fitting, held_out, y_fitting, y_held_out = train_test_split(X, y, random_state=seed)
            reference = make_pipeline(StandardScaler(), experiment.reference()).fit(
                fitting, y_fitting
            )
            reference_score = reference.score(held_out, y_held_out)
            constant = experiment.constant().fit(fitting, y_fitting)
            constant_score = constant.score(held_out, y_held_out)
            advance(experiment.data)
            for result in row:
                model = experiment.private(result.epsilon)
                start = time.perf_counter()
                model.fit(fitting, y_fitting)
                result.seconds.append(time.perf_counter() - start)
                result.scores.append(model.score(held_out, y_held_out))
                result.reference_scores.append(reference_score)
                result.constant_scores.append(constant_score)
                result.shape, result.model = fitting.shape, model
                advance(experiment.data)
        results += row
    return results


# ------------------------------------------------------------------ what is printed


def table(results: Sequence[Result]) -> str:
    """Return a table with a line for every data set and epsilon."""
    head = ("data", "model", "epsilon", "delta", "score", "non-private", "constant", "seconds")
    lines: list[tuple[str, ...]] = [head]
    for number, result in enumerate(results):
        if number and result.experiment is not results[number - 1].experiment:
            lines.append(("",) * len(head))
        low, high = _range(result.scores)
        lines.append(
            (
                result.experiment.data,
                type(result.model).__name__,
                f"{result.epsilon:g}",
                f"{result.statement.delta:g}",
                f"{np.median(result.scores):.3f} ({low:.3f} to {high:.3f})",
                f"{np.median(result.reference_scores):.3f}",
                f"{np.median(result.constant_scores):.3f}",
                f"{np.mean(result.seconds):.3f}",
            )
        )
    first, *others = text_table(lines, "<<" + ">" * (len(head) - 2))
    return "\n".join([first, "-" * len(first), *others])


def _range(scores: Sequence[float]) -> list[float]:
    """Return the bounds of the middle 80 per cent of the scores.

    At small budgets a fit now and then finds the range of targets wrong by far; its R² has no
    lower limit, and would be most of a mean.
    """
    return [float(bound) for bound in np.quantile(scores, (0.1, 0.9))]


def _legend(results: Sequence[Result]) -> str:
    measures: dict[str, list[str]] = {}
    for result in results:
        names = measures.setdefault(result.experiment.measure, [])
        if result.experiment.data not in names:
            names.append(result.experiment.data)
    scored = ", ".join(f"{name} for {' and '.join(data)}" for name, data in measures.items())
    repeats = len(results[0].scores)
    return "\n".join(
        [
            f"score        {scored}, on a quarter of the rows,",
            "             which was held out; median (and middle 80 per cent)",
            f"             of {repeats} splits, each with fresh noise",
            "non-private  median score of LogisticRegression or Ridge of scikit-learn, same splits",
            "constant     the most frequent class, or the mean target, whatever the columns say",
            "seconds      one private fit, scaling included",
        ]
    )


def _privacy(results: Sequence[Result]) -> str:
    """One statement in full, and what the other models assume besides."""
    shown = min(results, key=lambda result: abs(result.epsilon - SHOWN_EPSILON))
    listed = {_without_numbers(text) for text in shown.statement.assumptions}
    lines = [
        "What is guaranteed and what was assumed public",
        "",
        f"The privacy statement (privacy_) of the last model of {shown.experiment.data} with "
        f"epsilon = {shown.epsilon:g}:",
        "",
        *(f"    {line}" for line in str(shown.statement).splitlines()),
        "",
        "The other models assume the same of their own rows and columns, and besides:",
    ]
    for result in results:
        for text in result.statement.assumptions:
            if _without_numbers(text) not in listed:
                listed.add(_without_numbers(text))
                lines.append(f"    - {result.experiment.data}: {text}")
    return "\n".join(lines)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d[\d,.]*", "#", text)


def _each_once(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the texts of warnings, as lines of a list."""
    texts = dict.fromkeys(str(warning.message) for warning in caught)
    return [
        textwrap.fill(text, 100, initial_indent="    - ", subsequent_indent="      ")
        for text in texts
    ]


NOT_INCLUDED = """\
Not part of the guarantee

    - Scores: they are computed on held-out rows without noise. The rows here are public; the score
      of a model on private rows tells something about them.
    - The whole table: a budget pays for one fit. Several fits on the same rows cost more together;
      skdp.total_privacy says how much."""


def write_figures(results: Sequence[Result], path: Path) -> None:
    """Write the figures of the table as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# python -m skdp --csv {path}\n{FIGURES}\n")
        writer = csv.writer(file, lineterminator="\n")
        for result in results:
            experiment, scores = result.experiment, result.scores
            yardsticks = np.median([result.reference_scores, result.constant_scores], axis=1)
            figures = [np.median(scores), *_range(scores), *yardsticks]
            size = [*result.shape, f"{result.epsilon:g}", len(scores)]
            rounded = [f"{figure:.6f}" for figure in figures]
            writer.writerow([experiment.data, experiment.measure, *size, *rounded])


# ------------------------------------------------------------------ the picture


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw score against epsilon, one panel for each data set, and save it."""
    figure_module, ticker = _optional("matplotlib.figure"), _optional("matplotlib.ticker")
    experiments = list(dict.fromkeys(result.experiment for result in results))
    ink, grey, blue = "#222222", "#767676", "#1f6f9f"
    figure = figure_module.Figure(figsize=(3.5 * len(experiments), 4.2), layout="constrained")
    panels = figure.subplots(1, len(experiments), sharey=True, squeeze=False)[0]
    for axes, experiment in zip(panels, experiments, strict=True):
        mine = [result for result in results if result.experiment is experiment]
        epsilons = [result.epsilon for result in mine]
        medians = np.array([np.median(result.scores) for result in mine])
        bounds = np.array([_range(result.scores) for result in mine])
        best = float(np.median(mine[0].reference_scores))
        axes.axhline(best, color=grey, linestyle="--", linewidth=1.3)
        axes.fill_between(epsilons, *bounds.T, color=blue, alpha=0.18, linewidth=0)
        axes.plot(epsilons, medians, color=blue, marker="o", markersize=5, linewidth=1.8)
        # Labels stand next to their lines: no legend to look up.
        axes.annotate(
            f"non-private {best:.2f}", (epsilons[0], best), (-6, 4), textcoords="offset points",
            color=grey, fontsize=9,
        )  # fmt: skip
        for epsilon, median in zip(epsilons, medians, strict=True):
            axes.annotate(
                f"{median:.2f}", (epsilon, median), (3, -6), textcoords="offset points",
                color=blue, fontsize=8.5, va="top", ha="left",
            )  # fmt: skip
        rows, columns = mine[0].shape
        axes.set_title(
            f"{experiment.data}: {experiment.measure}", loc="left", color=ink, weight="bold", pad=20
        )
        axes.text(
            0, 1.02, f"{type(mine[0].model).__name__}, {rows:,} rows, {columns} columns",
            transform=axes.transAxes, color=grey, fontsize=8.5,
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(epsilons[0] / 1.6, epsilons[-1] * 2.2)
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.set_ylim(-0.12, 1.08)
        axes.set_yticks(np.linspace(0, 1, 6))
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0, colors=ink)
    panels[0].set_ylabel("score on held-out rows", color=ink)
    figure.supxlabel("epsilon, log scale (left: more private)", color=ink, fontsize=10)
    figure.suptitle(TITLE + "\n", x=0.01, ha="left", color=ink, fontsize=13)
    figure.text(
        0.01, 0.905, f"Median of {len(results[0].scores)} splits, each with fresh noise; band: the "
        f"middle 80 per cent; delta = {results[0].statement.delta:g}", color=grey, fontsize=9,
    )  # fmt: skip
    figure.savefig(path, dpi=150)


# ------------------------------------------------------------------ the command


def _optional(module: str) -> Any:
    """Import a module of the extra "demo", or raise with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SystemExit(
            f"python -m skdp needs {module.partition('.')[0]}, which belongs to the extra 'demo': "
            'install it with pip install ".[demo]" in the directory of this project.'
        ) from None


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m skdp",
        description="Fit differentially private linear models on data that ships with "
        "scikit-learn, beside their non-private references; print a table, draw a picture.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats, a few seconds")
    parser.add_argument(
        "--output", type=Path, default=Path("skdp_report.png"), metavar="PATH",
        help="where to write the picture; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--csv", type=Path, metavar="PATH", help="where to write the table's figures, if at all"
    )
    options = parser.parse_args(arguments)
    for name, path in (("--output", options.output), ("--csv", options.csv)):
        if path is not None and not path.resolve().parent.is_dir():
            parser.error(f"{name}: there is no directory {path.resolve().parent}.")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration.

    Parameters
    ----------
    arguments : sequence of str or None, default=None
        Command-line arguments; None takes those of the process.

    Returns
    -------
    int
        Exit status.
    """
    options = _parse(arguments)
    tqdm = _optional("tqdm").tqdm
    _optional("matplotlib")  # missed now, not after the work
    repeats = QUICK_REPEATS if options.quick else REPEATS
    start = time.perf_counter()
    with tqdm(total=len(EXPERIMENTS) * repeats * (1 + len(EPSILONS)), unit="fit") as bar:

        def advance(data: str) -> None:
            bar.set_description(data, refresh=False)
            bar.update()

        # Warnings are part of the report, each once: among the lines of the bar they are not read.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", NoiseWarning)
            results = measure(EXPERIMENTS, EPSILONS, repeats, advance)
    draw(results, options.output)
    if options.csv is not None:
        write_figures(results, options.csv)
    warned = "\n".join(["Warnings of the fits, each once", "", *_each_once(caught)])
    sections = [TITLE, table(results), _legend(results), warned, _privacy(results), NOT_INCLUDED]
    print("\n\n".join(sections))
    print(f"\nPicture: {options.output}  ({time.perf_counter() - start:.0f} s in all)")
    return 0
