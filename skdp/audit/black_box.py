"""Bound epsilon and mu from below, by fits with and without worst-case records, and report it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, clone, is_classifier

from skdp._fitting.privacy import SeededNoise
from skdp._numbers import Array, Mask, MatrixLike
from skdp.accounting import Adjacency, PrivacyStatement, gaussian_epsilon
from skdp.audit.comparing import Report
from skdp.audit.neighbours import dense_copy, labels_of, relation_of
from skdp.audit.replaying import audited_clone, takes_weights
from skdp.model_selection import total_privacy


def clopper_pearson(successes: int, trials: int, error: float) -> tuple[float, float]:
    """Exact lower and upper bounds on a probability, each wrong with probability ``error`` at most.

    Parameters
    ----------
    successes, trials : int
    error : float
        In (0, 1), for each of the two.

    Returns
    -------
    lower, upper : float

    References
    ----------
    Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of
    the binomial".
    """
    lower = stats.beta.ppf(error, successes, trials - successes + 1) if successes else 0.0
    upper = 1.0
    if successes < trials:
        upper = float(stats.beta.ppf(1 - error, successes + 1, trials - successes))
    return float(lower), upper


def epsilon_from_rates(true_positives: float, false_positives: float, delta: float) -> float:
    """Return the epsilon that a test of these rates proves: ``log((TPR - delta) / FPR)``, or 0.

    An (epsilon, delta)-DP mechanism has ``TPR <= exp(epsilon) FPR + delta`` for any test (Kairouz,
    Oh, Viswanath 2015, Thm 2.1).
    """
    if true_positives - delta <= false_positives:
        return 0.0
    return math.log((true_positives - delta) / false_positives) if false_positives > 0 else math.inf


def epsilon_from_scores(
    scores: Array, is_in: Mask, distance: float, delta: float, error: float
) -> float:
    """Return a Clopper-Pearson bound on epsilon, at the threshold that promises most.

    The threshold, and the side, follow from the distance that other fits showed, as if the scores
    were normal.

    Parameters
    ----------
    scores : array of shape (n_fits,)
    is_in : array of bool of shape (n_fits,)
        Whether the record was in each fit.
    distance : float
        Between the means of the scores with and without it, in standard deviations.
    delta : float
    error : float
        Probability with which the bound may be wrong.

    Returns
    -------
    float
    """
    n_in, n_out = int(is_in.sum()), int((~is_in).sum())
    best, chosen = 0.0, (0.0, 1.0)
    for threshold in np.linspace(-3.0, 3.0, 25):
        for side in (1.0, -1.0):
            tpr, fpr = (float(ndtr(sign * distance / 2 - threshold)) for sign in (1, -1))
            n_hit, n_alarm = (n_in, n_out) if side > 0 else (n_out, n_in)
            counts = round(tpr * n_hit), n_hit, round(fpr * n_alarm), n_alarm
            bound = _epsilon_from_counts(*counts, delta, error)
            if bound > best:
                best, chosen = bound, (float(threshold), side)
    threshold, side = chosen
    guessed, positive = side * scores > threshold, is_in if side > 0 else ~is_in
    hits, alarms = int((guessed & positive).sum()), int((guessed & ~positive).sum())
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    return _epsilon_from_counts(hits, n_positive, alarms, n_negative, delta, error)


def _epsilon_from_counts(
    hits: int, n_positive: int, alarms: int, n_negative: int, delta: float, error: float
) -> float:
    lower = clopper_pearson(hits, n_positive, error / 2)[0]
    upper = clopper_pearson(alarms, n_negative, error / 2)[1]
    return epsilon_from_rates(lower, upper, delta)


def mu_from_errors(errors: int, guesses: int, error: float) -> float:
    """Return the mu that guesses of a fair coin prove.

    Under mu-GDP no test has ``FPR + FNR < 2 Phi(-mu/2)`` (Dong, Roth, Su 2019, eq. 6), so each
    guess of a fair, secret coin is wrong with probability ``Phi(-mu/2)`` at least.

    Parameters
    ----------
    errors, guesses : int
        Wrong guesses, of so many. The coins are independent.
    error : float
        Probability with which the bound may be wrong.
    """
    worst = clopper_pearson(errors, guesses, error)[1]
    return -2 * float(ndtri(worst)) if worst < 0.5 else 0.0


N_ROWS, N_FEATURES = 100, 1  # of made-up data; what one record shows does not depend on them
LONG, FAR = 1e3, 1e6  # a worst-case record: longer than rows are kept to, with a far target
LIGHT = 1e-200  # weight of the other records of made-up data: they add nothing
DIRECTION_SHARE = 0.15  # of the fits, from which the direction is learned; they are not counted


def canaries(
    estimator: BaseEstimator,
    X: MatrixLike | None = None,
    y: ArrayLike | None = None,
    *,
    n_fits: int = 4000,
    confidence: float = 0.999,
    random_state: int | None = None,
) -> CanaryReport:
    """Bound epsilon and mu from below, by fits with and without a worst-case record.

    A coin decides for each fit whether the record is in: a long row with a far target, or of the
    last class. Under "zero_out" it has weight 0 in the other fits. Under "replace_one" its target
    is another one there. The coin is guessed only from the coefficients and intercepts. If guesses
    are right too often for the claim, the claim is false. The direction in which to look is learned
    from some of the fits, which are not counted.

    Parameters
    ----------
    estimator : estimator
        Clones of it are fitted, without their ``budget``. Their noise has to differ from fit to
        fit: that of the system, or of a `numpy.random.Generator`.
    X, y : arrays, default=None
        The other records. If None, records that add next to nothing, so that nothing hides the one.
    n_fits : int, default=4000
        At least 100. Bounds are a few per cent off for every 4000.
    confidence : float, default=0.999
        Of each bound. A true claim is reported as broken with probability ``1 - confidence``.
    random_state : int, default=None
        Seed of the coins.

    Returns
    -------
    CanaryReport

    Raises
    ------
    ValueError
        If ``n_fits`` or ``confidence`` is not allowed, or the noise can be repeated.

    Notes
    -----
    Use made-up or public rows: thousands of fits of private rows without a charge would not be
    private.

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
    plain = audited_clone(estimator)
    if any(isinstance(value, SeededNoise) for value in plain.get_params().values()):
        raise ValueError(
            f"{type(plain).__name__}: with one seed all fits have the same noise. Audit it "
            "with noise='system'."
        )
    coins = np.random.default_rng(random_state).integers(2, size=n_fits)
    data = _data(plain, X, y)
    vectors = []
    for coin in coins:
        model = fitted_clone(plain, data[coin])
        vectors.append(np.append(np.ravel(model.coef_), model.intercept_))
    outputs, is_in = np.array(vectors), coins == 1
    # The direction that separates the two best, and how well it does, come from fits that do not
    # count afterwards.
    n_learn, error = int(DIRECTION_SHARE * n_fits), 1 - confidence
    direction, middle, distance = _direction(outputs[:n_learn], is_in[:n_learn])
    scores, is_in = (outputs[n_learn:] - middle) @ direction, is_in[n_learn:]
    wrong = int(((scores > 0) != is_in).sum())
    claim = statement_of(model)
    lower = (
        epsilon_from_scores(scores, is_in, distance, claim.delta, error),
        mu_from_errors(wrong, len(scores), error),
    )
    parts = scores[is_in], scores[~is_in]
    return CanaryReport(type(estimator).__name__, claim, *lower, confidence, len(scores), *parts)


