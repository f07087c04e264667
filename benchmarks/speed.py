"""Speed of the fits that a user would run, beside scikit-learn's in the same run.

Fits are measured in processor time of one thread, without and with compiled loops (`pip install
"skdp[fast]"`).
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.linear_model
import sklearn.svm
from joblib.externals.loky import get_reusable_executor
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_score
from threadpoolctl import threadpool_limits

import skdp
from benchmarks import results_file
from benchmarks.environments import diffprivlib_env
from benchmarks.registry import Unavailable
from skdp._fitting import estimator
from skdp._oracle import compiled
from skdp._oracle.noise import noise_source
from skdp.accounting import Adjacency, Composed, Gaussian, PoissonSampled, price
from skdp.metrics import evaluate
from skdp.model_selection import DPSearchCV

COLUMNS = [
    "part", "what", "value", "with_fast", "wanted", "wanted_with_fast",
    "milliseconds", "milliseconds_with_fast",
]  # fmt: skip
MOST_SECONDS = 3.0  # of the repetitions of a fit, unless two of them take longer
# Without compiled loops a ratio may be so many times as large as the limit with them.
WITHOUT_LOOPS = 1.6


class Fit(NamedTuple):
    """Default fits to compare: names, kind of targets and of columns, shapes with their limits."""

    name: str
    theirs: Any
    targets: str
    limits: dict[tuple[int, int], float | None]
    columns: str = "dense"

    @property
    def ours(self):
        name = type(self.theirs).__name__
        n_classes = int(self.targets.removesuffix(" classes")) if "classes" in self.targets else 0
        parameters = {"classes": range(n_classes)} if n_classes else {}
        return getattr(skdp, f"DP{name}")(**parameters)


LOGISTIC, RIDGE = sklearn.linear_model.LogisticRegression(), sklearn.linear_model.Ridge()
SIZES = {(1000, 10): None, (10_000, 50): None, (100_000, 50): None, (1_000_000, 20): None}
FITS = [
    Fit("two classes", LOGISTIC, "2 classes",
        SIZES | {(500, 10): 5, (100_000, 50): 3.5, (100_000, 300): 10, (20_000, 2000): None}),
    Fit("ridge", RIDGE, "real",
        SIZES | {(500, 10): 12, (10_000, 50): 10, (100_000, 50): 4.5, (20_000, 2000): None}),
    Fit("three classes", LOGISTIC, "3 classes", {(100_000, 50): 5}),
    Fit("ten classes", LOGISTIC, "10 classes", {(100_000, 50): 5}),
    Fit("200 classes", LOGISTIC, "200 classes", {(20_000, 20): 10}),
    Fit("counts", sklearn.linear_model.PoissonRegressor(), "counts", {(100_000, 50): 12}),
    Fit("lasso", sklearn.linear_model.Lasso(), "real", {(500, 10): 12}),
    Fit("Huber", sklearn.linear_model.HuberRegressor(), "real", {(500, 10): 12}),
    Fit("quantile", sklearn.linear_model.QuantileRegressor(), "real", {(1000, 10): None}),
    Fit("SVC", sklearn.svm.LinearSVC(), "2 classes", {(100_000, 50): None}),
    Fit("two classes, CSR of 1 %", LOGISTIC, "2 classes", {(100_000, 500): 7}, "sparse"),
    Fit("ridge, CSR of 1 %", RIDGE, "real", {(100_000, 500): 25}, "sparse"),
    Fit("two classes, one-hot", LOGISTIC, "2 classes", {(50_000, 2000): None}, "one-hot"),
    Fit("ridge, one-hot", RIDGE, "real", {(50_000, 2000): None}, "one-hot"),
]  # fmt: skip


def seconds_of(function, clock=time.process_time) -> float:
    start = clock()
    function()
    return clock() - start


def in_turn(times, *functions):
    """Least seconds of each of several functions, called in turn."""
    seconds = [[*map(seconds_of, functions)] for _ in range(times)]
    return [min(of_one) for of_one in zip(*seconds, strict=True)]


def data(n_rows, n_features, targets, columns="dense"):
    rng = np.random.default_rng(0)
    if columns == "dense":
        X = rng.standard_normal((n_rows, n_features))
    elif columns == "sparse":
        X = 10 * sparse.random_array((n_rows, n_features), density=0.01, rng=rng, format="csr")
    else:  # two columns, of as many categories
        size = n_features // 2
        places = rng.integers(size, size=(n_rows, 2)) + np.array([0, size])
        X = sparse.csr_array(
            (np.ones(2 * n_rows), places.ravel(), np.arange(0, 2 * n_rows + 1, 2)),
            shape=(n_rows, n_features),
        )
    n_outputs = int(targets.split()[0]) if "classes" in targets else 1
    margins = 2 * (X @ rng.standard_normal((n_features, n_outputs))) / n_features**0.5
    if targets == "counts":
        return X, rng.poisson(np.exp(margins[:, 0] / 2)).astype(float)
    if targets == "real":
        return X, margins[:, 0] + rng.standard_normal(n_rows)
    return X, (margins + rng.gumbel(size=margins.shape)).argmax(axis=1)


def compared(what, theirs, ours, times, limit=None):
    """Row of the ratio of two calls, the second without compiled loops and with them."""
    modes = [False, True][: 1 + compiled.load()]

    def switched(is_on):
        with compiled.switched(is_on):
            ours()

    calls = [functools.partial(switched, is_on) for is_on in modes]
    slowest = max(map(seconds_of, calls))  # which also compiles and fills caches
    times = min(times, max(2, int(MOST_SECONDS / slowest)))
    least, *own = in_turn(times, theirs, *calls)
    ratios, milliseconds = [one / least for one in own], [1e3 * one for one in own]
    wanted = [f"<= {WITHOUT_LOOPS * limit:g}", f"<= {limit:g}"] if limit else ["", ""]
    return what, *padded(ratios), *wanted, *padded(milliseconds)


def padded(numbers):
    return [*numbers, "", ""][:2]


def fits(smoke):
    """Default fits beside scikit-learn's."""
    for fit in FITS[: 2 if smoke else None]:
        for shape, limit in list(fit.limits.items())[: 1 if smoke else None]:
            X, y = data(*shape, fit.targets, fit.columns)
            times = 1 if smoke else 30
            theirs = functools.partial(fit.theirs.fit, X, y)
            # A model of its own for each fit: the statement of a second fit covers the first one.
            yield compared(f"{fit.name} {shape}", theirs, lambda: fit.ours.fit(X, y), times, limit)  # noqa: B023


