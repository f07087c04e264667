"""What it costs: events, accountants, calibration and the statement. No rows, no randomness."""

from skdp.accounting.accountant import Accountant, UnknownCost, available_accountants
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.advanced import AdvancedComposition, OptimalComposition
from skdp.accounting.balls_and_bins import BallsAndBinsModel
from skdp.accounting.calibration import Calibration, calibrate, knowing, price
from skdp.accounting.events import (
    ApproximateDP,
    BallsAndBins,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    ObjectivePerturbed,
    OnBlock,
    OnePass,
    Partition,
    PoissonSampled,
    Selected,
    Shuffled,
)
from skdp.accounting.events.last_iterate import HiddenIterates
from skdp.accounting.gaussian_tradeoff import gaussian_delta, gaussian_epsilon, gaussian_mu
from skdp.accounting.gdp import GaussianDP
from skdp.accounting.mixed import MixedComposition
from skdp.accounting.objective import ObjectiveModel, objective_delta
from skdp.accounting.parallel import ParallelComposition
from skdp.accounting.pld import PrivacyLossDistribution
from skdp.accounting.pure import PureDP
from skdp.accounting.rdp import RenyiDP
from skdp.accounting.release_lines import ReleaseRecord
from skdp.accounting.selection import SelectionModel, selection_delta, selection_epsilon
from skdp.accounting.shuffle import ShuffleModel
from skdp.accounting.statement import PrivacyStatement, compose_statements
from skdp.accounting.zcdp import ZeroConcentratedDP, zcdp_delta, zcdp_epsilon, zcdp_rho

__all__ = [
    "Accountant",
    "Adjacency",
    "AdvancedComposition",
    "ApproximateDP",
    "BallsAndBins",
    "BallsAndBinsModel",
    "Calibration",
    "Composed",
    "Event",
    "FixedSizeSampled",
    "Gaussian",
    "GaussianDP",
    "HiddenIterates",
    "Laplace",
    "MixedComposition",
    "ObjectiveModel",
    "ObjectivePerturbed",
    "OnBlock",
    "OnePass",
    "OptimalComposition",
    "ParallelComposition",
    "Partition",
    "PoissonSampled",
    "PrivacyLossDistribution",
    "PrivacyStatement",
    "PureDP",
    "ReleaseRecord",
    "RenyiDP",
    "Selected",
    "SelectionModel",
    "ShuffleModel",
    "Shuffled",
    "UnknownCost",
    "ZeroConcentratedDP",
    "available_accountants",
    "calibrate",
    "compose_statements",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "knowing",
    "objective_delta",
    "price",
    "selection_delta",
    "selection_epsilon",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]
