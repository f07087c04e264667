"""Add up the prices of the private models inside fitted estimators."""

from dataclasses import replace

from sklearn.base import BaseEstimator

from skdp._fitting.refusals import refusing
from skdp._fitting.surroundings import everything_in, learning_parts
from skdp._fitting.user_warnings import NotPrivateWarning
from skdp._warnings import warn
from skdp.accounting import Cost, PrivacyStatement, composed
from skdp.model_selection import candidates
from skdp.model_selection.search_price import price_after_fit

DISJOINT = (
    "No row, and no person, is in the rows of two of these fits, and which rows each of them has "
    "is public: the costliest part is charged."
)


def total_privacy(
    *models: BaseEstimator | PrivacyStatement, delta: float | None = None, disjoint: bool = False
) -> PrivacyStatement:
    """Return the total cost of several fits, on the same rows or on disjoint rows.

    Parameters
    ----------
    *models : fitted estimators or PrivacyStatement
        Private models and statements, and estimators of scikit-learn that fit each private model
        in them once and keep it: pipelines, unions and column transformers, voting, one model per
        class or target. Every private model inside is counted. A fitted search of scikit-learn,
        without other models, costs as much as `skdp.privacy_of` says before its fit.
    delta : float or None, default=None
        In [0, 1): the delta at which the total is stated. None for the one that all of the models
        state.
    disjoint : bool, default=False
        Whether each model was fitted on the rows of other people, such as one model per hospital.
        A person is then in one fit at most, and the total is that of the costliest model
        (parallel composition, McSherry 2009, Thm 4). Sizes and membership of the parts have to be
        public. False adds up all models, as for fits on the same rows.

    Returns
    -------
    PrivacyStatement
        Of all the releases. The queries of a later fit may depend on the answers to earlier ones.
        ``assumptions`` name the steps that read rows without privacy: they are not part of the
        total.

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
    if len(models) == 1 and hasattr(models[0], "cv_results_"):
        return price_after_fit(who, models[0], delta)
    costs: list[Cost] = []
    uncovered: dict[str, None] = {}
    n_seeded = 0
    for model in models:
        with refusing(who):
            candidates.refuse_unknown_around(model)
        statements = _statements_in(model)
        if not statements:
            raise ValueError(
                f"total_privacy: this {type(model).__name__} has no privacy statement. Pass fitted "
                "estimators of skdp, or pipelines and the like that hold some. JSON of a statement "
                "is read by skdp.PrivacyStatement.from_json(text)."
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
        assumptions.append(candidates.SEEDED)
    for text in assumptions:
        warn(f"{who}: {text}", NotPrivateWarning)
    if disjoint:
        total = replace(total, n=None)
        assumptions.append(DISJOINT)
    return replace(total, assumptions=(*assumptions, *total.assumptions)).statement()


def _statements_in(model: object) -> list[PrivacyStatement]:
    """Return the statements of the fitted models in an object, each once."""
    stated = (
        part if isinstance(part, PrivacyStatement) else getattr(part, "privacy_", None)
        for part in everything_in(model, candidates.is_counted)
    )
    # Several steps share what was charged once.
    return list({id(one): one for one in stated if isinstance(one, PrivacyStatement)}.values())
