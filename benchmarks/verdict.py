"""What the table says about the aims: each as met or missed, with the figures.

Every aim is about default parameters, delta = 1e-6 and means over at least ten runs. Distances to
the non-private model are means of differences on the same split.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks import table

DEFAULT, TWIN, CONSTANT = "skdp", "non-private", "constant"
LARGE = 5000
LARGEST_BUDGET = 10.0

# Data set, epsilon, least mean score, columns raw.
THRESHOLDS = (
    ("california_housing", 1.0, 0.58),
    ("california_housing", 0.3, 0.50),
    ("diamonds", 1.0, 0.90),
    ("adult", 1.0, 0.845),
    ("adult", 0.1, 0.83),
)
RAW_DISTANCE = (("bank", "bike", "wine"), 1.0, 0.02)
# Epsilon -> most that accuracy, log loss, AUC and R2 may lose, columns standardised.
DISTANCES = {1.0: (0.005, 0.015, 0.005, 0.01), 0.1: (0.01, 0.05, 0.015, 0.03)}
WORSE_THAN_CONSTANT = 0.02
TINY = 0.002  # of a score, log loss or AUC
RAW_RIVALS = "raw columns, no rival better by two standard errors and 0.002 (wanted: 95 %)"
FEWEST_RUNS = 10
FALSE_ALARMS = 40  # cells of which one at most may be warned of without need
# Column of the table, sign of a gain, name.
METRICS = (("score", 1.0, "score"), ("log_loss", -1.0, "log loss"), ("auc", 1.0, "AUC"))


@dataclass(frozen=True)
class Finding:
    """One aim in one cell.

    Attributes
    ----------
    aim, cell : str
    figure : str
        What was measured, and what was wanted.
    met : bool or None
        None where the table has no row for it.
    """

    aim: str
    cell: str
    figure: str
    met: bool | None

    def __str__(self) -> str:
        word = {True: "met   ", False: "MISSED", None: "absent"}[self.met]
        return f"{word}  {self.cell}: {self.figure}"


class Table:
    """Rows by data set, condition, method and epsilon."""

    def __init__(self, rows):
        self.rows = {
            (row["data"], row["condition"], row["method"], float(row["epsilon"])): row
            for row in rows
        }

    def get(self, data, condition, method, epsilon):
        return self.rows.get((data, condition, method, epsilon))

    def cells(self) -> list[tuple[str, str, float]]:
        """Cells of the default: data set, condition, epsilon."""
        return sorted(
            (data, condition, epsilon)
            for data, condition, method, epsilon in self.rows
            if method == DEFAULT
        )

    def rivals(self, data, condition, epsilon) -> list[dict]:
        """Rows of other private methods in a cell."""
        return [
            row
            for (name, kind_of_columns, _, budget), row in self.rows.items()
            if (name, kind_of_columns, budget) == (data, condition, epsilon)
            and row["kind"] == "rival"
        ]


def known(value) -> bool:
    """Whether there is a figure."""
    return value is not None and not math.isnan(value)


def is_classification(row) -> bool:
    return known(row.get("log_loss"))


def raw_thresholds(cells: Table) -> Iterator[Finding]:
    """Scores on raw columns, no bounds, no scaler."""
    aim = "raw columns, score"
    for data, epsilon, wanted in THRESHOLDS:
        row = cells.get(data, "raw", DEFAULT, epsilon)
        cell = f"{data}, epsilon {epsilon:g}"
        if row is None:
            yield Finding(aim, cell, f"wanted {wanted:g}", None)
            continue
        figure = f"{row['score']:.4f}, wanted {wanted:g}"
        yield Finding(aim, cell, figure, row["score"] >= wanted)
    names, epsilon, most = RAW_DISTANCE
    for data in names:
        row = cells.get(data, "raw", DEFAULT, epsilon)
        cell = f"{data}, epsilon {epsilon:g}"
        if row is None:
            yield Finding(aim, cell, f"wanted {most:g} from non-private at most", None)
            continue
        figure = f"{row['score_gap']:+.4f} from non-private, wanted {-most:g}"
        yield Finding(aim, cell, figure, row["score_gap"] >= -most)


def losses(row) -> Iterator[tuple[str, float, float]]:
    """Metric, what is lost to the non-private model, what may be lost at that epsilon."""
    accuracy, loss, auc, r2 = DISTANCES[row["epsilon"]]
    wanted = [("R2", -row["score_gap"], r2)]
    if is_classification(row):
        wanted = [
            ("accuracy", -row["score_gap"], accuracy),
            ("log loss", row["log_loss_gap"], loss),
            ("AUC", -row.get("auc_gap", math.nan), auc),
        ]
    yield from (item for item in wanted if known(item[1]))


def standardised_distances(cells: Table) -> Iterator[Finding]:
    """Distances to the non-private model on standardised columns, n >= 5000."""
    aim = "standardised columns, distance to non-private, n >= 5000"
    for data, condition, epsilon in cells.cells():
        row = cells.get(data, condition, DEFAULT, epsilon)
        if condition != "standardised" or epsilon not in DISTANCES or row["rows"] < LARGE:
            continue
        for name, lost, most in losses(row):
            figure = f"{name} loses {lost:.4f}, at most {most:g}"
            yield Finding(aim, f"{data}, epsilon {epsilon:g}", figure, lost <= most)


def advantage(row, other, metric="score", sign=1.0) -> tuple[float, float]:
    """How much better ``other`` is than ``row``, and the standard error of that.

    Scores are compared run by run, as runs of a seed share their split, if not their budget. Other
    metrics are compared by their distances to the non-private model, as if these were independent.
    """
    mine, theirs = row.get(table.SCORES, []), other.get(table.SCORES, [])
    if metric == "score" and len(mine) == len(theirs) > 1:
        return table.mean_and_error(sign * (np.array(theirs) - mine))
    difference = sign * (other[f"{metric}_gap"] - row[f"{metric}_gap"])
    return difference, math.hypot(other[f"{metric}_gap_se"], row[f"{metric}_gap_se"])


def against_rivals(cells: Table) -> Iterator[Finding]:
    """No rival better by more than two standard errors; the strongest rival of each cell.

    On raw columns it is judged once more with tiny differences forgiven.
    """
    aim = "no rival better by more than two standard errors"
    for data, condition, epsilon in cells.cells():
        row = cells.get(data, condition, DEFAULT, epsilon)
        for metric, sign, word in METRICS:
            others = [
                other
                for other in cells.rivals(data, condition, epsilon)
                if known(other.get(f"{metric}_gap")) and known(row.get(f"{metric}_gap"))
            ]
            if not others:
                continue
            # The one that is surely better by most, or else the one with the best mean.
            found = [(*advantage(row, other, metric, sign), other) for other in others]
            better, error, best = max(found, key=lambda item: (item[0] > 2 * item[1], item[0]))
            figure = (
                f"{word} {row[metric]:.4f}, {best['method']} {best[metric]:.4f}, "
                f"{better:+.4f} +- {error:.4f}"
            )
            cell = f"{data}, {condition}, epsilon {epsilon:g}"
            yield Finding(f"{aim}, {word}", cell, figure, not better > 2 * error)
            if condition == "raw":
                met = not better > max(2 * error, TINY)
                yield Finding(RAW_RIVALS, f"{data}, epsilon {epsilon:g}", figure, met)


def by_rival(cells: Table) -> Iterator[str]:
    """Lines: how often each rival is better by two standard errors and a tiny difference.

    Apart from that, how often it is where skdp is behind the non-private model by as much: with its
    bounds, a rival may be better than that, too.
    """
    better, behind = defaultdict(list), defaultdict(list)
    for data, condition, epsilon in cells.cells():
        row = cells.get(data, condition, DEFAULT, epsilon)
        for other in cells.rivals(data, condition, epsilon):
            for metric, sign, _ in METRICS:
                gap = f"{metric}_gap"
                if not (known(other.get(gap)) and known(row.get(gap))):
                    continue
                difference, error = advantage(row, other, metric, sign)
                least = max(2 * error, TINY)
                key = other["method"], condition
                better[key].append(difference > least)
                behind[key].append(difference > least and -sign * row[gap] > least)
    for key, each in sorted(better.items()):
        yield (
            f"{key[0]}, {key[1]} columns: better in {np.mean(each):.1%} of {len(each)} scores; "
            f"in {np.mean(behind[key]):.1%} the non-private model is, too"
        )


def against_constant(cells: Table) -> Iterator[Finding]:
    """Never worse than the constant predictor by more than 0.02."""
    for data, condition, epsilon in cells.cells():
        row = cells.get(data, condition, DEFAULT, epsilon)
        constant = cells.get(data, condition, CONSTANT, math.inf)
        if constant is None or epsilon < 0.1:
            continue
        difference = row["score_gap"] - constant["score_gap"]
        yield Finding(
            "never worse than the constant predictor by more than 0.02",
            f"{data}, {condition}, epsilon {epsilon:g}",
            f"{row['score']:.4f}, constant {constant['score']:.4f}",
            difference >= -WORSE_THAN_CONSTANT,
        )


def warnings_of_noise(cells: Table) -> Iterator[Finding]:
    """A NoiseWarning in at least half of the runs where these end below a constant, and only there.

    In R2 or log loss; of tables that have counted warnings.
    """
    for data, condition, epsilon in cells.cells():
        row = cells.get(data, condition, DEFAULT, epsilon)
        constant = cells.get(data, condition, CONSTANT, math.inf)
        if constant is None or not known(row.get(table.WARNED)):
            continue
        metric, sign = ("log_loss", -1.0) if is_classification(row) else ("score", 1.0)
        gain, is_warned = sign * (row[metric] - constant[metric]), row[table.WARNED] >= 1 / 2
        figure = f"gains {gain:.4f}, {row[table.WARNED]:.0%} of the runs warn"
        cell = f"{data}, {condition}, epsilon {epsilon:g}"
        if gain < 0:
            yield Finding("worse than a constant, and warned of", cell, figure, is_warned)
        else:
            aim = f"better than a constant, and not warned of (wanted: all but 1 in {FALSE_ALARMS})"
            yield Finding(aim, cell, figure, not is_warned)


def more_budget(cells: Table) -> Iterator[Finding]:
    """Scores do not fall as the budget grows, and end at the non-private one."""
    keys = cells.cells()
    for data, condition in sorted({key[:2] for key in keys}):
        budgets = [epsilon for name, how, epsilon in keys if (name, how) == (data, condition)]
        for less, more in pairwise(budgets):
            row = cells.get(data, condition, DEFAULT, less)
            other = cells.get(data, condition, DEFAULT, more)
            gained, error = advantage(row, other)
            yield Finding(
                "more budget never hurts, two standard errors",
                f"{data}, {condition}, epsilon {less:g} to {more:g}",
                f"{row['score']:.4f} to {other['score']:.4f}, {gained:+.4f} +- {error:.4f}",
                not gained < -2 * error,
            )
        if budgets[-1] > LARGEST_BUDGET:
            row = cells.get(data, condition, DEFAULT, budgets[-1])
            gap, error = row["score_gap"], row["score_gap_se"]
            yield Finding(
                "a huge budget gives the non-private score",
                f"{data}, {condition}, epsilon {budgets[-1]:g}",
                f"{gap:+.4f} +- {error:.4f} from non-private",
                abs(gap) <= max(2 * error, 0.005) or gap > 0,
            )


def enough_runs(cells: Table) -> Iterator[Finding]:
    """Means are over ten runs or more."""
    few = [key for key, row in cells.rows.items() if row["runs"] < FEWEST_RUNS]
    figure = f"{len(few)} of {len(cells.rows)} rows have less"
    yield Finding("ten runs or more", "all rows", figure, not few)


CHECKS = (
    raw_thresholds,
    standardised_distances,
    against_rivals,
    against_constant,
    warnings_of_noise,
    more_budget,
    enough_runs,
)


def findings(rows) -> list[Finding]:
    """All aims in all cells of the table."""
    cells = Table(rows)
    return [finding for check in CHECKS for finding in check(cells)]


def report(rows, everything=True) -> Iterator[str]:
    """Lines: rivals, then the aims, each with the cells where it is missed, or with all of them."""
    yield from by_rival(Table(rows))
    yield from lines(findings(rows), everything)


def lines(found, everything) -> Iterator[str]:
    """Lines of findings, aim by aim."""
    for aim in dict.fromkeys(finding.aim for finding in found):
        own = [finding for finding in found if finding.aim == aim]
        met = sum(finding.met is True for finding in own)
        yield f"{aim}: {met} of {len(own)} met"
        yield from (f"  {finding}" for finding in own if everything or finding.met is not True)
