"""The private scaler as users of scikit-learn use it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import skdp


@pytest.fixture
def columns(rng):
    return rng.standard_normal((5000, 4)) * [1.0, 50.0, 1e-3, 5.0] + [0.0, 2000.0, 0.0, -90.0]


@pytest.mark.parametrize("parameters", [{}, {"bounds": (-3.0, 3.0)}], ids=str)
def test_scikit_learns_checks(parameters):
    failed = [
        result["check_name"]
        for result in check_estimator(skdp.DPStandardScaler(**parameters), on_fail=None)
        if result["status"] == "failed"
    ]
    assert failed == []


def test_columns_are_about_standard_afterwards(columns):
    scaler = skdp.DPStandardScaler(epsilon=3.0, random_state=0).fit(columns)
    scaled = scaler.transform(columns)
    assert (np.abs(scaled.mean(axis=0)) < 0.5).all()
    assert ((scaled.std(axis=0) > 0.5) & (scaled.std(axis=0) < 2)).all()
    np.testing.assert_allclose(scaler.inverse_transform(scaled)[:5], columns[:5], rtol=1e-6)
    assert 0.99 * 3 < scaler.privacy_.epsilon <= 3


def test_one_outlier_does_not_matter(columns):
    spoilt = columns.copy()
    spoilt[0] = 1e300
    one, other = (
        skdp.DPStandardScaler(epsilon=3.0, random_state=0).fit(X) for X in (columns, spoilt)
    )
    np.testing.assert_allclose(one.scale_, other.scale_, rtol=0.2)
    assert np.isfinite(other.transform(spoilt)).all()


def test_bounds_cost_nothing(columns):
    scaler = skdp.DPStandardScaler(bounds=(-5.0, [5.0, 3000.0, 1.0, 0.0])).fit(columns)
    assert (scaler.privacy_.epsilon, scaler.privacy_.releases) == (0.0, ())
    assert scaler.transform([[9.0, 9e9, 9.0, 9.0]])[0] == pytest.approx([math.sqrt(3)] * 4)


def test_sparse_stays_sparse(rng):
    X = sparse.random_array((3000, 5), density=0.3, format="csr", rng=rng, dtype=np.float32)
    scaler = skdp.DPStandardScaler(random_state=0).fit(X)
    scaled = scaler.transform(X)
    assert sparse.issparse(scaled)
    assert scaled.dtype == np.float32
    assert not scaler.mean_.any()
    np.testing.assert_array_equal(scaled.indices, X.indices)


def test_total_of_a_pipeline(columns):
    y = (columns[:, 0] > 0).astype(int)
    scaler = skdp.DPStandardScaler(epsilon=0.5)
    pipeline = make_pipeline(scaler, skdp.DPLogisticRegression(scaling="none", max_iter=5))
    pipeline.fit(columns, y)
    total = skdp.total_privacy(pipeline[0], pipeline[1], delta=1e-6)
    assert 1.0 < total.epsilon < 1.5
    assert make_pipeline(scaler, LogisticRegression()).fit(columns, y).score(columns, y) > 0.8


def test_a_budget_is_charged(columns):
    with skdp.PrivacyBudget(1.2, 1e-6) as budget:
        skdp.DPStandardScaler().fit(columns)
        with pytest.raises(skdp.PrivacyBudgetError):
            skdp.DPStandardScaler().fit(columns)
    assert budget.n_fits == 1
