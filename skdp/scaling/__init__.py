"""Range, centre and size of columns, found privately and paid for, as the first stage of a fit."""

from skdp.scaling.shares import Shares, shares, whole_budget
from skdp.scaling.stage import Located, ScalingStage, Staged

__all__ = ["Located", "ScalingStage", "Shares", "Staged", "shares", "whole_budget"]
