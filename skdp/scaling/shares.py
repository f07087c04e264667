"""How much of the budget the scaling gets: a function of public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skdp.accounting import Gaussian, gaussian_mu
from skdp.oracle import Public

WANTED = 0.02  # noise on a count that is good enough, as a share of the rows
LEAST, MOST_OF_COLUMNS, MOST_OF_TARGETS = 0.01, 0.2, 0.15
# Noise on a count, as a share of the rows, beyond which columns are not asked for; with more than
# so many columns, too many of them would be misjudged.
DROWNED, DROWNED_AMONG_MANY, MANY = 0.25, 0.06, 50
ROUNDS = 3


@dataclass(frozen=True)
class Shares:
    """Share of mu squared for the scaling, and the weights of the columns in it.

    Attributes
    ----------
    share : float
        Of all rounds together; 0 if nothing is asked for.
    log_weights : tuple of int
        Base-2 logarithm of the weight of each column asked for, features first.
    features, targets : bool
        Whether columns, and targets, are asked for.
    noise : float
        Largest noise on a count, as a share of the rows.
    """

    share: float
    log_weights: tuple[int, ...]
    features: bool
    targets: bool
    noise: float


def shares(public: Public, features: bool, targets: bool, insist: bool) -> Shares:
    """Return shares that bring the noise on counts down to what is wanted, within limits.

    Parameters
    ----------
    public : Public
    features, targets : bool
        Whether columns, and targets, are wanted.
    insist : bool
        Whether columns are asked for even if their counts drown in noise.
    """
    signal = mu_per_count(public) * public.n_rows
    n_features, n_targets = public.n_features * features, public.n_outputs * targets

    def part(n_columns: int, most: float) -> float:
        return min(max(ROUNDS * n_columns / (signal * WANTED) ** 2, LEAST), most)

    of_features, of_targets = part(n_features, MOST_OF_COLUMNS), part(n_targets, MOST_OF_TARGETS)
    drowned = DROWNED if n_features <= MANY else DROWNED_AMONG_MANY
    if not insist and math.sqrt(ROUNDS * n_features / of_features) / signal > drowned:
        features, n_features = False, 0
    share = of_features * features + of_targets * targets
    if share == 0:
        return Shares(0.0, (), False, False, math.inf)
    # The noise of a column falls with the root of its share, so weights are roots, too.
    weight = [0, 0]
    if features and targets:
        ratio = math.log2(of_targets / n_targets) - math.log2(of_features / n_features)
        weight[ratio > 0] = round(abs(ratio) / 2)
    log_weights = (weight[0],) * n_features + (weight[1],) * n_targets
    squares = math.fsum(4.0**one for one in log_weights)
    noise = math.sqrt(ROUNDS * squares / share) / signal / 2.0 ** min(log_weights)
    return Shares(share, log_weights, features, targets, noise)


def whole_budget(public: Public, asked: bool = True) -> Shares:
    """Return shares that spend the whole budget on columns, or nothing if none are asked for."""
    if not asked:
        return Shares(0.0, (), False, False, math.inf)
    signal = mu_per_count(public) * public.n_rows
    noise = math.sqrt(ROUNDS * public.n_features) / signal
    return Shares(1.0, (0,) * public.n_features, True, False, noise)


def mu_per_count(public: Public) -> float:
    """Return the Gaussian-DP parameter of the budget, in the units of histograms."""
    mu = gaussian_mu(min(public.epsilon, 1e4), max(public.delta, 1e-12))
    return mu / Gaussian(1.0, math.sqrt(2)).sensitivity(public.adjacency)
