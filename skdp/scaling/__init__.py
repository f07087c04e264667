"""Range, centre and size of columns, found privately and paid for, as the first stage of a fit."""

from skdp.scaling.shares import Shares, shares
from skdp.scaling.stage import ScalingStage, Staged

__all__ = ["ScalingStage", "Shares", "Staged", "shares"]
