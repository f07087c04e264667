"""Private linear models."""

from skdp.linear_model.classification import DPLinearSVC, DPLogisticRegression
from skdp.linear_model.glm import DPGammaRegressor, DPPoissonRegressor, DPTweedieRegressor
from skdp.linear_model.prior import PublicModel
from skdp.linear_model.regression import (
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPQuantileRegressor,
    DPRidge,
)
from skdp.linear_model.summary import CoefficientDisplay

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
    "PublicModel",
]
