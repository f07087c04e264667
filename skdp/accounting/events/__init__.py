"""The algebra of privacy events: what was done, as data, with no rows and no noise in it.

An event says what a release did to the rows in units that make it free of scale: noise is
measured against the *contribution bound*, the most that one record can add to the released sum.
What an event costs is for an accountant to say; see :mod:`skdp.accounting.accountant`.
"""

from skdp.accounting.events.base import Composed, Event
from skdp.accounting.events.blocks import (
    BallsAndBins,
    OnBlock,
    Partition,
    in_later_epochs,
    partitions_in,
)
from skdp.accounting.events.mechanisms import ApproximateDP, Gaussian, Laplace
from skdp.accounting.events.objective import ObjectivePerturbed
from skdp.accounting.events.one_pass import OnePass
from skdp.accounting.events.sampling import FixedSizeSampled, PoissonSampled, Shuffled
from skdp.accounting.events.selection import Selected

__all__ = [
    "ApproximateDP",
    "BallsAndBins",
    "Composed",
    "Event",
    "FixedSizeSampled",
    "Gaussian",
    "Laplace",
    "ObjectivePerturbed",
    "OnBlock",
    "OnePass",
    "Partition",
    "PoissonSampled",
    "Selected",
    "Shuffled",
    "in_later_epochs",
    "partitions_in",
]
