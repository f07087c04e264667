"""The path of every private fit (prepare, charge, run), and its base class."""

from __future__ import annotations

import importlib.util
import math
import sys
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from skdp._fitting import parts, refusals, surroundings, user_warnings
from skdp._fitting.budget import Rows, charge, identities_of_open_budgets, of_other_processes
from skdp._fitting.data import Data
from skdp._fitting.parameters import check_parameters
from skdp._fitting.privacy import Privacy, refuse_nested_names
from skdp._fitting.refusals import refuse_columns, without_cells
from skdp._fitting.surroundings import everything_in
from skdp._fitting.targets import Targets
from skdp._numbers import AnyArray, AnyType, Table
from skdp._oracle import NoiseSource, Plan, Public, Solution, compiled, make_plan, run
from skdp._oracle.session import Stages
from skdp._oracle.sources.base import IN_MEMORY, Source
from skdp._oracle.sources.memory import Map, row_threads
from skdp._oracle.sources.row_blocks import canonical, row_parts
from skdp._stages.sequence import Prepared
from skdp._version import DOCUMENTATION, __version__
from skdp.accounting import Adjacency, Cost, PrivacyStatement, composed
from skdp.objective import Problem, SquaredError
from skdp.solvers import get_solver

# Plans of fits that were prepared lately, by parameters and shape: the fits of a cross-validation
# share theirs. The oldest goes first.
MAX_PLANS = 64
LARGEST_IN_KEYS = 10_000  # entries of an array
_plans: dict[Hashable, Prepared] = {}

# Names by which `verbose` shows releases. Others are shown by their kind.
STEPS = {
    **dict.fromkeys(("magnitudes", "histograms", "table"), "column ranges"),
    "gram": "second moments",
    "hessian": "curvature",
}
BAR = "{desc} |{bar}| {n_fmt}/{total_fmt}"

# Attribute of an estimator that was pickled inside blocks of budgets: their identities.
_SENT_BUDGETS = "_sent_budgets"


