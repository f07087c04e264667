"""Report an audit with canaries, and draw its trade-off curve."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skdp._numbers import Array
from skdp.accounting import gaussian_epsilon
from skdp.audit import bounds
from skdp.metrics.displays import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Claim:
    """Guarantee that an estimator states.

    Attributes
    ----------
    epsilon, delta : float
    mu : float or None
        Gaussian-DP parameter, where the fit has one.
    adjacency : str
    """

    epsilon: float
    delta: float
    mu: float | None
    adjacency: str


@dataclass(frozen=True)
class CanaryReport:
    """Lower bounds that canaries prove for a fit.

    Attributes
    ----------
    estimator : str
    claim : Claim
    epsilon_lower : float
        The fit is not (epsilon, delta)-DP for any smaller epsilon, at the claim's delta. Exact
        binomial bounds; nothing is assumed about the mechanism.
    mu_lower : float
        The fit is not mu-GDP for any smaller mu.
    confidence : float
        Probability with which each of the two holds, at least.
    n_fits : int
        Fits that were counted.
    scores_with, scores_without : array
        Scores that separate the fits with and without the record; for a picture.
    """

    estimator: str
    claim: Claim
    epsilon_lower: float
    mu_lower: float
    confidence: float
    n_fits: int
    scores_with: Array = field(repr=False)
    scores_without: Array = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether no bound is above the claim."""
        mu = math.inf if self.claim.mu is None else self.claim.mu
        shown = max(self.epsilon_lower, self.epsilon_of_mu)
        return shown <= self.claim.epsilon and self.mu_lower <= mu

    @property
    def epsilon_of_mu(self) -> float:
        """Epsilon that ``mu_lower`` amounts to, at the claim's delta; 0 if the claim has no mu.

        If the fit is Gaussian, as it claims, this is a lower bound on its epsilon, too; and a much
        better one than ``epsilon_lower``, which few fits can make large.
        """
        if self.claim.mu is None or self.claim.delta == 0:
            return 0.0
        return gaussian_epsilon(self.mu_lower, self.claim.delta)

    @property
    def share(self) -> float:
        """The better of the two lower bounds, over the epsilon that is claimed."""
        return max(self.epsilon_lower, self.epsilon_of_mu) / self.claim.epsilon

    def __str__(self) -> str:
        mu = "" if self.claim.mu is None else f", mu {self.claim.mu:.4g}"
        verdict = "within the claim" if self.ok else "THE CLAIM IS BROKEN"
        return (
            f"canaries in {self.n_fits} fits of {self.estimator}, confidence "
            f"{self.confidence:g}: {verdict}\n"
            f"  claimed: epsilon {self.claim.epsilon:.4g} at delta {self.claim.delta:g}{mu}, "
            f"{self.claim.adjacency}\n"
            f"  shown:   epsilon >= {self.epsilon_lower:.4g} (whatever the mechanism), mu >= "
            f"{self.mu_lower:.4g} (epsilon {self.epsilon_of_mu:.4g} if Gaussian), "
            f"{100 * self.share:.0f} % of the claim"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, object]:
        """Return the report, without scores, as plain Python objects, ready for JSON.

        Returns
        -------
        dict
        """
        names = ("estimator", "epsilon_lower", "mu_lower", "epsilon_of_mu", "share", "n_fits")
        fields = {name: getattr(self, name) for name in (*names, "confidence", "ok")}
        return {**fields, "claim": vars(self.claim).copy()}

    def plot(self, ax: Axes | None = None) -> TradeOffDisplay:
        """Draw the trade-off curve of the fits against the claim; needs matplotlib.

        Returns
        -------
        TradeOffDisplay
        """
        return TradeOffDisplay(self).plot(ax)


class TradeOffDisplay:
    """Plot of the measured trade-off curve next to the claimed one.

    Every threshold on the scores is a test for the record, with a rate of false positives and one
    of false negatives. The claim is a curve that no test gets below, but for chance.

    Parameters
    ----------
    report : CanaryReport

    Attributes
    ----------
    ax_, figure_
        Of matplotlib, once drawn.
    """

    def __init__(self, report: CanaryReport) -> None:
        self.report = report

    def curve(self) -> tuple[Array, Array]:
        """Return the rates of false positives and false negatives, one for every threshold.

        Returns
        -------
        false_positives, false_negatives : arrays of shape (n_thresholds,)
        """
        there, other = self.report.scores_with, self.report.scores_without
        thresholds = np.sort(np.concatenate([there, other, [-np.inf]]))
        missed = np.searchsorted(np.sort(there), thresholds, side="right") / len(there)
        alarms = 1 - np.searchsorted(np.sort(other), thresholds, side="right") / len(other)
        return alarms, missed

    def plot(self, ax: Axes | None = None) -> TradeOffDisplay:
        """Draw into ``ax``, or into a new figure.

        Returns
        -------
        TradeOffDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        ax = axes_or_new(ax)
        claim, grid = self.report.claim, np.linspace(0, 1, 501)
        ax.fill_between(
            grid,
            bounds.trade_off(grid, claim.epsilon, claim.delta),
            alpha=0.2,
            label=f"ruled out by epsilon {claim.epsilon:.3g}, delta {claim.delta:g}",
        )
        if claim.mu is not None:
            curve = bounds.gaussian_trade_off(grid, claim.mu)
            ax.plot(grid, curve, "k--", label=f"claim: mu {claim.mu:.3g}")
        ax.plot(*self.curve(), label=f"measured: mu at least {self.report.mu_lower:.3g}")
        ax.set_xlabel("false positives")
        ax.set_ylabel("false negatives")
        ax.set_title(self.report.estimator)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
