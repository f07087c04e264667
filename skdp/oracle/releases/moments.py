"""Statistics of second moments: Gram matrices, and gradients of shrunk rows."""

import functools
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from skdp._numbers import Array
from skdp.objective import Logistic, Multinomial, Problem
from skdp.oracle.kernels import second_moments as moments
from skdp.oracle.public import Public
from skdp.oracle.releases import base
from skdp.oracle.sources.base import RepeatableSource
from skdp.oracle.sources.column_map import read_only

ROOT_TWO = math.sqrt(2.0) * (1 + 1e-15)  # not below the true value


def gram_rounding(context: base.PublicContext, n_rows: int, n_more: int) -> float:
    """Relative rounding of a sum of outer products of rows with ``n_more`` further entries.

    A scaled record is longer than its bound R by a relative ``(n_features + n_more + 17) u`` at
    most, its outer product by twice that. A sum of k terms in floating point is off by
    ``k u sum |terms|`` in each entry (Higham 2002, eq. 3.4), and ``|v| |v|'`` has the Frobenius
    norm ``|v|**2``, at most ``R**2``, so the whole matrix by ``k u n R**2``, two neighbouring ones
    by twice as much. The columns of X alone say how many rows are summed at once.
    """
    return 2 * context.rounding(n_rows, n_more)


@base.audited
@dataclass(frozen=True, eq=False)
class GramSum(base.Statistic):
    """Sum of ``v v'`` over the records' vectors v, each shrunk to L2 norm ``row_norm``.

    v is the row with its constant, times the root of its weight; with ``target_unit``, the targets
    cut to ``target_bound`` and divided by the unit are further entries of it. The answer is
    the upper triangle as a vector, entries off the diagonal times sqrt(2), which
    :func:`unpack_gram` turns into the matrix.

    Sensitivity: the vector of ``v v'`` has the L2 norm ``|v v'|_F = |v|**2 <= row_norm**2``, and
    a null record, of weight 0, adds 0. Under replace-one,
    ``|u u' - v v'|_F**2 = |u|**4 + |v|**4 - 2 (u'v)**2 <= 2 row_norm**4``: the spread is sqrt(2).
    A group's part A is a mean of such products: ``|A|_F`` is at most ``row_norm**2``, too, and
    ``<A, B>`` is at least 0 for positive semi-definite A and B, so that the spread is the same.
    The rows are shrunk by the sum itself. Floating point adds what
    :func:`skdp.oracle.releases.moments.gram_rounding` proves.

    Parameters
    ----------
    row_norm : float
        From 1e-100 to 1e100; in the rows' own unit.
    target_unit : float or None, default=None
        None leaves the targets out.
    target_bound : float, default=inf
        Larger targets are cut to it.
    """

    row_norm: base.Bound
    target_unit: float | None = None
    target_bound: float = math.inf
    kind: ClassVar[str] = "gram"
    takes_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_unit is not None:
            base.store_positive(self, "target_unit")
        object.__setattr__(self, "target_bound", float(self.target_bound))
        if not self.target_bound > 0:
            raise ValueError(f"GramSum: target_bound must be positive; got {self.target_bound!r}.")

    @property
    def reads_targets(self) -> bool:
        return self.target_unit is not None

    def _columns(self, context: base.PublicContext) -> int:
        extra = 0 if self.target_unit is None else context.public.n_outputs
        return context.public.n_parameters + extra

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        columns = self._columns(context)
        slack = gram_rounding(context, n_rows, columns - context.public.n_features)
        bound, size = self.row_norm**2, columns * (columns + 1) // 2
        return base.Contribution.of_sum(bound, n_rows, slack, spread=ROOT_TWO, size=size)

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        arguments = self.row_norm, self.target_unit, self.target_bound
        return moments.pack(rows.total(moments.bounded_gram, *arguments))


def unpack_gram(answer: Array, size: int) -> Array:
    """Return the symmetric matrix that an answer to `GramSum` stands for.

    Its noise has the release's standard deviation on the diagonal, and that over sqrt(2) off it.

    Parameters
    ----------
    answer : array of shape (size * (size + 1) / 2,)
    size : int

    Returns
    -------
    array of shape (size, size)
    """
    return moments.unpack(answer, size)


