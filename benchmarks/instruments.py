"""Coverage of two-stage least squares with instruments: simulated rows, raw columns.

    python -m benchmarks.instruments --runs 250               an hour of one core
    python -m benchmarks.instruments --runs 60 --rows 20000   two minutes

Each line is a cell: coverage of 95 % intervals of slopes that are determined and its standard error
(over runs), coverage of all slopes, with infinite intervals where they are not determined, that of
the sandwich without privacy on the same rows, the median width next to it, and the share of slopes
that are determined. Where few are, these have passed the screening by luck, and cover less. The
last line is about all slopes of those cells in which most are determined.
"""

from __future__ import annotations

import argparse
import itertools
import warnings

import numpy as np

from skdp import DP2SLS

# Design: endogenous and exogenous columns, instruments, and their strength.
DESIGNS = {
    "one instrument, strong": (1, 1, 1, 0.5),
    "one instrument": (1, 1, 1, 0.2),
    "three instruments": (1, 1, 3, 0.2),
    "three instruments, weak": (1, 1, 3, 0.05),
    "two endogenous": (2, 2, 3, 0.2),
    "0/1 treatment and instrument": (1, 1, 1, 0.6),
    "unequal variances": (1, 1, 1, 0.5),
    "lognormal columns, skewed errors": (1, 1, 1, 0.2),
    "long-tailed errors": (1, 1, 1, 0.2),
}
EFFECTS = np.array([1.0, -0.5]), np.array([0.5, 0.0])  # of endogenous and of exogenous columns


def draw(name, n_rows, rng):
    """Columns, targets, the numbers of each kind of columns, and the true slopes."""
    *sizes, strength = DESIGNS[name]
    n_endogenous, n_exogenous, n_instruments = sizes
    W, Z = rng.standard_normal((n_rows, n_exogenous)), rng.standard_normal((n_rows, n_instruments))
    Z += 0.3 * W[:, :1]
    if name.startswith("0/1"):
        Z = (Z > 0).astype(float)
    if name.startswith("lognormal"):
        W, Z = np.exp(0.7 * W), np.exp(0.7 * Z)
    own = rng.standard_normal((n_rows, n_endogenous))
    common = rng.standard_normal(n_rows)
    if name.startswith("lognormal"):
        common = rng.exponential(size=n_rows) - 1
    if name.startswith("long"):
        common = rng.standard_t(4, n_rows) / np.sqrt(2)
    mixing = np.abs(np.subtract.outer(np.arange(n_instruments), np.arange(n_endogenous)))
    X = strength * Z @ 0.6**mixing + 0.4 * W[:, :1] + 0.6 * common[:, None] + 0.8 * own
    if name.startswith("0/1"):
        X = (X > 0.2).astype(float)
    errors = common * np.sqrt(0.3 + 0.7 * Z[:, 0] ** 2) if name.startswith("unequal") else common
    slopes = np.concatenate([EFFECTS[0][:n_endogenous], EFFECTS[1][:n_exogenous]])
    y = np.column_stack([X, W]) @ slopes + errors + 1.0
    rows = np.column_stack([X, W, Z])
    units = 10.0 ** (np.arange(rows.shape[1]) % 3 - 1)
    kinds = np.split(np.arange(rows.shape[1]), np.cumsum(sizes)[:2])
    return (rows + 3.0) * units, y, kinds, slopes / units[: len(slopes)]


def textbook(rows, y, kinds):
    """Two-stage least squares and its sandwich without privacy."""
    ones = np.ones((len(y), 1))
    R = np.hstack([rows[:, np.concatenate(kinds[:2])], ones])
    Z = np.hstack([rows[:, np.concatenate(kinds[1:])], ones])
    fitted = Z @ np.linalg.lstsq(Z, R, rcond=None)[0]
    inverse = np.linalg.inv(fitted.T @ fitted)
    coef = inverse @ (fitted.T @ y)
    scores = fitted * (y - R @ coef)[:, None]
    errors = np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))
    return coef[:-1], errors[:-1]


def measure(name, n_rows, epsilon, runs, rng):
    """The figures of a cell, in the order of the columns that are printed."""
    hits, determined, plain, widths = [], [], [], []
    for _ in range(runs):
        rows, y, kinds, slopes = draw(name, n_rows, rng)
        model = DP2SLS(kinds[0], kinds[2], epsilon=epsilon).fit(rows, y)
        own = slice(len(slopes))
        low, high = model.conf_int()[own].T
        coef, error = textbook(rows, y, kinds)
        hits.append((low <= slopes) & (slopes <= high))
        determined.append(model.determined_[own])
        plain.append(np.abs(coef - slopes) < 1.96 * error)
        widths.append(model.coef_std_error_[own] / error)
    hits, determined = np.array(hits), np.array(determined)
    if not determined.any():
        return np.nan, np.nan, 1.0, np.mean(plain), np.inf, 0.0
    share, per_run = hits[determined].mean(), (hits & determined).sum(1) - 0.95 * determined.sum(1)
    error = per_run.std(ddof=1) * np.sqrt(runs) / determined.sum()
    width = np.median(np.array(widths)[determined])
    return share, error, hits.mean(), np.mean(plain), width, determined.mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=250)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("design, rows, epsilon: coverage (error), of all, without privacy, width, determined")
    cells = itertools.product(DESIGNS, options.rows, options.epsilon)
    found = []
    for number, (name, n_rows, epsilon) in enumerate(cells):
        rng = np.random.default_rng(number)
        share, error, *others = measure(name, n_rows, epsilon, options.runs, rng)
        figures = ", ".join(f"{value:.3f}" for value in others)
        print(f"{name}, {n_rows}, {epsilon:g}: {share:.3f} ({error:.3f}), {figures}", flush=True)
        if others[-1] > 0.5:
            found.append((share, error**2, others[-2]))
    if found:
        shares, squares, widths = np.array(found).T
        print(
            f"{len(found)} cells, {options.runs} runs: mean coverage {shares.mean():.3f} "
            f"({np.sqrt(squares.sum()) / len(found):.3f}), widths {widths.min():.2f} to "
            f"{widths.max():.2f}"
        )


if __name__ == "__main__":
    main()
