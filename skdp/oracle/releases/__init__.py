"""The audited releases: the only code that turns rows into answers."""

from skdp.oracle.releases.base import NotAudited, Release, Terms, audited, require_audited
from skdp.oracle.releases.histograms import BinCounts, MagnitudeCounts
from skdp.oracle.releases.last_iterate import LastIterate, smoothness
from skdp.oracle.releases.mechanisms import GaussianNoise
from skdp.oracle.releases.noisy_sum import NoisySum
from skdp.oracle.releases.samplers import Bin, Block, Everyone, FixedSize, Poisson, Sampler
from skdp.oracle.releases.sums import GradientSum, Sum

__all__ = [
    "Bin",
    "BinCounts",
    "Block",
    "Everyone",
    "FixedSize",
    "GaussianNoise",
    "GradientSum",
    "LastIterate",
    "MagnitudeCounts",
    "NoisySum",
    "NotAudited",
    "Poisson",
    "Release",
    "Sampler",
    "Sum",
    "Terms",
    "audited",
    "require_audited",
    "smoothness",
]
