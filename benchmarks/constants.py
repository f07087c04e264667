"""Measure what the constants of scaling are worth: fits at half and twice of each.

All else is equal: the same rows, and noise from the same seed. A fit that reads the same columns
with the same share of the budget as before is the same fit, so it is not finished.
"""

from __future__ import annotations

import math
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks import results_file, utility
from benchmarks.cases.parts import CASES
from benchmarks.cases.running import ERRORS, METRICS, WORSE
from benchmarks.registry import Unavailable, methods, modules
from benchmarks.table import mean_and_error
from benchmarks.variants import AT, Variant, changed, constants, variants
from skdp import NoiseWarning
from skdp.stages.scaling import widening
from skdp.stages.scaling.stage import ScalingStage

EPSILONS = (0.1, 0.3, 1.0)
RUNS = 3
REAL = ("bank", "diamonds", "digits", "bike", "california_housing", "wine", "breast_cancer",
        "diabetes")  # fmt: skip
GENERATED = ("ten_classes", "one_hot", "zeros_99", "plain", "scales_1e12", "offset_1e6_one",
             "timestamp_day", "year_column", "alike_off_centre", "pareto3", "lognormal2",
             "correlated", "rows_200", "rows_1000", "target_2000", "target_lognormal1",
             "target_poisson", "rare_class", "uint8")  # fmt: skip
SMOKE = ("diabetes", "year_column")
# An R2 below -1 counts as -1: such a fit is lost, however low it is, and would be all of a mean.
LOST = -1.0

KEY = ("module", "constant", "at")
COUNTS = ("runs", "cells", "changed", "failed", "better", "worse", "log_loss_better",
          "log_loss_worse")  # fmt: skip
FIGURES = ("score", "score_se", "log_loss", "log_loss_se", "worst_by", "best_by")
# "changed" counts cells with a fit that is another; "failed" those with one that has no scores.
# Differences are such that more is better, also of log loss: means over cells, their standard
# errors, and how many cells differ beyond noise. "worst" and "best" are by either metric, empty
# where no cell got worse, or better.
COLUMNS = ("module", "constant", "as_it_is", "at", "value", "runs", "cells", "changed", "failed",
           "score", "score_se", "better", "worse", "log_loss", "log_loss_se", "log_loss_better",
           "log_loss_worse", "worst", "worst_by", "best", "best_by")  # fmt: skip


# ------------------------------------------------------------------ fits


class SameFit(Exception):  # noqa: N818  no error
    """What was read of the columns is what another fit has read, so the rest will be the same."""


RUN = ScalingStage.run


def reading(stage, scaling, oracle) -> tuple:
    """Return all that the rest of a fit depends on: scaling, budget, and where the noise is."""
    found = [
        one and tuple(part.tobytes() for part in (one.low, one.high, one.centre, one.scale))
        for one in (scaling.columns, scaling.targets)
    ]
    state = oracle._noise_source._generator.bit_generator.state
    later = tuple(value for name, value in vars(widening).items() if name.isupper())
    return stage.budget, *found, repr(state), later


def one_fit(split, epsilon: float, delta: float, seed: int, known: dict) -> tuple:
    """Fit once and return what was read, None if nothing was; the scores that follow are in known.

    Scores of readings that are known already are taken over.
    """
    read = []

    def run(stage, oracle, solution):
        scaled = RUN(stage, oracle, solution)
        if not oracle.is_rehearsal:
            read[:] = [reading(stage, scaled.scaling, oracle)]
            if read[0] in known:
                raise SameFit
        return scaled

    with mock.patch.object(ScalingStage, "run", run), warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseWarning)
        try:
            scores = utility.one_fit(methods()["skdp"], split, epsilon, delta, seed)
        except SameFit:
            return read[0]
    key = read[0] if read else scores.get("failed")
    known[key] = scores
    return key


def splits(name: str, seed: int, most_rows: int | None) -> Iterator[tuple[str, object]]:
    """Yield the rows of a run with a name: tasks of a case, or both conditions of a real set."""
    if name in CASES:
        for task, split in CASES[name].splits(seed, most_rows):
            yield f"{name}, {task}", split
    else:
        raw = modules("datasets")[name].load(seed)
        yield f"{name}, raw", raw
        yield f"{name}, standardised", raw.standardised()


def one_run(name, seed, tried, epsilons, delta, most_rows) -> dict[str, list]:
    """All fits of a run on data: of each cell, for each variant whether it changed, and scores.

    The first of them is the fit with the constants as they are.
    """
    found = {}
    for title, split in splits(name, seed, most_rows):
        known = {epsilon: {} for epsilon in epsilons}
        first = {epsilon: one_fit(split, epsilon, delta, seed, known[epsilon])
                 for epsilon in epsilons}  # fmt: skip
        for epsilon, key in first.items():
            found[f"{title}, epsilon {epsilon:g}"] = [(False, known[epsilon][key])]
        for variant in tried:
            with changed(variant):
                for epsilon in epsilons:
                    scores = known[epsilon]
                    key = one_fit(split, epsilon, delta, seed, scores)
                    is_another = figures(scores[key]) != figures(scores[first[epsilon]])
                    found[f"{title}, epsilon {epsilon:g}"].append((is_another, scores[key]))
    return found


def figures(scores: dict) -> dict:
    """Return the scores without what differs from run to run."""
    return {name: value for name, value in scores.items() if name != "seconds"}


# ------------------------------------------------------------------ what came out


