"""The noisy gradient of a solver, by the name of its noise."""

from __future__ import annotations

from skdp.oracle.releases.base import Array
from skdp.oracle.releases.laplace import LaplaceNoise
from skdp.oracle.releases.mechanisms import GaussianNoise, Mechanism
from skdp.oracle.releases.noisy_sum import NoisySum
from skdp.oracle.releases.samplers import Everyone, Sampler
from skdp.oracle.releases.sums import GradientSum

MECHANISMS: dict[str, type[GaussianNoise] | type[LaplaceNoise]] = {
    "gaussian": GaussianNoise,
    "laplace": LaplaceNoise,
}


def noise(mechanism: str, relative: float) -> Mechanism:
    """Return the noise of this name; ValueError if there is none."""
    if mechanism not in MECHANISMS:
        known = ", ".join(repr(name) for name in sorted(MECHANISMS))
        raise ValueError(f"mechanism must be one of {known}; got {mechanism!r}.")
    return MECHANISMS[mechanism](relative)


def noisy_gradient(
    point: Array,
    clip_norm: float,
    relative: float = 1.0,
    sampler: Sampler | None = None,
    mechanism: str = "gaussian",
) -> NoisySum:
    """Sum of gradients, clipped in the norm of the noise that hides it."""
    hidden = noise(mechanism, relative)
    what = GradientSum(point, clip_norm, hidden.order)
    return NoisySum(what, hidden, Everyone() if sampler is None else sampler)
