"""Check the candidates of a private search, and give each of its fits a budget."""

import functools
import itertools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples, has_fit_parameter

from skdp import accounting
from skdp._fitting.assumptions import noise_assumptions, unit_assumptions
from skdp._fitting.data import Data
from skdp._fitting.estimator import PrivateEstimator, is_private_model
from skdp._fitting.privacy import Privacy, SeededNoise
from skdp._fitting.refusals import NO_LABELS, InputError, without_cells
from skdp._fitting.rows import check_data, read_plain
from skdp._fitting.surroundings import everything_in, learning_parts
from skdp._fitting.targets import checked_targets, sorted_labels
from skdp._fitting.user_warnings import warn_about_label_set
from skdp._numbers import AnyArray, Array, MatrixLike, Table, are_numbers
from skdp._oracle import NoiseSource
from skdp._oracle.sources.base import NUMBERED
from skdp._oracle.sources.partitioned import Partitions
from skdp._stages.scores import Deviance
from skdp.accounting.pricing import LEAST_EPSILON
from skdp.metrics import Scores, requests
from skdp.metrics.evaluation import PrivateScorer
from skdp.metrics.row_statistics import require_targets

# These of scikit-learn fit each model once, on all rows as they are, and keep it. All others may
# repeat, weight or select rows, or choose by exact scores.
FIT_ONCE = (
    "ColumnTransformer FeatureUnion FrozenEstimator MultiOutputClassifier MultiOutputRegressor "
    "OneVsRestClassifier Pipeline SelectFromModel TransformedTargetRegressor VotingClassifier "
    "VotingRegressor"
)
SEEDED = (
    "The fits had seeded noise. Those with the same seed have the same noise, which "
    "cancels in the difference of two models. This total does NOT hold for them. It is that of the "
    "same fits with noise='system'."
)
# Relative to mu squared: runs are planned for so much less than they are priced at, so that
# rounding in the plans of several fits has room.
MARGIN = 1e-6
# Parameters that a search sets in each of its fits, so that no candidate may.
DECIDED = frozenset({"epsilon", "delta", "privacy", "adjacency", "budget", "noise", "seed"})

TOO_SMALL = (
    "epsilon is too small next to delta={:g} to be shared by several fits and scores: less than "
    "{:g} would be left for each of them. Choose a larger epsilon, or a delta far below epsilon "
    "and below 1 / n."
)


@dataclass(frozen=True)
class RunBudget:
    """Budget of every run of a search.

    Attributes
    ----------
    mu : float
        Gaussian-DP parameter of a run, inf for no noise.
    delta : float
        At which it is turned into an epsilon.
    terms : Privacy
        Of the tool.
    """

    mu: float
    delta: float
    terms: Privacy

    def epsilon(self, n_fits: int = 1) -> float:
        """Epsilon of each of ``n_fits`` private fits in a run, on the same rows.

        Raises
        ------
        ValueError
            If none of at least 1e-6 costs as little at this delta.
        """
        if np.isinf(self.mu):
            return float("inf")
        epsilon = accounting.gaussian_epsilon(self.mu / np.sqrt(n_fits), self.delta)
        if epsilon < LEAST_EPSILON:
            raise ValueError(TOO_SMALL.format(self.delta, LEAST_EPSILON))
        return epsilon

    @property
    def answer(self) -> accounting.Event:
        """One noisy number that costs as much as a run."""
        return accounting.Gaussian(0.0 if np.isinf(self.mu) else 1 / self.mu, spread=1.0)

    def parameters(self, n_fits: int = 1, seed: int = 0) -> dict[str, Any]:
        """Return the parameters of each of ``n_fits`` private fits, or of a scorer, in a run."""
        privacy = self.terms.for_plans()
        if self.terms.noise_source == "seeded":
            privacy.noise = SeededNoise(seed)
        return {"epsilon": self.epsilon(n_fits), "delta": self.delta, "privacy": privacy}


