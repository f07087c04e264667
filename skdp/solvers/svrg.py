"""Stochastic variance-reduced gradient descent: DP-SVRG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import ClassVar

from skdp.solvers.variance_reduction import Array, VarianceReduced, documented

EPOCHS = 10


@documented
class SVRG(VarianceReduced):
    """Variance-reduced gradient descent: rare full gradients, cheap differences between (DP-SVRG).

    An epoch takes a noisy full gradient g~ at a snapshot w~, then ``inner_steps`` steps
    ``w = prox(w - eta * (noisy mean difference of gradients over a batch + g~))`` from w~, each
    record's difference between w and w~ clipped on its own norm. The mean of the iterates is the
    next snapshot, and in the end what is returned (Wang, Ye, Xu 2017, Alg. 1).

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of inner steps in all epochs together, at least 1: T epochs of m steps are ``T * m``.
    inner_steps : int or "auto", default="auto"
        Steps in an epoch, m; the last epoch may be shorter. "auto" makes ten epochs.
    {shared}

    Notes
    -----
    The paper's noise holds for ``epsilon <= c T m / n**2``, which its own experiments exceed by
    far. Here the accountant decides. Batches so small that its noise drowns them make a
    `NoiseWarning`.

    References
    ----------
    {paper}
    C. Tan, S. Ma, Y.-H. Dai, Y. Qian: Barzilai-Borwein Step Size for Stochastic Gradient Descent.
    NeurIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(solver="svrg", epsilon=3.0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.85
    True
    """

    name: ClassVar[str] = "svrg"

    def _epochs(self) -> Iterator[int]:
        return itertools.repeat(self.inner_steps)

    def _next_start(self, last: Array, mean: Array) -> Array:
        return mean

    def _automatic_inner_steps(self, max_iter: int) -> int:
        return math.ceil(max_iter / EPOCHS)
