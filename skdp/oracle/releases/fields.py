"""What releases and their parts keep: plain numbers and arrays, checked, that nobody can change."""

from __future__ import annotations

import math
import operator

import numpy as np

from skdp._numbers import LARGEST_CLIP_NORM, LEAST_CLIP_NORM
from skdp.oracle.releases.base import Array, Terms


def store_points(record: object, *names: str) -> None:
    """Put plain, read-only float64 copies in place of these fields, or refuse them.

    A point with inf or nan would turn margins into nan, and a nan in a sum shows that a row is
    there. A copy, because a solver must not be able to change it between the check and the use.
    """
    for name in names:
        point: Array = np.array(getattr(record, name), dtype=np.float64, copy=True, subok=False)
        if not np.isfinite(point).all():
            raise ValueError(
                f"{type(record).__name__}: the {name} must be finite; it holds nan or inf. Nothing "
                "was released for it. If a fit diverged, lower its learning_rate."
            )
        point.setflags(write=False)
        object.__setattr__(record, name, point)


def store_positive(record: object, *names: str) -> None:
    """Turn these fields into floats, or raise ValueError where one is not positive and finite."""
    for name in names:
        value = float(getattr(record, name))
        if not 0 < value < math.inf:
            who = type(record).__name__
            raise ValueError(f"{who}: {name} must be positive and finite; got {value!r}.")
        object.__setattr__(record, name, value)


def store_bounds(record: object, *names: str) -> None:
    """Turn these fields into floats, or raise ValueError unless they lie in [1e-100, 1e100].

    Limits that follow from them, such as a clipping norm over the norm of a row, lose their
    relative precision where numbers are subnormal: a record could then add more than its bound.
    """
    for name in names:
        value = float(getattr(record, name))
        if not LEAST_CLIP_NORM <= value <= LARGEST_CLIP_NORM:
            raise ValueError(
                f"{type(record).__name__}: {name} must be positive and finite, from "
                f"{LEAST_CLIP_NORM:g} to {LARGEST_CLIP_NORM:g}; got {value!r}. Nothing was "
                "released for it."
            )
        object.__setattr__(record, name, value)


def store_integers(record: object, *names: str) -> None:
    """Turn these fields into integers; what is not one raises TypeError."""
    for name in names:
        object.__setattr__(record, name, operator.index(getattr(record, name)))


def require_shape(record: object, terms: Terms, *names: str) -> None:
    """Raise ValueError unless these fields have the shape of the parameter."""
    for name in names:
        given = getattr(record, name).shape
        if given != terms.public.shape:
            raise ValueError(
                f"{type(record).__name__}: the {name} must have shape {terms.public.shape}; got "
                f"{given}. Nothing was released for it."
            )
