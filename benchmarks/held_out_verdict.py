"""What the table of held-out data sets says: distances to non-private, and where skdp fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import table, verdict
from benchmarks.verdict import DEFAULT, DISTANCES, TWIN, Finding, Table

TRAIN_SHARE = 0.75
LARGE = 5000
# Metric, its column in the table, and the sign of a loss there.
METRICS = (("R2", "score", -1), ("accuracy", "score", -1), ("log loss", "log_loss", 1),
           ("AUC", "auc", -1))  # fmt: skip


def conditions_and_budgets(cells: Table) -> Iterator[tuple[str, float, list[dict]]]:
    """Condition, epsilon and the rows of the default there."""
    for condition, epsilon in sorted({key[1:] for key in cells.cells()}):
        names = [key[0] for key in cells.cells() if key[1:] == (condition, epsilon)]
        yield condition, epsilon, [cells.get(name, condition, DEFAULT, epsilon) for name in names]


def of_metric(rows, metric) -> list[float]:
    """What each row loses to the non-private model in a metric, where it has it."""
    (column, sign) = next((column, sign) for name, column, sign in METRICS if name == metric)
    if metric in ("R2", "accuracy"):
        rows = [row for row in rows if verdict.is_classification(row) == (metric == "accuracy")]
    gaps = [row.get(f"{column}_gap") for row in rows]
    return [sign * gap for gap in gaps if verdict.known(gap)]


def distances(cells: Table) -> Iterator[dict]:
    """Mean and median of what is lost to the non-private model, by condition and epsilon."""
    for condition, epsilon, rows in conditions_and_budgets(cells):
        found = {"condition": condition, "epsilon": epsilon}
        for metric, *_ in METRICS:
            lost = of_metric(rows, metric)
            if lost:
                found[metric] = (float(np.mean(lost)), float(np.median(lost)), len(lost))
        yield found


def is_large(row) -> bool:
    """Whether enough rows train; the table counts those that test, too."""
    return int(TRAIN_SHARE * row["rows"]) >= LARGE


def within_distances(cells: Table) -> Iterator[Finding]:
    """Large sets, with all of their metrics within the distances of the aims."""
    for condition, epsilon, rows in conditions_and_budgets(cells):
        if epsilon not in DISTANCES:
            continue
        aim = f"{condition} columns, epsilon {epsilon:g}, within the distances, n_train >= {LARGE}"
        for row in filter(is_large, rows):
            lost = list(verdict.losses(row))
            figure = ", ".join(f"{name} loses {much:.4f} ({most:g})" for name, much, most in lost)
            met = all(much <= most for _, much, most in lost)
            yield Finding(aim, row["data"], figure, met)


def fits_that_failed(cells: Table) -> Iterator[Finding]:
    """Every data set has a row of the default at every budget."""
    budgets = {key[1:] for key in cells.cells()}
    for data, condition, method, _ in sorted(cells.rows):
        if method != TWIN:
            continue
        for epsilon in sorted(epsilon for how, epsilon in budgets if how == condition):
            row = cells.get(data, condition, DEFAULT, epsilon)
            cell = f"{data}, {condition}, epsilon {epsilon:g}"
            yield Finding("every run ends", cell, "", row is not None)


CHECKS = (
    within_distances,
    verdict.against_constant,
    verdict.warnings_of_noise,
    verdict.more_budget,
    fits_that_failed,
    verdict.against_rivals,
)


def findings(rows) -> list[Finding]:
    """All aims in all cells of the table."""
    cells = Table(rows)
    return [finding for check in CHECKS for finding in check(cells)]


def report(rows, everything=False) -> Iterator[str]:
    """Lines: distances, then aims, each with the cells where it is missed, or with all of them.

    Cells that a rival wins are counted, and named only if ``everything`` is.
    """
    if not rows:
        yield "no data set could be read"
        return
    cells = Table(rows)
    names = {row["data"] for row in rows}
    runs = sorted({row["runs"] for row in rows})
    yield f"{len(names)} data sets, runs: {runs}"
    yield "lost to the non-private model: mean (median) over data sets"
    for found in distances(cells):
        figures = [
            f"{metric} {mean:.4f} ({median:.4f})"
            for metric, (mean, median, _) in list(found.items())[2:]
        ]
        yield f"  {found['condition']}, epsilon {found['epsilon']:g}: {', '.join(figures)}"
    yield from verdict.by_rival(cells)
    aims = findings(rows)
    yield from verdict.lines([one for one in aims if "rival" not in one.aim], everything)
    lines = verdict.lines([one for one in aims if "rival" in one.aim], everything)
    yield from (line for line in lines if everything or not line.startswith("  "))


def of_half(rows, half) -> list[dict]:
    """Rows of data sets of a half, or all."""
    return [row for row in rows if half in ("all", row["half"])]


def read(path, half) -> list[dict]:
    """Rows of a half from the file, or nothing."""
    rows = of_half(table.read(path)[1], half)
    if not rows:
        raise SystemExit(f"{path} has no rows of half {half!r}")
    return rows
