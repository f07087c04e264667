"""Fits on rows that arrive block by block and are read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse as scipy_sparse

from skdp._numbers import shown
from skdp.linear_model.charging import charge
from skdp.linear_model.noise_advice import warn_about_noise
from skdp.linear_model.parameters import check_counts, warn_about_budget, warn_about_seed
from skdp.oracle import run
from skdp.oracle.rows import Rows, StreamRows
from skdp.solvers.base import REGISTRY

if TYPE_CHECKING:
    from skdp.linear_model.base import DPLinearModel, Targets
    from skdp.oracle import Public
    from skdp.oracle.rows.stream import Arrival
    from skdp.solvers import Solver


class FitsBlocks:
    """Mixin of :class:`skdp.linear_model.base.DPLinearModel`: the method `fit_blocks`."""

    def fit_blocks(
        self,
        blocks: Iterable[tuple[Any, Any]],
        *,
        n_samples: int,
        n_features: int,
        n_outputs: int = 1,
        sparse: bool = False,
    ) -> Self:
        """Fit the model on blocks of rows that arrive one by one, each read once.

        The solver must be one that reads each row once ("shuffled_sgd" or "adaptive_shuffled_sgd";
        "auto" is the second). Memory is that of an arriving block and of one of the solver's, which
        has ``n_samples / max_iter`` rows. The budget is charged once, before the first block is
        asked for. Columns are used as they come, whatever ``scaling`` says.

        Parameters
        ----------
        blocks : iterable of (X, y)
            X of shape (any, n_features), y of shape (any,) or (any, n_outputs). A classifier needs
            ``classes`` to be declared.
        n_samples : int
            Number of rows, declared as public. Places that no row arrives for count as null
            records, and nothing tells that they were missing. Rows beyond it are an error at the
            end: no model is kept, and the budget is spent.
        n_features : int
            Number of columns.
        n_outputs : int, default=1
            Number of targets of a regression.
        sparse : bool, default=False
            Whether X is sparse.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is refused, before any block is asked for; or if a block is.

        Notes
        -----
        The order of arrival and the sizes of blocks must not depend on what the rows hold, but for
        what is public. No shuffle is needed for privacy: a record keeps its place, so it
        lies in one of the solver's blocks, whatever the others hold (parallel composition). There
        is no amplification, either, as the order is not secret: the price is that of one step. For
        accuracy, rows should arrive in about random order.

        What is enforced: within a call no row is read twice, and a solver or polish that would have
        to is refused. Another call is another fit, with a price of its own; give a ``budget`` that
        both share to have it counted.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import DPLinearRegression
        >>> def blocks():
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(20):
        ...         X = rng.standard_normal((1000, 3))
        ...         yield X, X @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(1000)
        >>> model = DPLinearRegression()
        >>> model.fit_blocks(blocks(), n_samples=20000, n_features=3).coef_.round(1).tolist()
        [1.0, -1.0, 0.5]
        """
        model: Any = self
        # 1. Everything that can be refused without rows.
        model._check_parameters()
        if model.scaling == "private" or model.bounds is not None:
            raise ValueError(
                f"{type(model).__name__}: fit_blocks takes columns as they are; got "
                f"scaling={model.scaling!r}, bounds={shown(model.bounds)}. Scale the blocks by "
                "public figures, or declare data_norm. Nothing was released."
            )
        check_counts("fit_blocks", n_samples=n_samples, n_features=n_features, n_outputs=n_outputs)
        declared = _declared(model, n_features, n_outputs, sparse)
        weighted = declared.weights is not None
        source, seed = model._noise()
        public, problem, _, solver, plan = model._prepare(
            n_samples, n_features, declared.n_outputs, bool(sparse), weighted, streamed=True
        )
        _check_solver(type(model).__name__, solver)
        warn_about_budget(type(model).__name__, model.epsilon, model.delta, n_samples)
        warn_about_seed(type(model).__name__, model.noise_source, model.epsilon)
        warn_about_noise(type(model).__name__, plan, public, problem)
        model._report(plan, public)
        said = (*model._assumptions(public, solver), *_stream_assumptions(n_samples))
        statement = plan.statement(public, said, source.name)
        # 2. Charge: from here on the debt stands, and only now is a block asked for.
        elsewhere = vars(model).get("_budget_elsewhere")
        charge(type(model).__name__, statement, model.budget, seed, elsewhere)
        # 3. One pass over what arrives.
        size = public.intercept_size * public.has_intercept

        def make_rows(X: Any, targets: Any, weights: Any) -> Rows:
            return Rows(X, targets, weights, public.row_bound, size)

        reader = _Reader(model, public, declared)
        rows = StreamRows(reader.arrivals(blocks), n_samples, make_rows, reader.nothing())
        solution = run(plan, solver, public, problem, rows, source, source.coins())  # type: ignore[arg-type]
        rows.require_end()
        # 4. Keep the answer.
        model._keep(solution, public, declared, solver, statement)
        model.row_bound_ = public.row_bound
        model.n_features_in_ = int(n_features)
        vars(model).pop("feature_names_in_", None)  # of an earlier fit
        return self


class _Reader:
    """Validates blocks as they arrive."""

    def __init__(self, model: DPLinearModel, public: Public, declared: Targets) -> None:
        self._model, self._public, self._declared = model, public, declared

    def arrivals(self, blocks: Iterable[tuple[Any, Any]]) -> Iterator[Arrival]:
        for block in blocks:
            if not self._is_empty(block):
                yield self._read(block)

    def nothing(self) -> Arrival:
        """Return an arrival of no rows."""
        shape = 0, self._public.n_features
        X = scipy_sparse.csr_array(shape) if self._public.sparse else np.zeros(shape)
        weights = None if self._declared.weights is None else np.zeros(0)
        return X, self._declared.values[:0], weights

    @staticmethod
    def _is_empty(block: Any) -> bool:
        """Whether a block has no rows; scikit-learn refuses to check such arrays."""
        return isinstance(block, tuple) and len(block) == 2 and np.shape(block[0])[:1] == (0,)

    def _read(self, block: tuple[Any, Any]) -> Arrival:
        who = type(self._model).__name__
        if not (isinstance(block, tuple) and len(block) == 2):
            raise ValueError(f"{who}: a block is a pair (X, y); got {type(block).__name__}.")
        # A block is checked as the whole of X is in fit; the names of columns are not kept.
        model = type(self._model)(**self._model.get_params(deep=False))
        checks = {"multi_output": True, "y_numeric": True} if self._regression else {}
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                X, y = model._read(*block, ensure_min_samples=0, **checks)
                targets = model._read_targets(y, X.dtype)
        except ValueError as refusal:
            raise ValueError(f"{refusal} The budget of this fit is spent.") from None
        found = X.shape[1], targets.n_outputs, bool(scipy_sparse.issparse(X))
        public = self._public
        if found != (public.n_features, public.n_outputs, public.sparse):
            raise ValueError(
                f"{who}: blocks were declared to have (columns, outputs, sparse) = "
                f"{(public.n_features, public.n_outputs, public.sparse)}; got {found}. The budget "
                "of this fit is spent."
            )
        return X, targets.values, targets.weights

    @property
    def _regression(self) -> bool:
        return self._declared.classes is None


def _declared(model: Any, n_features: int, n_outputs: int, is_sparse: bool) -> Targets:
    """Targets of the declared kind, as if of two rows, to know their shape before any arrive."""
    if not hasattr(model, "classes"):
        y = np.zeros(2) if n_outputs == 1 else np.zeros((2, n_outputs))
    elif model.classes is None:
        raise ValueError(
            f"{type(model).__name__}: blocks do not show all labels at once; declare them by "
            "classes=... . Nothing was released."
        )
    else:
        given = model.classes
        y = np.asarray(given if hasattr(given, "__array__") else list(given))
    found: Targets = model._read_targets(y, np.dtype(np.float64))
    return found


def _check_solver(who: str, solver: Solver) -> None:
    if not solver.one_pass:
        able = sorted(name for name, cls in REGISTRY.items() if cls.one_pass)
        raise ValueError(
            f"{who}: solver {solver.name!r} reads rows more than once, and blocks are gone when "
            f"they are read. Solvers that can: {', '.join(able)}. Nothing was released."
        )


def _stream_assumptions(n_samples: int) -> tuple[str, ...]:
    return (
        f"Rows arrived block by block and were read once. n = {n_samples} was declared; places "
        "without a row count as null records.",
        "The order of arrival and the sizes of blocks did not depend on private values. The order "
        "is not secret, so nothing was amplified by shuffling.",
    )
