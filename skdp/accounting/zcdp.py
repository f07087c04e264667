"""Zero-concentrated differential privacy: a figure that papers report, beside tighter ones."""

import math

from scipy.optimize import brentq, minimize_scalar

from skdp.accounting.accountant import Accountant, UnknownCost, register
from skdp.accounting.events import Adjacency, Event, Gaussian
from skdp.accounting.plan import paths
from skdp.accounting.pure import pure_epsilon


def _log_delta_at(log_excess: float, rho: float, epsilon: float) -> float:
    """Canonne, Kamath, Steinke 2020, Prop. 12 at order ``a = 1 + exp(log_excess)``."""
    excess = math.exp(log_excess)
    order = 1 + excess
    return excess * (order * rho - epsilon) - log_excess + order * math.log1p(-1 / order)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Delta that every rho-zCDP mechanism meets at ``epsilon``.

    ``inf over a > 1 of exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)**a``
    (Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Prop. 12).

    Parameters
    ----------
    rho : float
        At least 0.
    epsilon : float
        At least 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.accounting import zcdp_delta
    >>> round(zcdp_delta(0.1, 1.0), 9)
    0.008933246
    """
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return 1.0
    minimum = minimize_scalar(
        _log_delta_at,
        bounds=(-12, 16),
        args=(rho, epsilon),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min(1.0, math.exp(minimum.fun))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon that every rho-zCDP mechanism meets at ``delta``.

    ``inf over a > 1 of a rho + log(1 - 1/a) - log(delta a) / (a-1)`` (the same proposition).

    Parameters
    ----------
    rho : float
        At least 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        inf where delta is 0 and rho is not.

    Examples
    --------
    >>> from skdp.accounting import zcdp_epsilon
    >>> round(zcdp_epsilon(0.1, 1e-6), 6)
    2.141939
    """
    if rho == 0:
        return 0.0
    if math.isinf(rho) or delta == 0:
        return math.inf

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return order * rho + math.log1p(-1 / order) - math.log(delta * order) / excess

    minimum = minimize_scalar(bound, bounds=(-8, 16), method="bounded", options={"xatol": 1e-12})
    return max(0.0, float(minimum.fun))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho that `zcdp_epsilon` turns into at most ``epsilon``.

    Parameters
    ----------
    epsilon, delta : float
        Above 0.

    Returns
    -------
    float

    Examples
    --------
    >>> from skdp.accounting import zcdp_rho
    >>> round(zcdp_rho(1.0, 1e-6), 9)
    0.02435597
    """
    log_rho = brentq(lambda r: zcdp_epsilon(math.exp(r), delta) - epsilon, -60, 12, xtol=1e-13)
    return math.exp(log_rho) * (1 - 1e-12)


def _rho(event: Event, adjacency: Adjacency) -> float:
    """Return rho such that ``event`` is rho-zCDP; pure epsilon-DP is (epsilon**2 / 2)-zCDP.

    (Bun and Steinke 2016, Prop. 1.4.)
    """
    if isinstance(event, Gaussian):
        return event.mu(adjacency) ** 2 / 2
    try:
        return pure_epsilon(event, adjacency) ** 2 / 2
    except UnknownCost as refusal:
        raise UnknownCost(f"{type(event).__name__} has no zCDP figure: {refusal}") from None


@register
class ZCDPAccountant(Accountant[float]):
    """Sum of rho with the tight conversion: a figure to report, never the least one.

    "auto" does not try it: for one Gaussian release it needs 6 to 11 % more noise than "gdp", which
    is exact (``ratio_cks`` in ``tests/accounting/vectors.json``).
    """

    name = "zcdp"

    def examine(self, event: Event, adjacency: Adjacency) -> float:
        return max(
            sum(count * _rho(part, adjacency) for part, count in path.items())
            for path in paths(event, adjacency)
        )

    def rho(self, event: Event, adjacency: Adjacency) -> float:
        """Return the zCDP parameter of ``event``.

        Returns
        -------
        float
            inf without noise.

        Raises
        ------
        UnknownCost
            If there is no theorem for ``event``; the message names the accountant.
        """
        return self.require(event, adjacency)

    def epsilon(self, event: Event, delta: float, adjacency: Adjacency) -> float:
        return zcdp_epsilon(self.rho(event, adjacency), delta)

    def delta(self, event: Event, epsilon: float, adjacency: Adjacency) -> float:
        return zcdp_delta(self.rho(event, adjacency), epsilon)
