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

from scipy.optimize import brentq

from skdp.accounting import events, pairs
from skdp.accounting.additive import gaussian_delta, gaussian_epsilon, pure_epsilon
from skdp.accounting.composition import FULL, LatticeResolution, Pairs, delta_of, epsilon_of
from skdp.accounting.events import Adjacency, Event, Parts, Sampled, Selected, UnknownCost
from skdp.accounting.pairs import Pair
from skdp.accounting.plan import EventCounts, coarsened, joint_mu, opened, paths, sampled_counts

# Plans with more distinct noise levels than this are priced with levels rounded down to powers of
# LIMIT_RATIO, hence as if they had up to 0.05 % less noise. It bounds the time.
MAX_LEVELS, LIMIT_RATIO = 2000, 1.0005
# Smaller deltas cannot be resolved: their tails get lost among the smallest numbers of float64.
LEAST_DELTA = 1e-280
# Up to this number of levels, tails are located with the pairs themselves.
FEW_LEVELS = 32
# Relative width to which the search for the shift of a selection goes.
SHIFT_WIDTH = 1e-12


@singledispatch
def dominating_pair(event: Event, adjacency: Adjacency) -> Pair | None:
    """Return the pair that dominates ``event``. None where no finite epsilon holds.

    Raises
    ------
    UnknownCost
        If no theorem gives one.
    """
    match event:
        case events.Gaussian():
            return _finite(pairs.GaussianPair, event.mu(adjacency))
        case events.Laplace():
            return _finite(pairs.LaplacePair, event.pure_epsilon(adjacency))
        case events.NoisyMaximum():
            return _finite(pairs.ResponsePair, event.pure_epsilon(adjacency))
        case events.ApproximateDP(epsilon, delta):
            no_guarantee = math.isinf(epsilon) or delta == 1
            return None if no_guarantee else pairs.ResponsePair(epsilon, delta)
        case Sampled():
            return _sampled_pair(event, adjacency)
        case Selected():
            return _selected_pair(event, adjacency)
    raise UnknownCost(f"no dominating pair is known for {type(event).__name__} under {adjacency}.")


def _finite(pair: Callable[[float], Pair], size: float) -> Pair | None:
    """Return the pair of a size, or None where that is infinite."""
    return None if math.isinf(size) else pair(size)


def _selected_pair(event: Selected, adjacency: Adjacency) -> Pair | None:
    runs = [opened(path) for path in paths(event.event, adjacency)]
    mus = [mu for mu in (joint_mu(run, adjacency) for run in runs) if mu is not None]
    if len(mus) == len(runs):
        mu = max(mus)
        if mu == 0 or math.isinf(mu):
            return None if mu else pairs.ResponsePair(0.0)
        shift = selection_shift(partial(gaussian_delta, mu), event.gamma)
        return pairs.SelectedPair(mu, event.mean_runs, 2 * shift)
    try:
        return _finite(pairs.ResponsePair, pure_epsilon(event, adjacency))
    except UnknownCost as refusal:
        why = f"Selected has a dominating pair for Gaussian and for pure runs only: {refusal}"
        raise UnknownCost(why) from None


def _sampled_pair(event: Sampled, adjacency: Adjacency) -> Pair | None:
    counts = sampled_counts(event, adjacency)
    base = _base(counts, adjacency, event)
    if base is None:
        return None
    if adjacency is Adjacency.ZERO_OUT:
        return pairs.SampledPair(base, event.rate)
    if isinstance(event, events.PoissonSampled):
        (part, count), *more = counts.items()
        if isinstance(part, events.Gaussian) and part.spread > 1 and count == 1 and not more:
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
    if not isinstance(part, (events.Laplace, events.ApproximateDP)):
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
            f"composition cannot distinguish a delta of {delta:g} from 0. Choose at least "
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
    """Return dominating pairs of the events, with counts. None if an event has infinite epsilon."""
    merged: dict[Pair, int] = {}
    for event, count in path:
        pair = dominating_pair(event, adjacency)
        if pair is None:
            return None
        merged[pair] = merged.get(pair, 0) + count
    return tuple(merged.items())


