"""skdp: differentially private linear models for scikit-learn."""

from skdp import solvers
from skdp._version import __version__
from skdp.accounting import PrivacyStatement
from skdp.fitting.partitions import ParquetColumns
from skdp.fitting.privacy import Privacy, SeededNoise
from skdp.linear_model import (
    CoefficientDisplay,
    DPElasticNet,
    DPGammaRegressor,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
    DPRidgeCV,
    DPTweedieRegressor,
    NoiseWarning,
    PrivacyBudget,
    PrivacyBudgetError,
    PrivacyWarning,
    RidgePathDisplay,
    SeededNoiseWarning,
)
from skdp.model_selection import Analysis, PrivacyUtilityDisplay, privacy_of, total_privacy
from skdp.objective import Box, L1Ball, L2Ball, Simplex
from skdp.oracle.sources.partitioned import Chunks, Partitions
from skdp.preprocessing import DPStandardScaler, DPTabularPreprocessor
from skdp.stages.column_bounds import PublicRange, PublicSample, RowNorm
from skdp.stages.inference.stage import CoefficientInference
from skdp.steps import AveragedGradient, HeavyBall

__all__ = [
    "Analysis",
    "AveragedGradient",
    "Box",
    "Chunks",
    "CoefficientDisplay",
    "CoefficientInference",
    "DPElasticNet",
    "DPGammaRegressor",
    "DPHuberRegressor",
    "DPLasso",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPQuantileRegressor",
    "DPRidge",
    "DPRidgeCV",
    "DPStandardScaler",
    "DPTabularPreprocessor",
    "DPTweedieRegressor",
    "HeavyBall",
    "L1Ball",
    "L2Ball",
    "NoiseWarning",
    "ParquetColumns",
    "Partitions",
    "Privacy",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyStatement",
    "PrivacyUtilityDisplay",
    "PrivacyWarning",
    "PublicRange",
    "PublicSample",
    "RidgePathDisplay",
    "RowNorm",
    "SeededNoise",
    "SeededNoiseWarning",
    "Simplex",
    "__version__",
    "privacy_of",
    "solvers",
    "total_privacy",
]