def peers(smoke):
    """Default fits beside those of diffprivlib, which has an environment of its own."""
    try:
        diffprivlib_env.python()
    except Unavailable as reason:
        print(f"left out: {reason}")
        return
    for fit in FITS[:2]:
        for shape in [(500, 10)] if smoke else [(1000, 10), (10_000, 50), (100_000, 50)]:
            X, y = data(*shape, fit.targets)
            task = {"X_train": X, "y_train": y, "X_test": X[:1], "epsilon": 1.0, "seed": 0,
                    "is_classification": fit.theirs is LOGISTIC, "row_bound": 2 * shape[1] ** 0.5,
                    "cell_bound": 5.0, "target_bound": 10.0}  # fmt: skip
            theirs = min(float(diffprivlib_env.ask(**task)["seconds"]) for _ in range(3))
            fit.ours.fit(X, y)  # which fills caches
            (own,) = in_turn(10, lambda: fit.ours.fit(X, y))  # noqa: B023  called at once
            yield f"{fit.name} {shape} / diffprivlib", own / theirs, "", "", "", 1e3 * own, ""


def tools(smoke):
    """Scores and searches, beside scikit-learn's, and groups beside rows."""
    shape = (1000, 5) if smoke else (10_000, 50)
    (X, y), times = data(*shape, "2 classes"), 1 if smoke else 3
    ours, grid = skdp.DPLogisticRegression(classes=[0, 1]), {"C": [0.1, 1.0, 10.0]}
    fitted, plain = ours.fit(X, y), LOGISTIC.fit(X, y)
    scored = functools.partial(cross_val_score, plain, X, y)
    yield compared(f"evaluate {shape} / score", functools.partial(plain.score, X, y),
                   lambda: evaluate(fitted, X, y, epsilon=1.0), times)  # fmt: skip
    yield compared(f"cross_val_score {shape}", scored,
                   functools.partial(cross_val_score, ours, X, y), times)  # fmt: skip
    yield compared(f"DPSearchCV {shape} / GridSearchCV",
                   functools.partial(GridSearchCV(LOGISTIC, grid).fit, X, y),
                   lambda: DPSearchCV(ours, grid).fit(X, y), times)  # fmt: skip
    n_rows = shape[0]
    X, y = data(n_rows, 20, "real")
    groups = np.random.default_rng(0).integers(0, n_rows // 3, n_rows)
    calls = (functools.partial(skdp.DPRidge().fit, X, y, groups=some) for some in (None, groups))
    yield compared(f"ridge {(n_rows, 20)} with groups / without", *calls, times)


def first_fit(shape=(10_000, 50)) -> float:
    """Processor time of the first fit of a process."""
    X, y = data(*shape, "2 classes")
    return seconds_of(lambda: skdp.DPLogisticRegression(classes=[0, 1]).fit(X, y))


def first(smoke):
    """First fits of a process, and of a worker of joblib, with numba installed and without it."""
    code = "import benchmarks.speed as one; print(one.first_fit())"

    def in_process(environment):
        run = [sys.executable, "-c", code]
        return float(subprocess.check_output(run, env=os.environ | environment))

    def in_worker(environment):
        workers = get_reusable_executor(1, env=environment, reuse=False, kill_workers=True)
        return workers.submit(first_fit).result()

    for name, seconds in (("a process", in_process), ("a worker", in_worker)):
        without, auto = (
            min(seconds({"SKDP_COMPILED": mode}) for _ in range(1 if smoke else 5))
            for mode in ("never", "auto")
        )
        yield (
            f"first fit of {name} (10000, 50) / without loops", "", auto / without, "", "<= 1.3",
            1e3 * without, 1e3 * auto,
        )  # fmt: skip


def alone(what, value, wanted=""):
    return what, value, "", wanted, "", "", ""


def memory(smoke):
    """Peak of the allocations of a fit beside its data."""
    n_rows = 20_000 if smoke else 1_000_000
    X, y = data(n_rows, 50, "2 classes")
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=3, solver="gd")
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    yield alone(f"peak memory beside {X.nbytes / 1e6:.0f} MB of data / data", peak / X.nbytes)


