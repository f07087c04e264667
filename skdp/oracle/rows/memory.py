"""Rows that are held in memory, dense or CSR, in the caller's own array: nothing is copied."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.objective import Loss
from skdp.oracle import directional, gram, histograms, kernels, moments
from skdp.oracle.noise import NoiseSource
from skdp.oracle.rows.divisions import Divisions
from skdp.oracle.rows.passing import Passing
from skdp.oracle.rows.records import Records
from skdp.oracle.scaling import Scaling
from skdp.oracle.threads import Map

Array = NDArray[np.float64]


def canonical(X: Any) -> Any:
    """Return CSR rows with every entry given once; other rows as they are.

    An entry given in parts, such as 1e30 and -1e30, passes for small in a norm and swallows the
    other rows when the parts are added up one by one. Flags of the caller's matrix are not trusted.

    Raises
    ------
    ValueError
        If the parts of an entry add up to infinity.
    """
    if not sparse.issparse(X):
        return X
    rows = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    if rows.has_canonical_format:
        return rows
    rows = rows.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise ValueError(
            "X holds a sparse entry that is given in several parts which add up to infinity. "
            "Nothing was released."
        )
    return rows


class MemoryRows(Passing):
    """Records (x, y, weight), and the two bounds that are enforced on them.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features), float32 or float64, finite
    targets : array, first axis n_rows
        As the loss wants them.
    weights : array of shape (n_rows,) or None
        Scale a record's gradient before it is clipped.
    row_bound : float or None
        Rows longer than this are treated as scaled down to it; X itself is left alone.
    intercept_size : float
        Size of the one more, constant feature that each row has; 0 for none.
    spread : callable, default=map
        Maps a function over parts of the rows; see :mod:`skdp.oracle.threads`.
    """

    __slots__ = (
        "_X",
        "_divisions",
        "_intercept_size",
        "_inverse_norms",
        "_inverse_sums",
        "_known_norms",
        "_row_bound",
        "_shrink",
        "_spread",
        "_targets",
        "_weights",
    )

    def __init__(
        self,
        X: Any,
        targets: NDArray[Any],
        weights: Array | None = None,
        row_bound: float | None = None,
        intercept_size: float = 1.0,
        spread: Map = map,
    ) -> None:
        X = canonical(X)
        norms = kernels.row_norms(X)
        shrink = None
        if row_bound is not None:
            shrink = np.minimum(1.0, kernels.quotient(row_bound, norms))
            norms = np.minimum(norms, row_bound)
        if intercept_size:
            norms = np.hypot(norms, intercept_size)
        self._X, self._targets, self._weights = X, targets, weights
        self._divisions = Divisions(X.shape[0])
        self._inverse_norms, self._shrink = kernels.quotient(1.0, norms), shrink
        self._inverse_sums: Array | None = None
        self._intercept_size, self._spread = intercept_size, spread
        self._row_bound = row_bound
        self._block: tuple[object, MemoryRows] | None = None
        self._known_norms: tuple[Array, Array] | None = None

    def __reduce__(self) -> Any:
        raise TypeError("rows cannot be pickled: a saved model must not hold its training data.")

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return bool(sparse.issparse(self._X))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._X.shape[0])

    @property
    def row_bound(self) -> float | None:
        """The bound that longer rows are scaled down to."""
        return self._row_bound

    @property
    def weighted(self) -> bool:
        """Whether weights were given."""
        return self._weights is not None

    def shuffled_block(
        self, epoch: int, n_blocks: int, index: int, source: NoiseSource
    ) -> NDArray[np.int64]:
        """Row numbers of a block; see :class:`skdp.oracle.rows.divisions.Divisions`."""
        return self._divisions.shuffled(epoch, n_blocks, index, source)

    def random_bin(
        self, epoch: int, n_bins: int, index: int, source: NoiseSource
    ) -> NDArray[np.int64]:
        """Row numbers of a bin; see :class:`skdp.oracle.rows.divisions.Divisions`."""
        return self._divisions.allocated(epoch, n_bins, index, source)

    def take(self, numbers: NDArray[np.int64]) -> MemoryRows:
        """Return the rows with these numbers, copied."""
        chosen = object.__new__(MemoryRows)
        chosen._X, chosen._targets = self._X[numbers], self._targets[numbers]
        chosen._weights = None if self._weights is None else self._weights[numbers]
        chosen._shrink = None if self._shrink is None else self._shrink[numbers]
        chosen._divisions = Divisions(len(numbers))
        chosen._inverse_norms = self._inverse_norms[numbers]
        chosen._inverse_sums = None if self._inverse_sums is None else self._inverse_sums[numbers]
        chosen._intercept_size, chosen._spread = self._intercept_size, self._spread
        chosen._row_bound, chosen._block = self._row_bound, None
        chosen._known_norms = None
        return chosen

    def standardised(self, scaling: Scaling, row_bound: float | None) -> MemoryRows:
        """Return the rows mapped by public numbers, one by one, with another bound on them."""
        X, targets = self._X, self._targets
        if scaling.columns is not None:
            X = scaling.columns.apply(X, self._spread)
        if scaling.targets is not None:
            targets = scaling.targets.apply(targets)
        size = self._intercept_size
        return MemoryRows(X, targets, self._weights, row_bound, size, self._spread)

    def magnitude_counts(self, features: bool, targets: bool) -> NDArray[np.int64]:
        """Count values by column and magnitude; rows of weight 0 are not counted."""
        return self._counts(features, targets, histograms.magnitude_counts)

    def bin_counts(
        self, features: bool, targets: bool, low: Array, width: Array, n_bins: int
    ) -> NDArray[np.int64]:
        """Count values by column in equal bins; rows of weight 0 are not counted."""
        n_features = self._X.shape[1] * features

        def count(X: Any, takes_part: Any, rows: slice) -> NDArray[np.int64]:
            these = slice(None, n_features) if X is self._X else slice(n_features, None)
            return histograms.bin_counts(X, takes_part, rows, low[these], width[these], n_bins)

        return self._counts(features, targets, count)

    def _counts(self, features: bool, targets: bool, count: Any) -> NDArray[np.int64]:
        takes_part = None if self._weights is None else self._weights > 0
        asked = [self._X] * features + [self._targets] * targets
        found = []
        for table in asked:
            shape = (*table.shape, table.dtype.itemsize, bool(sparse.issparse(table)))
            over = functools.partial(count, table, takes_part)
            found.append(functools.reduce(operator.add, self._spread(over, kernels.parts(*shape))))
        return np.concatenate(found)

    def _inverse(self, order: int) -> Array:
        """One over the norm of every row, shrunk and with its constant; L1 norms when asked for."""
        if order == 2:
            return self._inverse_norms
        if self._inverse_sums is None:
            sums = kernels.row_sums(self._X)
            if self._shrink is not None:
                # Rows too long to divide by count as null; their sum may be infinite.
                sums = np.where(self._shrink > 0, sums, 0.0) * self._shrink
            self._inverse_sums = kernels.quotient(1.0, sums + self._intercept_size)
        return self._inverse_sums

    def largest_gram_eigenvalue(self) -> float:
        """Largest eigenvalue of the sum of ``z z'`` over rows z, shrunk and with their constant."""
        return gram.largest_eigenvalue(gram.gram(self._X, self._shrink, self._intercept_size))

    def records(self, numbers: NDArray[np.int64]) -> Records:
        """Copy records of dense rows side by side; a number may be given more than once."""
        n_features = self._X.shape[1]
        rows = np.empty((len(numbers), n_features + bool(self._intercept_size)))
        taken = np.take(self._X, numbers, axis=0)
        if self._shrink is None:
            rows[:, :n_features] = taken
        else:
            np.multiply(taken, self._shrink[numbers, None], out=rows[:, :n_features])
        rows[:, n_features:] = self._intercept_size
        return Records(
            rows,
            self._targets[numbers, 0].astype(np.float64),
            None if self._weights is None else self._weights[numbers],
            self._inverse_norms[numbers],
        )

    def clipped_gradient_sum(
        self,
        loss: Loss,
        point: Array,
        clip_norm: float,
        precise: bool = False,
        order: int = 2,
        anchor: Array | None = None,
    ) -> Array:
        """Sum of the rows' gradients at ``point``, each clipped to ``clip_norm``.

        With ``precise``, margins of float32 rows are taken in float64; ``order`` is that of the
        norm, 1 or 2. With ``anchor``, what is clipped and summed is each gradient's difference from
        that at ``anchor``.
        """
        inverse_norms = self._inverse(order)

        def over(part: slice) -> Array:
            return kernels.clipped_gradient_sum(
                self._X,
                self._targets,
                self._weights,
                self._shrink,
                inverse_norms,
                self._intercept_size,
                loss,
                point,
                clip_norm,
                part,
                precise,
                order,
                anchor,
            )

        # In the order of the parts, whichever thread is done first.
        return functools.reduce(operator.add, self._spread(over, self._parts()))

    def _parts(self) -> list[slice]:
        n_rows, n_columns = self._X.shape
        return kernels.parts(n_rows, n_columns, self._X.dtype.itemsize, self.is_sparse)

    def shrunk_gradient_sum(
        self,
        loss: Loss,
        point: Array,
        row_norm: float,
        residual_bound: float,
        transform: Array | None = None,
        whole_records: bool = False,
    ) -> Array:
        """Sum of the rows' gradients, the rows shrunk to ``row_norm`` and residuals capped.

        With ``transform`` T, a square matrix, norms are those of ``T'z`` and so is the answer: the
        sum of ``T'z`` times residual. With ``whole_records`` a row's target is shrunk with it, as
        in :meth:`gram_sum`, which for squared error multiplies its residual once more.
        """
        inverse = self._inverse_norms if transform is None else self._inverse_in(transform)
        if whole_records:
            roots = None if self._weights is None else np.sqrt(self._weights)
            limits = moments.factors_within(row_norm, inverse, roots)
            weights = limits * limits
        else:
            limits = moments.factors_within(row_norm, inverse, None)
            with np.errstate(over="ignore", under="ignore"):
                weights = limits if self._weights is None else limits * self._weights

        def over(part: slice) -> Array:
            return kernels.clipped_gradient_sum(
                self._X,
                self._targets,
                weights,
                self._shrink,
                limits,
                self._intercept_size,
                loss,
                point,
                residual_bound,
                part,
            )

        total: Array = functools.reduce(operator.add, self._spread(over, self._parts()))
        return total if transform is None else np.asarray(transform.T @ total)

    def _inverse_in(self, transform: Array) -> Array:
        """One over the norms of rows in other coordinates; those of the last ones are kept."""
        if self._known_norms is None or self._known_norms[0] is not transform:

            def over(part: slice) -> Array:
                return moments.norms_in(
                    self._X, self._shrink, self._intercept_size, transform, part
                )

            norms = np.concatenate(list(self._spread(over, self._parts())))
            self._known_norms = transform, kernels.quotient(1.0, norms)
        return self._known_norms[1]

    def gram_sum(
        self, row_norm: float, target_unit: float | None = None, target_bound: float = np.inf
    ) -> Array:
        """Sum of ``v v'`` over records ``v``, weighted by its root and shrunk to ``row_norm``.

        ``v`` is the row with its constant; with ``target_unit``, the targets over that, cut to
        ``target_bound`` before, are further columns of it.
        """
        roots = None if self._weights is None else np.sqrt(self._weights)
        inverse, extra = self._inverse_norms, None
        if target_unit is not None:
            targets = self._targets.astype(np.float64, copy=False).reshape(self.n_rows, -1)
            # Cut so that squares stay finite: 0 times inf would be nan.
            largest = min(target_bound / target_unit, 1e150)
            with np.errstate(over="ignore"):
                extra = np.clip(targets / target_unit, -largest, largest)
            inverse = kernels.quotient(1.0, moments.joint_norms(inverse, extra))
        factors = moments.factors_within(row_norm, inverse, roots)

        def over(part: slice) -> Array:
            return moments.gram_sum(
                self._X, factors, self._shrink, self._intercept_size, extra, part
            )

        return functools.reduce(operator.add, self._spread(over, self._parts()))

    def record_factors(self, row_norm: float, gentle: bool = False) -> Array:
        """Factors that make weighted rows no longer than ``row_norm``.

        With ``gentle`` the square of a factor f is at most ``row_norm / |z|``, too: then neither
        ``f**2 |z|`` exceeds ``row_norm`` nor ``f**2 |z|**2`` its square, whatever the weight. Rows
        too long to be shrunk get 0: their margins may overflow, at some points and not at others,
        which would make the sum of their gradients that of no loss.
        """
        roots = None if self._weights is None else np.sqrt(self._weights)
        factors = moments.factors_within(row_norm, self._inverse_norms, roots)
        if not gentle:
            return factors
        with np.errstate(over="ignore", under="ignore"):
            factors = np.minimum(factors, np.sqrt(row_norm * self._inverse_norms))
        return factors if self._shrink is None else np.where(self._shrink > 0, factors, 0.0)

    def weighted_gradient_sum(self, loss: Loss, point: Array, factors: Array) -> Array:
        """Sum of ``f**2`` times the gradient, margins taken in float64; nothing is clipped."""
        squares = factors * factors

        def over(part: slice) -> Array:
            return moments.weighted_gradient_sum(
                self._X,
                self._targets,
                squares,
                self._shrink,
                self._intercept_size,
                loss,
                point,
                part,
            )

        return functools.reduce(operator.add, self._spread(over, self._parts()))

    def hessian_sum(self, loss: Loss, point: Array, factors: Array) -> Array:
        """Sum of ``v v'``, v the row times its factor and the root of the second derivative.

        For several outputs the second derivative is that of the first.
        """
        curvatures = np.empty(self.n_rows)

        def fill(part: slice) -> None:
            for rows in moments.blocks(self._X, part):
                margins = self._margins(point[:, :1], rows)
                curvatures[rows] = loss.second_derivative(np.nan_to_num(margins))[:, 0]

        list(self._spread(fill, self._parts()))
        scaled = factors * np.sqrt(curvatures)

        def over(part: slice) -> Array:
            return moments.gram_sum(self._X, scaled, self._shrink, self._intercept_size, None, part)

        return functools.reduce(operator.add, self._spread(over, self._parts()))

    def _margins(self, point: Array, rows: slice) -> Array:
        """Margins of some rows in float64; inf or nan where huge products overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            block = kernels._take(self._X, rows)
            margins = np.asarray(block @ point[: self._X.shape[1]]).astype(np.float64, copy=False)
            if self._shrink is not None:
                margins *= self._shrink[rows, None]
            if self._intercept_size:
                margins += self._intercept_size * point[-1]
        return np.asarray(margins)

    def residual_squares(self, loss: Loss, point: Array, bound: float) -> float:
        """Sum of squared residuals, each record's weighted and cut to ``bound**2``."""

        def over(part: slice) -> float:
            total = 0.0
            for rows in moments.blocks(self._X, part):
                margins = self._margins(point, rows)
                with np.errstate(over="ignore", invalid="ignore"):
                    residuals = loss.residual(margins, self._targets[rows])
                    squares = np.einsum("ij,ij->i", residuals, residuals)
                    if self._weights is not None:
                        squares = squares * self._weights[rows]
                total += float(np.minimum(np.nan_to_num(squares), bound * bound).sum())
            return total

        return sum(self._spread(over, self._parts()))

    def directional_sum(
        self,
        loss: Loss,
        point: Array,
        direction: Array,
        clip_norm: float,
        with_shift: bool,
    ) -> Array:
        """Sum of the records' derivatives along a direction, each vector of them clipped."""

        def over(part: slice) -> Array:
            total = np.zeros(directional.WITH_SHIFT if with_shift else directional.ALONG)
            for rows in moments.blocks(self._X, part):
                weights = None if self._weights is None else self._weights[rows]
                with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                    found = directional.derivatives(
                        loss,
                        self._margins(point, rows),
                        self._margins(direction, rows),
                        self._targets[rows],
                        weights,
                        with_shift,
                    )
                total += directional.clipped(found, clip_norm).sum(axis=0)
            return total

        return functools.reduce(operator.add, self._spread(over, self._parts()))
