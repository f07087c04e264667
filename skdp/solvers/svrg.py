"""Stochastic variance-reduced gradient descent: DP-SVRG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, ClassVar

from skdp.solvers.variance_reduction import Array, VarianceReduced
from skdp.steps import ClippingRule

EPOCHS = 10


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
    batch_size : int, float, None or "auto", default="auto"
        Expected rows in a batch, as a number or a fraction; None takes all rows. Small batches are
        quick but need far more noise for the same budget: see the notes.
    sampling : {"poisson", "fixed_size", "shuffled", "balls_and_bins"}, default="poisson"
        How batches are drawn; "fixed_size" under replace_one only.
    learning_rate : float, "bb" or "auto", default="auto"
        Step size. "bb" takes Barzilai and Borwein's from the noisy snapshots, noised "once".
    clip_norm : float, ClippingRule or "auto", default="auto"
        L2 bound of one record's gradient in a snapshot; a rule goes by epochs.
    difference_clip : float or "auto", default="auto"
        L2 bound of one record's difference. Whatever it is, the bound falls with the distance from
        the snapshot, and the noise with it: ``min(difference_clip, curvature * row_bound_**2 *
        |w - w~|)``, if there is a bound on rows and they have no weights. "auto" is
        ``2 * clip_norm``.
    snapshot_share : float or "auto", default="auto"
        Part of the squared budget that snapshots get, in (0, 1). "auto" is 0.5.
    snapshot_noise : {"once", "fresh"}, default="once"
        "fresh" draws new noise on the snapshot at every step, as the paper prints it: the same
        averaged noise at equal cost, more of it in a step.

    Notes
    -----
    The paper's noise holds for ``epsilon <= c T m / n**2``, which its own experiments exceed by
    far. Here the accountant decides. Batches so small that its noise drowns them make a
    `NoiseWarning`.

    References
    ----------
    D. Wang, M. Ye, J. Xu: Differentially Private Empirical Risk Minimization Revisited: Faster and
    More General. NeurIPS 2017.
    C. Tan, S. Ma, Y.-H. Dai, Y. Qian: Barzilai-Borwein Step Size for Stochastic Gradient Descent.
    NeurIPS 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(solver="svrg", epsilon=3.0, random_state=0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.85
    True
    """

    name: ClassVar[str] = "svrg"

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
        return itertools.repeat(self.inner_steps)

    def _next_start(self, last: Array, mean: Array) -> Array:
        return mean

    def _automatic_inner_steps(self, max_iter: int) -> int:
        return math.ceil(max_iter / EPOCHS)
