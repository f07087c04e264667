"""How much of the budget the scaling gets: a function of public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdp.accounting import Gaussian, gaussian_mu
from skdp.oracle import Public

WANTED = 0.03  # noise on a count that is good enough, as a share of the rows
LEAST, MOST = 0.03, 0.3
ROUNDS = 3


@dataclass(frozen=True)
class Shares:
    """Share of mu squared for the scaling, and the weights of the columns in it.

    Attributes
    ----------
    share : float
        Of all rounds together.
    log_weights : tuple of int
        Base-2 logarithm of the weight of each column asked for.
    """

    share: float
    log_weights: tuple[int, ...]


def shares(public: Public, features: bool, targets: bool) -> Shares:
    """Return the share that brings the noise on counts down to what is wanted, within limits.

    Targets get as much weight together as all columns of X: without their scale nothing can be
    learnt, and they are few.
    """
    weights = [0] * (public.n_features * features)
    if targets:
        ratio = max(1.0, len(weights) / public.n_outputs)
        weights += [round(math.log2(ratio) / 2)] * public.n_outputs
    squares = math.fsum(4.0**weight for weight in weights)
    if math.isinf(public.epsilon):
        return Shares(LEAST, tuple(weights))
    mu = gaussian_mu(public.epsilon, max(public.delta, 1e-12))
    mu /= Gaussian(1.0, math.sqrt(2)).sensitivity(public.adjacency)
    noise = math.sqrt(ROUNDS * squares) / (mu * public.n_rows)
    return Shares(min(max((noise / WANTED) ** 2, LEAST), MOST), tuple(weights))
