"""Variance-reduced gradient descent with epochs that double: DP-SVRG++."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from skdp.solvers.variance_reduction import Array, VarianceReduced, documented

EPOCHS = 5


@documented
class SVRGPlusPlus(VarianceReduced):
    """Variance-reduced gradient descent with epochs that double, for convex losses (DP-SVRG++).

    As "svrg", but epoch s has ``2**s * inner_steps`` steps and starts at the last iterate of the
    one before, while the snapshot is the mean of its iterates (Wang, Ye, Xu 2017, Alg. 2). It needs
    no strong convexity. The paper's steps are ``1 / (13 L)``, with L the curvature of the loss.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps in all epochs together, at least 1: T epochs are
        ``(2**(T + 1) - 2) * inner_steps``.
    inner_steps : int or "auto", default="auto"
        Steps m: the first epoch has twice as many, the next ones double; the last one may be cut
        short. "auto" makes about five epochs.
    {shared}

    References
    ----------
    {paper}
    Z. Allen-Zhu, Y. Yuan: Improved SVRG for Non-Strongly-Convex or Sum-of-Non-Convex Objectives.
    ICML 2016.

    Examples
    --------
    >>> from skdp.solvers import SVRGPlusPlus
    >>> SVRGPlusPlus(inner_steps=10, max_iter=140).n_epochs  # 20 + 40 + 80
    3
    """

    name: ClassVar[str] = "svrg++"

    def _epochs(self) -> Iterator[int]:
        length = int(self.inner_steps)
        while True:
            length *= 2
            yield length

    def _next_start(self, last: Array, mean: Array) -> Array:
        return last

    def _automatic_inner_steps(self, max_iter: int) -> int:
        return math.ceil(max_iter / (2.0 ** (EPOCHS + 1) - 2))
