"""What cases are made of, and the list of them.

Most cases are one linear model of standard normal columns in a disguise: columns and targets in
other units, far from 0, with long tails, mostly 0. What the disguise costs a private fit is what
reading the columns privately costs, as a model without privacy sees through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.registry import Split


@dataclass(frozen=True)
class Data:
    """Columns with a target for regression, labels for classification, or both.

    Attributes
    ----------
    X : array or CSR of shape (n_rows, n_columns)
    target, labels : array of shape (n_rows,) or None
    """

    X: Any
    target: np.ndarray | None = None
    labels: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """A generator of data, and how many rows of them are for training and for the test.

    Attributes
    ----------
    make : callable (n_rows, rng) -> Data
    n_train, n_test : int
    """

    make: Callable[[int, np.random.Generator], Data]
    n_train: int
    n_test: int

    def splits(self, seed: int, most_rows: int | None = None) -> Iterator[tuple[str, Split]]:
        """Yield the rows of one run by task, in a smoke test fewer of them."""
        n_train = self.n_train if most_rows is None else min(self.n_train, most_rows)
        data = self.make(n_train + self.n_test, np.random.default_rng([seed, 15]))
        both = {"regression": data.target, "classification": data.labels}
        for task, y in both.items():
            if y is not None:
                parts = data.X[:n_train], data.X[n_train:], y[:n_train], y[n_train:]
                yield task, Split(*parts, task == "classification")


CASES: dict[str, Case] = {}


def case(n_train: int = 15_000, n_test: int = 5_000) -> Any:
    """Put a generator on the list, under its name."""

    def register(make: Any) -> Any:
        CASES[make.__name__] = Case(make, n_train, n_test)
        return make

    return register


# ------------------------------------------------------------------ what cases are made of


def normal(n_rows, n_columns, rng, correlation=0.0):
    """Standard normal columns, all equally correlated, and coefficients."""
    Z = np.sqrt(1 - correlation) * rng.standard_normal((n_rows, n_columns))
    if correlation:
        Z += np.sqrt(correlation) * rng.standard_normal((n_rows, 1))
    return Z, rng.standard_normal(n_columns) / np.sqrt(n_columns)


def target_of(signal, rng, noise=0.6):
    """Return the signal with normal noise."""
    return signal + noise * rng.standard_normal(len(signal))


def labels_of(logits, rng):
    """Return 1 with the probability that the logits say, else 0."""
    return (rng.random(len(logits)) < expit(logits)).astype(int)


def disguised(X, Z, coef, rng, slope=3.0):
    """Columns X in place of Z, on which target and labels depend."""
    signal = Z @ coef
    return Data(X, target_of(signal, rng), labels_of(slope * signal, rng))


def unit(X):
    """Columns of mean 0 and deviation 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)
