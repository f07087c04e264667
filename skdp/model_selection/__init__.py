"""Who chooses: what a search over hyperparameters costs."""

from skdp.model_selection.search_price import privacy_of

__all__ = ["privacy_of"]
