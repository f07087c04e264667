"""What public rows tell of columns: it costs nothing, and tells nothing of private ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from replays import HOSTILE_ROWS, data_for, differing, seeded
from skdp import PublicSample
from skdp._oracle.public import LONG_ROW
from skdp.accounting import Adjacency


def correlated(rng, n_rows):
    Z = rng.standard_normal((n_rows, 6)) + 2 * rng.standard_normal((n_rows, 1))
    X = 10.0 ** np.arange(-3, 3) * (Z + 50)
    return X, Z @ np.linspace(-1, 1, 6) + rng.standard_normal(n_rows)


def test_columns_are_those_of_the_sample(rng):
    X = 50 + 10.0 ** np.arange(-3, 3) * rng.uniform(-1, 1, (5000, 6))
    sample = PublicSample(X)
    found = sample.columns(centred=True)
    assert (np.abs(found.centre - X.mean(axis=0)) < 0.05 * X.std(axis=0)).all()
    np.testing.assert_allclose(found.scale, X.std(axis=0), rtol=0.05)
    assert (sample.columns(centred=False).centre == 0).all()
    Z = found.apply(X)
    assert np.linalg.norm(Z, axis=1).max() < LONG_ROW * np.sqrt(7)
    Z = np.column_stack([Z, np.ones(5000)])
    np.testing.assert_allclose(sample.second_moments(True).matrix, Z.T @ Z / 5000, atol=1e-12)


def test_it_costs_nothing_and_is_said(rng):
    X, y = correlated(rng, 3000)
    sample = PublicSample(X[:60], target=20.0)
    model = skdp.DPLinearRegression(scaling=sample)
    planned = model.plan(2940, 6)
    fitted = model.fit(X[60:], y[60:])
    assert fitted.privacy_.releases == planned.releases
    assert {record.kind for record in planned.releases} == {"gradient", "calibration"}
    assert sum("60 rows that were declared public" in text for text in planned.assumptions) == 1
    assert fitted.solver_.name == "whitened"
    np.testing.assert_array_equal(fitted.scaling_.columns.centre, sample.columns(True).centre)


def mean_score(X, y, **parameters):
    model = skdp.DPLinearRegression(privacy=seeded(), **parameters)
    fits = (clone(model).set_params(privacy__noise__seed=seed) for seed in range(5))
    return np.mean([fit.fit(X[100:3000], y[100:3000]).score(X[3000:], y[3000:]) for fit in fits])


@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_it_is_worth_more_than_it_takes(rng, epsilon):
    X, y = correlated(rng, 6000)
    with_sample = mean_score(X, y, epsilon=epsilon, scaling=PublicSample(X[:100]))
    assert with_sample > mean_score(X, y, epsilon=epsilon)


def test_it_holds_no_rows_and_is_cloned(rng):
    X, _ = correlated(rng, 2000)
    model = skdp.DPRidge(scaling=PublicSample(X))
    assert len(pickle.dumps(model)) < 10_000
    assert clone(model).scaling.n_rows == 2000
    assert "2000 rows" in repr(model.scaling)


def test_other_columns_are_refused(rng):
    pandas = pytest.importorskip("pandas")
    X, y = correlated(rng, 300)
    with pytest.raises(ValueError, match=r"sample has 5 columns, and X has 6.*Nothing"):
        skdp.DPRidge(scaling=PublicSample(X[:, :5])).fit(X, y)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = skdp.DPRidge(scaling=PublicSample(frame[:50]))
    model.fit(frame, y)
    with pytest.raises(ValueError, match=r"same order.*Nothing"):
        model.fit(frame[list("bacdef")], y)
    with pytest.raises(ValueError, match="Not in X: 'a'"):
        model.fit(frame.rename(columns={"a": "g"}), y)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_nothing_but_releases(replay, rng, adjacency):
    X, y = data_for("linear", rng)
    sample = PublicSample(rng.standard_normal((40, 4)))

    def model():
        terms = seeded(adjacency=str(adjacency))
        return skdp.DPRidge(scaling=sample, solver="whitened", privacy=terms)

    pairs = (differing(X, y, adjacency, 3, row, 1e12)[::-1] for row in HOSTILE_ROWS)
    replay.check_each(model, pairs, adjacency)
