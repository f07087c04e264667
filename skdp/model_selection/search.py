"""Search and cross-validate privately: keep the best of several fits, or score all folds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp import accounting
from skdp._docstrings import without_types
from skdp._fitting import parts
from skdp._fitting.data import Data
from skdp._fitting.estimator import PrivateEstimator, charge_fit, with_earlier_fits
from skdp._fitting.parameters import planned_records
from skdp._fitting.privacy import Privacy
from skdp._fitting.refusals import refusing
from skdp._numbers import AnyArray, Array, MatrixLike, is_integer, require
from skdp._oracle import NoiseSource, compiled
from skdp._oracle.sources.keyed_split import equal_sizes
from skdp._oracle.sources.partitioned import Partitions
from skdp.metrics import Score, Scores
from skdp.metrics.evaluation import PrivateScorer
from skdp.metrics.requests import METRICS, default_metric
from skdp.model_selection import candidates
from skdp.model_selection.holdout import scored_records

SCORING = {
    kind: sorted(name for name, metric in metrics.items() if metric.greater_is_better)
    for kind, metrics in METRICS.items()
}

Space: TypeAlias = Mapping[str, object]  # values of parameters by name


def _of_best(name: str, doc: str) -> Callable[..., Array]:
    """Return a method that calls a method of the best estimator, if that has one."""

    def method(self: BaseEstimator, X: MatrixLike, **offset: ArrayLike) -> Array:
        return np.asarray(getattr(self._best(), name)(X, **offset))

    def check(search: BaseEstimator) -> bool:
        return hasattr(getattr(search, "best_estimator_", search.estimator), name)

    method.__name__, method.__doc__ = name, doc
    decorated: Callable[..., Array] = available_if(check)(method)
    return decorated


@dataclass(eq=False, repr=False)
class DPSearchCV(MetaEstimatorMixin, PrivateEstimator):
    """Private choice among hyperparameters, solvers, columns or estimators.

    Rows are split at random. A random number of times a candidate is drawn, fitted on the first
    part and scored, with noise, on the second. Only the candidate with the best noisy score is
    kept. The whole search is (epsilon, delta)-differentially private.

    **Often the default is better.** In a search over 10 runs, each run has about a third less
    epsilon than a single fit, and a fifth fewer rows. A search is useful if candidates differ by
    more than that, for example in columns or estimators. The strength of a penalty is rarely worth
    a search. See :doc:`/how_to/score`.

    Parameters
    ----------
    estimator : estimator of skdp, or Pipeline that ends in one
        Other steps must learn nothing from rows, or learn it privately: then all private fits of a
        run share its budget. Its own epsilon, delta, adjacency and noise source are replaced.
    param_grid : dict or list of dict
        As in `sklearn.model_selection.GridSearchCV`. Runs draw from the grid with equal
        probability, with repetition.
    epsilon : float, default=1.0
        Privacy budget of the whole search, positive.
    delta : float, default=1e-6
        In (0, 1).
    n_candidates : int, default=10
        Expected number of runs, at least 2. The number itself is geometric and stays secret: half
        of the searches make fewer than 0.7 times as many. A candidate of a grid of equal size is
        drawn at all with a probability of about one half.
    scoring : str, default=None
        A metric of `skdp.metrics.evaluate` of which more is better, under its scorer's name. None
        for that of `skdp.metrics.evaluate`, such as "accuracy", "r2" or "d2_tweedie".
    holdout : float or int, default=0.2
        Share, or number, of the rows that score.
    privacy : Privacy or None, default=None
        Neighbouring relation, shared budget, which is charged once, and source of noise. None means
        the defaults of `skdp.Privacy`.
    target_range : (low, high) or None, default=None
        Of regressors: see `skdp.metrics.evaluate`.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted on the first part. Its ``privacy_`` is that of the search. It is not fitted again on
        all rows, which would cost a fit more.
    best_params_ : dict
    best_score_ : float
        Its noisy score. As the best of several, it is too good on average.
    privacy_ : PrivacyStatement
    n_features_in_ : int
    feature_names_in_ : array of str
        If all columns have names.
    classes_ : array
        Of a classifier.

    Notes
    -----
    There is no ``cv_results_``, since every score that is shown costs budget. Neither the number of
    runs nor the other candidates are kept, because the guarantee depends on their secrecy. Do not
    publish the time of ``fit``: it reveals the number of runs.

    Each run costs a row the maximum of fit and score, as it is in one part only. By Theorem 2 of
    Papernot and Steinke, the best of a geometric number of runs costs little more than one run. The
    price here is by privacy profiles, in the spirit of Koskela, Redberg and Wang. A candidate must
    be Gaussian DP, so its releases are on all rows or on disjoint blocks.

    References
    ----------
    N. Papernot, T. Steinke: Hyperparameter tuning with Renyi differential privacy. ICLR 2022.
    A. Koskela, R. Redberg, Y.-X. Wang: Privacy profiles for private selection. ICML 2024.

    Examples
    --------
    >>> import skdp
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp.model_selection import DPSearchCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = skdp.DPLogisticRegression(classes=[0, 1])
    >>> search = DPSearchCV(model, {"solver": ["gd", "whitened"]}, epsilon=3.0).fit(X, y)
    >>> sorted(search.best_params_)
    ['solver']
    >>> search.privacy_.epsilon <= 3.0
    True
    """

    _doc_link_template = PrivateEstimator._doc_link_template.replace(
        "generated/skdp.", "generated/skdp.model_selection."
    )

    estimator: BaseEstimator
    param_grid: Space | Sequence[Space]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    n_candidates: int = 10
    scoring: str | None = None
    holdout: float | int = 0.2
    privacy: Privacy | None = None
    target_range: tuple[float, float] | None = None

    # ------------------------------------------------------------------ fit

    @without_types
    def fit(
        self,
        X: MatrixLike | Partitions,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Search, spending the budget.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or Partitions
            Rows in partitions, such as `Chunks`, and collections of dask stay where they are:
            each part of the split is read there.
        y : array of shape (n_samples,) or None, default=None
            Left out for partitions, which have the targets.
        sample_weight : array of shape (n_samples,) or None, default=None
            Weights of rows, for fits and scores, each of which clips them to a scale near the
            largest of its own, or all to ``Privacy(max_weight=...)``.
        groups : array of shape (n_samples,) or None, default=None
            Labels of groups, such as persons. None may be missing. The guarantee is for a group
            then: the split and ``holdout`` count groups, and fits and scores protect them.
            Partitions bring their own.
        offset : array of shape (n_samples,) or None, default=None
            Of the margins, for fits and predictions. Regressors need ``target_range``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, a candidate or the data is refused. Nothing is released then.
        RuntimeError
            If no run ended in a model. The budget is spent.
        """
        who = self._who
        with refusing(who):
            metric = self._check_parameters()
            beside = {"sample_weight": sample_weight, "offset": offset}
            data = candidates.rows_to_split(who, self.estimator, X, y, groups, **beside)
            n_records, unit = data.n_records, data.unit
            part = parts.part_of(X, y, sample_weight, groups, offset, unit=unit)
            n_scored = scored_records(self.holdout, n_records, unit, "holdout")
            # 1. Candidates, each of them priced. The statement of the whole.
            pool: list[dict[str, object]] = list(ParameterGrid(self.param_grid))
            run_budget, cost = self._priced(n_records, unit)
            n_train = n_records - n_scored
            scoring = {"metrics": [metric], "target_range": self.target_range}
            given = self.estimator, pool, run_budget, data, [n_train], self.epsilon
            ready = candidates.checked(who, *given, scoring)
        # 2. One charge for all, then the runs.
        statement = replace(cost, part=part).statement()
        drawn_from = charge_fit(self, statement, rows=(part, (X, y, sample_weight, offset)))
        statement = with_earlier_fits(self, (X, y), statement)
        split = data.split([n_train, n_scored], drawn_from)
        # Warnings and messages would show which candidates were drawn.
        silent = warnings.catch_warnings(action="ignore")
        with parts.charged_as_a_whole(unit), silent, compiled.quiet():
            runs = self._runs(
                lambda: [data.subset(one) for one in split], ready, run_budget, scoring, drawn_from
            )
            score, _, number, best = max(runs, key=lambda run: run[:2])
        # 3. The best one, and nothing of the others.
        if best is None:
            raise RuntimeError(
                f"{who}: no run ended in a model. The budget of this search is spent. Fit the "
                "estimator by itself, to see why."
            )
        self.privacy_, self.best_score_ = statement, score
        self.best_estimator_, self.best_params_ = best, pool[number]
        candidates.state_whole(best, statement)
        self.n_features_in_ = data.n_features
        return self

    def _runs(
        self,
        sides: Callable[[], list[dict[str, Any]]],
        ready: list[BaseEstimator],
        run_budget: candidates.RunBudget,
        scoring: dict[str, Any],
        drawn_from: NoiseSource,
    ) -> Iterator[tuple[float, int, int, BaseEstimator | None]]:
        """Fit and score a geometric number of candidates. One that fails is the worst.

        Yields
        ------
        tuple (score, coin, number of the candidate, model)
            The coin breaks ties at random. It is 0 without a model, so that a run whose score is
            hidden by noise comes before one that failed.
        """
        for number in drawn_from.runs(len(ready), int(self.n_candidates)):
            coin, score, model = int(drawn_from.integers(2**62, 1)[0]), -math.inf, None
            with suppress(Exception):  # only the best run's answer is paid for: no failure shows
                # Rows of its own: a step may write into them, which later runs would show.
                fitted, scores = candidates.fitted_and_scored(
                    ready[number], run_budget, sides(), drawn_from, **scoring
                )
                (value,) = scores.values()
                score, model = -math.inf if math.isnan(value) else float(value), fitted
            yield score, coin * (model is not None), number, model

    # ------------------------------------------------------------------ before any row is read

    def _check_parameters(self) -> str:
        """Refuse what can be refused without rows. Return the metric."""
        self._check_shared_parameters()
        self._require_delta()
        is_several = is_integer(self.n_candidates) and self.n_candidates >= 2
        require("n_candidates", self.n_candidates, "be an integer of at least 2", is_several)
        candidates.private_fits(self.estimator)
        kind = "classifier" if is_classifier(self.estimator) else "regressor"
        metric = default_metric(self.estimator) if self.scoring is None else self.scoring
        allowed = f"be None or one of {', '.join(SCORING[kind])}"
        require("scoring", metric, allowed, isinstance(metric, str) and metric in SCORING[kind])
        return metric

    def plan(
        self, n_samples: int | None, n_features: int = 1, *, n_groups: int | None = None
    ) -> accounting.PrivacyStatement:
        """Return the privacy statement of a search that has not happened, without rows.

        Parameters
        ----------
        n_samples : int or None
            Number of rows. With ``n_groups`` it has no effect and may be None.
        n_features : int, default=1
            Number of columns, on which the price does not depend.
        n_groups : int or None, default=None
            Number of groups, if ``fit`` is going to get ``groups``.

        Returns
        -------
        PrivacyStatement
        """
        with refusing(self._who):
            self._check_parameters()
        n_records = planned_records("plan", n_samples, n_groups, n_features=n_features)
        return self._priced(n_records, parts.unit_of(n_groups))[1].statement()

    def _priced(
        self, n_records: int, unit: str = "row"
    ) -> tuple[candidates.RunBudget, accounting.Cost]:
        """Return the budget of each run, and the cost of the whole."""
        terms = self._terms
        given = float(self.epsilon), float(self.delta), terms
        return candidates.priced_search(int(self.n_candidates), *given, n_records, unit)

    # ------------------------------------------------------------------ what the best one does

    @property
    def classes_(self) -> AnyArray:
        """Labels of the best classifier."""
        return np.asarray(self._best().classes_)

    @property
    def feature_names_in_(self) -> AnyArray:
        """Names of the columns that the best estimator was fitted on, if they have names."""
        return np.asarray(self._best().feature_names_in_)

    def _best(self) -> BaseEstimator:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    predict = _of_best("predict", "Predict by the best estimator.")
    predict_proba = _of_best("predict_proba", "Predict probabilities by the best estimator.")
    predict_log_proba = _of_best("predict_log_proba", "Predict logarithms of probabilities.")
    decision_function = _of_best("decision_function", "Decision values of the best estimator.")

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> float:
        """Exact score of the best estimator, without privacy: for public rows only."""
        given = {"sample_weight": sample_weight, "offset": offset}
        beside = {name: value for name, value in given.items() if value is not None}
        return float(self._best().score(X, y, **beside))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        return tags


