"""Many noisy steps on all rows, of which only the last point is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events.base import Event, NoiseChange
from skdp.accounting.events.mechanisms import Gaussian
from skdp.accounting.last_iterate import last_iterate_factor


@dataclass(frozen=True)
class HiddenIterates(Event):
    """``n_steps`` noisy steps from a public start, of which only the last point is shown.

    Meaning: ``Y_t = M(Y_{t-1}) + N(0, (noise_multiplier * C)**2 I)`` with the noise multiplier of
    ``event``. For the maps M and M' of neighbouring data,
    ``|M(y) - M'(y')| <= contraction * |y - y'| + S`` with S the sensitivity of ``event``: C under
    zero-out, ``spread * C`` under replace-one. Only ``Y_T`` and functions of it are shown. Then the
    release is mu-GDP with mu that of one step times
    :func:`skdp.accounting.last_iterate.last_iterate_factor` (Bok, Su, Altschuler 2024,
    arXiv:2403.00278). Every mu-GDP release is dominated by the Gaussian one of that mu, so any
    accountant may take it for that: one Gaussian event, whose noise multiplier and spread give the
    right mu under both relations.

    Parameters
    ----------
    event : Gaussian
        One step, if it were shown.
    n_steps : int
        At least 1; fixed beforehand.
    contraction : float
        At least 0.
    reach : float, default=inf
        Diameter of the set that holds every point, in units of C; inf if there is none. The map
        from points must be 1-Lipschitz.
    """

    event: Gaussian
    n_steps: int
    contraction: float
    reach: float = math.inf

    def __post_init__(self) -> None:
        if not isinstance(self.event, Gaussian):
            raise ValueError(f"HiddenIterates: event must be Gaussian; got {self.event!r}.")
        last_iterate_factor(self.n_steps, self.contraction, self.reach)  # checks the rest

    def with_noise(self, change: NoiseChange) -> HiddenIterates:
        return replace(self, event=self.event.with_noise(change))

    def sensitivity(self, adjacency: Adjacency) -> float:
        """L2 sensitivity of one step, in units of the contribution bound."""
        return self.event.sensitivity(adjacency)

    def equivalent(self) -> Gaussian:
        """Return the Gaussian event that costs as much, under both relations."""
        spread = self.event.spread
        zero_out = last_iterate_factor(self.n_steps, self.contraction, self.reach)
        # In units of a sensitivity that is `spread` times as large the set is smaller.
        replaced = last_iterate_factor(self.n_steps, self.contraction, self.reach / spread)
        joint = min(spread, max(1.0, spread * replaced / zero_out))
        return Gaussian(self.event.noise_multiplier / zero_out, joint)

    def flattened(self) -> Iterator[tuple[Event, int]]:
        yield self.equivalent(), 1
