"""Variance-reduced gradient descent with epochs that double: DP-SVRG++."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from skdp.solvers.variance_reduction import Array, VarianceReduced
from skdp.steps import ClippingRule

EPOCHS = 5


class SVRGPlusPlus(VarianceReduced):
    """Variance-reduced gradient descent with epochs that double, for convex losses (DP-SVRG++).

    As "svrg", but epoch s has ``2**s * inner_steps`` steps and starts at the last iterate of the
    one before, while the snapshot is the mean of its iterates (Wang, Ye, Xu 2017, Alg. 2). It needs
    no strong convexity.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps in all epochs together, at least 1: T epochs are
        ``(2**(T + 1) - 2) * inner_steps``.
    inner_steps : int or "auto", default="auto"
        m: the first epoch has twice as many, the next ones double; the last one may be cut short.
        "auto" makes about five epochs.
    batch_size, sampling, clip_norm, difference_clip, snapshot_share, snapshot_noise
        As for `SVRG`.
    learning_rate : float, "bb" or "auto", default="auto"
        Step size; the paper's is ``1 / (13 L)``, with L the curvature of the loss.

    References
    ----------
    D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
    More General. NeurIPS 2017.
    Z. Allen-Zhu, Y. Yuan: Improved SVRG for Non-Strongly-Convex or Sum-of-Non-Convex Objectives.
    ICML 2016.

    Examples
    --------
    >>> from skdp.solvers import SVRGPlusPlus
    >>> SVRGPlusPlus(inner_steps=10, max_iter=140).n_epochs  # 20 + 40 + 80
    3
    """

    name: ClassVar[str] = "svrg++"

    def __init__(
        self,
        *,
        max_iter: Any = "auto",
        inner_steps: Any = "auto",
        batch_size: int | float | str | None = "auto",
        sampling: str = "poisson",
        learning_rate: float | str = "auto",
        clip_norm: float | ClippingRule | str = "auto",
        difference_clip: float | str = "auto",
        snapshot_share: float | str = "auto",
        snapshot_noise: str = "once",
    ) -> None:
        self.max_iter = max_iter
        self.inner_steps = inner_steps
        self.batch_size = batch_size
        self.sampling = sampling
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.difference_clip = difference_clip
        self.snapshot_share = snapshot_share
        self.snapshot_noise = snapshot_noise

    def _epochs(self) -> Iterator[int]:
        length = int(self.inner_steps)
        while True:
            length *= 2
            yield length

    def _next_start(self, last: Array, mean: Array) -> Array:
        return last

    def _automatic_inner_steps(self, max_iter: int) -> int:
        return math.ceil(max_iter / (2.0 ** (EPOCHS + 1) - 2))
