"""The guarantee of one mechanism: epsilon with delta = 0, Gaussian DP, and dominating pairs.

A dominating pair consists of two distributions that are at least as distinguishable as those of a
mechanism.

A pair (P, Q) is represented by its privacy profile, the hockey-stick divergence
``H_a(P||Q) = sup_S P(S) - a Q(S)`` at ``a = exp(epsilon)``, epsilon >= 0, in both directions:
`forward` is ``H(P||Q)``, `backward` is ``H(Q||P)``. For a < 1 the other direction determines it:
``H_a(P||Q) = 1 - a + a H_1/a(Q||P)``. Profiles of dominating pairs compose (Zhu, Dong, Wang 2022,
Thm 10), each direction by itself.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfcx, log_ndtr, ndtr, ndtri_exp

from skdp._numbers import Array, require
from skdp.accounting import events
from skdp.accounting.events import (
    Adjacency,
    Event,
    EventCounts,
    UnknownCost,
    sampled_counts,
)

_ROOT_HALF = math.sqrt(0.5)


class Pair(ABC):
    """A dominating pair (P, Q), represented by its profile.

    Attributes
    ----------
    symmetric : bool
        Whether both directions have the same profile.
    """

    symmetric: ClassVar[bool] = True

    @property
    def infinity_mass(self) -> float:
        """Mass at infinite privacy loss, which no epsilon covers, in the worse direction."""
        return 0.0

    @property
    def bounded(self) -> bool:
        """Whether all finite losses are at most `reach`, whatever the tail."""
        return False

    @abstractmethod
    def forward(self, epsilon: Array) -> Array:
        """``H(P||Q)`` at exp(epsilon), for epsilon >= 0."""

    def backward(self, epsilon: Array) -> Array:
        """``H(Q||P)`` at exp(epsilon), for epsilon >= 0."""
        return self.forward(epsilon)

    @abstractmethod
    def reach(self, tail: float) -> tuple[float, float]:
        """Return epsilons beyond which the forward and the backward profile are below ``tail``.

        ``tail`` is at most 1/2. The mass at infinite loss, which no epsilon covers, comes on top.
        """


@dataclass(frozen=True)
class GaussianPair(Pair):
    """``(N(mu, 1), N(0, 1))``: tight for mu-Gaussian DP (Balle and Wang 2018, Thm 8)."""

    mu: float

    def forward(self, epsilon: Array) -> Array:
        near = epsilon / self.mu - self.mu / 2
        far = epsilon / self.mu + self.mu / 2
        # Phi(-near) - exp(epsilon) Phi(-far), with exp(epsilon) phi(far) = phi(near) taken out.
        height = 0.5 * np.exp(-0.5 * near**2)
        centre = np.maximum(near, -10.0)
        upper = np.where(near > -10.0, height * erfcx(_ROOT_HALF * centre), ndtr(-near))
        return np.asarray(np.maximum(upper - height * erfcx(_ROOT_HALF * far), 0.0))

    def reach(self, tail: float) -> tuple[float, float]:
        deviations = -float(ndtri_exp(math.log(tail)))
        epsilon = self.mu * deviations + self.mu**2 / 2
        return epsilon, epsilon


@dataclass(frozen=True)
class _BoundedPair(Pair):
    """Base class of pairs whose finite losses lie between ``-bound`` and ``bound``."""

    bound: float

    @property
    def bounded(self) -> bool:
        return True

    def reach(self, tail: float) -> tuple[float, float]:
        return self.bound, self.bound


@dataclass(frozen=True)
class LaplacePair(_BoundedPair):
    """Laplace noise against itself, shifted by ``bound`` scales: ``1 - exp((e - bound) / 2)``.

    It also dominates Laplace noise on a vector whose L1 sensitivity over the scale is ``bound`` (a
    fact that all privacy-loss accounting of Laplace noise uses, the tests check it numerically).
    """

    def forward(self, epsilon: Array) -> Array:
        return np.asarray(-np.expm1(np.minimum((epsilon - self.bound) / 2, 0.0)))


@dataclass(frozen=True)
class ResponsePair(_BoundedPair):
    """Randomised response that reveals the record with probability ``delta``.

    Dominates every (bound, delta)-DP mechanism (Kairouz, Oh, Viswanath 2015, Thm 3.4).
    """

    delta: float = 0.0

    @property
    def infinity_mass(self) -> float:
        return self.delta

    def forward(self, epsilon: Array) -> Array:
        truth = (1 - self.delta) / (1 + math.exp(-self.bound))
        return np.asarray(self.delta - truth * np.expm1(np.minimum(epsilon - self.bound, 0.0)))


@dataclass(frozen=True)
class SelectedPair(Pair):
    """The best of a random number of mu-Gaussian-DP runs, ``mean`` in expectation.

    Its profile p is at most ``d(e) = mean * delta_mu(e - shift)`` (see
    `skdp.accounting.pricing.selection_shift`), and as the selection is (e, d(e))-DP for every e,
    on ``[0, e]`` also at most the profile of `ResponsePair` with e and d(e), which is the straight
    line ``1 - B (1 + a)`` in ``a = exp(epsilon)``, ``B = (1 - d(e)) / (1 + exp(e))``. The e of the
    largest B gives the lowest line. It is a tangent of the convex d, so that both together are
    convex in a, decreasing and at least 0, hence the profile of some pair (Zhu, Dong, Wang 2022).
    """

    mu: float
    mean: float
    shift: float

    @cached_property
    def _tangent(self) -> tuple[float, float]:
        """The e of the tangent, and d there."""

        def minus_log_slope(epsilon: float) -> float:
            kept = max(1 - float(self._bound(np.asarray(epsilon))), 1e-300)
            return float(np.logaddexp(0.0, epsilon)) - math.log(kept)

        far = self.shift + GaussianPair(self.mu).reach(1e-3 / self.mean)[0]
        grid = np.linspace(self.shift, far, 65)
        best = int(np.argmin([minus_log_slope(epsilon) for epsilon in grid.tolist()]))
        around = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 64)])
        options = {"xatol": 1e-12 * far}
        least = minimize_scalar(minus_log_slope, bounds=around, method="bounded", options=options)
        return float(least.x), float(self._bound(np.asarray(least.x)))

    def _bound(self, epsilon: Array) -> Array:
        beyond = np.maximum(epsilon - self.shift, 0.0)
        return np.asarray(self.mean * GaussianPair(self.mu).forward(beyond))

    def forward(self, epsilon: Array) -> Array:
        end, delta = self._tangent
        line = ResponsePair(end, delta).forward(np.minimum(epsilon, end))
        return np.where(epsilon < end, line, np.minimum(self._bound(epsilon), delta))

    def reach(self, tail: float) -> tuple[float, float]:
        epsilon = self.shift + GaussianPair(self.mu).reach(tail / self.mean)[0]
        epsilon = max(epsilon, self._tangent[0])
        return epsilon, epsilon


@dataclass(frozen=True)
class SymmetricSampledPair(Pair):
    """The profile ``q H_{1 + (a-1)/q}(P||Q)`` of a base pair (P, Q) in both directions at once.

    Dominates sampling with probability ``rate`` = q under replace-one, if the base pair is
    symmetric and dominates the mechanism under replace-one: by advanced joint convexity (Balle,
    Barthe, Gaboardi 2018, Thm 2) at *every* epsilon, as the sample without the record differs from
    the sample with it by one replacement (sampling without replacement) or by one record (Poisson
    sampling).
    """

    base: Pair
    rate: float

    @property
    def infinity_mass(self) -> float:
        return self.rate * self.base.infinity_mass

    @property
    def bounded(self) -> bool:
        return self.base.bounded

    def forward(self, epsilon: Array) -> Array:
        return self.rate * self.base.forward(_before_sampling(epsilon, self.rate))

    def reach(self, tail: float) -> tuple[float, float]:
        epsilon = amplified(self.base.reach(min(tail / self.rate, 0.1))[0], self.rate)
        return epsilon, epsilon


@dataclass(frozen=True)
class SampledPair(SymmetricSampledPair):
    """``((1-q) Q + q P, Q)`` for a base pair (P, Q): a record joins with probability ``rate`` = q.

    Forward profile: ``q H_{1 + (a-1)/q}(P||Q)``. Dominates Poisson sampling where a record is
    compared with the null record (Zhu, Dong, Wang 2022, Thm 11), each direction by itself.
    """

    symmetric = False

    def backward(self, epsilon: Array) -> Array:
        # Q - a ((1-q) Q + q P) = (1 - a (1-q)) (Q - b P), with 1/b = 1 + (1/a - 1)/q.
        limit = -math.log1p(-self.rate)
        below = epsilon < limit
        safe = np.where(below, epsilon, 0.0)  # a placeholder where the profile is 0
        weight = -np.expm1(safe - limit)
        log_b = -np.log1p(np.maximum(np.expm1(-safe) / self.rate, -1 + 1e-300))
        return np.where(below, weight * self.base.backward(log_b), 0.0)

    def reach(self, tail: float) -> tuple[float, float]:
        down = self.base.reach(min(tail / self.rate, 0.1))[1]
        return super().reach(tail)[0], -math.log1p(self.rate * math.expm1(-down))


@dataclass(frozen=True)
class AntipodalPair(Pair):
    """``((1-q) N(0,1) + q N(mu,1), (1-q) N(0,1) + q N(-mu,1))``, q = ``rate``.

    Dominates a Poisson-sampled Gaussian sum under replace-one. ``mu`` is *one* contribution bound
    over sigma, because the two records already pull in opposite directions (Prop. 13 of Lebeda,
    Regehr, Kamath, Steinke 2025, as used by Google's privacy loss distributions, Sec. 5.2).
    """

    mu: float
    rate: float

    def forward(self, epsilon: Array) -> Array:
        # The loss increases with x: solve for the x at which it equals epsilon.
        log_ratio = math.log1p(-self.rate) - math.log(self.rate) + self.mu**2 / 2
        half = epsilon / 2
        log_sinh = half + np.log(np.maximum(-np.expm1(-epsilon), 1e-300)) - math.log(2)
        grown = log_ratio + log_sinh
        inverse = np.where(
            grown > 30, grown + math.log(2), np.arcsinh(np.exp(np.minimum(grown, 30)))
        )
        x = (half + inverse) / self.mu
        stay, move = math.log1p(-self.rate), math.log(self.rate)
        upper = np.logaddexp(stay + log_ndtr(-x), move + log_ndtr(self.mu - x))
        lower = np.logaddexp(stay + log_ndtr(-x), move + log_ndtr(-self.mu - x))
        return np.asarray(np.exp(upper) * -np.expm1(np.minimum(epsilon + lower - upper, 0.0)))

    def reach(self, tail: float) -> tuple[float, float]:
        x = self.mu - float(ndtri_exp(math.log(tail)))
        stay, move = math.log1p(-self.rate), math.log(self.rate)
        tilt = move - self.mu**2 / 2
        epsilon = float(
            np.logaddexp(stay, tilt + self.mu * x) - np.logaddexp(stay, tilt - self.mu * x)
        )
        return epsilon, epsilon


def _before_sampling(epsilon: Array, rate: float) -> Array:
    """``log(1 + (exp(epsilon) - 1) / rate)`` for epsilon >= 0, without overflow."""
    small = np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / rate)
    large = epsilon - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(epsilon, 0.5)))
    return np.where(epsilon < 1.0, small, large)


def amplified(epsilon: float, rate: float) -> float:
    """``log(1 + rate (exp(epsilon) - 1))`` (Balle, Barthe, Gaboardi 2018, Thm 8 and 9)."""
    if epsilon > 30:  # exp may overflow, and 1 no longer matters
        return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
    return math.log1p(rate * math.expm1(epsilon))


# Relative amount by which results are moved towards the private side. It covers the error of the
# root finding, a few units in the last place (2e-16), and of `_log_delta`, which the tests compare
# with 60 digits, with a wide margin.
SAFETY = 1e-11
# Quadrature over an interval of length mu. For mu below 0.1 its error is less than rounding's.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def pure_epsilon(event: Event, adjacency: Adjacency) -> float:
    """Return the epsilon that ``event`` guarantees with delta = 0.

    Raises
    ------
    UnknownCost
        If there is none, or no theorem gives one.
    """
    match event:
        case events.Laplace() | events.NoisyMaximum():
            return event.pure_epsilon(adjacency)
        case events.ApproximateDP(epsilon, delta=0):
            return epsilon
        case events.ApproximateDP():
            raise UnknownCost(f"ApproximateDP with delta={event.delta:g} is not pure.")
        case events.Sampled():
            # Balle, Barthe, Gaboardi 2018, Thm 8 and 9. Under replace-one, a Poisson sample without
            # the record is one record away from the sample with it, which costs no more than a
            # replacement (their Thm 2).
            return amplified(pure_total(sampled_counts(event, adjacency), adjacency), event.rate)
    raise UnknownCost(f"{type(event).__name__} has no epsilon with delta = 0 under {adjacency}.")


def pure_total(counts: EventCounts, adjacency: Adjacency) -> float:
    """Sum of the epsilons of all events (Dwork, McSherry, Nissim, Smith 2006)."""
    return sum(count * pure_epsilon(event, adjacency) for event, count in counts.items())


def require_figures(delta: float = 0.0, **figures: float) -> None:
    """Raise ValueError where a figure is negative, or delta above 1."""
    require("delta", delta, "lie in [0, 1]", 0 <= delta <= 1)
    for name, value in figures.items():
        require(name, value, "be at least 0", not value < 0)


def _log_delta(mu: float, epsilon: float) -> float:
    """Return the logarithm of `gaussian_delta`, without cancellation where mu is small."""
    if mu == 0:
        return -math.inf
    near = epsilon / mu - mu / 2
    if mu < 0.1 and near < 40:  # the difference below would cancel; beyond, delta is below 1e-300
        # phi(near) (R(near) - R(near + mu)), with the ratio of Mills R, of derivative z R(z) - 1.
        z = near + mu / 2 * (NODES + 1)
        falls = 1 - z * math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))
        return math.log(mu / 2 * (WEIGHTS @ falls)) - near**2 / 2 - math.log(2 * math.pi) / 2
    upper = float(log_ndtr(-epsilon / mu + mu / 2))
    lower = float(log_ndtr(-epsilon / mu - mu / 2))
    gap = epsilon + lower - upper
    return upper + math.log(-math.expm1(gap)) if gap < 0 else -math.inf


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta such that every mu-GDP mechanism is (epsilon, delta)-DP.

    ``delta = Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2)`` (Balle and Wang 2018,
    Thm 8, Dong, Roth, Su 2019, Cor. 2.13).

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter, at least 0.
    epsilon : float
        At least 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.accounting import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    require_figures(mu=mu)
    if math.isinf(epsilon):
        return 0.0
    return 1.0 if math.isinf(mu) else math.exp(_log_delta(mu, epsilon))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon such that every mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    mu : float
        Gaussian-DP parameter, at least 0.
    delta : float
        In [0, 1). With 0 the answer is infinite, unless mu is 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.accounting import gaussian_epsilon
    >>> round(gaussian_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    require_figures(mu=mu, delta=delta)
    if mu == 0:
        return 0.0
    if delta == 0 or not mu < math.inf:  # nan proves nothing
        return math.inf
    target = math.log(delta)
    at_zero = _log_delta(mu, 0.0)
    if at_zero <= target - 1e-13:  # by more than rounding
        return 0.0
    high = 1.0
    while _log_delta(mu, high) > target:
        high *= 2

    def excess(epsilon: float) -> float:
        return max(_log_delta(mu, epsilon), -1e9) - target

    root = float(brentq(excess, 0.0, high, xtol=1e-300)) if at_zero > target else 0.0
    # Rounding moves an epsilon near 0 by a share of delta, which is no small part of it.
    return (root + 1e-14 * delta) * (1 + SAFETY)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu such that mu-GDP implies (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.accounting import gaussian_mu
    >>> round(gaussian_mu(1.0, 1e-5), 10)
    0.2680511232
    """
    require_figures(epsilon=epsilon, delta=delta)
    if math.isinf(epsilon):
        return math.inf
    if delta == 0:
        return 0.0
    target = math.log(delta)
    high = 1.0
    while _log_delta(high, epsilon) < target:
        high *= 2
    while _log_delta(high / 2, epsilon) > target:
        high /= 2
    root = float(
        brentq(lambda m: max(_log_delta(m, epsilon), -1e9) - target, high / 2, high, xtol=1e-300)
    )
    return root * (1 - SAFETY)
