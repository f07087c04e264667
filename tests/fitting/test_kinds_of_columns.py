"""Columns of all types are read right, or refused by a message that names column and remedy."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import skdp

N = 40
NUMBERS = np.arange(N, dtype=float)
DATE = datetime.date(2000, 1, 2)


def repeated(*cells):
    column = np.empty(N, dtype=object)
    column[:] = [cells[place % len(cells)] for place in range(N)]
    return column


# Cells, the first two numbers that a table makes of them, and what other estimators say.
READ = {
    "Decimal": (repeated(Decimal("1.5"), Decimal("2.5")), [1.5, 2.5], None),
    "missing Decimal": (repeated(Decimal("1.5"), Decimal("NaN")), [1.5, 0.0], "missing values"),
    "date": (repeated(DATE), [1.0, 1.0], "dates"),
    "date and datetime": (repeated(DATE, datetime.datetime(2000, 1, 2, 12)), [1.0, 1.5], "dates"),
    "bool": (repeated(True, False), [1.0, 0.0], None),
    "float16": (NUMBERS.astype(np.float16), [0.0, 1.0], None),
    "longdouble": (NUMBERS.astype(np.longdouble), [0.0, 1.0], None),
    "nullable": (pd.array(repeated(1, None), dtype="Int64"), [1.0, 0.0], "missing values"),
    "None": (repeated(None), [0.0, 0.0], "missing values"),
}
TEXT = r"pandas\.to_numeric.*read_csv\(thousands=.*decimal=.*to_datetime.*leave the column out"
OTHERS = "of other types .*durations, bytes, lists and structs"
REFUSED = {
    "thousands": (repeated("1,234"), f"text .*{TEXT}"),
    "decimal comma": (repeated("1,5"), f"text .*{TEXT}"),
    "text": (repeated("1.5"), f"text .*{TEXT}"),
    "laboratory": (repeated(1.5, "<5"), f"text .*{TEXT}"),
    "bytes": (repeated(b"1"), OTHERS),
    "arrays": (list(np.ones((N, 4))), OTHERS),
    "lists": (repeated([1.0], [2.0, 3.0]), OTHERS),
    "a list among numbers": (repeated(1.0, [2.0, 3.0]), OTHERS),
    "dictionaries": (repeated({"u": 1}), OTHERS),
    "times": (repeated(datetime.time(3)), OTHERS),
    "complex": (NUMBERS + 1j, "of other types .*Complex data not supported"),
    "duration": (repeated(datetime.timedelta(1)), OTHERS),
    "periods": (
        pd.period_range("2000-01", periods=N, freq="M"),
        "(objects|cells that are not numbers)",
    ),
    "uuid": (repeated(uuid.uuid4()), "(objects|cells that are not numbers)"),
}
# numpy has strings of any length since version 2.
StringDType = getattr(np.dtypes, "StringDType", None)
if StringDType is not None:
    REFUSED["StringDType"] = (np.array(["1"] * N, StringDType()), f"text .*{TEXT}")


def fits(frame):
    return (
        lambda: skdp.DPTabularPreprocessor(missing=[]).fit(frame),
        lambda: skdp.DPRidge().fit(frame, NUMBERS),
        lambda: skdp.DPStandardScaler().fit(frame),
        lambda: skdp.DPRidge().fit(skdp.data.Chunks(Rows(frame), NUMBERS, rows_at_once=20)),
        lambda: skdp.DPRidge().fit_blocks([(frame, NUMBERS)], n_samples=N, n_features=2),
    )


class Rows:
    """A frame outside of memory, as it were."""

    def __init__(self, frame):
        self._frame, self.shape = frame, frame.shape

    def __getitem__(self, rows):
        return self._frame[rows]


@pytest.mark.parametrize("kind", READ)
def test_read(kind):
    cells, numbers, refused = READ[kind]
    frame = pd.DataFrame({"a": NUMBERS, "b": cells})
    found = skdp.DPTabularPreprocessor(missing=[]).fit_transform(frame)
    assert found[:2, 1].tolist() == numbers
    if refused is None:
        assert skdp.DPRidge().fit(frame, NUMBERS).n_features_in_ == 2
        return
    with pytest.raises(ValueError, match=rf"X holds {refused}.* in column 'b'"):
        skdp.DPRidge().fit(frame, NUMBERS)


def require_refused(frame, message):
    with skdp.PrivacyBudget(50.0, 1e-4) as budget:
        for fit in fits(frame):
            with pytest.raises((ValueError, TypeError), match=f"{message}") as refusal:
                fit()
            assert "in column 'b'" in str(refusal.value)
            assert "Nothing was released" in str(refusal.value)
        assert budget.n_fits == 0


@pytest.mark.parametrize("kind", REFUSED)
def test_refused(kind):
    cells, message = REFUSED[kind]
    require_refused(pd.DataFrame({"a": NUMBERS, "b": cells}), message)


@pytest.mark.parametrize("dtype", [float, bool, object])
@pytest.mark.parametrize("library", [np.array, pd.Series])
def test_one_column_is_not_called_text(library, dtype):
    column = library([0.0, 1.0] * 20).astype(dtype)
    with pytest.raises(ValueError, match=r"two dimensions.* if (it|there) is one column"):
        skdp.DPRidge().fit(column, np.zeros(40))


def test_hidden_cells_are_missing():
    X = np.ma.masked_array(np.column_stack([NUMBERS, NUMBERS]), mask=False)
    assert skdp.DPRidge().fit(X, NUMBERS).n_features_in_ == 2
    y, ones = (np.ma.masked_array(cells, mask=NUMBERS == 3) for cells in (NUMBERS, NUMBERS + 1))
    hidden = X.copy()
    hidden[3, 1] = np.ma.masked
    marks = np.ma.masked_array(NUMBERS % 2, mask=NUMBERS == 3)
    for name, fit in (
        ("X", lambda: skdp.DPRidge().fit(hidden, NUMBERS)),
        ("X", lambda: skdp.DPTabularPreprocessor().fit(hidden)),
        ("X", lambda: skdp.DPRidge().fit(X, NUMBERS).predict(hidden)),
        ("y", lambda: skdp.DPRidge().fit(X, y)),
        ("y", lambda: skdp.DPLogisticRegression(classes=[0, 1]).fit(X, marks)),
        ("sample_weight", lambda: skdp.DPRidge().fit(X, NUMBERS, ones)),
        ("X", lambda: skdp.DPRidge().fit(skdp.data.Chunks(hidden, NUMBERS))),
    ):
        with pytest.raises(ValueError, match=f"{name} is a masked array.*missing.*released"):
            fit()


@pytest.mark.parametrize("gap", [np.nan, None, pd.NA, Decimal("NaN")])
def test_missing_targets_are_those_of_y(gap):
    y = repeated(0, 1)
    y[7] = gap
    for model in (skdp.DPRidge(), skdp.DPLogisticRegression(classes=[0, 1])):
        with pytest.raises(ValueError, match=r": y holds missing values.*Drop these rows"):
            model.fit(NUMBERS[:, None], y)


def test_labels_of_a_class_are_of_one_kind():
    X, model = NUMBERS[:, None], skdp.DPLogisticRegression
    for y in ([0, "1"] * (N // 2), repeated(0, "1")):
        with pytest.raises(ValueError, match=r"y must hold labels .*got numbers and text"):
            model(classes=["0", "1"]).fit(X, y)
    with pytest.raises(ValueError, match="classes must list labels of one kind"):
        model(classes=[1, "a"]).fit(X, repeated("a", "b"))
    with pytest.raises(ValueError, match=r"y must hold labels of one .*got values of other"):
        model(classes=["a", "b"]).fit(X, repeated(b"a", b"b"))
    words = np.array(["no", "yes"] * (N // 2), StringDType() if StringDType else None)
    assert model(classes=["no", "yes"]).fit(X, words).classes_.tolist() == ["no", "yes"]
