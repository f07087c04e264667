"""What rows in memory offer to counts, to cuts, and to a pass that takes each row once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.objective import Loss
from skdp.oracle import counting
from skdp.oracle.noise import NoiseSource
from skdp.oracle.rows.divisions import Divisions

if TYPE_CHECKING:
    from skdp.oracle.rows.memory import MemoryRows

Array = NDArray[np.float64]

SQUARE_BITS = 20  # squared norms are rounded to this many bits, so that their sum is exact
AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Singles:
    """A few rows written out, for steps that take them one by one.

    Attributes
    ----------
    vectors : array of shape (n, n_parameters), float64
        Rows, scaled down to their bound, with the constant feature.
    targets : array, first axis n
    weights : array of shape (n,) or None
    limits : array of shape (n,)
        What a residual, times its weight, may be at most, for the gradient to be at most
        ``clip_norm`` long.
    """

    vectors: Array
    targets: NDArray[Any]
    weights: Array | None
    limits: Array


class Passing:
    """Mixin of :class:`skdp.oracle.rows.memory.MemoryRows`."""

    __slots__ = ("_block",)

    _X: Any
    _targets: NDArray[Any]
    _weights: Array | None
    _shrink: Array | None
    _inverse_norms: Array
    _intercept_size: float
    _divisions: Divisions
    _block: tuple[object, MemoryRows] | None

    def take(self, numbers: NDArray[np.int64]) -> MemoryRows:
        """Return the rows with these numbers, copied."""
        raise NotImplementedError

    @property
    def streamed(self) -> bool:
        """Whether rows come in an order of their own, and once only."""
        return False

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

    def cut_block(
        self, epoch: int, cuts: tuple[int, ...], index: int, source: NoiseSource
    ) -> MemoryRows:
        """Rows of one block of a division at ``cuts``; the block asked for last is kept."""
        key = epoch, cuts, index
        if self._block is None or self._block[0] != key:
            self._block = None  # before the next one is copied
            numbers = self._divisions.cut(epoch, cuts, index, source)
            self._block = key, self.take(numbers)
        return self._block[1]

    def one_pass(
        self, edges: Iterable[int], source: NoiseSource, in_order: bool
    ) -> Iterator[MemoryRows]:
        """Yield the rows between each two edges of a secret, uniformly random order.

        With ``in_order`` the rows of one block keep that order, too; else they are sorted by
        number, which is quicker to read.
        """
        order = source.permutation(self._X.shape[0])
        for start, stop in itertools.pairwise(edges):
            numbers = order[start:stop]
            yield self.take(numbers if in_order else np.sort(numbers))

    def singles(self, clip_norm: float) -> Singles:
        """Write the rows out, one by one."""
        X = self._X.toarray() if sparse.issparse(self._X) else self._X
        n_rows, n_features = X.shape
        vectors = np.empty((n_rows, n_features + bool(self._intercept_size)))
        vectors[:, :n_features] = X
        with np.errstate(over="ignore", under="ignore"):
            if self._shrink is not None:
                vectors[:, :n_features] *= self._shrink[:, None]
            if self._intercept_size:
                vectors[:, n_features] = self._intercept_size
            limits = np.minimum(clip_norm * self._inverse_norms, np.finfo(np.float64).max)
        return Singles(vectors, self._targets, self._weights, limits)
