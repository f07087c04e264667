"""Speed in wall time: threads, searches on two cores, a cluster of two processes, long plans.

Run on a machine that does nothing else. ``python -m benchmarks speed threads cluster`` calls this.
"""

from __future__ import annotations

import pickle
import statistics
import time
import tracemalloc

import numpy as np
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

import skdp
from skdp.accounting import Adjacency, Composed, Gaussian, PoissonSampled, price

PASSES = 5, 25  # of two fits, whose difference is the time of a pass
WORKERS = 100  # of the cluster that is simulated
WORKER_ROWS = 10_000_000  # of each of its workers, 1e9 in all, of 100 columns


def seconds_of(function) -> float:
    """Wall time of a call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def best_in_turn(repeats: int, *functions) -> list[float]:
    """Least wall time of each of several functions, called in turn."""
    times = [[seconds_of(function) for function in functions] for _ in range(repeats)]
    return [min(of_one) for of_one in zip(*times, strict=True)]


def in_threads(smoke: bool):
    """A small fit with all threads; steps of gd, and a search, on two cores and on one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 10))
    y = (X[:, 0] + rng.logistic(size=500) > 0).astype(int)
    with threadpool_limits(2):
        fit = skdp.DPLogisticRegression(classes=[0, 1]).fit
        times = [seconds_of(lambda: fit(X, y)) for _ in range(3 if smoke else 30)]
    what = "default fit (500, 10), two threads, wall time in milliseconds"
    yield what, 1e3 * statistics.median(times), "<= 15"

    n_rows = 20_000 if smoke else 1_000_000
    X = rng.standard_normal((n_rows, 50))
    y = (X[:, 0] + rng.logistic(size=n_rows) > 0).astype(int)

    def steps(n_threads):
        model = skdp.DPLogisticRegression(
            classes=[0, 1], solver="gd", max_iter=20, scaling=skdp.RowNorm(10)
        )
        with threadpool_limits(n_threads):
            model.fit(X, y)

    one, two = best_in_turn(1 if smoke else 3, lambda: steps(1), lambda: steps(2))
    yield f"gd ({n_rows}, 50), 20 steps: one thread / two, wall time", one / two, ">= 1.7"

    few = slice(20_000)
    grid = {"C": [0.1, 1.0, 10.0]}

    def search(n_jobs):
        with threadpool_limits(1):
            GridSearchCV(skdp.DPLogisticRegression(classes=[0, 1]), grid, cv=4, n_jobs=n_jobs).fit(
                X[few], y[few]
            )

    search(2)  # starts the processes
    one, two = best_in_turn(1 if smoke else 3, lambda: search(1), lambda: search(2))
    what = "GridSearchCV of 12 fits (20000, 50): n_jobs=1, one thread / n_jobs=2, wall time"
    yield what, one / two, ">= 1.8"

    count = 1000 if smoke else 10_000
    levels = np.geomspace(0.8, 1.6, count)
    plan = Composed.of(PoissonSampled(0.01, Gaussian(float(level))) for level in levels)
    seconds = seconds_of(lambda: price(plan, 1e-5, Adjacency.ZERO_OUT))
    yield f"epsilon of {count} Poisson batches, each with its own noise, seconds", seconds, "<= 5"


class Repeated:
    """The same rows, over and over, in place of a file of many."""

    def __init__(self, rows, n_rows):
        self._rows, self.shape, self.n_read = rows, (n_rows, *rows.shape[1:]), 0

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, chosen):
        size, start = chosen.stop - chosen.start, chosen.start % len(self._rows)
        self.n_read += size
        if start + size <= len(self._rows):
            return self._rows[start : start + size]
        return self._rows[np.arange(start, start + size) % len(self._rows)]


