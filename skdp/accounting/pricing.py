"""The price of a plan: the least epsilon that a theorem certifies, and the noise for a budget."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from scipy.optimize import brentq

from skdp._numbers import is_real, require
from skdp.accounting import events
from skdp.accounting.additive import gaussian_epsilon, gaussian_mu, pure_total
from skdp.accounting.composition import FULL, ROUGH, LatticeResolution
from skdp.accounting.dominating import dominating_pair, pairs_epsilon, profile, selection_epsilon
from skdp.accounting.events import Adjacency, ApproximateDP, Composed, Event, UnknownCost
from skdp.accounting.pairs import SelectedPair
from skdp.accounting.plan import EventCounts, coarsened, counts_of, joint_mu, opened, paths
from skdp.accounting.shuffle import shuffle_epsilon

# Of a finite epsilon: below, prices lose precision, and above noise is lost in rounding.
LEAST_EPSILON, LARGEST_EPSILON = 1e-6, 1e9
# Events with a theorem of their own, its name, and the function that evaluates it.
THEOREMS: dict[type[Event], tuple[str, Callable[..., float]]] = {
    events.Selected: ("selection", selection_epsilon),
    events.Shuffled: ("shuffle", shuffle_epsilon),
}
# Shares of delta that are tried for events with theorems of their own, if there are other events.
# Each gives a valid epsilon, and the least one is the price.
SHARES = (0.2, 0.5, 0.8)
# The search of a calibration rounds noise levels down to powers of this ratio.
SEARCH_RATIO = 1.005
# Up to this number of levels, an evaluation takes milliseconds and the search ends nearer to the
# budget.
FEW_LEVELS = 32
# Relative widths to which the searches for a noise factor and for delta go.
FACTOR_WIDTH, DELTA_WIDTH = 1e-5, 1e-4


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
    * "mixed": such events beside others, in a composition of dominating pairs. A selection of
      Gaussian runs has a pair of its own. Any other such event enters as one (epsilon_i, delta_i)
      that its own theorem certifies.

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
    met = paths(event, adjacency)
    costs = [_path_price(path, delta, adjacency, resolution) for path in met]
    names = {name for _, name in costs}
    name = "pld" if names <= {"gdp", "pure", "pld"} else "mixed"
    return max(epsilon for epsilon, _ in costs), names.pop() if len(names) == 1 else name


def _path_price(
    path: EventCounts, delta: float, adjacency: Adjacency, resolution: LatticeResolution = FULL
) -> tuple[float, str]:
    """Return the least epsilon of the events that a record can meet, and its theorem."""
    # Without a theorem of its own, a shuffled pass is the one answer that uses the record.
    whole = opened(path)
    mu = joint_mu(whole, adjacency)
    if mu is not None:
        routes = {"gdp": partial(gaussian_epsilon, mu, delta)}
    else:
        routes = {
            "pure": partial(pure_total, whole, adjacency),
            "pld": partial(pairs_epsilon, whole, delta, adjacency, resolution),
        }
    special = [event for event in path if type(event) in THEOREMS]
    if special and path == {special[0]: 1}:
        name, theorem = THEOREMS[type(special[0])]
        routes[name] = partial(theorem, special[0], delta, adjacency)
        if isinstance(special[0], events.Selected):  # of which no pair is tighter
            del routes["pld"]
    elif special:
        if not any(_needs_point(event, adjacency) for event in special):
            del routes["pld"]  # the same
        routes["mixed"] = partial(_by_points, path, delta, adjacency, resolution)
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


def _needs_point(event: Event, adjacency: Adjacency) -> bool:
    """Whether only a point of the curve of an event is known, or more than its dominating pair."""
    try:
        return type(event) in THEOREMS and not isinstance(
            dominating_pair(event, adjacency), SelectedPair
        )
    except UnknownCost:
        return True


def _by_points(
    path: EventCounts, delta: float, adjacency: Adjacency, resolution: LatticeResolution
) -> float:
    """Price events with theorems of their own by one point each, and compose it with the others."""
    special = {event: n for event, n in path.items() if _needs_point(event, adjacency)}
    others = opened({event: n for event, n in path.items() if event not in special})
    times = sum(special.values())
    if not special:
        return pairs_epsilon(others, delta, adjacency, resolution)
    bounds = []
    for share in SHARES:
        each = share * delta / times
        points = [
            (ApproximateDP(THEOREMS[type(event)][1](event, each, adjacency), each), count)
            for event, count in special.items()
        ]
        plan = counts_of(Composed((*points, *others.items())))
        bounds.append(pairs_epsilon(plan, delta, adjacency, resolution))
    return min(bounds)


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
    met = paths(event, adjacency)
    return max(_path_delta(path, epsilon, adjacency) for path in met)


def _path_delta(path: EventCounts, epsilon: float, adjacency: Adjacency) -> float:
    if not any(type(event) in THEOREMS for event in path):
        try:
            return profile(path, adjacency)[0](epsilon)
        except UnknownCost:
            pass  # a pure plan may have a price without a dominating pair
    low, high = 1e-15, 1.0
    if _path_price(path, low, adjacency)[0] <= epsilon:
        return low
    while high > low * (1 + DELTA_WIDTH):
        middle = math.sqrt(low * high)
        suffices = _path_price(path, middle, adjacency)[0] <= epsilon
        low, high = (low, middle) if suffices else (middle, high)
    return high


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
    met = [opened(path) for path in paths(event, adjacency)]
    pairs = [(path, joint_mu(path, adjacency)) for path in met]
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
    met = paths(event, adjacency)
    has_theorems = any(type(part) in THEOREMS for path in met for part in path)
    if all(joint_mu(path, adjacency) is not None for path in met):
        allowed = gaussian_mu(epsilon, delta)
        scale = event_mu(event, adjacency) / allowed if allowed > 0 else math.inf
    elif has_theorems or delta == 0:
        scale = least_factor(
            lambda factor: price(event.scaled(factor), delta, adjacency)[0], epsilon, delta
        )
    else:
        scale = min(
            _pure_factor(event, epsilon, delta, adjacency),
            _composed_factor(event, epsilon, delta, adjacency),
        )
    if not math.isfinite(scale):
        raise _no_noise(epsilon, delta)
    # Rounding may leave the cost just above the budget. Each step up is twice the one before.
    step = 1e-9
    spent, theorem = price(event.scaled(scale), delta, adjacency)
    while spent > epsilon:
        scale, step = scale * (1 + step), 2 * step
        spent, theorem = price(event.scaled(scale), delta, adjacency)
    return Calibration(scale, spent, theorem)


def _no_noise(epsilon: float, delta: float) -> UnknownCost:
    return UnknownCost(
        f"no amount of noise meets epsilon={epsilon:g}, delta={delta:g} for this plan."
    )


def least_factor(
    cost_of: Callable[[float], float], epsilon: float, delta: float, guess: float = 1.0
) -> float:
    """Return a factor with ``cost_of(factor) <= epsilon``, at most slightly above the least one.

    ``cost_of`` must fall as the factor grows. The search works on the logarithms of both, where
    costs are nearly straight lines, and starts at ``guess``, which is returned if noise does not
    affect the cost.
    """

    def excess(log_factor: float) -> float:
        cost = cost_of(math.exp(log_factor))
        return math.log(min(max(cost, 1e-300), 1e300)) - math.log(epsilon)

    near = math.log(guess)
    upwards = excess(near) > 0
    step = 0.25 if upwards else -0.25
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


def _pure_factor(event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
    """Factor by the sum of epsilons. It is inf if the plan is not pure.

    Composition is never worse, but the search for its factor is wider.
    """

    def spent(factor: float) -> float:
        met = paths(event.scaled(factor), adjacency)
        return max(pure_total(opened(path), adjacency) for path in met)

    try:
        return least_factor(spent, epsilon, delta)
    except UnknownCost:
        return math.inf


def _composed_factor(event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
    """Search with few noise levels on a coarse lattice first, then with the full bound."""
    counts = tuple(counts_of(event).items())
    rough = Composed(coarsened(counts, SEARCH_RATIO))
    rougher = Composed(coarsened(counts, SEARCH_RATIO**2))

    def spent_roughly(factor: float) -> float:
        return _price(rough.scaled(factor), delta, adjacency, ROUGH)[0]

    def spent(factor: float) -> float:
        return price(event.scaled(factor), delta, adjacency)[0]

    factor = least_factor(spent_roughly, epsilon, delta)
    if event.scaled(2.0) == event:
        return factor
    # Doubling the rounding adds about as much to the cost as the rounding itself has added.
    rougher_share = _price(rougher.scaled(factor), delta, adjacency, ROUGH)[0] / epsilon
    if not rougher_share > 0:  # delta is so large that the rough bound is 0
        return least_factor(spent, epsilon, delta, factor)
    target = epsilon * rougher_share  # for the rough bound
    width = 1e-4 if len(counts) <= FEW_LEVELS else 9e-4  # accepted relative distance to epsilon
    for _ in range(5):
        target *= 1 - width / 3
        factor = least_factor(spent_roughly, target, delta, factor)
        cost = spent(factor)
        if (1 - width) * epsilon <= cost <= epsilon:
            return factor
        if not 0.5 * epsilon < cost < 2 * epsilon:
            break
        target *= epsilon / cost
    return least_factor(spent, epsilon, delta, factor)
