"""Decisions before a fit follow from names, types and shapes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import skdp


def frame(values=(1, 2, 3), text="abc", day="2020-01-01"):
    numbers = np.array(values)
    return pd.DataFrame(
        {
            "patient_id": numbers,
            "ward": [*text],
            "age": numbers.astype(float),
            "born": pd.to_datetime([day] * 3),
            "scores": [[one] for one in values],
            "note": pd.Categorical([*text]),
        }
    )


def test_decisions_are_listed_and_cost_nothing():
    with skdp.PrivacyBudget(1.0, 1e-6) as budget:
        listed = str(skdp.check(frame(), ["yes", "no", "no"]))
        assert budget.n_fits == 0
    for said in (
        "'patient_id' out of X", "labels of columns 'ward', 'note'", "column 'born' into days",
        "turn column 'scores'", "typical value for columns 'age', 'born'", "classes=[...]",
        "1/n = 0.33",
    ):  # fmt: skip
        assert said in listed
    assert listed.splitlines()[0].startswith("1. ")


@pytest.mark.parametrize(
    ("y", "said"), [([0.5, 2.0, 1.0], "PublicRange"), ([0, 1, 1], "DPPoissonRegressor")]
)
def test_targets_are_told_apart_by_type(y, said):
    for given in (y, np.array(y), pd.Series(y)):
        assert said in str(skdp.check(np.zeros((3, 2)), given))


def test_no_value_has_an_effect():
    other = frame([7, -8, 1000], "xyy", "1950-05-05")
    other.loc[0, "age"] = np.nan
    assert skdp.check(frame()) == skdp.check(other)
    assert skdp.DPTabularPreprocessor.template(frame()) == skdp.DPTabularPreprocessor.template(
        other
    )


def test_the_blanks_of_a_template_are_filled():
    table = frame().drop(columns=["scores", "patient_id"])
    text, name = skdp.DPTabularPreprocessor.template(table), "DPTabularPreprocessor"
    with pytest.raises(ValueError, match="categories"):
        eval(text, {name: getattr(skdp, name)}).fit(table)
    for blank, value in (
        ("[...]", "['a', 'b', 'c']"),
        ("'age': ...", "'age': 50"),
        ("...", "'2000-01-01'"),
    ):
        text = text.replace(blank, value)
    fitted = eval(text, {name: getattr(skdp, name)}).fit(table)
    assert fitted.kinds_ == {
        "ward": "category", "age": "number", "born": "date", "note": "category",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["patient_id", "pid", "PID", "visit pid", "patientId"])
def test_decisions_and_template_leave_persons_out_and_fill_the_same_columns(name):
    table = frame()[["patient_id", "age", "born"]]
    table = table.rename(columns={"patient_id": name})
    text, listed = skdp.DPTabularPreprocessor.template(table), str(skdp.check(table))
    assert text.count(repr(name)) == 1
    assert f"leave out of X: {name!r}" in text
    assert f"leave column {name!r} out of X" in listed
    filled = "'age', 'born'"
    assert f"typical value for columns {filled}." in listed
    assert f"missing=[{filled}]" in text
    for other in ("rapid", "stupid", "pids"):
        assert (
            repr(other) not in str(skdp.check(table.rename(columns={"age": other}))).split(".")[1]
        )


def test_other_tables_have_the_same_decisions():
    numbers = frame()[["age"]]
    tables = (
        numbers,
        pytest.importorskip("polars").DataFrame({"age": [1.0, 2.0, 3.0]}),
        np.zeros((3, 1)),
    )
    expected = len(skdp.check(numbers))
    for table in (*tables, sparse.csr_array((3, 1))):
        assert len(skdp.check(table)) == expected


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match=r"check: X must .* two dimensions"):
        skdp.check(np.zeros(3))
