"""Intervals on real tables: coverage of the population's fit.

    python -m benchmarks inference real --runs 40      inference_real.csv

It draws rows with replacement from a table, which so is the population, and counts how often
intervals hold two sets of its coefficients: the bounded fit of the whole table, in the coordinates
and with the bounds that a run released, which is what intervals are about; and the plain fit (least
squares, or maximum likelihood), which they do not promise to hold. Columns and targets are
standardised by the table's own moments.
"""

from __future__ import annotations

import functools
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

import skdp
from benchmarks import results_file
from benchmarks.datasets import california_housing
from benchmarks.inference import sandwich_errors
from benchmarks.registry import Unavailable, shared_file
from benchmarks.table import mean_and_error
from skdp._stages.inference import InferenceStage

# Numbers of rows that are drawn from each table.
DRAWN = {
    "adult": (10_000, 48_842),
    "california_housing": (20_640,),
    "bike": (17_379,),
    "diamonds": (53_940,),
}
EPSILONS = (1.0, 3.0)
DELTA = 1e-6
REAL = (
    "data", "rows", "columns", "epsilon", "runs", "determined", "bounded", "bounded_se", "full",
    "full_se", "width",
)  # fmt: skip


@cache
def population(name: str):
    """Return standardised columns and targets of a whole table, and whether they are classes."""
    if name == "california_housing":
        X, y = california_housing.table()
    elif name == "adult":
        frame = pd.read_csv(shared_file("adult.csv.gz"), keep_default_na=False)
        y = (frame["income"] == ">50K").to_numpy().astype(int)
        X = frame.select_dtypes("number").drop(columns="fnlwgt").to_numpy(float)
        return _standardised(X), y, True
    elif name == "bike":
        frame = pd.read_csv(shared_file("bike_sharing_hour.csv.gz"))
        angle = 2 * np.pi * frame["hr"].to_numpy() / 24
        plain = frame[["holiday", "workingday", "temp", "hum", "windspeed"]].to_numpy(float)
        X, y = np.column_stack([plain, np.sin(angle), np.cos(angle)]), frame["cnt"].to_numpy(float)
    else:
        frame = pd.read_csv(shared_file("diamonds.csv.gz"))
        labels = pd.get_dummies(frame[["cut", "color", "clarity"]], drop_first=True)
        plain = frame[["carat", "depth", "table"]].to_numpy(float)
        X, y = np.hstack([plain, labels.to_numpy(float)]), frame["price"].to_numpy(float)
    return _standardised(X), _standardised(y), False


def _standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def bounded_fit(Z, y, coef, transform, row_norm, cap, is_logistic):
    """Solve the estimating equation for a whole table by Newton's method."""
    U = Z @ transform
    f = np.minimum(1.0, row_norm / np.linalg.norm(U, axis=1))
    V = U * f[:, None]
    for _ in range(50):
        margins = Z @ coef
        if is_logistic:
            q = expit(margins)
            scores, kept = f * (q - y), q * (1 - q)
        else:
            scores = f * (margins - y)
            kept = np.abs(scores) <= cap
            scores = np.clip(scores, -cap, cap)
        step = np.linalg.solve((V * kept[:, None]).T @ V, V.T @ scores)
        coef = coef - transform @ step
        if np.abs(step).max() < 1e-10:
            break
    return coef


@contextmanager
def remembered(asked: list):
    """Append the coordinates and bounds of each step that is released inside."""
    original = InferenceStage._step

    def step(self, oracle, about, bounds):
        if not oracle.is_rehearsal:
            _, coordinates, row_norm, cap = about
            asked.append((coordinates.matrix, row_norm, cap))
        return original(self, oracle, about, bounds)

    InferenceStage._step = step
    try:
        yield
    finally:
        InferenceStage._step = original


def measure(name: str, n_rows: int, epsilon: float, runs: int) -> dict:
    """Return the line of one table, number of rows and epsilon."""
    X, y, is_logistic = population(name)
    Z = np.column_stack([X, np.ones(len(X))])
    start = np.zeros(Z.shape[1])
    if is_logistic:
        full = bounded_fit(Z, y, start, np.eye(len(start)), np.inf, 1.0, True)
        q = expit(Z @ full)
        errors = sandwich_errors(Z, q - y, q * (1 - q))
    else:
        full = np.linalg.lstsq(Z, y, rcond=None)[0]
        errors = sandwich_errors(Z, Z @ full - y, np.ones(len(y)))
    plain = errors[:-1] * np.sqrt(len(X) / n_rows)
    make = skdp.DPLinearRegression
    if is_logistic:
        make = functools.partial(skdp.DPLogisticRegression, classes=np.unique(y))
    asked, by_run, known, widths = [], [], [], []
    with remembered(asked), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(runs):
            rows = np.random.default_rng([seed, n_rows]).integers(len(X), size=n_rows)
            found = make(
                epsilon=epsilon, delta=DELTA, scaling="none", inference="coefficients",
                privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
            ).fit(X[rows], y[rows])  # fmt: skip
            determined = found.determined_
            known.append(determined)
            widths.append(np.where(determined, found.coef_std_error_ / plain, np.nan))
            low, high = np.asarray(found.conf_int()).T
            bounded = bounded_fit(Z, y, full, *asked[-1], is_logistic)
            if determined.any():
                by_run.append([
                    np.mean(((low <= one[:-1]) & (one[:-1] <= high))[determined])
                    for one in (bounded, full)
                ])  # fmt: skip
    line = {"data": name, "rows": n_rows, "columns": X.shape[1], "epsilon": epsilon, "runs": runs}
    line["determined"] = np.mean(known)
    if by_run:
        for kind, covered in zip(("bounded", "full"), np.transpose(by_run), strict=True):
            line[kind], line[f"{kind}_se"] = mean_and_error(covered)
        some = np.any(known, axis=0)
        line["width"] = np.mean(np.nanmedian(np.array(widths)[:, some], axis=0))
    return line


def run(output: Path, command: str, runs: int, names=()) -> None:
    """Measure all tables and write after each line."""
    lines = []
    for epsilon in EPSILONS:
        for name in names or DRAWN:
            for n_rows in DRAWN[name]:
                try:
                    found = measure(name, n_rows, epsilon, runs)
                except Unavailable as reason:
                    print(f"{name}: left out, {reason}")
                    continue
                results_file.add(output, command, REAL, lines, [found], digits=4)
