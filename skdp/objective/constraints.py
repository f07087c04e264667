"""Closed convex sets of coefficients, each with its Euclidean projection."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp._numbers import Array, is_real, require_bound, shown
from skdp.objective.penalties import Penalty, as_floats


class Constraint(BaseEstimator, ABC):
    """Nonempty closed convex set of coefficients. An array counts as one vector.

    Arrays of float32 stay so, any other type becomes float64. Nothing is changed in place. Sets are
    parameters of estimators, so that a grid can reach theirs, as ``constraint__radius``.
    """

    composes_with_threshold: ClassVar[bool] = False
    """Whether projecting after a soft threshold is the prox of L1 plus set."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""

    @property
    @abstractmethod
    def bounded(self) -> bool:
        """Whether the diameter is finite."""

    @abstractmethod
    def diameter(self, n_coefficients: int) -> float:
        """Largest L2 distance in the set. A method, because a box grows with the dimension.

        Returns
        -------
        float
            inf for an unbounded set.
        """

    def composes_with(self, penalty: Penalty) -> bool:
        """Whether projecting after the penalty's prox is the prox of penalty plus set.

        It is for every convex set if the prox multiplies by a number a: then penalty plus
        ``|z - w|**2 / (2 step)`` is ``|z - a w|**2 / (2 a step)`` plus a constant.

        Returns
        -------
        bool
        """
        threshold = penalty.prox_thresholds and self.composes_with_threshold
        return threshold or penalty.prox_scales

    @abstractmethod
    def project(self, w: ArrayLike) -> Array:
        """Nearest point of the set in L2 norm.

        Parameters
        ----------
        w : array of any shape, finite, however large

        Returns
        -------
        array of the shape of ``w``, new
        """

    @abstractmethod
    def contains(self, w: ArrayLike, tol: float = 1e-9) -> bool:
        """Whether ``w`` lies in the set, whose bounds are widened by the relative ``tol``.

        Returns
        -------
        bool
        """


class Unconstrained(Constraint):
    """All vectors.

    Examples
    --------
    >>> Unconstrained().project([1e9, -2.0]).tolist()
    [1000000000.0, -2.0]
    """

    bounded = False

    def diameter(self, n_coefficients: int) -> float:
        return math.inf if n_coefficients else 0.0

    def composes_with(self, penalty: Penalty) -> bool:
        return True

    def project(self, w: ArrayLike) -> Array:
        return as_floats(w).copy()

    def contains(self, w: ArrayLike, tol: float = 1e-9) -> bool:
        return bool(np.isfinite(as_floats(w)).all())


class _Ball(Constraint):
    """All vectors of norm at most ``radius``, in the norm of the subclass."""

    composes_with_threshold = True
    bounded = True

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = radius

    def check(self) -> None:
        require_bound(f"{type(self).__name__}: radius", self.radius)

    def diameter(self, n_coefficients: int) -> float:
        return 2.0 * self.radius if n_coefficients else 0.0


class L2Ball(_Ball):
    """``|w|_2 <= radius``: for a matrix, its Frobenius norm.

    It composes with a soft threshold: projecting multiplies by a positive number, which leaves
    the subgradients of ``|.|_1`` as they are (Yu 2013, "On decomposing the proximal map").

    Parameters
    ----------
    radius : float, default=1.0
        Positive, from 1e-50 to 1e50.

    Examples
    --------
    >>> L2Ball(1.0).project([3.0, 4.0]).round(3).tolist()
    [0.6, 0.8]
    """

    def project(self, w: ArrayLike) -> Array:
        w = as_floats(w)
        largest, length = _scaled_norm(w)
        if largest * length <= self.radius:
            return w.copy()
        with np.errstate(invalid="ignore"):
            ratios = w.astype(np.float64) / largest
            return np.asarray(ratios * (self.radius / length), dtype=w.dtype)

    def contains(self, w: ArrayLike, tol: float = 1e-9) -> bool:
        largest, length = _scaled_norm(as_floats(w))
        return largest * length <= self.radius * (1.0 + tol)


class L1Ball(_Ball):
    """``sum |w_i| <= radius``: for a matrix, the sum over all its entries.

    Projected by sorting (Duchi et al. 2008): a soft threshold at the level that meets the radius,
    so it composes with a soft threshold: two in a row are one at the sum of their levels.

    Parameters
    ----------
    radius : float, default=1.0
        Positive, from 1e-50 to 1e50.

    Examples
    --------
    >>> L1Ball(1.0).project([2.0, -1.5, 0.1]).tolist()
    [0.75, -0.25, 0.0]
    """

    def project(self, w: ArrayLike) -> Array:
        w = as_floats(w)
        if self.contains(w, tol=0):
            return w.copy()
        magnitudes = _to_simplex(np.abs(w), self.radius)
        return np.where(w < 0, -magnitudes, magnitudes).astype(w.dtype)

    def contains(self, w: ArrayLike, tol: float = 1e-9) -> bool:
        with np.errstate(over="ignore"):
            length = float(np.abs(np.asarray(w, dtype=np.float64)).sum())
        return length <= self.radius * (1.0 + tol)


