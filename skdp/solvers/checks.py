"""Checks of hyperparameters, whose messages say what is allowed and what was given."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeGuard

from skdp._numbers import is_integer, is_real, shown
from skdp.steps import step_sizes


def is_auto(value: object) -> TypeGuard[str]:
    """Whether ``value`` is the word "auto", and not, say, an array."""
    return isinstance(value, str) and value == "auto"


def check_count(**values: Any) -> None:
    """Raise ValueError unless all values are integers of at least 1."""
    for name, value in values.items():
        if not is_integer(value) or value < 1:
            raise ValueError(
                f"{name} must be 'auto' or an integer, at least 1; got {shown(value)}."
            )


def check_positive(**values: Any) -> None:
    """Raise ValueError unless all values are positive, finite numbers."""
    for name, value in values.items():
        if not is_real(value) or not 0 < value < math.inf:
            raise ValueError(
                f"{name} must be 'auto' or a positive, finite number; got {shown(value)}."
            )


def check_share(**values: Any) -> None:
    """Raise ValueError unless all values are numbers above 0 and below 1."""
    for name, value in values.items():
        if not is_real(value) or not 0 < value < 1:
            raise ValueError(f"{name} must be a number above 0 and below 1; got {shown(value)}.")


def check_interval(name: str, value: Any, low: float, below: float) -> None:
    """Raise ValueError unless ``value`` is a number in [low, below)."""
    if not is_real(value) or not low <= value < below:
        raise ValueError(
            f"{name} must be 'auto' or a number in [{low:g}, {below:g}); got {shown(value)}."
        )


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    known = sorted(choices)
    if value not in known:
        words = ", ".join(repr(word) for word in known)
        raise ValueError(f"{name} must be one of {words}; got {shown(value)}.")


def given_steps(max_iter: Any, learning_rate: Any) -> tuple[int | None, float | None]:
    """Check the number of steps and their size; return None for what is no number yet."""
    n_steps = None if is_auto(max_iter) else max_iter
    size = float(learning_rate) if is_real(learning_rate) else None
    if n_steps is not None:
        check_count(max_iter=n_steps)
    if size is not None:
        step_sizes(size, 1)
    return n_steps, size
