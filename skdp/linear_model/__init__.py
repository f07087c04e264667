"""Private linear models."""

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
]
