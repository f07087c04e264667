"""Bound epsilon and mu from below, by fits with and without a worst-case record, and report it."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import _is_fitted

from skdp._fitting.privacy import SeededNoise
from skdp._numbers import Array, Mask
from skdp._version import __version__
from skdp.accounting import Adjacency, PrivacyStatement, gaussian_epsilon
from skdp.accounting.interchange import plain
from skdp.audit.neighbours import labels_of, made_up_data, relation_of
from skdp.audit.replaying import ReplayReport, Report, audited_clone, replay, takes_weights

SCOPE = (
    "An audit finds bugs. It proves none absent. Replay holds for the records that it tried, "
    "canaries for one record and what was looked at. The figures on made-up rows may be shown to "
    "anybody. Those on private rows are not private."
)
CANARY_FIGURES = "epsilon_lower", "mu_lower", "epsilon_of_mu", "share", "n_fits", "confidence"
N_ROWS = 100  # of made-up data; what one record shows does not depend on it
LONG, FAR = 1e3, 1e6  # a worst-case record: longer than rows are kept to, with a far target
LIGHT = 1e-200  # weight of the other records of made-up data: they add nothing
DIRECTION_SHARE = 0.15  # of the fits, from which the direction is learned; they are not counted


def bounds_from_errors(
    errors: int, guesses: int, delta: float, confidence: float
) -> tuple[float, float]:
    """Return the epsilon and the mu that guesses of fair, secret coins prove.

    A test has ``FPR + exp(epsilon) FNR >= 1 - delta``, and the same with both exchanged (Kairouz,
    Oh, Viswanath 2015, Thm 2.1). So a guess of a fair coin is wrong with probability ``(1 - delta)
    / (1 + exp(epsilon))`` at least, and under mu-GDP with ``Phi(-mu/2)`` (Dong, Roth, Su 2019, eq.
    6).

    Parameters
    ----------
    errors, guesses : int
        Wrong guesses, of so many. The coins are independent.
    delta : float
    confidence : float
        Probability with which the bounds hold: that of an exact binomial bound (Clopper and Pearson
        1934).

    Returns
    -------
    epsilon, mu : float
    """
    test = stats.binomtest(errors, guesses, alternative="less")
    worst = float(test.proportion_ci(confidence, method="exact").high)
    if worst >= (1 - delta) / 2:
        return 0.0, 0.0
    return math.log((1 - delta - worst) / worst), -2 * float(stats.norm.ppf(worst))


def canaries(
    estimator: BaseEstimator,
    *,
    n_fits: int = 4000,
    confidence: float = 0.999,
    random_state: int | None = None,
) -> CanaryReport:
    """Bound epsilon and mu from below, by fits with and without a worst-case record.

    A coin decides for each fit whether the record is in: a long row with a far target, or of the
    last class. Under "zero_out" it has weight 0 in the other fits. Under "replace_one" its target
    is another one there. The other records add next to nothing, so that nothing hides the one. The
    coin is guessed only from the coefficients and intercepts. If guesses are right too often for
    the claim, the claim is false. The direction in which to look is learned from some of the fits,
    which are not counted.

    Parameters
    ----------
    estimator : estimator
        Clones of it are fitted, without their ``budget``. Their noise has to differ from fit to
        fit: that of the system, or of a `numpy.random.Generator`.
    n_fits : int, default=4000
        At least 100. Bounds are a few per cent off for every 4000.
    confidence : float, default=0.999
        Of the bounds. A true claim is reported as broken with probability ``1 - confidence``.
    random_state : int, default=None
        Seed of the coins.

    Returns
    -------
    CanaryReport

    Raises
    ------
    ValueError
        If ``n_fits`` or ``confidence`` is not allowed, or the noise can be repeated.

    Examples
    --------
    >>> from skdp import DPLinearRegression, audit
    >>> model = DPLinearRegression(solver="gd", max_iter=1, scaling="none", epsilon=4)
    >>> report = audit.canaries(model, n_fits=100)
    >>> print(report)  # doctest: +SKIP
    >>> round(report.claim.mu, 2), report.confidence
    (0.84, 0.999)
    """
    if n_fits < 100 or not 0.5 < confidence < 1:
        raise ValueError(
            "canaries: n_fits must be at least 100 and confidence lie in (0.5, 1), got "
            f"{n_fits!r}, {confidence!r}."
        )
    audited = audited_clone(estimator)
    if any(isinstance(value, SeededNoise) for value in audited.get_params().values()):
        raise ValueError(
            f"{type(audited).__name__}: with one seed all fits have the same noise. Audit it "
            "with noise='system'."
        )
    coins = np.random.default_rng(random_state).integers(2, size=n_fits)
    data = _data(audited)
    vectors = []
    for coin in coins:
        model = _fitted_clone(audited, data[coin])
        vectors.append(np.append(np.ravel(model.coef_), model.intercept_))
    outputs, is_in = np.array(vectors), coins == 1
    # The direction that separates the two best comes from fits that do not count afterwards.
    n_learn = int(DIRECTION_SHARE * n_fits)
    direction, middle = _direction(outputs[:n_learn], is_in[:n_learn])
    scores, is_in = (outputs[n_learn:] - middle) @ direction, is_in[n_learn:]
    wrong = int(((scores > 0) != is_in).sum())
    claim: PrivacyStatement = model.privacy_
    lower = bounds_from_errors(wrong, len(scores), claim.delta, confidence)
    parts = scores[is_in], scores[~is_in]
    return CanaryReport(type(estimator).__name__, claim, *lower, confidence, len(scores), *parts)


def _data(estimator: BaseEstimator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the data set that is fitted without the record, and that with it."""
    # The record's target in the neighbouring data, under replace-one, and in the data.
    targets: list[Any] = [-FAR, FAR]
    X, y = np.zeros((N_ROWS, 1)), np.zeros(N_ROWS)
    if is_classifier(estimator):
        targets = labels_of(estimator, [0, 1])
        y = np.resize(np.asarray(targets), N_ROWS)
    is_replaced = relation_of(estimator) is Adjacency.REPLACE_ONE
    weighted = takes_weights(estimator, X, y)
    X[0], y[0] = LONG, targets[-1]
    there, other = ({"X": X.copy(), "y": y.copy()} for _ in range(2))
    if is_replaced or not weighted:
        other["y"][0] = targets[0]
    if not is_replaced:
        other["X"][0] = 0.0
    if weighted:
        for data, weight in ((there, 1.0), (other, float(is_replaced))):
            data["sample_weight"] = np.append(weight, np.full(N_ROWS - 1, LIGHT))
    return other, there