def plans(smoke):
    """Milliseconds of long plans, seconds of prices, and draws of the secure source."""
    n_steps = 1000 if smoke else 10_000
    model = skdp.DPLogisticRegression(max_iter=n_steps, solver="gd")

    def plan():
        estimator._plans.clear()  # which hold what was planned before
        model.plan(100_000, 50)

    yield alone(f"plan of {n_steps} steps, milliseconds", 1e3 * in_turn(3, plan)[0], "<= 100")
    levels = np.geomspace(0.8, 1.6, n_steps)
    batches = Composed.of(PoissonSampled(0.01, Gaussian(float(level))) for level in levels)
    seconds = seconds_of(lambda: price(batches, 1e-5, Adjacency.ZERO_OUT))
    yield alone(f"price of {n_steps} batches, each with its own noise, seconds", seconds, "<= 5")
    (seconds,) = in_turn(3, lambda: noise_source(None).gaussian(2.0**30, 1_000_000))
    yield alone("secure Gaussian draws, millions a second", 1 / seconds, ">= 3")


class Repeated:
    """The same rows, over and over, in place of a file of many."""

    def __init__(self, rows, n_rows):
        self._rows, self.shape, self.n_read = rows, (n_rows, *rows.shape[1:]), 0

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, chosen):
        self.n_read += chosen.stop - chosen.start
        return self._rows[np.arange(chosen.start, chosen.stop) % len(self._rows)]


def chunks(smoke):
    """Five steps on many more rows than are held, with two threads, in wall time."""
    n_rows, n_held = (200_000, 10_000) if smoke else (25_000_000, 1_000_000)
    held, labels = data(n_held, 20, "2 classes")
    X, y = Repeated(held, n_rows), Repeated(labels, n_rows)
    # delta below 1 / n
    model = skdp.DPLogisticRegression(delta=1e-9, classes=[0, 1], solver="gd", max_iter=5)
    with threadpool_limits(2):
        tracemalloc.start()
        seconds = seconds_of(lambda: model.fit(skdp.data.Chunks(X, y)), time.perf_counter)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    yield alone(f"chunks of ({n_rows}, 20): million rows a second", X.n_read / seconds / 1e6)
    yield alone(f"chunks of ({n_rows}, 20): megabytes beside the rows", peak / 1e6)


PARTS = {part.__name__: part for part in (fits, peers, tools, first, memory, plans, chunks)}
ONE_THREAD = fits, peers, tools, memory, plans


def run(output: Path | None, command: str, smoke: bool, parts: Sequence[str] = ()) -> None:
    """Print the rows of some parts, or all, and put them in place of those in the file."""
    results_file.refuse_unknown(parts, PARTS, "parts")
    table = []
    for name in parts or PARTS:
        with warnings.catch_warnings(), threadpool_limits(1 if PARTS[name] in ONE_THREAD else None):
            warnings.simplefilter("ignore")
            for row in PARTS[name](smoke):
                cells = [f"{x:.3f}" if isinstance(x, float) else x for x in row]
                print(f"{cells[0]:74s}", *(f"{cell:>9s}" for cell in cells[1:]), flush=True)
                table.append(dict(zip(COLUMNS, [name, *cells], strict=True)))
    if output is not None:
        comments, former = results_file.read(output)
        kept = [row for row in former if row.get("part") in PARTS and row["part"] not in parts]
        results_file.write(output, comments or [f"made by: {command}"], COLUMNS,
                           [*(kept if parts else []), *table])  # fmt: skip
