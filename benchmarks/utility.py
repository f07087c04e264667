"""Accuracy at a given budget: every method on every data set, merged into a CSV file."""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks import results_file, table
from benchmarks.registry import KINDS, Unavailable, methods, modules
from benchmarks.scores import scores_of
from skdp import NoiseWarning

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
CONDITIONS = ("raw", "standardised")
DELTA = 1e-6
TWIN = "non-private"


@lru_cache(maxsize=2)
def split_of(data, condition, seed):
    """Rows of one run, kept while all methods use them."""
    split = modules("datasets")[data].load(seed)
    return split if condition == "raw" else split.standardised()


def one_fit(method, split, epsilon, delta, seed):
    """Scores and seconds of one fit, and whether it warned, or a reason why there are none."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", NoiseWarning)
        start = time.perf_counter()
        try:
            model = method.make(split, epsilon, delta, seed).fit(split.X_train, split.y_train)
            seconds = time.perf_counter() - start
            warned = any(one.category is NoiseWarning for one in caught)
            return scores_of(model, split) | {"seconds": seconds, table.WARNED: warned}
        except (ValueError, RuntimeError, np.linalg.LinAlgError) as reason:
            return {"failed": f"{type(reason).__name__}: {reason}"}


def one_seed(data, condition, names, epsilons, delta, seed):
    """All fits of one run on a data set, or the reason why it is not here."""
    try:
        split = split_of(data, condition, seed)
    except Unavailable as reason:
        return str(reason)
    return fits_on(split, names, epsilons, delta, seed)


def fits_on(split, names, epsilons, delta, seed):
    """All fits on these rows; a list of (method, epsilon, result), the twin's first."""
    known = methods()
    shape = {"rows": len(split.y_train) + len(split.y_test), "columns": split.X_train.shape[1]}
    results = [(TWIN, np.inf, shape | one_fit(known[TWIN], split, np.inf, delta, seed))]
    for name in names:
        if name == TWIN or not known[name].applies(split):
            continue
        for epsilon in epsilons if known[name].kind != "reference" else [np.inf]:
            results.append((name, epsilon, one_fit(known[name], split, epsilon, delta, seed)))
    return results


def cells(data, condition, names, delta, answers):
    """Yield rows of the table from the answers of all seeds."""
    twins = [answer[0][2] for answer in answers]
    grouped = {}
    for answer in answers:
        for name, epsilon, result in answer:
            grouped.setdefault((name, epsilon), []).append(result)
    for (name, epsilon), runs in grouped.items():
        if name not in names:
            continue
        failed = [run["failed"] for run in runs if "failed" in run]
        if failed:
            print(f"{data}, {condition}, {name}, epsilon {epsilon:g}: {len(failed)} of "
                  f"{len(runs)} runs failed; {failed[0]}")  # fmt: skip
            continue
        yield {
            "data": data,
            "condition": condition,
            "method": name,
            "epsilon": epsilon,
            "kind": methods()[name].kind,
            "delta": delta,
            "runs": len(runs),
            "rows": twins[0]["rows"],
            "columns": twins[0]["columns"],
            **{
                name: float(np.mean([run[name] for run in runs]))
                for name in ("seconds", table.WARNED)
            },
            **table.summary(runs, twins),
        }


def chosen(words):
    """Names of methods from names and kinds; all that need no asking if none."""
    known = methods()
    usual = {name: method.kind for name, method in known.items() if not method.on_demand}
    names = [] if words else list(usual)
    for word in words:
        found = [name for name, kind in usual.items() if kind == word]
        found = [word] if word in known else found
        if not found:
            raise SystemExit(f"unknown method {word!r}; known: {[*KINDS, *known]}")
        names.extend(found)
    return list(dict.fromkeys(names))


def run(
    output: Path | None,
    command: str,
    data=(),
    names=(),
    epsilons=EPSILONS,
    delta=DELTA,
    runs=10,
    conditions=CONDITIONS,
    jobs=2,
) -> list[dict]:
    """Run, print, merge into ``output`` after each data set, and return the new rows."""
    known = modules("datasets")
    usual = sorted(name for name in known if not getattr(known[name], "ON_DEMAND", False))
    results_file.refuse_unknown(data, known)
    given = epsilons, delta, runs, conditions, jobs
    return run_each(one_seed, output, command, data or usual, chosen(names), *given)


def run_each(
    one_seed, output, command, data, names, epsilons, delta, runs, conditions, jobs,
    facts=lambda name: {},
) -> list[dict]:  # fmt: skip
    """Run with a function that makes all fits of one run; ``facts`` come before each row."""
    found = []
    with Parallel(n_jobs=jobs) as parallel:
        for name in data:
            for condition in conditions:
                start = time.perf_counter()
                answers = parallel(
                    delayed(one_seed)(name, condition, names, epsilons, delta, seed)
                    for seed in range(runs)
                )
                if isinstance(answers[0], str):
                    print(f"skipped {name}: {answers[0]}")
                    break
                rows = [facts(name) | row for row in cells(name, condition, names, delta, answers)]
                for row in rows:
                    show(row)
                print(f"{name}, {condition}: {time.perf_counter() - start:.0f} s", flush=True)
                found.extend(rows)
                if output is not None:
                    table.merge(output, command, rows, [*facts(name), *table.COLUMNS])
    return found


def show(row) -> None:
    """Print one row."""
    figures = [table.text(row.get(name)) for name in ("score", "score_se", "log_loss", "auc")]
    print(row["data"], row["condition"], row["method"], f"{row['epsilon']:g}", *figures, sep="  ")
