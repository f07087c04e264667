"""Second moments of the rows and residuals."""

from __future__ import annotations

import numpy as np

from skdp.objective import Loss
from skdp.oracle import gram, kernels, moments
from skdp.oracle.rows.held import Array, HeldRows


class SecondMoments(HeldRows):
    """Gram matrices, Hessians and sums of squares over rows."""

    __slots__ = ()

    def largest_gram_eigenvalue(self) -> float:
        """Largest eigenvalue of the sum of ``z z'`` over rows z, shrunk and with their constant."""
        return gram.largest_eigenvalue(gram.gram(self._X, self._shrink, self._intercept_size))

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

        return self._total(over)

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

        return self._total(over)

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

        return self._total(over)