def priced_search(
    n_candidates: int,
    epsilon: float,
    delta: float,
    terms: Privacy,
    n_records: int,
    unit: str = "row",
) -> tuple[RunBudget, accounting.Cost]:
    """Return the budget of each run of a search, and the cost of the whole.

    A run draws a candidate, fits it on one part and scores it on the other: a record meets one of
    the two. Each of them is mu-Gaussian DP, hence so is the run. Drawing the candidate at random
    does not change that, because a mean of trade-off functions above a convex one is also above it.
    """
    relation = accounting.Adjacency.parse(terms.adjacency)
    unit_run = RunBudget(1.0, delta, terms)
    release = accounting.ReleaseRecord.of("fit or score", unit_run.answer)
    one = accounting.Cost((release,), delta, str(relation))
    event = accounting.Selected((one | one).event, float(n_candidates))
    calibrated = accounting.calibrate(event, epsilon, delta, relation)
    mu = math.sqrt(1 - MARGIN) / calibrated.scale if calibrated.scale > 0 else math.inf
    run_budget = RunBudget(mu, delta, terms)
    best = accounting.ReleaseRecord.of("best of several fits", event.scaled(calibrated.scale))
    cost = cost_of_runs(
        (best,),
        run_budget,
        n_records,
        unit,
        "The candidates were named without looking at the rows. A geometric number of them, "
        f"{n_candidates} in expectation, was drawn, fitted on one part of a random split and "
        "scored on the other. Only the best one was kept. Their number stays secret.",
        "Non-private steps of a candidate learn nothing from the data. Steps before the private "
        "one were run in advance, so it is public that they raise no error. A candidate that fails "
        "later is ranked last.",
    )
    return run_budget, cost.certify(calibrated.epsilon, calibrated.accountant)


def cost_of_runs(
    releases: tuple[accounting.ReleaseRecord, ...],
    run_budget: RunBudget,
    n_records: int,
    unit: str,
    *assumed: str,
) -> accounting.Cost:
    """Return the cost of runs, with the assumptions of all tools that fit and score."""
    assumptions = (
        *unit_assumptions(n_records, unit, "each model and each score"),
        "The number of columns is public, and so are the labels and any prior of a candidate. "
        "Weights of rows count up to a bound, declared or estimated in each fit and each score.",
        *assumed,
        *noise_assumptions(run_budget.terms.noise_source, run_budget.mu),
    )
    source = "none" if np.isinf(run_budget.mu) else run_budget.terms.noise_source
    adjacency = str(accounting.Adjacency.parse(run_budget.terms.adjacency))
    terms = run_budget.delta, adjacency, unit, n_records, assumptions, source
    return accounting.Cost(releases, *terms)


def require_private(model: BaseEstimator, is_sparse: bool) -> None:
    """Raise ValueError for an estimator that would learn from rows without privacy in its fit.

    Parameters
    ----------
    model : estimator
        Not fitted.
    is_sparse : bool
        Whether its rows are sparse.
    """
    if not contains_private(model):
        raise ValueError(f"{type(model).__name__} is not private, and holds no estimator of skdp.")
    refuse_unknown_around(model)
    learning = dict.fromkeys(learning_parts(model, is_sparse))
    if learning:
        raise ValueError(
            f"these steps learn from rows without privacy, and through them one row "
            f"may change all others: {'; '.join(learning)}. The estimators of skdp scale columns "
            "themselves. Otherwise use skdp.DPStandardScaler, skdp.DPTabularPreprocessor, or steps "
            "that learn nothing."
        )


def contains_private(thing: object) -> bool:
    """Whether an object is, or contains at any depth, an estimator of skdp, fitted or not."""
    return any(isinstance(part, PrivateEstimator) for part in everything_in(thing))


