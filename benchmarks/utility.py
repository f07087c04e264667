"""Accuracy at a given budget: every method on every data set, written to a CSV file."""

from __future__ import annotations

import csv
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from benchmarks.registry import Unavailable, modules

COLUMNS = [
    "data",
    "method",
    "epsilon",
    "delta",
    "runs",
    "score",
    "standard_error",
    "log_loss",
    "seconds",
]


def one_run(method, split, epsilon, delta, seed):
    """Fit once; return score, log loss (nan for regression) and seconds."""
    model = method.make(split, epsilon, delta, seed)
    start = time.perf_counter()
    model.fit(split.X_train, split.y_train)
    seconds = time.perf_counter() - start
    loss = np.nan
    if split.is_classification:
        loss = log_loss(split.y_test, model.predict_proba(split.X_test), labels=model.classes_)
    return model.score(split.X_test, split.y_test), loss, seconds


def rows(datasets, epsilons, delta, runs):
    """Yield one row of the table after the other."""
    for data_name, dataset in datasets.items():
        try:
            splits = [dataset.load(seed) for seed in range(runs)]
        except Unavailable as reason:
            print(f"skipped {data_name}: {reason}")
            continue
        for method in modules("methods").values():
            if not method.applies(splits[0]):
                continue
            for epsilon in epsilons if method.NAME != "non-private" else [np.inf]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    results = np.array(
                        [
                            one_run(method, split, epsilon, delta, seed)
                            for seed, split in enumerate(splits)
                        ]
                    )
                score, loss, seconds = results.mean(axis=0)
                error = results[:, 0].std(ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
                yield dict(
                    zip(
                        COLUMNS,
                        [
                            data_name,
                            method.NAME,
                            epsilon,
                            delta,
                            runs,
                            f"{score:.4f}",
                            f"{error:.4f}",
                            f"{loss:.4f}",
                            f"{seconds:.3f}",
                        ],
                        strict=True,
                    )
                )


def run(output: Path, command: str, names, epsilons, delta, runs) -> None:
    """Write the table, with the command that made it as its first line."""
    datasets = modules("datasets")
    unknown = sorted(set(names) - set(datasets))
    if unknown:
        raise SystemExit(f"unknown data sets {unknown}; known: {sorted(datasets)}")
    chosen = {name: datasets[name] for name in names or sorted(datasets)}
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", newline="") as file:
        file.write(f"# made by: {command}\n")
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in rows(chosen, epsilons, delta, runs):
            writer.writerow(row)
            file.flush()
            print("  ".join(str(value) for value in row.values()))
