"""Bound epsilon and mu from below by the guesses of an attack."""

import math

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

from skdp._numbers import Array, Mask


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