class Box(Constraint):
    """``low <= w_i <= high`` for every coefficient.

    It composes with a soft threshold, with 0 inside or not: on an interval the minimiser of
    a convex function of one variable is its unconstrained minimiser, cut to the interval.

    Parameters
    ----------
    low, high : float, default=-1.0 and 1.0
        ``low <= high``. Either may be infinite: ``Box(0, inf)`` is "nonnegative".

    Examples
    --------
    >>> Box(-1.0, 2.0).project([3.0, -4.0, 0.5]).tolist()
    [2.0, -1.0, 0.5]
    """

    composes_with_threshold = True

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.low = low
        self.high = high

    def check(self) -> None:
        low, high = self.low, self.high
        are_numbers = is_real(low) and is_real(high)
        if not (are_numbers and low <= high and low < math.inf and high > -math.inf):
            raise ValueError(
                "Box: low and high must be numbers with low <= high, not both the same infinity, "
                f"got low={shown(low)}, high={shown(high)}."
            )

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def diameter(self, n_coefficients: int) -> float:
        return (self.high - self.low) * math.sqrt(n_coefficients) if n_coefficients else 0.0

    def project(self, w: ArrayLike) -> Array:
        w = as_floats(w)
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(w, w.dtype.type(self.low), w.dtype.type(self.high)))

    def contains(self, w: ArrayLike, tol: float = 1e-9) -> bool:
        w = np.asarray(w, dtype=np.float64)
        low = self.low * (1.0 - math.copysign(tol, self.low))
        high = self.high * (1.0 + math.copysign(tol, self.high))
        return bool((np.isfinite(w) & (w >= low) & (w <= high)).all())


class Simplex(Constraint):
    """``w_i >= 0`` and ``sum w_i == total``. Projected by sorting (Duchi et al. 2008).

    It does not compose with a soft threshold. No need, ``|w|_1`` is constant here.

    Parameters
    ----------
    total : float, default=1.0
        Positive, from 1e-50 to 1e50.

    Examples
    --------
    >>> Simplex().project([0.75, 0.5, -3.0]).tolist()
    [0.625, 0.375, 0.0]
    """

    bounded = True

    def __init__(self, total: float = 1.0) -> None:
        self.total = total

    def check(self) -> None:
        require_bound("Simplex: total", self.total)

    def diameter(self, n_coefficients: int) -> float:
        return math.sqrt(2.0) * self.total if n_coefficients > 1 else 0.0

    def project(self, w: ArrayLike) -> Array:
        w = as_floats(w)
        if not w.size:
            raise ValueError(f"{self}: without coefficients there is no sum.")
        return _to_simplex(w, self.total).astype(w.dtype)

    def contains(self, w: ArrayLike, tol: float = 1e-9) -> bool:
        w = np.asarray(w, dtype=np.float64)
        slack = tol * self.total
        return bool((w >= -slack).all() and abs(w.sum() - self.total) <= slack)


# By the names that the parameter ``constraint`` takes.
CONSTRAINTS: Mapping[str, type[Constraint]] = {
    "l2_ball": L2Ball,
    "l1_ball": L1Ball,
    "box": Box,
    "simplex": Simplex,
}


def _scaled_norm(w: Array) -> tuple[float, float]:
    """Return two numbers whose product is the L2 norm, neither over- nor underflows."""
    largest = float(np.abs(w).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        ratios = w.astype(np.float64).ravel() / (largest or 1.0)
    return largest, float(np.linalg.norm(ratios))


def _to_simplex(w: Array, total: float) -> Array:
    """Nearest nonnegative array of sum ``total``: ``max(w - level, 0)`` for one level."""
    # The level lies less than `total` below the largest entry, so measure from there in units of
    # `total` and drop what is lower: otherwise the total vanishes next to large entries.
    w = w.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        depths = np.maximum((w - w.max()) / total, -1.0)
    ordered = np.sort(depths, axis=None)[::-1]
    ranks = np.arange(1, ordered.size + 1)
    kept = max(1, np.count_nonzero(ordered * ranks > np.cumsum(ordered) - 1.0))
    level = (ordered[:kept].sum() - 1.0) / kept
    return np.asarray(total * np.maximum(depths - level, 0.0))