class PrivateEstimator(BaseEstimator):
    """Base of all that is fitted privately. Copies forget no open budget.

    Attributes
    ----------
    _protects_labels : bool
        Whether it has targets, so that adjacency="label" means something.
    """

    # The link of a notebook's picture of an estimator, by scikit-learn's names.
    _doc_link_module = "skdp" if DOCUMENTATION else ""
    _doc_link_template = f"{DOCUMENTATION}/generated/skdp.{{estimator_name}}.html"
    _protects_labels: ClassVar[bool] = False
    _predicts_rows: ClassVar[bool] = False  # as scores do, of which offsets are part
    _is_charged: ClassVar[bool] = True
    epsilon: float
    delta: float
    privacy: Privacy | None
    privacy_: PrivacyStatement

    @property
    def _who(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @property
    def _terms(self) -> Privacy:
        """The terms of privacy, with defaults for None and for what a fit will refuse."""
        return self.privacy if isinstance(self.privacy, Privacy) else Privacy()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and those of objects among them, such as ``privacy__budget``.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator and, after the name of one and two underscores, of its
            value: an object, or the name of a solver.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is unknown, or a nested name is set where there is no object.
        """
        solver = params.get("solver", getattr(self, "solver", None))
        has_nested = any(name.startswith("solver__") for name in params)
        if has_nested and isinstance(solver, str) and solver != "auto":
            params = {**params, "solver": get_solver(solver)}
        refuse_nested_names(self._who, params, self.get_params(deep=False))
        super().set_params(**params)
        return self

    # ------------------------------------------------------------------ check and read

    def _check_shared_parameters(self) -> None:
        shared = ("epsilon", "delta", "privacy")
        check_parameters({name: getattr(self, name) for name in shared}, self._protects_labels)

    def _require_delta(self, advice: str = "") -> None:
        """Raise ValueError if there is noise and delta is 0."""
        if self.delta == 0 and not math.isinf(self.epsilon):
            raise ValueError(
                f"{self._who}: delta must be positive, as the noise is Gaussian, got 0. Pass "
                f"delta=1e-6{advice}. Nothing was released."
            )

    def _read(self, what: str, *arrays: Any, **checks: Any) -> Table:
        """Validate X, or X and y. A refusal does not quote what a cell holds."""
        refuse_columns("X", arrays[0])
        with without_cells(what, *arrays[:1]):
            validated = validate_data(
                self, *arrays, accept_sparse="csr", dtype=[np.float64, np.float32], **checks
            )
        X, *others = validated if len(arrays) > 1 else (validated,)
        X = canonical(X) if sparse.issparse(X) else X
        return (X, *others) if others else X

    def _read_new(self, X: Table) -> Table:
        """Validate rows that a fitted estimator predicts or transforms."""
        with refusals.refusing(self._who):
            return self._read("X", X, reset=False)

    def _reader(self) -> Self:
        """Return an estimator with the same parameters, on which rows are checked elsewhere.

        It has no budget and no noise, and is sent to where the rows are.
        """
        reader = type(self)(**self.get_params(deep=False))
        reader.privacy = self._terms.for_plans()
        return reader

    @property
    def _reads_label_set(self) -> bool:
        """Whether the labels of a classifier come from the rows, as none are declared."""
        return False

    def _check_rows(self, X: Table) -> None:
        """Raise ValueError for rows that a fit would refuse. Nothing is kept or charged."""
        with refusals.refusing(self._who):
            clone(self)._read("X", X)

    # ------------------------------------------------------------------ the path of a fit

    def _fit(self, data: Data, *start: object) -> Self:
        """Prepare, charge and run a fit on rows of any kind, and keep its results.

        Parameters
        ----------
        data : Data
        *start
            Where a solver starts, for those estimators that have one.
        """
        fit = prepare_fit(self, data, *start)
        prepared, public = fit.prepared, fit.prepared.public
        n_parts = len(row_parts(public.n_rows, public.n_features, public.sparse))
        try:
            with row_threads(n_parts) as spread:
                with refusals.refusing(self._who):
                    source = fit.open_source(spread)
                compared = self._protects_labels and fit.data.provides == IN_MEMORY
                rows = fit.data.part, fit.data.given
                drawn_from = charge_fit(
                    self, fit.statement, fit.data if compared else None, rows=rows
                )
                stated = with_earlier_fits(self, fit.data.given[:2], fit.statement)
                # A fit without a solver makes no choices of its own.
                rng = np.random.default_rng(0) if prepared.solver is None else drawn_from.coins()
                settled = prepared.plan, prepared.stages, public, prepared.problem
                is_shown = getattr(self, "verbose", 0) and not compiled.is_quiet.get()
                with _reporting(self._who, prepared.plan) if is_shown else nullcontext() as show:
                    solution = run(*settled, source, drawn_from, rng, show)
                user_warnings.warn_unless_converged(self._who, solution, public)
                source.finish()
        except MemoryError as error:  # a size follows from the private number of rows
            no_size = MemoryError(refusals.NO_MEMORY.format(self._who))
            raise (no_size if public.grouped else error) from None
        # Rows, oracle and generators end here.
        self._keep(solution, fit)
        if stated is not fit.statement:
            self.privacy_ = stated
        return self

    def _read_targets(self, y: AnyArray, dtype: AnyType) -> Targets:
        """Check y and turn it into targets. Without a solver no release reads them."""
        return Targets(y, 1)

    def _with_offset(
        self, targets: Targets, weights: AnyArray | None, offset: AnyArray
    ) -> tuple[Targets, AnyArray | None]:
        """Return targets and weights of rows with offsets. Only models of targets read these."""
        return targets, weights

    def _declared_targets(self, n_outputs: int) -> Targets:
        """Return targets of two rows. Without a solver no release reads them."""
        return Targets(np.zeros((2, 1)), 1)

    def _prepare_stages(
        self,
        stages_for: Callable[[Public], Stages],
        n_records: int,
        n_features: int,
        grouped: bool,
        **facts: Any,
    ) -> Prepared:
        """Settle a fit without a solver."""
        public = self._public(n_records, n_features, grouped, **facts)
        problem, stages = Problem(SquaredError(), fit_intercept=False), stages_for(public)
        plan = make_plan(stages, public, problem)
        return Prepared(public, problem, stages, plan)

    def _public(self, n_records: int, n_features: int, grouped: bool, **facts: Any) -> Public:
        """Return the public facts of a fit under these terms of privacy."""
        budget = {"epsilon": float(self.epsilon), "delta": float(self.delta)}
        return Public(
            n_rows=n_records,
            n_features=n_features,
            adjacency=Adjacency.parse(self._terms.adjacency, labels=self._protects_labels),
            unit="group" if grouped else "row",
            **{"n_outputs": 1, "has_intercept": False, **budget, **facts},
        )

    def _check_parameters(self) -> object:
        """Raise ValueError for parameters that are out of range or do not agree."""
        raise NotImplementedError

    def _facts_of(self, data: Data, *start: Any) -> dict[str, Any]:
        """Return the public facts about a fit that `_prepare` depends on."""
        return {"names": data.names, **data.shape}

    def _prepare(self, n_records: int, n_features: int, **facts: Any) -> Prepared:
        """Return all that is settled about a fit to rows with these public facts."""
        raise NotImplementedError

    def _warn_before(self, prepared: Prepared) -> None:
        """Warn about a fit, from public facts, before it is charged."""

    def _assumptions(self, prepared: Prepared) -> tuple[str, ...]:
        """Return the sentences of the statement on what is assumed."""
        raise NotImplementedError

    def _keep(self, solution: Solution, fit: Fit) -> None:
        """Store the results of a fit."""
        raise NotImplementedError

    # ------------------------------------------------------------------ copies and pickles

    def __getstate__(self) -> dict[str, Any]:
        """Pickle with the version, and the open budgets, which are charged or refuse elsewhere."""
        state = {**super().__getstate__(), "_skdp_version": __version__}
        sent = identities_of_open_budgets(state.get(_SENT_BUDGETS, ()))
        return {**state, _SENT_BUDGETS: sent} if sent else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle. In the process that made the budgets there is nothing to remember."""
        state = dict(state)
        version = state.pop("_skdp_version", __version__)
        if version != __version__:
            versions = {
                "current_sklearn_version": __version__,
                "original_sklearn_version": version,
            }
            warnings.warn(
                InconsistentVersionWarning(estimator_name=self._who, **versions), stacklevel=2
            )
        sent = of_other_processes(state.pop(_SENT_BUDGETS, ()))
        super().__setstate__({**state, _SENT_BUDGETS: sent} if sent else state)

    def __sklearn_clone__(self) -> Self:
        """Clone. Meta-estimators in a worker clone what they were sent."""
        copy: Self = super().__sklearn_clone__()
        if _SENT_BUDGETS in vars(self):
            setattr(copy, _SENT_BUDGETS, vars(self)[_SENT_BUDGETS])
        return copy

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Read before any parameter is checked.
        terms = self.privacy
        tags.non_deterministic = not (isinstance(terms, Privacy) and terms.noise_source == "seeded")
        return tags


def is_private_model(estimator: object) -> bool:
    """Whether this is a private estimator with targets, unlike a scaler or a search."""
    return isinstance(estimator, PrivateEstimator) and estimator._protects_labels


# ---------------------------------------------------------------- the path of a fit


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit whose rows were checked and whose plan is settled. Nothing has been charged.

    Attributes
    ----------
    data : Data
    prepared : Prepared
    statement : PrivacyStatement
        The charge for the fit.
    """

    data: Data
    prepared: Prepared
    statement: PrivacyStatement

    def open_source(self, spread: Map) -> Source:
        """Return the source that the oracle gets, from a ``map`` over threads.

        Whatever can fail for its size fails in here, before the charge.
        """
        assert self.data.make_source is not None
        source = self.data.make_source(self.prepared.public, spread)
        source.reserve(transformed=len(self.prepared.stages) > 1)
        return source


def prepare_fit(model: PrivateEstimator, data: Data, *start: object) -> Fit:
    """Settle the plan of a fit.

    Parameters
    ----------
    model : PrivateEstimator
    data : Data
    *start
        Where a solver starts, for those estimators that have one.

    Raises
    ------
    ValueError
        If a parameter is refused. Nothing is released or charged.
    """
    with refusals.refusing(model._who):
        prepared = model._prepare(**model._facts_of(data, *start))
    model._warn_before(prepared)
    if not math.isinf(model.epsilon):
        X = data.given[0] if data.given else None
        user_warnings.warn_about_columns(model._who, X, data.names or ())
    public, solver, plan = prepared.public, prepared.solver, prepared.plan
    if solver is not None:
        user_warnings.warn_about_noise(model._who, prepared)
    source = model._terms.noise_source
    resampled = surroundings.resampling_around()
    assumptions = *resampled, *model._assumptions(prepared), *data.assumptions
    statement = replace(plan.cost(public, assumptions, source), part=data.part).statement()
    if statement.releases and not public.grouped:
        surroundings.refuse_groups_of_others(model._who)
    parts.require_charged_unit(model._who, public.unit)
    n_passes = sum(record.count for record in statement.releases)
    compiled.prepare(n_passes * public.n_rows * public.n_parameters * public.n_outputs)
    return Fit(data, prepared, statement)


def charge_fit(
    model: PrivateEstimator,
    statement: PrivacyStatement,
    data: Data | None = None,
    who: str | None = None,
    rows: Rows = ((), ()),
) -> NoiseSource:
    """Charge the budgets that a fit shares, and return the source of its noise.

    Parameters
    ----------
    model : PrivateEstimator
    statement : PrivacyStatement
        The charge: a fit, or several fits together. Those go into a block of
        `skdp._fitting.parts.charged_as_a_whole`, in which nothing is charged again.
    data : Data or None, default=None
        The rows, for the budgets to compare with those of earlier fits.
    who : str or None, default=None
        Name of the tool in messages. None for that of the estimator.
    rows : tuple of (Part, tuple)
        The part of the rows, and the arrays that were given for them.

    Raises
    ------
    PrivacyBudgetError
        If a budget does not admit it. Nothing is released or charged.
    """
    who, terms = who or model._who, model._terms
    n_records = statement.n_rows or statement.n_groups or 1
    user_warnings.warn_about_budget(who, model.epsilon, model.delta, n_records)
    user_warnings.warn_about_seed(who, terms.noise_source, model.epsilon)
    drawn_from, seed = terms.draws()
    if parts.is_charged():
        return drawn_from
    if not math.isinf(model.epsilon):
        surroundings.warn_about_calls(who, model, model.epsilon)
    # A model that is scored was sent from the blocks of budgets, the scorer was not.
    inside = filter(lambda one: isinstance(one, PrivateEstimator), everything_in(model))
    sent = (identity for one in inside for identity in vars(one).get(_SENT_BUDGETS, ()))
    charge(who, statement, terms.budget, seed, tuple(dict.fromkeys(sent)), data, rows)
    return drawn_from


def with_earlier_fits(
    model: PrivateEstimator, arrays: tuple[Table, ...], statement: PrivacyStatement
) -> PrivacyStatement:
    """Return the statement of all fits of this estimator on these rows. Warn if there are several.

    Whoever fits it again and keeps the best result has seen all of these releases. Each was charged
    separately. ``privacy_`` states this total.

    Parameters
    ----------
    model : PrivateEstimator
    arrays : tuple
        The arguments that contain rows.
    statement : PrivacyStatement
        Of a fit that was charged.
    """
    if parts.is_charged():
        return statement
    fits = [one for one in parts.add_fit(model, arrays, statement) if one.noise_source == "system"]
    if len(fits) < 2 or statement not in fits or not statement.releases:
        return statement
    text = user_warnings.REFITTED.format(len(fits))
    try:
        cost = composed(model._who, map(Cost.of, fits), statement.delta)
    except ValueError:  # under several adjacencies, or for several units of privacy
        total, text = statement, f"{text} Their guarantees do not add up, and are NOT stated here."
    else:
        total = cost.statement()
    user_warnings.warn_about_refit(model._who, text, total.epsilon)
    return replace(total, assumptions=(text, *total.assumptions))


@contextmanager
def _reporting(who: str, plan: Plan) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the step of each release, in a bar if tqdm is installed.

    Nothing but the plan decides what it shows: no times, which depend on the rows.
    """
    planned = {_step(entry.kind) for entry in plan.entries}
    of = "" if plan.adaptive else f" of {len(planned)}"
    total = None if plan.adaptive else sum(entry.count for entry in plan.entries)
    has_bar = sys.stderr is not None and importlib.util.find_spec("tqdm") is not None
    seen: dict[str, int] = {}

    def show(kind: str) -> None:
        step, n_seen = _step(kind), len(seen)
        text = f"[{who}] {step}, {seen.setdefault(step, n_seen + 1)}{of}"
        if bar is not None:
            bar.set_description(text, refresh=False)
            bar.update()
        elif len(seen) > n_seen:
            print(text)

    options = {"total": total, "bar_format": BAR, "mininterval": 0, "miniters": 1}
    make_bar = importlib.import_module("tqdm").tqdm if has_bar else lambda **_: nullcontext()
    with make_bar(**options) as bar:
        yield show


def _step(kind: str) -> str:
    return f"estimating {STEPS.get(kind, kind.replace('_', ' '))}"


# ---------------------------------------------------------------- plans, once for equal fits


def _frozen(value: Any) -> Hashable:
    """Return a value of a parameter as a key. TypeError if its state may not be all in it.

    Objects of skdp are their attributes. Of other objects and of functions this is not known.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str) or isinstance(value, np.number):
        return kind, repr(value)  # as 0.0 equals -0.0
    if isinstance(value, Enum):
        return kind, value.name
    if kind is np.ndarray and not value.dtype.hasobject and value.size <= LARGEST_IN_KEYS:
        return value.dtype, value.shape, value.tobytes()
    if kind in (list, tuple, range):
        return kind, *map(_frozen, value)
    if kind is frozenset:
        return kind, frozenset(map(_frozen, value))
    if kind is dict:
        return kind, *((_frozen(name), _frozen(inside)) for name, inside in value.items())
    is_own = kind.__module__.partition(".")[0] == "skdp" and hasattr(value, "__dict__")
    if is_own and not isinstance(value, tuple):
        return kind, _frozen(vars(value))
    raise TypeError(f"{kind.__name__} is no key.")


def planned_once(model: Any, facts: tuple[object, ...]) -> Prepared:
    """Return the parts of a fit. Equal fits share theirs.

    Parameters
    ----------
    model : estimator
        Its parameters are part of the key.
    facts : tuple
        All other public facts that the plan depends on.
    """
    reader = model._reader()
    try:
        key = _frozen((reader, facts))
    except TypeError:
        planned: Prepared = model._prepared(*facts)
        return planned
    prepared = _plans.get(key)
    if prepared is None:
        reader, facts = deepcopy((reader, facts))  # as users may change their objects
        prepared = reader._prepared(*facts)
        while len(_plans) >= MAX_PLANS:
            _plans.pop(next(iter(_plans)), None)
        _plans[key] = prepared
    return prepared
