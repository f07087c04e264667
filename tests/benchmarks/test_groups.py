"""The benchmark of groups: panels, rivals, and what its table says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import groups
from skdp.accounting import Adjacency, GDPAccountant


@pytest.mark.parametrize("unequal", [False, True])
def test_panels_have_the_correlation_that_is_asked_for(unequal):
    panel = groups.simulated(10, 0.3, unequal, seed=0, n_groups=3000)
    sizes = np.bincount(panel.groups)
    assert sizes.mean() == pytest.approx(10, rel=0.05)
    assert (len(np.unique(sizes)) > 1) == unequal
    first = np.flatnonzero(np.diff(panel.groups, append=-1) == 0)  # rows whose next is of the group
    pairs = [np.corrcoef(panel.X[first, j], panel.X[first + 1, j])[0, 1] for j in range(8)]
    assert np.mean(pairs) == pytest.approx(0.3, abs=0.03)


def test_rows_of_a_group_are_drawn_at_random_and_no_more_than_asked_for():
    panel = groups.simulated(10, 0.0, True, seed=1, n_groups=200)
    rows = groups.first_rows(panel, 3, seed=0)
    assert len(np.unique(rows)) == len(rows)
    sizes, taken = np.bincount(panel.groups), np.bincount(panel.groups[rows])
    assert np.array_equal(taken, np.minimum(sizes, 3))
    assert not np.array_equal(np.sort(rows), np.sort(groups.first_rows(panel, 3, seed=1)))


def test_group_privacy_is_that_of_a_row_k_times():
    panel = groups.simulated(3, 0.0, False, seed=0, n_groups=300)
    rows, group = (fit(panel, 1.0, 0) for fit in (groups.of_rows, groups.group_privacy))
    assert (rows.privacy_.unit, group.privacy_.unit) == ("row", "row")
    mus = [
        GDPAccountant().mu(fitted.privacy_.event, Adjacency.ZERO_OUT) for fitted in (rows, group)
    ]
    assert mus[0] == pytest.approx(3 * mus[1], rel=1e-3)


def test_lines_and_what_they_say():
    better = {
        "average, then clip": [0.5, 0.6],
        "group privacy": [0.1, 0.21],
        "one row": [0.4, 0.65],
    }
    found = {name: np.array(values) for name, values in better.items()}
    facts = {"data": "simulated", "k": 3, "correlation": 0.3, "epsilon": 1.0}
    rows = list(groups.lines(facts, found))
    assert [row["behind"] for row in rows] == ["0.0000", "0.3950", "0.0250"]
    first, second = groups.report(rows)
    assert "better than group privacy, by 0.3950 +- 0.0050" in first
    assert "NOT beyond two standard errors better than one row" in second
