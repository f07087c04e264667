"""An estimator that is fitted again on the same rows states all of its fits."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
from composition import DELTA, together
from skdp._fitting import parts
from skdp.metrics import evaluate
from skdp.model_selection import DPHoldout, DPSearchCV, dp_train_test_split

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3))
Y = X.sum(axis=1)
RIDGE = skdp.DPRidge(scaling=skdp.RowNorm(4.0, target=4.0), max_iter=2)
AGAIN = r"fitted {} times on the same rows.*epsilon={:.4g}"

ROWS = {
    "arrays": (X, Y),
    "a data frame": (pd.DataFrame(X), pd.Series(Y)),
    "sparse rows": (sparse.csr_array(X), Y),
    "partitions": (skdp.data.Chunks(X, Y), None),
    "new columns": (lambda: X.copy(), Y),
    "new targets": (X, lambda: Y.copy()),
    # What loops make anew for every fit.
    "columns of a data frame": (lambda: FRAME[["a", "c"]], lambda: FRAME["y"]),
    "computed from a data frame": (lambda: FRAME[["a", "c"]] / 2, lambda: 2.0 * FRAME["y"]),
    "with labels of rows": (lambda: LABELLED.drop(columns="y"), lambda: LABELLED["y"]),
    "arrays of a data frame": (lambda: FRAME[["a"]].to_numpy(), lambda: FRAME["y"].to_numpy()),
    "columns of an array": (lambda: TABLE[:, :-1], lambda: TABLE[:, -1]),
    "new chunks": (lambda: skdp.data.Chunks(X, TABLE[:, -1]), lambda: None),
}
FRAME = pd.DataFrame(np.c_[X, Y], columns=["a", "b", "c", "y"])
LABELLED = FRAME.set_index(np.array([f"person {k}" for k in range(300)]))
TABLE = np.c_[X, Y]


def refitted(model, *rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*rows)


@pytest.mark.parametrize("kind", ROWS)
def test_privacy_states_all_fits_on_the_same_rows(kind):
    given = ROWS[kind]
    model, fits = clone(RIDGE), []
    for number in range(1, 4):
        rows = [array() if callable(array) else array for array in given]
        if number == 1:
            model.fit(*rows)
        else:
            message = AGAIN.format(number, together(*[1] * number))
            with pytest.warns(skdp.PrivacyWarning, match=message):
                model.fit(*rows)
        fits.append(clone(RIDGE).fit(*rows))
        total = skdp.total_privacy(*fits, delta=DELTA)
        assert model.privacy_.epsilon == pytest.approx(together(*[1] * number), rel=1e-6)
        assert model.privacy_.releases == total.releases
        assert model.privacy_.n_rows == 300
        assert fits[-1].privacy_.epsilon == pytest.approx(1.0)
    assert model.privacy_.assumptions[0].startswith("This estimator was fitted 3 times")
    assert pickle.loads(pickle.dumps(model)).privacy_ == model.privacy_


@pytest.mark.parametrize(
    "make",
    [
        lambda: skdp.DPStandardScaler(),
        lambda: DPSearchCV(RIDGE, {"alpha": [1.0, 2.0]}, n_candidates=2),
    ],
)
def test_all_that_is_fitted_privately_counts_its_fits(make):
    model = make().fit(X, Y)
    first = model.privacy_
    twice = skdp.total_privacy(first, make().fit(X, Y), delta=DELTA).epsilon
    assert refitted(model, X, Y).privacy_.epsilon == pytest.approx(twice, rel=1e-6)
    assert twice > 1.3 * first.epsilon


def test_each_private_step_of_a_pipeline_counts_its_fits():
    pipeline = make_pipeline(skdp.DPStandardScaler(), clone(RIDGE))
    for number in (1, 2):
        refitted(pipeline, X, Y)
        for step in pipeline:
            assert step.privacy_.epsilon == pytest.approx(together(*[1] * number), rel=1e-6)


def test_a_budget_counts_a_fit_once():
    with skdp.PrivacyBudget(9.0, DELTA) as budget:
        model = refitted(refitted(clone(RIDGE), X, Y), X, Y)
    assert budget.n_fits == 2
    assert budget.spent == pytest.approx(model.privacy_.epsilon, rel=1e-6)


def test_a_part_of_the_rows_and_all_of_them_overlap():
    X_train, X_test, y_train, y_test = dp_train_test_split(X, Y)
    for first, second, epsilon in [
        ((X_train, y_train), (X, Y), together(1, 1)),
        ((X, Y), (X_train, y_train), together(1, 1)),
        ((X_train, y_train), (X_test, y_test), 1.0),
        (dp_train_test_split(X, Y)[::2], (X_train, y_train), together(1, 1)),  # another split
        ((X_train[:, 1:], y_train[:]), (X, Y), together(1, 1)),
        ((X[:150], Y[:150]), (X[150:], Y[150:]), 1.0),
        ((FRAME[["a"]][:150], FRAME["y"][:150]), (FRAME[["a"]][150:], FRAME["y"][150:]), 1.0),
        ((X, Y), (X[100:], Y[100:]), together(1, 1)),
        ((X, Y), (X.copy(), Y.copy()), 1.0),  # equal rows: what arrays hold is not compared
    ]:
        model = refitted(refitted(clone(RIDGE), *first), *second)
        assert model.privacy_.epsilon == pytest.approx(epsilon, rel=1e-6)


PANDAS = FRAME[["a", "b", "c"]]
VIEWS = {
    "rows of C": (TABLE[:, :3], TABLE[:, 3]),
    "rows of Fortran": (np.asfortranarray(X), Y),
    "a column among columns": (np.asfortranarray(TABLE)[:, :3], np.ones(300)),
    "rows made of a vector": (np.arange(900.0).reshape(300, 3), np.ones(300)),
    "a transposed block": (PANDAS.to_numpy(), FRAME["y"].to_numpy()),
    "a data frame": (PANDAS, FRAME["y"]),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_views_are_recognised_from_any_row_on(kind):
    """The rows of two views are the same if numbers of rows say so, and if they cross."""
    X, y = VIEWS[kind]
    for first, second, meet in [
        (slice(None), slice(100, None), True),
        (slice(100, 200), slice(150, 250), True),
        (slice(100, None), slice(None, None, -1), True),
        (slice(200, 300), slice(100, 200), False),
        (slice(None, None, 2), slice(101, None, 3), True),
        (slice(None, None, 2), slice(1, None, 2), kind == "rows made of a vector"),
    ]:
        model = refitted(refitted(clone(RIDGE), X[first], y[first]), X[second], y[second])
        expected = together(1, 1) if meet else 1.0
        assert model.privacy_.epsilon == pytest.approx(expected, rel=1e-6), (first, second)


def test_memory_that_is_used_again_holds_other_rows():
    """Arrays that are gone leave their addresses to others of the same shape."""
    model = clone(RIDGE)
    for _ in range(20):
        rows = np.c_[RNG.standard_normal((300, 3)), np.zeros(300)]
        frame = pd.DataFrame(rows.copy())
        assert model.fit(rows[:, :-1], rows[:, -1]).privacy_.epsilon == pytest.approx(1.0)
        assert model.fit(frame[[0, 1, 2]], frame[3]).privacy_.epsilon == pytest.approx(1.0)
        del rows, frame


def test_columns_of_dask_are_recognised():
    dataframe = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    table = dataframe.from_pandas(FRAME, npartitions=2)
    one, other = (table[["a", "c"]] for _ in range(2))
    assert one is not other
    assert parts.place_of(one) == parts.place_of(other) != parts.place_of(table[["a"]])


@pytest.mark.parametrize("scored", ["the same", "all", "a part", "in a pipeline", "of a search"])
def test_a_score_on_rows_of_the_fit_is_warned_of(scored):
    X_train, X_test, y_train, y_test = dp_train_test_split(X, Y)
    model, rows = clone(RIDGE).fit(X_train, y_train), (X_train, y_train)
    if scored == "all":
        rows = X, Y
    if scored == "a part":
        model, rows = clone(RIDGE).fit(X, Y), (X_test, y_test)
    if scored == "in a pipeline":
        model = make_pipeline(skdp.DPStandardScaler(), RIDGE).fit(X_train, y_train)
    if scored == "of a search":
        model = DPSearchCV(RIDGE, {"alpha": [1.0]}, n_candidates=2).fit(X_train, y_train)
    with pytest.warns(skdp.PrivacyWarning, match="was fitted on these rows, or on some of them"):
        evaluate(model, *rows, "r2", target_range=(-4, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.PrivacyWarning)
        evaluate(clone(RIDGE).fit(X_train, y_train), X_test, y_test, "r2", target_range=(-4, 4))


def test_a_hold_out_knows_the_rows_that_it_split():
    for rows in ((X, Y), (skdp.data.Chunks(X, Y),)):
        holdout = DPHoldout(*rows)
        everything = clone(RIDGE).fit(*rows)
        with pytest.warns(skdp.PrivacyWarning, match="was fitted on these rows"):
            holdout.evaluate(everything, "r2", target_range=(-4, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("error", skdp.PrivacyWarning)
            holdout = DPHoldout(*rows)
            holdout.evaluate(holdout.fit(RIDGE), "r2", target_range=(-4, 4))
