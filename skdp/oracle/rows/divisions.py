"""Divisions of the row numbers into disjoint blocks, drawn once and remembered in secret."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdp.oracle.noise import NoiseSource

Numbers = NDArray[np.int64]


class Divisions:
    """Row numbers in the order of their blocks, for each division that was asked for.

    Only the latest epoch of a kind is kept: memory stays that of one division, and going back to an
    earlier epoch is refused, as a new draw for it would put records in two blocks of one division.
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._latest: dict[tuple[str, object], tuple[int, Numbers, Numbers]] = {}

    def shuffled(self, epoch: int, n_blocks: int, index: int, source: NoiseSource) -> Numbers:
        """Row numbers of one of ``n_blocks`` blocks of equal size, up to one."""
        order, edges = self._division("shuffled", epoch, n_blocks, source)
        return np.sort(order[edges[index] : edges[index + 1]])

    def allocated(self, epoch: int, n_bins: int, index: int, source: NoiseSource) -> Numbers:
        """Row numbers of one of ``n_bins`` bins that every row picked for itself."""
        order, edges = self._division("allocated", epoch, n_bins, source)
        return np.sort(order[edges[index] : edges[index + 1]])

    def cut(self, epoch: int, cuts: tuple[int, ...], index: int, source: NoiseSource) -> Numbers:
        """Row numbers of a block ``[cuts[index], cuts[index + 1])`` of the shuffled rows."""
        order, edges = self._division("cut", epoch, cuts, source)
        return np.sort(order[edges[index] : edges[index + 1]])

    def _division(
        self, kind: str, epoch: int, blocks: int | tuple[int, ...], source: NoiseSource
    ) -> tuple[Numbers, Numbers]:
        latest, order, edges = self._latest.get((kind, blocks), (None, None, None))
        if latest is not None and epoch < latest:
            raise ValueError(
                f"blocks of epoch {epoch} were asked for after those of epoch {latest}; a division "
                "is drawn once and not kept."
            )
        if latest != epoch or order is None or edges is None:
            if isinstance(blocks, tuple):
                order, edges = source.permutation(self._n_rows), np.array(blocks)
            elif kind == "shuffled":
                order = source.permutation(self._n_rows)
                edges = np.array([self._n_rows * i // blocks for i in range(blocks + 1)])
            else:
                bins = source.integers(blocks, self._n_rows)
                order = np.argsort(bins, kind="stable")
                edges = np.searchsorted(bins[order], np.arange(blocks + 1))
            self._latest[kind, blocks] = epoch, order, edges
        return order, edges
