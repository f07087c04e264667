"""Raw columns in: the scaling inside the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

import skdp
from replays import seeded


@pytest.fixture
def raw(rng):
    Z = rng.standard_normal((6000, 4))
    y = Z @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.standard_normal(6000)
    return Z * [1.0, 300.0, 1e-4, 9.0] + [0.0, 5000.0, 0.0, 50.0], 1e4 * y - 3e5


def test_raw_columns_and_targets(raw):
    X, y = raw
    best = LinearRegression().fit(X, y).score(X, y)
    model = skdp.DPLinearRegression(privacy=seeded(0)).fit(X, y)
    assert model.score(X, y) > best - 0.02
    inside = X[(np.abs(X - X.mean(axis=0)) < 2 * X.std(axis=0)).all(axis=1)]
    np.testing.assert_allclose(
        inside @ model.coef_ + model.intercept_, model.predict(inside), rtol=1e-9
    )


def test_units_do_not_matter(raw):
    """Powers of 4 shift every bin by a whole number: the same fit in other units."""
    X, y = raw
    one = skdp.DPRidge(privacy=seeded(0), scaling="private").fit(X, y)
    plain = skdp.DPRidge(privacy=seeded(1), scaling="private").fit(X * 4.0, y * 16.0)
    assert plain.score(X * 4.0, y * 16.0) == pytest.approx(one.score(X, y), abs=0.01)


def test_auto_leaves_alone_what_is_declared(regression):
    X, y = regression
    assert skdp.DPRidge(scaling=skdp.RowNorm(3.0)).fit(X, y).scaling_ is None
    assert skdp.DPRidge(constraint=skdp.objective.L2Ball()).fit(X, y).scaling_ is None
    assert skdp.DPRidge(scaling="none").fit(X, y).scaling_ is None
    assert skdp.DPRidge(scaling="private").fit(X, y).scaling_.columns is not None


def test_declared_bounds_are_free(raw):
    X, y = raw
    ranges = skdp.PublicRange([-4.0, 3000.0, -1e-3, 0.0], [4.0, 7000.0, 1e-3, 100.0], target=5e5)
    model = skdp.DPRidge(scaling=ranges, privacy=seeded(0)).fit(X, y)
    assert [record.kind for record in model.privacy_.releases][:2] == ["gram", "gradient"]
    assert any("Ranges of columns were chosen" in text for text in model.privacy_.assumptions)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scaling": "private", "constraint": skdp.objective.L2Ball()}, "Set one of the two"),
        ({"scaling": skdp.PublicRange(0, [1.0, 2.0])}, "2 .* for 5 columns"),
    ],
)
def test_refusals(regression, parameters, message):
    with pytest.raises(ValueError, match=message):
        skdp.DPRidge(**parameters).fit(*regression)


def test_sparse_columns_are_scaled_as_dense_ones_are(rng):
    X = sparse.csr_array(sparse.random(4000, 5, density=0.4, random_state=rng))
    y = X @ np.arange(5.0)
    model = skdp.DPRidge(privacy=seeded(0), scaling="private").fit(X, y)
    assert model.score(X, y) > 0.8
    found = model.scaling_.columns
    dense = model.fit(X.toarray(), y).scaling_.columns
    for name, values in vars(found).items():
        np.testing.assert_array_equal(values, getattr(dense, name))


def test_predictions_follow_coefficients(raw):
    X, y = raw
    model = skdp.DPRidge(privacy=seeded(0)).fit(X, y)
    model.coef_[:] = 0.0
    in_range = np.clip(model.intercept_, *model.prediction_range_)
    np.testing.assert_array_equal(model.predict(X[:3]), np.full(3, in_range))
    np.testing.assert_array_equal(model.to_sklearn().predict(X[:3]), np.full(3, model.intercept_))
