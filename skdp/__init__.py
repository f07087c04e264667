"""skdp: differentially private linear models for scikit-learn."""

from skdp import solvers
from skdp._version import __version__
from skdp.accounting import PrivacyStatement
from skdp.fitting.partitions import ParquetColumns
from skdp.linear_model import (
    CoefficientDisplay,
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    DPRidgeCV,
    NoiseWarning,
    PrivacyBudget,
    PrivacyBudgetError,
    PrivacyWarning,
    RidgePathDisplay,
    SeededNoiseWarning,
)
from skdp.model_selection import Analysis, PrivacyUtilityDisplay, privacy_of, total_privacy
from skdp.oracle.sources.partitioned import Chunks, Partitions
from skdp.preprocessing import DPStandardScaler, DPTabularPreprocessor
from skdp.stages.column_bounds import PublicSample

__all__ = [
    "Analysis",
    "Chunks",
    "CoefficientDisplay",
    "DPElasticNet",
    "DPHuberRegressor",
    "DPLasso",
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPRidge",
    "DPRidgeCV",
    "DPStandardScaler",
    "DPTabularPreprocessor",
    "NoiseWarning",
    "ParquetColumns",
    "Partitions",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyStatement",
    "PrivacyUtilityDisplay",
    "PrivacyWarning",
    "PublicSample",
    "RidgePathDisplay",
    "SeededNoiseWarning",
    "__version__",
    "privacy_of",
    "solvers",
    "total_privacy",
]
