"""Summarise a table of accuracy: distances to the non-private model, and rivals that win.

Distances and comparisons are means of differences on the same split, at default parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks import table

DEFAULT, TWIN, CONSTANT = "skdp", "non-private", "constant"
# Name, its column in the table, sign of a gain.
METRICS = (("R2", "score", 1), ("accuracy", "score", 1), ("log loss", "log_loss", -1),
           ("AUC", "auc", 1))  # fmt: skip


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


def conditions_and_budgets(cells: Table) -> Iterator[tuple[str, float, list[dict]]]:
    """Condition, epsilon and the rows of the default there."""
    for condition, epsilon in sorted({key[1:] for key in cells.cells()}):
        names = [key[0] for key in cells.cells() if key[1:] == (condition, epsilon)]
        yield condition, epsilon, [cells.get(name, condition, DEFAULT, epsilon) for name in names]


def of_metric(rows, metric) -> list[float]:
    """What each row that has a metric loses in it to the non-private model."""
    column, sign = next((column, sign) for name, column, sign in METRICS if name == metric)
    if metric in ("R2", "accuracy"):
        rows = [row for row in rows if is_classification(row) == (metric == "accuracy")]
    gaps = [row.get(f"{column}_gap") for row in rows]
    return [-sign * gap for gap in gaps if known(gap)]


def distances(cells: Table) -> Iterator[str]:
    """Lines: mean and median of what is lost to the non-private model."""
    for condition, epsilon, rows in conditions_and_budgets(cells):
        lost = {name: of_metric(rows, name) for name, *_ in METRICS}
        figures = [
            f"{name} {np.mean(values):.4f} ({np.median(values):.4f})"
            for name, values in lost.items()
            if values
        ]
        yield f"  {condition}, epsilon {epsilon:g}: {', '.join(figures)}"


def advantage(row, other, metric="score", sign=1) -> tuple[float, float]:
    """How much better ``other`` is than ``row``, and the standard error of that.

    Scores are compared run by run, as runs of a seed share their split, if not their budget. Other
    metrics are compared by their distances to the non-private model, as if these were independent.
    """
    mine, theirs = row.get(table.SCORES, []), other.get(table.SCORES, [])
    if metric == "score" and len(mine) == len(theirs) > 1:
        return table.mean_and_error(sign * (np.array(theirs) - mine))
    difference = sign * (other[f"{metric}_gap"] - row[f"{metric}_gap"])
    return difference, math.hypot(other[f"{metric}_gap_se"], row[f"{metric}_gap_se"])


def lost_cells(cells: Table, metric, sign) -> list[bool]:
    """For each cell with rivals: whether one is better by more than two standard errors."""
    lost = []
    for data, condition, epsilon in cells.cells():
        row = cells.get(data, condition, DEFAULT, epsilon)
        found = [
            advantage(row, other, metric, sign)
            for other in cells.rivals(data, condition, epsilon)
            if known(other.get(f"{metric}_gap")) and known(row.get(f"{metric}_gap"))
        ]
        if found:
            lost.append(any(better > 2 * error for better, error in found))
    return lost


def report(rows) -> Iterator[str]:
    """Lines: how many data sets there are, and distances."""
    yield f"{len({row['data'] for row in rows})} data sets"
    yield "lost to the non-private model: mean (median) over data sets"
    yield from distances(Table(rows))


def read(path, half="all") -> list[dict]:
    """Rows of the data sets of a half from a file, or of all."""
    rows = table.read(path)[1]
    rows = [row for row in rows if half == "all" or row["half"] == half]
    if not rows:
        raise SystemExit(f"{path} has no rows of half {half!r}")
    return rows
