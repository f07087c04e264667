"""Privacy-loss distributions: the dominating pair of each event, and the accountant that sums them.

For a Gaussian sum with noise multiplier z and a sampling rate q the pairs are:

==========  ===========  ===========================================================================
sampling    adjacency    pair
==========  ===========  ===========================================================================
none        zero_out     ``(N(1/z), N(0))``
none        replace_one  ``(N(spread/z), N(0))``
Poisson     zero_out     ``((1-q) N(0) + q N(1/z), N(0))``, and the same reversed
Poisson     replace_one  ``((1-q) N(0) + q N(1/z), (1-q) N(0) + q N(-1/z))``
fixed size  replace_one  profile of ``((1-q) N(0) + q N(spread/z), N(0))`` in both directions
fixed size  zero_out     none: leaving a record out changes the number of rows
==========  ===========  ===========================================================================

A Poisson sample of counts (spread 1), of several sums, or of Laplace answers has, under
replace_one, the profile of the sample of fixed size.
"""

import math
from collections.abc import Callable
from functools import lru_cache, singledispatch

from skdp.accounting import pairs
from skdp.accounting.accountant import Accountant, least_factor
from skdp.accounting.additive import pure_epsilon
from skdp.accounting.composition import FULL, ROUGH, LatticeResolution, Pairs, delta_of, epsilon_of
from skdp.accounting.events.base import Adjacency, Composed, Event, Parts, UnknownCost
from skdp.accounting.events.mechanisms import ApproximateDP, Gaussian, Laplace, NoisyMaximum
from skdp.accounting.events.wrappers import PoissonSampled, Sampled, Selected
from skdp.accounting.pairs import Pair
from skdp.accounting.plan import EventCounts, coarsened, counts_of, joint_mu, paths, sampled_counts

# Plans with more distinct noise levels than this are priced with levels rounded down to powers of
# LIMIT_RATIO, hence as if they had up to 0.05 % less noise. It bounds the time.
MAX_LEVELS, LIMIT_RATIO = 2000, 1.0005
# The search of a calibration rounds noise levels down to powers of this ratio.
SEARCH_RATIO = 1.005
# Smaller deltas cannot be resolved: their tails get lost among the smallest numbers of float64.
LEAST_DELTA = 1e-280
# Up to this number of levels, an evaluation takes milliseconds and the search ends nearer to the
# budget.
FEW_LEVELS = 32


@singledispatch
def dominating_pair(event: Event, adjacency: Adjacency) -> Pair | None:
    """Return the pair that dominates ``event``; None where no finite epsilon holds.

    Raises
    ------
    UnknownCost
        If no theorem gives one.
    """
    match event:
        case Gaussian():
            return _finite(pairs.GaussianPair, event.mu(adjacency))
        case Laplace():
            return _finite(pairs.LaplacePair, event.pure_epsilon(adjacency))
        case NoisyMaximum():
            return _finite(pairs.ResponsePair, event.pure_epsilon(adjacency))
        case ApproximateDP(epsilon, delta):
            no_guarantee = math.isinf(epsilon) or delta == 1
            return None if no_guarantee else pairs.ResponsePair(epsilon, delta)
        case Sampled():
            return _sampled_pair(event, adjacency)
        case Selected():
            try:
                return _finite(pairs.ResponsePair, pure_epsilon(event, adjacency))
            except UnknownCost as refusal:
                why = f"Selected has a dominating pair for pure runs only: {refusal}"
                raise UnknownCost(why) from None
    raise UnknownCost(f"no dominating pair is known for {type(event).__name__} under {adjacency}.")


def _finite(pair: Callable[[float], Pair], size: float) -> Pair | None:
    """Return the pair of a size, or None where that is infinite."""
    return None if math.isinf(size) else pair(size)


def _sampled_pair(event: Sampled, adjacency: Adjacency) -> Pair | None:
    counts = sampled_counts(event, adjacency)
    base = _base(counts, adjacency, event)
    if base is None:
        return None
    if adjacency is Adjacency.ZERO_OUT:
        return pairs.SampledPair(base, event.rate)
    if isinstance(event, PoissonSampled):
        (part, count), *more = counts.items()
        if isinstance(part, Gaussian) and part.spread > 1 and count == 1 and not more:
            return pairs.AntipodalPair(1 / part.noise_multiplier, event.rate)
    return pairs.SymmetricSampledPair(base, event.rate)


def _base(counts: EventCounts, adjacency: Adjacency, sampled: Event) -> Pair | None:
    """Return the dominating pair of releases on one sample: Gaussian sums, or one other answer."""
    mu = joint_mu(counts, adjacency)
    if mu is not None:
        return _finite(pairs.GaussianPair, mu)
    if len(counts) > 1 or max(counts.values()) > 1:
        raise UnknownCost(
            f"{type(sampled).__name__} of several answers about the same sample is priced for "
            "Gaussian answers only."
        )
    (part,) = counts
    if not isinstance(part, (Laplace, ApproximateDP)):
        raise UnknownCost(
            f"{type(sampled).__name__} of {type(part).__name__} has no amplification theorem."
        )
    return dominating_pair(part, adjacency)


