"""The private scaler on rows in partitions: what it finds is what it finds in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import skdp
from skdp._fitting.partitions import MappedColumns, MappedTask
from skdp._fitting.rows import CheckTask

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 3)) * [1.0, 100.0, 0.01] + [0.0, 500.0, 1.0]
FRAME = pd.DataFrame(X, columns=list("abc"))
SECRET = 123456.789
FITTED = ("low_", "high_", "mean_", "scale_")


class InLists(skdp.data.Partitions):
    """Partitions of rows alone."""

    def __init__(self, *parts):
        self._parts = parts

    def run(self, task, spread=map):
        return [task(part, np.zeros(part.shape[0])) for part in self._parts]


PRIVATE = skdp.Privacy(noise=skdp.SeededNoise(3))


def scaler(**options):
    return skdp.DPStandardScaler(privacy=PRIVATE, **options)


CASES = {
    "private": ({}, X),
    "float32": ({}, X.astype(np.float32)),
    "names": ({}, FRAME),
    "sparse": ({}, sparse.csr_array(np.where(np.abs(X - X.mean(axis=0)) > 0.5, X, 0.0))),
    "a range by column": ({"scaling": skdp.PublicRange(by_column={"a": (-3, 3)})}, FRAME[["a"]]),
}


@pytest.mark.parametrize("name", CASES)
def test_columns_are_those_of_rows_in_memory(name):
    options, rows = CASES[name]
    parts = InLists(rows[:0], rows[:300], rows[300:1700], rows[1700:])
    found, expected = scaler(**options).fit(parts), scaler(**options).fit(rows)
    for attribute in FITTED:
        np.testing.assert_allclose(getattr(found, attribute), getattr(expected, attribute), 1e-9)
    assert found.n_features_in_ == expected.n_features_in_
    assert found.privacy_.releases == expected.privacy_.releases
    assert found.privacy_.assumptions[:-1] == expected.privacy_.assumptions
    assert "partitions" in found.privacy_.assumptions[-1]
    names = [list(getattr(one, "feature_names_in_", ())) for one in (found, expected)]
    assert names[0] == names[1]


@pytest.mark.parametrize("value", [np.nan, np.inf, f"x{SECRET}"])
def test_bad_rows_are_refused_before_the_charge_and_not_quoted(value):
    rows = X.astype(object if isinstance(value, str) else float)
    rows[-1, 0] = value
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=r"^DPStandardScaler: .*Nothing was rel") as refusal:
            skdp.DPStandardScaler().fit(InLists(X[:1000], rows[1000:]))
        assert budget.n_fits == 0
    assert str(SECRET) not in str(refusal.value)


class InChunks(skdp.DPStandardScaler):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(InLists(X[:20], X[20:]))


def pairs():
    for value in (0.0, 1e300, -5.0, 1e-300):
        first, other = X[:60].copy(), X[:60].copy()
        first[20] = value
        yield (other, np.zeros(60)), (first, np.zeros(60))


def check(replay):
    privacy = skdp.Privacy(adjacency="replace_one", noise=skdp.SeededNoise(0))
    replay.check_each(lambda: InChunks(epsilon=3.0, privacy=privacy), pairs(), "replace_one")


def test_no_row_shows_but_through_the_releases(replay):
    check(replay)


# ---------------------------------------------------------------- rows that are standardised


def test_another_fit_does_not_change_what_was_standardised():
    one = scaler().fit(X)
    given, seen = one.transform(InLists(X[:0], X)), one.transform(X)
    one.fit(10 * X)
    rows = list(given.run(lambda X, y, **beside: X))
    assert rows[0].shape == (0, 3)
    np.testing.assert_array_equal(rows[1], seen)


class LaterBad(InLists):
    """From one pass on a cell is text."""

    def __init__(self, first):
        super().__init__(X)
        self._passes, self._first = 0, first

    def run(self, task, spread=map):
        self._passes += 1
        if self._passes >= self._first:
            rows = X.astype(object)
            rows[7, 0] = f"x{SECRET}"
            self._parts = (rows,)
        return super().run(task, spread)


@pytest.mark.parametrize(("first", "end"), [(1, "Nothing was released."), (3, "fit is spent.")])
def test_rows_that_are_refused_where_they_are(first, end):
    given = scaler().fit(X).transform(LaterBad(first))
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match="holds text where numbers are needed") as refusal:
            skdp.DPRidge(scaling=skdp.PublicRange(target=1.0)).fit(given)
        assert budget.n_fits == (first > 1)
    assert str(refusal.value).endswith(end)
    assert ("Nothing was released" in str(refusal.value)) is (first == 1)
    assert str(SECRET) not in str(refusal.value)


def test_nor_what_rows_raise_that_are_counted():
    class Unreadable:
        def __array__(self, *args, **kwargs):
            raise KeyError(SECRET)

    answer = MappedTask(MappedColumns(abs), CheckTask(None, False))(Unreadable(), [0.0])
    assert answer.message == "a partition could not be mapped: KeyError."
