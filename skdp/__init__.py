"""skdp: differentially private linear models for scikit-learn."""

from skdp import solvers
from skdp._version import __version__
from skdp.accounting import PrivacyStatement, total_privacy
from skdp.linear_model import (
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    PrivacyWarning,
)

__all__ = [
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPRidge",
    "PrivacyStatement",
    "PrivacyWarning",
    "__version__",
    "solvers",
    "total_privacy",
]
