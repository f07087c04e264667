"""Share of the budget for scaling, and its division among columns and rounds, from public facts."""

import math
from dataclasses import dataclass, replace

from skdp.accounting import Gaussian
from skdp.oracle import Public
from skdp.stages.scaling.distributions import TAIL_SHARE

# All figures are choices of ours; docs/research/defaults.rst has the evidence for each.
# Aim of the noise on a count, as a share of the rows: of columns, and of targets, whose tail is to
# be seen. Shares for it, within limits.
NOISE_GOAL, TAIL_NOISE_GOAL = 0.02, 0.006
MIN_SHARE, MAX_SHARE_COLUMNS, MAX_SHARE_TARGETS = 0.04, 0.2, 0.15
# With so many columns the pooled prior is informative, so that less of the budget is needed.
MANY_COLUMNS, MAX_SHARE_MANY_COLUMNS = 50, 0.06
# Noise on a count of a column above which it gets a larger share, up to a limit, as columns of
# unknown scale are useless to a solver; beyond twice that, no histograms.
RAISE_SHARE_ABOVE, MAX_RAISED_SHARE = 0.25, 0.3
# Noise on a count above which there are fewer histograms: of columns, for less; of targets, where a
# fit is worse than a constant, and all scaling together gets up to this share of the budget.
REDUCE_ROUNDS_ABOVE, MIN_ROUNDS, MAX_SHARE_ALL = 0.15, 2, 0.9
# Histograms of each column: more where the largest share pays for them, so that a small scale next
# to a large offset is estimated by successive refinement.
ROUNDS, MAX_ROUNDS = 3, 6
MOST_OF_STREAM = 1 / 6  # largest share of a stream's records that are for scaling alone


@dataclass(frozen=True)
class ScalingBudget:
    """Share of mu squared for scaling, and weights of the columns in it.

    Attributes
    ----------
    share : float
        Of all rounds together; 0 without histograms that cost something.
    log_weights : tuple of int
        Base-2 logarithm of the weight of each column, features first.
    features, targets : bool
        Whether columns, and targets, get histograms.
    noise : float
        Largest noise on a count, as a share of the rows.
    rounds : tuple of int
        Histograms of each feature, and of each target.
    n_features : int
        Number of features with histograms.
    free_features : bool
        Whether features are public, so that their histograms cost nothing.
    """

    share: float
    log_weights: tuple[int, ...]
    features: bool
    targets: bool
    noise: float
    rounds: tuple[int, int] = (ROUNDS, ROUNDS)
    n_features: int = 0
    free_features: bool = False

    @property
    def has_requests(self) -> bool:
        """Whether there are histograms at all."""
        return self.features or self.targets

    def part(self, weights: tuple[int, ...]) -> float:
        """Share of mu squared of one histogram of columns with these weights."""
        n_targets = len(self.log_weights) - self.n_features
        of_features = 0 if self.free_features else self.rounds[0]
        rounds = (of_features,) * self.n_features + (self.rounds[1],) * n_targets
        whole = _squares(self.log_weights, rounds)
        return self.share * _squares(weights, (1,) * len(weights)) / whole


