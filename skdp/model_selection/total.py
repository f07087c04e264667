"""Add up the prices of the private models inside fitted estimators."""

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from skdp._warnings import warn
from skdp.accounting import Cost, PrivacyStatement, composed
from skdp.fitting.between_fits import everything_in, parts_of, reads_rows
from skdp.fitting.estimator import PrivateEstimator
from skdp.fitting.user_warnings import RESAMPLES, NotPrivateWarning, resampler_in

# Estimators of scikit-learn that keep every model which they fitted, each fitted on rows whose
# number is public, and on no row twice.
KEEP_ALL_FITS = frozenset(
    {
        "BaggingClassifier",
        "BaggingRegressor",
        "CalibratedClassifierCV",
        "ClassifierChain",
        "ColumnTransformer",
        "FeatureUnion",
        "FixedThresholdClassifier",
        "FrozenEstimator",
        "MultiOutputClassifier",
        "MultiOutputRegressor",
        "OneVsRestClassifier",
        "OutputCodeClassifier",
        "Pipeline",
        "RegressorChain",
        "SelectFromModel",
        "TransformedTargetRegressor",
        "VotingClassifier",
        "VotingRegressor",
    }
)

# Of these, what they do themselves with rows that were fitted privately.
NOT_PRIVATE = {
    "CalibratedClassifierCV": (
        "its calibration reads predictions and labels without noise, and its folds may follow "
        "from labels"
    )
}

# What these do with rows between fits, which no budget counts, so that their result is not private,
# whatever their fits are.
NOT_COUNTED_BETWEEN_FITS = {
    "AdaBoostClassifier": "computes weights of each row from all others",
    "AdaBoostRegressor": "draws rows by their errors",
    "IterativeImputer": "selects rows by their missing cells, and fills the others in",
    "OneVsOneClassifier": "selects rows by their labels",
    "RANSACRegressor": "selects rows by their residuals",
    "SelfTrainingClassifier": "selects rows by what it predicts for them",
}

DISJOINT = (
    "No row, and no person, is in the rows of two of these fits, and which rows each of them has "
    "is public: the costliest part is charged."
)
SEEDED = (
    "Several of the fits had seeded noise. Those with the same seed have the same noise, which "
    "cancels in the difference of two models. This total does NOT hold for them; it is that of the "
    "same fits with noise='system'."
)