# Dominating pairs of all events on a path, and a shorter list that costs no less; None where no
# finite epsilon holds.
Facts = tuple[Pairs, Pairs] | None


class PLDAccountant(Accountant):
    """Fast Fourier transform of privacy losses: tight for sampled, Laplace and mixed plans.

    Each event is replaced by its dominating pair, and each pair by its connect-the-dots
    discretisation; the two directions of a pair are composed separately, and the larger cost is
    charged. With delta = 0 there is no finite answer here; use "pure".
    """

    name = "pld"
    rank = 30
    is_tight = True

    def paths(self, event: Event, adjacency: Adjacency) -> list[EventCounts]:
        """Return the collections of events that a single record can meet.

        Parameters
        ----------
        event : Event
        adjacency : Adjacency

        Returns
        -------
        list of dict
            From distinct events to their numbers of occurrences.

        Raises
        ------
        UnknownCost
            If there are too many collections.
        """
        return paths(event, adjacency)

    def examine(self, event: Event, adjacency: Adjacency) -> list[Facts]:
        return [_facts(tuple(path.items()), adjacency) for path in self.paths(event, adjacency)]

    def path_epsilon(
        self, facts: Facts, delta: float, resolution: LatticeResolution = FULL
    ) -> float:
        if 0 < delta < LEAST_DELTA:
            raise UnknownCost(
                f"accountant {self.name!r} cannot distinguish a delta of {delta:g} from 0; choose "
                f"at least {LEAST_DELTA:g}, or 0 for pure differential privacy."
            )
        if facts is None or (delta == 0 and facts[0]):
            return math.inf
        return epsilon_of(*facts, delta, resolution)

    def path_delta(self, facts: Facts, epsilon: float) -> float:
        return 1.0 if facts is None else delta_of(*facts, epsilon)

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        # With a rough bound (few noise levels, coarse lattice) first, then with the full one.
        counts = tuple(counts_of(event).items())
        rough = Composed(coarsened(counts, SEARCH_RATIO))
        rougher = Composed(coarsened(counts, SEARCH_RATIO**2))

        def cost_roughly(plan: Composed) -> float:
            met = self.require(plan, adjacency)
            return max(self.path_epsilon(facts, delta, ROUGH) for facts in met)

        def spent_roughly(factor: float) -> float:
            return cost_roughly(rough.scaled(factor))

        def spent(factor: float) -> float:
            return self.epsilon(event.scaled(factor), delta, adjacency)

        factor = least_factor(spent_roughly, epsilon, who=self.name, delta=delta)
        if event.scaled(2.0) == event:
            return factor
        # Doubling the rounding adds about as much to the cost as the rounding itself has added.
        rougher_share = cost_roughly(rougher.scaled(factor)) / epsilon
        if not rougher_share > 0:  # delta is so large that the rough bound is 0
            return least_factor(spent, epsilon, who=self.name, delta=delta, guess=factor)
        target = epsilon * rougher_share  # for the rough bound
        width = 1e-4 if len(counts) <= FEW_LEVELS else 9e-4  # accepted relative distance to epsilon
        for _ in range(5):
            target *= 1 - width / 3
            factor = least_factor(spent_roughly, target, who=self.name, delta=delta, guess=factor)
            cost = spent(factor)
            if (1 - width) * epsilon <= cost <= epsilon:
                return factor
            if not 0.5 * epsilon < cost < 2 * epsilon:
                break
            target *= epsilon / cost
        return least_factor(spent, epsilon, who=self.name, delta=delta, guess=factor)


@lru_cache(maxsize=256)
def _facts(path: Parts, adjacency: Adjacency) -> Facts:
    few = path if len(path) <= MAX_LEVELS else coarsened(path, LIMIT_RATIO)
    full = _pairs(few, adjacency)
    for ratio in (1.01, 1.03, 1.1):  # so few that a sketch of every level is quick
        if len(path) > FEW_LEVELS:
            path = coarsened(path, ratio)
    coarse = _pairs(path, adjacency)
    return None if full is None or coarse is None else (full, coarse)


def _pairs(path: Parts, adjacency: Adjacency) -> Pairs | None:
    """Return dominating pairs of the events, with counts; None if an event has infinite epsilon."""
    merged: dict[Pair, int] = {}
    for event, count in path:
        pair = dominating_pair(event, adjacency)
        if pair is None:
            return None
        merged[pair] = merged.get(pair, 0) + count
    return tuple(merged.items())