def refuse_unknown_around(model: object) -> None:
    """Raise ValueError unless all estimators around private models fit each of them once."""
    for part in everything_in(model, is_counted):
        kind = type(part)
        is_known = kind.__module__.startswith("sklearn.") and kind.__name__ in FIT_ONCE.split()
        is_around = hasattr(part, "fit") and not isinstance(part, PrivateEstimator)
        if is_around and not is_known and contains_private(part):
            raise ValueError(
                f"{kind.__name__} is not known to fit each private model in it once, "
                "on all rows as they are, and to keep it. It may repeat, weight or select rows by "
                "looking at them, which no noise covers. A PrivacyBudget counts the fits while its "
                f"block is open (for a search, skdp.privacy_of prices them)."
            )


def is_counted(thing: object) -> bool:
    """Whether an object is private, so that its statement is that of all in it."""
    has_statement = isinstance(getattr(thing, "privacy_", None), accounting.PrivacyStatement)
    return has_statement or isinstance(thing, PrivateEstimator | accounting.PrivacyStatement)


def private_fits(estimator: BaseEstimator, is_sparse: bool = False) -> list[PrivateEstimator]:
    """Return the private estimators in a candidate, or raise ValueError if it is none.

    A candidate is an estimator of skdp, or a pipeline of steps that learn nothing from rows, or
    learn it privately, with an estimator of skdp at its end. ``is_sparse`` is whether X is sparse:
    a ColumnTransformer may choose the type of its result by the rows.
    """
    if not is_private_model(last_step(estimator)):
        raise ValueError(
            f"estimator must be an estimator of skdp, or a Pipeline that ends in one, got "
            f"{type(estimator).__name__}."
        )
    require_private(estimator, is_sparse)
    return private_steps(estimator)


def private_steps(estimator: BaseEstimator) -> list[PrivateEstimator]:
    """Return the steps of a pipeline that spend budget. ValueError for those inside of others."""
    fits = []
    for name, step in steps_of(estimator):
        if isinstance(step, PrivateEstimator):
            fits += [step] * step._is_charged
        elif not isinstance(step, FrozenEstimator) and any(
            isinstance(part, PrivateEstimator) and part._is_charged for part in everything_in(step)
        ):
            raise ValueError(
                f"step {name!r} ({type(step).__name__}) contains estimators that spend budget, "
                "which have to be steps of the pipeline."
            )
    return fits


def steps_of(estimator: BaseEstimator) -> list[tuple[str, BaseEstimator]]:
    """Return the steps of a pipeline, and those of a pipeline at its end. The model is the last.

    Names are as in parameters: ``pipeline__dpridge`` is a step of an inner pipeline.
    """
    steps, prefix = [], ""
    while type(estimator) is Pipeline:  # others may resample rows
        steps += [(prefix + name, step) for name, step in estimator.steps[:-1]]
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return [*steps, (prefix.removesuffix("__") or type(estimator).__name__, estimator)]


def last_step(estimator: BaseEstimator) -> BaseEstimator:
    """Return the model at the end of a pipeline, or of a pipeline in it. Other estimators as is."""
    return steps_of(estimator)[-1][1]


def prepared_candidate(
    estimator: BaseEstimator,
    parameters: Mapping[str, object],
    run_budget: RunBudget,
    classes: AnyArray | None,
) -> BaseEstimator:
    """Return a candidate whose private fits keep to the budget of a run.

    Raises
    ------
    ValueError
        If it is no candidate, or sets a parameter that the search decides.
    """
    fixed = sorted(name for name in parameters if name.rpartition("__")[2] in DECIDED)
    if fixed:
        raise ValueError(
            f"the candidates set {', '.join(fixed)}, which the search decides for all of its fits."
        )
    candidate = clone(estimator).set_params(**clone(parameters, safe=False))
    fits = private_fits(candidate)
    for fit in fits:
        if getattr(fit, "_prior_is_private", False):
            raise ValueError(
                "prior was fitted privately, and the total of several fits would not contain its "
                "cost. Give PublicModel(prior.coef_, prior.intercept_), and add its cost yourself."
            )
        if fit._terms.budget is not None:
            raise ValueError(
                "a budget belongs to the tool that runs the fits, not to each of them."
            )
        given = run_budget.parameters(len(fits))  # a seed of its own follows before each run
        for name in ("rows_per_group", "max_weight"):
            own = getattr(fit._terms, name)
            if own is not None:
                setattr(given["privacy"], name, own)
        if classes is not None and getattr(fit, "classes", classes) is None:
            given["classes"] = list(classes)
        fit.set_params(**given)
    # What a step prints counts the runs. What a pipeline keeps on disk shows the losing ones, and
    # lends the noise of one run to the next.
    alone = {
        name: type(value)() if isinstance(value, int) else None
        for name, value in candidate.get_params().items()
        if name.rpartition("__")[2] in ("verbose", "memory")
    }
    return candidate.set_params(**alone)


