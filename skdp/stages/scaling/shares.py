"""Share of the budget for scaling, and its division among histograms, from public facts.

The noise on a count, as a share of the rows, is brought down to an aim, within limits of the share:
so much is known before a fit, from the numbers of rows and columns alone. Where noise exceeds the
aim by far there are fewer histograms; where it exceeds counts, columns have none and stay as they
are.
"""

import math
from dataclasses import dataclass, field, replace

from skdp.accounting import Gaussian
from skdp.oracle import Public
from skdp.stages.scaling.distributions import TAIL_SHARE

# All figures are choices of ours; docs/research/defaults.rst has the evidence for each.
# Aim of the noise on a count of columns, as a share of rows; of targets it is the share in their
# tail, which is to be seen. Shares for it, within limits.
NOISE_GOAL = 0.02
MIN_SHARE, MAX_SHARE_COLUMNS, MAX_SHARE_TARGETS = 0.04, 0.2, 0.15
# Of more columns than that: they inform the prior that they share, so that each needs less.
MANY_COLUMNS, MAX_SHARE_MANY_COLUMNS = 50, 0.06
# Noise on a count of a column above which it gets a larger share, up to a limit, as columns of
# unknown scale are useless to a solver; beyond twice that, no histograms.
RAISE_SHARE_ABOVE, MAX_RAISED_SHARE = 0.25, 0.3
# Histograms of columns, and of targets: what each costs, in units of one with the noise aimed at.
# Many noisy ones are as accurate on average as few, and a small scale next to a large offset is
# estimated step by step. Ranges of targets hardly shrink after the first.
COSTS_COLUMNS: tuple[float, ...] = (0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
COSTS_TARGETS: tuple[float, ...] = (1.0, 0.4, 0.4, 0.4, 0.4, 0.4)
# Where noise exceeds this there are fewer: of columns, for less; of targets, where a fit is worse
# than a constant, and all scaling together gets up to this share.
COSTS_OF_FEWER: tuple[float, ...] = (1.0, 1.0)
REDUCE_ABOVE, MAX_SHARE_ALL = 0.15, 0.9
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
        Number of columns; 0 if they need none.
    share : float
        Of mu squared, for all of them together; 0 if the values are public.
    costs : tuple of float
        What each costs, in units of one with this noise: where ranges stay as they are, the mean of
        the counts is used.
    signal : float
        Number of rows in standard deviations of a count that has the whole budget.
    """

    n_columns: int = 0
    share: float = 0.0
    costs: tuple[float, ...] = COSTS_COLUMNS
    signal: float = math.inf

    @property
    def noise(self) -> float:
        """Noise on a count, as a share of the rows."""
        whole = sum(self.costs) * self.n_columns
        return math.sqrt(whole / self.share) / self.signal if self.share else 0.0

    @property
    def is_free(self) -> bool:
        """True if there are histograms and they cost nothing, as their values are public."""
        return self.n_columns > 0 and self.share == 0

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of mu squared of each."""
        return tuple(self.share * cost / sum(self.costs) for cost in self.costs)


@dataclass(frozen=True)
class ScalingBudget:
    """Histograms of features and of targets."""

    features: Histograms = field(default_factory=Histograms)
    targets: Histograms = field(default_factory=Histograms)

    @property
    def share(self) -> float:
        """Share of mu squared of all histograms; 0 without any that cost something."""
        return self.features.share + self.targets.share

    @property
    def has_requests(self) -> bool:
        """Whether there are histograms at all."""
        return self.features.n_columns + self.targets.n_columns > 0


def scaling_budget(public: Public, features: bool, targets: bool, insist: bool) -> ScalingBudget:
    """Return shares that bring the noise on counts down to its aim, within limits.

    Parameters
    ----------
    public : Public
    features, targets : bool
        Whether columns, and targets, need histograms.
    insist : bool
        Whether columns get histograms even if noise exceeds their counts.
    """
    signal = _signal(public)
    of_features = of_targets = Histograms()
    if features and public.features_are_public:
        of_features = Histograms(public.n_features)
    elif features:
        of_features = _of_features(public.n_features, signal, insist)
    if targets:
        of_targets = _of_targets(public.n_outputs, signal, MAX_SHARE_ALL - of_features.share)
    return ScalingBudget(of_features, of_targets)


def _of_features(n_columns: int, signal: float, insist: bool) -> Histograms:
    """Return the histograms of features: none if noise exceeds their counts."""
    largest = MAX_SHARE_MANY_COLUMNS if n_columns > MANY_COLUMNS else MAX_SHARE_COLUMNS
    costs = COSTS_COLUMNS
    share = _share(sum(costs) * n_columns, signal, NOISE_GOAL, largest)
    if _needed(sum(costs) * n_columns, signal, REDUCE_ABOVE) > share:
        share, costs = share * sum(COSTS_OF_FEWER) / sum(costs), COSTS_OF_FEWER
    n_counts = sum(costs) * n_columns
    share = max(share, min(_needed(n_counts, signal, RAISE_SHARE_ABOVE), MAX_RAISED_SHARE))
    if not insist and _needed(n_counts, signal, 2 * RAISE_SHARE_ABOVE) > share:
        return Histograms()
    return Histograms(n_columns, share, costs, signal)


def _of_targets(n_targets: int, signal: float, left: float) -> Histograms:
    """Return the histograms of targets, with at most the share that is left."""
    costs = COSTS_TARGETS
    share = _share(sum(costs) * n_targets, signal, TAIL_SHARE, MAX_SHARE_TARGETS)
    if _needed(sum(costs) * n_targets, signal, REDUCE_ABOVE) > share:
        costs = COSTS_OF_FEWER
        share = min(max(_needed(sum(costs) * n_targets, signal, REDUCE_ABOVE), share), left)
    return Histograms(n_targets, share, costs, signal)


def _share(n_counts: float, signal: float, noise: float, largest: float) -> float:
    """Return the share for this noise on counts, within limits."""
    return min(max(_needed(n_counts, signal, noise), MIN_SHARE), largest)


def _needed(n_counts: float, signal: float, noise: float) -> float:
    """Return the share of mu squared that brings the noise on counts down to this."""
    return n_counts / (signal * noise) ** 2


def whole_budget(public: Public, share: float) -> ScalingBudget:
    """Return shares that spend the whole budget, or a share of it, on columns."""
    return ScalingBudget(Histograms(public.n_features, share, COSTS_COLUMNS, _signal(public)))


def records_for_scaling(public: Public, features: bool, targets: bool) -> int:
    """Return how many first records of a stream the histograms are of, from public facts.

    So many that the noise on counts comes down to its aim, as histograms have the whole budget on
    them; at least as many as have four records in the tail that ranges leave out, and at most a
    share of the stream, which the solver does not get.
    """
    n_columns = public.n_features * features + public.n_outputs * targets
    wanted = math.sqrt(sum(COSTS_COLUMNS) * n_columns) / (mu_per_count(public) * NOISE_GOAL)
    most = int(MAX_SHARE_COLUMNS * public.n_rows)
    return min(max(math.ceil(wanted), round(4 / TAIL_SHARE)), most)


def budget_of_first(
    first: Public, features: bool, targets: bool, left: float = 1.0
) -> ScalingBudget:
    """Return shares that spend the budget, or what is left of it, on histograms of these records.

    Their ratio is that of as many records as would have the same noise on counts for the usual
    share.
    """
    usual = scaling_budget(first, features, targets, insist=True).share
    alike = replace(first, n_rows=math.ceil(first.n_rows / math.sqrt(usual)))
    budget, signal = scaling_budget(alike, features, targets, insist=True), _signal(first)
    parts = budget.features, budget.targets
    return ScalingBudget(
        *(replace(one, share=left * one.share / budget.share, signal=signal) for one in parts)
    )


def _signal(public: Public) -> float:
    """Return the number of rows in standard deviations of a count that has the whole budget."""
    return mu_per_count(public) * public.n_rows if public.is_noisy else math.inf


def mu_per_count(public: Public) -> float:
    """Return the Gaussian-DP parameter of the budget, in the units of histograms."""
    return public.mu / Gaussian(1.0, math.sqrt(2)).sensitivity(public.adjacency)
