"""Fit every case raw and with free scaling, and say which cells became worse."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler

from benchmarks import results_file
from benchmarks.cases import columns, targets
from benchmarks.cases.parts import CASES
from benchmarks.methods.skdp_auto import estimator
from benchmarks.registry import Split, methods
from benchmarks.table import mean_and_error, text
from benchmarks.utility import one_fit

GENERATORS = (columns, targets)  # whose cases are on the list by being imported
EPSILONS = (0.1, 0.3, 1.0)
KEY = ("case", "task", "epsilon", "metric")
REFERENCES = ("free", "non-private", "constant")
METRICS = {"score": 1.0, "log_loss": -1.0}  # and the sign that makes more of it better
# "short" is what raw columns lose to free scaling, run by run on the same rows; "values" are
# the figures of the runs with raw columns.
FIGURES = ("raw", "raw_se", "free", "free_se", "short", "short_se", "non-private", "constant")
COLUMNS = (*KEY, "runs", *FIGURES, "values")
WORSE, ERRORS = 0.005, 2.0  # a cell is worse than before if it is by more than both of these
SMOKE = ("plain", "indicators_sparse", "target_poisson", "ten_classes")


def free(split: Split) -> Split:
    """Columns and targets standardised beforehand at no cost, which is not private."""
    if not sparse.issparse(split.X_train):
        return split.standardised()
    scaler = MaxAbsScaler().fit(split.X_train)
    X_train, X_test = scaler.transform(split.X_train), scaler.transform(split.X_test)
    size = np.sqrt(np.maximum(X_train.multiply(X_train).mean(axis=0), 1e-6))
    return replace(split, X_train=X_train / size, X_test=X_test / size, condition="standardised")


def fits_of(split: Split, epsilons, delta: float, seed: int) -> list[tuple[str, float, dict]]:
    """All fits of one task of one run: (what, epsilon, scores)."""
    scaled, known = free(split), methods()
    found = [
        (name, math.inf, one_fit(known[name], scaled, math.inf, delta, seed))
        for name in REFERENCES[1:]
        if not (name == "non-private" and sparse.issparse(split.X_train))
    ]
    for epsilon in epsilons:
        found.append(("raw", epsilon, one_fit(known["skdp"], split, epsilon, delta, seed)))
        given = replace(known["skdp"], make=without_scaling)
        found.append(("free", epsilon, one_fit(given, scaled, epsilon, delta, seed)))
    return found


def without_scaling(split, epsilon, delta, seed):
    """skdp as it comes, but for its scaling."""
    return estimator(split, epsilon, delta, seed, scaling="none")


def one_run(name: str, epsilons, delta: float, seed: int, most_rows: int | None) -> dict:
    """All fits of one run of a case, by task."""
    splits = CASES[name].splits(seed, most_rows)
    return {task: fits_of(split, epsilons, delta, seed) for task, split in splits}


def cells(name: str, runs: list[dict]) -> Iterator[dict]:
    """Yield rows of the table from the answers of all runs."""
    for task in runs[0]:
        found: dict[tuple[str, float], list[dict]] = {}
        for run in runs:
            for what, epsilon, scores in run[task]:
                found.setdefault((what, epsilon), []).append(scores)
        for (what, epsilon), scores in found.items():
            for failed in (one["failed"] for one in scores if "failed" in one):
                raise SystemExit(f"{name}, {task}, {what}, epsilon {epsilon:g}: {failed}")
        for epsilon in (at for what, at in found if what == "raw"):
            for metric, sign in METRICS.items():
                if metric not in found["raw", epsilon][0]:
                    continue
                raw, given = (
                    np.array([one[metric] for one in found[what, epsilon]])
                    for what in ("raw", "free")
                )
                row = dict(zip(KEY, (name, task, epsilon, metric), strict=True))
                row |= {"runs": len(raw), "values": list(raw)}
                row["raw"], row["raw_se"] = mean_and_error(raw)
                row["free"], row["free_se"] = mean_and_error(given)
                row["short"], row["short_se"] = mean_and_error(sign * (given - raw))
                for what in REFERENCES[1:]:
                    scores = found.get((what, math.inf), [])
                    row[what] = float(np.mean([one[metric] for one in scores] or [math.nan]))
                yield row


# ------------------------------------------------------------------ what the figures say


def worse(before: list[dict], after: list[dict]) -> Iterator[str]:
    """Yield the cells that got worse beyond noise, compared run by run on the same data."""
    old = {tuple(row[name] for name in KEY): row for row in before}
    for row in after:
        was = old.get(tuple(row[name] for name in KEY))
        if was is None:
            continue
        n_runs = min(len(row["values"]), len(was["values"]))
        change = np.subtract(row["values"][:n_runs], was["values"][:n_runs])
        mean, error = mean_and_error(METRICS[row["metric"]] * change)
        if -mean > max(WORSE, ERRORS * error):
            yield f"{show(row)}  was {text(was['raw'])}, worse by {text(-mean)} +- {text(error)}"


def show(row: dict) -> str:
    """One row as a line."""
    key = f"{row['case']}, {row['task']}, epsilon {row['epsilon']:g}, {row['metric']}:"
    said = [f"{name} {text(row[name])}" for name in ("raw", *REFERENCES)]
    return "  ".join([key, *said, f"short {text(row['short'])} +- {text(row['short_se'])}"])


# ------------------------------------------------------------------ running


def read(path: Path) -> tuple[list[str], list[dict]]:
    """Commands that made the file, and its rows with numbers as numbers."""
    commands, rows = results_file.read(path)
    for row in rows:
        row |= {name: float(row[name] or "nan") for name in ("epsilon", *FIGURES)}
        row |= {"runs": int(row["runs"]), "values": [float(one) for one in row["values"].split()]}
    return commands, rows


def merge(path: Path, command: str, rows: list[dict]) -> None:
    """Put new rows in place of old ones of the same key; keep the others."""
    commands, old = read(path)
    found = {tuple(row[name] for name in KEY): row for row in (*old, *rows)}
    lines = []
    for _, row in sorted(found.items()):
        values = " ".join(f"{value:.5g}" for value in row["values"])
        figures = {name: text(row[name]) for name in FIGURES}
        lines.append({**row, **figures, "epsilon": f"{row['epsilon']:g}", "values": values})
    results_file.write(path, dict.fromkeys([*commands, command]), COLUMNS, lines)


def run(
    output: Path | None, command: str, names, epsilons, delta: float, runs: int, jobs: int,
    most_rows: int | None = None,
) -> list[dict]:  # fmt: skip
    """Run, print, merge into ``output`` after each case, and return the new rows."""
    results_file.refuse_unknown(names, CASES, "cases")
    rows = []
    with Parallel(n_jobs=jobs) as parallel:
        for name in names or CASES:
            start = time.perf_counter()
            answers = parallel(
                delayed(one_run)(name, epsilons, delta, seed, most_rows) for seed in range(runs)
            )
            found = list(cells(name, answers))
            print(*map(show, found), sep="\n")
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
            rows += found
            if output is not None:
                merge(output, command, found)
    return rows


def report(rows: list[dict], before: list[dict]) -> list[str]:
    """Return the cells that got worse, after their number."""
    lines = list(worse(before, rows))
    count = f"{len(lines)} cells worse than before by {ERRORS:g} standard errors and {WORSE:g}"
    return [count, *lines]
