"""What a fitted search tells about its fits, without rows: the models, their order, the shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone, is_classifier
from sklearn.pipeline import Pipeline

from skdp.accounting import PrivacyStatement
from skdp.fitting.estimator import is_private_model
from skdp.model_selection.total import reads_rows


@dataclass(frozen=True)
class Unwrapped:
    """A private estimator and the steps of a pipeline before it.

    Attributes
    ----------
    model : PrivateEstimator
    path : str
        What the names of its parameters begin with in the pipeline.
    before : tuple of (name, step) pairs
    """

    model: Any
    path: str
    before: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, estimator: Any) -> Unwrapped:
        """Open pipelines, or raise ValueError if there is no private estimator at the end."""
        path, before = "", []
        while isinstance(estimator, Pipeline):
            before += estimator.steps[:-1]
            name, estimator = estimator.steps[-1]
            path += f"{name}__"
        if not is_private_model(estimator):
            raise ValueError(
                f"privacy_of: {type(estimator).__name__} is no estimator of skdp. What its fits "
                "release is not known; the estimator of skdp must stand alone, or be the last step "
                "of a Pipeline."
            )
        return cls(estimator, path, tuple(before))

    @property
    def statements_before(self) -> tuple[PrivacyStatement, ...]:
        """What fitted private steps before the estimator have cost."""
        found = (getattr(step, "privacy_", None) for _, step in self.before)
        return tuple(item for item in found if isinstance(item, PrivacyStatement))

    @property
    def steps_that_read_rows(self) -> tuple[str, ...]:
        """Steps before the estimator that are fitted on rows, and are not known to be private."""
        return tuple(
            f"{name} ({type(step).__name__})"
            for name, step in self.before
            if reads_rows(step)
            and not isinstance(getattr(step, "privacy_", None), PrivacyStatement)
            and not _is_private(step)
        )

    @property
    def private_before(self) -> tuple[Any, ...]:
        """Private steps before the estimator, fitted or not."""
        return tuple(step for _, step in self.before if _is_private(step))


def _is_private(step: Any) -> bool:
    """Whether a step before the estimator says without rows what its fit costs."""
    return isinstance(step, OneToOneFeatureMixin) and callable(getattr(step, "plan", None))


@dataclass(frozen=True)
class Shape:
    """Public shape of the data of a search.

    Attributes
    ----------
    n_samples : int
        Records: rows, or groups.
    n_features : tuple of int
        Columns that reach the estimator, for each candidate.
    n_outputs : int or None
        Classes or targets; None where the estimator declares its classes.
    unit : {"row", "group"}
        What a record is.
    """

    n_samples: int
    n_features: tuple[int, ...]
    n_outputs: int | None
    unit: str = "row"

    @classmethod
    def of(
        cls,
        search: Any,
        n_samples: int | None,
        n_groups: int | None,
        n_features: int | Sequence[int] | None,
        n_outputs: int | None,
    ) -> Shape:
        """Complete what the user gave by what the refitted model knows."""
        asked = Unwrapped.of(search.estimator)
        params = _first(search)
        records = columns = outputs = None
        unit = "row" if n_groups is None else "group"
        if hasattr(search, "best_estimator_"):
            refitted = Unwrapped.of(search.best_estimator_).model
            columns, unit = refitted.n_features_in_, _unit(refitted.privacy_, unit)
            records = refitted.privacy_.n_rows if unit == "row" else refitted.privacy_.n_groups
            shown = refitted.classes_ if is_classifier(refitted) else np.atleast_2d(refitted.coef_)
            outputs = len(shown)
        varied = _varies_before(params, asked)
        if n_features is None and varied:
            raise ValueError(
                "privacy_of: the candidates differ in steps before the estimator, so it is not "
                "known how many columns reach it. Pass n_features, one number for each of the "
                f"{len(params)} candidates (or one for all)."
            )
        if n_features is None or (np.ndim(n_features) == 0 and not varied):
            # mypy: np.ndim does not tell it that this is no sequence.
            n_features = _known("n_features", n_features, columns)  # type: ignore[arg-type]
        declared = getattr(asked.model, "classes", None) is not None
        number = n_samples if unit == "row" else n_groups
        return cls(
            n_samples=_known("n_samples" if unit == "row" else "n_groups", number, records),
            n_features=tuple(np.broadcast_to(n_features, len(params)).tolist()),
            n_outputs=None if declared else _known("n_outputs", n_outputs, outputs),
            unit=unit,
        )


def _unit(statement: PrivacyStatement, asked: str) -> str:
    if asked == "group" and statement.unit == "row":
        raise ValueError(
            "privacy_of: n_groups was passed, but the refitted model protects single rows: its fit "
            "got no groups. (Metadata reaches the fits of a search where routing is enabled and "
            "the estimator asked for it: set_fit_request(groups=True).)"
        )
    return statement.unit


def _first(search: Any) -> list[dict[str, Any]]:
    """Parameters of the candidates of the first round."""
    params = list(search.cv_results_["params"])
    return params[: list(search.cv_results_.get("iter", [0] * len(params))).count(0)]


def _known(name: str, given: int | None, found: int | None) -> int:
    if given is not None and found is not None and given != found:
        raise ValueError(
            f"privacy_of: {name}={given} was passed, but the refitted model says {found}."
        )
    known = found if given is None else given
    if known is None:
        raise ValueError(
            f"privacy_of: {name} is not known, since the search kept no refitted model "
            f"(refit=False). Pass {name}=... ."
        )
    return known


def _varies_before(candidates: list[dict[str, Any]], asked: Unwrapped) -> bool:
    """Whether candidates differ in what comes before the estimator."""
    own = asked.path.removesuffix("__")
    seen: dict[str, Any] = {}
    for params in candidates:
        for name, value in params.items():
            if name.startswith(asked.path) or name == own:
                continue
            if str(seen.setdefault(name, value)) != str(value):
                return True
    return False


@dataclass(frozen=True)
class Round:
    """Candidates that were trained on the same splits, with the same resources.

    Attributes
    ----------
    models : tuple of PrivateEstimator
    n_features : tuple of int
        Columns that reach each of them.
    n_outputs : int or None
    share : float
        Share of each training set that was used.
    chosen : int or None
        How many of them were trained, being chosen by scores; None for all of them.
    before : tuple of tuple
        Private steps before each of them.
    unit : {"row", "group"}
        What a record is.
    """

    models: tuple[Any, ...]
    n_features: tuple[int, ...]
    n_outputs: int | None
    share: float
    chosen: int | None
    before: tuple[tuple[Any, ...], ...]
    unit: str = "row"

    def plans(self, n_train: int) -> list[tuple[PrivacyStatement, ...]]:
        """Return what was released to train them on ``n_train`` records each: a tuple for each.

        Private steps keep the number of columns. Where a later step changes it, what they cost
        does not: it is their epsilon for any number.

        Which ones scores have chosen must not change the price, and the plan that is most expensive
        alone need not be so beside others. So each distinct plan is counted as often as any was
        chosen.
        """
        size = int(self.share * n_train)
        rows, groups = (size, None) if self.unit == "row" else (None, size)
        outputs = () if self.n_outputs is None else (self.n_outputs,)
        plans = [
            (
                *(step.plan(rows, columns, n_groups=groups) for step in before),
                model.plan(rows, columns, *outputs, n_groups=groups),
            )
            for model, before, columns in zip(
                self.models, self.before, self.n_features, strict=True
            )
        ]
        if self.chosen is None:
            return plans
        distinct = {tuple(plan.releases for plan in parts): parts for parts in plans}
        return [*distinct.values()] * self.chosen

    @property
    def deltas(self) -> set[float]:
        """Return the deltas of all that was released."""
        steps = [step for before in self.before for step in before if step.bounds is None]
        return {step.delta for step in (*self.models, *steps)}


def rounds_of(search: Any, shape: Shape) -> tuple[list[Round], tuple[str, ...]]:
    """Return the rounds of a search, the refit last, and the steps that read rows before a fit.

    A search has one round, successive halving several: who goes on to a later one is chosen by
    scores, from all candidates of the first.
    """
    results = search.cv_results_
    params = results["params"]
    iterations = list(results.get("iter", [0] * len(params)))
    resources = list(results.get("n_resources", [None] * len(params)))
    resource = getattr(search, "resource", None)
    first = _first(search)
    reading: dict[str, None] = {}
    rounds: list[Round] = []
    for iteration in sorted(set(iterations)):
        amount = resources[iterations.index(iteration)]
        models, before = [], []
        for entry in first:
            changed = entry if resource in (None, "n_samples") else {**entry, resource: amount}
            candidate = clone(search.estimator).set_params(**clone(changed, safe=False))
            found = Unwrapped.of(candidate)
            reading |= dict.fromkeys(found.steps_that_read_rows)
            models.append(found.model)
            before.append(found.private_before)
        share = amount / shape.n_samples if resource == "n_samples" else 1.0
        chosen = None if iteration == 0 else iterations.count(iteration)
        rounds.append(
            Round(
                tuple(models),
                shape.n_features,
                shape.n_outputs,
                share,
                chosen,
                tuple(before),
                shape.unit,
            )
        )
    if hasattr(search, "best_estimator_"):
        rounds.append(replace(rounds[-1], share=1.0, chosen=1))
    return rounds, tuple(reading)


def require_as_fitted(search: Any) -> tuple[str, ...]:
    """Raise ValueError if a search shows that its estimator was changed after the fit.

    A search keeps its estimator by reference, so that a change of it would change the price. What
    the refit used is held against it.

    Returns
    -------
    tuple of str
        What could not be checked, and is assumed.
    """
    assumed = "Since the search was fitted, its estimator and its cv have not been changed"
    if not hasattr(search, "best_estimator_"):
        return (f"{assumed}: without a refitted model (refit=False) nothing tells.",)
    candidates = list(search.cv_results_["params"])
    best = candidates[search.best_index_]
    expected = clone(search.estimator).set_params(**clone(best, safe=False)).get_params()
    found = search.best_estimator_.get_params()
    resource = getattr(search, "resource", None)  # a halving search sets it anew in each round
    changed = sorted(
        name
        for name in expected.keys() | found.keys()
        if name != resource and not _alike(expected.get(name), found.get(name))
    )
    if changed:
        raise ValueError(
            f"privacy_of: the estimator of this {type(search).__name__} was changed after the fit: "
            f"the refitted model has other values of {', '.join(changed)}. Restore them, so that "
            "the candidates are priced as they were fitted."
        )
    unseen = {name for entry in candidates for name in best if name not in entry}
    if unseen:
        return (f"{assumed}, nor their value(s) of {', '.join(sorted(unseen))}.",)
    return ()


def _alike(one: Any, other: Any) -> bool:
    """Whether two values of a parameter are the same; estimators are told by their class."""
    if isinstance(one, BaseEstimator):
        return type(one) is type(other)  # their parameters are compared by name
    if one is other:
        return True
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if callable(one) or callable(other):
        return one is other
    return bool(joblib.hash(one) == joblib.hash(other))
