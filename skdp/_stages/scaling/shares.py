"""Shares of the budget for scaling, and their division among histograms, from public facts.

The noise on a count, as a share of the rows, is known before a fit, from the numbers of rows and
columns. Where it is large there are fewer histograms, with a larger share. Where it exceeds counts,
columns have none and stay as they are.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

from skdp._oracle import Public
from skdp._stages.scaling.distributions import TAIL_SHARE
from skdp.accounting import Gaussian, Laplace

# All figures are choices of ours. docs/research/defaults.rst has the evidence for each.
SHARE_COLUMNS, SHARE_TARGETS = 0.2, 0.15  # of mu squared, or of epsilon for Laplace noise
# Before an inference only so much that noise on counts, as a share of the rows, is down to this,
# and at least so much: all that scaling spends makes intervals wider.
NOISE_GOAL, LEAST_SHARE = 0.03, 0.04
# Histograms. Many noisy ones are as accurate on average as few, and a small scale next to a large
# offset is estimated step by step. Epsilons of histograms add up, and so there are fewer.
ROUNDS, PURE_ROUNDS, FEW_ROUNDS = 6, 3, 2
# Noise on a count above which there are few. Then the share of columns, and of targets, rises until
# noise is down to this, up to a limit for columns, and for all scaling together.
FEW_ABOVE, GOAL_COLUMNS, GOAL_TARGETS = 0.15, 0.25, 0.15
MAX_SHARE_COLUMNS, MAX_SHARE_ALL = 0.3, 0.9
NONE_ABOVE = 0.5  # noise beyond which columns have no histograms
# Of a stream: the largest share of the first records, whose counts have the noise above.
MAX_SHARE_FIRST = 0.2
# Of what the first records of a stream may spend, for the scale of their weights.
SHARE_OF_WEIGHTS = 0.1
# Of the budget of a scaler, for the number of records whose weight is not 0.
SHARE_OF_COUNT = 0.01


@dataclass(frozen=True)
class Histograms:
    """Histograms of the features, or of the targets: one by magnitude, and others in bins.

    Attributes
    ----------
    n_columns : int
        Number of columns. 0 if they need none.
    share : float
        Of mu squared, for all of them together. 0 if the values are public.
    rounds : int
        Number of histograms. Where ranges stay as they are, the mean of the counts is used.
    signal : float
        Number of rows in standard deviations of a count that has the whole budget.
    order : {1, 2}
        Of the norm in which a record moves the counts: 1 for Laplace noise.
    """

    n_columns: int = 0
    share: float = 0.0
    rounds: int = ROUNDS
    signal: float = math.inf
    order: int = 2

    @classmethod
    def of(
        cls, public: Public, n_columns: int, usual: float, most: float, goal: float, thrifty: bool
    ) -> Self:
        """Return many with the usual share, or few with up to the largest one, by their noise."""
        order, signal = 2 - public.has_laplace_noise, signal_of(public)
        rounds = ROUNDS if order == 2 else PURE_ROUNDS
        if thrifty:
            enough = rounds * n_columns / (signal * NOISE_GOAL) ** order
            usual = min(max(enough, LEAST_SHARE), usual)
        many = cls(n_columns, usual, rounds, signal, order)
        if many.noise <= FEW_ABOVE:
            return many
        needed = FEW_ROUNDS * n_columns / (signal * goal) ** order
        return cls(n_columns, min(max(needed, usual), most), FEW_ROUNDS, signal, order)

    @property
    def noise(self) -> float:
        """Noise on a count, as a share of the rows."""
        whole = self.rounds * self.n_columns
        return float((whole / self.share) ** (1 / self.order)) / self.signal if self.share else 0.0


def scaling_budget(
    public: Public, features: bool, targets: bool, insist: bool, thrifty: bool = False
) -> tuple[Histograms, Histograms]:
    """Return the histograms of columns and of targets.

    Parameters
    ----------
    public : Public
    features, targets : bool
        Whether columns, and targets, need histograms.
    insist : bool
        Whether columns get histograms even if noise exceeds their counts.
    thrifty : bool, default=False
        Whether an inference follows, and shares are as small as noise allows.
    """
    of_features = of_targets = Histograms()
    if features and public.features_are_public:
        of_features = Histograms(public.n_features)
    elif features:
        limits = SHARE_COLUMNS, MAX_SHARE_COLUMNS, GOAL_COLUMNS
        of_features = Histograms.of(public, public.n_features, *limits, thrifty)
        if of_features.noise > NONE_ABOVE and not insist:
            of_features = Histograms()
    if targets:
        left = MAX_SHARE_ALL - of_features.share
        limits = SHARE_TARGETS, left, GOAL_TARGETS
        of_targets = Histograms.of(public, public.n_outputs, *limits, thrifty)
    return of_features, of_targets


def records_for_scaling(public: Public, features: bool, targets: bool) -> int:
    """Return how many first records of a stream the histograms are of, from public facts.

    So many that the noise on counts comes down to its aim, as histograms have the whole budget on
    them. At least as many as have four records in the tail that ranges leave out, and at most a
    share of the stream, which the solver does not get.
    """
    n_columns = public.n_features * features + public.n_outputs * targets
    wanted = math.sqrt(ROUNDS * n_columns) / (mu_per_count(public) * NOISE_GOAL)
    most = int(MAX_SHARE_FIRST * public.n_rows)
    return min(max(math.ceil(wanted), round(4 / TAIL_SHARE)), most)


def budget_of_first(
    first: Public, features: bool, targets: bool, left: float = 1.0
) -> tuple[Histograms, Histograms]:
    """Return histograms that spend the (remaining) budget on these records.

    Their ratio is that of as many records as would have the same noise on counts for the usual
    share.
    """
    usual = SHARE_COLUMNS * features + SHARE_TARGETS * targets
    alike = replace(first, n_rows=math.ceil(first.n_rows / math.sqrt(usual)))
    columns, outputs = scaling_budget(alike, features, targets, insist=True)
    signal, whole = signal_of(first), columns.share + outputs.share
    return (
        replace(columns, share=left * columns.share / whole, signal=signal),
        replace(outputs, share=left * outputs.share / whole, signal=signal),
    )


def signal_of(public: Public) -> float:
    """Return the number of rows in standard deviations of a count that has the whole budget."""
    if not public.is_noisy:
        return math.inf
    if public.is_pure:
        unit = math.sqrt(2) * Laplace(1.0, 2.0).sensitivity(public.adjacency)
        return public.epsilon * public.n_rows / unit
    return mu_per_count(public) * public.n_rows


def mu_per_count(public: Public) -> float:
    """Return the Gaussian-DP parameter of the budget, in the units of histograms."""
    return public.mu / Gaussian(1.0, math.sqrt(2)).sensitivity(public.adjacency)
