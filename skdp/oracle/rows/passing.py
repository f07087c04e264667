"""Rows taken block by block, or one by one: divisions, a pass that takes each row once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.oracle.noise import NoiseSource
from skdp.oracle.rows.held import HeldRows
from skdp.oracle.rows.records import Records, Singles


class Passing(HeldRows):
    """Blocks of rows, and rows that are written out."""

    __slots__ = ()

    @property
    def streamed(self) -> bool:
        """Whether rows come in an order of their own, and once only."""
        return False

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

    def cut_block(self, epoch: int, cuts: tuple[int, ...], index: int, source: NoiseSource) -> Self:
        """Rows of one block of a division at ``cuts``; the block asked for last is kept."""
        key = epoch, cuts, index
        if self._block is None or self._block[0] != key:
            self._block = None  # before the next one is copied
            numbers = self._divisions.cut(epoch, cuts, index, source)
            self._block = key, self.take(numbers)
        return self._block[1]

    def one_pass(self, edges: Iterable[int], source: NoiseSource, in_order: bool) -> Iterator[Self]:
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