def gains(before: list[dict], after: list[dict]) -> dict[str, np.ndarray]:
    """Gain of each run by metric, in which more is better."""
    return {
        metric: sign
        * np.array([
            max(new[metric], LOST) - max(old[metric], LOST)
            for old, new in zip(before, after, strict=True)
        ])
        for metric, sign in METRICS.items()
        if metric in before[0]
    }  # fmt: skip


def row_of(variant: Variant, number: int, cells: dict[str, list]) -> dict:
    """Return the row of a variant from the runs of every cell."""
    row = {"module": variant.module, "constant": variant.constant, "at": variant.at}
    row |= {"as_it_is": text(constants()[variant.name]), "value": text(variant.value)}
    row |= dict.fromkeys(COUNTS, 0) | dict.fromkeys(FIGURES, math.nan) | {"worst": "", "best": ""}
    row |= {"runs": max(map(len, cells.values()), default=0), "cells": len(cells)}
    found = {metric: [] for metric in METRICS}
    for cell, runs in sorted(cells.items()):
        row["changed"] += any(run[number][0] for run in runs)
        before, after = ([run[k][1] for run in runs] for k in (0, number))
        if any("failed" in scores for scores in (*before, *after)):
            row["failed"] += 1
            continue
        for metric, values in gains(before, after).items():
            mean, error = mean_and_error(values)
            found[metric].append((mean, f"{cell}, {metric.replace('_', ' ')}"))
            if abs(mean) > max(WORSE, ERRORS * error):
                what = "better" if mean > 0 else "worse"
                row[what if metric == "score" else f"{metric}_{what}"] += 1
    for metric, own in found.items():
        if own:
            row[metric], row[f"{metric}_se"] = mean_and_error([mean for mean, _ in own])
    both = [one for own in found.values() for one in own if one[0] != 0]
    for what, (mean, cell) in {"worst": min(both), "best": max(both)}.items() if both else ():
        if (mean > 0) == (what == "best"):
            row[what], row[f"{what}_by"] = cell, mean
    return row


def text(value: object) -> str:
    """A number, or several one after the other."""
    return " ".join(f"{one:.6g}" for one in (value if isinstance(value, tuple) else (value,)))


def read(path: Path) -> tuple[list[str], list[dict]]:
    """Commands that made the file, and its rows with numbers as numbers."""
    commands, rows = results_file.read(path)
    for row in rows:
        row |= {name: float(row[name] or "nan") for name in FIGURES}
        row |= {name: int(row[name]) for name in COUNTS}
    return commands, rows


def merge(path: Path, command: str, rows: list[dict]) -> None:
    """Put new rows in place of old ones of the same key; keep those of constants that exist."""
    commands, old = read(path)
    exist = {f"{name}.{at}" for name in constants() for pair in AT.values() for at in pair}
    found = {tuple(row[name] for name in KEY): row for row in (*old, *rows)}
    lines = []
    for key, row in sorted(found.items()):
        if ".".join(key) in exist:
            figures = {
                name: "" if math.isnan(row[name]) else f"{row[name]:.5f}" for name in FIGURES
            }
            lines.append({**row, **figures})
    results_file.write(path, dict.fromkeys([*commands, command]), COLUMNS, lines)


def report(rows: list[dict]) -> Iterator[str]:
    """Yield which constants matter nowhere, and where another value looks better or worse."""
    by_name: dict[str, list[dict]] = {}
    for row in rows:
        by_name.setdefault(f"{row['module']}.{row['constant']}", []).append(row)
    idle = [name for name, own in by_name.items() if not any(row["changed"] for row in own)]
    yield f"{len(idle)} of {len(by_name)} constants change no fit: {', '.join(idle) or '-'}"

    def lead(row):
        better = row["better"] + row["log_loss_better"]
        return better - row["worse"] - row["log_loss_worse"]

    for row in sorted((row for row in rows if row["changed"]), key=lead):
        yield (
            f"{row['module']}.{row['constant']} {row['as_it_is']} -> {row['value']}: "
            f"{row['changed']} of {row['cells']} cells changed, score {row['score']:+.4f} "
            f"(+{row['better']} -{row['worse']}), log loss {row['log_loss']:+.4f} "
            f"(+{row['log_loss_better']} -{row['log_loss_worse']}), {row['failed']} failed; "
            f"worst {row['worst'] or '-'} {row['worst_by']:+.3f}, "
            f"best {row['best'] or '-'} {row['best_by']:+.3f}"
        )


def run(
    output: Path | None, command: str, names=(), epsilons=EPSILONS, delta=utility.DELTA,
    runs=RUNS, jobs=2, data=(*REAL, *GENERATED), most_rows: int | None = None,
) -> list[dict]:  # fmt: skip
    """Run all data, write the file at the end, and return the new rows.

    Constants are changed in processes of their own.
    """
    tried, start = variants(names), time.perf_counter()
    cells: dict[str, list] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        asked = {
            pool.submit(one_run, name, seed, tried, epsilons, delta, most_rows): (name, seed)
            for name in data
            for seed in range(runs)
        }
        for done in as_completed(asked):
            name, seed = asked[done]
            try:
                for cell, found in done.result().items():
                    cells.setdefault(cell, []).append(found)
            except Unavailable as reason:
                print(f"skipped {name}: {reason}")
                continue
            print(f"{name}, run {seed}: after {time.perf_counter() - start:.0f} s", flush=True)
    rows = [row_of(variant, number, cells) for number, variant in enumerate(tried, start=1)]
    if output is not None:
        merge(output, command, rows)
    return rows
