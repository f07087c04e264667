"""skdp: differentially private linear models for scikit-learn."""

from skdp import solvers
from skdp._version import __version__
from skdp.accounting import PrivacyStatement, total_privacy
from skdp.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    NoiseWarning,
    PrivacyBudget,
    PrivacyBudgetError,
    PrivacyWarning,
)
from skdp.model_selection import privacy_of
from skdp.preprocessing import DPStandardScaler

__all__ = [
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPRidge",
    "DPStandardScaler",
    "NoiseWarning",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyStatement",
    "PrivacyWarning",
    "__version__",
    "privacy_of",
    "solvers",
    "total_privacy",
]
