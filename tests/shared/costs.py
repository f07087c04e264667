"""Prices of plans, by all theorems and by dominating pairs only."""

from __future__ import annotations

from skdp.accounting import price
from skdp.accounting.events import opened, paths
from skdp.accounting.pricing import pairs_epsilon


def cost(event, delta, adjacency):
    """Certified epsilon of a plan."""
    return price(event, delta, adjacency)[0]


def by_pairs(event, delta, adjacency):
    """Epsilon of a plan by dominating pairs, even if it has a closed form."""
    met = paths(event, adjacency)
    return max(pairs_epsilon(opened(path), delta, adjacency) for path in met)