def fitted(
    model: BaseEstimator,
    X: MatrixLike | Partitions,
    y: ArrayLike | None = None,
    **beside: ArrayLike | None,
) -> BaseEstimator:
    """Fit a model with weights, offsets and groups of rows, if any, and return it.

    A pipeline hands them to each private fit in it that has such an argument, whether metadata
    routing is on or off. Partitions have all of it themselves.
    """
    given = {name: one for name, one in beside.items() if one is not None}
    if not isinstance(model, Pipeline):
        return model.fit(X, y, **given)
    private = [(name, step) for name, step in steps_of(model) if isinstance(step, PrivateEstimator)]
    handed = {
        f"{step}__{name}": one
        for name, one in given.items()
        for step, fit in private
        if has_fit_parameter(fit, name)
    }
    with config_context(enable_metadata_routing=False):
        return model.fit(X, y, **handed)


def rows_to_split(
    who: str, estimator: BaseEstimator, X: Table, y: Table, groups: Table, **beside: Table
) -> Data:
    """Return rows that can be split once a budget is charged. ValueError for other partitions.

    The labels of partitions are read for a classifier that declares none.
    """
    reads_labels = is_classifier(estimator) and private_fits(estimator)[-1].classes is None
    data = read_plain(who, X, y, groups, reads_labels, **beside)
    if NUMBERED not in data.provides:
        raise ValueError(  # a part that came out empty would have cost the budget
            f"{who}: partitions have to pass their index to tasks, so that parts of a random split "
            "have the sizes that were planned. Nothing was released."
        )
    return data


def require_takes(model: BaseEstimator, given: Iterable[str]) -> None:
    """Raise ValueError unless a model's fits take arrays of these names beside X and y.

    All private fits have to protect groups. Weights and offsets are for the last one.
    """
    for name in given:
        is_for_all = name == "groups" and isinstance(model, Pipeline)
        for fit in private_fits(model) if is_for_all else [last_step(model)]:
            if not has_fit_parameter(fit, name):
                single = ", so its fit would protect single rows" * (name == "groups")
                raise ValueError(
                    f"{type(fit).__name__} does not accept {name}{single}. Leave it out, or fit "
                    f"without {name}."
                )


def checked(
    who: str,
    estimator: BaseEstimator,
    pool: list[dict[str, object]],
    run_budget: RunBudget,
    data: Data,
    n_train: Iterable[int],
    epsilon: float,
    scoring: Mapping[str, Any],
) -> list[BaseEstimator]:
    """Return the candidates with the budget of a run.

    Raises
    ------
    ValueError
        If a candidate, its scores or the data are refused, or a candidate costs more than a run may
        for one of these numbers of records. Nothing is released then.
    """
    labels = public_labels(who, estimator, data.y, epsilon)
    ready = [prepared_candidate(estimator, entry, run_budget, labels) for entry in pool]
    n_outputs = 1 if labels is None else len(labels)
    names, within = scoring["metrics"], scoring["target_range"]
    deviances = [requests.deviances_of(one, names, n_outputs, within) for one in ready]
    check_rows(who, ready, deviances, data)
    given = {"groups": data.grouped, "sample_weight": data.weighted, "offset": data.has_offset}
    for candidate, n_records in itertools.product(ready, n_train):
        require_takes(candidate, [name for name, is_given in given.items() if is_given])
        shape = n_records, data.n_features, n_outputs
        check_price(candidate, run_budget, shape, within is not None, data)
    return ready


