"""The minimiser of a perturbed objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events.base import Event, NoiseChange


@dataclass(frozen=True)
class ObjectivePerturbed(Event):
    """A minimiser of a sum of losses with a random linear term, and a little noise on it.

    Meaning: ``w = argmin sum_i f(w; z_i) + lam/2 |w|**2 + b'w`` with ``b ~ N(0, (noise_multiplier
    L)**2 I)``, for losses ``f(w; z) = l(x'w; y)``, convex and twice differentiable, of gradients
    of norm at most ``L`` and curvature at most ``ratio * lam``; what is released is ``v + N(0,
    (output_noise D)**2 I)`` for a point v that is, whatever the rows, within ``D/2`` of w.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of b in units of L.
    ratio : float
        In (0, 1).
    output_noise : float
        Noise on the answer, in units of D.
    failure : float
        Probability, a number that no row has a say in, with which b is so long that something
        else is released; in [0, 1).
    """

    noise_multiplier: float
    ratio: float
    output_noise: float
    failure: float = 0.0

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "output_noise"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(
                    f"ObjectivePerturbed: {name} must be finite and >= 0; got "
                    f"{getattr(self, name)!r}."
                )
        if not 0 < self.ratio < 1:
            raise ValueError(f"ObjectivePerturbed: ratio must lie in (0, 1); got {self.ratio!r}.")
        if not 0 <= self.failure < 1:
            raise ValueError(
                f"ObjectivePerturbed: failure must lie in [0, 1); got {self.failure!r}."
            )

    def sensitivity(self, adjacency: Adjacency) -> float:
        """How far the b that gives one and the same w may move, in units of L."""
        return 1.0 if adjacency is Adjacency.ZERO_OUT else 2.0

    def with_noise(self, change: NoiseChange) -> ObjectivePerturbed:
        return replace(
            self,
            noise_multiplier=change(self.noise_multiplier),
            output_noise=change(self.output_noise),
        )