def in_chunks(smoke: bool):
    """Five steps on many more rows than are held, which are given chunk by chunk."""
    n_rows, n_held = (200_000, 10_000) if smoke else (25_000_000, 1_000_000)
    rng = np.random.default_rng(0)
    held = rng.standard_normal((n_held, 20))
    labels = (held[:, 0] + rng.logistic(size=n_held) > 0).astype(int)
    X, y = Repeated(held, n_rows), Repeated(labels, n_rows)
    # delta below 1 / n
    model = skdp.DPLogisticRegression(delta=1e-9, classes=[0, 1], solver="gd", max_iter=5)
    with threadpool_limits(2):
        tracemalloc.start()
        seconds = seconds_of(lambda: model.fit(skdp.data.Chunks(X, y)))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    what = f"gd in chunks ({n_rows}, 20), scaling and 5 steps, two threads, wall time in seconds"
    yield what, seconds, ""
    yield "  passes", X.n_read / n_rows, ""
    yield "  million rows a second", X.n_read / seconds / 1e6, ""
    yield "  peak memory beside the rows that are held, megabytes", peak / 1e6, ""


class Copies(skdp.data.Partitions):
    """A partition, and what many workers that held one like it would send."""

    def __init__(self, X, y):
        self._rows, self.n_passes, self.n_bytes = (X, y), 0, 0

    def run(self, task, spread=map):
        """Send the task to each worker, and take an answer from each, by way of bytes."""
        self.n_passes += 1
        sent = pickle.dumps(task)
        received = pickle.dumps(pickle.loads(sent)(*self._rows))
        for _ in range(WORKERS):
            self.n_bytes += len(sent) + len(received)
            yield pickle.loads(received)


def simulated(smoke: bool):
    """What a client has to do for many workers: by bytes, memory and time per pass."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000, 100))
    y = X @ rng.standard_normal(100) + rng.standard_normal(len(X))
    for name, model, labels in (
        ("logistic", skdp.DPLogisticRegression(classes=[0, 1]), (y > 0).astype(int)),
        ("ridge", skdp.DPRidge(), y),
    ):
        model.fit(Copies(X, labels))  # what is imported and cached at first
        rows = Copies(X, labels)
        tracemalloc.start()
        model.fit(rows)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        seconds = seconds_of(lambda: model.fit(Copies(X, labels)))  # noqa: B023  called at once
        what = f"simulated: {WORKERS} workers, 100 columns, default {name}"
        yield f"{what}: passes", rows.n_passes, ""
        yield "  megabytes a pass, all workers", rows.n_bytes / rows.n_passes / 1e6, ""
        yield "  peak memory of the client, megabytes", peak / 1e6, ""
        yield "  client's milliseconds a pass", 1e3 * seconds / rows.n_passes, ""


def of_a_pass(fit, times: int) -> float:
    """Seconds of a pass: the least of a fit of many passes less the least of one of few."""
    few, many = (
        min(seconds_of(lambda: fit(n)) for _ in range(times))  # noqa: B023  called at once
        for n in PASSES
    )
    return (many - few) / (PASSES[1] - PASSES[0])


def on_cluster(smoke: bool):
    """A pass over the rows of two dask workers beside one with two threads, and a simulation."""
    yield from simulated(smoke)
    try:
        import dask.array
        import distributed
    except ImportError:
        return
    n_rows = 20_000 if smoke else 4_000_000

    def model(max_iter):
        return skdp.DPRidge(solver="gd", max_iter=max_iter, scaling=skdp.RowNorm(10))

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 50))
    y = X[:, 0] + rng.standard_normal(n_rows)
    with threadpool_limits(2):
        here = of_a_pass(lambda n: model(n).fit(X, y), 1 if smoke else 2)
    del X, y
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as workers, distributed.Client(workers):
        X = dask.array.random.default_rng(0).standard_normal((n_rows, 50), (n_rows // 8, 50))
        X = X.persist()
        errors = dask.array.random.default_rng(1).standard_normal(n_rows, n_rows // 8)
        y = (X[:, 0] + errors).persist()
        distributed.wait([X, y])
        there = of_a_pass(lambda n: model(n).fit(X, y), 1 if smoke else 2)
    least = 1.25 * here + 0.025
    yield f"dask, two workers, ({n_rows}, 50): pass, milliseconds", 1e3 * there, ""
    yield "  pass with two threads, milliseconds", 1e3 * here, ""
    yield "  pass / (1.25 passes with two threads + 25 ms)", there / least, "<= 1"


PARTS = {"threads": in_threads, "chunks": in_chunks, "cluster": on_cluster}