# ---------------------------------------------------------------- cross-validation

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
        Those of `skdp.metrics.evaluate`.
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
    with refusing(WHO):
        require("cv", cv, "be an integer of at least 2", is_integer(cv) and cv >= 2)
        require("delta", delta, "be above 0: noise is Gaussian", delta > 0 or math.isinf(epsilon))
        # 1. Plan: the budget of each fit and each score, and the cost of all. Refuse bad input.
        beside = {"sample_weight": sample_weight, "offset": offset}
        data = candidates.rows_to_split(WHO, estimator, X, y, groups, **beside)
        require("cv", cv, f"be at most the number of {data.unit}s", cv <= data.n_records)
        of_fit, of_score, cost = _planned(payer, int(cv), data)
        sizes = equal_sizes(data.n_records, int(cv))
        train = {data.n_records - size for size in sizes}
        (model,) = candidates.checked(WHO, estimator, [{}], of_fit, data, train, epsilon, scoring)
        part = parts.part_of(X, y, sample_weight, groups, offset, unit=data.unit)
        statement = replace(cost, part=part).statement()
    # 2. Charge, and run.
    draws = charge_fit(payer, statement, who=WHO, rows=(part, (X, y, sample_weight, offset)))
    split, runs = data.split(sizes, draws), []
    try:
        with parts.charged_as_a_whole(data.unit):
            for fold, scored in enumerate(split):
                sides = data.subset(*split[:fold], *split[fold + 1 :]), data.subset(scored)
                runs.append(candidates.fitted_and_scored(model, of_score, sides, draws, **scoring))
    except Exception as reason:  # its message may quote a cell, or say that nothing was charged
        raise RuntimeError(
            f"{WHO}: a fit or a score failed with {type(reason).__name__}. The budget of this "
            "cross-validation is spent. Fit the estimator by itself, to see why."
        ) from None
    models, folds = zip(*runs, strict=True)
    for fitted in models:
        candidates.state_whole(fitted, statement)
    means = ((name, _mean([fold[name] for fold in folds])) for name in folds[0])
    result = CrossValidation(means, statement)
    result.folds, result.estimators = folds, models
    return result


