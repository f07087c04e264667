"""The best of a random number of runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy.optimize import brentq

from skdp.accounting.events.base import Event, NoiseChange


@dataclass(frozen=True)
class Selected(Event):
    """The best of a random number of independent runs, the others being forgotten.

    Meaning: ``K`` is drawn from the truncated negative binomial distribution with shape ``eta``
    and mean ``mean_runs``; ``event`` is run ``K`` times with fresh noise on the same rows, each
    run ending in a pair (answer, score); the pair with the highest score is released, ties being
    broken by a fair coin, and nothing else is (Papernot and Steinke 2022, arXiv:2110.03620,
    Def. 1). What a run does must not depend on the runs before it.

    Parameters
    ----------
    event : Event
        One run, including the release of its score.
    mean_runs : float
        Expected number of runs, greater than 1.
    shape : float, default=1.0
        ``eta >= 0``. 1 is the geometric distribution; 0 the logarithmic one, a little cheaper but
        with one run only far more often.
    """

    event: Event
    mean_runs: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        if not (self.mean_runs > 1 and math.isfinite(self.mean_runs)):
            raise ValueError(
                f"Selected: mean_runs must be finite and greater than 1; got {self.mean_runs!r}."
            )
        if not (self.shape >= 0 and math.isfinite(self.shape)):
            raise ValueError(f"Selected: shape must be finite and >= 0; got {self.shape!r}.")

    def with_noise(self, change: NoiseChange) -> Selected:
        return replace(self, event=self.event.with_noise(change))

    @property
    def gamma(self) -> float:
        """Stopping parameter of the distribution that gives the mean, rounded down (safe)."""
        if self.shape == 1:
            return 1 / self.mean_runs
        # The mean falls from infinity at gamma = 0 to 1 at gamma = 1.
        log_gamma = brentq(
            lambda log_gamma: math.log(
                _mean_runs(math.exp(log_gamma), self.shape) / self.mean_runs
            ),
            -700.0 / max(1.0, self.shape),
            -1e-12,
            xtol=1e-14,
        )
        return math.exp(log_gamma) * (1 - 1e-12)


def _mean_runs(gamma: float, shape: float) -> float:
    """Mean of the truncated negative binomial distribution (Papernot and Steinke 2022, Def. 1)."""
    odds = (1 - gamma) / gamma
    if shape == 0:
        return odds / -math.log(gamma)
    return shape * odds / -math.expm1(shape * math.log(gamma))
