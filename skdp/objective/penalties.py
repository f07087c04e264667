"""Penalties on the coefficients, each with its proximal map. None of them touches data."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp._numbers import Array, store_float


class Penalty(ABC):
    """Convex function of the coefficients, added to the *mean* loss over the records.

    Its value depends on the entries of the array and not on its shape. An array of float32 stays
    float32. Any other type becomes float64. Nothing is changed in place.
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
        """Whether the prox multiplies by a number, as for a smooth `ElasticNet`."""
        return False

    prox_thresholds: ClassVar[bool] = False
    """True if the prox is a soft threshold followed by a multiplication, as for `ElasticNet`."""

    def for_targets(self, scales: tuple[float, ...]) -> "Penalty":
        """Return the penalty where targets, and coefficients with them, are divided by scales.

        The mean squared error is divided by the square of the scale, so a penalty that is quadratic
        in the coefficients stays as it is, and one that is linear is divided by the scale.

        Parameters
        ----------
        scales : tuple of float
            Positive, one for each column of the parameter.

        Returns
        -------
        Penalty
        """
        return self

    def scaled(self, factor: float) -> "Penalty":
        """Return the penalty times a positive factor.

        Parameters
        ----------
        factor : float

        Returns
        -------
        Penalty
        """
        return self

    @abstractmethod
    def value(self, w: ArrayLike) -> float:
        """Value of the penalty at an array of any shape, computed in float64.

        Returns
        -------
        float
        """

    @abstractmethod
    def prox(self, w: ArrayLike, step: float) -> Array:
        """Minimiser over z of ``value(z) + |z - w|**2 / (2 step)``.

        Parameters
        ----------
        w : array of any shape, finite
        step : float
            Finite and >= 0. 0 returns a copy of ``w``.

        Returns
        -------
        array of the shape of ``w``, new

        Raises
        ------
        ValueError
            If the step is negative or not finite.
        """

    def gradient(self, w: ArrayLike) -> Array:
        """Gradient at ``w``, an array of its shape. ValueError if the penalty is not smooth.

        Returns
        -------
        array of the shape of ``w``

        Raises
        ------
        ValueError
            If the penalty is not smooth.
        """
        raise ValueError(
            f"{self}: it has no gradient where a coefficient is 0. Use its prox, or choose "
            "l1_ratio=0."
        )


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """``strength * (l1_ratio |w|_1 + (1 - l1_ratio) |w|_2**2 / 2)``.

    The prox is the soft threshold at ``strength * l1_ratio * step``, then the division by
    ``1 + strength * (1 - l1_ratio) * step``.

    Parameters
    ----------
    strength : float, default=0.0
        Finite, at least 0. 0 is no penalty.
    l1_ratio : float, default=0.0
        In [0, 1]: 0 is the squared L2 norm, 1 the L1 norm.
    units : tuple of float, default=()
        Divisors of the columns in the L1 norm, () is 1 for each.

    Examples
    --------
    >>> ElasticNet(2.0, 0.5).prox([3.0, -0.5], step=1.0).tolist()
    [1.0, 0.0]
    """

    strength: float = 0.0
    l1_ratio: float = 0.0
    units: tuple[float, ...] = field(default=(), repr=False)
    prox_thresholds = True

    def __post_init__(self) -> None:
        store_float(self, "strength", "be finite and >= 0", lambda value: 0 <= value < math.inf)
        store_float(self, "l1_ratio", "lie in [0, 1]", lambda value: 0 <= value <= 1)

    @property
    def _l1_strength(self) -> float:
        return self.strength * self.l1_ratio

    @property
    def strong_convexity(self) -> float:
        return self.strength * (1.0 - self.l1_ratio)

    @property
    def smooth(self) -> bool:
        return self._l1_strength == 0

    prox_scales = smooth

    def for_targets(self, scales: tuple[float, ...]) -> Self:
        return replace(self, units=() if self.smooth else scales)

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=self.strength * factor)

    def value(self, w: ArrayLike) -> float:
        w, l1, l2 = np.asarray(w, dtype=np.float64), self._l1_strength, self.strong_convexity
        with np.errstate(over="ignore"):
            magnitudes = np.abs(w) / np.array(self.units) if self.units else np.abs(w)
            absolute, square = float(magnitudes.sum()), float(np.square(w).sum())
        return (l1 * absolute if l1 else 0.0) + (l2 / 2 * square if l2 else 0.0)  # not 0 * inf

    def prox(self, w: ArrayLike, step: float) -> Array:
        if not 0 <= step < math.inf:
            raise ValueError(f"{self}: the prox's step must be finite and >= 0, got {step!r}.")
        moved, threshold = as_floats(w).copy(), self._l1_strength * step
        with np.errstate(over="ignore"):  # a threshold beyond the type's range sets all to 0
            if self._l1_strength:
                limits = threshold / np.array(self.units) if self.units else np.array(threshold)
                limits = limits.astype(moved.dtype)
                moved -= np.clip(moved, -limits, limits)
            if self.strong_convexity:
                moved /= moved.dtype.type(1.0 + self.strong_convexity * step)
        return moved

    def gradient(self, w: ArrayLike) -> Array:
        if not self.smooth:
            return super().gradient(w)
        w = as_floats(w)
        return np.asarray(self.strong_convexity * w) if self.strong_convexity else np.zeros_like(w)


def as_floats(w: ArrayLike) -> Array:
    """Return ``w`` as an array of float32 if it is one, else of float64."""
    array = np.asarray(w)
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
