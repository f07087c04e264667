"""The price of a plan: the least epsilon that a theorem certifies, and the noise for a budget.

For a Gaussian sum with noise multiplier z and a sampling rate q the dominating pairs are:

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
from dataclasses import dataclass
from functools import lru_cache, partial

from scipy.optimize import brentq

from skdp._numbers import is_real, require
from skdp.accounting import events, pairs
from skdp.accounting.composition import FULL, ROUGH, LatticeResolution, Pairs, epsilon_of
from skdp.accounting.events import Adjacency, ApproximateDP, Composed, Event, UnknownCost
from skdp.accounting.papers import shuffle_epsilon

# Of a finite epsilon: below, prices lose precision, and above noise is lost in rounding.
LEAST_EPSILON, LARGEST_EPSILON = 1e-6, 1e9
# Shares of delta that are tried for events with theorems of their own, if there are other events.
# Each gives a valid epsilon, and the least one is the price.
SHARES = (0.2, 0.5, 0.8)
# The search of a calibration rounds noise levels down to powers of this ratio.
SEARCH_RATIO = 1.005
# Relative widths to which the searches for a noise factor and for delta go.
FACTOR_WIDTH, DELTA_WIDTH = 1e-5, 1e-4
# That of the search for the shift of a selection, in the logarithm of delta.
SHIFT_WIDTH = 1e-12
# Plans with more distinct noise levels than this are priced with levels rounded down to powers of
# LIMIT_RATIO, hence as if they had up to 0.05 % less noise. It bounds the time.
MAX_LEVELS, LIMIT_RATIO = 2000, 1.0005
# Smaller deltas cannot be resolved: their tails get lost among the smallest numbers of float64.
LEAST_DELTA = 1e-280


@dataclass(frozen=True)
class Calibration:
    """A noise factor, the epsilon it guarantees, and the theorem that certifies it.

    Attributes
    ----------
    scale : float
        Factor of the noise of the plan. 0 for no noise, if epsilon is infinite.
    epsilon : float
        The certified figure, at most the requested one.
    accountant : str
        Name of the theorem, as `price` returns it. "none" if nothing has to be certified.
    """

    scale: float
    epsilon: float
    accountant: str


def price(event: Event, delta: float, adjacency: Adjacency) -> tuple[float, str]:
    """Return the least certified epsilon of ``event``, and the name of the theorem.

    A record meets the events on one path through the blocks of a plan, and the costliest path is
    the price. The theorems are:

    * "gdp": Gaussian releases, exactly and in closed form. They are mu-GDP with ``mu**2 = sum
      (sensitivity_t / sigma_t)**2`` (Dong, Roth, Su 2019, Cor. 3.3), converted by Balle and Wang
      2018, Thm 8.
    * "pure": the sum of epsilons of releases that need no delta.
    * "pld": composition of dominating pairs, by `skdp.accounting.composition`.
    * "selection" and "shuffle": those of one `Selected` or `Shuffled` event.
    * "mixed": shuffled passes beside other events, in a composition of dominating pairs. Each pass
      enters as one (epsilon_i, delta_i) that its own theorem certifies.

    Parameters
    ----------
    event : Event
    delta : float
        In [0, 1).
    adjacency : Adjacency

    Returns
    -------
    epsilon : float
        inf if no finite epsilon holds.
    theorem : str
        "pld" or "mixed" if paths have different ones.

    Raises
    ------
    UnknownCost
        If no theorem covers the plan.

    Examples
    --------
    >>> from skdp.accounting import Adjacency, Gaussian, price
    >>> epsilon, theorem = price(Gaussian(5.0), 1e-6, Adjacency.ZERO_OUT)
    >>> round(epsilon, 3), theorem
    (0.834, 'gdp')
    """
    return _price(event, delta, adjacency, FULL)


def _price(
    event: Event, delta: float, adjacency: Adjacency, resolution: LatticeResolution
) -> tuple[float, str]:
    met = events.paths(event, adjacency)
    costs = [_path_price(path, delta, adjacency, resolution) for path in met]
    names = {name for _, name in costs}
    name = "pld" if names <= {"gdp", "pure", "pld"} else "mixed"
    return max(epsilon for epsilon, _ in costs), names.pop() if len(names) == 1 else name


def _path_price(
    path: events.EventCounts,
    delta: float,
    adjacency: Adjacency,
    resolution: LatticeResolution = FULL,
) -> tuple[float, str]:
    """Return the least epsilon of the events that a record can meet, and its theorem."""
    # Without a theorem of its own, a shuffled pass is the one answer that uses the record.
    whole = events.opened(path)
    mu = events.joint_mu(whole, adjacency)
    special = [event for event in path if type(event) in THEOREMS]
    routes: dict[str, Callable[[], float]] = {}
    if mu is not None:
        routes["gdp"] = partial(pairs.gaussian_epsilon, mu, delta)
    else:
        routes["pure"] = partial(pairs.pure_total, whole, adjacency)
    if special and path == {special[0]: 1}:
        name, theorem = THEOREMS[type(special[0])]
        routes[name] = partial(theorem, special[0], delta, adjacency)
    elif any(isinstance(event, events.Shuffled) for event in special):
        routes["mixed"] = partial(_by_points, path, delta, adjacency, resolution)
    if mu is None and "selection" not in routes:  # of which no pair is tighter
        routes["pld"] = partial(pairs_epsilon, whole, delta, adjacency, resolution)
    costs: dict[str, float] = {}
    reasons: dict[str, None] = {}
    for name, route in routes.items():
        try:
            costs[name] = route()
        except UnknownCost as reason:
            reasons[str(reason)] = None
    if not costs:
        raise UnknownCost(f"No theorem prices this plan under {adjacency}. {' '.join(reasons)}")
    name = min(costs, key=costs.__getitem__)
    return costs[name], name


def _by_points(
    path: events.EventCounts, delta: float, adjacency: Adjacency, resolution: LatticeResolution
) -> float:
    """Price shuffled passes by one point each, and compose it with the other events."""
    n_passes = sum(n for event, n in path.items() if isinstance(event, events.Shuffled))

    def composed(each: float) -> float:
        parts = (
            (ApproximateDP(shuffle_epsilon(event, each, adjacency), each), count)
            if isinstance(event, events.Shuffled)
            else (event, count)
            for event, count in path.items()
        )
        plan = events.counts_of(Composed(tuple(parts)))
        return pairs_epsilon(plan, delta, adjacency, resolution)

    return min(composed(share * delta / n_passes) for share in SHARES)


def delta_at(event: Event, epsilon: float, adjacency: Adjacency) -> float:
    """Return a delta such that ``event`` is (epsilon, delta)-DP.

    Parameters
    ----------
    event : Event
    epsilon : float
        At least 0.
    adjacency : Adjacency

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    UnknownCost
        If no theorem covers the plan.

    Examples
    --------
    >>> from skdp.accounting import Adjacency, Gaussian, delta_at
    >>> round(delta_at(Gaussian(1.0), 1.0, Adjacency.ZERO_OUT), 6)
    0.126937
    """
    met = events.paths(event, adjacency)
    return max(_path_delta(path, epsilon, adjacency) for path in met)


def _path_delta(path: events.EventCounts, epsilon: float, adjacency: Adjacency) -> float:
    mu = events.joint_mu(path, adjacency)
    if mu is not None:
        return pairs.gaussian_delta(mu, epsilon)
    if _path_price(path, 0.0, adjacency)[0] <= epsilon:
        return 0.0
    low, high = math.log(LEAST_DELTA), 0.0
    while high > low + DELTA_WIDTH:
        middle = (low + high) / 2
        suffices = _path_price(path, math.exp(middle), adjacency)[0] <= epsilon
        low, high = (low, middle) if suffices else (middle, high)
    return math.exp(high)


def event_mu(event: Event, adjacency: Adjacency) -> float:
    """Return the Gaussian-DP parameter of ``event``.

    Parameters
    ----------
    event : Event
    adjacency : Adjacency

    Returns
    -------
    float
        inf without noise.

    Raises
    ------
    UnknownCost
        If there are other releases than Gaussian ones.

    Examples
    --------
    >>> from skdp.accounting import Adjacency, Composed, Gaussian, event_mu
    >>> event_mu(Composed(((Gaussian(10.0), 25),)), Adjacency.ZERO_OUT)
    0.5
    """
    met = [events.opened(path) for path in events.paths(event, adjacency)]
    pairs = [(path, events.joint_mu(path, adjacency)) for path in met]
    for path, mu in pairs:
        if mu is None:
            kinds = ", ".join(sorted({type(part).__name__ for part in path}))
            raise UnknownCost(f"no Gaussian-DP parameter is known for {kinds} under {adjacency}.")
    return max(mu for _, mu in pairs if mu is not None)


def check_budget(epsilon: object, delta: object) -> None:
    """Raise ValueError unless epsilon is from 1e-6 to 1e9, or infinite, and delta in [0, 1)."""
    is_valid = is_real(epsilon) and (
        LEAST_EPSILON <= epsilon <= LARGEST_EPSILON or epsilon == math.inf
    )
    allowed = "be a positive number from 1e-6 to 1e9, or inf for no privacy at all"
    require("epsilon", epsilon, allowed, is_valid)
    require("delta", delta, "be a number in [0, 1)", is_real(delta) and 0 <= delta < 1)


def calibrate(event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> Calibration:
    """Find the least ``scale`` such that ``event.scaled(scale)`` is (epsilon, delta)-DP.

    Errors are on the private side: the certified epsilon never exceeds the requested one.

    Parameters
    ----------
    event : Event
        The plan, with noise in relative units. The cost of parts whose noise cannot be scaled, such
        as `ApproximateDP`, stays as it is.
    epsilon, delta : float
        The budget: from 1e-6 to 1e9, and in [0, 1). ``epsilon=inf`` gives scale 0: no noise at all.
    adjacency : Adjacency

    Returns
    -------
    Calibration

    Raises
    ------
    UnknownCost
        If no theorem covers the plan, or no amount of noise meets the budget.
    ValueError
        If epsilon or delta is out of range.

    Examples
    --------
    >>> from skdp.accounting import Adjacency, Composed, Gaussian, calibrate
    >>> plan = Composed(((Gaussian(1.0), 100),))
    >>> round(calibrate(plan, 1.0, 1e-6, Adjacency.ZERO_OUT).scale, 3)
    42.247
    """
    if math.isinf(epsilon):
        return Calibration(0.0, math.inf, "none")
    if not any(True for _ in event.flattened()):
        return Calibration(1.0, 0.0, "none")
    check_budget(epsilon, delta)
    met = events.paths(event, adjacency)

    def spent(factor: float) -> float:
        return price(event.scaled(factor), delta, adjacency)[0]

    if all(events.joint_mu(path, adjacency) is not None for path in met):
        allowed = pairs.gaussian_mu(epsilon, delta)
        scale = event_mu(event, adjacency) / allowed if allowed > 0 else math.inf
    elif delta == 0 or any(type(part) in THEOREMS for path in met for part in path):
        scale = least_factor(spent, epsilon, delta)
    else:  # few noise levels on a coarse lattice come first
        rough = Composed(events.coarsened(tuple(events.counts_of(event).items()), SEARCH_RATIO))
        guess = least_factor(
            lambda factor: _price(rough.scaled(factor), delta, adjacency, ROUGH)[0], epsilon, delta
        )
        scale = least_factor(spent, epsilon, delta, guess, step=SEARCH_RATIO - 1)
    if not math.isfinite(scale):
        raise _no_noise(epsilon, delta)
    # Rounding may leave the cost just above the budget. Each step up is twice the one before.
    step = 1e-9
    while not spent(scale) <= epsilon:  # nor is nan within the budget
        scale, step = scale * (1 + step), 2 * step
    return Calibration(scale, *price(event.scaled(scale), delta, adjacency))


def _no_noise(epsilon: float, delta: float) -> UnknownCost:
    return UnknownCost(
        f"no amount of noise meets epsilon={epsilon:g}, delta={delta:g} for this plan."
    )


def least_factor(
    cost_of: Callable[[float], float],
    epsilon: float,
    delta: float,
    guess: float = 1.0,
    step: float = 0.25,
) -> float:
    """Return a factor with ``cost_of(factor) <= epsilon``, at most slightly above the least one.

    ``cost_of`` must fall as the factor grows. The search works on the logarithms of both, where
    costs are nearly straight lines. It starts at ``guess``, which is returned if noise does not
    affect the cost, with steps of at least ``step``.
    """

    def excess(log_factor: float) -> float:
        cost = cost_of(math.exp(log_factor))
        return math.log(min(max(cost, 1e-300), 1e300)) - math.log(epsilon)

    near = math.log(guess)
    upwards = excess(near) > 0
    step = step if upwards else -step
    far = near + step
    while (excess(far) > 0) == upwards:
        step *= 2
        near, far = far, far + step
        if far > 64:
            raise _no_noise(epsilon, delta)
        if far < -64:
            return guess  # noise does not affect the cost
    root = float(brentq(excess, min(near, far), max(near, far), xtol=FACTOR_WIDTH))
    while cost_of(math.exp(root)) > epsilon:
        root += FACTOR_WIDTH
    return math.exp(root)


# ---------------------------------------------------------------------- dominating pairs


def dominating_pair(event: Event, adjacency: Adjacency) -> pairs.Pair | None:
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
        case events.Sampled():
            return _sampled_pair(event, adjacency)
        case events.Selected():
            return _selected_pair(event, adjacency)
    raise UnknownCost(f"no dominating pair is known for {type(event).__name__} under {adjacency}.")


def _finite(pair: Callable[[float], pairs.Pair], size: float) -> pairs.Pair | None:
    """Return the pair of a size, or None where that is infinite."""
    return None if math.isinf(size) else pair(size)


def _selected_pair(event: events.Selected, adjacency: Adjacency) -> pairs.Pair | None:
    try:
        mu = event_mu(event.event, adjacency)
    except UnknownCost as reason:
        raise UnknownCost(f"Selected is priced for Gaussian runs only: {reason}") from None
    if mu == 0:
        return pairs.ResponsePair(0.0)
    shift = 2 * gaussian_shift(mu, event.gamma)
    return _finite(lambda mu: pairs.SelectedPair(mu, event.mean_runs, shift), mu)


def _sampled_pair(event: events.Sampled, adjacency: Adjacency) -> pairs.Pair | None:
    counts = events.sampled_counts(event, adjacency)
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


def _base(counts: events.EventCounts, adjacency: Adjacency, sampled: Event) -> pairs.Pair | None:
    """Return the dominating pair of releases on one sample: Gaussian sums, or one other answer."""
    mu = events.joint_mu(counts, adjacency)
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


def pairs_epsilon(
    path: events.EventCounts,
    delta: float,
    adjacency: Adjacency,
    resolution: LatticeResolution = FULL,
) -> float:
    """Epsilon of the events on a path by composition of their dominating pairs.

    Raises
    ------
    UnknownCost
        If an event has no dominating pair, or delta is too small to be resolved.
    """
    if 0 < delta < LEAST_DELTA:
        raise UnknownCost(
            f"composition cannot distinguish a delta of {delta:g} from 0. Choose at least "
            f"{LEAST_DELTA:g}, or 0 for pure differential privacy."
        )
    found = dominating_pairs(tuple(path.items()), adjacency)
    return math.inf if found is None else epsilon_of(found, delta, resolution)


@lru_cache(maxsize=256)
def dominating_pairs(path: events.Parts, adjacency: Adjacency) -> Pairs | None:
    """Return dominating pairs of events, with counts. None if an event has infinite epsilon."""
    merged: dict[pairs.Pair, int] = {}
    for event, count in path if len(path) <= MAX_LEVELS else events.coarsened(path, LIMIT_RATIO):
        pair = dominating_pair(event, adjacency)
        if pair is None:
            return None
        merged[pair] = merged.get(pair, 0) + count
    return tuple(merged.items())


def selection_epsilon(event: events.Selected, delta: float, adjacency: Adjacency) -> float:
    """Epsilon of the best of a random number of Gaussian runs, by `selection_shift`.

    inf if no finite epsilon holds.
    """
    pair = dominating_pair(event, adjacency)
    if isinstance(pair, pairs.SelectedPair):
        return pair.shift + pairs.gaussian_epsilon(pair.mu, delta / pair.mean)
    return math.inf if pair is None else 0.0


@lru_cache(maxsize=256)
def gaussian_shift(mu: float, gamma: float) -> float:
    """Return the shift of `selection_shift` for mu-Gaussian-DP runs, inf without noise."""
    if math.isinf(mu):
        return math.inf
    return selection_shift(partial(pairs.gaussian_epsilon, mu), gamma)


def selection_shift(epsilon_of_run: Callable[[float], float], gamma: float) -> float:
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

    Search. For every d, ``e_1 = max(epsilon(d), log(1 + (1 - gamma) d / gamma))`` satisfies (1),
    with the least epsilon(d) at which a run is (epsilon(d), d)-DP, as ``delta(e_1) <= d``. It is
    the least one if both are equal.

    Parameters
    ----------
    epsilon_of_run : callable (float) -> float
        The least epsilon of a run at a delta, or an upper bound on it.
    gamma : float
        In (0, 1).

    Returns
    -------
    float
    """

    def terms(log_delta: float) -> tuple[float, float]:
        delta = math.exp(log_delta)
        return epsilon_of_run(delta), math.log1p((1 - gamma) * delta / gamma)

    def excess(log_delta: float) -> float:
        epsilon, needed = terms(log_delta)
        return needed - min(epsilon, LARGEST_EPSILON)

    low = -1.0
    while excess(low) > 0 and low > math.log(LEAST_DELTA) / 2:
        low *= 2
    root = float(brentq(excess, low, 0.0, xtol=SHIFT_WIDTH)) if excess(low) <= 0 else low
    return max(terms(root)) * (1 + pairs.SAFETY)


# Events with a theorem of their own, its name, and the function that evaluates it.
THEOREMS: dict[type[Event], tuple[str, Callable[..., float]]] = {
    events.Selected: ("selection", selection_epsilon),
    events.Shuffled: ("shuffle", shuffle_epsilon),
}
