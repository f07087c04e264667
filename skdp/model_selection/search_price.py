"""What a plain search of scikit-learn around a private estimator cost, from public facts."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, check_cv

from skdp.accounting import PrivacyStatement, ReleaseRecord, compose_statements
from skdp.fitting.parameters import PrivacyWarning
from skdp.model_selection.searched import Shape, Unwrapped, require_as_fitted, rounds_of
from skdp.model_selection.trainings import (
    READ_LABELS,
    Membership,
    memberships_among,
    memberships_of,
    memberships_of_groups,
    row_numbers,
    trainings_of_groups,
)

SCORES = (
    "The scores are NOT private and NOT part of this price: every held-out score is computed from "
    "rows without noise (cv_results_, best_score_, test_score). Nor is anything private that was "
    "chosen by them: which candidate is the best (best_params_, best_index_), and hence which one "
    "was refitted (best_estimator_). The price is that of the noisy answers in all of the models, "
    "for choices made without looking at these rows."
)
LABELS = (
    "The splits were made by looking at the labels ({}): one changed label can move other records "
    "to other folds. That is NOT part of this price, which holds for splits that are given. Pass "
    "cv=KFold(..., shuffle=True) for splits that do not look."
)
TAKEN = (
    "The splits are taken as public, made without looking at rows or labels. (StratifiedKFold, the "
    "default for classifiers, looks at the labels.)"
)
SORTED = (
    "The labels of groups have a total order, as numbers and strings do: scikit-learn's splitters "
    "sort labels, and may take rows of one group apart where they have none."
)
SEEDED = (
    "The fits were given seeds (random_state): those with the same seed have the same noise, which "
    "the difference of two models takes off again. This price does NOT hold for them; it is that "
    "of the same search with random_state=None."
)


def privacy_of(
    search: Any,
    *,
    delta: float | None = None,
    n_samples: int | None = None,
    n_features: int | Sequence[int] | None = None,
    n_outputs: int | None = None,
    splits: Iterable[tuple[Any, Any]] | None = None,
    n_groups: int | None = None,
    groups: Any = None,
) -> PrivacyStatement:
    """Return what the fits of a plain search or cross-validation cost together.

    All candidates are counted, each record in the trainings that it takes part in (K - 1 of K in
    K-fold cross-validation), and the refit. Scores are not counted, because they are not private:
    ``assumptions`` says so. The price is found without rows, from what is public.

    Parameters
    ----------
    search : fitted GridSearchCV, RandomizedSearchCV or halving search, or result of cross_validate
        Around an estimator of skdp, alone or as the last step of a pipeline. `cross_validate` needs
        ``return_estimator=True``; with ``return_indices=True`` its price is lower.
    delta : float or None, default=None
        In [0, 1): the delta at which the total is stated; None for that of the fits.
    n_samples : int or None, default=None
        Number of rows. None takes it from the refitted model.
    n_features : int, array of shape (n_candidates,) or None, default=None
        Columns that reach the estimator. None takes it from the refitted model.
    n_outputs : int or None, default=None
        Classes of a classifier, all of them in every training set, or targets of a regressor. None
        takes it from the refitted model.
    splits : iterable of (train, test) pairs or None, default=None
        The splits, where they do not follow from ``search.cv`` and the number of rows. They are
        taken as public.
    n_groups : int or None, default=None
        Number of groups, where the fits got ``groups``; a record is a group then. None takes it
        from the refitted model.
    groups : array of shape (n_samples,) or None, default=None
        Labels of the rows, where the fits got them and splits are given by row numbers: as
        ``splits``, or in a result of `cross_validate`. ``GroupKFold(shuffle=True)``,
        `GroupShuffleSplit` and the splitters that leave groups out need none.

    Returns
    -------
    PrivacyStatement
        Its releases are those that touch one record, the one that meets most.

    Raises
    ------
    ValueError
        If something that is needed is not known, or the estimator is none of skdp's.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> import skdp
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(skdp.DPRidge(epsilon=0.5), {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
    >>> round(skdp.privacy_of(search).epsilon, 2)
    2.0
    """
    if isinstance(search, Mapping):
        return _of_cross_validation(search, delta, groups)
    # The halving searches are experimental in scikit-learn, hence known by what they have.
    is_halving = hasattr(search, "resource") and hasattr(search, "factor")
    if not (isinstance(search, GridSearchCV | RandomizedSearchCV) or is_halving):
        raise ValueError(
            "privacy_of needs a fitted GridSearchCV, RandomizedSearchCV or halving search, or the "
            f"result of cross_validate(..., return_estimator=True); got {type(search).__name__}. "
            "For fitted models there is total_privacy."
        )
    if not hasattr(search, "cv_results_"):
        raise ValueError(f"privacy_of: this {type(search).__name__} is not fitted yet.")
    shape = Shape.of(search, n_samples, n_groups, n_features, n_outputs)
    return _of_search(search, shape, delta, None if splits is None else list(splits), groups)


def _of_search(
    search: Any, shape: Shape, delta: float | None, splits: list[Any] | None, groups: Any
) -> PrivacyStatement:
    # 1. Which trainings one record takes part in, and which rounds there were.
    assumed = require_as_fitted(search)
    splitter = _splitter(search, shape.n_samples, splits)
    if shape.unit == "row":
        memberships = memberships_of(splitter, shape.n_samples)
    else:
        _refuse_parts_of_groups(search)
        memberships = memberships_of_groups(splitter, shape.n_samples, groups)
    rounds, reading = rounds_of(search, shape)
    if delta is None:
        delta = _common(delta for item in rounds for delta in item.deltas)
    # 2. The releases that touch it, for each membership; the most expensive one is the price.
    refitted = hasattr(search, "best_estimator_")
    search_rounds = rounds[:-1] if refitted else rounds
    sizes = {size for membership in memberships for size in membership}
    plans = {
        size: [plan for item in search_rounds for parts in item.plans(size) for plan in parts]
        for size in sizes
    }
    # Any candidate may be the one that is refitted: the most expensive total counts.
    last = rounds[-1].plans(shape.n_samples) if refitted else []
    refits = [[*parts] for parts in last] or [[]]
    total, membership = max(
        (_most_expensive(memberships, plans, refit, delta) for refit in refits),
        key=lambda found: found[0].epsilon,
    )
    # 3. What this rests on.
    n_trained = sum(
        len(item.models) if item.chosen is None else item.chosen for item in search_rounds
    )
    assumptions = [
        SCORES,
        f"{n_trained} candidates were trained on {search.n_splits_} splits each; a record takes "
        f"part in at most {membership.total()} of those trainings.",
        "The refit on all rows is counted as that of the candidate that makes the total largest, "
        "since scores chose it."
        if refitted
        else "There was no refit.",
    ]
    assumptions += assumed
    if any(item.chosen for item in search_rounds):
        assumptions.append(
            "Later rounds are counted as of all candidates that scores might have chosen."
        )
    if type(splitter) in READ_LABELS:
        assumptions.append(_warned(LABELS.format(type(splitter).__name__)))
    else:
        assumptions.append(f"The splits are public: {shape.unit} numbers alone decide on them.")
    if shape.unit == "group" and not isinstance(splitter, Sequence):
        assumptions.append(SORTED)
    return _finished(total, assumptions, reading)


def _refuse_parts_of_groups(search: Any) -> None:
    """Raise ValueError for a halving search that trained on some of the rows of groups."""
    if getattr(search, "resource", None) == "n_samples":
        raise ValueError(
            "privacy_of: this search trained on some of the rows first (resource='n_samples'), so "
            "how many groups were in a training is not known. Use another resource, or "
            "GridSearchCV."
        )


def _of_cross_validation(
    results: Mapping[str, Any], delta: float | None, groups: Any
) -> PrivacyStatement:
    if "estimator" not in results:
        raise ValueError(
            "privacy_of: this result of cross_validate holds no fitted models. Pass "
            "return_estimator=True to it (and return_indices=True, for a lower price)."
        )
    found = [Unwrapped.of(estimator) for estimator in results["estimator"]]
    if not all(hasattr(item.model, "privacy_") for item in found):
        raise ValueError("privacy_of: some of these fits failed, so what they cost is not known.")
    # Private steps before the estimator meet the same rows.
    statements = [[item.model.privacy_, *item.statements_before] for item in found]
    assumptions = [SCORES]
    of_groups = found[0].model.privacy_.unit == "group"
    if "indices" in results and not (of_groups and groups is None):
        trains, tests = results["indices"]["train"], results["indices"]["test"]
        n_samples = 1 + max(int(np.max(rows)) for rows in (*trains, *tests))
        if of_groups:
            numbers = trainings_of_groups(trains, groups)
            n_samples = 1 + max(int(one.max()) for one in numbers)
        else:
            numbers = [row_numbers(train, n_samples) for train in trains]
        memberships = memberships_among(numbers, range(len(found)), n_samples)
        assumptions.append(TAKEN)
    else:
        memberships = [Membership(range(len(found)))]
        assumptions.append(
            "Which records each training used is not known, so that each is counted in all of "
            "them; cross_validate(..., return_indices=True) tells, with groups if the fits got "
            f"them. {TAKEN}"
        )
    if delta is None:
        delta = _common(item.delta for met in statements for item in met if item.releases)
    total, membership = _most_expensive(memberships, dict(enumerate(statements)), [], delta)
    assumptions.append(
        f"A record takes part in at most {membership.total()} of {len(found)} trainings."
    )
    reading = dict.fromkeys(step for item in found for step in item.steps_that_read_rows)
    return _finished(total, assumptions, tuple(reading))


def _most_expensive(
    memberships: list[Membership],
    plans: Mapping[int, list[PrivacyStatement]],
    always: list[PrivacyStatement],
    delta: float,
) -> tuple[PrivacyStatement, Membership]:
    """Return the largest price of a membership: its trainings, and what every record meets."""
    priced = []
    order: dict[tuple[ReleaseRecord, ...], int] = {}
    for membership in memberships:
        met = [plan for kind, times in membership.items() for plan in plans[kind] * times]
        met = sorted(met + always, key=lambda plan: order.setdefault(plan.releases, len(order)))
        if met:
            priced.append((compose_statements(met, delta), membership))
    return max(priced, key=lambda pair: pair[0].epsilon)


def _finished(
    total: PrivacyStatement, assumptions: list[str], reading: tuple[str, ...]
) -> PrivacyStatement:
    if reading:
        assumptions.append(
            f"Steps before the estimator are fitted on the rows: {', '.join(reading)}. That is NOT "
            "part of this price, and through them one record moves all rows; it holds for steps "
            "that were fitted on public data."
        )
    if total.noise_source == "seeded":
        assumptions.append(_warned(SEEDED))
    return replace(total, assumptions=(*assumptions, *total.assumptions))


def _warned(sentence: str) -> str:
    warnings.warn(f"privacy_of: {sentence}", PrivacyWarning, stacklevel=4)
    return sentence


def _splitter(search: Any, n_samples: int, splits: list[Any] | None) -> Any:
    """Return the splitter of a search, or the list of its splits; as many as the search made."""
    if splits is None and isinstance(search.cv, Sequence):
        splits = list(search.cv)
    if splits is None and isinstance(search.cv, Iterable) and not hasattr(search.cv, "split"):
        raise ValueError(
            "privacy_of: the search consumed the splits that it was given as an iterator; pass "
            "splits=..., a list of them."
        )
    if splits is None:
        splitter = check_cv(search.cv, y=[0, 1], classifier=is_classifier(search.estimator))
        n_splits = splitter.get_n_splits(np.zeros((n_samples, 1)), None, np.arange(n_samples))
        if n_splits != search.n_splits_:
            raise ValueError(
                f"privacy_of: cv of this {type(search).__name__} was changed after the fit: it "
                f"makes {n_splits} splits, the search made {search.n_splits_}. Restore it."
            )
        return splitter
    if len(splits) != search.n_splits_:
        raise ValueError(
            f"privacy_of: {len(splits)} splits were passed; the search made {search.n_splits_}."
        )
    return splits


def _common(deltas: Iterable[float]) -> float:
    found = sorted(set(deltas))
    if len(found) > 1:
        raise ValueError(
            f"privacy_of: the fits have different deltas ({found}); pass the delta of the total."
        )
    return found[0]
