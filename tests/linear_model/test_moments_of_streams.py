"""Moments of a stream: one release a block, of rows that pass by, and the default solver."""

from __future__ import annotations

import math

import numpy as np
import pytest

import skdp
from replays import seeded
from skdp._oracle import Public
from skdp._oracle.sources import stream
from skdp._oracle.sources.base import STREAMED
from skdp.accounting import Adjacency, Composed, Gaussian, OnBlock, Partition, calibrate, price
from skdp.objective import Logistic, Problem, SquaredError
from skdp.solvers import BoostedSufficientStatistics, Whitened
from skdp.solvers.auto import automatic_solver
from streams import data, in_blocks, linear


def test_without_noise_it_is_least_squares():
    X, y = data(3000)
    model = linear(Whitened(), epsilon=math.inf)
    with pytest.warns(UserWarning, match="no noise"):
        model.fit_blocks(in_blocks(X, y, 300), n_samples=3000, n_features=4)
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(3000)]), y)[0]
    # A last step on an eighth of the rows is as good as these rows.
    np.testing.assert_allclose([*model.coef_, model.intercept_], exact, atol=0.02)


def test_rows_that_pass_by_are_those_that_are_held(monkeypatch):
    """The same answers, whether a block is held or summed up piece by piece."""
    X, y = data(6000)

    def fit(**counts):
        model = linear(Whitened(), epsilon=3.0)
        return model.fit_blocks(in_blocks(X, y, 700), n_features=4, **counts).coef_

    held = fit(n_samples=6000)
    monkeypatch.setattr(stream, "part_rows", lambda *shape, **more: 10)
    passed = fit(n_samples=6000)
    np.testing.assert_allclose(held, passed, rtol=1e-9)


def test_each_release_has_its_block():
    """With less rows of their own, they have the noise of a single release."""
    X, y = data(2000)
    model = skdp.DPRidge(solver="whitened", privacy=seeded(), scaling="none", epsilon=1.0)
    model.fit_blocks(in_blocks(X, y, 500), n_samples=2000, n_features=4)
    releases = model.privacy_.releases
    assert [release.count for release in releases] == [1, 1, 1, 1, 1]
    assert {release.kind for release in releases} == {"gram", "gradient"}
    alone = calibrate(Gaussian(1.0), 1.0, 1e-6, Adjacency.ZERO_OUT).scale
    gram = next(release for release in releases if release.kind == "gram")
    assert gram.noise_multiplier == pytest.approx(alone, rel=1e-6)


def test_what_reads_rows_again_is_refused():
    def untouched():
        raise AssertionError("a block was requested")
        yield

    with pytest.raises(ValueError, match=r"read once|more than once"):
        linear(BoostedSufficientStatistics()).fit_blocks(untouched(), n_samples=100, n_features=4)
    with pytest.raises(ValueError, match="less than the number of rows"):
        linear(Whitened(max_iter=9)).fit_blocks(untouched(), n_samples=9, n_features=4)


def test_the_solver_follows_from_public_facts():
    def chosen(n_rows, n_features, loss=None, **facts):
        terms = n_features, 1, Adjacency.ZERO_OUT, 1.0, 1e-6
        public = Public(n_rows, *terms, provides=STREAMED, **facts)
        return automatic_solver(public, Problem(loss or SquaredError()))

    assert chosen(10_000, 10) == chosen(10_000, 10, Logistic()) == "whitened"
    assert chosen(50, 10) == chosen(10**6, 1001) == "adaptive_shuffled_sgd"
    assert chosen(10_000, 10, weighted=True) == "adaptive_shuffled_sgd"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    X, y = data(8000)
    labels = np.digitize(y, [0.4, 1.5][: n_classes - 1])
    model = skdp.DPLogisticRegression(
        classes=range(n_classes), solver="whitened", privacy=seeded(), epsilon=3.0
    )
    model.fit_blocks(in_blocks(X, labels, 999), n_samples=8000, n_features=4)
    assert model.score(X, labels) > 0.8


def test_a_stream_continues():
    """Rows of a later month start from the last model; a row pays for its own month."""
    months, model, scores, statements = 4, None, [], []
    test_X, test_y = data(2000, seed=99)
    for month in range(months):
        X, y = data(600, seed=month)
        start = {} if month == 0 else {"coef_init": model.coef_, "intercept_init": model.intercept_}
        model = skdp.DPRidge(privacy=seeded(month), epsilon=0.15, scaling="none")
        model.fit_blocks(in_blocks(X, y, 200), n_samples=600, n_features=4, **start)
        scores.append(model.score(test_X, test_y))
        statements.append(model.privacy_)
    assert scores[-1] > scores[0]
    division = Partition(0, months, shared="months")
    releases = [
        (OnBlock(division, month, release.event), release.count)
        for month, one in enumerate(statements)
        for release in one.releases
    ]
    epsilon, _ = price(Composed(tuple(releases)), 1e-6, Adjacency.ZERO_OUT)
    assert epsilon == pytest.approx(statements[0].epsilon, rel=1e-6)
    # Not so if the rows were the same.
    with pytest.warns(skdp.PrivacyWarning, match="seeded noise"):
        assert skdp.total_privacy(statements).epsilon > 1.5 * epsilon
    assert any("coef_init" in text for text in statements[-1].assumptions)
