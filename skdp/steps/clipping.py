"""Clipping rules: the L2 bound of one record's gradient at each step, from public facts only."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp._numbers import is_real

Array = NDArray[np.float64]


class ClippingRule(BaseEstimator):
    """Base of clipping rules; an object, so that a grid search can reach its parameters."""

    @abstractmethod
    def norms(self, n_steps: int) -> Array:
        """Return the clipping norms of steps 1..n_steps."""


class GeometricClipping(ClippingRule):
    """Clipping norms move geometrically from ``first`` to ``last``.

    Gradients shrink as a fit proceeds; a norm that falls with them keeps the noise in proportion.

    Parameters
    ----------
    first : float, default=10.0
        Norm at the first step; positive.
    last : float, default=1.0
        Norm at the last step; positive.
    """

    def __init__(self, first: float = 10.0, last: float = 1.0) -> None:
        self.first = first
        self.last = last

    def norms(self, n_steps: int) -> Array:
        return np.geomspace(self.first, self.last, n_steps)


def clip_norms(rule: Any, n_steps: int) -> Array:
    """Turn a number or a rule into an array of ``n_steps`` positive clipping norms.

    Raises
    ------
    ValueError
        If it is neither, or a norm is not positive and finite.
    """
    if isinstance(rule, ClippingRule):
        norms = np.asarray(rule.norms(n_steps), dtype=np.float64)
    elif is_real(rule):
        norms = np.full(n_steps, float(rule))
    else:
        raise ValueError(
            f"clip_norm must be 'auto', a positive number or a ClippingRule; got {rule!r}."
        )
    if norms.shape != (n_steps,) or not ((norms > 0) & np.isfinite(norms)).all():
        raise ValueError(f"clip_norm must give positive, finite norms; got {rule!r}.")
    return norms
