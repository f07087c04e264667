"""Add up the prices of the private models inside fitted estimators."""

from dataclasses import replace

from sklearn.base import BaseEstimator

from skdp._warnings import warn
from skdp.accounting import Cost, PrivacyStatement, composed
from skdp.fitting.between_fits import everything_in, learning_parts
from skdp.fitting.estimator import PrivateEstimator
from skdp.fitting.user_warnings import NotPrivateWarning

# These of scikit-learn fit each model once, on all rows as they are, and keep it. All others may
# repeat, weight or select rows, or choose by exact scores.
FIT_ONCE = (
    "ColumnTransformer FeatureUnion FrozenEstimator MultiOutputClassifier MultiOutputRegressor "
    "OneVsRestClassifier Pipeline SelectFromModel TransformedTargetRegressor VotingClassifier "
    "VotingRegressor"
)
DISJOINT = (
    "No row, and no person, is in the rows of two of these fits, and which rows each of them has "
    "is public: the costliest part is charged."
)
SEEDED = (
    "The fits had seeded noise. Those with the same seed have the same noise, which "
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
        Private models and statements, and estimators of scikit-learn that fit each private model
        in them once and keep it: pipelines, unions and column transformers, voting, one model per
        class or target. Every private model inside is counted.
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
        guarantees do not add up to one), or an estimator is not known to fit each private model
        once and to keep it. `skdp.privacy_of` prices searches, and a `skdp.PrivacyBudget` counts
        every fit.

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
        _refuse_unknown_around(who, model)
        statements = _statements_in(model)
        if not statements:
            raise ValueError(
                f"total_privacy: this {type(model).__name__} has no privacy statement; pass fitted "
                "estimators of skdp, or pipelines and the like that hold some."
            )
        costs.append(composed(who, map(Cost.of, statements), delta))
        uncovered |= dict.fromkeys(learning_parts(model))
        n_seeded += sum(one.noise_source == "seeded" for one in statements)
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
    if not contains_private(model):
        raise ValueError(
            f"{who}: {type(model).__name__} is not private, and holds no estimator of skdp. "
            "Nothing was released."
        )
    _refuse_unknown_around(who, model, "Nothing was released.")
    learning = dict.fromkeys(learning_parts(model, is_sparse))
    if learning:
        raise ValueError(
            f"{who}: these steps learn from rows without privacy, and through them one row "
            f"may change all others: {'; '.join(learning)}. The estimators of skdp scale columns "
            "themselves; otherwise use skdp.DPStandardScaler, skdp.DPTabularPreprocessor, or steps "
            "that learn nothing. Nothing was released."
        )


def contains_private(thing: object) -> bool:
    """Whether an object is, or contains at any depth, an estimator of skdp, fitted or not."""
    return any(isinstance(part, PrivateEstimator) for part in everything_in(thing))


def _refuse_unknown_around(who: str, model: object, end: str = "") -> None:
    """Raise ValueError unless all estimators around private models fit each of them once."""
    for part in everything_in(model, _is_counted):
        kind = type(part)
        is_known = kind.__module__.startswith("sklearn.") and kind.__name__ in FIT_ONCE.split()
        is_around = hasattr(part, "fit") and not isinstance(part, PrivateEstimator)
        if is_around and not is_known and contains_private(part):
            raise ValueError(
                f"{who}: {kind.__name__} is not known to fit each private model in it once, "
                "on all rows as they are, and to keep it. It may repeat, weight or select rows by "
                "looking at them, which no noise covers. A PrivacyBudget counts the fits while its "
                f"block is open (for a search, skdp.privacy_of prices them). {end}".rstrip()
            )


def _statements_in(model: object) -> list[PrivacyStatement]:
    """Return the statements of the fitted models in an object, each once."""
    stated = (
        part if isinstance(part, PrivacyStatement) else getattr(part, "privacy_", None)
        for part in everything_in(model, _is_counted)
    )
    # Several steps share what was charged once.
    return list({id(one): one for one in stated if isinstance(one, PrivacyStatement)}.values())


def _is_counted(thing: object) -> bool:
    """Whether an object is private, so that its statement is that of all in it."""
    has_statement = isinstance(getattr(thing, "privacy_", None), PrivacyStatement)
    return has_statement or isinstance(thing, PrivateEstimator | PrivacyStatement)