# ---------------------------------------------------------------------- data and fits


def _data(
    estimator: BaseEstimator, X: MatrixLike | None, y: ArrayLike | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the data set that is fitted without the record, and that with it."""
    is_replaced = relation_of(estimator) is Adjacency.REPLACE_ONE
    made_up = X is None
    # The record's target in the neighbouring data, under replace-one, and in the data.
    targets: list[Any] = [-FAR, FAR]
    if is_classifier(estimator):
        targets = labels_of(estimator, [0, 1] if y is None else y)
    if made_up:
        X = np.zeros((N_ROWS, N_FEATURES))
        y = np.resize(np.asarray(targets), N_ROWS) if is_classifier(estimator) else np.zeros(N_ROWS)
    X, y = dense_copy(X), np.array(y)
    weighted = takes_weights(estimator, X, y)
    X[0], X[0, 0], y[0] = 0.0, LONG, targets[-1]
    there, other = ({"X": X.copy(), "y": y.copy()} for _ in range(2))
    if is_replaced or not weighted:
        other["y"][0] = targets[0]
    if not is_replaced:
        other["X"][0] = 0.0
    if weighted:
        light = np.full(len(y), LIGHT) if made_up else np.ones(len(y))
        for data, weight in ((there, 1.0), (other, float(is_replaced))):
            data["sample_weight"] = np.append(weight, light[1:])
    return other, there


def fitted_clone(estimator: BaseEstimator, data: Mapping[str, Any]) -> BaseEstimator:
    """Return a fitted clone of an estimator."""
    with warnings.catch_warnings(action="ignore"):  # that so few rows cannot teach a model anything
        return clone(estimator).fit(**data)


def statement_of(model: BaseEstimator) -> PrivacyStatement:
    """Return the statement of a fitted model, or the total of the private ones inside it."""
    statement: PrivacyStatement | None = getattr(model, "privacy_", None)
    if statement is None:
        parameters = model.get_params().items()
        deltas = [value for name, value in parameters if name.rpartition("__")[2] == "delta"]
        statement = total_privacy(model, delta=sum(deltas))
    return statement


# ---------------------------------------------------------------------- guesses


def _direction(vectors: Array, is_in: Mask) -> tuple[Array, Array, float]:
    """Return Fisher's direction, the middle between the means, and the distance along it.

    The direction has unit variance in the fits.
    """
    means = [vectors[~is_in].mean(axis=0), vectors[is_in].mean(axis=0)]
    centred = vectors - np.where(is_in[:, None], means[1], means[0])
    covariance = np.atleast_2d(centred.T @ centred / len(vectors))
    scale = np.trace(covariance) / len(covariance)
    covariance += 1e-9 * scale * np.eye(len(covariance))  # constant parts of the scores
    difference = means[1] - means[0]
    direction = np.linalg.solve(covariance, difference)
    length = math.sqrt(max(float(direction @ covariance @ direction), 1e-300))
    direction = direction / length
    return direction, (means[0] + means[1]) / 2, float(difference @ direction)


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
        The fit is not (epsilon, delta)-DP for any smaller epsilon, at the claim's delta. Exact
        binomial bounds. Nothing is assumed about the mechanism.
    mu_lower : float
        The fit is not mu-GDP for any smaller mu.
    confidence : float
        Probability with which each of the two holds, at least.
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
        mu = math.inf if self.claim.mu is None else self.claim.mu
        shown = max(self.epsilon_lower, self.epsilon_of_mu)
        return shown <= self.claim.epsilon and self.mu_lower <= mu

    @property
    def epsilon_of_mu(self) -> float:
        """Epsilon that ``mu_lower`` amounts to, at the claim's delta. 0 if the claim has no mu.

        If the fit is Gaussian, as it claims, this is also a lower bound on its epsilon, and a much
        better bound than ``epsilon_lower``, which few fits can make large.
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
