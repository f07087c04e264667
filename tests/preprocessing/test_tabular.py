"""A raw data frame goes in, numbers come out, and nothing is learnt from rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import skdp

CATEGORIES = {"sex": ["f", "m"], "ward": ["a", "b", "c"]}


def raw_frame(n_rows=400, seed=0):
    """Stays in a hospital, made up: numbers, categories, a date, and cells that are missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.gamma(9.0, 6.0, n_rows),
            "sex": rng.choice(["f", "m"], n_rows),
            "ward": rng.choice(["a", "b", "c", "never declared"], n_rows, p=[0.4, 0.3, 0.2, 0.1]),
            "admitted": np.datetime64("2021-01-01") + rng.integers(0, 900, n_rows),
            "pressure": rng.normal(-130.0, 15.0, n_rows),
        }
    )  # fmt: skip
    margin = (frame.age - 54) / 12 + 1.5 * (frame.sex == "m") - 1.0 * (frame.ward == "b") - 0.5
    frame["ill"] = margin + 0.5 * rng.logistic(size=n_rows) > 0
    for column in ("age", "ward", "admitted", "pressure"):
        frame.loc[rng.random(n_rows) < 0.2, column] = None
    return frame


@pytest.fixture(scope="module")
def frame():
    return raw_frame()


def test_columns_come_out_as_promised():
    frame = pd.DataFrame(
        {
            "n": [1.5, None, 3.0],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "objects": np.array([1, None, 2.5], dtype=object),
            "yes": [True, False, True],
            "two": ["b", "a", None],
            "three": pd.Categorical(["x", "other", "z"]),
            "numbers": [2, 1, 7],
            "day": np.array(["2000-01-03", "NaT", "1999-12-31T12"], "M8[h]"),
        }
    )
    public = {"two": ["a", "b"], "three": ["x", "y", "z"], "numbers": [1, 2, 3]}
    table = skdp.DPTabularPreprocessor(
        public, missing=["n", "two"], fill_value={"n": 9, "day": "1999-12-31"}
    )
    found = table.set_output(transform="pandas").fit_transform(frame)
    expected = {
        "n": [1.5, 9, 3],
        "n_missing": [0, 1, 0],
        "whole": [1, 0, 3],
        "objects": [1, 0, 2.5],
        "yes": [1, 0, 1],
        "two_b": [1, 0, 0],
        "two_missing": [0, 0, 1],
        "three_x": [1, 0, 0],
        "three_y": [0, 0, 0],
        "three_z": [0, 0, 1],
        "numbers_1": [0, 1, 0],
        "numbers_2": [1, 0, 0],
        "numbers_3": [0, 0, 0],
        "day": [2, -1, -0.5],
    }
    assert list(found.columns) == list(expected)
    assert found.to_numpy().T.tolist() == list(expected.values())


@pytest.mark.parametrize("day", ["1980-01-01", pd.Timestamp("1980-01-01", tz="UTC")])
def test_gaps_are_filled_with_what_was_declared_and_zeros_are_announced(day):
    frame = pd.DataFrame({"born": pd.to_datetime([None, "2000-01-02"]), "income": [None, 9e4]})
    table = skdp.DPTabularPreprocessor(fill_value={"born": day}, missing=["born"])
    assert table.fit_transform(frame)[:, 0].tolist() == [-7305.0, 1.0]
    with pytest.warns(UserWarning, match="missing values of 'income' become 0, as fill_value"):
        table.set_params(missing="all").fit(frame)
    with pytest.raises(ValueError, match="Its fill_value must be a number"):
        table.set_params(fill_value={"income": "1980-01-01"}).fit(frame)
    for number in (5, np.float32(5), True, {"born": -7305}):
        with pytest.raises(ValueError, match=r"'born' holds dates\. Its fill_value must be a date"):
            table.set_params(fill_value=number).fit(frame)


