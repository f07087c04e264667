"""Cross-validate privately; each row is in all fits but one, and is charged for them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp import accounting
from skdp._numbers import MatrixLike, is_integer, require
from skdp.fitting import parts
from skdp.fitting.estimator import charge_fit
from skdp.fitting.parameters import check_parameters
from skdp.fitting.privacy import Privacy
from skdp.fitting.rows import read_plain, require_numbered
from skdp.metrics import Score, Scores, requests
from skdp.metrics.evaluation import PrivateScorer
from skdp.metrics.scores import AnyScore
from skdp.model_selection import candidates
from skdp.oracle.sources.keyed_split import equal_sizes
from skdp.oracle.sources.partitioned import Partitions

WHO = "dp_cross_validate"
SCORE_SHARE = 0.1  # of the scores in the squared Gaussian-DP parameter


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Private scores of all folds, and their means.

    Attributes
    ----------
    scores : dict of str to Score
        The mean of each metric over the folds.
    folds : tuple of Scores
    estimators : tuple of estimator
        The models, each fitted on all folds but one. Their ``privacy_`` is that of the whole, so
        give `skdp.total_privacy` this object, not each of them.
    privacy_ : PrivacyStatement
    """

    scores: Mapping[str, Score]
    folds: tuple[Scores, ...]
    estimators: tuple[BaseEstimator, ...]
    privacy_: accounting.PrivacyStatement

    def __getitem__(self, name: str) -> Score:
        return self.scores[name]

    def __repr__(self) -> str:
        cost = f"epsilon={self.privacy_.epsilon:.6g}, delta={self.privacy_.delta:.6g}"
        head = f"<CrossValidation of {len(self.folds)} folds at {cost}>"
        return "\n".join([head, *map(str, self.scores.values())])


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
) -> CrossValidation:
    """Cross-validate a private estimator with private scores.

    **A hold-out is nearly always better.** Each row takes part in ``cv - 1`` of the fits and in one
    score, so each fit gets about ``1 / sqrt(cv - 1)`` of the budget in terms of noise: with five
    folds, twice the noise. With `dp_train_test_split`, fit and score have the whole budget each.
    It pays where rows are so few that a hold-out says nothing, and the models themselves are not
    wanted.

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
        Privacy budget of all fits and scores together; positive.
    delta : float, default=1e-6
        In (0, 1).
    privacy, target_range
        As for `skdp.model_selection.DPSearchCV`.
    groups : array of shape (n_samples,) or None, default=None
        Labels of groups, such as persons; none may be missing. Folds hold whole groups, fits and
        scores protect them, and all is priced for a group. Partitions bring their own.

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
    check_parameters({"epsilon": epsilon, "delta": delta, "privacy": privacy}, labels=False)
    terms = Privacy() if privacy is None else privacy
    candidates.check_terms(WHO, terms)
    require("cv", cv, "be an integer of at least 2", is_integer(cv) and cv >= 2)
    require("delta", delta, "be above 0: noise is Gaussian", delta > 0 or math.isinf(epsilon))
    # 1. Plan: the budget of each fit and each score, and the cost of all; refuse bad input.
    reads_labels = not candidates.labels_are_public(WHO, estimator)
    data = require_numbered(WHO, read_plain(WHO, X, y, groups, reads_labels))
    n_records, unit = data.n_records, data.unit
    require("cv", cv, f"be at most the number of {unit}s, {n_records}", cv <= n_records)
    mu = accounting.gaussian_mu(epsilon, delta) * math.sqrt(1 - candidates.MARGIN)
    fit_budget, score_budget = (
        candidates.RunBudget(mu * math.sqrt(share), delta, terms.adjacency, terms.noise_source)
        for share in ((1 - SCORE_SHARE) / (cv - 1), SCORE_SHARE)
    )
    sizes = equal_sizes(n_records, int(cv))
    n_train = {n_records - size for size in sizes}
    (model,), n_outputs = candidates.checked(
        WHO, estimator, [{}], fit_budget, data, n_train, epsilon, target_range
    )
    requests.metrics_by_name(model, metrics, n_outputs, by_subgroup=False)
    own = score_budget.parameters()
    own["privacy"].set_params(budget=terms.budget, noise=terms.noise)
    scoring: dict[str, Any] = {"metrics": metrics, "target_range": target_range}
    scorer = PrivateScorer(model, **own, **scoring)
    scorer.check_before_fit()
    # 2. Charge, and run.
    cost = candidates.cost_of_runs(
        (
            accounting.ReleaseRecord.of("fit without a fold", fit_budget.answer, int(cv) - 1),
            accounting.ReleaseRecord.of("scores", score_budget.answer),
        ),
        fit_budget,
        n_records,
        unit,
        f"{unit.capitalize()}s were divided in {cv} folds at random. A {unit} is in {cv - 1} of "
        f"the {cv} fits and in one of the scores: these are listed.",
        "Every step before the estimator that is not private learns nothing from rows. That no fit "
        f"and no score fails on these {unit}s is public: a failure is reported.",
    )
    statement = replace(cost, part=parts.part_of(X, y, groups, unit=unit)).statement()
    draws = charge_fit(scorer, statement, who=WHO)
    split = data.split(sizes, draws)
    runs = []
    try:
        with parts.charged_as_a_whole(unit):
            for fold, scored in enumerate(split):
                sides = data.subset(*split[:fold], *split[fold + 1 :]), data.subset(scored)
                run = candidates.fitted_and_scored(
                    WHO, model, score_budget, sides, draws, **scoring
                )
                runs.append(run)
    except Exception as reason:  # its message may quote a cell, or say that nothing was charged
        raise RuntimeError(
            f"{WHO}: a fit or a score failed with {type(reason).__name__}. The budget of this "
            "cross-validation is spent. Fit the estimator by itself, to see why."
        ) from None
    models, folds = zip(*runs, strict=True)
    for fitted in models:
        candidates.state_whole(WHO, fitted, statement)
    return CrossValidation(_means(folds), folds, models, statement)


def _means(folds: Sequence[Scores]) -> dict[str, Score]:
    """Return the mean of each metric over folds, except of matrices and curves."""
    means = {name: _mean([fold[name] for fold in folds]) for name in folds[0]}
    return {name: mean for name, mean in means.items() if mean is not None}


def _mean(scores: list[AnyScore]) -> Score | None:
    """Return the mean of a score over folds; None for matrices and curves."""
    size, numbers = len(scores), [score for score in scores if isinstance(score, Score)]
    if not numbers:
        return None
    first, unit = numbers[0], max(score.unit for score in numbers)
    ratio = first.sign * sum(score.value / unit for score in numbers) / size
    noise = sum((score.noise_std / unit) ** 2 for score in numbers) / size**2
    sampling = math.hypot(*(score.sampling_std for score in numbers)) / size
    limits = min(score.limits[0] for score in numbers), max(score.limits[1] for score in numbers)
    note = first.note
    if any(score.note != note for score in numbers):
        note = "of targets clipped to a range of their own in each fold"
    return replace(
        first,
        numerator=ratio,
        denominator=1.0,
        noise=(noise, 0.0, 0.0),
        sampling_std=sampling,
        limits=limits,
        note=note,
        unit=unit,
    )