def _planned(
    payer: PrivateScorer, cv: int, data: Data
) -> tuple[candidates.RunBudget, candidates.RunBudget, accounting.Cost]:
    """Return the budgets of each fit and of each score, and the cost of all that a record meets."""
    mu = accounting.gaussian_mu(payer.epsilon, payer.delta) * math.sqrt(1 - candidates.MARGIN)
    of_fit, of_score = (
        candidates.RunBudget(mu * math.sqrt(share), payer.delta, payer._terms)
        for share in ((1 - SCORE_SHARE) / (cv - 1), SCORE_SHARE)
    )
    releases = (
        accounting.ReleaseRecord.of("fit without a fold", of_fit.answer, cv - 1),
        accounting.ReleaseRecord.of("scores", of_score.answer),
    )
    unit = data.unit
    assumed = (
        f"{unit.capitalize()}s were divided in {cv} folds at random. A {unit} is in {cv - 1} of "
        f"the {cv} fits and in one of the scores: these are listed.",
        "Non-private steps before the estimator learn nothing from the data. It is public that no "
        f"fit and no score fails on these {unit}s, because a failure is reported.",
    )
    cost = candidates.cost_of_runs(releases, of_fit, data.n_records, unit, *assumed)
    return of_fit, of_score, cost


def _mean(scores: list[Score]) -> Score:
    """Return the mean of a score over folds."""
    first, size, unit = scores[0], len(scores), max(score.unit**score.power for score in scores)
    low, high = zip(*(score.limits for score in scores), strict=True)
    return replace(
        first,
        numerator=first.sign * sum(score / unit for score in scores) / size,
        denominator=1.0,
        noise=(sum((score.noise_std / unit) ** 2 for score in scores) / size**2, 0.0, 0.0),
        sampling=math.hypot(*(score.sampling_std for score in scores)) / size,
        limits=(min(low) ** first.power, max(high) ** first.power),
        power=1.0,
        note=first.note if len({score.note for score in scores}) == 1 else OWN_RANGES,
        unit=unit,
    )
