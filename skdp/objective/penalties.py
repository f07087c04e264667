"""Penalties on the coefficients, each with its proximal map; none of them touches data."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdp._numbers import Array


class Penalty(ABC):
    """Convex function of the coefficients, added to the *mean* loss over the records.

    Its value depends on the entries of the array and not on its shape. An array of float32 stays
    float32; any other type becomes float64. Nothing is changed in place.
    """

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether the penalty has a gradient everywhere."""

    @property
    @abstractmethod
    def strong_convexity(self) -> float:
        """Largest mu such that ``value(w) - mu/2 |w|**2`` is convex."""

    @property
    def prox_scales(self) -> bool:
        """Whether the prox multiplies by a number, as for NoPenalty and L2."""
        return False

    @property
    def prox_thresholds(self) -> bool:
        """Whether the prox is a soft threshold followed by a multiplication, as for L1."""
        return False

    def for_targets(self, sizes: tuple[float, ...]) -> "Penalty":
        """Return the penalty where targets, and coefficients with them, are divided by sizes.

        The mean squared error is divided by the square of the size, so a penalty that is quadratic
        in the coefficients stays as it is, and one that is linear is divided by the size.

        Parameters
        ----------
        sizes : tuple of float
            Positive, one for each column of the parameter.
        """
        return self

    @abstractmethod
    def value(self, w: ArrayLike) -> float:
        """Value of the penalty at an array of any shape, computed in float64."""

    @abstractmethod
    def prox(self, w: ArrayLike, step: float) -> Array:
        """Minimiser over z of ``value(z) + |z - w|**2 / (2 step)``.

        Parameters
        ----------
        w : array of any shape, finite
        step : float
            Finite and >= 0; 0 returns a copy of ``w``.

        Returns
        -------
        array of the shape of ``w``, new
        """

    def gradient(self, w: ArrayLike) -> Array:
        """Gradient at ``w``, an array of its shape; ValueError if the penalty is not smooth."""
        raise ValueError(
            f"{self}: it has no gradient where a coefficient is 0. Use its prox, or choose a "
            "smooth penalty (NoPenalty, L2)."
        )


@dataclass(frozen=True)
class NoPenalty(Penalty):
    """The zero function.

    Examples
    --------
    >>> NoPenalty().prox([1.0, -2.0], step=0.5).tolist()
    [1.0, -2.0]
    """

    smooth = True
    strong_convexity = 0.0
    prox_scales = True

    def value(self, w: ArrayLike) -> float:
        return 0.0

    def prox(self, w: ArrayLike, step: float) -> Array:
        _check_step(self, step)
        return as_floats(w).copy()

    def gradient(self, w: ArrayLike) -> Array:
        return np.zeros_like(as_floats(w))


@dataclass(frozen=True)
class L2(Penalty):
    """``strength / 2 * |w|_2**2``; the prox divides by ``1 + strength * step``.

    Parameters
    ----------
    strength : float
        Finite and >= 0. A penalty ``lambda |w|**2`` without the half is ``L2(2 * lambda)``.

    Examples
    --------
    >>> L2(2.0).prox([3.0, -6.0], step=1.0).tolist()
    [1.0, -2.0]
    """

    strength: float
    smooth = True
    prox_scales = True

    def __post_init__(self) -> None:
        _check_strength(self)

    @property
    def strong_convexity(self) -> float:
        return self.strength

    def value(self, w: ArrayLike) -> float:
        return _half_square(w, self.strength)

    def prox(self, w: ArrayLike, step: float) -> Array:
        _check_step(self, step)
        return _divide(as_floats(w), 1.0 + self.strength * step)

    def gradient(self, w: ArrayLike) -> Array:
        return np.asarray(self.strength * as_floats(w))