def selection_epsilon(event: Selected, delta: float, adjacency: Adjacency) -> float:
    """Epsilon of the best of a random number of runs that have a privacy profile.

    By `selection_shift`.

    Parameters
    ----------
    event : Selected
    delta : float
        In [0, 1).
    adjacency : Adjacency

    Returns
    -------
    float
        inf if no finite epsilon holds.

    Raises
    ------
    UnknownCost
        If a run has no privacy profile.
    """
    costs = []
    for path in paths(event.event, adjacency):
        _, epsilon_of_run = profile(path, adjacency)
        beyond = epsilon_of_run(delta / event.mean_runs)
        shift = 0.0
        if not math.isinf(beyond):
            shift = _shift_of_path(tuple(path.items()), event.gamma, adjacency)
        costs.append(2 * shift + beyond)
    return max(costs)


@lru_cache(maxsize=256)
def _shift_of_path(path: Parts, gamma: float, adjacency: Adjacency) -> float:
    delta_of_run, epsilon_of_run = profile(dict(path), adjacency)
    return selection_shift(delta_of_run, gamma, epsilon_of_run(min(gamma, 0.5)))


def selection_shift(
    delta_of_run: Callable[[float], float], gamma: float, guess: float = 1.0
) -> float:
    """Return nearly the least ``e_1`` that satisfies (1), for the best of a random number of runs.

    Let Q be the distribution of a run and Q' that of a run on neighbouring data, both in the order
    of their scores with ties broken by coins, and let ``delta(epsilon)`` bound the hockey-stick
    divergences between Q and Q' in both directions. For every ``e_1`` with

        ``(1 - gamma) delta(e_1) <= gamma (exp(e_1) - 1)``                                      (1)

    and every ``e_2 >= 0``, the best run is
    ``(2 e_1 + e_2, mean_runs * delta(e_2))``-DP.

    Proof. Let f be the generating function of the number of runs, geometric with parameter
    ``gamma``. The best run has the density ``Q(y) f'(1 - a(y))``, where ``a(y)`` is the probability
    under Q of a result that is at least y. On neighbouring data it has ``Q'(y) f'(1 - a'(y))``. By
    the definition of delta, applied to the set of results that are at least y, ``a' <= exp(e_1) a +
    delta(e_1)``. So (1) implies

        ``gamma + (1-gamma) a' <= exp(e_1) (gamma + (1-gamma) a)``.

    ``f'(1 - a)`` is proportional to ``(gamma + (1-gamma) a)**-2`` (Papernot and Steinke 2022,
    arXiv:2110.03620, Def. 1 with ``eta = 1``). Hence with ``u = f'(1 - a)`` and ``u' = f'(1 -
    a')``, ``u <= exp(2 e_1) u'``. For every set, the probability of the best run minus ``exp(2 e_1
    + e_2)`` times that on neighbouring data is therefore at most the integral of ``u (Q - exp(e_2)
    Q')``. As ``0 <= u <= f'(1) = mean_runs``, it is at most ``mean_runs * delta(e_2)``.

    No smaller factor bounds ``u / u'`` for all runs with this profile, if ``e_1`` is the least
    solution of (1): some set then attains ``a' = exp(e_1) a + delta(e_1)``. The idea of a bound by
    profiles is that of Koskela, Redberg, Wang 2024 (arXiv:2402.06701).

    Parameters
    ----------
    delta_of_run : callable (float) -> float
        Upper bound on the privacy profile of a run.
    gamma : float
        In (0, 1).
    guess : float, default=1.0
        At which the search begins.

    Returns
    -------
    float
    """

    def excess(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        bound = max((1 - gamma) * delta_of_run(epsilon), 1e-320)
        return math.log(bound) - math.log(gamma * math.expm1(epsilon))

    largest = -math.log(gamma) * (1 + 1e-9)  # as delta is at most 1
    high = math.log(min(guess or largest, largest))
    if excess(high) > 0:
        high = math.log(largest)
    low = high - 1
    while excess(low) <= 0:
        if low < -600:
            return 0.0
        high, low = low, 2 * low - high
    root = float(brentq(excess, low, high, xtol=SHIFT_WIDTH))
    while excess(root) > 0:
        root += SHIFT_WIDTH
    return math.exp(root + SHIFT_WIDTH)  # beyond what rounding may hide
