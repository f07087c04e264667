"""skdp: differentially private linear models for scikit-learn."""

from skdp import solvers
from skdp._version import __version__
from skdp.accounting import PrivacyStatement
from skdp.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    DPRidgeCV,
    NoiseWarning,
    PrivacyBudget,
    PrivacyBudgetError,
    PrivacyWarning,
    SeededNoiseWarning,
)
from skdp.model_selection import Analysis, privacy_of, total_privacy
from skdp.preprocessing import DPStandardScaler

__all__ = [
    "Analysis",
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPRidge",
    "DPRidgeCV",
    "DPStandardScaler",
    "NoiseWarning",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyStatement",
    "PrivacyWarning",
    "SeededNoiseWarning",
    "__version__",
    "privacy_of",
    "solvers",
    "total_privacy",
]
