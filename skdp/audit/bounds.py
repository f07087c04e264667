"""Bound epsilon and mu from below by the guesses of an attack; compute trade-off curves."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtr, ndtri

from skdp._numbers import Array, Mask
from skdp.accounting import gaussian_epsilon

LARGEST_ONE_RUN_EPSILON = 200.0  # of one-run bounds; beyond, guesses are right with certainty


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
        Wrong guesses, of so many; the coins are independent.
    error : float
        Probability with which the bound may be wrong.
    """
    worst = clopper_pearson(errors, guesses, error)[1]
    return -2 * float(ndtri(worst)) if worst < 0.5 else 0.0


def one_run_p_value(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Bound the probability of at least ``right`` correct guesses in one private fit.

    Of ``canaries`` records each was put in by a coin of its own; ``guesses`` of the coins were
    guessed from the fitted model, ``right`` of them rightly. Steinke, Nasr, Jagielski 2023
    ("Privacy auditing with one (1) training run", Thm 5.2).
    """
    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(stats.binom.sf(right - 1, guesses, chance))
    if delta > 0:
        # The theorem's alpha: the largest mean of the masses just below ``right``.
        masses = np.cumsum(stats.binom.pmf(right - np.arange(1, right + 1), guesses, chance))
        if right:
            tail += float((masses / np.arange(1, right + 1)).max()) * 2 * delta * canaries
    return min(tail, 1.0)


def one_run_epsilon(right: int, guesses: int, canaries: int, delta: float, error: float) -> float:
    """Return the largest epsilon that the guesses of one fit reject; 0 if there is none."""
    return largest_rejected(
        lambda epsilon: one_run_p_value(right, guesses, canaries, epsilon, delta), error
    )


def one_run_mu(right: int, guesses: int, canaries: int, error: float) -> float:
    """Return the largest mu that the guesses of one fit reject; 0 if there is none.

    mu-GDP is (epsilon(delta), delta)-DP for every delta; it is rejected if one of the deltas in
    `DELTAS` is, each at its share of the error.
    """

    def p_value(mu: float) -> float:
        deltas = [share / canaries for share in DELTAS]
        points = [(gaussian_epsilon(mu, delta), delta) for delta in deltas]
        p_values = (one_run_p_value(right, guesses, canaries, *point) for point in points)
        return min(1.0, len(DELTAS) * min(p_values))

    return largest_rejected(p_value, error)


# Deltas, times the number of canaries, at which a Gaussian curve is held against the guesses of one
# fit: fixed beforehand, and small enough to add little to p-values.
DELTAS = (0.1, 0.01)


def largest_rejected(p_value: Callable[[float], float], error: float) -> float:
    """Return the largest parameter whose p-value is below ``error``; p-values rise with it."""
    if p_value(0.0) >= error:
        return 0.0
    low, high = 0.0, 1.0
    while high < LARGEST_ONE_RUN_EPSILON and p_value(high) < error:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle) < error else (low, middle)
    return low


def gaussian_trade_off(false_positives: ArrayLike, mu: float) -> Array:
    """Return the least rate of false negatives under mu-GDP: ``Phi(Phi^-1(1 - FPR) - mu)``."""
    return np.asarray(ndtr(ndtri(1 - np.asarray(false_positives, dtype=np.float64)) - mu))


def trade_off(false_positives: ArrayLike, epsilon: float, delta: float) -> Array:
    """Return the least rate of false negatives under (epsilon, delta)-DP."""
    rates = np.asarray(false_positives, dtype=np.float64)
    steep = 1 - delta - np.exp(min(epsilon, 700.0)) * rates
    flat = np.exp(-epsilon) * (1 - delta - rates)
    return np.asarray(np.maximum(np.maximum(steep, flat), 0.0))
