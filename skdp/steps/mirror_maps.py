"""Define mirror maps: a distance adapted to a constraint set, and the mirror step for it."""

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.optimize import brentq

from skdp._numbers import Array
from skdp.objective import Box, Constraint, L1Ball, L2Ball, Simplex

# Least weight on a simplex, next to the sum of weights. Steps multiply the weights, so a weight
# that underflows to 0 would stay there.
LEAST_WEIGHT = 1e-300


class MirrorMap(ABC):
    """A function w on a set that is 1-strongly convex in the set's own norm.

    That norm is the Minkowski norm of the set, ``|v| = min{r >= 0: v in r C}``, or, for the box,
    the Euclidean one. Write ``B(z', z)`` for the Bregman divergence of w. Vectors are flat.

    Attributes
    ----------
    unit_norm : float
        Largest L2 norm of a vector of norm 1: a function that is L-smooth in the L2 norm is
        ``L * unit_norm**2``-smooth in this one (Wang, Ye, Xu 2017, Lemma 5.1, with the radius of a
        symmetric set in place of its diameter).
    divergence_bound : float
        Bound on ``B(z, start)`` over the set.
    """

    unit_norm: float
    divergence_bound: float

    @abstractmethod
    def start(self, size: int) -> Array:
        """Return the minimiser of w over the set."""

    def interior(self, z: Array) -> Array:
        """Return the point of the set itself, or one near it from which steps can lead anywhere."""
        return z

    @abstractmethod
    def step(self, z: Array, slope: Array) -> Array:
        """Return the minimiser over z' in the set of ``B(z', z) + <slope, z'>``."""

    @abstractmethod
    def width(self, size: int) -> float:
        """Return a bound on the expected dual norm of a standard Gaussian vector."""


class Euclidean(MirrorMap):
    """``|v|**2 / (2 unit**2)``, for the L2 ball, whose unit is its radius, and for the box.

    Parameters
    ----------
    constraint : Constraint
        A bounded set, on which steps are projected.
    unit : float
        L2 norm of the vectors whose norm is 1.
    largest : float
        Bound on the L2 norm of the set's points.
    """

    def __init__(self, constraint: Constraint, unit: float, largest: float) -> None:
        self._constraint, self.unit_norm = constraint, unit
        self.divergence_bound = 0.5 * (largest / unit) ** 2

    def start(self, size: int) -> Array:
        return self._constraint.project(np.zeros(size))

    def step(self, z: Array, slope: Array) -> Array:
        return self._constraint.project(z - self.unit_norm**2 * slope)

    def width(self, size: int) -> float:
        return self.unit_norm * math.sqrt(size)


class PNorm(MirrorMap):
    """``kappa / 2 |v|_q**2`` on an L1 ball, with ``q = 1 + 1 / max(ln d, 1)``.

    ``|.|_q**2 / 2`` is (q - 1)-strongly convex in the q-norm (Ball, Carlen, Lieb 1994), which is at
    least ``d**(1/q - 1)`` times the 1-norm. So with ``kappa = d**(2 - 2/q) / ((q - 1) radius**2)``,
    at most ``e**2 max(ln d, 1) / radius**2``, the map is 1-strongly convex in ``|v|_1 / radius``.

    The step has no closed form, but a single unknown: with ``theta = grad w(z) - slope``, the
    optimality conditions say that ``grad w(z')`` is theta after a soft threshold at some level
    >= 0. The level is 0 if that z' lies in the ball, and otherwise such that ``|z'|_1 = radius``.
    The norm falls as the level rises, so the level follows by bracketing.

    Parameters
    ----------
    radius : float
    size : int
        Number of coordinates, d.
    """

    def __init__(self, radius: float, size: int) -> None:
        self._radius = radius
        self._q = 1.0 + 1.0 / max(math.log(size), 1.0)
        self._p = self._q / (self._q - 1.0)  # the dual exponent
        self._kappa = size ** (2 - 2 / self._q) / ((self._q - 1) * radius**2)
        self.unit_norm = radius
        self.divergence_bound = 0.5 * self._kappa * radius**2

    def start(self, size: int) -> Array:
        return np.zeros(size)

    def step(self, z: Array, slope: Array) -> Array:
        theta = self._gradient(z) - slope
        largest = float(np.abs(theta).max(initial=0.0))
        if largest == 0:
            return np.zeros_like(theta)

        def length(level: float) -> float:
            return float(np.abs(self._inverse(_shrunk(theta, level))).sum())

        level = 0.0
        if length(0.0) > self._radius:
            level = float(
                brentq(lambda at: length(at) - self._radius, 0.0, largest, xtol=1e-15 * largest)
            )
        moved = self._inverse(_shrunk(theta, level))
        if level == 0:
            return moved
        # The solution lies on the sphere. Rounding may move it off, for steep slopes as far as 0.
        norm = float(np.abs(moved).sum())
        if not norm > 0:
            moved = np.where(np.abs(theta) == largest, np.sign(theta), 0.0)
            norm = float(np.abs(moved).sum())
        moved /= norm
        return np.asarray(self._radius * moved)

    def _gradient(self, v: Array) -> Array:
        return np.asarray(self._kappa * _power(v, self._q))

    def _inverse(self, theta: Array) -> Array:
        return np.asarray(_power(theta, self._p) / self._kappa)

    def width(self, size: int) -> float:
        return self._radius * math.sqrt(2 * math.log(2 * size))


