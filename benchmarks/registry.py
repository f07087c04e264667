"""Find data sets and methods: one file each, found by being there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

# What a method is: a yardstick, skdp as it comes, skdp with a solver by name, another private
# method, or one that calls itself private and is not in the way it is run here.
KINDS = ("reference", "skdp", "solver", "rival", "not private")


class Unavailable(RuntimeError):  # noqa: N818  a state of affairs, no mistake
    """A data set or method cannot be used here; the message says why."""


@dataclass(frozen=True)
class Split:
    """Training and test rows, what kind of target they have, and how columns come.

    Attributes
    ----------
    X_train, X_test : array of shape (n_rows, n_columns)
    y_train, y_test : array of shape (n_rows,)
    is_classification : bool
    condition : {"raw", "standardised"}
        Whether columns, and targets of regression, are in their own units or of unit size.
    """

    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    is_classification: bool
    condition: str = "raw"

    @property
    def classes(self) -> np.ndarray:
        """Labels; public."""
        return np.unique(np.concatenate([self.y_train, self.y_test]))

    def standardised(self) -> Split:
        """Columns, and targets of regression, by mean and deviation of the training rows.

        This step is NOT private: no budget pays for it. All methods get the same rows.
        """
        scaler = StandardScaler().fit(self.X_train)
        scaled = replace(
            self,
            X_train=scaler.transform(self.X_train),
            X_test=scaler.transform(self.X_test),
            condition="standardised",
        )
        if self.is_classification:
            return scaled
        mean, deviation = self.y_train.mean(), self.y_train.std()
        return replace(
            scaled,
            y_train=(self.y_train - mean) / deviation,
            y_test=(self.y_test - mean) / deviation,
        )


def always(split: Split) -> bool:
    """Every split will do."""
    return True


def has_numbers(split: Split) -> bool:
    """Whether the task is regression."""
    return not split.is_classification


def has_classes(split: Split) -> bool:
    """Whether the task is classification."""
    return split.is_classification


@dataclass(frozen=True)
class Method:
    """One line of the table.

    Attributes
    ----------
    name : str
    kind : str
        One of ``KINDS``.
    make : callable (split, epsilon, delta, seed) -> estimator
        The estimator has ``fit``, and ``predict`` (regression) or ``predict_proba``.
    applies : callable (split) -> bool
    on_demand : bool
        Run only with ``--all`` or by name.
    """

    name: str
    kind: str
    make: Callable[[Split, float, float, int], Any]
    applies: Callable[[Split], bool] = always
    on_demand: bool = False


def shared_file(name: str) -> Path:
    """Path of a data file that does not come with the project, or the reason why not."""
    path = SHARED / name
    if not path.exists():
        raise Unavailable(f"{name} is not here: the shared data folder is absent")
    return path


def modules(package: str) -> dict[str, ModuleType]:
    """Modules of benchmarks.datasets or benchmarks.methods, by name."""
    home = importlib.import_module(f"benchmarks.{package}")
    return {
        item.name: importlib.import_module(f"{home.__name__}.{item.name}")
        for item in pkgutil.iter_modules(home.__path__)
    }


def methods() -> dict[str, Method]:
    """All methods by name."""
    return {
        method.name: method for module in modules("methods").values() for method in module.METHODS
    }