@base.audited
@dataclass(frozen=True, eq=False)
class Coordinates(base.Checked):
    """Other coordinates of rows, ``T'z``, and how much rounding errors may grow in them.

    Parameters
    ----------
    matrix : array of shape (n_parameters, n_parameters)
        T: public, finite, not singular. A copy is kept.

    Attributes
    ----------
    condition, spread : float
        See :func:`skdp.oracle.kernels.second_moments.condition_numbers`.
    """

    matrix: base.Point = field(repr=False)
    condition: float = field(init=False)
    spread: float = field(init=False)

    @functools.cached_property
    def products(self) -> Array:
        """The products of the matrix's rows, ``T T'``."""
        return read_only(self.matrix @ self.matrix.T)

    def rounding(self, context: base.PublicContext, n_rows: int) -> float:
        """Return what rounding adds to a sum of gradients in the rows' own coordinates.

        Parameters
        ----------
        context : PublicContext
        n_rows : int

        Returns
        -------
        float
        """
        public = context.public
        sizes = public.n_features, public.n_parameters
        return moments.transform_rounding(
            self.condition, n_rows, *sizes, public.sparse, public.grouped
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.matrix.ndim != 2 or len(set(self.matrix.shape)) != 1:
            raise ValueError(f"Coordinates: T must be square; got shape {self.matrix.shape}.")
        condition, spread = moments.condition_numbers(self.matrix)
        object.__setattr__(self, "condition", condition)
        object.__setattr__(self, "spread", spread)
        if not self.condition < math.inf:
            raise ValueError("Coordinates: T is singular, up to rounding. Nothing was released.")


def is_logistic_of_labels(public: Public, problem: Problem) -> bool:
    """Return whether neighbours have the same rows, and a logistic loss with other labels.

    Parameters
    ----------
    public : Public
    problem : Problem

    Returns
    -------
    bool
    """
    return type(problem.loss) in (Logistic, Multinomial) and public.features_are_public


def capped_residuals_of(context: base.PublicContext, cap: float) -> tuple[float, float]:
    """Return the largest length of a record's capped residual, and the spread of two of them.

    Where labels alone differ, both residuals of a logistic loss are ``p - e`` with the same p, as
    the margins are the same, and e the unit vector of a class, or p - 1 and p: they are at most
    ``residual_bound`` B long, and at most B apart, 1 or sqrt(2). The factor of the row, at most 1,
    and the cap, a projection onto a ball, bring them no farther apart (a projection onto a convex
    set is nonexpansive). So they are ``min(2 cap, B)`` apart. In all other cases the triangle
    inequality says ``2 cap``.
    """
    bound = context.problem.loss.residual_bound
    if bound is None or not is_logistic_of_labels(context.public, context.problem):
        return cap, 2.0
    longest = min(cap, bound)
    return longest, min(2.0, bound / longest)


@base.audited
@dataclass(frozen=True, eq=False)
class ShrunkGradientSum(base.ParameterStatistic):
    """Sum of the records' gradients at ``point``, the rows shrunk and the residuals capped.

    In ``coordinates`` of a public matrix T, row z is ``u = T'z``. A record adds
    ``f u r``, with ``f = min(1, row_norm / |u|)`` and r its weighted residual, of L2 norm at most
    ``residual_bound``. Unlike clipping the gradient, shrinking the row is a weight that does not
    depend on the target: where the model holds, it does not move the minimum.

    With ``whole_records`` the residual is multiplied by f before it is capped, weights acting by
    their root on either factor: squared error shrinks the record with its target, as `GramSum`
    does. With a ``reach`` above 1 it is multiplied by ``min(1, reach f)`` instead: rows up to so
    many times as long as the bound keep it whole.

    Sensitivity: ``|f u| |r| <= row_norm * residual_bound``, over the matrix ``f u r'``;
    a null record adds 0; so zero-out moves the sum by at most that, replace-one by twice that, or
    less where labels alone differ, as :func:`capped_residuals_of` proves: ``f u`` is the same.
    T is fixed here, finite, and public, as whatever a solver names; it has a say in how much
    floating point may add, :func:`skdp.oracle.kernels.second_moments.transform_rounding`.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        In the rows' own coordinates; finite.
    row_norm : float
        From 1e-100 to 1e100, in the coordinates of T.
    residual_bound : float
        From 1e-100 to 1e100.
    coordinates : Coordinates, optional
        Those of T; the rows' own by default. The answer is in these coordinates.
    whole_records : bool, default=False
    reach : float, default=1.0
        From 1e-100 to 1e100.
    """

    point: base.Point = field(repr=False)
    row_norm: base.Bound
    residual_bound: base.Bound
    coordinates: Coordinates | None = field(default=None, repr=False)
    whole_records: base.Flag = False
    reach: base.Bound = 1.0
    kind: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coordinates is not None and type(self.coordinates) is not Coordinates:
            raise TypeError(
                f"ShrunkGradientSum: coordinates must be Coordinates; got {self.coordinates!r}."
            )

    def contribution(self, context: base.PublicContext, n_rows: int) -> base.Contribution:
        public = context.public
        slack = context.rounding(n_rows, public.n_outputs)
        if self.coordinates is not None:
            slack += self.coordinates.rounding(context, n_rows)
        longest, spread = capped_residuals_of(context, self.residual_bound)
        bound, size = self.row_norm * longest, math.prod(public.shape)
        # Rounding is twice that of one sum, whatever the distance of two contributions is.
        return base.Contribution.of_sum(bound, n_rows, slack * 2 / spread, spread, size=size)

    def total(self, rows: RepeatableSource, context: base.PublicContext) -> Array:
        base.require_shape(self, context, "point")
        n_parameters = context.public.n_parameters
        transform = None if self.coordinates is None else self.coordinates.matrix
        if transform is not None and len(transform) != n_parameters:
            raise ValueError(
                f"ShrunkGradientSum: coordinates must have {n_parameters} entries; got "
                f"{len(transform)}. Nothing was released for it."
            )
        at, kind = (context.problem.loss, self.point), (self.whole_records, self.reach)
        if self.coordinates is None or transform is None:
            arguments = *at, self.row_norm, self.residual_bound, *kind
            return np.asarray(rows.total(moments.shrunk_gradients, *arguments))
        products = self.coordinates.products if context.public.sparse else None
        shrinking = transform, self.row_norm, self.whole_records, products
        limits = rows.per_row(moments.shrinking_factors, *shrinking)
        capped = *at, self.residual_bound, *kind
        total = rows.total(moments.shrunk_gradients_in, *capped, rows=(limits,))
        return np.asarray(transform.T @ total)
