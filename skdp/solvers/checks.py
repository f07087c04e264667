"""Check hyperparameters. Messages name the allowed values and the given one."""

import math
from collections.abc import Iterable
from typing import TypeGuard

from skdp._numbers import is_integer, is_real, require
from skdp.steps import step_sizes


def is_word(value: object, word: str) -> TypeGuard[str]:
    """Return whether ``value`` is this word, and not, say, an array."""
    return isinstance(value, str) and value == word


def is_auto(value: object) -> TypeGuard[str]:
    """Return whether ``value`` is the word "auto"."""
    return isinstance(value, str) and value == "auto"


def count(**values: object) -> None:
    """Raise ValueError unless all values are integers of at least 1."""
    for name, value in values.items():
        allowed = "be 'auto' or an integer, at least 1"
        require(name, value, allowed, is_integer(value) and value >= 1)


def positive(**values: object) -> None:
    """Raise ValueError unless all values are positive, finite numbers."""
    for name, value in values.items():
        allowed = "be 'auto' or a positive, finite number"
        require(name, value, allowed, is_real(value) and 0 < value < math.inf)


def share(**values: object) -> None:
    """Raise ValueError unless all values are numbers above 0 and below 1."""
    for name, value in values.items():
        require(name, value, "be a number above 0 and below 1", is_real(value) and 0 < value < 1)


def choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    known = sorted(choices)
    require(
        name,
        value,
        f"be one of {', '.join(map(repr, known))}",
        isinstance(value, str) and value in known,
    )


def given_steps(max_iter: object, learning_rate: object) -> tuple[int | None, float | None]:
    """Check the number of steps and their size. Return None for each that is no number yet."""
    if not is_auto(max_iter):
        count(max_iter=max_iter)
    size = float(step_sizes(learning_rate, 1)[0]) if is_real(learning_rate) else None
    return max_iter if is_integer(max_iter) else None, size
