"""Private cross-validation, with its honest price: each row is in all fits but one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from skdp import accounting
from skdp._numbers import is_integer, is_real, require
from skdp.fitting import parameters, parts
from skdp.fitting.assumptions import noise_assumptions, unit_assumptions
from skdp.fitting.estimator import charge_fit
from skdp.metrics import Score, Scores, questions
from skdp.metrics.dataset import read_dataset
from skdp.metrics.evaluation import PrivateScorer
from skdp.model_selection import candidates, row_checks
from skdp.model_selection.holdout import random_split

WHO = "dp_cross_validate"


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
    estimators: tuple[Any, ...]
    privacy_: accounting.PrivacyStatement

    def __getitem__(self, name: str) -> Score:
        return self.scores[name]

    def __repr__(self) -> str:
        cost = f"epsilon={self.privacy_.epsilon:.6g}, delta={self.privacy_.delta:.6g}"
        head = f"<CrossValidation of {len(self.folds)} folds at {cost}>"
        return "\n".join([head, *map(str, self.scores.values())])


def dp_cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    metrics: Any = None,
    *,
    cv: int = 5,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    score_share: float = 0.1,
    adjacency: str = "zero_out",
    budget: Any = None,
    target_range: Any = None,
    noise_source: str = "system",
    random_state: Any = None,
    groups: Any = None,
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
        Its own epsilon, delta, adjacency, accountant and noise source are replaced.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    metrics : str or iterable of str, default=None
        Those of `skdp.metrics.evaluate` that are single numbers.
    cv : int, default=5
        Number of folds, at least 2, drawn at random without looking at labels.
    epsilon : float, default=1.0
        Privacy budget of all fits and scores together; positive.
    delta : float, default=1e-6
        In (0, 1).
    score_share : float, default=0.1
        Share of the scores in the squared Gaussian-DP parameter, in (0, 1).
    adjacency, budget, target_range, noise_source, random_state
        As for `skdp.model_selection.DPSearchCV`.
    groups : array of shape (n_samples,) or None, default=None
        Labels of groups, such as persons; none may be missing. Folds hold whole groups, fits and
        scores protect them, and all is priced for a group.

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
    >>> found = dp_cross_validate(model, X, y, "accuracy", epsilon=3.0)
    >>> low, high = found["accuracy"].interval(0.95)
    >>> found.privacy_.epsilon <= 3.0
    True
    """
    parameters.check_budget(epsilon, delta)
    require("cv", cv, "be an integer of at least 2", is_integer(cv) and cv >= 2)
    fine = is_real(score_share) and 0 < score_share < 1
    require("score_share", score_share, "lie between 0 and 1", fine)
    require("delta", delta, "be above 0: noise is Gaussian", delta > 0 or math.isinf(epsilon))
    unit = parts.unit_of(groups)
    part = parts.part_of(X, y, groups, unit=unit)
    data = read_dataset(WHO, X, y, groups)
    n_records = data.n_records
    require("cv", cv, f"be at most the number of {unit}s, {n_records}", cv <= n_records)
    # 1. What each fit and each score gets, and what they cost together.
    relation = accounting.Adjacency.parse(adjacency)
    mu = accounting.gaussian_mu(epsilon, delta) * math.sqrt(1 - candidates.MARGIN)
    of_fit = candidates.Terms(
        mu * math.sqrt((1 - score_share) / (cv - 1)), delta, str(relation), noise_source
    )
    of_score = candidates.Terms(mu * math.sqrt(score_share), delta, str(relation), noise_source)
    statement = _statement(int(cv), of_fit, of_score, n_records, unit, epsilon)
    # 2. The fits and scores, checked.
    kind = "classifier" if is_classifier(estimator) else "regressor"
    labels = candidates.public_labels(WHO, estimator, data.y, epsilon)
    ready = candidates.prepared_candidate(WHO, estimator, {}, of_fit, labels)
    row_checks.check_rows(WHO, [ready], data)
    n_features = int(np.shape(X)[1]) if len(np.shape(X)) == 2 else 1
    n_outputs = 1 if labels is None else len(labels)
    questions.metrics_of(kind, metrics, n_outputs)
    sizes = [n_records * (i + 1) // cv - n_records * i // cv for i in range(cv)]
    for size in set(sizes):
        shape = n_records - size, n_features, n_outputs
        candidates.check_price(WHO, ready, of_fit, shape, target_range is not None, unit)
    scorer = PrivateScorer(
        ready,
        metrics,
        epsilon=of_score.epsilon(),
        delta=delta,
        adjacency=str(relation),
        accountant="gdp",
        budget=budget,
        target_range=target_range,
        noise_source=noise_source,
        random_state=random_state,
    )
    scorer._check_terms()
    drawn_from = charge_fit(scorer, parts.statement_on_part(statement, part), who=WHO)
    # 3. One fold after the other.
    numbers = random_split(sizes, drawn_from, data.groups)

    def seeds() -> int:
        return int(drawn_from.integers(2**31, 1)[0])

    models: list[Any] = []
    folds: list[Any] = []
    try:
        with parts.charged_as_a_whole(unit):
            for fold in range(cv):
                others = np.concatenate([rows for i, rows in enumerate(numbers) if i != fold])
                model = clone(ready)
                candidates.new_seeds(model, seeds)
                candidates.fitted(WHO, model, **data.subset(others))
                judge = clone(scorer).set_params(model=model, budget=None)
                if noise_source == "seeded":
                    judge.set_params(random_state=seeds())
                folds.append(judge.fit(**data.subset(numbers[fold])).scores_)
                models.append(model)
    except Exception as reason:  # its message may quote a cell, or say that nothing was charged
        raise RuntimeError(
            f"{WHO}: a fit or a score failed with {type(reason).__name__}. The budget of this "
            "cross-validation is spent. Fit the estimator by itself, to see why."
        ) from None
    placed = parts.statement_on_part(statement, part)
    for model in models:
        candidates.forget_seeds(WHO, model)
        for fit in candidates.private_fits(WHO, model):
            fit.privacy_ = placed
    scores = {name: _mean([fold[name] for fold in folds]) for name in folds[0]}
    found = {name: score for name, score in scores.items() if score is not None}
    return CrossValidation(found, tuple(folds), tuple(models), placed)


def _statement(
    cv: int,
    of_fit: candidates.Terms,
    of_score: candidates.Terms,
    n_records: int,
    unit: str,
    epsilon: float,
) -> accounting.PrivacyStatement:
    """Return the price: what a record meets, which is all fits but one and one score."""
    relation = accounting.Adjacency.parse(of_fit.adjacency)
    records = []
    for kind, count, terms in (("fit without a fold", cv - 1, of_fit), ("scores", 1, of_score)):
        noise = 0.0 if math.isinf(terms.mu) else 1 / terms.mu
        event = accounting.Gaussian(noise, spread=1.0)
        records.append(accounting.ReleaseRecord(kind, count, noise, event))
    whole = accounting.Composed(tuple((record.event, record.count) for record in records))
    spent, accountant = accounting.price(whole, of_fit.delta, relation)
    assumptions = (
        *unit_assumptions(n_records, unit, "each model and each score"),
        "The number of columns is public, and so are the labels.",
        f"{unit.capitalize()}s were divided in {cv} folds at random. A {unit} is in {cv - 1} of "
        f"the {cv} fits and in one of the scores: these are listed.",
        "Every step before the estimator that is not private learns nothing from rows. That no fit "
        f"and no score fails on these {unit}s is public: a failure is told.",
        *noise_assumptions(of_fit.noise_source, epsilon),
    )
    return accounting.PrivacyStatement(
        epsilon=spent,
        delta=of_fit.delta,
        adjacency=str(relation),
        accountant=accountant,
        releases=tuple(records),
        assumptions=assumptions,
        noise_source="none" if math.isinf(epsilon) else of_fit.noise_source,
        **candidates.record_counts(n_records, unit),
    )


def _mean(scores: list[Any]) -> Score | None:
    """Return the mean of a score over folds; None for matrices and curves."""
    first = scores[0]
    if not isinstance(first, Score):
        return None
    size = len(scores)
    value = first.sign * sum(score.value for score in scores) / size
    noise = sum(score.noise_std**2 for score in scores) / size**2
    sampling = math.sqrt(sum(score.sampling_std**2 for score in scores)) / size
    return Score(first.name, value, 1.0, (noise, 0.0, 0.0), sampling, first.limits, first.sign)
