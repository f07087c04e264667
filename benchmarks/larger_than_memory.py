"""An analysis of a table that is larger than memory, from preparation to a private score.

``python -m benchmarks.larger_than_memory --rows 10000000`` sets rows aside, fills missing values
by private medians, searches over two candidates, fits with intervals, and scores. It may use 4 GiB
of address space; rows are made from a seed in every pass, and stored nowhere, so that the table can
have any size. The time of a pass is that of making the rows, of turning them into numbers, and of
the sums. The passes of a search show how many runs it made, which stays secret where rows are
private; these are public.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import threadpool_limits

import skdp
from skdp.model_selection import DPHoldout, DPSearchCV

N_COLUMNS = 20
ROWS_AT_ONCE = 1 << 17  # of a partition: 10 MB in float32
LIMIT = 4 << 30  # bytes of address space
DELTA = 1e-9  # of each fit, below 1 / n


class GeneratedTable(skdp.Partitions):
    """A table of public, made-up rows, each partition of which follows from a seed.

    Columns have units of their own. The last but one has missing values, and the last one holds
    codes of three categories.

    Parameters
    ----------
    n_rows : int
    rows_at_once : int
        Rows of a partition.
    """

    def __init__(self, n_rows: int, rows_at_once: int = ROWS_AT_ONCE) -> None:
        self._sizes = [
            min(rows_at_once, n_rows - start) for start in range(0, n_rows, rows_at_once)
        ]
        rng = np.random.default_rng(0)
        self._units = (10 ** rng.uniform(0.0, 4.0, N_COLUMNS - 1)).astype(np.float32)
        self._centres = self._units * rng.normal(0.0, 3.0, N_COLUMNS - 1).astype(np.float32)
        self._slopes = rng.normal(0.0, 1.0, N_COLUMNS - 1).astype(np.float32)
        self.n_passes = 0

    def run(self, task, spread=map):
        """Make the partitions, as many at a time as there are threads, and run the task on each."""
        self.n_passes += 1

        def run_on(index: int):
            return task(*self.rows(index), index=index)

        return spread(run_on, range(len(self._sizes)))

    def rows(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return X and y of a partition."""
        rng, n_rows = np.random.default_rng([1, index]), self._sizes[index]
        X = np.empty((n_rows, N_COLUMNS), dtype=np.float32)
        numbers = rng.standard_normal((n_rows, N_COLUMNS - 1), dtype=np.float32)
        codes = rng.integers(3, size=n_rows)
        y = numbers @ self._slopes + codes + rng.standard_normal(n_rows, dtype=np.float32)
        np.multiply(numbers, self._units, out=X[:, :-1])
        X[:, :-1] += self._centres
        X[rng.random(n_rows) < 0.2, -2] = np.nan
        X[:, -1] = codes
        return X, y


def analysis() -> Pipeline:
    """Return the preparation and the model, of few passes over the rows."""
    return make_pipeline(
        skdp.DPTabularPreprocessor(
            {N_COLUMNS - 1: [0, 1, 2]},
            impute="median",
            missing=[N_COLUMNS - 2],
            epsilon=0.2,
            delta=DELTA,
        ),
        skdp.DPRidge(epsilon=0.8, delta=DELTA, solver="boosted_ssp", inference="coefficients"),
    )


def run(n_rows: int, rows_at_once: int = ROWS_AT_ONCE) -> None:
    """Run the analysis, and print what each stage took and what was found."""
    table = GeneratedTable(n_rows, rows_at_once)

    def stage(name: str, function):
        n_before, start = table.n_passes, time.perf_counter()
        result = function()
        seconds, n_passes = time.perf_counter() - start, table.n_passes - n_before
        # Kilobytes on Linux.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name:20} {seconds:8.1f} s {n_passes:4} passes   peak {peak:6.0f} MB", flush=True)
        return result

    print(f"{n_rows} rows of {N_COLUMNS} columns in partitions of {rows_at_once}")
    space = {"dpridge__alpha": [1.0, 1000.0]}
    search = DPSearchCV(
        analysis().set_params(dpridge__inference=None), space, n_candidates=2, delta=DELTA
    )
    with threadpool_limits(2):
        analysis().fit(GeneratedTable(rows_at_once))  # loops are compiled in a first fit
        holdout = stage("hold-out", lambda: DPHoldout(table, test_size=0.2))
        search = stage("search", lambda: holdout.fit(search))
        chosen = analysis().set_params(**search.best_params_)
        model = stage("fit with intervals", lambda: holdout.fit(chosen))
        scores = stage("score", lambda: holdout.evaluate(model, delta=DELTA))
    (low, high), slope = model[-1].conf_int()[0], model[-1].coef_[0]
    print(f"first slope {slope:.5g}, 95 % interval {low:.5g} to {high:.5g}")
    print(scores)
    whole = skdp.total_privacy(search, model, scores.privacy_, delta=3 * DELTA)
    print(f"in all: epsilon {whole.epsilon:.3f} at delta {whole.delta:g}")


def main() -> None:
    """Run the analysis under the limit of memory."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.larger_than_memory")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    run(options.rows)


if __name__ == "__main__":
    main()
