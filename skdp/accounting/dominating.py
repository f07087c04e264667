"""The dominating pair of each event, and the privacy profile of events that a record can meet.

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
from functools import lru_cache, partial, singledispatch

from skdp.accounting import pairs
from skdp.accounting.additive import gaussian_delta, gaussian_epsilon, pure_epsilon
from skdp.accounting.composition import FULL, LatticeResolution, Pairs, delta_of, epsilon_of
from skdp.accounting.events.base import Adjacency, Event, Parts, UnknownCost
from skdp.accounting.events.mechanisms import ApproximateDP, Gaussian, Laplace, NoisyMaximum
from skdp.accounting.events.wrappers import PoissonSampled, Sampled, Selected
from skdp.accounting.pairs import Pair
from skdp.accounting.plan import EventCounts, coarsened, joint_mu, opened, sampled_counts

# Plans with more distinct noise levels than this are priced with levels rounded down to powers of
# LIMIT_RATIO, hence as if they had up to 0.05 % less noise. It bounds the time.
MAX_LEVELS, LIMIT_RATIO = 2000, 1.0005
# Smaller deltas cannot be resolved: their tails get lost among the smallest numbers of float64.
LEAST_DELTA = 1e-280
# Up to this number of levels, tails are located with the pairs themselves.
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


# The smallest delta at which a privacy profile is known, and the least epsilon at a delta.
Profile = tuple[Callable[[float], float], Callable[[float], float]]


def profile(path: EventCounts, adjacency: Adjacency) -> Profile:
    """Return delta as a function of epsilon, and epsilon as a function of delta, of a path.

    Both are upper bounds: in closed form for Gaussian events, else by composition.

    Raises
    ------
    UnknownCost
        If an event has no dominating pair.
    """
    whole = opened(path)
    mu = joint_mu(whole, adjacency)
    if mu is not None:
        return partial(gaussian_delta, mu), partial(gaussian_epsilon, mu)
    pairs = dominating_pairs(tuple(whole.items()), adjacency)
    delta = (lambda epsilon: 1.0) if pairs is None else partial(delta_of, *pairs)
    return delta, partial(pairs_epsilon, whole, adjacency=adjacency)


def pairs_epsilon(
    path: EventCounts, delta: float, adjacency: Adjacency, resolution: LatticeResolution = FULL
) -> float:
    """Epsilon of the events on a path by composition of their dominating pairs.

    Raises
    ------
    UnknownCost
        If an event has no dominating pair, or delta is too small to be resolved.
    """
    pairs = dominating_pairs(tuple(path.items()), adjacency)
    if 0 < delta < LEAST_DELTA:
        raise UnknownCost(
            f"composition cannot distinguish a delta of {delta:g} from 0; choose at least "
            f"{LEAST_DELTA:g}, or 0 for pure differential privacy."
        )
    return math.inf if pairs is None else epsilon_of(*pairs, delta, resolution)


@lru_cache(maxsize=256)
def dominating_pairs(path: Parts, adjacency: Adjacency) -> tuple[Pairs, Pairs] | None:
    """Return dominating pairs of events with counts, and a shorter list that costs no less.

    None if no finite epsilon holds.
    """
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
