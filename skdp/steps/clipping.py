"""Define clipping norms, the bound on one record's gradient in each step: fixed or adaptive."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from skdp._numbers import LARGEST_CLIP_NORM, LEAST_CLIP_NORM, Array, is_real, require_numbers, shown
from skdp.steps.schedules import Named, named


class ClippingRule(BaseEstimator):
    """Base of clipping rules; an object, so that a grid search can reach its parameters."""

    @abstractmethod
    def norms(self, n_steps: int) -> Array:
        """Return the clipping norms of steps 1..n_steps.

        Returns
        -------
        array of shape (n_steps,)
            Each of them positive.
        """


class GeometricClipping(ClippingRule):
    """Clipping norms move geometrically from ``first`` to ``last``.

    Gradients shrink as a fit proceeds, and the noise, which is proportional to the clipping norm,
    shrinks with a norm that falls with them.

    Parameters
    ----------
    first : float, default=10.0
        Norm at the first step; positive.
    last : float, default=1.0
        Norm at the last step; positive.
    """

    def __init__(self, first: float = 10.0, last: float = 1.0) -> None:
        self.first = first
        self.last = last

    def norms(self, n_steps: int) -> Array:
        return np.geomspace(self.first, self.last, n_steps)


@dataclass(eq=False, repr=False)
class AdaptiveClipping(ClippingRule):
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

    def norms(self, n_steps: int) -> Array:
        raise ValueError(
            "adaptive clipping follows noisy counts, which this solver does not request; solvers "
            "'gd' and 'adp_sgd' do."
        )

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


CLIPPING_RULES: dict[str, Callable[..., ClippingRule]] = {
    "adaptive": AdaptiveClipping,
    "geometric": GeometricClipping,
}

# What solvers accept as ``clip_norm``, beside "auto".
ClipNorm = float | Named | ClippingRule


def clipping_rule(given: ClipNorm) -> ClipNorm:
    """Return the rule that ``clip_norm`` names; numbers and rules are returned as such.

    Returns
    -------
    float, str or ClippingRule

    Raises
    ------
    ValueError
        If the name is unknown, or takes no such argument.
    """
    others = "'auto', a positive number, a ClippingRule"
    return named("clip_norm", CLIPPING_RULES, given, others)


def clip_norms(rule: ClipNorm, n_steps: int) -> Array:
    """Turn a number, a name or a rule into an array of ``n_steps`` clipping norms.

    Returns
    -------
    array of shape (n_steps,)

    Raises
    ------
    ValueError
        If it is neither, or a norm is not positive or too small or large for float64 arithmetic.
    """
    rule = clipping_rule(rule)
    if isinstance(rule, ClippingRule):
        norms = np.asarray(rule.norms(n_steps), dtype=np.float64)
    elif is_real(rule):
        norms = np.full(n_steps, float(rule))
    else:
        raise ValueError(
            "clip_norm must be 'auto', a positive number, a ClippingRule or its name; got "
            f"{shown(rule)}."
        )
    inside = (norms >= LEAST_CLIP_NORM) & (norms <= LARGEST_CLIP_NORM)
    if norms.shape != (n_steps,) or not inside.all():
        raise ValueError(
            f"clip_norm must give positive, finite norms, from {LEAST_CLIP_NORM:g} to "
            f"{LARGEST_CLIP_NORM:g}; got {shown(rule)}."
        )
    return norms
