"""Private linear models."""

from skdp.linear_model.classification import DPLinearSVC, DPLogisticRegression
from skdp.linear_model.inference import CoefficientDisplay
from skdp.linear_model.prior import PublicModel
from skdp.linear_model.regression import (
    DPElasticNet,
    DPGammaRegressor,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
    DPTweedieRegressor,
)

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