def _squares(log_weights: tuple[int, ...], rounds: tuple[int, ...]) -> float:
    return math.fsum(n * 4.0**one for one, n in zip(log_weights, rounds, strict=True))


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
    if features and public.features_are_public:
        return _of_targets_alone(public, targets)
    signal = _signal(public)
    n_features, n_targets = public.n_features * features, public.n_outputs * targets

    def needed(n_histograms: int, noise: float) -> float:
        """Share that brings the noise on a count down to this."""
        return n_histograms / (signal * noise) ** 2

    def usual(n_columns: int, noise: float, largest: float) -> tuple[float, int]:
        # More rounds cost no more: their mean is as accurate.
        share = min(max(needed(ROUNDS * n_columns, noise), MIN_SHARE), largest)
        return share, _affordable_rounds(largest, n_columns, signal)

    largest = MAX_SHARE_COLUMNS if n_features <= MANY_COLUMNS else MAX_SHARE_MANY_COLUMNS
    of_features, feature_rounds = usual(n_features, NOISE_GOAL, largest)
    if needed(feature_rounds * n_features, REDUCE_ROUNDS_ABOVE) > of_features:
        of_features, feature_rounds = of_features * MIN_ROUNDS / ROUNDS, MIN_ROUNDS
    n_histograms = feature_rounds * n_features
    raised = min(needed(n_histograms, RAISE_SHARE_ABOVE), MAX_RAISED_SHARE)
    of_features = max(of_features, raised)
    if not insist and needed(n_histograms, 2 * RAISE_SHARE_ABOVE) > of_features:
        features, n_features = False, 0
    of_targets, target_rounds = usual(n_targets, TAIL_NOISE_GOAL, MAX_SHARE_TARGETS)
    if needed(ROUNDS * n_targets, REDUCE_ROUNDS_ABOVE) > of_targets:
        target_rounds = MIN_ROUNDS
        wanted = max(needed(MIN_ROUNDS * n_targets, REDUCE_ROUNDS_ABOVE), of_targets)
        of_targets = min(wanted, MAX_SHARE_ALL - of_features * features)
    share = of_features * features + of_targets * targets
    if share == 0:
        return ScalingBudget(0.0, (), False, False, math.inf)
    # The noise of a column falls with the root of its share, so weights are roots, too.
    weight = [0, 0]
    if features and targets:
        each_target = of_targets / (n_targets * target_rounds)
        ratio = math.log2(each_target) - math.log2(of_features / (n_features * feature_rounds))
        weight[ratio > 0] = round(abs(ratio) / 2)
    log_weights = (weight[0],) * n_features + (weight[1],) * n_targets
    rounds = (feature_rounds,) * n_features + (target_rounds,) * n_targets
    noise = math.sqrt(_squares(log_weights, rounds) / share) / signal / 2.0 ** min(log_weights)
    return ScalingBudget(
        share, log_weights, features, targets, noise, (feature_rounds, target_rounds), n_features
    )


def _of_targets_alone(public: Public, targets: bool) -> ScalingBudget:
    """Return shares where histograms of features cost nothing."""
    budget = scaling_budget(public, False, targets, insist=True)
    return replace(
        budget,
        features=True,
        log_weights=(0,) * public.n_features + budget.log_weights,
        noise=budget.noise if targets else 0.0,
        rounds=(MAX_ROUNDS, budget.rounds[1]),
        n_features=public.n_features,
        free_features=True,
    )


def whole_budget(public: Public, known: bool = False) -> ScalingBudget:
    """Return shares that spend the whole budget on columns, or nothing if they are known."""
    if known:
        return ScalingBudget(0.0, (), False, False, math.inf)
    signal = _signal(public)
    rounds = _affordable_rounds(1.0, public.n_features, signal)
    noise = math.sqrt(rounds * public.n_features) / signal
    weights = (0,) * public.n_features
    return ScalingBudget(1.0, weights, True, False, noise, (rounds, rounds), public.n_features)


def records_for_scaling(public: Public, features: bool, targets: bool) -> int:
    """Return how many first records of a stream the histograms are of, from public facts.

    So many that the noise on counts comes down to its aim, as histograms have the whole budget on
    them; at least as many as have four records in the tail that ranges leave out, and at most a
    share of the stream, which the solver does not get.
    """
    n_columns = public.n_features * features + public.n_outputs * targets
    wanted = math.sqrt(ROUNDS * n_columns) / (mu_per_count(public) * NOISE_GOAL)
    most = int(MOST_OF_STREAM * public.n_rows)
    return min(max(math.ceil(wanted), round(4 / TAIL_SHARE)), most)


def budget_of_first(first: Public, features: bool, targets: bool) -> ScalingBudget:
    """Return shares that spend the whole budget on histograms of these records.

    Rounds and weights are those of as many records as would have the same noise on counts for the
    usual share.
    """
    if first.n_rows == 0:
        return ScalingBudget(0.0, (), False, False, math.inf)
    usual = scaling_budget(first, features, targets, insist=True).share
    alike = replace(first, n_rows=math.ceil(first.n_rows / math.sqrt(usual)))
    budget = scaling_budget(alike, features, targets, insist=True)
    return replace(budget, share=1.0, noise=budget.noise * math.sqrt(budget.share / usual))


def _affordable_rounds(share: float, n_columns: int, signal: float) -> int:
    """Return how many histograms of so many columns this share pays for."""
    affordable = share * (signal * NOISE_GOAL) ** 2 / max(n_columns, 1)
    return int(min(max(affordable, ROUNDS), MAX_ROUNDS))


def _signal(public: Public) -> float:
    """Return the number of rows in standard deviations of a count that has the whole budget."""
    return mu_per_count(public) * public.n_rows if public.is_noisy else math.inf


def mu_per_count(public: Public) -> float:
    """Return the Gaussian-DP parameter of the budget, in the units of histograms."""
    return public.mu / Gaussian(1.0, math.sqrt(2)).sensitivity(public.adjacency)
