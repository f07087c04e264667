"""One (epsilon, delta) of a single mechanism, for the accountants that compose such pairs."""

from __future__ import annotations

import math
from functools import singledispatch

from skdp.accounting.accountant import UnknownCost
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import (
    ApproximateDP,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
)
from skdp.accounting.gaussian_tradeoff import gaussian_epsilon
from skdp.accounting.plan import sequence_of, squared_mu
from skdp.accounting.pure import amplified, pure_epsilon


@singledispatch
def guarantee(event: Event, delta: float, adjacency: Adjacency) -> tuple[float, float]:
    """Return an (epsilon, delta) that ``event`` meets, its delta being ``delta`` where one is free.

    Mechanisms with delta = 0, or with a delta of their own, keep it.
    """
    raise UnknownCost(
        f"{type(event).__name__} has no single (epsilon, delta) theorem under {adjacency}."
    )


@guarantee.register
def _(event: Gaussian, delta: float, adjacency: Adjacency) -> tuple[float, float]:
    return gaussian_epsilon(event.mu(adjacency), delta), delta


@guarantee.register
def _(event: Laplace, delta: float, adjacency: Adjacency) -> tuple[float, float]:
    return event.pure_epsilon(adjacency), 0.0


@guarantee.register
def _(event: ApproximateDP, delta: float, adjacency: Adjacency) -> tuple[float, float]:
    return event.epsilon, event.delta


@guarantee.register(PoissonSampled)
@guarantee.register(FixedSizeSampled)
def _(
    event: PoissonSampled | FixedSizeSampled, delta: float, adjacency: Adjacency
) -> tuple[float, float]:
    """Epsilon shrinks to ``log(1 + q (exp(epsilon) - 1))``, delta to ``q delta``.

    (Balle, Barthe, Gaboardi 2018, Thm 8 and 9; Thm 2 for Poisson samples under replace-one.)
    """
    inner = sequence_of(event.event)
    if not all(isinstance(part, Gaussian) for part in inner):
        return pure_epsilon(event, adjacency), 0.0
    if isinstance(event, FixedSizeSampled) and adjacency is Adjacency.ZERO_OUT:
        raise UnknownCost("FixedSizeSampled is amplified under replace_one only.")
    mu = math.sqrt(squared_mu(inner, adjacency))
    epsilon = gaussian_epsilon(mu, min(delta / event.rate, 1.0))
    return amplified(epsilon, event.rate), delta


def spends_delta(event: Event, adjacency: Adjacency) -> bool:
    """Whether ``event`` needs a share of delta to have a finite epsilon."""
    return guarantee(event, 1e-3, adjacency)[1] == 1e-3 and not isinstance(event, ApproximateDP)
