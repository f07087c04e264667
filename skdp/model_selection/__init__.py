"""Select and evaluate models privately. Price plain searches and totals of fits."""

from skdp.model_selection.holdout import DPHoldout, dp_train_test_split
from skdp.model_selection.prices import privacy_of, total_privacy
from skdp.model_selection.search import CrossValidation, DPSearchCV, dp_cross_validate

__all__ = [
    "CrossValidation",
    "DPHoldout",
    "DPSearchCV",
    "dp_cross_validate",
    "dp_train_test_split",
    "privacy_of",
    "total_privacy",
]
