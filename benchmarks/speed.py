"""Speed as ratios in one run: the kernel, planning, the oracle's overhead, passes, memory.

What compiled loops change is measured twice, without and with them (`pip install "skdp[fast]"`).
"""

from __future__ import annotations

import collections
import csv
import functools
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import sklearn.linear_model
from scipy import sparse
from threadpoolctl import threadpool_limits

import skdp
from benchmarks import speed_parallel
from skdp.accounting import Adjacency
from skdp.fitting import preparation
from skdp.objective import ElasticNet, Logistic, Problem
from skdp.oracle import FixedSize, Oracle, Poisson, Public, ShuffledPass, compiled
from skdp.oracle.kernels.clipped_gradients import clipped_gradients
from skdp.oracle.kernels.second_moments import bounded_gram
from skdp.oracle.noise import SystemSource, noise_source
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.sources.column_map import Columns, Scaling
from skdp.oracle.sources.memory import MemorySource, row_threads
from skdp.oracle.sources.records import Records


def best_of(function, repeats, clock=time.perf_counter):
    """Least seconds of several calls."""
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def alternating(first, second, repeats, clock=time.perf_counter):
    """Least seconds of two functions called in turn, so that both see the same machine."""
    pairs = [(best_of(first, 1, clock), best_of(second, 1, clock)) for _ in range(repeats)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def plain_pass(X, y, norms, point, clip_norm):
    """Two plain matrix-vector products with clipping between them."""
    residuals = 1 / (1 + np.exp(-(X @ point[:-1] + point[-1]))) - y
    limits = clip_norm / norms
    clipped = np.clip(residuals, -limits, limits)
    return X.T @ clipped, clipped.sum()


def kernel(n_rows, n_features, repeats):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    y = (X[:, 0] > 0).astype(float)
    point = rng.standard_normal((n_features + 1, 1)) / 10
    norms = np.hypot(np.linalg.norm(X, axis=1), 1.0)
    plain = ours = np.inf
    for _ in range(repeats):
        plain = min(plain, best_of(lambda: plain_pass(X, y, norms, point[:, 0], 1.0), 5))
        with row_threads() as spread:
            rows = MemorySource(Records.of(X, y[:, None]), None, spread)
            sum_up = functools.partial(rows.total, clipped_gradients, Logistic(), point, 1.0)
            ours = min(ours, best_of(sum_up, 5))
    yield f"kernel pass ({n_rows}, {n_features}) float64, plain / ours", plain / ours, ">= 1.3"
    yield "  GB/s", X.nbytes / 1e9 / ours, ""


def one_thread(n_rows, n_features, repeats):
    """Passes in processor time of one thread, beside the time that it takes to read the rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    y, point = X[:, :1] > 0, rng.standard_normal((n_features + 1, 1)) / 10
    unit = np.ones(n_features)
    in_units = Scaling(Columns(-3 * unit, 3 * unit, 0.1 * unit, 1.1 * unit))
    passes = {"read": X.sum}
    for kind in (np.float64, np.float32):
        held = MemorySource.of(X.astype(kind), y.astype(kind), None, 2.0 * n_features**0.5)
        given = {"as they are": held, "standardised": held.transformed(in_units, held.row_bound)}
        for what, rows in given.items():
            call = functools.partial(rows.total, clipped_gradients, Logistic(), point, 1.0)
            passes[kind.__name__, what] = call
    seconds = dict.fromkeys(passes, np.inf)
    for _ in range(repeats):
        for name, call in passes.items():
            seconds[name] = min(seconds[name], best_of(call, 2, time.thread_time))
    where = f"pass ({n_rows}, {n_features}), processor time of one thread"
    for what, wanted in (("as they are", (">= 0.33", ">= 0.50")), ("standardised", ("", ""))):
        double, single = (seconds[kind, what] for kind in ("float64", "float32"))
        yield f"{where}, rows {what}: share of the read speed", seconds["read"] / double, *wanted
        wanted = ("<= 0.9", "<= 0.65") if what == "as they are" else ("", "")
        yield "  float32 / float64", single / double, *wanted


def fast_or_not(measure):
    """Rows of a table, measured without compiled loops and with them, if numba is installed."""
    with compiled.switched(False):
        without = list(measure())
    found = [(what, value, "", wanted, "") for what, value, wanted, _ in without]
    if compiled.load():
        with compiled.switched(True):
            pairs = zip(without, measure(), strict=True)
            found = [(a[0], a[1], b[1], a[2], a[3]) for a, b in pairs]
    return found


def planning(repeats):
    for n_steps, wanted in ((1000, "< 50"), (10_000, "<= 100")):
        model = skdp.DPLogisticRegression(max_iter=n_steps, solver="gd")

        def plan(model=model):
            preparation._plans.clear()  # which hold what was planned before
            model.plan(100_000, 50)

        name = f"plan and calibration of {n_steps:,} steps, milliseconds"
        yield name, 1e3 * best_of(plan, repeats), wanted


class Stopwatch:
    """Adds up the time spent in a method while it is patched."""

    def __init__(self, owner, name):
        self._owner, self._name, self._original = owner, name, getattr(owner, name)
        self.seconds = 0.0

    def __enter__(self):
        original, watch = self._original, self

        @functools.wraps(original)
        def timed(*args, **kwargs):
            start = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                watch.seconds += time.perf_counter() - start

        setattr(self._owner, self._name, timed)
        return self

    def __exit__(self, *failure):
        setattr(self._owner, self._name, self._original)


def overhead(n_rows, n_features, repeats, steps=200):
    """Time inside a real fit: all of ask, of it the pass over rows and the noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    y = (X[:, 0] > 0).astype(int)
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=steps, solver="gd", scaling="none")
    shares = []
    for _ in range(repeats):
        with (
            Stopwatch(Oracle, "request") as ask,
            Stopwatch(MemorySource, "total") as kernel,
            Stopwatch(SystemSource, "gaussian") as draws,
        ):
            start = time.perf_counter()
            model.fit(X, y)
            fit = time.perf_counter() - start
        shares.append(((ask.seconds - kernel.seconds - draws.seconds) / fit, draws.seconds / fit))
    oracle, noise_share = np.median(shares, axis=0)
    name = f"of a fit of {steps} steps at ({n_rows}, {n_features}), per cent:"
    yield f"{name} the oracle", 100 * oracle, "< 2"
    yield f"{name} drawing noise", 100 * noise_share, ""