def total_privacy(
    *models: BaseEstimator | PrivacyStatement, delta: float | None = None, disjoint: bool = False
) -> PrivacyStatement:
    """Return what several fits cost together, on the same rows or on disjoint ones.

    Parameters
    ----------
    *models : fitted estimators or PrivacyStatement
        Private models and statements, and estimators of scikit-learn that hold private models and
        keep all that they fitted: pipelines, unions and column transformers, voting, bagging and
        so on. Every private model inside is counted.
    delta : float or None, default=None
        In [0, 1): the delta at which the total is stated; None for the one that all of the models
        state.
    disjoint : bool, default=False
        Whether each model was fitted on the rows of other people, such as one model per hospital.
        A person is then in one fit at most, and the total is that of the costliest model
        (parallel composition, McSherry 2009, Thm 4). Sizes and membership of the parts have to be
        public. False adds up all models, as for fits on the same rows.

    Returns
    -------
    PrivacyStatement
        Of all the releases; the queries of a later fit may depend on the
        answers to earlier ones. ``assumptions`` name the steps that read rows without privacy:
        they are not part of the total.

    Raises
    ------
    ValueError
        If no model is given, one has no statement, the models state different adjacencies (such
        guarantees do not add up to one), or an estimator fitted private models that it did not
        keep. `skdp.privacy_of` prices searches, and a `skdp.PrivacyBudget` counts every fit.

    Warns
    -----
    NotPrivateWarning
        If steps read rows without privacy, or several of the fits had seeded noise.

    Examples
    --------
    >>> import skdp
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> models = [skdp.DPRidge().fit(X, y) for _ in range(4)]
    >>> round(skdp.total_privacy(*models, delta=1e-6).epsilon, 2)
    2.12

    Two models of different patients:

    >>> models = [skdp.DPRidge().fit(X[half], y[half]) for half in (slice(0, 221), slice(221, 442))]
    >>> round(skdp.total_privacy(*models, delta=1e-6, disjoint=True).epsilon, 2)
    1.0
    """
    if not models:
        raise ValueError("total_privacy needs at least one fitted model.")
    who = "total_privacy"
    costs: list[Cost] = []
    uncovered: dict[str, None] = {}
    n_seeded = 0
    for model in models:
        collector = _Collector()
        collector.visit(model)
        if not collector.statements:
            raise ValueError(
                f"total_privacy: this {type(model).__name__} has no privacy statement; pass fitted "
                "estimators of skdp, or pipelines and the like that hold some."
            )
        costs.append(composed(who, map(Cost.of, collector.statements), delta))
        uncovered |= dict.fromkeys(collector.uncovered)
        n_seeded += sum(one.noise_source == "seeded" for one in collector.statements)
    total = composed(who, costs, delta, disjoint)
    assumptions = []
    if uncovered:
        assumptions.append(
            f"Read rows without privacy: {'; '.join(uncovered)}. That is NOT part of this total, "
            "and what a step learnt from one record may move all other rows. The total holds where "
            "such steps were fitted on public data."
        )
    if n_seeded > 1:
        assumptions.append(SEEDED)
    for text in assumptions:
        warn(f"{who}: {text}", NotPrivateWarning)
    if disjoint:
        total = replace(total, n=None)
        assumptions.append(DISJOINT)
    return replace(total, assumptions=(*assumptions, *total.assumptions)).statement()


def require_private(who: str, model: BaseEstimator, is_sparse: bool) -> None:
    """Raise ValueError for an estimator that would learn from rows without privacy in its fit.

    Parameters
    ----------
    who : str
        For the message.
    model : estimator
        Not fitted.
    is_sparse : bool
        Whether its rows are sparse.
    """
    end = "Nothing was released."
    if not _contains_private(model):
        raise ValueError(
            f"{who}: {type(model).__name__} is not private, and holds no estimator of skdp. {end}"
        )
    collector = _Collector(who, end, is_sparse)
    collector.visit(model)
    if collector.uncovered:
        raise ValueError(
            f"{who}: these steps would learn from rows without privacy, and through them one row "
            f"may change all others: {'; '.join(dict.fromkeys(collector.uncovered))}. The "
            "estimators of skdp scale columns themselves; otherwise use skdp.DPStandardScaler, "
            f"skdp.DPTabularPreprocessor, or steps that learn nothing. {end}"
        )


def refuse_resampling(who: str, pipeline: Pipeline) -> None:
    """Raise ValueError for a pipeline with a step that resamples rows."""
    sampler = resampler_in(pipeline)
    if sampler is not None:
        raise ValueError(f"{who}: the pipeline {RESAMPLES.format(sampler)}")


def any_part_reads_rows(step: BaseEstimator, is_sparse: bool = False) -> bool:
    """Whether fitting a step or a part of it reads rows; choosing columns by name does not.

    Parameters
    ----------
    step : transformer, str or None
    is_sparse : bool, default=False
        Whether the step receives sparse rows.
    """
    if isinstance(step, str) or step is None:
        return False
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            if any_part_reads_rows(part, is_sparse):
                return True
            is_sparse = may_be_sparse(part, is_sparse)
        return False
    if isinstance(step, ColumnTransformer):
        return why_columns_read_rows(step, is_sparse) is not None or any(
            any_part_reads_rows(part, is_sparse) for part in _transformers_of(step)
        )
    if isinstance(step, FeatureUnion):
        return any(any_part_reads_rows(part, is_sparse) for _, part in step.transformer_list)
    return reads_rows(step)


