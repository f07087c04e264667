"""What fits cost together, by hand."""

from __future__ import annotations

import math

from skdp.accounting import gaussian_epsilon, gaussian_mu

DELTA = 1e-6


def together(*epsilons, delta=DELTA):
    """Fits calibrated to each epsilon are one Gaussian of the summed squares of mu."""
    return gaussian_epsilon(math.sqrt(sum(gaussian_mu(e, delta) ** 2 for e in epsilons)), delta)