@pytest.mark.parametrize("marked", ["all", ["seen"], []])
def test_zeros_are_announced_where_the_type_of_a_column_has_a_mark_of_missing_values(marked):
    frame = pd.DataFrame(
        {
            "whole": [1, 2],
            "yes": [True, False],
            "age": [1.0, np.nan],
            "full": [1.0, 2.0],
            "seen": pd.to_datetime(["2024-01-01", None]),
            "nullable": pd.array([1, None], dtype="Int64"),
            "objects": np.array([1, None], dtype=object),
        }
    )
    said = {}
    for table in (frame, frame.fillna(frame.iloc[0])):
        with pytest.warns(UserWarning, match="become 0, as fill_value") as caught:
            skdp.DPTabularPreprocessor(missing=marked).fit(table.astype(frame.dtypes))
        (said[str(caught[0].message)],) = caught
    (text,) = said  # by types alone
    assert "leave" not in text.partition("Nothing marks")[0]
    for name in ("age", "full", "seen", "nullable", "objects"):
        is_marked = marked == "all" or name in marked
        assert text.count(repr(name)) == 2 - is_marked
    assert text.count("'whole'") == text.count("'yes'") == (marked == "all")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        skdp.DPTabularPreprocessor(missing=[]).fit(frame[["whole", "yes"]])


def test_levels_of_a_category_are_not_taken_for_public(frame):
    frame = frame[["age", "sex", "ward"]].astype({"ward": "category"})
    with pytest.raises(ValueError, match=r"text .* needed, in columns 'sex', 'ward'") as no:
        skdp.DPTabularPreprocessor().fit(frame)
    assert "levels were learnt from the rows" in str(no.value)
    assert "categories={" in str(no.value)
    assert "never declared" not in str(no.value)
    assert skdp.DPTabularPreprocessor(CATEGORIES).fit(frame).kinds_["ward"] == "category"


@parametrize_with_checks([skdp.DPTabularPreprocessor()])
def test_estimator_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- refusals

REFUSED = {
    "text": ({}, ["in columns 'sex', 'ward'", "categories={'sex': [...]}"]),
    "unknown column": ({"categories": {"Sex": ["f", "m"]}}, ["categories names", "'Sex'", "'sex'"]),
    "unknown mark": ({"missing": ["agee"]}, ["missing names columns", "'agee'"]),
    "unknown fill": ({"fill_value": {"agee": 1}}, ["fill_value names columns", "'agee'"]),
    "text for numbers": ({"categories": {"age": ["1", "2"]}}, ["'age' holds numbers", "'1', '2'"]),
    "numbers for text": ({"categories": {"sex": [1, 2]}}, ["'sex' holds text", "1, 2"]),
    "one label": ({"categories": {"sex": ["f"]}}, ["categories", "at least 2 labels"]),
    "a label twice": ({"categories": {"sex": ["f", "f"]}}, ["categories", "all different"]),
    "one word": ({"categories": {"sex": "fm"}}, ["categories['sex']", "a list", "'fm'"]),
    "fill": ({"fill_value": np.nan}, ["fill_value", "finite", "nan"]),
    "missing": ({"missing": "some"}, ["missing must be 'all' or a list", "'some'"]),
}


@pytest.mark.parametrize("text", ["string", object])
@pytest.mark.parametrize("mistake", REFUSED)
def test_refusals(mistake, text, frame):
    """Of text that is text by its type, and of text that is objects, as pandas 2 has it."""
    parameters, fragments = REFUSED[mistake]
    frame = frame.astype({"sex": text, "ward": text})
    with pytest.raises(ValueError, match="DPTabularPreprocessor") as refusal:
        skdp.DPTabularPreprocessor(**parameters).fit(frame.drop(columns="ill"))
    message = str(refusal.value)
    assert [part for part in fragments if part not in message] == [], message
    assert "never declared" not in message


DAY, SPAN = pd.to_datetime(["2000-01-02", None]), pd.to_timedelta([1, None], "D")
SERVED = {
    "text, numbers": (["a", "b"], ["a", "b"], [1, 2]),
    "text, bools": (["True", "False"], ["True", "False"], [True, False]),
    "numbers, text": ([1, 2], [1, 2], ["1", "2"]),
    "bools, text": ([True, False], [True, False], ["True", "False"]),
    "number, date": (None, [1.0, None], DAY),
    "number, duration": (None, [1.0, None], SPAN),
    "number, text": (None, [1.0, None], ["1", "2"]),
    "number, lists": (None, [1.0, None], [[1.0], [2.0]]),
    "date, duration": (None, DAY, SPAN),
    "date, number": (None, DAY, [1.0, 2.0]),
}


