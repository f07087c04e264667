"""The one path that every private estimator takes: check, read, prepare, charge, run, keep."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from skdp._numbers import shown
from skdp.accounting import Adjacency, PrivacyStatement
from skdp.accounting.records import release_lines
from skdp.fitting import parameters, parts
from skdp.fitting.between_fits import FitData
from skdp.fitting.budget import (
    PrivacyBudget,
    charge,
    process_id,
    process_of_open_budget,
    seed_fingerprint,
)
from skdp.fitting.callbacks import (
    CallbackSupport,
    Progress,
    supports_callbacks,
    warn_about_rows,
    with_callbacks,
)
from skdp.fitting.noise_warning import warn_about_noise
from skdp.fitting.preparation import Prepared
from skdp.fitting.refusals import refuse_tables, without_cells, without_sizes
from skdp.fitting.rows import Reading, Rows
from skdp.fitting.units import Targets
from skdp.oracle import (
    NoiseSource,
    Solution,
    compiled,
    noise_source,
    run,
)
from skdp.oracle.sources.base import Source
from skdp.oracle.sources.block_sizes import row_parts
from skdp.oracle.sources.memory import Map, row_threads
from skdp.oracle.sources.sparse_rows import canonical

GENERATORS = (np.random.RandomState, np.random.Generator)

# Attribute of an estimator that was pickled inside the block of a budget of another process.
_FOREIGN_BUDGET = "_foreign_budget"


class PrivateEstimator(CallbackSupport, BaseEstimator):
    """Base of all that is fitted privately.

    Copies of an estimator draw no noise twice and forget no open budget; pickles hold no generator.

    Attributes
    ----------
    _protects_labels : bool
        Whether it has targets, so that adjacency="label" means something.
    """

    _protects_labels: ClassVar[bool] = False
    epsilon: float
    delta: float
    adjacency: str
    accountant: str
    budget: PrivacyBudget | None
    noise_source: str
    random_state: Any

    _n_fits_is_public = True  # False for private searches: callbacks would count their fits

    # mypy: scikit-learn's decorators have no types.
    @available_if(supports_callbacks)  # type: ignore[untyped-decorator]
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks, which are called after each release with how far the fit is.

        They need scikit-learn 1.9. A fit is one task, and each of its releases is a task of it,
        named after what was released. A hook that asks for ``metadata`` gets public facts, all of
        which follow from the plan: ``release``, ``step``, ``n_steps`` (None if the solver decides
        on the way), ``epsilon_spent`` (what the releases so far cost), ``epsilon`` and ``delta``
        (what the fit was charged for, before its first release). ``X``, ``y`` and
        ``fitted_estimator`` are always None: what a callback computed from rows would not be
        private. Nor can a callback end a fit, whose budget is spent. The fits inside of a private
        search or cross-validation call none, as their number is part of what is protected.

        Parameters
        ----------
        *callbacks : objects that follow `sklearn.callback.FitCallback`
            Such as `sklearn.callback.ProgressBar`.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.callback import ProgressBar
        >>> from skdp import DPRidge
        >>> model = DPRidge().set_callbacks(ProgressBar())
        """
        super().set_callbacks(*callbacks)
        warn_about_rows(self, callbacks)
        return self

    @property
    def _who(self) -> str:
        """What messages call it."""
        return type(self).__name__

    # ------------------------------------------------------------------ check and read

    def _check_shared_parameters(self) -> None:
        parameters.check_budget(self.epsilon, self.delta)
        Adjacency.parse(self.adjacency, labels=self._protects_labels)
        parameters.check_noise_source(self.noise_source, self.random_state)
        if not (self.budget is None or isinstance(self.budget, PrivacyBudget)):
            raise ValueError(f"budget must be None or a PrivacyBudget; got {shown(self.budget)}.")

    def _read(self, what: str, *arrays: Any, **checks: Any) -> Any:
        """Validate X, or X and y; a refusal does not quote what a cell holds."""
        who = type(self).__name__
        refuse_tables(who, *arrays[:1])
        with without_cells(who, what, *arrays[:1]):
            found = validate_data(
                self, *arrays, accept_sparse="csr", dtype=[np.float64, np.float32], **checks
            )
        X, *others = found if len(arrays) > 1 else (found,)
        X = canonical(X) if sparse.issparse(X) else X
        return (X, *others) if others else X

    def _check_rows(self, X: Any) -> None:
        """Raise ValueError for rows that a fit would refuse; nothing is kept or charged."""
        clone(self)._read("X", X)

    # ------------------------------------------------------------------ the path of a fit

    def _fit(self, rows: Rows, *start: Any) -> Self:
        """Check, prepare, charge and run a fit on rows of any kind, and keep its results.

        Parameters
        ----------
        rows : Rows
        *start
            Where a solver starts, for those estimators that have one.
        """
        # 1. All that can be refused without rows; then the rows themselves.
        self._check_parameters()
        reading = rows.read(self)
        # 2. Public facts, the problem, the stages, and their plan.
        prepared = self._prepare_for(reading, *start)
        self._warn_before(prepared)

        # 3. Charge the budgets that this fit shares, and run on the rows, once.
        def make_source(spread: Map) -> Source:
            source = reading.make_source(prepared.public, spread)
            source.reserve(transformed=len(prepared.stages) > 1)
            return source

        assumptions, part, data = self._assumptions(prepared), reading.part, reading.data
        solution, statement = self._carry_out(prepared, assumptions, make_source, part, data)
        # 4. Keep the answers; rows, oracle and generators end here.
        self._keep(solution, prepared, reading.targets, statement)
        reading.keep_columns(self)
        return self

    def _check_parameters(self) -> Any:
        """Raise ValueError for parameters that are out of range or do not agree."""
        raise NotImplementedError

    def _prepare_for(self, reading: Reading, *start: Any) -> Prepared:
        """Return all that is settled about a fit to rows with these public facts."""
        raise NotImplementedError

    def _warn_before(self, prepared: Prepared) -> None:
        """Warn about a fit, from public facts, before it is charged."""

    def _assumptions(self, prepared: Prepared) -> tuple[str, ...]:
        """Return the sentences of the statement on what is assumed."""
        raise NotImplementedError

    def _keep(
        self, solution: Solution, prepared: Prepared, targets: Targets, statement: PrivacyStatement
    ) -> None:
        """Store the results of a fit."""
        raise NotImplementedError

    @with_callbacks
    def _carry_out(
        self,
        prepared: Prepared,
        assumptions: tuple[str, ...],
        make_source: Callable[[Map], Source],
        part: parts.Part = (),
        data: FitData | None = None,
    ) -> tuple[Solution, PrivacyStatement]:
        """Charge the budgets and run a prepared fit on its rows, once.

        Parameters
        ----------
        prepared : Prepared
        assumptions : tuple of str
        make_source : callable
            Returns the place where the rows live, from a ``map`` over threads. Whatever can fail
            for its size fails in there, before the budget is charged.
        part : tuple of (Partition, int)
            The part of a random split, of the fit's own unit, that the rows are; () for all rows.
        data : FitData or None, default=None
            The rows in memory, for the budgets to compare with those of earlier fits.
        """
        who, public = self._who, prepared.public
        parameters.warn_about_budget(who, self.epsilon, self.delta, public.n_rows)
        parameters.warn_about_seed(who, self.noise_source, self.epsilon)
        self._warn_and_report(prepared)
        drawn_from, seed = self._noise()
        statement = prepared.plan.statement(public, assumptions, self.noise_source)
        parts.require_charged_unit(who, public.unit)
        statement = parts.statement_on_part(statement, part)
        solver = prepared.solver
        long_passes = solver is not None and solver.has_long_passes(prepared.public_after)
        compiled.prepare((public.n_rows, public.n_features), long_passes)
        n_parts = len(row_parts(public.n_rows, public.n_features, 8, public.sparse))
        with row_threads(n_parts) as spread, without_sizes(who, public.grouped):
            source = make_source(spread)
            if not parts.is_charged():
                foreign = vars(self).get(_FOREIGN_BUDGET)
                charge(who, statement, self.budget, seed, foreign, data)
            # A scaler alone makes no choices of its own.
            rng = np.random.default_rng(0) if prepared.solver is None else drawn_from.coins()
            plan, stages, problem = prepared.plan, prepared.stages, prepared.problem
            progress = Progress.of(self, plan, statement)
            on_release = None if progress is None else progress.released
            solution = run(plan, stages, public, problem, source, drawn_from, rng, on_release)
            parameters.warn_unless_converged(who, solution, public)
            source.finish()
            if progress is not None:
                progress.ended()
        return solution, statement

    def _charge_as_a_whole(
        self, statement: PrivacyStatement, who: str | None = None
    ) -> NoiseSource:
        """Charge the budgets for several fits together, and return the source of their noise.

        ``who`` is what messages call it. The fits themselves go into a block of
        `skdp.fitting.parts.charged_as_a_whole`.
        """
        who = who or self._who
        n_records = statement.n_rows or statement.n_groups or 1
        parameters.warn_about_budget(who, self.epsilon, statement.delta, n_records)
        parameters.warn_about_seed(who, self.noise_source, self.epsilon)
        drawn_from, seed = self._noise()
        if not parts.is_charged():
            charge(who, statement, self.budget, seed, vars(self).get(_FOREIGN_BUDGET))
        return drawn_from

    def _warn_and_report(self, prepared: Prepared) -> None:
        """Say what a plan means before it is carried out."""
        who = self._who
        if prepared.solver is not None:
            warn_about_noise(who, prepared.plan, prepared.public, prepared.problem)
        if getattr(self, "verbose", 0):
            statement = prepared.plan.statement(prepared.public, (), "system")
            for line in release_lines(statement.releases, statement.unit):
                print(
                    f"[{who}] {line}, epsilon {statement.epsilon:.4g}, "
                    f"accountant {statement.accountant}"
                )

    def _noise(self) -> tuple[NoiseSource, str | None]:
        """Return the source of a fit's noise, and a fingerprint of its seed if it has one."""
        if self.noise_source == "system":
            return noise_source(None), None
        return noise_source(self.random_state), seed_fingerprint(self.random_state)

    # ------------------------------------------------------------------ copies and pickles

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without generators: their state would let a reader subtract the noise.

        A generator given as ``random_state`` is dropped, so that two workers which receive the same
        pickled estimator do not draw the same noise; a seed is kept, as any parameter.
        """
        state = dict(super().__getstate__())
        if isinstance(state.get("random_state"), GENERATORS):
            state["random_state"] = None
        # An open budget cannot follow the estimator to a worker, so the estimator remembers it.
        process = process_of_open_budget(state.get(_FOREIGN_BUDGET))
        if process is not None:
            state[_FOREIGN_BUDGET] = process
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle; back in the process of the open budget there is nothing to remember."""
        process = state.get(_FOREIGN_BUDGET)
        if process is not None and process == process_id():
            state = {name: value for name, value in state.items() if name != _FOREIGN_BUDGET}
        super().__setstate__(state)

    def __sklearn_clone__(self) -> Self:
        """Clone; meta-estimators in a worker clone what they were sent.

        A generator is shared with the clone, not copied: two copies would draw the same noise.
        """
        twin: Self = super().__sklearn_clone__()
        if isinstance(self.random_state, GENERATORS):
            twin.random_state = self.random_state
        if _FOREIGN_BUDGET in vars(self):
            setattr(twin, _FOREIGN_BUDGET, vars(self)[_FOREIGN_BUDGET])
        return twin

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.noise_source == "system"
        return tags
