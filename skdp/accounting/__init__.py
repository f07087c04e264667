"""Privacy accounting: events, accountants, calibration and the privacy statement.

Nothing here reads rows or draws random numbers.
"""

from skdp.accounting import events
from skdp.accounting.accountant import (
    Accountant,
    Calibration,
    available_accountants,
    calibrate,
    price,
    supporting_accountants,
)
from skdp.accounting.additive import (
    GDPAccountant,
    PureDPAccountant,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from skdp.accounting.cost import Cost, composed
from skdp.accounting.events import *  # noqa: F403 - all events, listed in events/__init__.py
from skdp.accounting.interchange import from_dp_event, to_dp_event
from skdp.accounting.mixed import MixedAccountant
from skdp.accounting.pld import PLDAccountant
from skdp.accounting.rdp import RDPAccountant
from skdp.accounting.records import ReleaseRecord
from skdp.accounting.selection import SelectionAccountant, selection_delta, selection_epsilon
from skdp.accounting.shuffle import ShuffleAccountant
from skdp.accounting.statement import PrivacyStatement, model_card_section

__all__ = [
    "Accountant",
    "Calibration",
    "Cost",
    "GDPAccountant",
    "MixedAccountant",
    "PLDAccountant",
    "PrivacyStatement",
    "PureDPAccountant",
    "RDPAccountant",
    "ReleaseRecord",
    "SelectionAccountant",
    "ShuffleAccountant",
    "available_accountants",
    "calibrate",
    "composed",
    "from_dp_event",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "model_card_section",
    "price",
    "selection_delta",
    "selection_epsilon",
    "supporting_accountants",
    "to_dp_event",
]
__all__ += events.__all__