def fitted_and_scored(
    candidate: BaseEstimator,
    score_budget: RunBudget,
    sides: Sequence[dict[str, Any]],
    draws: NoiseSource,
    **scoring: Any,
) -> tuple[BaseEstimator, Scores]:
    """Fit a clone of a candidate on one side of a split, and score it on the other.

    Parameters
    ----------
    candidate : estimator
    score_budget : RunBudget
    sides : pair of dict
        Arguments of a fit.
    draws : NoiseSource
        Of seeds, for noise that is seeded.
    **scoring
        Metrics and range of targets.
    """
    model = clone(candidate)
    for fit in private_fits(model):
        if fit._terms.noise_source == "seeded":
            fit.set_params(privacy__noise=SeededNoise(new_seed(draws)))
    terms = score_budget.parameters(seed=new_seed(draws))
    judge = PrivateScorer(model, **scoring, **terms)
    fitted(model, **sides[0])
    return model, judge.fit(**sides[1]).scores_


def state_whole(model: BaseEstimator, statement: accounting.PrivacyStatement) -> None:
    """Give all private fits in a model the statement of the whole, and no seed.

    Seeds would remove the noise of the model.
    """
    for fit in private_fits(model):
        fit.privacy_ = statement
        if fit._terms.noise_source == "seeded":
            fit.set_params(privacy__noise=SeededNoise(0))


def public_labels(
    who: str, estimator: BaseEstimator, y: ArrayLike, epsilon: float
) -> AnyArray | None:
    """Return the sorted labels for a classifier, declared or read from y. None for a regressor."""
    if not is_classifier(estimator):
        return None
    declared = last_step(estimator).classes
    if declared is not None:
        return sorted_labels(declared)
    try:
        labels = np.unique(y)
    except Exception:  # a label runs code of its own when it is compared
        raise ValueError("y holds labels of types that cannot be sorted together.") from None
    warn_about_label_set(who, True, epsilon)
    return labels


def check_price(
    candidate: BaseEstimator,
    run_budget: RunBudget,
    shape: tuple[int, int, int],
    has_range: bool,
    data: Data,
) -> None:
    """Raise ValueError unless every fit of a candidate is Gaussian DP with a run's parameter.

    Prices are computed without rows, before anything is charged. Where steps before a fit change
    the number of columns, its price does not depend on that number.

    Parameters
    ----------
    candidate : estimator
    run_budget : RunBudget
    shape : tuple (n_records, n_features, n_outputs)
    has_range : bool
        Whether the range of targets is declared, for scores of regressors.
    data : Data
        Of which all that is public counts.
    """
    counted = {"n_groups": shape[0]} if data.grouped else {}
    adjacency = accounting.Adjacency.parse(run_budget.terms.adjacency)
    fits, total = private_fits(candidate), 0.0
    for fit in fits if np.isfinite(run_budget.mu) else ():
        given: Any = (*shape[:2],)
        if is_private_model(fit):
            given, counted = shape, {**counted, "weighted": data.weighted}
        try:
            with warnings.catch_warnings(action="ignore"):
                plan = fit.plan(*given, **counted)
            total += accounting.event_mu(plan.event, adjacency) ** 2
        except accounting.UnknownCost as reason:
            raise ValueError(
                f"the releases of {type(fit).__name__} are not Gaussian on all rows or "
                f"disjoint blocks, so its choice has no price. {reason}"
            ) from reason
    if total > run_budget.mu**2 * (1 + MARGIN):
        raise ValueError("a candidate costs more than a run may.")
    last = fits[-1]
    needs_range = is_regressor(last) and not has_range
    if needs_range and (data.has_offset or not last._knows_target_range(*shape)):
        raise ValueError(
            f"scores of this {type(last).__name__} need a range of targets that is known "
            "without looking at them. Pass target_range=(low, high). Without an offset, "
            "scaling=PublicRange(target=(low, high)) of the estimator is enough, or a private "
            "scaling of targets."
        )


