"""Share of the budget for scaling, and its division among columns and rounds, from public facts."""

import math
from dataclasses import dataclass, replace

from skdp.accounting import Gaussian
from skdp.oracle import Public

# All figures are choices of ours; docs/research/defaults.rst has the evidence for each.
# Aim of the noise on a count, as a share of the rows; and of targets, which get more histograms.
NOISE_GOAL, TARGET_NOISE_GOAL = 0.02, 0.025
MIN_SHARE, MAX_SHARE_COLUMNS, MAX_SHARE_TARGETS = 0.04, 0.2, 0.15
# Noise on a count, as a share of the rows, that shows the tail of counts and costs; the largest
# share of mu squared for it; and the R2 it may cost: a solver loses 1 / signal_to_noise**2 in all.
TAIL_NOISE_GOAL, MAX_SHARE_TAILS, TAIL_LOSS = 0.006, 0.2, 0.0005
# With so many columns the pooled prior is informative, so that less of the budget is needed.
MANY_COLUMNS, MAX_SHARE_MANY_COLUMNS = 50, 0.06
# Noise on a count, as a share of the rows, above which columns get fewer histograms; more of the
# budget, up to a limit, as columns of unknown scale are useless to a solver; and no histograms.
REDUCE_ROUNDS_ABOVE, RAISE_SHARE_ABOVE, SKIP_ABOVE, MAX_RAISED_SHARE = 0.15, 0.25, 0.5, 0.3
# Histograms of each column: few where there is much noise; more where the largest share pays for
# them, so that a small scale next to a large offset is estimated by successive refinement.
MIN_ROUNDS, ROUNDS, MAX_ROUNDS = 2, 3, 6
# Of a stream: fewest first records for scaling, and their largest share in all.
FEWEST_RECORDS, MOST_OF_STREAM = 1000, 1 / 6
# Where counts of targets are noisier than REDUCE_ROUNDS_ABOVE, a fit is worse than a constant: then
# all scaling together gets up to this share of the budget.
MAX_SHARE_ALL = 0.9


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
    signal = mu_per_count(public) * public.n_rows
    if features and public.features_are_public:
        return _of_targets_alone(public, targets)
    n_features, n_targets = public.n_features * features, public.n_outputs * targets

    exact = not public.is_noisy

    def part(n_columns: int, largest: float, noise: float) -> tuple[float, int]:
        each = n_columns / (signal * NOISE_GOAL) ** 2
        affordable = int(min(largest * (signal * noise) ** 2 / max(n_columns, 1), MAX_ROUNDS))
        rounds = MAX_ROUNDS if exact else max(affordable, ROUNDS)
        return min(max(rounds * each, MIN_SHARE), largest), rounds

    most = MAX_SHARE_COLUMNS if n_features <= MANY_COLUMNS else MAX_SHARE_MANY_COLUMNS
    of_features, feature_rounds = part(n_features, most, NOISE_GOAL)
    if not exact:
        # More rounds cost no more: their mean is as accurate, and narrow columns get a round alone.
        of_features = min(
            of_features, max(ROUNDS * n_features / (signal * NOISE_GOAL) ** 2, MIN_SHARE)
        )
    of_targets, target_rounds = part(n_targets, MAX_SHARE_TARGETS, TARGET_NOISE_GOAL)
    if not exact:
        affordable = min(MAX_SHARE_TAILS, TAIL_LOSS * public.signal_to_noise**2)
        of_targets = max(
            of_targets, min(ROUNDS * n_targets / (signal * TAIL_NOISE_GOAL) ** 2, affordable)
        )
    if features:
        of_features, feature_rounds = _raised_share(
            of_features, feature_rounds, n_features / signal**2
        )
        if not insist and feature_rounds * n_features / of_features > (SKIP_ABOVE * signal) ** 2:
            features, n_features = False, 0
    if math.sqrt(ROUNDS * n_targets / of_targets) / signal > REDUCE_ROUNDS_ABOVE:
        target_rounds = MIN_ROUNDS
        most = MAX_SHARE_ALL - of_features * features
        of_targets = min(
            max(MIN_ROUNDS * n_targets / (signal * REDUCE_ROUNDS_ABOVE) ** 2, of_targets), most
        )
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


def _raised_share(share: float, rounds: int, variance: float) -> tuple[float, int]:
    """Return a larger share of the columns and fewer rounds, where noise would exceed their counts.

    ``variance`` is that of the noise on a count, as a share of the rows, for all of the budget and
    one round.
    """
    if rounds * variance / share > REDUCE_ROUNDS_ABOVE**2:
        share, rounds = share * MIN_ROUNDS / rounds, MIN_ROUNDS
    return max(share, min(rounds * variance / RAISE_SHARE_ABOVE**2, MAX_RAISED_SHARE)), rounds


def whole_budget(public: Public, known: bool = False) -> ScalingBudget:
    """Return shares that spend the whole budget on columns, or nothing if they are known."""
    if known:
        return ScalingBudget(0.0, (), False, False, math.inf)
    signal = mu_per_count(public) * public.n_rows
    ample = math.sqrt(MAX_ROUNDS * public.n_features) / signal <= NOISE_GOAL / 2
    rounds = MAX_ROUNDS if ample or not public.is_noisy else ROUNDS
    noise = math.sqrt(rounds * public.n_features) / signal
    weights = (0,) * public.n_features
    return ScalingBudget(1.0, weights, True, False, noise, (rounds, rounds), public.n_features)


def records_for_scaling(public: Public, features: bool, targets: bool) -> int:
    """Return how many first records of a stream the histograms are of, from public facts.

    So many that the noise on counts comes down to its aim, as histograms have the whole budget on
    them; at least as many as show quantiles of a column, and at most a share of the stream, which
    the solver does not get.
    """
    n_columns = public.n_features * features + public.n_outputs * targets
    wanted = math.sqrt(ROUNDS * n_columns) / (mu_per_count(public) * NOISE_GOAL)
    most = int(MOST_OF_STREAM * public.n_rows)
    return min(max(math.ceil(wanted), FEWEST_RECORDS), most)


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


def mu_per_count(public: Public) -> float:
    """Return the Gaussian-DP parameter of the budget, in the units of histograms."""
    return public.mu / Gaussian(1.0, math.sqrt(2)).sensitivity(public.adjacency)
