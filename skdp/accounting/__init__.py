"""What it costs: events, accountants, calibration and the statement. No rows, no randomness."""

from skdp.accounting.accountant import Accountant, UnknownCost, available_accountants
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.calibration import Calibration, calibrate, knowing, price
from skdp.accounting.events import Composed, Event, Gaussian, OnBlock, Partition
from skdp.accounting.gaussian_tradeoff import gaussian_delta, gaussian_epsilon, gaussian_mu
from skdp.accounting.gdp import GaussianDP
from skdp.accounting.statement import PrivacyStatement, ReleaseRecord, total_privacy

__all__ = [
    "Accountant",
    "Adjacency",
    "Calibration",
    "Composed",
    "Event",
    "Gaussian",
    "GaussianDP",
    "OnBlock",
    "Partition",
    "PrivacyStatement",
    "ReleaseRecord",
    "UnknownCost",
    "available_accountants",
    "calibrate",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "knowing",
    "price",
    "total_privacy",
]