def new_seed(draws: NoiseSource) -> int:
    """Draw a seed."""
    return int(draws.integers(2**31, 1)[0])


# ---------------------------------------------------------------- rows that candidates refuse


def check_rows(
    who: str, ready: list[BaseEstimator], deviances: list[Mapping[str, Deviance]], rows: Data
) -> None:
    """Raise ValueError for rows that a candidate refuses, before the charge.

    The steps of a pipeline are carried out, as they learn nothing, up to the first that is private:
    its result is not known yet. If a failure occurred in a run only, the choice of the best run
    would depend on the record that caused it.
    """
    if isinstance(rows.X, Partitions):
        for name, step in itertools.chain.from_iterable(map(steps_of, ready)):
            if not (isinstance(step, PrivateEstimator) or step in (None, "passthrough")):
                raise ValueError(
                    f"step {name!r} ({type(step).__name__}) requires rows in memory, and "
                    "these are in partitions. Carry it out where your class reads them."
                )
    check_data(who, rows, functools.partial(_check_rows, ready, deviances))


def _check_rows(
    ready: list[BaseEstimator],
    deviances: list[Mapping[str, Deviance]],
    X: MatrixLike,
    y: AnyArray,
    offset: Array | None,
) -> None:
    checked = set()
    for candidate in ready:
        private_fits(candidate, is_sparse=issparse(X))
        steps = steps_of(candidate)
        key = _fingerprint([step for _, step in steps])
        if key not in checked:
            checked.add(key)
            _try_steps(steps, X, y)
    if not is_classifier(ready[0]):
        with without_cells("y"):
            check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if not are_numbers(y):
            raise InputError(
                "y must be an array of numbers, which scores need. It is one of objects. "
                "Pass y.astype(float)."
            )
        for one in deviances:
            require_targets(np.asarray(y), one)
    for model in map(last_step, ready):
        if is_classifier(model):
            classes = np.asarray(model.classes).tolist()
            with without_cells("y", otherwise=NO_LABELS):
                are_known = set(y.tolist()) <= set(classes)
            if not are_known:
                raise InputError("y holds a label that is not among the declared classes.")
        targets = checked_targets(model, y, np.dtype(np.float64))
        if offset is not None:
            model._with_offset(targets, None, offset)


def _fingerprint(steps: list[BaseEstimator]) -> object:
    """Return a key of steps, the same for equal steps. Unique if they cannot be pickled.

    Which rows a model refuses depends on its type alone. Which a preprocessor does, on its
    categories, too.
    """
    steps = [type(one) if is_private_model(one) else one for one in steps]
    try:
        return joblib.hash(steps)
    except Exception:  # whatever someone's step raises when it is pickled
        return object()


def _try_steps(steps: list[tuple[str, BaseEstimator]], X: MatrixLike, y: AnyArray) -> None:
    n_rows = _num_samples(X)
    X = rows_of(X, np.arange(n_rows))  # a step may write into its input
    for name, step in steps:
        if isinstance(step, PrivateEstimator) and step._is_charged:
            step._check_rows(X)
            return  # its answer, which later steps receive, is not known
        if step in (None, "passthrough"):
            continue
        try:
            with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                X = clone(step).fit(X, y).transform(X)
        except InputError:
            raise
        except Exception as reason:  # anyone's step fails in its own way, and may quote rows
            raise InputError(
                f"step {name!r} ({type(step).__name__}) of a candidate failed on these "
                f"rows, with {type(reason).__name__}."
            ) from None
        if _num_samples(X) != n_rows:
            raise InputError(
                f"step {name!r} ({type(step).__name__}) of a candidate adds rows or leaves "
                "some out, and y would not follow. Do that before."
            )
