"""Privacy accounting: events, their price, calibration and the privacy statement.

Nothing here reads rows or draws random numbers.
"""

from skdp.accounting import events
from skdp.accounting.cost import Cost, composed
from skdp.accounting.events import *  # noqa: F403 - all events
from skdp.accounting.pairs import gaussian_delta, gaussian_epsilon, gaussian_mu
from skdp.accounting.pricing import Calibration, calibrate, delta_at, event_mu, price
from skdp.accounting.statement import PrivacyStatement, ReleaseRecord

__all__ = [
    "Calibration",
    "Cost",
    "PrivacyStatement",
    "ReleaseRecord",
    "calibrate",
    "composed",
    "delta_at",
    "event_mu",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "price",
]
__all__ += events.__all__
