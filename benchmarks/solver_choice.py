"""Compare "whitened" with "gd" on made-up rows: evidence for the rule of ``solver="auto"``.

The signal-to-noise ratio a is set by the number of rows, at epsilon 1. Columns are isotropic,
correlated ("factors"), or have long tails, indicators and units of their own ("raw"). Scores are R2
of regressions and log loss, with a minus, of classifiers, on fresh rows.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import log_loss, r2_score

import skdp
from benchmarks import results_file
from benchmarks.table import mean_and_error
from skdp.accounting import gaussian_mu

EPSILON, DELTA = 1.0, 1e-6
N_TEST, ROWS_PER_GROUP = 5000, 5
SOLVERS = "gd", "whitened"
COLUMNS = ["task", "columns", "p", "a", "rows", "runs", "gd", "whitened_ahead", "ahead_se",
           "gd_seconds", "whitened_seconds"]  # fmt: skip
KINDS = "isotropic", "factors", "raw"
FIRST = (4, 10, 25, 50, 100)
# Task, columns, ratios a: outputs or classes are in a task's name.
GRID = [
    *(("regression", p, (6.0, 10.0, 20.0)) for p in FIRST),
    *(("2 classes", p, (6.0, 10.0, 20.0)) for p in FIRST),
    *(("3 classes", p, (6.0, 10.0, 20.0)) for p in FIRST),
    *(("10 classes", p, (6.0, 10.0, 20.0)) for p in FIRST[:3]),
    *(("3 targets", p, (10.0, 30.0)) for p in FIRST[1:]),
    *(("groups", p, (10.0, 40.0)) for p in (5, 20)),
    *((task, 300, (5.8, 10.0, 15.0)) for task in ("regression", "2 classes")),
    *((task, 500, (10.0, 40.0)) for task in ("CSR regression", "CSR 2 classes")),
]


def made_up(kind: str, n_rows: int, p: int, rng: np.random.Generator):
    """Columns of a kind, and the same in units of size 1; of CSR rows one entry in 100."""
    if kind == "sparse":
        X = sparse.csr_array(sparse.random(n_rows, p, density=0.01, random_state=rng))
        return X, X
    X = rng.standard_normal((n_rows, p))
    if kind == "factors":
        n_factors = max(1, p // 8)
        loadings = rng.standard_normal((n_factors, p)) / n_factors**0.5
        X = X / 2 + rng.standard_normal((n_rows, n_factors)) @ loadings
    if kind == "raw":
        X[:, ::2] = np.exp(X[:, ::2])
        X[:, 1::4] = X[:, 1::4] > 1
        X *= 10 ** rng.uniform(-2, 2, p)
    return X, (X - X.mean(axis=0)) / X.std(axis=0)


def run_of(task: str, kind: str, p: int, a: float, seed: int) -> list[tuple[float, float, int]]:
    """Scores and seconds of both solvers, and the number of rows."""
    n_outputs = int(task.split()[0]) if task[0].isdigit() else 1
    is_class = task.endswith("classes")
    n_outputs = 1 if task.endswith("2 classes") else n_outputs
    n_records = round(a * p * n_outputs**0.5 / gaussian_mu(EPSILON, DELTA))
    n_rows = n_records * (ROWS_PER_GROUP if task == "groups" else 1)
    rng = np.random.default_rng([seed, p])
    X, units = made_up(kind, n_rows + N_TEST, p, rng)
    margins = units @ rng.standard_normal((p, n_outputs))
    margins /= margins.std(axis=0)
    if is_class:
        if n_outputs == 1:
            margins = np.hstack([np.zeros_like(margins), margins])
        y = (1.5 * margins + rng.gumbel(size=margins.shape)).argmax(axis=1)
    else:
        y = margins + rng.standard_normal(margins.shape)
        y = y if n_outputs > 1 else y[:, 0]
    groups = np.arange(n_rows) // ROWS_PER_GROUP if task == "groups" else None
    noise = skdp.SeededNoise(seed)
    privacy = skdp.Privacy(
        noise=noise, **({} if groups is None else {"rows_per_group": ROWS_PER_GROUP})
    )
    answers = []
    for solver in SOLVERS:
        given = {"epsilon": EPSILON, "delta": DELTA, "solver": solver, "privacy": privacy}
        if is_class:
            model = skdp.DPLogisticRegression(classes=range(max(2, margins.shape[1])), **given)
        else:
            model = skdp.DPRidge(**given)
        start = time.process_time()
        model.fit(X[:n_rows], y[:n_rows], **({} if groups is None else {"groups": groups}))
        seconds = time.process_time() - start
        if is_class:
            found = model.predict_proba(X[n_rows:])
            score = -log_loss(y[n_rows:], found, labels=model.classes_)
        else:
            score = r2_score(y[n_rows:], model.predict(X[n_rows:]))
        answers.append((score, seconds, n_rows))
    return answers


def run(output: Path | None, command: str, runs: int = 4, grid=GRID) -> list[dict]:
    """Run, print, and write all rows after each cell."""
    rows = []
    for task, p, ratios in grid:
        for a in ratios:
            for kind in ("sparse",) if task.startswith("CSR") else KINDS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = np.array([run_of(task, kind, p, a, seed) for seed in range(runs)])
                ahead = mean_and_error(found[:, 1, 0] - found[:, 0, 0])
                (gd, gd_seconds, n_rows), (_, seconds, _) = found.mean(axis=0)
                values = task, kind, p, a, int(n_rows), runs, gd, *ahead, gd_seconds, seconds
                texts = (f"{one:.4g}" if isinstance(one, float) else one for one in values)
                rows.append(dict(zip(COLUMNS, texts, strict=True)))
                print(*rows[-1].values(), sep="  ", flush=True)
                if output is not None:
                    results_file.write(output, [command], COLUMNS, rows)
    return rows