def why_columns_read_rows(columns: ColumnTransformer, is_sparse: bool = False) -> str | None:
    """Say why a ColumnTransformer itself reads rows, whatever its parts do; None if it does not.

    Parameters
    ----------
    columns : ColumnTransformer
    is_sparse : bool, default=False
        Whether it receives sparse rows.
    """
    # A selector by type and name looks at no value; of other functions this is not known.
    if any(
        callable(chosen) and type(chosen) is not make_column_selector
        for _, _, chosen in columns.transformers
    ):
        return "a function of the rows chooses columns; name them, or use make_column_selector"
    if columns.sparse_threshold == 0:
        return None
    sparse_parts = [part for part in _transformers_of(columns) if may_be_sparse(part, is_sparse)]
    stays_sparse = columns.sparse_threshold == 1 and any(map(_has_zeros, sparse_parts))
    if stays_sparse or all(map(_has_one_entry_per_cell, sparse_parts)):
        return None
    return "its output is dense or sparse by the number of zeros; set sparse_threshold=0"


def _transformers_of(columns: ColumnTransformer) -> list[BaseEstimator]:
    return [*(part for _, part, _ in columns.transformers), columns.remainder]


def may_be_sparse(step: BaseEstimator, is_sparse: bool) -> bool:
    """Whether the output of a step may be sparse; that of an unknown one may."""
    if step is None or step == "passthrough" or isinstance(step, PrivateEstimator):
        return is_sparse
    if isinstance(step, str):  # "drop"
        return False
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            is_sparse = may_be_sparse(part, is_sparse)
        return is_sparse
    if isinstance(step, ColumnTransformer):
        return step.sparse_threshold != 0 and any(
            may_be_sparse(part, is_sparse) for part in _transformers_of(step)
        )
    if isinstance(step, FeatureUnion):
        return any(may_be_sparse(part, is_sparse) for _, part in step.transformer_list)
    if type(step).__name__ == "PolynomialFeatures":
        return is_sparse
    if type(step) is FunctionTransformer and (step.func is None or isinstance(step.func, np.ufunc)):
        return is_sparse
    if type(step) is OneHotEncoder:
        return bool(step.sparse_output)
    # A step that learns from rows is counted itself, whatever type it returns.
    return type(step) is not OrdinalEncoder and (is_sparse or not reads_rows(step))


def _has_one_entry_per_cell(step: BaseEstimator) -> bool:
    """Whether every cell becomes one entry: where unknown labels are refused, none is dropped."""
    return type(step) is OneHotEncoder and step.drop is None and step.handle_unknown == "error"


def _has_zeros(step: BaseEstimator) -> bool:
    """Whether a step leaves zeros unstored in every row: one-hot columns of several categories."""
    if type(step) is not OneHotEncoder or isinstance(step.categories, str):
        return False
    return step.drop is None and any(len(values) > 1 for values in step.categories)


