"""Clipping norms in the course of a run: known beforehand, or following noisy counts."""

from __future__ import annotations

import math
from typing import Any

from sklearn.base import clone

from skdp._numbers import Array, shown
from skdp.oracle import (
    AllRows,
    GaussianNoise,
    GradientCount,
    NoisyStatistic,
    Oracle,
    Public,
    Sampler,
)
from skdp.solvers.checks import is_auto
from skdp.solvers.one_pass import count_ratio
from skdp.steps import AdaptiveClipping, clip_norms


def adaptive_clip(clip_norm: Any, automatic: float, mechanism: str = "gaussian") -> dict[str, Any]:
    """Return the rule that ``clip_norm`` stands for, with a number to start at, if it adapts."""
    if isinstance(clip_norm, str) and clip_norm == "adaptive":
        clip_norm = AdaptiveClipping()
    if not isinstance(clip_norm, AdaptiveClipping):
        return {}
    if mechanism != "gaussian":
        raise ValueError(
            "adaptive clipping counts gradients by their L2 norm, for Gaussian noise; got "
            f"mechanism={shown(mechanism)}. Nothing was released."
        )
    rule: AdaptiveClipping = clone(clip_norm)
    if is_auto(rule.initial):
        rule.initial = float(automatic)
    return {"clip_norm": rule}


def check_clip(clip_norm: Any, n_steps: int) -> None:
    """Raise ValueError unless ``clip_norm`` gives positive, finite norms."""
    if isinstance(clip_norm, AdaptiveClipping):
        clip_norm.check()
    else:
        clip_norms(clip_norm, n_steps)


class ClipTracker:
    """Gives the norm of one step after the other; an adaptive one asks for a count before each.

    Parameters
    ----------
    rule : float or ClippingRule
        Checked.
    noises : array of shape (n_steps,)
        Relative noise of the gradients, if there were no counts.
    public : Public

    Attributes
    ----------
    noises : array of shape (n_steps,)
        Relative noise of the gradients, beside the counts.
    """

    def __init__(self, rule: Any, noises: Array, public: Public) -> None:
        self.noises = noises
        self._rule = rule if isinstance(rule, AdaptiveClipping) else None
        self._step = 0
        if self._rule is None:
            self._norms = clip_norms(rule, len(noises))
            return
        # Gradients keep 1 - share of the squared budget; the counts have the same noise each.
        share = float(self._rule.share)
        self._norm = float(self._rule.initial)
        self.noises = noises * (1 - share) ** -0.5
        whole = float((noises**-2.0).sum())
        noise = count_ratio(public) * math.sqrt(len(noises) / (share * whole))
        self._mechanism = GaussianNoise(noise)

    def next(self, oracle: Oracle, point: Array, batch: Sampler | None) -> float:
        """Return the norm for the step from ``point`` on the rows that ``batch`` draws."""
        if self._rule is None:
            self._step += 1
            return float(self._norms[self._step - 1])
        rows = AllRows() if batch is None else batch
        count = NoisyStatistic(GradientCount(point, self._norm), self._mechanism, rows)
        share = float(oracle.ask(count)[0]) / rows.divisor(oracle.public)
        self._norm = self._rule.next_norm(self._norm, share)
        return self._norm
