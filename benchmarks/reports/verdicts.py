"""Public reports as a registry of short functions, the verdicts, and rows that they share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.metrics import r2_score

from skdp import DPLogisticRegression, DPRidge, DPTabularPreprocessor

RIGHT, POOR, UNSUPPORTED, WRONG = "right", "right, poor message", "not supported", "wrong"
VERDICTS = (RIGHT, POOR, UNSUPPORTED, WRONG)  # from best to worst
SLOPES = np.array([2.0, -1.0, 0.5])


@dataclass(frozen=True)
class Found:
    """What is right for an input, what the package does, and the verdict."""

    right: str
    skdp: str
    verdict: str


@dataclass(frozen=True)
class Report:
    """A public report: its kind, where it was made, the input in words, and the function."""

    kind: str
    source: str
    input: str
    run: Callable[[], Found | list[Found]]


REPORTS: dict[str, Report] = {}


def report(kind, source, text):
    """Register a function as a report, by its name."""

    def register(run):
        REPORTS[run.__name__] = Report(kind, source, text, run)
        return run

    return register


# ---------------------------------------------------------------------------- verdicts


def shown(value):
    """Numbers with three digits, anything else as text, in at most 160 characters of one line."""
    try:
        numbers = np.asarray(value, dtype=float)
        text = np.array2string(numbers, precision=3, separator=", ", threshold=9, edgeitems=2)
    except (TypeError, ValueError):
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:157] + "..."


def near(found, right, tolerance):
    """Right if all values are within the tolerance."""
    distance = np.abs(np.asarray(found, dtype=float) - np.asarray(right, dtype=float))
    verdict = RIGHT if np.all(distance <= tolerance) else WRONG
    return Found(f"{shown(right)} +- {tolerance:g}", shown(found), verdict)


def at_least(found, least):
    """Right if no value is below the least."""
    verdict = RIGHT if np.all(np.asarray(found, dtype=float) >= least) else WRONG
    return Found(f"at least {least:g}", shown(found), verdict)


def holds(condition, right, found=""):
    """Right if a condition holds."""
    return Found(right, shown(found) or str(bool(condition)), RIGHT if condition else WRONG)


def refused(call, *words):
    """Right if a call raises an error that contains all words."""
    right = " ".join(["refused:", ", ".join(words)])
    try:
        found = call()
    except Exception as error:
        clear = all(word in str(error) for word in words)
        return Found(right, f"{type(error).__name__}: {shown(error)}", RIGHT if clear else POOR)
    return Found(right, f"accepted: {shown(found)}", WRONG)


def supported(call, judge):
    """Judge what a call returns; if it raises, the input is not supported."""
    try:
        found = call()
    except ModuleNotFoundError:
        raise
    except Exception as error:
        return Found("accepted", f"{type(error).__name__}: {shown(error)}", UNSUPPORTED)
    return judge(found)


def warned(call, category, *words):
    """Right if a call warns of a category in these words, or raises an error with them."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            call()
        except ValueError as error:
            return Found("refused, or a warning", shown(error), RIGHT)
    texts = [str(one.message) for one in seen if issubclass(one.category, category)]
    clear = any(all(word in text for word in words) for text in texts)
    verdict = RIGHT if clear else POOR if texts else WRONG
    return Found(f"{category.__name__} {', '.join(words)}", shown("; ".join(texts)), verdict)


# ---------------------------------------------------------------------------- rows and fits


def rows(n=20_000, seed=0):
    """Normal columns, and targets with slopes 2, -1 and 0.5; R2 is 0.84."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, X @ SLOPES + rng.standard_normal(n)


def classes_of(n=20_000, seed=0):
    """Rows of a logistic model with the same slopes."""
    X, _ = rows(n, seed)
    rng = np.random.default_rng(seed + 1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ SLOPES))).astype(int)


def frame_of(X, **more):
    return pd.DataFrame(X, columns=list("abc")).assign(**more)


def r2_of(X, y, model=None, n_fits=1, score_on=None, **fit):
    """R2 of each fit, on its own rows unless others are given."""
    model = DPRidge() if model is None else model
    X_new, y_new = score_on or (X, y)
    return [r2_score(y_new, clone(model).fit(X, y, **fit).predict(X_new)) for _ in range(n_fits)]


def classifier(epsilon=1.0, classes=(0, 1), **options):
    return DPLogisticRegression(epsilon=epsilon, classes=list(classes), **options)


def prepared(frame, categories=None, **options):
    """The table that the preprocessor makes, as an array."""
    return np.asarray(DPTabularPreprocessor(categories, missing=[], **options).fit_transform(frame))
