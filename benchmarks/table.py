"""The table of results: one row per data set, condition, method and epsilon, in a CSV file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks import results_file
from benchmarks.scores import METRICS

KEY = ["data", "condition", "method", "epsilon"]
FACTS = [*KEY, "kind", "delta", "runs", "rows", "columns"]
# Each metric: mean, its standard error, and both for the difference to the non-private model on
# the same split, where what a split adds to both cancels.
FIGURES = [f"{metric}{what}" for metric in METRICS for what in ("", "_se", "_gap", "_gap_se")]
# The score of each run, by seed: two methods are compared run by run, on the same splits.
SCORES = "scores"
# Share of the runs in which a plan or a fit gave a NoiseWarning.
WARNED = "warned"
COLUMNS = [*FACTS, *FIGURES, "seconds", WARNED, SCORES]
NUMBERS = ["epsilon", "delta", "runs", "rows", "columns", *FIGURES, "seconds", WARNED]


def mean_and_error(values) -> tuple[float, float]:
    """Mean and its standard error; nan if there are too few."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()), float(error)


def summary(runs, twins) -> dict[str, float]:
    """Figures of a cell from the scores of its runs and of the non-private model beside them."""
    figures = {}
    for metric in METRICS:
        if metric not in runs[0]:
            continue
        values = np.array([run[metric] for run in runs])
        figures[metric], figures[f"{metric}_se"] = mean_and_error(values)
        gaps = values - np.array([twin[metric] for twin in twins])
        figures[f"{metric}_gap"], figures[f"{metric}_gap_se"] = mean_and_error(gaps)
    figures[SCORES] = [run["score"] for run in runs]
    return figures


def text(value) -> str:
    """Four decimals, or an exponent where that would be long; empty for what is not there."""
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return ""
    if isinstance(value, int) or math.isinf(value):
        return str(value)
    return f"{value:.3e}" if abs(value) >= 1e4 else f"{value:.4f}"


def read(path: Path) -> tuple[list[str], list[dict]]:
    """Commands that made the table, and its rows with numbers as numbers."""
    commands, rows = results_file.read(path)
    for row in rows:
        for name in NUMBERS:
            row[name] = float(row[name]) if row.get(name) else math.nan
        for name in ("runs", "rows", "columns"):
            row[name] = int(row[name])
        row[SCORES] = [float(score) for score in (row.get(SCORES) or "").split()]
    return commands, rows


def write(path: Path, commands, rows, columns=COLUMNS) -> None:
    """Write the table, sorted."""
    lines = []
    for row in sorted(rows, key=lambda row: tuple(row[name] for name in KEY)):
        cells = {name: text(row.get(name)) for name in columns if name != SCORES}
        cells |= {"epsilon": f"{row['epsilon']:g}", "delta": f"{row['delta']:g}"}
        cells[SCORES] = " ".join(f"{score:.5g}" for score in row[SCORES])
        lines.append(cells)
    results_file.write(path, commands, columns, lines)


def merge(path: Path, command: str, rows, columns=COLUMNS) -> None:
    """Put new rows in place of old ones of the same key; keep the others."""
    commands, old = read(path)
    found = {tuple(row[name] for name in KEY): row for row in old}
    found |= {tuple(row[name] for name in KEY): row for row in rows}
    commands = [*(text for text in commands if text != command), command]
    write(path, commands, found.values(), columns)
