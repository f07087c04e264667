"""Define clipping norms, the bound on one record's gradient in each step: fixed or adaptive."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from skdp._numbers import LARGEST_CLIP_NORM, LEAST_CLIP_NORM, is_real, require_numbers, shown
from skdp.steps.schedules import Named, named


@dataclass(eq=False, repr=False)
class AdaptiveClipping(BaseEstimator):
    """The clipping norm follows a quantile of the gradients' norms, estimated by noisy counts.

    At every step a noisy count estimates the fraction of the gradients that are shorter than the
    norm C, and ``C *= exp(-rate * (fraction - quantile))`` (Andrew, Thakkar, McMahan, Ramaswamy
    2021, sec. 2). The counts are releases of their own. Their answers change the norm; the noise
    *relative* to the norm, which determines the cost, is fixed before the run.
    ``clip_norm="adaptive"`` stands for this rule with its defaults, in the solvers "gd" and
    "adp_sgd".

    Parameters
    ----------
    quantile : float, default=0.9
        Fraction of the gradients that should not be clipped, in (0, 1).
    rate : float, default=0.2
        Speed at which the norm moves; positive.
    share : float, default=0.05
        Share of the squared budget that the counts get, in (0, 1).
    initial : float or "auto", default="auto"
        Norm at the first step; "auto" is the solver's own default.

    References
    ----------
    G. Andrew, O. Thakkar, H. B. McMahan, S. Ramaswamy: Differentially Private Learning with
    Adaptive Clipping. NeurIPS 2021.
    """

    quantile: float = 0.9
    rate: float = 0.2
    share: float = 0.05
    initial: float | str = "auto"

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        shares, positive = ("quantile", "share"), ("rate", "initial")
        require_numbers(self, shares, "be a number in (0, 1)", lambda one: 0 < one < 1)
        require_numbers(
            self, positive, "be a positive, finite number", lambda one: 0 < one < np.inf
        )

    def next_norm(self, norm: float, share: float) -> float:
        """Return the next norm, given the noisy ``share`` of the gradients within ``norm``.

        A share outside of [0, 1] is due to noise, and is clipped to that interval.

        Returns
        -------
        float
            Positive, and within the bounds on norms.
        """
        moved = norm * float(np.exp(-self.rate * (min(max(share, 0.0), 1.0) - self.quantile)))
        return min(max(moved, LEAST_CLIP_NORM), LARGEST_CLIP_NORM)


CLIPPING_RULES: dict[str, Callable[..., AdaptiveClipping]] = {"adaptive": AdaptiveClipping}

# What solvers accept as ``clip_norm``, beside "auto".
ClipNorm = float | Named | AdaptiveClipping


def clipping_rule(given: ClipNorm) -> ClipNorm:
    """Return the rule that ``clip_norm`` names; numbers and rules are returned as such.

    Returns
    -------
    float, str or AdaptiveClipping

    Raises
    ------
    ValueError
        If the name is unknown, or takes no such argument.
    """
    others = "'auto', a positive number, an AdaptiveClipping"
    return named("clip_norm", CLIPPING_RULES, given, others)


def constant_clip(given: ClipNorm) -> float:
    """Return the clipping norm of a method that has the same norm in all steps.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If it is no number, or not positive, or too small or large for float64 arithmetic.
    """
    rule = clipping_rule(given)
    if isinstance(rule, AdaptiveClipping):
        raise ValueError(
            "adaptive clipping follows noisy counts, which this solver does not request; solvers "
            "'gd' and 'adp_sgd' do."
        )
    if not is_real(rule):
        raise ValueError(
            "clip_norm must be 'auto', a positive number, an AdaptiveClipping or its name; got "
            f"{shown(rule)}."
        )
    if not LEAST_CLIP_NORM <= rule <= LARGEST_CLIP_NORM:
        raise ValueError(
            f"clip_norm must be positive and finite, from {LEAST_CLIP_NORM:g} to "
            f"{LARGEST_CLIP_NORM:g}; got {shown(rule)}."
        )
    return float(rule)
