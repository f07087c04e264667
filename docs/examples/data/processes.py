"""
Fit on rows that live in other processes
========================================

A class of partitions needs only one method.

Each process stores one partition, runs a task on it, and returns a sum. Spark, Ray or any other
engine that can run a function next to the rows needs the same 20 lines.
"""

# sphinx_gallery_thumbnail_path = "generated/pictures/boundary.png"

from concurrent.futures import ProcessPoolExecutor

import numpy as np

import skdp

_rows = {}  # of the process: X and y of its partition


def make_rows(number):
    """Make, or read, the rows of a partition: here 20,000 rows of a public example."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((20_000, 10))
    return X, X @ np.linspace(1, -1, 10) + rng.standard_normal(len(X))


def run_task(number, task):
    """Run a task next to the rows, which the first task reads."""
    if number not in _rows:
        _rows[number] = make_rows(number)
    return task(*_rows[number], index=number)


class InProcesses(skdp.data.Partitions):
    """Partitions that live in processes of this machine, one each."""

    def __init__(self, n_partitions):
        # One process for each partition, so that a partition's tasks find its rows.
        self._pools = [ProcessPoolExecutor(1) for _ in range(n_partitions)]

    def run(self, task, spread=map):
        """Send the task to all partitions, then give the answers in the partitions' order."""
        waiting = [pool.submit(run_task, i, task) for i, pool in enumerate(self._pools)]
        for answer in waiting:
            yield answer.result()

    def close(self):
        """End the processes."""
        for pool in self._pools:
            pool.shutdown()


def main():
    """Fit a ridge regression on three processes and print its coefficients and its cost."""
    rows = InProcesses(3)
    model = skdp.DPRidge(epsilon=1.0).fit(rows)
    rows.close()
    print(model.coef_.round(2))
    print(f"epsilon {model.privacy_.epsilon:.3f}, {model.privacy_.n_rows} rows")


if __name__ == "__main__":
    main()
