"""Every statistic against hostile records: bounds, null records, layouts, groups, and mutants."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from benchmarks.releases import STATISTICS
from skdp._oracle import Public
from skdp._oracle.releases import base, gradients, histograms, moments, record_sums
from skdp._oracle.sources import row_blocks
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Groups, Records
from skdp.accounting import Adjacency
from skdp.objective import Logistic, Multinomial, Problem, SquaredError

N, D, ROW_BOUND, SIZE = 24, 4, 5.0, 2.5
LOSSES = {"logistic": Logistic(), "squared": SquaredError(), "three classes": Multinomial(3)}
# The joint release is for logistic losses; a shift is for one output.
ONLY = {
    moments.LogisticStep: ("logistic", "three classes"),
    moments.CappedHessian: ("logistic", "squared"),
    record_sums.DirectionalSum: ("logistic", "squared"),
    record_sums.CappedResiduals: ("logistic", "squared"),
}
# No record moves these by half of their bound at the points of `STATISTICS`, which differ by loss.
SLACK = {
    ("squared", record_sums.ResidualCount),
    ("three classes", record_sums.ResidualCount),
    ("three classes", gradients.GradientDifference),
    ("three classes", record_sums.TailSum),
}
OF_FACTS = histograms.TableCounts, record_sums.UnitSum, record_sums.InfluenceSquares  # always dense
CASES = [(kind, name) for kind in STATISTICS for name in ONLY.get(kind, LOSSES)]
cases = pytest.mark.parametrize(
    ("kind", "name"), CASES, ids=lambda one: one if isinstance(one, str) else one.__name__
)


def context_for(name, **facts):
    outputs = LOSSES[name].n_outputs or 1
    public = Public(N, D, outputs, Adjacency.REPLACE_ONE, 1.0, 1e-6, row_bound=ROW_BOUND)
    return base.PublicContext(replace(public, **facts), Problem(LOSSES[name]), 1.0)


def targets_of(name, numbers):
    """Valid targets made of any numbers."""
    if name == "three classes":
        return np.asarray(np.clip(np.abs(numbers), 0, 2), dtype=int)
    return np.asarray(numbers if name == "squared" else numbers > 0, dtype=float)[:, None]


def ordinary(name):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, D)) * rng.choice([0.3, 1, 10], (N, 1))
    return X, targets_of(name, 2 * rng.standard_normal(N)), np.ones(N)


def records_of(X, y, weights):
    with np.errstate(all="ignore"):
        return Records.of(X, y, weights, ROW_BOUND, SIZE)


def hostile():
    """Records with something for every mistake: (row, target, weight), null ones at the end."""
    rows = [np.zeros(D), np.ones(D), -np.ones(D), np.full(D, 1.7e308), np.full(D, 1e-310)]
    rows += [size * np.eye(D)[i] for i in range(2) for size in (3, -3, 1e300, -1e300)]
    rows.append(np.array([1e300, -1.0, 0.0, 5e-324]))
    for weight in (1.0, 0.3, 1e12, 0.0):
        for row in rows:
            for target in (0.0, 1.0, 2.0, -50.0, 1e300):
                yield row, target, weight


def totals(statistic, name, context, place=4):
    """The statistic of ordinary rows, with a hostile record in one place, for each of them."""
    X, y, w = ordinary(name)
    found = []
    for row, target, weight in hostile():
        X[place], y[place], w[place] = row, targets_of(name, np.array([target]))[0], weight
        found.append(statistic.total(MemorySource(records_of(X, y, w), ROW_BOUND), context))
    return np.reshape(found, (len(found), -1))


def moves(kind, name, context=None):
    """Largest distances from a null record and between two, over those that are declared."""
    context = context_for(name) if context is None else context
    statistic = STATISTICS[kind](np.zeros(context.public.shape))
    declared = statistic.contribution(context, N)
    order = getattr(statistic, "order", 2)
    found = totals(statistic, name, context)
    assert np.isfinite(found).all()
    assert found.shape[1] == declared.size
    away = np.linalg.norm(found - found[-1], ord=order, axis=1).max() / declared.bound
    apart = pdist(found, "minkowski", p=order).max() / declared.bound / declared.spread
    return away, apart, found


@cases
def test_no_record_moves_a_statistic_by_more_than_its_bound(kind, name):
    away, apart, found = moves(kind, name)
    assert max(away, apart) <= 1
    # Half of the sensitivity is found, so that no declared bound is twice too large.
    assert max(away, apart) > 0.5 or (name, kind) in SLACK
    # A null record adds nothing, whatever else it contains.
    null = [weight == 0 for _, _, weight in hostile()]
    assert (found[null] == found[-1]).all()


@pytest.mark.parametrize(
    "kind", [histograms.MagnitudeCounts, histograms.BinCounts, moments.GramSum]
)
def test_bounds_in_l1_norm(kind, monkeypatch):
    """Those of sums with Laplace noise, of rows and of groups."""
    usual = STATISTICS[kind]
    monkeypatch.setitem(STATISTICS, kind, lambda at: replace(usual(at), order=1))
    away, apart, _ = moves(kind, "squared")
    assert 0.5 < max(away, apart) <= 1
    test_no_group_moves_a_statistic_by_more_than_its_bound(kind, "squared")


@cases
def test_layouts_parts_and_threads_agree(kind, name, monkeypatch):
    context, (X, y, w) = context_for(name), ordinary(name)
    X[np.random.default_rng(0).random(X.shape) < 0.4] = 0.0
    X, w[3] = np.float32(X).astype(float), 0.0
    statistic = STATISTICS[kind](np.zeros(context.public.shape))
    whole = statistic.total(MemorySource(records_of(X, y, w), ROW_BOUND), context)
    assert whole.shape == statistic.shape(context)
    for convert in (np.float32,) if kind in OF_FACTS else (np.float32, sparse.csr_array):
        rows = MemorySource(records_of(convert(X), y, w), ROW_BOUND)
        other = statistic.total(rows, context_for(name, sparse=convert is sparse.csr_array))
        np.testing.assert_allclose(other, whole, rtol=1e-6, atol=1e-6)
    monkeypatch.setattr(row_blocks, "PART_BYTES", 5 * D * 8)
    with ThreadPoolExecutor(2) as pool:
        found = [
            statistic.total(MemorySource(records_of(X, y, w), ROW_BOUND, spread), context)
            for spread in (map, pool.map)
        ]
    assert (found[0] == found[1]).all()
    np.testing.assert_allclose(found[0], whole, rtol=1e-12, atol=1e-12)


@cases
def test_no_group_moves_a_statistic_by_more_than_its_bound(kind, name):
    """Groups of one row are like rows; a group of many hostile rows moves it no farther."""
    context = context_for(name, unit="group")
    statistic = STATISTICS[kind](np.zeros(context.public.shape))
    assert statistic.takes_groups
    X, y, w = ordinary(name)
    alone = statistic.total(MemorySource(records_of(X, y, w), ROW_BOUND), context_for(name))
    found = [statistic.total(grouped(X, y, w, np.arange(N)), context)]
    np.testing.assert_allclose(found[0], alone, rtol=1e-9, atol=1e-7)
    for some in (slice(0, 1), slice(0, 60), slice(1, None, 7), slice(-50, None)):
        rows, targets, weights = zip(*list(hostile())[some], strict=True)
        found.append(
            statistic.total(
                grouped(
                    np.vstack([np.delete(X, 4, axis=0), rows]),
                    np.concatenate([np.delete(y, 4, axis=0), targets_of(name, np.array(targets))]),
                    np.append(np.delete(w, 4), weights),
                    np.append(np.delete(np.arange(N), 4), np.full(len(rows), 4)),
                ),
                context,
            )
        )
    declared = statistic.contribution(context, N)
    far = pdist(np.reshape(found, (len(found), -1)), "minkowski", p=getattr(statistic, "order", 2))
    assert far.max() <= declared.bound * declared.spread


def grouped(X, y, w, codes):
    return MemorySource(records_of(X, y, w), ROW_BOUND, groups=Groups.of(codes, N))


def test_every_statistic_is_in_the_table():
    audited = {cls for cls in base._AUDITED if issubclass(cls, base.Statistic)}
    assert audited == set(STATISTICS)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_sums_of_few_numbers_are_exact(scale, rng):
    """On the grid, in whatever order; and up to it they are the sums of the numbers."""
    context = context_for("squared")
    X, y = rng.standard_normal((N, D)), scale * rng.standard_normal((N, 1))
    statistic = record_sums.CappedResiduals(np.zeros((D + 1, 1)), scale)
    found = {
        float(statistic.total(MemorySource(records_of(X[order], y[order], None)), context)[0])
        for order in (rng.permutation(N) for _ in range(20))
    }
    (found,) = found
    assert found == pytest.approx(np.clip(-y, -scale, scale).sum(), abs=N * scale * 2.0**-44)


# ---------------------------------------------------------------------- mutants of the sums
