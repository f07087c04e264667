"""Recognise, from the fits of one budget, operations on rows between them.

An estimator does not see its surroundings, so a budget examines the inputs of its fits: targets
that come back as columns, numbers of records, weights. No row stays alive for this, and the record
stays in memory: it is never part of a model, a budget's attributes or a pickle.
"""

import hashlib
import secrets
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse
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

from skdp._fitting.data import Data
from skdp._fitting.parts import Part, Place, overlap, places_of
from skdp._fitting.user_warnings import NotPrivateWarning, PrivacyWarning
from skdp._numbers import AnyArray, Table, are_numbers
from skdp._oracle.sources.partitioned import Chunks
from skdp._warnings import calls_around, warn
from skdp.accounting import LABEL, PrivacyStatement

# Key of the fingerprints, new in each process, so that nobody can compare a guess with them.
_SECRET = secrets.token_bytes(32)

SELECTED_RECORDS = (
    "PrivacyBudget: the fits in this block had different numbers of records, and no split by skdp "
    "explains them. The operations between the fits are not counted. If they looked at the records "
    "(OneVsOneClassifier, RANSACRegressor, SelfTrainingClassifier and IterativeImputer select rows "
    "by their labels, residuals, predictions or missing cells. Scikit-learn's searches choose by "
    "exact scores), the total does not hold for what they return. Fixed numbers, and folds that do "
    "not look at the records, need no correction; dp_train_test_split, dp_cross_validate and "
    "DPSearchCV have theirs counted."
)
RETURNED_TARGET = (
    "{}: a column of X equals the target of an earlier fit in its budget, and adjacency='label' "
    "treats X as public: the column would be read without noise. RegressorChain and "
    "ClassifierChain (cv=None) pass targets on in this way. Use adjacency='replace_one', or fit "
    "the targets separately (MultiOutputRegressor, MultiOutputClassifier). The fit was refused, "
    "nothing was released, and nothing was charged."
)
SHARED_ROWS = (
    "{}: these rows, or some of them, were fitted as another part of the people, and no person is "
    "in two parts of one budget: the fits would have to add up. Fit on them outside of any part. "
    "It was refused, and nothing was released and nothing was charged."
)
CHANGING_WEIGHTS = (
    "PrivacyBudget: several fits in this block had sample weights that were not the same array. "
    "How they were computed is not counted. The weights of AdaBoostClassifier follow from other "
    "records, so that the total does not hold for it. It holds for those of BaggingClassifier and "
    "BaggingRegressor, which are random, and wherever each weight follows from its own record "
    "alone."
)


# What these learn is the set of labels, or the number of columns. Both are public: the statements
# of fits say so.
PUBLIC_ONLY = frozenset({"LabelBinarizer", "LabelEncoder", "PolynomialFeatures"})


# What each estimator was fitted on, as long as it lives. Copies of it begin anew.
_fits: weakref.WeakKeyDictionary[Any, list[tuple[list[Place], PrivacyStatement]]]
_fits = weakref.WeakKeyDictionary()


def add_fit(
    model: Any, arrays: tuple[Table, ...], statement: PrivacyStatement
) -> list[PrivacyStatement]:
    """Remember a fit, and return those of this very estimator on the same rows, itself the last.

    Rows are the same if one of the arrays is the same, or a part of it, as `places_of` says.
    """
    places = _places(arrays)
    known = _fits.setdefault(model, [])
    known.append((places, statement))
    return [stated for held, stated in known[:-1] if _meet(held, places)] + [statement]


def was_fitted_on(model: Any, arrays: tuple[Table, ...]) -> bool:
    """Whether a model, or one inside of it, was fitted on some of these rows."""
    places = _places(arrays)
    models = (one for one in everything_in(model) if isinstance(one, BaseEstimator))
    return any(_meet(held, places) for one in models for held, _ in _fits.get(one, ()))


def _places(arrays: tuple[Table, ...]) -> list[Place]:
    """Return which rows the arrays hold, and those inside `Chunks`."""
    inside = (one for array in arrays if isinstance(array, Chunks) for one in array.arrays)
    return [place for array in (*arrays, *inside) for place in places_of(array)]


def _meet(some: list[Place], others: list[Place]) -> bool:
    return any(overlap(one, other) for one in some for other in others)


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


