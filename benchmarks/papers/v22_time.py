"""Seconds per row of one pass, from 1e5 to 1e7 rows of a file that is mapped into memory.

Processor time of a whole fit (validation, norms of rows, shuffle, pass), its plan being
made beforehand: to price a shuffled pass takes tenths of a second, however many rows there are.
"""

from __future__ import annotations

import functools
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

import skdp
from skdp.accounting import calibrate
from skdp.oracle.sources.base import IN_MEMORY, STREAMED
from skdp.solvers import AdaptiveShuffledSGD, ShuffledSGD

SIZES = (100_000, 1_000_000, 10_000_000)
DIMENSION = 20
PIECE = 100_000
SOLVERS = {
    "shuffled_sgd, single records": ShuffledSGD(batch_size=1),
    "shuffled_sgd": ShuffledSGD(),
    "adaptive_shuffled_sgd": AdaptiveShuffledSGD(),
}


def blocks(X, y, size=PIECE):
    """Rows as they would arrive."""
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


def write(folder):
    """Rows in a file, the targets beside it."""
    n_rows = SIZES[-1]
    X = np.memmap(folder / "X", np.float32, "w+", shape=(n_rows, DIMENSION))
    y = np.empty(n_rows, np.float32)
    rng = np.random.default_rng(0)
    w = rng.standard_normal(DIMENSION, np.float32) / DIMENSION**0.5
    for start in range(0, n_rows, PIECE):
        block = rng.standard_normal((PIECE, DIMENSION), np.float32)
        X[start : start + PIECE] = block
        y[start : start + PIECE] = block @ w + rng.standard_normal(PIECE, np.float32)
    X.flush()
    return y


def seconds(solver, X, y, streamed=False, seed=0):
    """Processor time of one fit, everything but its plan included."""
    model = skdp.DPLinearRegression(
        solver=solver,
        delta=1e-8,
        fit_intercept=False,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
    )
    provides = STREAMED if streamed else IN_MEMORY
    # The step size of single records follows from the price, too, which is found beforehand.
    with mock.patch("skdp.accounting.calibrate", functools.cache(calibrate)):
        prepared = model._prepare(len(y), DIMENSION, provides=provides)
        with mock.patch.object(skdp.DPLinearRegression, "_prepare", return_value=prepared):
            return _timed(model, X, y, streamed)


def _timed(model, X, y, streamed):
    started = time.process_time()
    if streamed:
        model.fit_blocks(blocks(X, y), n_samples=len(y), n_features=DIMENSION)
    else:
        model.fit(X, y)
    return time.process_time() - started


def linear_time(report):
    """Microseconds per row against the number of rows; ratios are within one run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        y = write(folder)
        X = np.memmap(folder / "X", np.float32, "r", shape=(SIZES[-1], DIMENSION))
        seconds(SOLVERS["adaptive_shuffled_sgd"], X[:1000], y[:1000])  # imports
        for streamed in (False, True):
            for solver_name, solver in SOLVERS.items():
                least = None
                for n_rows in SIZES:
                    part, targets = X[:n_rows], y[:n_rows]
                    runs = 5 if n_rows == SIZES[0] else 2 if n_rows == SIZES[1] else 1
                    best = min(seconds(solver, part, targets, streamed) for _ in range(runs))
                    each = 1e6 * best / n_rows
                    least = each if least is None else least
                    report.add(
                        experiment="time",
                        method=solver_name + (", stream" if streamed else ", memory map"),
                        n=n_rows,
                        microseconds_a_row=f"{each:.3f}",
                        ratio=f"{each / least:.3f}",
                    )
        million = X[:1_000_000], y[:1_000_000]
        for source, seed in (("seeded", 0), ("secure", None)):
            each = min(
                seconds(SOLVERS["shuffled_sgd, single records"], *million, seed=seed)
                for _ in range(2)
            )
            report.add(
                experiment="single",
                method=source,
                n=1_000_000,
                microseconds_a_row=f"{each:.3f}",
            )
