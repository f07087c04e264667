"""What searches, and fits inside other estimators, cost together; score against budget."""

from skdp.model_selection.display import PrivacyUtilityDisplay
from skdp.model_selection.search_price import privacy_of
from skdp.model_selection.total import total_privacy

__all__ = ["PrivacyUtilityDisplay", "privacy_of", "total_privacy"]