def _fitted_clone(estimator: BaseEstimator, data: Mapping[str, Any]) -> BaseEstimator:
    """Return a fitted clone of an estimator."""
    with warnings.catch_warnings(action="ignore"):  # that so few rows cannot teach a model anything
        return clone(estimator).fit(**data)


def _direction(vectors: Array, is_in: Mask) -> tuple[Array, Array]:
    """Return Fisher's direction, and the middle between the means."""
    means = [vectors[~is_in].mean(axis=0), vectors[is_in].mean(axis=0)]
    centred = vectors - np.where(is_in[:, None], means[1], means[0])
    covariance = np.atleast_2d(centred.T @ centred / len(vectors))
    scale = np.trace(covariance) / len(covariance)
    covariance += 1e-9 * scale * np.eye(len(covariance))  # constant parts of the scores
    return np.linalg.solve(covariance, means[1] - means[0]), (means[0] + means[1]) / 2


# ---------------------------------------------------------------------- reports


@dataclass(frozen=True)
class CanaryReport(Report):
    """Lower bounds that canaries prove for a fit.

    Attributes
    ----------
    estimator : str
    claim : PrivacyStatement
        Of a fit.
    epsilon_lower : float
        The fit is not (epsilon, delta)-DP for any smaller epsilon, at the claim's delta. Nothing is
        assumed about the mechanism.
    mu_lower : float
        The fit is not mu-GDP for any smaller mu.
    confidence : float
        Probability with which the bounds hold, at least.
    n_fits : int
        Fits that were counted.
    scores_with, scores_without : array
        Scores that separate the fits with and without the record, for a picture.
    """

    estimator: str
    claim: PrivacyStatement
    epsilon_lower: float
    mu_lower: float
    confidence: float
    n_fits: int
    scores_with: Array = field(repr=False)
    scores_without: Array = field(repr=False)

    @property
    def ok(self) -> bool:
        """True if no bound is above the claim."""
        return self.share <= 1 and (self.claim.mu is None or self.mu_lower <= self.claim.mu)

    @property
    def epsilon_of_mu(self) -> float:
        """Epsilon that ``mu_lower`` amounts to, at the claim's delta. 0 if the claim has no mu.

        If the fit is Gaussian, as it claims, this is also a lower bound on its epsilon, and a much
        better bound than ``epsilon_lower``, which few fits can make large.
        """
        is_gaussian = self.claim.mu is not None and self.claim.delta > 0
        return gaussian_epsilon(self.mu_lower, self.claim.delta) if is_gaussian else 0.0

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


