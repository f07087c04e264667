"""Preparation of columns, privately: for the estimators here, and for other models."""

from skdp.preprocessing.decisions import check
from skdp.preprocessing.standard_scaler import DPStandardScaler
from skdp.preprocessing.tabular import DPTabularPreprocessor

__all__ = ["DPStandardScaler", "DPTabularPreprocessor", "check"]
