"""The audited releases: the only code that turns rows into answers."""

from skdp.oracle.releases.base import NotAudited, Release, Terms, audited, require_audited
from skdp.oracle.releases.calibration import DirectionalSum
from skdp.oracle.releases.counts import GradientCount, ResidualCount, SquaredNormSum
from skdp.oracle.releases.curvature import LargestEigenvalue
from skdp.oracle.releases.cuts import Cut
from skdp.oracle.releases.differences import GradientDifference
from skdp.oracle.releases.directions import NewtonDirection, SmallestEigenvalue
from skdp.oracle.releases.gradients import MECHANISMS, noise, noisy_gradient
from skdp.oracle.releases.histograms import BinCounts, MagnitudeCounts
from skdp.oracle.releases.laplace import LaplaceNoise
from skdp.oracle.releases.last_iterate import LastIterate, smoothness
from skdp.oracle.releases.mechanisms import GaussianNoise, Mechanism
from skdp.oracle.releases.moments import (
    Coordinates,
    GramSum,
    ResidualSquares,
    ShrunkGradientSum,
    unpack_gram,
)
from skdp.oracle.releases.noisy_sum import NoisySum
from skdp.oracle.releases.perturbed import PerturbedMinimum
from skdp.oracle.releases.samplers import Bin, Block, Everyone, FixedSize, Poisson, Sampler
from skdp.oracle.releases.shuffled_pass import ShuffledPass
from skdp.oracle.releases.sums import GradientSum, Sum
from skdp.oracle.releases.svrg_pass import SVRGPass

__all__ = [
    "MECHANISMS",
    "Bin",
    "BinCounts",
    "Block",
    "Coordinates",
    "Cut",
    "DirectionalSum",
    "Everyone",
    "FixedSize",
    "GaussianNoise",
    "GradientCount",
    "GradientDifference",
    "GradientSum",
    "GramSum",
    "LaplaceNoise",
    "LargestEigenvalue",
    "LastIterate",
    "MagnitudeCounts",
    "Mechanism",
    "NewtonDirection",
    "NoisySum",
    "NotAudited",
    "PerturbedMinimum",
    "Poisson",
    "Release",
    "ResidualCount",
    "ResidualSquares",
    "SVRGPass",
    "Sampler",
    "ShrunkGradientSum",
    "ShuffledPass",
    "SmallestEigenvalue",
    "SquaredNormSum",
    "Sum",
    "Terms",
    "audited",
    "noise",
    "noisy_gradient",
    "require_audited",
    "smoothness",
    "unpack_gram",
]
