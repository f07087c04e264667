"""Fits and predictions on a cluster of two processes."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import skdp
from skdp._fitting.partitions import DaskPartitions
from skdp.metrics import evaluate
from skdp.model_selection import DPHoldout, DPSearchCV, dp_cross_validate, dp_train_test_split

pytest.importorskip("dask.dataframe", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="dask's distributed is not installed")
import dask.array  # noqa: E402
import dask.dataframe  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 4))
Y = X @ [1.0, -0.2, 5.0, 0.5] + RNG.standard_normal(2000)
LABELS = np.array(["n", "p"])[(Y > 0).astype(int)]
FRAME = pd.DataFrame(X, columns=list("abcd"))


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**options, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def arrays(targets=Y, rows=X):
    return dask.array.from_array(rows, chunks=(450, 3)), dask.array.from_array(targets, chunks=450)


def seeded(model, **options):
    return model(privacy=skdp.Privacy(noise=skdp.SeededNoise(3)), **options)


def test_groups(client):
    people = np.arange(2000) // 3  # a chunk of 450 rows holds whole groups
    held = dask.array.from_array(people, chunks=450)
    found = seeded(skdp.DPRidge).fit(*arrays(), groups=held)
    expected = seeded(skdp.DPRidge).fit(X, Y, groups=people)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    assert found.privacy_.n_groups == 667


def test_data_frames(client):
    frame = dask.dataframe.from_pandas(FRAME, npartitions=4)
    labels = dask.dataframe.from_pandas(pd.Series(LABELS), npartitions=4)
    found = seeded(skdp.DPLogisticRegression, classes=["n", "p"], solver="whitened").fit(
        frame, labels
    )
    expected = seeded(skdp.DPLogisticRegression, classes=["n", "p"], solver="whitened").fit(
        FRAME, LABELS
    )
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
    assert list(found.feature_names_in_) == list("abcd")
    answer = frame.map_partitions(found.predict_proba)
    assert np.array_equal(answer.compute(), found.predict_proba(FRAME))
    with pytest.raises(ValueError, match="map_partitions"):
        found.predict(frame)


def test_scores(client):
    """Rows stay on the workers; a model of skdp or of scikit-learn is sent there."""
    private = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(3)), "target_range": (-20.0, 20.0)}
    frame = dask.dataframe.from_pandas(FRAME, npartitions=4)
    targets = dask.dataframe.from_pandas(pd.Series(Y), npartitions=4)
    for model, there, here in (
        (seeded(skdp.DPRidge), arrays(), (X, Y)),
        (LinearRegression(), (frame, targets), (FRAME, Y)),
    ):
        model.fit(*here)
        found = evaluate(model, *there, **private)["r2"]
        expected = evaluate(model, *here, **private)["r2"]
        assert abs(found.value - expected.value) < 1e-9
        assert abs(found.noise_std - expected.noise_std) < 1e-9
    with pytest.raises(ValueError, match=r"from dask.*Nothing was released"):
        evaluate(model, frame, Y, **private)


def test_splits(client):
    """They are those of rows in memory; each part is read on the workers."""
    ridge = skdp.DPRidge(solver="gd", max_iter=2, scaling=skdp.RowNorm(4.0, target=20.0))
    private = skdp.Privacy(noise=skdp.SeededNoise(3))

    def results(*rows):
        search = DPSearchCV(ridge, {"alpha": [1.0, 9.0]}, n_candidates=2, privacy=private)
        holdout = DPHoldout(*rows, random_state=0)
        model = holdout.fit(clone(ridge).set_params(privacy=private))
        score = holdout.evaluate(model, privacy=private)["r2"].value
        folds = dp_cross_validate(ridge, *rows, cv=2, privacy=private)["r2"].value
        return [*search.fit(*rows).best_estimator_.coef_, *model.coef_, score, folds]

    np.testing.assert_allclose(results(*arrays()), results(X, Y), rtol=1e-9)


def test_both_parts_of_arrays_are_arrays(client):
    X_train, X_test, y_train, y_test = dp_train_test_split(*arrays(), random_state=0)
    assert dask.is_dask_collection(X_train)
    np.testing.assert_array_equal(y_test, dp_train_test_split(Y, random_state=0)[1])
    with skdp.PrivacyBudget(1.0, 1e-6) as budget:
        model = skdp.DPRidge().fit(X_train, y_train)
        evaluate(model, X_test, y_test)
        assert budget.n_fits == 2
    with pytest.raises(ValueError, match=r"to_dask_array.*Nothing was released"):
        dp_train_test_split(dask.dataframe.from_pandas(FRAME, npartitions=4))


def slow(task):
    """Return a task that takes time enough for a worker to be killed meanwhile."""

    def later(*columns, **beside):
        time.sleep(0.2)
        return task(*columns, **beside)

    return later


def test_a_worker_that_is_lost_costs_nothing_more(client, monkeypatch):
    """Its partitions are made again; noise is drawn once, here, for the sum of all.

    No partition counts twice: each pass reads as many rows as the first one, and the sums are those
    of rows in memory.
    """
    killed, passes, n_read, run = [], [], [], DaskPartitions.run

    def kill():
        killed.append(next(iter(client.run(os.getpid).values())))
        os.kill(killed[0], signal.SIGKILL)

    def watched(self, task, spread):
        passes.append(self)
        if len(passes) == 4:  # in the midst of a pass over rows that workers hold
            threading.Timer(0.1, kill).start()
            task = slow(task)
        results = list(run(self, task, spread))
        n_read.append(sum(one.n_records for one in results))
        return results

    with (
        monkeypatch.context() as patch,
        skdp.PrivacyBudget(3.0, 1e-5, allow_seeded_noise=True) as budget,
    ):
        patch.setattr(DaskPartitions, "run", watched)
        found = seeded(skdp.DPRidge).fit(*arrays())
        assert budget.n_fits == 1
    assert killed
    assert set(n_read) == {2000}
    expected = seeded(skdp.DPRidge).fit(X, Y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    assert found.privacy_.releases == expected.privacy_.releases


def test_bad_rows_are_refused_before_the_charge(client):
    rows = X.copy()
    rows[1500, 2] = np.nan
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match="missing values"):
            skdp.DPRidge().fit(*arrays(rows=rows))
        with pytest.raises(ValueError, match="from dask"):
            skdp.DPRidge().fit(arrays()[0], Y)
        with pytest.raises(ValueError, match="partitions"):
            skdp.DPRidge().fit(arrays()[0], dask.array.from_array(Y, chunks=1000))
        assert budget.n_fits == 0
    logs = str(client.get_worker_logs())
    assert "nan" not in logs.lower()
