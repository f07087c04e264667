"""Intervals of linear regression beside what others do: bias, coverage and width in one table.

    python -m benchmarks inference peers --runs 200        inference_peers.csv

one step             this library, private scaling, inference="coefficients"; told no bounds
noisy statistics     dp-econometrics / dp-statsmodels (M. Ghenis, 2025), written from its formulas:
                     X'X, X'y and y'y with noise by the classical Gaussian mechanism, at 0.4, 0.4
                     and 0.2 of epsilon and a third of delta each; a matrix that is not positive is
                     shifted until it is; errors from the noise of both and a constant variance
one moment matrix    X'X, X'y and y'y in one release by the exact Gaussian mechanism, rows cut to a
                     norm, with the covariance that follows to first order if the model holds
                     (Ferrando, Wang, Sheldon 2022 give intervals from such a release)
textbook             the private coef_ of this library at the full budget, with the standard errors
                     of a fit without privacy: what one must not do

The others are told that columns lie in [-4, 4] and targets in [-6, 6], standard deviations being 1
and 1.4. "bias" is the mean error next to the standard error without privacy, as a root mean
square over coefficients, so about 1 / sqrt(runs) for none; "median_error" is the median absolute
error on the same scale, 0.67 without privacy. "width" is next to intervals without privacy.
Coverage and width are over determined coefficients; the others take all for determined.
"""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path

import numpy as np
from scipy import stats

import skdp
from benchmarks import results_file
from benchmarks.inference import DELTA, Cell, least_squares_errors, simulate, truth
from skdp import accounting

CUT_X, CUT_Y = 4.0, 6.0  # ends, on both sides, that the others are told of columns and targets
# Of the one moment matrix: targets are divided by their standard deviation, and rows shortened to
# so many times the root of their number of entries. With 1.5 normal rows were cut enough to bias
# slopes.
TARGET_SIZE, ROW_FACTOR = math.sqrt(2), 2.0
SIZES = ((2_000, 5), (10_000, 5), (10_000, 20), (100_000, 5))
EPSILONS = (0.3, 1.0, 3.0)
DESIGNS = (("normal", "equal"), ("correlated", "equal"), ("heavy", "varying"))
COLUMNS = (
    "columns", "errors", "n", "d", "epsilon", "method", "runs", "determined", "bias",
    "median_error", "coverage", "width",
)  # fmt: skip


def one_step(X, y, epsilon, seed):
    model = _fit(X, y, epsilon, seed, inference="coefficients")
    return model.inference_.coef, model.coef_std_error_


def _fit(X, y, epsilon, seed, **options):
    model = skdp.DPLinearRegression(
        epsilon=epsilon, delta=DELTA, scaling="private",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)), **options,
    )  # fmt: skip
    return model.fit(X, y)


def noisy_statistics(X, y, epsilon, seed):
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(len(X)), np.clip(X, -CUT_X, CUT_X)])
    y = np.clip(y, -CUT_Y, CUT_Y)
    n, p = Z.shape
    size = math.sqrt(2 * math.log(1.25 / (DELTA / 3)))
    of_gram = p * CUT_X**2 * size / (0.4 * epsilon)
    of_cross = math.sqrt(p) * CUT_X * CUT_Y * size / (0.4 * epsilon)
    noise = rng.normal(scale=of_gram, size=(p, p))
    gram = Z.T @ Z + np.triu(noise) + np.triu(noise, 1).T
    cross = Z.T @ y + rng.normal(scale=of_cross, size=p)
    squares = y @ y + rng.normal(scale=CUT_Y**2 * size / (0.2 * epsilon))
    least = np.linalg.eigvalsh(gram)[0]
    if least <= 0:
        gram += (abs(least) + 1e-6) * np.eye(p)
    inverse = np.linalg.inv(gram)
    coef = inverse @ cross
    variance = max((squares - coef @ cross) / (n - p), 1e-10)
    squared = np.diag(inverse @ inverse)
    total = variance * np.diag(inverse) + (of_cross**2 + of_gram**2 * (coef @ coef)) * squared
    return coef[1:], np.sqrt(np.maximum(total[1:], 1e-10))


def one_moment_matrix(X, y, epsilon, seed):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([X, np.ones(len(X)), y / TARGET_SIZE])
    n, size = rows.shape
    most = ROW_FACTOR * math.sqrt(size)
    rows *= np.minimum(1, most / np.linalg.norm(rows, axis=1))[:, None]
    std = most**2 / accounting.gaussian_mu(epsilon, DELTA) / n  # on the diagonal
    noise = np.triu(rng.normal(scale=std / math.sqrt(2), size=(size, size)), 1)
    moments = rows.T @ rows / n + noise + noise.T + np.diag(rng.normal(scale=std, size=size))
    gram, cross = moments[:-1, :-1], moments[:-1, -1]
    inverse = np.linalg.inv(gram)
    coef = inverse @ cross
    variance = max(moments[-1, -1] - coef @ cross, 0.02)
    inner = std**2 / 2 * ((1 + coef @ coef) * np.eye(size - 1) + np.outer(coef, coef))
    covariance = inverse @ (inner + variance / n * gram) @ inverse
    errors = np.sqrt(np.maximum(np.diag(covariance)[:-1], 0.0))
    return TARGET_SIZE * coef[:-1], TARGET_SIZE * errors


def textbook(X, y, epsilon, seed):
    return _fit(X, y, epsilon, seed).coef_, least_squares_errors(X, y)[:-1]


METHODS = {
    "one step": one_step,
    "noisy statistics": noisy_statistics,
    "one moment matrix": one_moment_matrix,
    "textbook": textbook,
}


def measure(cell: Cell, runs: int) -> list[dict]:
    """Return a line for each method."""
    slopes, found = truth(cell)[0], {name: [] for name in METHODS}
    for seed in range(runs):
        X, y = simulate(cell, np.random.default_rng([seed, cell.n, cell.d]))
        without = least_squares_errors(X, y)[:-1]
        for name, method in METHODS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                coef, errors = method(X, y, cell.epsilon, seed)
            found[name].append(((coef - slopes) / without, errors / without))
    lines = []
    for name, some in found.items():
        error, width = (np.array(one) for one in zip(*some, strict=True))
        known = np.isfinite(width)
        line = {
            "columns": cell.columns, "errors": cell.errors, "n": cell.n, "d": cell.d,
            "epsilon": cell.epsilon, "method": name, "runs": runs, "determined": known.mean(),
            "bias": math.sqrt(np.mean(error.mean(axis=0) ** 2)),
            "median_error": np.median(np.abs(error)),
        }  # fmt: skip
        if known.mean() > 0.02:
            inside = np.abs(error[known]) <= stats.norm.isf(0.025) * width[known]
            line |= {"coverage": np.mean(inside), "width": np.median(width[known])}
        lines.append(line)
    return lines


def run(output: Path, command: str, runs: int) -> None:
    """Measure all cells, the cheap ones first, and write after each of them."""
    lines = []
    for (n, d), (columns, errors), epsilon in itertools.product(SIZES, DESIGNS, EPSILONS):
        cell = Cell("linear", "standardised", columns, errors, n, d, epsilon)
        some = max(10, runs * 10_000 // max(10_000, n * d // 5))
        results_file.add(output, command, COLUMNS, lines, measure(cell, min(some, runs)))