@pytest.mark.parametrize("kind", SERVED)
def test_columns_of_another_kind_than_in_fit_are_refused(kind):
    labels, seen, served = SERVED[kind]
    public = {} if labels is None else {"column": labels}
    seen, served = pd.DataFrame({"column": seen}), pd.DataFrame({"column": served})
    table = skdp.DPTabularPreprocessor(public, missing=[]).fit(seen)
    with pytest.raises(ValueError, match=r"column 'column'.*released") as refusal:
        table.transform(served)
    assert "a where" not in str(refusal.value)
    for form in (object, float):  # without a known cell a type says nothing
        assert np.isfinite(table.transform(pd.DataFrame({"column": [None]}, dtype=form))).all()


def test_sparse_output_is_that_of_arrays_and_small():
    labels = [f"c{number}" for number in range(5000)]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"icd": rng.choice([*labels, "none"], 20000), "age": rng.random(20000)})
    table = skdp.DPTabularPreprocessor({"icd": labels}, missing=["age"], sparse_output=True)
    found = table.fit_transform(frame)
    assert found.shape == (20000, 5002)
    assert found.data.nbytes + found.indices.nbytes + found.indptr.nbytes < 2**20
    few = skdp.DPTabularPreprocessor({"icd": labels}, missing=["age"]).fit(frame[:50])
    np.testing.assert_array_equal(found[:50].toarray(), few.transform(frame[:50]))
    model = make_pipeline(table, skdp.DPRidge(solver="gd", max_iter=1)).fit(frame, frame["age"])
    assert model[-1].n_features_in_ == 5002
    with pytest.raises(ValueError, match="sparse"):
        table.set_output(transform="pandas").transform(frame)
    with pytest.raises(ValueError, match="sparse_output must be True or False"):
        table.set_params(sparse_output="yes").fit(frame)


@pytest.mark.parametrize("cells", [["Anna", "Bo"], [1, 2], [0.5, None], [[1], [2]], [True, 2j]])
def test_cells_of_dates_that_are_none_are_refused_and_not_quoted(cells):
    dates = pd.DataFrame({"day": pd.to_datetime(["2000-01-02", "2000-01-03"])})
    table = skdp.DPTabularPreprocessor(fill_value="2000-01-01").fit(dates)
    with pytest.raises(ValueError, match="cannot be read as dates, in column 'day'") as refusal:
        table.transform(pd.DataFrame({"day": cells}))
    assert "Anna" not in str(refusal.value)
    text = pd.DataFrame({"day": ["2000-01-02", None]})
    assert table.transform(text).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("drop", "expected"),
    [
        (None, ["sex_m", "ward_a", "ward_b", "ward_c", "ward_missing"]),
        ("first", ["sex_m", "ward_b", "ward_c", "ward_missing"]),
    ],
)
def test_a_reference_level_has_no_column(drop, expected):
    frame = pd.DataFrame({"sex": ["f", "m", "f"], "ward": ["a", "b", None]})
    labels = {"sex": ["f", "m"], "ward": ["a", "b", "c"]}
    table = skdp.DPTabularPreprocessor(labels, missing=["ward"], drop=drop).fit(frame)
    assert list(table.get_feature_names_out()) == expected
    cells = {f"{name}_{label}": frame[name] == label for name in labels for label in labels[name]}
    cells["ward_missing"] = frame["ward"].isna()
    np.testing.assert_array_equal(table.transform(frame).T, [cells[name] for name in expected])


@pytest.mark.parametrize("drop", ["last", ["a"], True])
def test_another_reference_level_is_refused(drop):
    table = skdp.DPTabularPreprocessor({"ward": ["a", "b", "c"]}, drop=drop)
    with pytest.raises(ValueError, match="drop must be None or 'first'"):
        table.fit(pd.DataFrame({"ward": ["a", "b"]}))
