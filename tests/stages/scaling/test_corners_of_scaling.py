"""Shares, bounds and predictions of the scaling where units, types and adjacencies differ."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skdp
from skdp._oracle import Oracle, Public
from skdp._oracle.oracle import AdmitAll, Ledger
from skdp._oracle.releases.base import NotAudited, PublicContext
from skdp._oracle.releases.histograms import BinCounts, MagnitudeCounts
from skdp._oracle.sources.column_map import Columns, Scaling
from skdp._oracle.sources.memory import MemorySource
from skdp._stages.scaling import distributions, estimates
from skdp._stages.scaling.shares import scaling_budget
from skdp.accounting import Adjacency, Gaussian, gaussian_mu
from skdp.objective import Problem, SquaredError

HISTOGRAMS = ("magnitudes", "histograms")


def test_how_many_columns_are_looked_at_together_does_not_show(monkeypatch, rng):
    std, n_rows = np.full(100, 15.0), 1000
    counts = rng.multinomial(n_rows, rng.dirichlet(np.full(81, 0.1), 100)) + rng.normal(0, 15, 81)
    bins = rng.multinomial(n_rows, rng.dirichlet(np.full(16, 0.3), 100)) + rng.normal(0, 15, 16)
    noise = std / n_rows
    seen = distributions.Histogram(counts / n_rows, noise)
    found = []
    for at_once in (100, 33):
        monkeypatch.setattr(distributions, "MAX_COLUMNS", at_once)
        ranges = estimates.coarse_ranges(seen, False, pooled=False)
        of_bins = distributions.Bins(bins / n_rows, noise, ranges)
        read = estimates.estimate(seen, of_bins, is_features=False)
        found.append([ranges.low, ranges.high, read.low, read.high, read.centre, read.scale])
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-6)


def test_the_share_does_not_depend_on_the_adjacency():
    """Of mu squared: a histogram's spread under replace-one is smaller than a gradient's."""
    found = []
    for adjacency in Adjacency:
        model = skdp.DPLogisticRegression(
            classes=[0, 1], privacy=skdp.Privacy(adjacency=str(adjacency)), solver="gd"
        )
        squares = {True: 0.0, False: 0.0}
        for record in model.plan(100_000, 10).releases:
            for event, count in record.event.flattened():
                assert isinstance(event, Gaussian)
                squares[record.kind in HISTOGRAMS] += (
                    record.count * count * event.mu(adjacency) ** 2
                )
        found.append(squares[True] / (squares[True] + squares[False]))
    assert found == pytest.approx([0.2, 0.2], rel=0.05)


def test_the_noise_on_counts_is_as_announced():
    for adjacency in Adjacency:
        public = Public(3000, 10, 1, adjacency, 1.0, 1e-6)
        model = skdp.DPRidge(privacy=skdp.Privacy(adjacency=str(adjacency)), scaling="private")
        asked = scaling_budget(public, True, True, insist=True)
        magnitudes = [one for one in model.plan(3000, 10).releases if one.kind == "magnitudes"]
        for release, kind in zip(magnitudes, asked, strict=True):
            std = release.noise_multiplier * math.sqrt(kind.n_columns)
            assert std / 3000 == pytest.approx(kind.noise, rel=0.01)


@pytest.mark.parametrize("kind", ["magnitudes", "bins"])
def test_every_column_counts_in_the_bound(rng, kind):
    """No neighbour moves the sum farther than declared, and the worst one just so far."""
    X, y = rng.standard_normal((6, 2)), rng.standard_normal((6, 1))
    context = PublicContext(
        Public(6, 2, 1, Adjacency.REPLACE_ONE, 1.0, 1e-6), Problem(SquaredError()), 1.0
    )
    statistic = MagnitudeCounts(True, True)
    if kind == "bins":
        statistic = BinCounts(True, True, np.full(3, -2.0), np.full(3, 0.5), 8)
    found = statistic.contribution(context, 6)
    replaced, target, out = X.copy(), y.copy(), np.ones(6)
    replaced[2], target[2], out[2] = 100.0, 100.0, 0.0
    total = statistic.total(MemorySource.of(X, y, np.ones(6)), context)
    other = statistic.total(MemorySource.of(replaced, target, np.ones(6)), context)
    less = statistic.total(MemorySource.of(X, y, out), context)
    assert np.linalg.norm(total - less) <= found.bound
    assert np.linalg.norm(total - less) == pytest.approx(found.bound, rel=1e-12)
    assert np.linalg.norm(total - other) <= found.bound * found.spread
    assert np.linalg.norm(total - other) == pytest.approx(found.bound * found.spread, rel=1e-12)


@pytest.fixture
def raw(rng):
    X = rng.standard_normal((3000, 3)) * [1.0, 50.0, 1.0] + [0.0, 2000.0, 0.0]
    return X, X[:, 0] + 0.1 * X[:, 1] + rng.standard_normal(3000)


def test_predictions_for_sparse_records_after_a_dense_fit(raw):
    X, y = raw
    model = skdp.DPRidge(
        epsilon=3.0,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
    ).fit(X, y)
    assert model.scaling_.columns.centre.any()
    np.testing.assert_allclose(model.predict(sparse.csr_array(X)), model.predict(X), rtol=1e-9)


def test_predictions_for_entries_given_in_parts(raw):
    X, y = raw
    model = skdp.DPRidge(
        epsilon=3.0,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
    ).fit(sparse.csr_array(X), y)
    parts = sparse.csr_array(([9e4, -8.8e4, 2.0], [1, 1, 0], [0, 3]), shape=(1, 3))
    np.testing.assert_allclose(model.predict(parts), model.predict(parts.toarray()), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_record_leaves_the_range_of_its_type(dtype):
    largest = float(np.finfo(dtype).max)
    for low, high in ((-largest, 1e39), (-1e39, largest), (-1e300, -1e39), (-largest, 1.0)):
        middle = low / 2 + high / 2
        columns = Columns([low], [high], [middle], [(high / 2 - low / 2) / math.sqrt(3)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scaled = columns.apply(np.array([[-largest], [0.0], [largest]], dtype=dtype))
        assert np.isfinite(scaled).all()


def test_records_are_mapped_by_no_other_code(rng):
    class Hostile(Columns):
        def apply(self, X, spread=map):
            return X - X.mean(axis=0)

    context = PublicContext(
        Public(6, 2, 1, Adjacency.ZERO_OUT, 1.0, 1e-6), Problem(SquaredError()), 1.0
    )
    oracle = Oracle(context, Ledger(AdmitAll()), rng)
    with pytest.raises(NotAudited):
        oracle.standardise(Scaling(Hostile([0.0], [1.0], [0.0], [1.0])))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_but_releases_leaves_the_scaler(replay, rng, dtype):
    X = (rng.standard_normal((60, 3)) * [1.0, 100.0, 1e-3] + [0.0, 2000.0, 0.0]).astype(dtype)
    largest = np.finfo(dtype).max
    for row in (0.0, -0.0, largest, -largest, np.finfo(dtype).smallest_subnormal, [4, -4, 2e3]):
        Z = X.copy()
        Z[5] = row
        for convert in (np.asarray, sparse.csr_array):
            replay.check(
                lambda: skdp.DPStandardScaler(
                    privacy=skdp.Privacy(adjacency="replace_one", noise=skdp.SeededNoise(0)),
                ),
                (convert(X),),
                (convert(Z),),
                Adjacency.REPLACE_ONE,
            )


def test_cross_validation_counts_the_scaler(raw):
    X, _ = raw
    parts = {"epsilon": 1.0, "delta": 1e-6}
    model = skdp.DPRidge(scaling="none", max_iter=3, **parts)
    pipeline = make_pipeline(skdp.DPStandardScaler(**parts), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both, alone = (
            skdp.privacy_of(
                GridSearchCV(it, {}, cv=3, refit=False),
                n_samples=len(X),
                n_features=X.shape[1],
            )
            for it in (pipeline, model)
        )
    assert sum("DPStandardScaler" in said for said in both.assumptions) == 0
    mu = [gaussian_mu(found.epsilon, found.delta) for found in (both, alone)]
    assert mu[0] == pytest.approx(math.sqrt(2) * mu[1], rel=1e-3)


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("make", [skdp.DPRidge, skdp.DPLogisticRegression])
def test_a_solver_with_a_filter_has_its_share_left_without_noise(make, adjacency, rng):
    X = rng.standard_normal((400, 3)) * [1, 10, 0.1] + [0, 5, 1]
    y = X[:, 0] + rng.standard_normal(400) > 0
    privacy = skdp.Privacy(adjacency=str(adjacency))
    model = make(solver="residual_budget", epsilon=math.inf, privacy=privacy)
    assert model.fit(X, y).n_iter_ == model.solver_.max_iter


@pytest.mark.parametrize("offset", [4.0, -4.0])
def test_columns_far_from_0_are_centred_though_their_counts_nearly_drown(rng, offset):
    Z = rng.standard_normal((1000, 5))
    X, y = 5 * (Z + offset), Z @ np.array([1.0, -1.0, 0.5, 0.0, 0.5])
    settings = {
        "epsilon": 0.3,
        "privacy": skdp.Privacy(noise=skdp.SeededNoise(0)),
    }
    model = skdp.DPLinearRegression(**settings).fit(X, y)
    columns = model.scaling_.columns
    # A size around 0 would be four times as large.
    assert np.median(columns.centre) == pytest.approx(5 * offset, abs=5.0)
    assert np.median(columns.scale) == pytest.approx(5.0, rel=0.4)
