"""Stages of a fit around its solver: scaling before it, recalibration after it."""
