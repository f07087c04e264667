"""Privacy events: the releases of a plan, as data without rows or noise.

An event describes a release in units that do not depend on its scale: noise is measured against
the *contribution bound*, the most that one record can add to the released sum. The cost of an event
is computed by :func:`skdp.accounting.price`.
"""

from skdp.accounting.events.base import (
    LABEL,
    Adjacency,
    Composed,
    Event,
    EventWrapper,
    UnknownCost,
    walk,
)
from skdp.accounting.events.mechanisms import ApproximateDP, Gaussian, Laplace, NoisyMaximum
from skdp.accounting.events.wrappers import (
    DisjointPass,
    FixedSizeSampled,
    OnBlock,
    Partition,
    PoissonSampled,
    Selected,
    Shuffled,
)

__all__ = [
    "LABEL",
    "Adjacency",
    "ApproximateDP",
    "Composed",
    "DisjointPass",
    "Event",
    "EventWrapper",
    "FixedSizeSampled",
    "Gaussian",
    "Laplace",
    "NoisyMaximum",
    "OnBlock",
    "Partition",
    "PoissonSampled",
    "Selected",
    "Shuffled",
    "UnknownCost",
    "walk",
]
