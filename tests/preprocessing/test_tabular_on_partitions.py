"""Tables in partitions are turned into numbers where they are, as in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import skdp
from in_partitions import Held
from skdp import DPTabularPreprocessor
from skdp.model_selection import DPSearchCV

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(600) < 0.2, np.nan, RNG.gamma(9.0, 6.0, 600)),
        "sex": RNG.choice(["f", "m"], 600),
        "day": np.datetime64("2021-01-01") + RNG.integers(0, 900, 600),
    }
)
Y = FRAME["age"].fillna(50).to_numpy() + 5.0 * (FRAME["sex"] == "m").to_numpy()
PUBLIC = {"sex": ["f", "m"]}
PRIVATE = skdp.Privacy(noise=skdp.SeededNoise(3))


class Tables(Held):
    """Three partitions of a frame, the second of them empty."""

    def __init__(self, *columns, **options):
        super().__init__(*columns, sizes=(200, 0, 400), **options)


def table(**options):
    return DPTabularPreprocessor(PUBLIC, fill_value={"age": 50, "day": "2021-01-01"}, **options)


def rows_of(partitions):
    def rows(X, y, **beside):
        return X

    return np.concatenate([one for one in partitions.run(rows) if len(one)])


def test_columns_are_those_of_tables_in_memory():
    given = Tables(FRAME, Y)
    found, expected = table().fit(given), table().fit(FRAME)
    assert (found.kinds_, found.fill_values_) == (expected.kinds_, expected.fill_values_)
    assert found.n_features_in_ == 3
    assert list(found.feature_names_in_) == list(FRAME)
    np.testing.assert_array_equal(rows_of(found.transform(given)), expected.transform(FRAME))


def test_a_pipeline_and_a_search_read_tables_in_partitions():
    model = skdp.DPRidge(solver="gd", max_iter=2, scaling=skdp.RowNorm(99.0, target=200.0))
    found = make_pipeline(table(), model.set_params(privacy=PRIVATE)).fit(Tables(FRAME, Y))
    expected = make_pipeline(table(), model).fit(FRAME, Y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-9)
    space = {"dpridge__alpha": [1.0, 9.0]}
    searches = [
        DPSearchCV(make_pipeline(table(), model), space, n_candidates=2, privacy=PRIVATE)
        for _ in range(2)
    ]
    found, expected = searches[0].fit(Tables(FRAME, Y)), searches[1].fit(FRAME, Y)
    one, other = (search.best_estimator_[-1].coef_ for search in (found, expected))
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"day": "2021-01-01"}, "where numbers are needed"),
        ({"age": np.inf}, "infinity"),
        ({"sex": 1}, "of another kind"),
        ({"more": 1.0}, "alike in the number"),
        ({"day": 1.0}, "fill_value must be a number"),
    ],
)
def test_bad_partitions_are_refused_before_the_charge(change, match):
    class Changed(Tables):
        def run(self, task, spread=map):
            last = self._parts[-1]
            yield from [*super().run(task)][:-1]
            yield task(last["X"].assign(**change), last["y"], index=2)

    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=rf"^DPTabularPreprocessor: .*{match}.*released"):
            make_pipeline(table(), skdp.DPRidge()).fit(Changed(FRAME, Y))
        assert budget.n_fits == 0


def test_partitions_are_returned_whatever_container_is_set():
    given = Tables(FRAME, Y)
    preprocessor = table().set_output(transform="pandas")
    found = list(preprocessor.fit_transform(given).run(lambda X, y, **beside: X))
    expected = preprocessor.transform(FRAME)
    assert list(found[2].columns) == list(expected.columns)
    np.testing.assert_array_equal(found[2], expected[200:])
