"""Random splits that do not keep their promise, for tests that have to notice it."""

from dataclasses import replace

import numpy as np

from skdp.oracle.sources.keyed_split import PartOfPartitions


def overlap_by_one_row(monkeypatch):
    """A row of the first part lies in all others."""
    rows_of = PartOfPartitions.rows

    def overlapping(self, *given):
        rows = rows_of(self, *given)
        if 0 in self.numbers:
            return rows
        return np.concatenate([rows_of(replace(self, numbers=(0,)), *given)[:1], rows[1:]])

    monkeypatch.setattr(PartOfPartitions, "rows", overlapping)


def split_by_rows(monkeypatch):
    """Labels of groups are left out of account: rows of a group fall on both sides."""
    rows_of = PartOfPartitions.rows

    def by_rows(self, index, n_rows, codes):
        return rows_of(replace(self, sizes=[n_rows]), index, n_rows, None)

    monkeypatch.setattr(PartOfPartitions, "rows", by_rows)
