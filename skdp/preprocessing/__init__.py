"""Preparation of columns, privately: for the estimators here, and for other models."""

from skdp.preprocessing.standard_scaler import DPStandardScaler
from skdp.preprocessing.tabular import DPTabularPreprocessor, check

__all__ = ["DPStandardScaler", "DPTabularPreprocessor", "check"]
