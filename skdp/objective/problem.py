"""The optimisation problem of a fit: a loss, a penalty and a constraint on one parameter matrix.

None of them touches data. Sets are closed and convex, each with its Euclidean projection.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp._numbers import Array, is_real, require_bound, shown, store_float
from skdp.objective.losses import Loss

# ---------------------------------------------------------------- penalties


@dataclass(frozen=True)
class ElasticNet:
    """``strength * (l1_ratio |w|_1 + (1 - l1_ratio) |w|_2**2 / 2)``, added to the *mean* loss.

    Its value depends on the entries of the array and not on its shape. An array of float32 stays
    float32. Any other type becomes float64. Nothing is changed in place.

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

    def __post_init__(self) -> None:
        store_float(self, "strength", "be finite and >= 0", lambda value: 0 <= value < math.inf)
        store_float(self, "l1_ratio", "lie in [0, 1]", lambda value: 0 <= value <= 1)

    @property
    def _l1_strength(self) -> float:
        return self.strength * self.l1_ratio

    @property
    def strong_convexity(self) -> float:
        """Largest mu such that ``value(w) - mu/2 |w|**2`` is convex."""
        return self.strength * (1.0 - self.l1_ratio)

    @property
    def smooth(self) -> bool:
        """Whether the penalty has a gradient everywhere. The prox multiplies by a number then."""
        return self._l1_strength == 0

    def for_targets(self, scales: tuple[float, ...]) -> Self:
        """Return the penalty where targets, and coefficients with them, are divided by scales.

        The mean squared error is divided by the square of the scale, so a penalty that is quadratic
        in the coefficients stays as it is, and one that is linear is divided by the scale.

        Parameters
        ----------
        scales : tuple of float
            Positive, one for each column of the parameter.

        Returns
        -------
        ElasticNet
        """
        return replace(self, units=() if self.smooth else scales)

    def scaled(self, factor: float) -> Self:
        """Return the penalty times a positive factor.

        Returns
        -------
        ElasticNet
        """
        return replace(self, strength=self.strength * factor)

    def value(self, w: ArrayLike) -> float:
        """Value of the penalty at an array of any shape, computed in float64.

        Returns
        -------
        float
        """
        w, l1, l2 = np.asarray(w, dtype=np.float64), self._l1_strength, self.strong_convexity
        with np.errstate(over="ignore"):
            magnitudes = np.abs(w) / np.array(self.units) if self.units else np.abs(w)
            absolute, square = float(magnitudes.sum()), float(np.square(w).sum())
        return (l1 * absolute if l1 else 0.0) + (l2 / 2 * square if l2 else 0.0)  # not 0 * inf

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
        """Gradient at ``w``, an array of its shape.

        Returns
        -------
        array of the shape of ``w``

        Raises
        ------
        ValueError
            If the penalty is not smooth.
        """
        if not self.smooth:
            raise ValueError(
                f"{self}: it has no gradient where a coefficient is 0. Use its prox, or choose "
                "l1_ratio=0."
            )
        w = as_floats(w)
        return np.asarray(self.strong_convexity * w) if self.strong_convexity else np.zeros_like(w)


def as_floats(w: ArrayLike) -> Array:
    """Return ``w`` as an array of float32 if it is one, else of float64."""
    array = np.asarray(w)
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


# ---------------------------------------------------------------- constraints


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

    composes_with_threshold = True

    def project(self, w: ArrayLike) -> Array:
        return as_floats(w).copy()

    def contains(self, w: ArrayLike, tol: float = 1e-9) -> bool:
        return bool(np.isfinite(as_floats(w)).all())


class _Ball(Constraint):
    """All vectors of norm at most ``radius``, in the norm of the subclass."""

    composes_with_threshold = True

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = radius

    def check(self) -> None:
        require_bound(f"{type(self).__name__}: radius", self.radius)


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

    def __init__(self, total: float = 1.0) -> None:
        self.total = total

    def check(self) -> None:
        require_bound("Simplex: total", self.total)

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


# ---------------------------------------------------------------- the problem

CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "smooth_loss": "a loss that is twice differentiable everywhere",
        "quadratic_loss": "a loss whose Hessian is the same at every point",
        "smooth_penalty": "a penalty with a gradient everywhere",
        "strongly_convex": "a penalty that is strongly convex in the coefficients",
        "unconstrained": "no constraint on the coefficients",
        "l1_ball": "an L1Ball as the constraint on the coefficients",
        "vertices": "an L1Ball or a Simplex as the constraint on the coefficients",
        "no_intercept": "no intercept, so that penalty and constraint act on every parameter",
    }
)
"""Names by which solvers declare their needs, and the meaning of each in an error message."""