def batches(n_rows, repeats, size=256):
    """A draw must cost what is drawn, not what it is drawn from."""
    source = noise_source(None)
    few = max(n_rows // 100, 4 * size)
    seconds = {}
    for n in (few, n_rows):
        rows = MemorySource.of(np.zeros((n, 20)), np.zeros((n, 1)))
        for sampler in (Poisson(size / n), FixedSize(size)):
            draw = functools.partial(sampler.draw, rows, source)
            name = type(sampler).__name__
            seconds[name, n] = best_of(lambda draw=draw: [draw() for _ in range(50)], repeats) / 50
    for name in ("Poisson", "FixedSize"):
        ratio = seconds[name, n_rows] / seconds[name, few]
        yield f"{name} batch of {size}: from {n_rows} rows / from {few}", ratio, "~ 1"
    yield "  Poisson, microseconds a batch", 1e6 * seconds["Poisson", n_rows], ""


def passes(n_features, repeats, n_rows=50_000):
    """A pass of steps on single records behind the boundary, in processor time."""
    X = np.random.default_rng(0).standard_normal((n_rows, n_features))
    y = (X[:, 0] > 0).astype(float)
    bound = 2 * n_features**0.5
    rows = MemorySource.of(X, y[:, None], None, bound, 0.0)
    public = Public(
        n_rows, n_features, 1, Adjacency.REPLACE_ONE, 1.0, 1e-6, has_intercept=False,
        row_bound=bound,
    )  # fmt: skip
    context = PublicContext(public, Problem(Logistic(), ElasticNet(0.01), fit_intercept=False), 1.0)
    release = ShuffledPass(n_rows, 0.01, 1.0)
    for kind, seed in (("seeded", 0), ("secure", None)):
        answer = functools.partial(release.answer, rows, context, noise_source(seed))
        microseconds = 1e6 * best_of(answer, repeats, time.process_time) / n_rows
        yield f"steps on one record each, d = {n_features}: microseconds, {kind}", microseconds


def gram(n_rows, n_features, repeats):
    """Gram matrix of rows as they are, and of rows that are standardised in every pass."""
    X, unit = np.random.default_rng(0).standard_normal((n_rows, n_features)), np.ones(n_features)
    in_units = Columns(-3 * unit, 3 * unit, 0.1 * unit, 1.1 * unit).for_type(np.float64)
    for what, columns in (("as they are", None), ("standardised", in_units)):
        sum_up = functools.partial(
            MemorySource.of(X, X[:, :1], columns=columns).total, bounded_gram, 1e9
        )
        seconds = best_of(sum_up, repeats, time.process_time)
        yield f"Gram matrix, ({n_rows}, {n_features}) {what}: milliseconds", 1e3 * seconds, "", ""


def noise(repeats):
    """Draws of the secure source."""
    source = noise_source(None)
    seconds = best_of(lambda: source.gaussian(2.0**30, 1_000_000), repeats)
    yield "secure Gaussian draws, millions a second", 1 / seconds, ">= 3"
    short = best_of(lambda: [source.gaussian(2.0**30, 50) for _ in range(100)], repeats)
    yield "  microseconds for 50 of them", 1e4 * short, ""


def memory(n_rows):
    """Peak of what a fit allocates beside its data, which it copies only if they are few."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 50))
    y = (X[:, 0] > 0).astype(int)
    entries = sparse.random_array((n_rows // 10, 2000), density=0.02, rng=rng, format="csr")
    for name, held in (("float64", X), ("float32", X.astype(np.float32)), ("CSR", entries)):
        n_bytes = held.nbytes if name != "CSR" else held.data.nbytes + held.indices.nbytes
        for scaling in ("none", "auto"):
            tracemalloc.start()
            model = skdp.DPLogisticRegression(
                classes=[0, 1], max_iter=3, solver="gd", scaling=scaling
            )
            model.fit(held, y[: held.shape[0]])
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            what = f"peak memory beside the data / {name} data of {n_bytes / 1e6:.0f} MB, scaling"
            yield f"{what}={scaling!r}", peak / n_bytes, "<= 0.3"


# Default fits beside scikit-learn's, in processor time of one thread: what is wanted of logistic
# regression and of ridge, without compiled loops and with them.
FITS = {
    (1000, 10): (("<= 8", "<= 8"), ("<= 25", "<= 25")),
    (10_000, 50): (("<= 9", "<= 7"), ("<= 20", "<= 15")),
    (100_000, 50): (("<= 4", "<= 2.5"), ("<= 8", "<= 5")),
    (1_000_000, 50): (("", ""), ("", "")),
    (100_000, 300): (("<= 12", "<= 8"),),  # logistic regression alone
}
MANY_NUMBERS = 20_000_000  # in X, from which a fit is timed once


def fits(n_rows, n_features, columns, repeats):
    """Processor time of the default fit beside scikit-learn's, in pairs.

    ``columns`` are "isotropic", on which scikit-learn's solver takes few steps, or have a few large
    factors in common ("factor"), on which it takes many.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    if columns == "factor":
        X += rng.standard_normal((n_rows, 5)) @ rng.standard_normal((5, n_features))
    margins = X @ rng.standard_normal(n_features) / n_features**0.5
    targets = {
        "LogisticRegression": (margins + rng.logistic(size=n_rows) > 0).astype(int),
        "Ridge": margins + rng.standard_normal(n_rows),
    }
    names = "LogisticRegression", "Ridge"
    for name, wanted in zip(names, FITS[n_rows, n_features], strict=False):
        plain, ours = getattr(sklearn.linear_model, name)(), getattr(skdp, f"DP{name}")()
        y = targets[name]
        theirs, private = alternating(
            functools.partial(plain.fit, X, y),
            functools.partial(ours.fit, X, y),
            repeats,
            time.process_time,
        )
        what = f"default fit ({n_rows}, {n_features}) {columns} / scikit-learn's {name}"
        yield what, private / theirs, *wanted
        yield "  milliseconds", 1e3 * private, "", ""


def special_fits(n_rows, repeats):
    """Processor time of the default fit to CSR rows beside scikit-learn's, and of one to groups."""
    rng = np.random.default_rng(0)
    entries = sparse.random_array((n_rows, 500), density=0.01, rng=rng, format="csr")
    margins = 30 * (entries @ rng.standard_normal(500)) / 500**0.5
    for name, y, wanted in (
        ("LogisticRegression", (margins > rng.logistic(size=n_rows)).astype(int), "<= 15"),
        ("Ridge", margins + rng.standard_normal(n_rows), "<= 60"),
    ):
        plain, ours = getattr(sklearn.linear_model, name)(), getattr(skdp, f"DP{name}")()
        calls = (functools.partial(model.fit, entries, y) for model in (plain, ours))
        theirs, private = alternating(*calls, repeats, time.process_time)
        what = f"default fit ({n_rows}, 500) CSR, 1 % filled / scikit-learn's {name}"
        yield what, private / theirs, "", wanted
        yield "  milliseconds", 1e3 * private, "", ""
    X, groups = rng.standard_normal((n_rows, 20)), rng.integers(0, n_rows // 3, n_rows)
    model, y = skdp.DPRidge(), X[:, 0] + rng.standard_normal(n_rows)
    calls = (functools.partial(model.fit, X, y, groups=some) for some in (None, groups))
    alone, grouped = alternating(*calls, 3 * repeats, time.process_time)
    yield f"default ridge fit ({n_rows}, 20) with groups / without", grouped / alone, "", "<= 1.5"


PARTS = "others", "memory", *speed_parallel.PARTS, "steps", "passes", "fits", "special"
COMMON = "milliseconds", "float32 / float64"  # names of rows that belong to the row before


def run(output: Path | None, command: str, smoke: bool, parts: Sequence[str] = ()) -> None:
    """Print the table and, if asked, write it with the command that made it.

    Parts that are named are measured alone, and their rows put in place of those in the file;
    fits alone of a shape, such as "100000x50", likewise.
    """
    unknown = set(parts) - {*PARTS, *map(shape_name, FITS)}
    if unknown:
        raise SystemExit(f"speed has the parts {', '.join([*PARTS, *map(shape_name, FITS)])}")
    repeats, n_rows = (1, 20_000) if smoke else (5, 1_000_000)
    table: list[tuple] = []
    if not parts or "others" in parts:
        table += [
            *kernel(n_rows, 50, repeats),
            *planning(repeats),
            *overhead(max(n_rows // 10, 20_000), 50, repeats),
            *batches(n_rows, repeats),
            *noise(repeats),
        ]
    if not parts or "memory" in parts:
        table += memory(n_rows)
    for name, measure in speed_parallel.PARTS.items():
        if not parts or name in parts:
            table += measure(smoke)
    table = [(what, value, "", wanted, "") for what, value, wanted in table]
    with threadpool_limits(1):
        if not parts or "steps" in parts:
            rows = 1000 if smoke else 50_000
            table += [(*row, "", "") for row in passes(20, 1 if smoke else 2, rows)]
            table += fast_or_not(lambda: gram(n_rows // 10, 50, 5 * repeats))
        if not parts or "passes" in parts:
            table += fast_or_not(lambda: one_thread(n_rows, 50, repeats))
        if not parts or "special" in parts:
            table += fast_or_not(lambda: special_fits(n_rows // 10, 1))
        for shape in list(FITS)[: 1 if smoke else None]:
            if parts and not {"fits", shape_name(shape)} & set(parts):
                continue
            times = 1 if shape[0] * shape[1] >= MANY_NUMBERS else repeats
            for columns in ("isotropic", "factor"):
                table += fast_or_not(functools.partial(fits, *shape, columns, times))
    shown = "{:.3f}".format
    table = [(row[0], *(x if isinstance(x, str) else shown(x) for x in row[1:])) for row in table]
    for what, *figures in table:
        print(f"{what:74s}", *(f"{figure:>9s}" for figure in figures))
    if output is None:
        return
    rows = [(what.strip(), *figures) for what, *figures in table]
    if parts:
        with output.open(newline="") as file:
            command = file.readline().removeprefix("# made by: ").strip()
            rows = merged([tuple(row) for row in csv.reader(file)][1:], rows)
    with output.open("w", newline="") as file:
        print("# made by:", command, file=file)
        writer = csv.writer(file)
        writer.writerow(["what", "value", "with_fast", "wanted", "wanted_with_fast"])
        writer.writerows(rows)


def merged(former, rows):
    """Put rows in place of those with their names, each with rows of the same name before it."""

    def named(rows):
        """Give names that say what a row of a common name, such as "milliseconds", belongs to."""
        counts = collections.Counter(row[0] for row in rows)
        found, last = {}, ""
        for row in rows:
            last = last if row[0] in COMMON or counts[row[0]] > 1 else row[0]
            found[last, row[0]] = row
        return found

    return [*(named(former) | named(rows)).values()]


def shape_name(shape):
    return "x".join(map(str, shape))
