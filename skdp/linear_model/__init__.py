"""Private linear models, and the budget that several fits can share."""

from skdp.fitting.budget import PrivacyBudget
from skdp.fitting.ledger import PrivacyBudgetError
from skdp.fitting.user_warnings import (
    ExactScoreWarning,
    NoiseWarning,
    NotPrivateWarning,
    PrivacyLeakWarning,
    PrivacyWarning,
    SeededNoiseWarning,
)
from skdp.linear_model.elastic_net import DPElasticNet, DPLasso
from skdp.linear_model.glm import DPGammaRegressor, DPPoissonRegressor, DPTweedieRegressor
from skdp.linear_model.logistic import DPLogisticRegression
from skdp.linear_model.quantile import DPQuantileRegressor
from skdp.linear_model.regression import DPHuberRegressor, DPLinearRegression, DPRidge
from skdp.linear_model.summary import CoefficientDisplay
from skdp.linear_model.svc import DPLinearSVC

__all__ = [
    "CoefficientDisplay",
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
    "DPTweedieRegressor",
    "ExactScoreWarning",
    "NoiseWarning",
    "NotPrivateWarning",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyLeakWarning",
    "PrivacyWarning",
    "SeededNoiseWarning",
]