@dataclass(frozen=True)
class L1(Penalty):
    """``strength * |w|_1``; the prox is a soft threshold at ``strength * step``.

    Parameters
    ----------
    strength : float
        Finite and >= 0.
    units : tuple of float, default=()
        Sizes of the targets, by which the strength is divided, one for each column of the
        parameter; the last axis of an array has as many entries. Empty means 1.

    Examples
    --------
    >>> L1(1.0).prox([3.0, -0.25], step=0.5).tolist()
    [2.5, 0.0]
    """

    strength: float
    units: tuple[float, ...] = field(default=(), repr=False)
    strong_convexity = 0.0
    prox_thresholds = True

    def __post_init__(self) -> None:
        _check_strength(self)

    @property
    def smooth(self) -> bool:
        return self.strength == 0

    @property
    def prox_scales(self) -> bool:
        return self.strength == 0

    def value(self, w: ArrayLike) -> float:
        return _absolute(w, self.strength, self.units)

    def for_targets(self, sizes: tuple[float, ...]) -> Penalty:
        return replace(self, units=sizes)

    def prox(self, w: ArrayLike, step: float) -> Array:
        _check_step(self, step)
        return _soft_threshold(as_floats(w), self.strength * step, self.units)

    def gradient(self, w: ArrayLike) -> Array:
        return np.zeros_like(as_floats(w)) if self.smooth else super().gradient(w)


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """``strength * (l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|_2**2)``.

    The prox is the soft threshold at ``strength * l1_ratio * step``, then the division by
    ``1 + strength * (1 - l1_ratio) * step``.

    Parameters
    ----------
    strength : float
        Finite and >= 0.
    l1_ratio : float
        In [0, 1]; 0 is the L2 penalty (and smooth), 1 the L1 penalty.
    units : tuple of float, default=()
        Sizes of the targets, by which the strength of the L1 part is divided; see `L1`.

    Examples
    --------
    >>> ElasticNet(2.0, l1_ratio=0.5).prox([3.0, -0.5], step=1.0).tolist()
    [1.0, 0.0]
    """

    strength: float
    l1_ratio: float
    units: tuple[float, ...] = field(default=(), repr=False)
    prox_thresholds = True

    def __post_init__(self) -> None:
        _check_strength(self)
        given: Any = self.l1_ratio
        if not (isinstance(given, Real) and 0 <= float(given) <= 1):
            raise ValueError(f"ElasticNet: l1_ratio must lie in [0, 1]; got {given!r}.")
        object.__setattr__(self, "l1_ratio", float(given))

    @property
    def l1_strength(self) -> float:
        """Factor of ``|w|_1``."""
        return self.strength * self.l1_ratio

    @property
    def strong_convexity(self) -> float:
        return self.strength * (1.0 - self.l1_ratio)

    @property
    def smooth(self) -> bool:
        return self.l1_strength == 0

    @property
    def prox_scales(self) -> bool:
        return self.l1_strength == 0

    def value(self, w: ArrayLike) -> float:
        absolute = _absolute(w, self.l1_strength, self.units)
        return absolute + _half_square(w, self.strong_convexity)

    def for_targets(self, sizes: tuple[float, ...]) -> Penalty:
        return replace(self, units=sizes)

    def prox(self, w: ArrayLike, step: float) -> Array:
        _check_step(self, step)
        thresholded = _soft_threshold(as_floats(w), self.l1_strength * step, self.units)
        return _divide(thresholded, 1.0 + self.strong_convexity * step)

    def gradient(self, w: ArrayLike) -> Array:
        if not self.smooth:
            return super().gradient(w)
        return np.asarray(self.strong_convexity * as_floats(w))


def _check_strength(penalty: L1 | L2 | ElasticNet) -> None:
    given: Any = penalty.strength
    if not (isinstance(given, Real) and 0 <= float(given) < math.inf):
        raise ValueError(
            f"{type(penalty).__name__}: strength must be finite and >= 0; got {given!r}."
        )
    object.__setattr__(penalty, "strength", float(given))


def _check_step(penalty: Penalty, step: float) -> None:
    if not 0 <= step < math.inf:
        raise ValueError(f"{penalty}: the prox's step must be finite and >= 0; got {step!r}.")


def as_floats(w: ArrayLike) -> Array:
    """Return ``w`` as an array of float32 if it is one, else of float64."""
    array = np.asarray(w)
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _absolute(w: ArrayLike, strength: float, units: tuple[float, ...] = ()) -> float:
    with np.errstate(over="ignore"):
        sizes = np.abs(np.asarray(w, dtype=np.float64))
        total = float((sizes / np.array(units) if units else sizes).sum())
    return strength * total if strength else 0.0  # not 0 * inf


def _half_square(w: ArrayLike, strength: float) -> float:
    with np.errstate(over="ignore"):
        total = float(np.square(np.asarray(w, dtype=np.float64)).sum())
    return strength / 2 * total if strength else 0.0


def _soft_threshold(w: Array, threshold: float, units: tuple[float, ...] = ()) -> Array:
    with np.errstate(over="ignore"):  # a threshold beyond the type's range sets all to 0
        limit: Any = w.dtype.type(threshold)
        if units:
            limit = (threshold / np.array(units)).astype(w.dtype)
    return np.asarray(w - np.clip(w, -limit, limit))


def _divide(w: Array, divisor: float) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(w / w.dtype.type(divisor))
