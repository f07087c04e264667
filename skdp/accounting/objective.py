"""The accountant of a single perturbed objective, tight for generalised linear models."""

import math

from skdp.accounting.accountant import Accountant, bisect, one_plus_exp
from skdp.accounting.additive import gaussian_delta
from skdp.accounting.events import Adjacency, Event, ObjectivePerturbed, UnknownCost
from skdp.accounting.plan import only_event

# Shares of epsilon that are tried for the minimiser; the rest is for the noise on the answer. Each
# gives a valid delta, and the least one is taken. Dense near 1, as that noise needs little.
_SHARES = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)


def objective_delta(noise_multiplier: float, ratio: float, epsilon: float) -> float:
    """Delta of an exact minimiser of a perturbed objective, under add/remove or zero-out.

    Theorem 3.1 of Redberg, Koskela and Wang 2023 ("Improving the privacy and practicality of
    objective perturbation for differentially private linear learners", arXiv:2401.00583): with
    ``s = noise_multiplier``, ``l0 = |log(1 - ratio)|`` and H the profile of the Gaussian mechanism
    of noise multiplier s,

        ``2 H(epsilon - l0)`` where ``e = epsilon - l0 - 1 / (2 s**2) >= 0``,
        ``1 - exp(e) + 2 exp(e) H(1 / (2 s**2))`` elsewhere.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the perturbation in units of the Lipschitz constant.
    ratio : float
        Curvature of one record's loss over the strength of the regularisation, in (0, 1).
    epsilon : float
        At least 0.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from skdp.accounting import objective_delta
    >>> 0 < objective_delta(8.0, 0.1, 1.0) < 1e-6
    True
    """
    if noise_multiplier == 0:
        return 1.0
    shift = -math.log1p(-ratio)
    corner = 0.5 / noise_multiplier**2
    if epsilon - shift >= corner:
        return min(1.0, 2 * gaussian_delta(1 / noise_multiplier, epsilon - shift))
    excess = epsilon - shift - corner
    return min(
        1.0,
        max(0.0, -math.expm1(excess))
        + 2 * math.exp(excess) * gaussian_delta(1 / noise_multiplier, corner),
    )


def _zero_out_delta(event: ObjectivePerturbed, epsilon: float) -> float:
    """Delta that includes the noise on the answer and the failure, by basic composition.

    The answer is a function of the minimiser w and of ``(v - w) + noise``: given w, a Gaussian
    mechanism of sensitivity D. A run that differs from the exact one only where b is too long is
    ``(epsilon, delta + (1 + exp(epsilon)) failure)``-DP.
    """
    if event.noise_multiplier == 0 or event.output_noise == 0:
        return 1.0
    least = min(
        objective_delta(event.noise_multiplier, event.ratio, share * epsilon)
        + gaussian_delta(1 / event.output_noise, (1 - share) * epsilon)
        for share in _SHARES
    )
    return min(1.0, least + event.failure * one_plus_exp(epsilon))


class ObjectivePerturbationAccountant(Accountant):
    """Objective perturbation of generalised linear models (Redberg, Koskela, Wang 2023, Thm 3.1).

    Under replace-one, one record is removed and another one added: group privacy for two turns
    (epsilon, delta) into (2 epsilon, (1 + exp(epsilon)) delta).
    """

    name = "objective"
    rank = 27
    special = (ObjectivePerturbed,)

    def examine(
        self, event: Event, adjacency: Adjacency
    ) -> list[tuple[ObjectivePerturbed, Adjacency]]:
        return [(only_event(event, ObjectivePerturbed, "perturbed objective"), adjacency)]

    def path_delta(self, facts: tuple[ObjectivePerturbed, Adjacency], epsilon: float) -> float:
        part, adjacency = facts
        if adjacency is Adjacency.ZERO_OUT:
            return _zero_out_delta(part, epsilon)
        half = epsilon / 2
        return min(1.0, one_plus_exp(half) * _zero_out_delta(part, half))

    def path_epsilon(self, facts: tuple[ObjectivePerturbed, Adjacency], delta: float) -> float:
        def suffices(epsilon: float) -> bool:
            return self.path_delta(facts, epsilon) <= delta

        high = 1e-3
        while not suffices(high):
            high *= 2
            if high > 1e6:
                return math.inf
        low = 0.0 if high == 1e-3 else high / 2
        return bisect(suffices, low, high, halvings=45)

    def scale(self, event: Event, epsilon: float, delta: float, adjacency: Adjacency) -> float:
        # By a search on `delta`, which is quicker than `epsilon`.
        self.require(event, adjacency)

        def suffices(log_factor: float) -> bool:
            return self.delta(event.scaled(math.exp(log_factor)), epsilon, adjacency) <= delta

        if not suffices(30.0):
            raise UnknownCost(
                f"accountant {self.name!r}: no amount of noise meets epsilon={epsilon:g}, "
                f"delta={delta:g} for this plan: the curvature of a record, "
                "next to the regularisation, costs too much by itself."
            )
        return math.exp(bisect(suffices, -30.0, 30.0, halvings=36))  # to a width of 1e-9
