"""Who asks: the estimators."""

from skdp.linear_model.budget import PrivacyBudget, PrivacyBudgetError
from skdp.linear_model.logistic import DPLogisticRegression
from skdp.linear_model.noise_warning import NoiseWarning
from skdp.linear_model.parameters import PrivacyWarning, SeededNoiseWarning
from skdp.linear_model.regression import DPLinearRegression, DPRidge
from skdp.linear_model.ridge_cv import DPRidgeCV

__all__ = [
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPRidge",
    "DPRidgeCV",
    "NoiseWarning",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyWarning",
    "SeededNoiseWarning",
]