@dataclass(frozen=True)
class Problem:
    """Minimise the mean of ``loss`` plus ``penalty``, with the coefficients in ``constraint``.

    The parameter is an array of shape (p, K): a row for each feature and, with ``fit_intercept``,
    the intercept as its last row. The intercept is neither penalised nor constrained. Penalty and
    constraint apply to the rest as one vector of all its entries.

    Parameters
    ----------
    loss : Loss
    penalty : ElasticNet, default=ElasticNet()
    constraint : Constraint, default=Unconstrained()
    fit_intercept : bool, default=True

    Attributes
    ----------
    provides : frozenset of str
        The keys of ``CAPABILITIES`` that hold for this problem, on which a solver may rely:

        * of the loss ``smooth_loss``, ``quadratic_loss``.
        * of the penalty ``smooth_penalty``, ``strongly_convex``.
        * of the set ``unconstrained``, ``l1_ball``, ``vertices``.
        * of the parameter ``no_intercept``. Properties of penalty and set concern the coefficients.
          A solver whose theory needs them for every parameter also needs this name.

    Raises
    ------
    ValueError
        If projecting after the penalty's prox is not the prox of their sum. It is for every convex
        set if the prox multiplies by a number a: then penalty plus ``|z - w|**2 / (2 step)`` is
        ``|z - a w|**2 / (2 a step)`` plus a constant. With an L1 part it is for sets that compose
        with a soft threshold, all but Simplex, where ``|w|_1`` is constant: leave it out.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.objective import ElasticNet, L2Ball, Logistic
    >>> problem = Problem(Logistic(), ElasticNet(1.0), L2Ball(1.0))
    >>> problem.prox(np.array([[6.0], [8.0], [100.0]]), step=1.0).round(3).tolist()
    [[0.6], [0.8], [100.0]]
    >>> sorted(problem.provides - {"smooth_loss"})
    ['smooth_penalty', 'strongly_convex']
    """

    loss: Loss
    penalty: ElasticNet = field(default_factory=ElasticNet)
    constraint: Constraint = field(default_factory=Unconstrained)
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("loss", Loss), ("penalty", ElasticNet), ("constraint", Constraint)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(
                    f"Problem: {name} must be an instance of {kind.__name__}, "
                    f"got {getattr(self, name)!r}."
                )
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise TypeError(
                f"Problem: fit_intercept must be True or False, got {self.fit_intercept!r}."
            )
        self.constraint.check()
        if not (self.penalty.smooth or self.constraint.composes_with_threshold):
            raise ValueError(
                f"Problem: penalty {self.penalty} cannot be combined with constraint "
                f"{self.constraint}: projecting after its prox is not the prox of both. "
                "An ElasticNet with l1_ratio=0 goes with every constraint, every penalty with "
                "Unconstrained, and an ElasticNet also with L2Ball, L1Ball and Box."
            )

    @property
    def provides(self) -> frozenset[str]:
        """Names of the capabilities that hold. See the class."""
        loss, penalty, constraint = self.loss, self.penalty, self.constraint
        capabilities = {
            "smooth_loss": loss.smooth,
            "quadratic_loss": loss.quadratic,
            "smooth_penalty": penalty.smooth,
            "strongly_convex": penalty.strong_convexity > 0,
            "unconstrained": isinstance(constraint, Unconstrained),
            "l1_ball": isinstance(constraint, L1Ball),
            "vertices": isinstance(constraint, L1Ball | Simplex),
            "no_intercept": not self.fit_intercept,
        }
        return frozenset(name for name, true in capabilities.items() if true)

    def for_targets(self, centre: Array, scale: Array) -> Self:
        """Return the problem for targets ``(y - centre) / scale`` instead of y.

        Parameters
        ----------
        centre, scale : array of shape (K,)

        Returns
        -------
        Problem
        """
        penalty = self.penalty.for_targets(tuple((scale ** (self.loss.degree - 1)).tolist()))
        return replace(self, loss=self.loss.for_targets(centre, scale), penalty=penalty)

    @property
    def strong_convexity(self) -> float:
        """The penalty's strong convexity in the coefficients. An intercept is not penalised."""
        return self.penalty.strong_convexity

    def penalty_gradient(self, w: Array) -> Array:
        """Gradient of the penalty, of shape (p, K), 0 in the intercept. ValueError without one.

        Returns
        -------
        array of shape (p, K)
        """
        return self._with_intercept(self.penalty.gradient(self._coefficients(w)), w, 0.0)

    def prox(self, w: Array, step: float) -> Array:
        """Minimiser over z in the set of ``penalty + |z - w|**2 / (2 step)``.

        Computed as the projection of the penalty's prox, which is exact for every problem that
        can be constructed.

        Parameters
        ----------
        w : array of shape (p, K), finite
        step : float
            Finite and >= 0.

        Returns
        -------
        array of shape (p, K), new. The intercept as in ``w``
        """
        moved = self.penalty.prox(self._coefficients(w), step)
        return self._with_intercept(self.constraint.project(moved), w, 1.0)

    def _coefficients(self, w: Array) -> Array:
        if w.ndim != 2:
            raise ValueError(f"Problem: a parameter has shape (p, K), got {w.shape}.")
        return w[:-1] if self.fit_intercept else w

    def _with_intercept(self, coefficients: Array, w: Array, factor: float) -> Array:
        if not self.fit_intercept:
            return coefficients
        return np.concatenate([coefficients, factor * w[-1:]])
