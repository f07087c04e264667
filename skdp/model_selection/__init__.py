"""Select and evaluate models privately. Price plain searches and totals of fits."""

from skdp.model_selection.cross_validation import CrossValidation, dp_cross_validate
from skdp.model_selection.holdout import DPHoldout, dp_train_test_split
from skdp.model_selection.search import DPSearchCV
from skdp.model_selection.search_price import privacy_of
from skdp.model_selection.total import total_privacy

__all__ = [
    "CrossValidation",
    "DPHoldout",
    "DPSearchCV",
    "dp_cross_validate",
    "dp_train_test_split",
    "privacy_of",
    "total_privacy",
]