def warn_about_steps_before(who: str, model: Any) -> None:
    """Warn of steps of a pipeline around a fit that have learnt from rows without privacy."""
    reading: dict[str, None] = {}
    for frame in calls_around():
        if frame.f_code.co_varnames[:1] == ("self",) and frame.f_code.co_name.startswith("fit"):
            pipeline = frame.f_locals["self"]
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


class FitHistory:
    """Inputs of the fits of one budget, without their rows."""

    def __init__(self) -> None:
        self._targets: set[bytes] = set()  # keyed fingerprints
        self._lengths: set[int] = set()  # of these targets
        self._n_records: set[tuple[Part, int]] = set()
        self._last_weights: dict[Part, weakref.ref[Any]] = {}
        self._weights_change = False
        self._places: dict[Part, list[Place]] = {}  # of the rows of each part of the people

    def shares_rows(self, part: Part, arrays: tuple[Table, ...]) -> bool:
        """Return whether arrays of a part of the people hold rows of another part.

        Contents of arrays are not compared: see `places_of`.
        """
        if not _is_named(part):
            return False
        others = (held for other, held in self._places.items() if other != part[:1])
        mine = _places(arrays)
        return any(_meet(held, mine) for held in others)

    def refuses(self, data: Data, stated: PrivacyStatement) -> bool:
        """Return whether X is public, and a column equals a target of an earlier fit, row by row.

        Columns are compared in the order of the rows, and to float32's precision. Order matters:
        a comparison that ignored it would find a public indicator column that merely has as many
        ones as the targets, and the refusal would reveal that number.
        """
        if stated.adjacency != LABEL or data.X.shape[0] not in self._lengths:
            return False
        return any(
            _fingerprint(*column, data.X.shape[0]) in self._targets for column in _columns(data.X)
        )

    def add_rows(self, part: Part, arrays: tuple[Table, ...]) -> None:
        """Remember which rows a fit on a part of the people was given."""
        if _is_named(part):
            self._places.setdefault(part[:1], []).extend(_places(arrays))

    def add(self, data: Data, stated: PrivacyStatement) -> None:
        """Remember a fit that was charged."""
        if stated.adjacency == LABEL:
            coded = data.targets.values
            coded = coded[:, :1] if data.has_offset and coded.ndim == 2 else coded
            for target in filter(are_numbers, (np.asarray(data.y), coded)):
                for column in target.reshape(len(target), -1).T:
                    # Columns of one value occur in many tables, and say nothing of single rows.
                    if (column != column[0]).any():
                        self._targets.add(_fingerprint(np.arange(len(column)), column, len(column)))
                        self._lengths.add(len(column))
        # A split explains what differs from part to part, not what differs within one.
        self._n_records.add((data.part, data.n_records))
        weights = data.given[2]
        if isinstance(weights, np.ndarray):
            known = self._last_weights.get(data.part)
            self._weights_change |= known is not None and known() is not weights
            self._last_weights[data.part] = weakref.ref(weights)

    def warn(self) -> None:
        """Warn if the inputs of the fits may result from an operation on rows between them."""
        if len(self._n_records) > len({part for part, _ in self._n_records}):
            warn(SELECTED_RECORDS, PrivacyWarning)
        if self._weights_change:
            warn(CHANGING_WEIGHTS, PrivacyWarning)


def _is_named(part: Part) -> bool:
    """Whether it is a part of the people, or a part of a split of one."""
    return bool(part) and isinstance(part[0][1], str)


def _columns(X: Table) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield the numbers of the rows that a column has entries in, and these."""
    if not sparse.issparse(X):
        places = np.arange(X.shape[0])
        for number in range(X.shape[1]):
            yield places, X[:, number]
        return
    by_column = sparse.csc_array(X)
    for start, stop in zip(by_column.indptr[:-1], by_column.indptr[1:], strict=True):
        yield by_column.indices[start:stop], by_column.data[start:stop]


def _fingerprint(places: AnyArray, values: AnyArray, n_rows: int) -> bytes:
    """Return a keyed fingerprint of a column, dense or sparse, to float32's precision."""
    nonzero = values != 0
    mantissa, exponent = np.frexp(values[nonzero].astype(np.float64))
    rounded = np.ldexp(mantissa.astype(np.float32).astype(np.float64), exponent)
    digest = hashlib.blake2b(n_rows.to_bytes(8, "little"), key=_SECRET, digest_size=16)
    digest.update(places[nonzero].astype(np.int64).tobytes())
    digest.update(rounded.tobytes())
    return digest.digest()
