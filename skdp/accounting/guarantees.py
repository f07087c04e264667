"""Composition of mechanisms of which one (epsilon, delta) each is used: advanced and optimal."""

import itertools
import math
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from skdp.accounting import events
from skdp.accounting.accountant import Accountant
from skdp.accounting.additive import gaussian_epsilon, pure_epsilon
from skdp.accounting.composition import Pairs, delta_of, epsilon_of
from skdp.accounting.events import Adjacency, ApproximateDP, Event, UnknownCost
from skdp.accounting.events.wrappers import Sampled
from skdp.accounting.pairs import ResponsePair, amplified
from skdp.accounting.plan import EventCounts, joint_mu, paths, sampled_counts

# (epsilon_i, delta_i, number of mechanisms with both)
Guarantees = list[tuple[float, float, int]]


def guarantee(event: Event, delta: float, adjacency: Adjacency) -> tuple[float, float]:
    """Return an (epsilon, delta) that ``event`` guarantees, at the given delta if it has a choice.

    Mechanisms with delta = 0, or with a delta of their own, keep it. For samples, epsilon shrinks
    to ``log(1 + q (exp(epsilon) - 1))`` and delta to ``q delta`` (Balle, Barthe, Gaboardi 2018, Thm
    8 and 9; Thm 2 for Poisson samples under replace-one).
    """
    match event:
        case events.Gaussian():
            return gaussian_epsilon(event.mu(adjacency), delta), delta
        case events.Laplace() | events.NoisyMaximum():
            return event.pure_epsilon(adjacency), 0.0
        case ApproximateDP():
            return event.epsilon, event.delta
        case Sampled():
            mu = joint_mu(sampled_counts(event, adjacency), adjacency)
            if mu is None:
                return pure_epsilon(event, adjacency), 0.0
            epsilon = gaussian_epsilon(mu, min(delta / event.rate, 1.0))
            return amplified(epsilon, event.rate), delta
    raise UnknownCost(
        f"{type(event).__name__} has no single (epsilon, delta) theorem under {adjacency}."
    )


def needs_delta(event: Event, adjacency: Adjacency) -> bool:
    """Whether ``event`` needs a share of delta to have a finite epsilon."""
    return guarantee(event, 1e-3, adjacency)[1] == 1e-3 and not isinstance(event, ApproximateDP)


def _guarantees(counts: EventCounts, delta: float, adjacency: Adjacency) -> Guarantees:
    return [(*guarantee(part, delta, adjacency), count) for part, count in counts.items()]


def _total_delta(guarantees: Guarantees) -> float:
    """``1 - prod (1 - delta_i)``."""
    if any(delta == 1 for _, delta, _ in guarantees):
        return 1.0
    return -math.expm1(sum(count * math.log1p(-delta) for _, delta, count in guarantees))


def advanced_epsilon(guarantees: Guarantees, slack: float) -> float:
    """Epsilon of the composition of (epsilon_i, delta_i)-DP mechanisms for a further ``slack``.

    ``sqrt(2 log(1/slack) sum epsilon_i**2) + sum epsilon_i (e**epsilon_i - 1)/(e**epsilon_i + 1)``,
    or the plain sum if that is less; delta is ``1 - prod (1 - delta_i) + slack`` (Wu, Wang,
    Cristali, Gu, Willett 2021, Lemma 2.2, from Kairouz, Oh, Viswanath 2015, Thm 3.5).
    """
    if not guarantees:
        return 0.0
    epsilons, _, counts = np.array(guarantees).T
    plain = float(counts @ epsilons)
    if slack <= 0 or not math.isfinite(plain):
        return plain
    drift = float(counts @ (epsilons * np.tanh(epsilons / 2)))
    return min(plain, math.sqrt(2 * math.log(1 / slack) * float(counts @ epsilons**2)) + drift)


class AdvancedCompositionAccountant(Accountant):
    """Extended advanced composition of (epsilon_i, delta_i), for comparison with papers.

    Delta is divided between the parts that need some and the slack of the theorem; all of these
    parts get the same share, and the best such division is taken.
    """

    name = "advanced"

    def examine(self, event: Event, adjacency: Adjacency) -> list[tuple[EventCounts, Adjacency]]:
        met = paths(event, adjacency)
        for part in itertools.chain(*met):
            guarantee(part, 1e-6, adjacency)
        return [(path, adjacency) for path in met]

    def path_epsilon(self, facts: tuple[EventCounts, Adjacency], delta: float) -> float:
        path, adjacency = facts
        needing = {part: count for part, count in path.items() if needs_delta(part, adjacency)}
        n_needing = sum(needing.values())
        others = {part: count for part, count in path.items() if part not in needing}
        fixed = _total_delta(_guarantees(others, 0.5, adjacency))
        left = 1 - (1 - delta) / (1 - fixed) if fixed < 1 else -1.0
        if left < 0 or (left == 0 and needing):
            return math.inf

        def composed(share: float) -> float:
            """Epsilon where the parts that need delta get ``share`` of the rest of delta."""
            each = -math.expm1(math.log1p(-share * left) / n_needing) if needing else 0.0
            parts = _guarantees(path, each, adjacency)
            return advanced_epsilon(parts, max(delta - _total_delta(parts), 0.0))

        if not needing:
            return composed(0.0)
        minimum = minimize_scalar(
            lambda log_odds: composed(1 / (1 + math.exp(-log_odds))),
            bounds=(-12, 12),
            method="bounded",
        )
        return min(float(minimum.fun), composed(0.5), composed(1.0))

    @lru_cache(maxsize=64)  # noqa: B019  accountants live as long as the process
    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        return super().scale(event, epsilon, delta, adjacency)


class OptimalCompositionAccountant(Accountant):
    """Optimal composition of (epsilon_i, delta_i) where nothing else is known of the parts.

    Exact for heterogeneous pairs: the privacy loss of the randomised responses of Kairouz, Oh and
    Viswanath 2015 (Thm 3.3), which Murtagh and Vadhan 2016 show to be #P-hard in closed form, is
    summed by FFT. Of Laplace noise and of pure samples only their epsilon is used.
    """

    name = "optimal"

    def examine(self, event: Event, adjacency: Adjacency) -> list[Guarantees]:
        met = paths(event, adjacency)
        for part in itertools.chain(*met):
            if needs_delta(part, adjacency):
                raise UnknownCost(
                    f"{type(part).__name__} has a privacy curve, not one (epsilon, delta); "
                    "use 'pld'."
                )
        return [_guarantees(path, 0.5, adjacency) for path in met]

    def path_epsilon(self, parts: Guarantees, delta: float) -> float:
        plain, fixed = sum(count * bound for bound, _, count in parts), _total_delta(parts)
        if fixed > delta or not math.isfinite(plain):
            return math.inf
        if fixed == delta:
            return plain
        pairs = _responses(parts)
        return min(plain, epsilon_of(pairs, pairs, delta))

    def path_delta(self, parts: Guarantees, epsilon: float) -> float:
        if sum(count * bound for bound, _, count in parts) <= epsilon:
            return _total_delta(parts)
        pairs = _responses(parts)
        return delta_of(pairs, pairs, epsilon)


def _responses(guarantees: Guarantees) -> Pairs:
    return tuple((ResponsePair(bound, delta), count) for bound, delta, count in guarantees)
