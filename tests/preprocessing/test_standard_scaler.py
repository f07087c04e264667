"""The private scaler as users of scikit-learn use it."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import skdp

SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))


@pytest.fixture
def columns(rng):
    return rng.standard_normal((5000, 4)) * [1.0, 50.0, 1e-3, 5.0] + [0.0, 2000.0, 0.0, -90.0]


@pytest.mark.parametrize(
    ("parameters", "noise"),
    [({}, {}), ({}, {"privacy": SEEDED}), ({"scaling": skdp.PublicRange(-3.0, 3.0)}, {})],
    ids=str,
)
def test_scikit_learns_checks(parameters, noise):
    failed = {
        result["check_name"]
        for result in check_estimator(
            skdp.DPStandardScaler(**parameters, **noise), on_skip=None, on_fail=None
        )
        if result["status"] == "failed"
    }
    # Two fits with secure noise differ, unless there is no noise.
    expected = set() if noise or parameters else {"check_fit_idempotent"}
    assert failed == expected


def test_columns_are_about_standard_afterwards(columns):
    scaler = skdp.DPStandardScaler(epsilon=3.0, privacy=SEEDED).fit(columns)
    scaled = scaler.transform(columns)
    assert (np.abs(scaled.mean(axis=0)) < 0.5).all()
    assert ((scaled.std(axis=0) > 0.5) & (scaled.std(axis=0) < 2)).all()
    back = scaled[:5] * scaler.scale_ + scaler.mean_
    np.testing.assert_allclose(back, columns[:5], rtol=1e-6)
    assert 0.99 * 3 < scaler.privacy_.epsilon <= 3


def test_bounds_cost_nothing(columns):
    scaler = skdp.DPStandardScaler(scaling=skdp.PublicRange(-5.0, [5.0, 3000.0, 1.0, 0.0])).fit(
        columns
    )
    statement = scaler.privacy_
    assert (statement.epsilon, statement.delta, statement.releases) == (0.0, 0.0, ())
    assert scaler.transform([[9.0, 9e9, 9.0, 9.0]])[0] == pytest.approx([math.sqrt(3)] * 4)


def test_sparse_stays_sparse(rng):
    X = sparse.csr_array(sparse.random(3000, 5, density=0.3, random_state=rng, dtype=np.float32))
    scaler = skdp.DPStandardScaler(privacy=SEEDED).fit(X)
    scaled = scaler.transform(X)
    assert sparse.issparse(scaled)
    assert scaled.dtype == np.float32
    assert not scaler.mean_.any()
    np.testing.assert_array_equal(scaled.indices, X.indices)


def test_total_of_a_pipeline(columns):
    y = (columns[:, 0] > 0).astype(int)
    scaler = skdp.DPStandardScaler(epsilon=0.5)
    pipeline = make_pipeline(
        scaler, skdp.DPLogisticRegression(classes=[0, 1], scaling="none", max_iter=5)
    )
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


@pytest.mark.parametrize("cell", ["secret", 5 + 7j], ids=str)
def test_refusals_quote_no_cell(columns, cell):
    spoilt = columns[:50].astype(object if isinstance(cell, str) else complex)
    spoilt[3, 1] = cell
    with pytest.raises(ValueError, match="Nothing was released") as refusal:
        skdp.DPStandardScaler().fit(spoilt)
    assert "secret" not in str(refusal.value)
    assert "5." not in str(refusal.value)


def test_a_worker_does_not_escape_an_open_budget(tmp_path):
    with skdp.PrivacyBudget(1.2, 1e-6):
        blob = pickle.dumps(skdp.DPStandardScaler())
        assert skdp.DPStandardScaler().fit(np.eye(3)).privacy_.epsilon > 0
    path = tmp_path / "scaler"
    path.write_bytes(blob)
    lines = "import pickle, pathlib, sys; scaler = pickle.loads(pathlib.Path(sys.argv[1])"
    lines += ".read_bytes()); scaler.fit([[1.0], [2.0]])"
    worker = subprocess.run(
        [sys.executable, "-c", lines, path], capture_output=True, text=True, check=False
    )
    assert "PrivacyBudgetError" in worker.stderr


@pytest.mark.parametrize("n_rows", [300, 5000])
def test_the_plan_is_what_fit_releases(columns, n_rows):
    scaler = skdp.DPStandardScaler(epsilon=0.7, privacy=SEEDED)
    planned = scaler.plan(n_rows, 4)
    assert not hasattr(scaler, "scale_")
    assert planned == scaler.fit(columns[:n_rows]).privacy_
    with pytest.raises(ValueError, match="n_features must be at least 1"):
        scaler.plan(n_rows, 0)
