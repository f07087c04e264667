"""Examine what is around a fit: estimators that call it, and the steps before it.

An estimator does not see its surroundings. Those that select, repeat or transform rows, or score
fits without noise, change what a guarantee is worth.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)
from sklearn.utils import get_tags

from skdp._fitting.refusals import InputError
from skdp._fitting.user_warnings import NotPrivateWarning, warn_about_score
from skdp._numbers import listed
from skdp._warnings import calls_around, warn

RESAMPLES = (
    "adds, repeats or removes rows by looking at them ({}.fit_resample). The result is NOT private "
    "as stated: whoever is in k of the rows is protected k times less. Leave that step out. For "
    "rare classes set class_weight to public weights, such as class_weight={{0: 1, 1: 20}}."
)

# What these learn is the set of labels, or the number of columns. Both are public: the statements
# of fits say so.
PUBLIC_ONLY = frozenset({"LabelBinarizer", "LabelEncoder", "PolynomialFeatures"})


# ---------------------------------------------------------------- calls around a fit


def fits_around() -> Iterator[tuple[object, FrameType]]:
    """Yield the estimators whose fits are around this one, innermost first, and their calls."""
    for frame in calls_around():
        if frame.f_code.co_varnames[:1] == ("self",) and "fit" in frame.f_code.co_name:
            yield frame.f_locals["self"], frame


def warn_about_calls(who: str, model: object, epsilon: float) -> None:
    """Warn of calls that resample or transform the rows of a fit, or score it without noise."""
    for text in resampling_around():
        warn(f"{who}: {text}", NotPrivateWarning)
    if any(map(_scores_exactly, calls_around())):
        text = "scikit-learn scores this fit on other private rows"
        warn_about_score(who, epsilon, text)
    reading: dict[str, None] = {}
    for pipeline, _ in fits_around():
        for _, step in pipeline.steps if isinstance(pipeline, Pipeline) else ():
            if any(part is model for part in everything_in(step)):
                break
            reading |= dict.fromkeys(learning_parts(step))
    if reading:
        warn(
            f"{who}: steps before this fit learn from the rows without privacy: "
            f"{', '.join(reading)}. Through them one row may change all others, which the stated "
            "epsilon does not cover. The estimators of skdp scale columns themselves. Otherwise "
            "use skdp.DPStandardScaler, skdp.DPTabularPreprocessor, or steps that were fitted on "
            "public data (sklearn.frozen.FrozenEstimator).",
            NotPrivateWarning,
        )


def resampling_around() -> tuple[str, ...]:
    """Say which estimator around a fit resamples its rows, () if none does."""
    for meta, _ in fits_around():
        sampler = _resampler_in(meta)
        if sampler is not None:
            return (f"{type(meta).__name__} {RESAMPLES.format(sampler)}",)
    return ()


def _resampler_in(meta: object) -> str | None:
    """Return the name of the part of an estimator that has ``fit_resample``, if there is one."""
    parts = [] if isinstance(meta, type) else list(getattr(meta, "__dict__", {}).values())
    seen: set[int] = set()
    while parts:
        part = parts.pop()
        if isinstance(part, list | tuple):
            parts += [] if id(part) in seen else part
            seen.add(id(part))
        elif hasattr(type(part), "fit_resample"):
            return type(part).__name__
    return None


def _scores_exactly(frame: FrameType) -> bool:
    """Whether a call is one of scikit-learn that scores a fit, other than by its ``score``."""
    if not str(frame.f_globals.get("__name__")).startswith("sklearn."):
        return False
    for name in {"scorer", "curve_scorer"}.intersection(frame.f_code.co_varnames):
        scorer = frame.f_locals.get(name)
        for one in getattr(scorer, "_scorers", {name: scorer}).values():
            # What a function of the user computes may be private.
            is_exact = type(one).__module__.startswith("sklearn.")
            if is_exact and type(one).__name__ != "_PassthroughScorer":
                return True
    return False


def refuse_groups_of_others(who: str) -> None:
    """Raise ValueError for a fit by rows inside a pipeline in which another step got groups."""
    for around, frame in fits_around():
        given = frame.f_locals.get("params")
        if not isinstance(given, dict):
            continue
        is_pipeline = hasattr(around, "steps")  # to a search they are for folds
        named = [
            name
            for name, value in given.items()
            if value is not None
            and (name.endswith("__groups") or (name == "groups" and is_pipeline))
        ]
        if named:
            raise InputError(
                f"{who}: the pipeline passes {listed(named)}, and no groups to this step, which "
                "would protect single rows. Pass them to each private step, as in fit(X, y, "
                f"{who.lower()}__groups=groups, ...), or let DPHoldout(X, y, groups=groups)"
                ".fit(pipeline) do it. This step released nothing. Steps before it are spent."
            )


# ---------------------------------------------------------------- parts that learn from rows


def everything_in(
    thing: object, is_closed: Callable[[object], bool] = lambda part: False
) -> Iterator[object]:
    """Yield an object and its parts at any depth, each once, but no part of closed objects."""
    seen: dict[int, object] = {}
    waiting = [thing]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        yield part
        if not is_closed(part):
            waiting += reversed(list(parts_of(part)))


def parts_of(thing: object) -> Iterable[object]:
    """Return the parts of a container, an estimator or another object of scikit-learn or skdp."""
    if isinstance(thing, Mapping):
        return list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    if isinstance(thing, np.ndarray):
        return thing.ravel().tolist() if thing.dtype == object else []
    if isinstance(thing, type) or not hasattr(thing, "__dict__"):
        return []
    inside = type(thing).__module__.partition(".")[0] in ("sklearn", "skdp")
    return list(vars(thing).values()) if inside or hasattr(thing, "fit") else []


def reads_rows(step: BaseEstimator) -> bool:
    """Whether fitting this non-private step of a pipeline learns from the rows."""
    if not hasattr(step, "fit") or isinstance(step, type) or type(step).__name__ in PUBLIC_ONLY:
        return False
    if isinstance(step, BaseEstimator) and not get_tags(step).requires_fit:
        return False
    if type(step).__name__ == "SplineTransformer":  # learns nothing else than knots
        return isinstance(step.knots, str)
    # These encoders learn nothing else than categories, if those were given, and count no rows.
    if type(step) not in (OneHotEncoder, OrdinalEncoder):
        return True
    counts = step.min_frequency is not None or step.max_categories is not None
    return counts or isinstance(step.categories, str)


def learning_parts(thing: object, is_sparse: bool = False) -> Iterator[str]:
    """Yield the estimators in an object whose fits read rows without privacy, with their steps.

    Parameters
    ----------
    thing : estimator or object
        Fitted or not. The own work of an estimator around a private model is not named.
    is_sparse : bool, default=False
        Whether it receives sparse rows.

    Yields
    ------
    str
    """
    # Resampling has a warning of its own.
    if _is_private(thing) or isinstance(thing, FrozenEstimator) or hasattr(thing, "fit_resample"):
        return
    if isinstance(thing, list | tuple):
        for part in thing:
            yield from learning_parts(part, is_sparse)
    elif isinstance(thing, Pipeline):
        for name, step in thing.steps:
            yield from (f"{part} in {name!r}" for part in learning_parts(step, is_sparse))
            is_sparse = is_sparse or _may_return_sparse(step)
    elif isinstance(thing, BaseEstimator) and (
        isinstance(thing, FeatureUnion | ColumnTransformer)
        or any(map(_is_private, everything_in(thing)))
    ):
        if isinstance(thing, ColumnTransformer):
            reasons = _why_columns_read_rows(thing, is_sparse)
            yield from (f"ColumnTransformer ({reason})" for reason in reasons)
        yield from learning_parts(list(thing.get_params(deep=False).values()), is_sparse)
    elif reads_rows(thing):
        yield type(thing).__name__


def _is_private(thing: object) -> bool:
    return hasattr(thing, "_protects_labels")


def _why_columns_read_rows(columns: ColumnTransformer, is_sparse: bool) -> Iterator[str]:
    """Yield the reasons why a ColumnTransformer itself reads rows, whatever its parts do."""
    # A selector by type and name looks at no value. Of other functions this is not known.
    selectors = [chosen for _, _, chosen in columns.transformers if callable(chosen)]
    if any(type(selector) is not make_column_selector for selector in selectors):
        yield "a function of the rows chooses columns. Name them, or use make_column_selector"
    parts = [*(part for _, part, _ in columns.transformers), columns.remainder]
    varying = [part for part in parts if not _makes_one_entry_of_each_cell(part)]
    if columns.sparse_threshold != 0 and (is_sparse or _may_return_sparse(varying)):
        yield "its output is dense or sparse by the number of zeros. Set sparse_threshold=0"


def _makes_one_entry_of_each_cell(step: Any) -> bool:
    """Whether it is an encoder that refuses unknown labels and drops none."""
    return type(step) is OneHotEncoder and step.drop is None and step.handle_unknown == "error"


def _may_return_sparse(step: object) -> bool:
    """Whether a step, or a part of it, may return sparse rows for dense rows."""
    return any(
        part.sparse_output if hasattr(part, "sparse_output") else _is_unknown(part)
        for part in everything_in(step)
    )


def _is_unknown(step: Any) -> bool:
    """Whether it is a transformer of unknown output. A step that reads rows is named itself."""
    if type(step) is FunctionTransformer:
        return step.func is not None and not isinstance(step.func, np.ufunc)
    dense = OrdinalEncoder, PolynomialFeatures, Pipeline, FeatureUnion, ColumnTransformer
    is_known = isinstance(step, (*dense, FrozenEstimator)) or _is_private(step)
    return hasattr(step, "transform") and not is_known and not reads_rows(step)
