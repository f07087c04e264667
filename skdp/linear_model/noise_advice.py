"""A word of warning where batches are so small that their noise drowns what they tell."""

from __future__ import annotations

import math
import warnings

from skdp.accounting import Event, FixedSizeSampled, Gaussian, PoissonSampled, gaussian_mu
from skdp.oracle import Plan, Public

WASTEFUL = 0.2  # of what larger batches tell for the same budget


class NoiseWarning(UserWarning):
    """A plan needs so much noise that another one would learn far more for the same budget."""


def warn_about_noise(who: str, plan: Plan, public: Public) -> None:
    """Warn if random batches tell little of what their part of the budget could buy.

    All figures are public: the plan's noise multipliers, n, the shape and the budget. Measured in
    units of one record's bound over n, answers on a share q of the rows with noise multiplier s
    tell of a mean as much as one answer on all rows with the noise ``1 / sqrt(sum (q / s)**2)``;
    answers on all rows, each step costing the same budget, would need no more than ``1 / mu``.
    Once s falls below about 1, amplification by sampling is lost, and smaller batches need nearly
    the same noise for ever fewer rows: with mu what a budget is in Gaussian differential privacy,
    ``q = mu / sqrt(T)`` is about where that sets in (Dong, Roth, Su 2019, Cor. 5.4, whose
    ``mu**2 = q**2 T (exp(1 / s**2) - 1)`` gives s = 1.2 there).
    """
    scale = plan.calibration.scale
    if scale == 0 or plan.adaptive or public.delta == 0:
        return
    parts = [part for entry in plan.entries for part in _repeated(entry.event, entry.count)]
    sampled = [(event, count) for event, count in parts if _rate(event) is not None]
    if not sampled:
        return
    unit = Gaussian(1.0).sensitivity(public.adjacency)
    mu = gaussian_mu(public.epsilon, public.delta) / unit
    whole = sum(
        count * (scale * event.noise_multiplier) ** -2
        for event, count in parts
        if isinstance(event, Gaussian)
    )
    left = math.sqrt(max(mu**2 - whole, 0.0))
    told = math.sqrt(sum(n * (_share(event) / _noise(event, scale)) ** 2 for event, n in sampled))
    if told >= WASTEFUL * left:
        return
    steps = sum(count for _, count in sampled)
    noise = max(_noise(event, scale) for event, _ in sampled)
    rows = min(_share(event) for event, _ in sampled) * public.n_rows
    length = noise * math.sqrt(math.prod(public.shape)) / rows
    sensible = min(public.n_rows, max(2, math.ceil(left * public.n_rows / math.sqrt(steps))))
    warnings.warn(
        f"{who}: {steps} steps on batches of about {rows:.0f} of {public.n_rows} rows need noise "
        f"of {noise:.3g} times the clipping norm on every coordinate of a sum, so that the noise "
        f"on a step's mean gradient is {length:.3g} times as long as the clipping norm. They tell "
        f"{100 * told / left:.2g} per cent of what this part of the budget buys with larger "
        f"batches. With so many steps a batch_size of about {sensible} is sensible. These figures "
        "come from the plan alone; no budget has been spent.",
        NoiseWarning,
        stacklevel=3,
    )


def _repeated(event: Event, count: int) -> list[tuple[Event, int]]:
    return [(inner, count * times) for inner, times in event.flattened()]


def _rate(event: Event) -> float | None:
    """Share of the rows in a random sample of a Gaussian sum; None for any other event."""
    sampled = isinstance(event, PoissonSampled | FixedSizeSampled)
    if sampled and isinstance(event.event, Gaussian):  # type: ignore[attr-defined]
        return float(event.rate)  # type: ignore[attr-defined]
    return None


def _share(event: Event) -> float:
    return _rate(event) or 0.0


def _noise(event: Event, scale: float) -> float:
    return float(scale * event.event.noise_multiplier)  # type: ignore[attr-defined]
