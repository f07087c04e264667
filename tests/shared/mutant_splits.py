"""Random splits that do not keep their promise, for tests that have to notice it."""

from dataclasses import replace

from skdp._oracle.sources.keyed_split import PartOfPartitions


def split_by_rows(monkeypatch):
    """Labels of groups are left out of account: rows of a group fall on both sides."""
    rows_of = PartOfPartitions.rows

    def by_rows(self, index, n_rows, codes):
        return rows_of(replace(self, sizes=[n_rows]), index, n_rows, None)

    monkeypatch.setattr(PartOfPartitions, "rows", by_rows)
