"""Find data sets and methods: one file each, found by being there."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


class Unavailable(RuntimeError):  # noqa: N818  a state of affairs, no mistake
    """A data set or method cannot be used here; the message says why."""


@dataclass(frozen=True)
class Split:
    """Training and test rows, and what kind of target they have."""

    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    is_classification: bool


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
