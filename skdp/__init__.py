"""skdp: differentially private linear models for scikit-learn."""

from skdp import solvers
from skdp._version import __version__
from skdp.accounting import PrivacyStatement
from skdp.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    NoiseWarning,
    PrivacyBudget,
    PrivacyBudgetError,
    PrivacyWarning,
    SeededNoiseWarning,
)
from skdp.linear_model.partitions import ParquetColumns
from skdp.model_selection import privacy_of, total_privacy
from skdp.oracle.sources.partitioned import Chunks, Partitions
from skdp.preprocessing import DPStandardScaler

__all__ = [
    "Chunks",
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPRidge",
    "DPStandardScaler",
    "NoiseWarning",
    "ParquetColumns",
    "Partitions",
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
