"""What searches, and fits inside other estimators, cost together."""

from skdp.model_selection.search_price import privacy_of
from skdp.model_selection.total import total_privacy

__all__ = ["privacy_of", "total_privacy"]
