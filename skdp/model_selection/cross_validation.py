"""Cross-validate privately. Each row is in all fits but one, and is charged for them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp import accounting
from skdp._fitting import parts
from skdp._fitting.data import Data
from skdp._fitting.estimator import charge_fit
from skdp._fitting.privacy import Privacy
from skdp._fitting.refusals import refusing
from skdp._fitting.rows import read_plain, require_numbered
from skdp._numbers import MatrixLike, is_integer, require
from skdp._oracle import NoiseSource
from skdp._oracle.sources.keyed_split import PartOfPartitions, equal_sizes
from skdp._oracle.sources.partitioned import Partitions
from skdp.metrics import Score, Scores, requests
from skdp.metrics.evaluation import PrivateScorer
from skdp.model_selection import candidates

WHO = "dp_cross_validate"
OWN_RANGES = "of values clipped to ranges of their own in each fold"
SCORE_SHARE = 0.1  # of the scores in the squared Gaussian-DP parameter


class CrossValidation(Scores):
    """Private means of scores over all folds, by name.

    Attributes
    ----------
    folds : tuple of Scores
    estimators : tuple of estimator
        The models, each fitted on all folds but one. Their ``privacy_`` is that of the whole, so
        give `skdp.total_privacy` this object, not each of them.
    privacy_ : PrivacyStatement
    """

    folds: tuple[Scores, ...]
    estimators: tuple[BaseEstimator, ...]


def dp_cross_validate(
    estimator: BaseEstimator,
    X: MatrixLike | Partitions,
    y: ArrayLike | None = None,
    metrics: str | Iterable[str] | None = None,
    *,
    cv: int = 5,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    privacy: Privacy | None = None,
    target_range: tuple[float, float] | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> CrossValidation:
    """Cross-validate a private estimator with private scores.

    **A hold-out is nearly always better.** Each row is in ``cv - 1`` of the fits and in one score,
    so each fit gets about ``1 / sqrt(cv - 1)`` of the budget in terms of noise: with five folds,
    twice the noise. With `dp_train_test_split`, fit and score have the whole budget each. It is
    useful if there are too few rows for a hold-out and the models are not needed.

    Parameters
    ----------
    estimator : estimator of skdp, or Pipeline that ends in one
        Its own epsilon, delta, adjacency and noise source are replaced.
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or Partitions
        Rows in partitions, such as `Chunks`, and collections of dask stay where they are: each
        fold is read there.
    y : array of shape (n_samples,) or None, default=None
        Left out for partitions, which have the targets.
    metrics : str or iterable of str, default=None
        Those of `skdp.metrics.evaluate` that are single numbers.
    cv : int, default=5
        Number of folds, at least 2, drawn at random without looking at labels.
    epsilon : float, default=1.0
        Privacy budget of all fits and scores together, positive.
    delta : float, default=1e-6
        In (0, 1).
    privacy, target_range
        As for `skdp.model_selection.DPSearchCV`.
    groups : array of shape (n_samples,) or None, default=None
        Labels of groups, such as persons. None may be missing. Folds hold whole groups, fits and
        scores protect them, and all is priced for a group. Partitions bring their own.
    sample_weight, offset : array of shape (n_samples,) or None, default=None
        As for `skdp.model_selection.DPSearchCV`.

    Returns
    -------
    CrossValidation

    Raises
    ------
    ValueError
        If a parameter, the estimator or the data is refused. Nothing is released then.
    RuntimeError
        If a fit or a score fails. The budget is spent.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import dp_cross_validate
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> result = dp_cross_validate(model, X, y, "accuracy", epsilon=3.0)
    >>> low, high = result["accuracy"].interval(0.95)
    >>> result.privacy_.epsilon <= 3.0
    True
    """
    scoring: dict[str, Any] = {"metrics": metrics, "target_range": target_range}
    payer = PrivateScorer(estimator, epsilon=epsilon, delta=delta, privacy=privacy, **scoring)
    payer._check_shared_parameters()
    require("delta", delta, "be above 0: noise is Gaussian", delta > 0 or math.isinf(epsilon))
    with refusing(WHO):
        candidates.check_terms(payer._terms)
        require("cv", cv, "be an integer of at least 2", is_integer(cv) and cv >= 2)
        # 1. Plan: the budget of each fit and each score, and the cost of all. Refuse bad input.
        reads_labels = not candidates.labels_are_public(estimator)
        beside = {"sample_weight": sample_weight, "offset": offset}
        data = require_numbered(WHO, read_plain(WHO, X, y, groups, reads_labels, **beside))
        require("cv", cv, f"be at most the number of {data.unit}s", cv <= data.n_records)
        budgets, cost = _planned(payer, int(cv), data)
        sizes = equal_sizes(data.n_records, int(cv))
        n_train = {data.n_records - size for size in sizes}
        given: Any = estimator, [{}], budgets[0], data, n_train, epsilon, target_range
        (model,), n_outputs = candidates.checked(WHO, *given)
        requests.metrics_by_name(model, metrics, n_outputs, by_subgroup=False)
        part = parts.part_of(X, y, sample_weight, groups, unit=data.unit)
        statement = replace(cost, part=part).statement()
    # 2. Charge, and run.
    draws = charge_fit(payer, statement, who=WHO, rows=(part, (X, y)))
    models, folds = _runs(model, budgets[1], data, data.split(sizes, draws), draws, scoring)
    for fitted in models:
        candidates.state_whole(fitted, statement)
    numbers = [name for name, score in folds[0].items() if isinstance(score, Score)]
    means = {name: _mean([fold[name] for fold in folds]) for name in numbers}
    result = CrossValidation(means, statement)
    result.folds, result.estimators = folds, models
    return result


def _runs(
    model: BaseEstimator,
    budget: candidates.RunBudget,
    data: Data,
    split: list[PartOfPartitions],
    draws: NoiseSource,
    scoring: dict[str, Any],
) -> tuple[tuple[BaseEstimator, ...], tuple[Any, ...]]:
    """Return the models, each fitted on all parts but one, and their scores on that part."""
    runs = []
    try:
        with parts.charged_as_a_whole(data.unit):
            for fold, scored in enumerate(split):
                sides = data.subset(*split[:fold], *split[fold + 1 :]), data.subset(scored)
                given = model, budget, sides, draws
                runs.append(candidates.fitted_and_scored(*given, **scoring))
    except Exception as reason:  # its message may quote a cell, or say that nothing was charged
        raise RuntimeError(
            f"{WHO}: a fit or a score failed with {type(reason).__name__}. The budget of this "
            "cross-validation is spent. Fit the estimator by itself, to see why."
        ) from None
    models, folds = zip(*runs, strict=True)
    return models, folds


def _planned(
    payer: PrivateScorer, cv: int, data: Data
) -> tuple[list[candidates.RunBudget], accounting.Cost]:
    """Return the budgets of each fit and of each score, and the cost of all that a record meets."""
    mu = accounting.gaussian_mu(payer.epsilon, payer.delta) * math.sqrt(1 - candidates.MARGIN)
    terms, unit = payer._terms, data.unit
    budgets = [
        candidates.RunBudget(mu * math.sqrt(share), payer.delta, terms)
        for share in ((1 - SCORE_SHARE) / (cv - 1), SCORE_SHARE)
    ]
    of_fit, of_score = budgets
    releases = (
        accounting.ReleaseRecord.of("fit without a fold", of_fit.answer, cv - 1),
        accounting.ReleaseRecord.of("scores", of_score.answer),
    )
    assumed = (
        f"{unit.capitalize()}s were divided in {cv} folds at random. A {unit} is in {cv - 1} of "
        f"the {cv} fits and in one of the scores: these are listed.",
        "Non-private steps before the estimator learn nothing from the data. It is public that no "
        f"fit and no score fails on these {unit}s, because a failure is reported.",
    )
    return budgets, candidates.cost_of_runs(releases, of_fit, data.n_records, unit, *assumed)


def _mean(scores: list[Any]) -> Score:
    """Return the mean of a score over folds."""
    first: Score = scores[0]
    size, unit = len(scores), max(score.unit**score.power for score in scores)
    low, high = zip(*(score.limits for score in scores), strict=True)
    notes = {score.note for score in scores}
    return Score(
        first.name,
        first.sign * sum(score / unit for score in scores) / size,
        1.0,
        (sum((score.noise_std / unit) ** 2 for score in scores) / size**2, 0.0, 0.0),
        math.hypot(*(score.sampling_std for score in scores)) / size,
        (min(low) ** first.power, max(high) ** first.power),
        first.sign,
        first.note if len(notes) == 1 else OWN_RANGES,
        unit,
    )