class Entropy(MirrorMap):
    """``sum_i u_i ln u_i`` with ``u = v / total``, on a simplex, where steps multiply the weights.

    The map is 1-strongly convex in ``|v|_1 / total`` (Pinsker's inequality).

    Parameters
    ----------
    total : float
    size : int
        Number of coordinates.
    """

    def __init__(self, total: float, size: int) -> None:
        self._total = total
        self.unit_norm = total
        self.divergence_bound = math.log(max(size, 2))

    def start(self, size: int) -> Array:
        return np.full(size, self._total / size)

    def interior(self, z: Array) -> Array:
        # A hundredth of the way to the centre: steps multiply weights, so those of 0 would stay.
        return (1 - 0.01) * z + 0.01 * self.start(len(z))

    def step(self, z: Array, slope: Array) -> Array:
        with np.errstate(divide="ignore", over="ignore"):
            logs = np.log(z / self._total) - self._total * slope
            weights = np.maximum(np.exp(logs - logs.max()), LEAST_WEIGHT)
        return np.asarray(self._total * weights / weights.sum())

    def width(self, size: int) -> float:
        return self._total * math.sqrt(2 * math.log(2 * size))


def mirror_map(constraint: Constraint, size: int) -> MirrorMap:
    """Return the mirror map for a set of ``size`` coefficients.

    Raises
    ------
    ValueError
        If the set is neither an L2 ball, an L1 ball, a simplex nor a bounded box.
    """
    if isinstance(constraint, L2Ball):
        return Euclidean(constraint, constraint.radius, constraint.radius)
    if isinstance(constraint, L1Ball):
        return PNorm(constraint.radius, size)
    if isinstance(constraint, Simplex):
        return Entropy(constraint.total, size)
    if isinstance(constraint, Box) and constraint.bounded:
        return Euclidean(constraint, 1.0, constraint.diameter(size) / 2)
    raise ValueError(
        "accelerated mirror descent needs an L2 ball, an L1 ball, a simplex or a bounded box, got "
        f"{constraint}."
    )


def _power(v: Array, exponent: float) -> Array:
    """Gradient of ``|v|**2 / 2``, where ``|.|`` is the p-norm of this exponent."""
    sizes = np.abs(v)
    largest = float(sizes.max(initial=0.0))
    if largest == 0:
        return np.zeros_like(v)
    sizes /= largest  # powers and their sum neither overflow nor vanish
    norm = float(np.sum(sizes**exponent)) ** (1 / exponent)
    return np.asarray(np.copysign(largest * norm * (sizes / norm) ** (exponent - 1), v))


def _shrunk(v: Array, level: float) -> Array:
    return np.asarray(v - np.clip(v, -level, level))
