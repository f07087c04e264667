"""What counts as a number in a parameter: numpy's kinds do, bools and nan do not."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeGuard

# A clipping norm, and what is computed from it and a row, keeps float64's precision in between.
LEAST_CLIP_NORM, LARGEST_CLIP_NORM = 1e-100, 1e100


def is_integer(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer."""
    return not isinstance(value, bool) and isinstance(value, Integral)


def is_real(value: object) -> TypeGuard[float]:
    """Whether ``value`` is a real number, infinities included."""
    return not isinstance(value, bool) and isinstance(value, Real) and not math.isnan(value)
