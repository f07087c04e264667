"""The audited releases: the only code that turns rows into answers."""

from skdp.oracle.releases.base import NotAudited, Release, Terms, audited, require_audited
from skdp.oracle.releases.mechanisms import GaussianNoise
from skdp.oracle.releases.noisy_sum import NoisySum
from skdp.oracle.releases.samplers import Everyone
from skdp.oracle.releases.sums import GradientSum, Sum

__all__ = [
    "Everyone",
    "GaussianNoise",
    "GradientSum",
    "NoisySum",
    "NotAudited",
    "Release",
    "Sum",
    "Terms",
    "audited",
    "require_audited",
]
