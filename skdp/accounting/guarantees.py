"""One (epsilon, delta) of each mechanism."""

from skdp.accounting import events
from skdp.accounting.additive import gaussian_epsilon, pure_epsilon
from skdp.accounting.events import Adjacency, ApproximateDP, Event, UnknownCost
from skdp.accounting.events.wrappers import Sampled
from skdp.accounting.pairs import amplified
from skdp.accounting.plan import joint_mu, sampled_counts


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