class _Collector:
    """Collects the statements of private models inside an estimator, and what they do not cover.

    Parameters
    ----------
    who : str, default="total_privacy"
        For messages.
    end : str, default=""
        Of a refusal before a fit: the estimator is not fitted then, and all of its steps will be.
    is_sparse : bool, default=False
        Whether the rows are sparse, if the estimator is not fitted.
    """

    def __init__(self, who: str = "total_privacy", end: str = "", is_sparse: bool = False) -> None:
        self._who, self._end, self._is_sparse = who, end, is_sparse
        self.statements: list[PrivacyStatement] = []
        self.uncovered: list[str] = []
        self._seen: dict[int, object] = {}

    def visit(self, thing: object) -> None:
        """Count the private models in an object, each of them once."""
        if id(thing) in self._seen:
            return
        self._seen[id(thing)] = thing
        if self._end and isinstance(thing, FrozenEstimator):
            return
        privacy = getattr(thing, "privacy_", None)
        if isinstance(thing, ColumnTransformer) and (self._end or hasattr(thing, "transformers_")):
            why = why_columns_read_rows(thing, self._is_sparse)
            if why is not None:
                self.uncovered.append(f"ColumnTransformer ({why})")
        if isinstance(thing, PrivacyStatement):
            self.statements.append(thing)
        elif isinstance(privacy, PrivacyStatement):
            self.visit(privacy)  # once, where several steps share what was charged once
        elif isinstance(thing, PrivateEstimator):
            return  # not fitted
        elif _is_estimator(thing) and _contains_private(thing):
            self._visit_meta(thing)
        elif isinstance(thing, Pipeline | FeatureUnion | ColumnTransformer):
            for part in vars(thing).values():
                self.visit(part)
        elif _is_estimator(thing):
            name = type(thing).__name__
            fitted = self._end or any(attribute.endswith("_") for attribute in vars(thing))
            if fitted and reads_rows(thing) and not name.startswith("_"):
                self.uncovered.append(name)
        else:
            for part in parts_of(thing):
                self.visit(part)

    def _visit_meta(self, meta: BaseEstimator) -> None:
        name = type(meta).__name__
        why = _why_not_private(meta)
        if why is not None:
            raise ValueError(
                f"{self._who}: {name} {why.rstrip('.')}. No budget counts that, and no noise "
                "covers it: the result is not private, whatever the fits inside are. "
                f"{self._end}".rstrip()
            )
        why = _why_uncounted(meta)
        if why is not None and not self._end:
            raise ValueError(
                f"total_privacy: {name} {why}. Count its fits by a PrivacyBudget whose block is "
                "open while it is fitted (for a search, skdp.privacy_of prices it)."
            )
        if name in NOT_PRIVATE:
            self.uncovered.append(f"{name} ({NOT_PRIVATE[name]})")
        for part in vars(meta).values():
            self.visit(part)


def _why_not_private(meta: BaseEstimator) -> str | None:
    """Say what an estimator does with rows that the prices of its fits do not cover."""
    name, sampler = type(meta).__name__, resampler_in(meta)
    if sampler is not None:
        return RESAMPLES.format(sampler)
    if not _keeps_all_fits(meta):
        return NOT_COUNTED_BETWEEN_FITS.get(name)
    # Private members get weights instead of repeated rows, which act before clipping.
    members = getattr(meta, "estimators_", [getattr(meta, "estimator", None)])
    weighs = all(isinstance(one, PrivateEstimator) for one in members)
    if name.startswith("Bagging") and meta.bootstrap and not weighs:
        return "repeats rows (bootstrap=True), and a repeated row adds more than a fit allows for"
    parts = (part for part in everything_in(meta) if isinstance(part, PrivacyStatement))
    if name.endswith("Chain") and meta.cv is None and any(p.adjacency == "label" for p in parts):
        return "has earlier targets for columns, which adjacency='label' takes for public"
    return None


def _keeps_all_fits(meta: BaseEstimator) -> bool:
    """Whether it is an estimator of scikit-learn that keeps every model which it fitted."""
    is_sklearn = type(meta).__module__.partition(".")[0] == "sklearn"
    return is_sklearn and type(meta).__name__ in KEEP_ALL_FITS


def _why_uncounted(meta: BaseEstimator) -> str | None:
    """Say why the cost of the private models in an estimator does not follow from what it holds."""
    name = type(meta).__name__
    if not _keeps_all_fits(meta):
        return "may have fitted private models that it did not keep, or on rows of its own choice"
    if name == "CalibratedClassifierCV" and meta.ensemble is False:
        return "fitted private models that it did not keep (ensemble=False)"
    if name.endswith("Chain") and meta.cv is not None:
        return "fitted private models that it did not keep (cv is set)"
    return None


def _is_estimator(thing: object) -> bool:
    return hasattr(thing, "fit") and hasattr(thing, "__dict__") and not isinstance(thing, type)


def _contains_private(thing: object) -> bool:
    """Whether an object is, or holds at any depth, an estimator of skdp, fitted or not."""
    return any(isinstance(part, PrivateEstimator) for part in everything_in(thing))
