"""Sums of the rows' gradients: clipped, of shrunk rows, weighted, or along a direction."""

from __future__ import annotations

import numpy as np

from skdp.objective import Loss
from skdp.oracle import directional, kernels, moments
from skdp.oracle.rows.held import Array, HeldRows


class GradientSums(HeldRows):
    """Sums of gradients over rows."""

    __slots__ = ()

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

        return self._total(over)

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

        total = self._total(over)
        return total if transform is None else np.asarray(transform.T @ total)

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

        return self._total(over)

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

        return self._total(over)

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
