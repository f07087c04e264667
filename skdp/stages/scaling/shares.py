"""Share of the budget for scaling, and its division among columns and rounds, from public facts."""

import math
from dataclasses import dataclass, field, replace

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
class Histograms:
    """Histograms of the features, or of the targets.

    Attributes
    ----------
    n_columns : int
        Number of columns; 0 if they need none.
    rounds : int
        Histograms of each column.
    log_weight : int
        Base-2 logarithm of the weight of a column, next to those of the other kind.
    is_free : bool
        Whether the values are public, so that their histograms cost nothing.
    """

    n_columns: int = 0
    rounds: int = 0
    log_weight: int = 0
    is_free: bool = False

    @property
    def squares(self) -> float:
        """Sum of the squared weights that one of the histograms adds to the charge."""
        return 0.0 if self.is_free else self.n_columns * 4.0**self.log_weight


@dataclass(frozen=True)
class ScalingBudget:
    """Share of mu squared for scaling, and the histograms that divide it.

    Attributes
    ----------
    share : float
        Of all histograms together; 0 without any that cost something.
    signal : float
        Number of rows in standard deviations of a count that has the whole budget.
    features, targets : Histograms
    """

    share: float = 0.0
    signal: float = math.inf
    features: Histograms = field(default_factory=Histograms)
    targets: Histograms = field(default_factory=Histograms)

    @property
    def kinds(self) -> tuple[Histograms, ...]:
        """Histograms of features, and of targets, where there are any."""
        return tuple(one for one in (self.features, self.targets) if one.n_columns)

    def part(self, *kinds: Histograms) -> float:
        """Share of mu squared of one histogram of the columns of these kinds together."""
        squares = math.fsum(one.squares for one in kinds)
        return self.share * squares / self._squares if squares else 0.0

    def noise(self, kind: Histograms) -> float:
        """Noise on a count of a column of this kind, as a share of the rows."""
        if kind.is_free:
            return 0.0
        return math.ldexp(math.sqrt(self._squares / self.share) / self.signal, -kind.log_weight)

    @property
    def _squares(self) -> float:
        return math.fsum(one.rounds * one.squares for one in self.kinds)


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
    signal, is_free = _signal(public), features and public.features_are_public
    n_features, n_targets = public.n_features * features, public.n_outputs * targets
    if is_free:
        of_features, feature_rounds = 0.0, MAX_ROUNDS
    else:
        of_features, feature_rounds = _share_of_features(n_features, signal, insist)
    of_targets, target_rounds = _share_of_targets(n_targets, signal, MAX_SHARE_ALL - of_features)
    # The noise of a column falls with the root of its share, so weights are roots, too.
    weight = [0, 0]
    if of_features and of_targets:
        each_target = of_targets / (n_targets * target_rounds)
        ratio = math.log2(each_target) - math.log2(of_features / (n_features * feature_rounds))
        weight[ratio > 0] = round(abs(ratio) / 2)
    return ScalingBudget(
        of_features + of_targets,
        signal,
        Histograms(n_features * (feature_rounds > 0), feature_rounds, weight[0], is_free),
        Histograms(n_targets, target_rounds, weight[1]),
    )


def _share_of_features(n_columns: int, signal: float, insist: bool) -> tuple[float, int]:
    """Return the share and the histograms of each column: none if noise exceeds their counts."""
    if n_columns == 0:
        return 0.0, 0
    largest = MAX_SHARE_COLUMNS if n_columns <= MANY_COLUMNS else MAX_SHARE_MANY_COLUMNS
    share, rounds = _usual_share(n_columns, signal, NOISE_GOAL, largest)
    if _needed(rounds * n_columns, signal, REDUCE_ROUNDS_ABOVE) > share:
        share, rounds = share * MIN_ROUNDS / ROUNDS, MIN_ROUNDS
    share = max(
        share, min(_needed(rounds * n_columns, signal, RAISE_SHARE_ABOVE), MAX_RAISED_SHARE)
    )
    if not insist and _needed(rounds * n_columns, signal, 2 * RAISE_SHARE_ABOVE) > share:
        return 0.0, 0
    return share, rounds


def _share_of_targets(n_targets: int, signal: float, left: float) -> tuple[float, int]:
    """Return the share, at most what is left, and the histograms of each target."""
    if n_targets == 0:
        return 0.0, 0
    share, rounds = _usual_share(n_targets, signal, TAIL_NOISE_GOAL, MAX_SHARE_TARGETS)
    if _needed(ROUNDS * n_targets, signal, REDUCE_ROUNDS_ABOVE) > share:
        rounds = MIN_ROUNDS
        share = min(max(_needed(rounds * n_targets, signal, REDUCE_ROUNDS_ABOVE), share), left)
    return share, rounds


def _usual_share(n_columns: int, signal: float, noise: float, largest: float) -> tuple[float, int]:
    """Return the share for this noise on counts, within limits, and the histograms of a column.

    More of them cost no more: their mean is as accurate.
    """
    share = min(max(_needed(ROUNDS * n_columns, signal, noise), MIN_SHARE), largest)
    return share, _affordable_rounds(largest, n_columns, signal)


def _needed(n_histograms: int, signal: float, noise: float) -> float:
    """Return the share of mu squared that brings the noise on counts down to this."""
    return n_histograms / (signal * noise) ** 2


def whole_budget(public: Public) -> ScalingBudget:
    """Return shares that spend the whole budget on columns."""
    signal, n_columns = _signal(public), public.n_features
    rounds = _affordable_rounds(1.0, n_columns, signal)
    return ScalingBudget(1.0, signal, Histograms(n_columns, rounds))


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
        return ScalingBudget()
    usual = scaling_budget(first, features, targets, insist=True).share
    alike = replace(first, n_rows=math.ceil(first.n_rows / math.sqrt(usual)))
    budget = scaling_budget(alike, features, targets, insist=True)
    return replace(budget, share=1.0, signal=_signal(first))


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