@dataclass(frozen=True)
class AuditReport(Report):
    """Report on one fit: its statement and the results of two audits.

    Attributes
    ----------
    statement : PrivacyStatement
    replay : ReplayReport
    canaries : CanaryReport
    """

    statement: PrivacyStatement
    replay: ReplayReport
    canaries: CanaryReport

    @property
    def ok(self) -> bool:
        """Whether neither audit raises an alarm."""
        return self.replay.ok and self.canaries.ok

    def __str__(self) -> str:
        title = f"Audit of {self.replay.estimator}: {'no alarm' if self.ok else 'ALARM'}"
        parts = [f"{name}\n{'-' * len(name)}\n{part}" for name, part in vars(self).items()]
        return "\n\n".join([title, *parts, SCOPE])


def report(
    estimator: BaseEstimator,
    folder: str | os.PathLike[str] | None = None,
    *,
    n_fits: int = 1000,
    random_state: int | None = None,
) -> AuditReport:
    """Replay an estimator, put canaries into it, and return both with its statement.

    All fits are on made-up rows.

    Parameters
    ----------
    estimator : estimator
        Clones of it are fitted, without their ``budget``. The statement is its own if it is fitted.
    folder : str or path, default=None
        Where to write ``audit.html`` for readers and ``audit.json`` for programs. It is created if
        it is missing. None writes nothing.
    n_fits, random_state
        Of `canaries`.

    Returns
    -------
    AuditReport

    Examples
    --------
    >>> from skdp import DPLinearRegression, audit
    >>> model = DPLinearRegression(solver="gd", max_iter=2, scaling="none")
    >>> audit.report(model, n_fits=200).ok
    True
    """
    model = estimator
    if not _is_fitted(estimator):
        X, y = made_up_data(estimator)
        model = _fitted_clone(audited_clone(estimator), {"X": X, "y": y})
    audited = AuditReport(
        model.privacy_,
        replay(estimator),
        canaries(estimator, n_fits=n_fits, random_state=random_state),
    )
    if folder is not None:
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        found = {
            "ok": audited.ok,
            "skdp": __version__,
            "statement": audited.statement.to_dict(),
            "replay": asdict(audited.replay),
            "canaries": {name: getattr(audited.canaries, name) for name in CANARY_FIGURES},
            "scope": SCOPE,
        }
        text = json.dumps(plain(found), indent=1, allow_nan=False)
        (place / "audit.json").write_text(text, encoding="utf-8")
        page = f"<!doctype html><meta charset='utf-8'><body>{audited._repr_html_()}</body>"
        (place / "audit.html").write_text(page, encoding="utf-8")
    return audited
