"""Counts over the rows, exact in floating point."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.objective import Loss
from skdp.oracle import counting, histograms, kernels
from skdp.oracle.rows.held import Array, HeldRows

SQUARE_BITS = 20  # squared norms are rounded to this many bits, so that their sum is exact
AT_ONCE = 1 << 16


class Counts(HeldRows):
    """Counts over rows, and sums that are as exact."""

    __slots__ = ()

    def count_residuals(self, loss: Loss, point: Array, limit: float) -> int:
        """Count the rows whose weighted residual is at most ``limit`` long."""
        return self._count(loss, point, limit)

    def count_gradients(self, loss: Loss, point: Array, limit: float) -> int:
        """Count the rows whose weighted gradient is at most ``limit`` long."""
        with np.errstate(over="ignore", under="ignore"):
            return self._count(loss, point, limit * self._inverse_norms)

    def _count(self, loss: Loss, point: Array, limits: Array | float) -> int:
        return counting.count_within(
            self._X,
            self._targets,
            self._weights,
            self._shrink,
            self._intercept_size,
            loss,
            point,
            limits,
        )

    def sum_squared_norms(self, limit: float) -> float:
        """Sum of ``min(1, (norm / limit)**2)``, each rounded to a multiple of 2**-20.

        Rows of weight 0 are null records and add 0.
        """
        unit = 2.0**SQUARE_BITS
        total = 0.0
        for start in range(0, self._X.shape[0], AT_ONCE):
            with np.errstate(divide="ignore", over="ignore", under="ignore"):
                norms = 1.0 / self._inverse_norms[start : start + AT_ONCE]
                shares = np.minimum(1.0, (norms / limit) ** 2)
            if self._weights is not None:
                shares[self._weights[start : start + AT_ONCE] == 0] = 0.0
            total += float(np.rint(unit * shares).sum())
        return total / unit

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
