"""Calibrating the predictions of a private model, privately, as the last stage of a fit."""

from skdp.calibration.stage import Calibrated, calibration_share

__all__ = ["Calibrated", "calibration_share"]
