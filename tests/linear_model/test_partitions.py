"""Rows in files and elsewhere: fits are those of rows in memory, and refusals cost nothing."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import skdp
from in_partitions import (
    FEW,
    GD,
    LABELS,
    PEOPLE,
    SECRET,
    WEIGHTS,
    LaterPasses,
    Pickled,
    X,
    Y,
    in_seven,
    seeded,
)
from skdp._oracle.kernels.second_moments import bounded_gram
from skdp._oracle.noise import SystemSource
from skdp._oracle.sources.column_map import Columns, Scaling
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.partitioned import (
    PartitionedSource,
    PartitionSum,
    SumTask,
)
from skdp._oracle.sources.row_blocks import PAIRED_SUMS
from skdp.metrics import evaluate
from skdp.model_selection import DPHoldout


class Sliced:
    """Gives rows by slice alone, as files do."""

    def __init__(self, rows):
        self._rows, self.shape = rows, rows.shape

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        assert type(rows) is slice
        return self._rows[rows]


CASES = {
    "default": (skdp.DPRidge, FEW, X, Y),
    "float32": (skdp.DPRidge, FEW, X.astype(np.float32), Y),
    "sparse": (skdp.DPLinearRegression, FEW, sparse.csr_array(X), Y),
    "two targets": (skdp.DPLinearRegression, FEW, X, np.c_[Y, -Y]),
    "quantiles": (skdp.DPQuantileRegressor, {"quantiles": [0.9, 0.1], **FEW}, X, Y),
    "labels": (skdp.DPLogisticRegression, FEW, X, LABELS),
    "weights": (skdp.DPLogisticRegression, {"class_weight": {"n": 2.0}, **GD}, X, LABELS),
    "whitened": (skdp.DPLogisticRegression, {"solver": "whitened", **FEW}, X, LABELS),
    "boosted": (skdp.DPRidge, {"solver": "boosted_ssp"}, X, Y),
    "adaptive": (skdp.DPRidge, {"solver": "residual_budget", **FEW}, X, Y),
    "pure": (skdp.DPRidge, {"delta": 0.0, "epsilon": 5.0, **FEW}, X, Y),
}


LONG = X.copy()
LONG[::97] *= 1e8  # longer than any bound
WEIGHTED, GROUPED = {"sample_weight": WEIGHTS}, {"groups": PEOPLE}
INTERVALS = {"inference": "coefficients", "epsilon": 3.0}
MEANS = {"rows_per_group": 9, **GD}
# By name: (the estimator, its parameters, rows, targets), and what comes beside these.
SAME = [
    *((name, case, {}) for name, case in CASES.items()),
    *((name, CASES[name], WEIGHTED)
      for name in ("default", "sparse", "two targets", "labels", "weights", "pure")),
    ("targets alone", (skdp.DPRidge, {"adjacency": "label", **FEW}, X, Y), WEIGHTED),
    *((name, (model, INTERVALS | options, rows, targets), {})
      for name in ("default", "sparse", "labels")
      for model, options, rows, targets in [CASES[name]]),
    ("bound", (skdp.DPRidge, {"scaling": skdp.RowNorm(9.0, target=20.0), **INTERVALS, **FEW}, X, Y),
     {}),
    ("no intercept", (skdp.DPRidge, {"fit_intercept": False, **INTERVALS, **FEW}, X, Y), {}),
    ("long", (skdp.DPRidge, FEW, LONG, Y), GROUPED),
    ("long, sparse", (skdp.DPLinearRegression, FEW, sparse.csr_array(LONG), Y), GROUPED),
    ("long, labels", (skdp.DPLogisticRegression, FEW, LONG, LABELS), GROUPED),
    ("long", (skdp.DPRidge, FEW, LONG, Y), GROUPED | WEIGHTED),
    ("long, labels", (skdp.DPLogisticRegression, FEW, LONG, LABELS), GROUPED | WEIGHTED),
    ("means", (skdp.DPLogisticRegression, MEANS, LONG, LABELS), GROUPED),
    ("counts of means", (skdp.DPRidge, MEANS, LONG, Y), GROUPED),
    ("intervals", (skdp.DPRidge, INTERVALS | FEW, X, Y), GROUPED),
    ("odds", (skdp.DPLogisticRegression, INTERVALS | FEW, X, LABELS), GROUPED),
]  # fmt: skip
LEARNT = ("coef_", "intercept_", "coef_debiased_", "intercept_debiased_", "coef_covariance_")


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning", "ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("kind", ["chunks", "elsewhere"])
@pytest.mark.parametrize(
    ("name", "case", "beside"),
    SAME,
    ids=[
        ", ".join([name, *case[1].keys() & {"inference"}, *beside]) for name, case, beside in SAME
    ],
)
def test_a_fit_is_that_of_rows_in_memory(name, case, beside, kind):
    """Whatever comes beside the rows, and however these are divided."""
    model, options, rows, targets = case
    terms = {key: options[key] for key in options.keys() & {"adjacency", "rows_per_group"}}
    options = {key: value for key, value in options.items() if key not in terms}
    make = seeded(model, **options).set_params(
        privacy=skdp.Privacy(noise=skdp.SeededNoise(3), **terms)
    )
    held = in_seven(rows, targets, *beside.values(), beside=list(beside))
    if kind == "chunks":
        if "groups" in beside:
            pytest.skip("chunks are cut at any row")
        sliced = {key: Sliced(value) for key, value in beside.items()}
        held = skdp.data.Chunks(Sliced(rows), Sliced(targets), 300, **sliced)
    found, expected = clone(make).fit(held), clone(make).fit(rows, targets, **beside)
    tolerance = 1e-4 if name == "float32" else 1e-6 if not beside else 1e-9
    for attribute in LEARNT:
        if hasattr(expected, attribute):
            one, other = getattr(found, attribute), getattr(expected, attribute)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * 1e-3)
    one, other = found.privacy_, expected.privacy_
    assert (one.epsilon, one.releases, one.unit) == (other.epsilon, other.releases, other.unit)
    assert (one.n_rows, one.n_groups) == (other.n_rows, other.n_groups)
    assert any("partitions" in text for text in one.assumptions)
    assert not any("partitions" in text for text in other.assumptions)
    if "groups" in beside:
        assert (one.unit, one.n_rows, one.n_groups) == ("group", None, len(np.unique(PEOPLE)))
        assert any("k partitions counts as k groups" in text for text in one.assumptions)
    elif beside:
        unweighted = clone(make).fit(rows, targets)
        assert not np.allclose(found.coef_, unweighted.coef_, rtol=1e-3)
    if "inference" in options:
        assert (np.ravel(found.coef_debiased_) != np.ravel(found.coef_)).all()
    plain = rows.toarray() if sparse.issparse(rows) else rows
    assert found.predict(plain).shape == expected.predict(plain).shape


def test_names_of_columns_are_kept():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = seeded(skdp.DPRidge).fit(Pickled((frame[:900], Y[:900]), (frame[900:], Y[900:])))
    assert list(model.feature_names_in_) == list("abcd")
    other = Pickled((frame[:900], Y[:900]), (frame[900:][list("abdc")], Y[900:]))
    with pytest.raises(ValueError, match="alike"):
        model.fit(other)


REFUSED = {
    "by number": ({"solver": "svrg"}, "taken by number"),
    "in order": ({"solver": "shuffled_sgd"}, "order"),
    "batches": ({"solver": ("gd", {"batch_size": 50})}, "taken by number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_more_is_refused_by_name_before_the_charge(name):
    options, match = REFUSED[name]
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=match):
            seeded(skdp.DPLogisticRegression, **options).fit(skdp.data.Chunks(X, LABELS))
        assert budget.n_fits == 0


def with_cell(value):
    rows = X.astype(object if isinstance(value, str) else float)
    rows[1500, 2] = value
    return rows


@pytest.mark.parametrize("value", [np.nan, np.inf, f"x{SECRET}"])
def test_bad_rows_are_refused_before_the_charge_and_not_quoted(value):
    rows = Pickled(
        (X[:1000], Y[:1000]),
        (with_cell(f"x{value}" if type(value) is str else value)[1000:], Y[1000:]),
    )
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match="DPRidge") as refusal:
            skdp.DPRidge().fit(rows)
        assert budget.n_fits == 0
    assert str(SECRET) not in str(refusal.value)


def test_a_pass_that_fails_has_spent_the_budget_and_says_so():
    rows = Pickled((X[:1000], Y[:1000]), (X[1000:], Y[1000:]), lost_after=9)
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(RuntimeError, match="budget of this fit is spent") as failure:
            skdp.DPRidge().fit(rows)
        assert budget.n_fits == 1
    assert str(SECRET) not in str(failure.value)
    assert failure.value.__cause__ is None


def test_rows_that_change_during_a_fit_are_refused():
    rows = X.copy()

    class Changing(Sliced):
        reads = 0

        def __getitem__(self, part):
            Changing.reads += 1
            found = self._rows[part].copy()
            found[0, 0] = np.nan if Changing.reads > 4 else found[0, 0]
            return found

    with pytest.raises(ValueError, match="spent"):
        skdp.DPRidge().fit(skdp.data.Chunks(Changing(rows), Y, 1000))


class Additions(int):
    """Counts the additions that the sum it stands for has gone through, at most."""

    def __add__(self, other):
        return Additions(1 + max(int(self), int(other)))


class Summands(skdp.data.Partitions):
    def __init__(self, n_partitions):
        self._n_partitions = n_partitions

    def run(self, task, spread=map):
        return (PartitionSum(1, Additions(0)) for _ in range(self._n_partitions))


@pytest.mark.parametrize("n_partitions", [1, 2, 3, 40, 1000, 2**16 - 1, 2**16])
def test_sums_make_no_more_additions_than_are_charged(n_partitions):
    """Sums of partitions are added up in pairs, as sums of parts are in memory."""
    task = SumTask(None, None, 0.0, Scaling())
    found = PartitionedSource(Summands(n_partitions), [1] * n_partitions, task).total(len)
    assert int(found) <= PAIRED_SUMS


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (lambda: skdp.data.Chunks(Y, Y), "shape"),
        (lambda: skdp.data.Chunks(X, Y[:-1]), "rows"),
        (lambda: skdp.data.Chunks(X, Y, 0), "rows_at_once"),
        (lambda: skdp.DPRidge().fit(skdp.data.Chunks(X, Y), Y), "Leave y out"),
        (lambda: skdp.data.Chunks(X, Y, sample_weight=Y[:-1]), "sample_weight has 1999"),
        (
            lambda: skdp.DPRidge().fit(skdp.data.Chunks(X, Y), sample_weight=Y),
            "labels of groups beside its rows. Leave sample_weight out. Nothing was released",
        ),
        (lambda: skdp.DPRidge().fit(skdp.data.Chunks(X, Y), groups=Y), "Leave groups out"),
        (
            lambda: skdp.DPLogisticRegression(epsilon=np.inf).fit(skdp.data.Chunks(X, 0 * Y)),
            "2 classes|at least 2",
        ),
    ],
)
def test_wrong_partitions_are_refused(given, match):
    with pytest.raises(ValueError, match=match):
        given()


def test_parquet_files_are_read_by_row_groups(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(target=LABELS)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=300, index=False)
    columns = skdp.data.ParquetColumns(tmp_path / "rows.parquet", list("abcd"))
    assert columns.shape == X.shape
    for start, stop in ((0, 2000), (0, 1), (299, 301), (1999, 2000), (600, 900)):
        assert np.array_equal(columns[start:stop], X[start:stop])
    target = skdp.data.ParquetColumns(tmp_path / "rows.parquet", "target")
    found = seeded(skdp.DPLogisticRegression).fit(skdp.data.Chunks(columns, target, 700))
    expected = seeded(skdp.DPLogisticRegression).fit(X, LABELS)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
    calls = expected.fit, functools.partial(evaluate, expected), DPHoldout
    for call, rows in itertools.product(calls, [(columns, target), (X, target)]):
        with pytest.raises(ValueError, match=r"Pass skdp.data.Chunks\(X, y\)"):
            call(*rows)


@pytest.fixture
def parquet(tmp_path):
    """A file, and directories of files as Spark and pandas write them."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        target=Y,
        label=pd.Categorical(LABELS),
        day=np.datetime64("2020-01-01") + np.arange(len(X)),
        year=np.repeat([2020, 2021], len(X) // 2),
    )
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "_SUCCESS").touch()
    frame.to_parquet(tmp_path / "file", row_group_size=300, index=False)
    for number in (0, 1):
        part = frame[number * len(X) // 2 : (number + 1) * len(X) // 2]
        part.to_parquet(tmp_path / "spark" / f"part-{number}.snappy.parquet", index=False)
    frame.to_parquet(tmp_path / "pandas", partition_cols=["year"], index=False)
    return tmp_path


@pytest.mark.parametrize("path", ["file", "spark", "pandas"])
def test_directories_of_parquet_files_are_read_as_one(parquet, path):
    columns = skdp.data.ParquetColumns(parquet / path, [*"abcd", "year"])
    assert columns.shape == (len(X), 5)
    expected = np.column_stack([X, np.repeat([2020, 2021], len(X) // 2)])
    for start, stop in ((0, 2000), (900, 1100), (999, 1001), (1999, 2000)):
        np.testing.assert_array_equal(np.asarray(columns[start:stop]), expected[start:stop])
    given = skdp.data.Chunks(columns, skdp.data.ParquetColumns(parquet / path, "label"), 700)
    model = skdp.DPLogisticRegression(classes=["n", "p"]).fit(given)
    assert list(model.feature_names_in_) == [*"abcd", "year"]
    table = skdp.DPTabularPreprocessor({"label": ["n", "p"]}, missing=[]).fit(
        skdp.data.Chunks(skdp.data.ParquetColumns(parquet / path, ["a", "label", "day"]), Y, 700)
    )
    assert list(table.kinds_.values()) == ["number", "category", "date"]


UNREADABLE = {
    "undeclared label": (lambda: skdp.DPLogisticRegression(classes=["n", "q"]), LABELS, "declared"),
    "numbers for text": (lambda: skdp.DPLogisticRegression(classes=["n", "p"]), Y > 0, "as they a"),
    "text in targets": (
        skdp.DPRidge,
        np.where(Y > 0, "SECRET", "1").astype(object),
        "y holds text",
    ),
    "infinite target": (skdp.DPRidge, np.where(Y > 3, np.inf, Y).astype(object), "infinity"),
    "text for numbers": (skdp.DPLogisticRegression, LABELS, "must be alike"),
}


@pytest.mark.filterwarnings("ignore:.*classes=None:skdp.PrivacyWarning")
@pytest.mark.parametrize("kind", UNREADABLE)
def test_targets_are_checked_before_the_charge(kind):
    make, targets, match = UNREADABLE[kind]
    rows = Pickled((X[:1000], targets[:1000]), (X[1000:], targets[1000:]))
    if kind == "text for numbers":  # labels are read from the rows, and differ in their type
        rows = Pickled((X[:1000], (Y > 0)[:1000].astype(int)), (X[1000:], LABELS[1000:]))
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=match) as refusal:
            make().fit(rows)
        assert budget.n_fits == 0
    assert "SECRET" not in str(refusal.value)
    assert "spent" not in str(refusal.value)


HALVES = (X[:1000], Y[:1000]), (X[1000:], Y[1000:])
CHANGES = {
    "every row twice": lambda pairs: [(np.r_[X, X], np.r_[y, y]) for X, y in HALVES],
    "a partition twice": lambda pairs: (*HALVES, HALVES[0]),
    "one in place of two": lambda pairs: ((X[:1500], Y[:1500]), (X[:500], Y[:500])),
    "a row more": lambda pairs: (HALVES[0], (np.r_[X[1000:], X[:1]], np.r_[Y[1000:], Y[:1]])),
    "a partition is lost": lambda pairs: HALVES[:1],
    "a partition is empty": lambda pairs: (HALVES[0], (X[:0], Y[:0])),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_other_numbers_of_rows_in_later_passes_are_refused_before_any_noise(kind, monkeypatch):
    drawn = []
    monkeypatch.setattr(SystemSource, "gaussian", lambda *figures: drawn.append(figures))
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=r"read the same rows.*budget of this fit is spent"):
            skdp.DPRidge().fit(LaterPasses(CHANGES[kind], *HALVES))
        assert budget.n_fits == 1
    assert not drawn


@pytest.mark.parametrize("name", ["default", "sparse", "two targets", "labels", "whitened", "pure"])
def test_partitions_that_a_filter_emptied_change_nothing(name):
    model, options, rows, targets = CASES[name]
    parts = [slice(0, 0), slice(0, 1000), slice(1000, 1000), slice(1000, 2000)]
    pairs = [(rows[part], targets[part]) for part in parts]
    pairs[2] = (np.zeros((0, 7)), pairs[2][1].astype(object))  # nothing is known of its columns
    found = seeded(model, **options).fit(Pickled(*pairs))
    expected = seeded(model, **options).fit(Pickled(pairs[1], pairs[3]))
    assert np.array_equal(found.coef_, expected.coef_)
    assert found.privacy_ == expected.privacy_


def test_partitions_without_any_rows_are_refused():
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=r"DPRidge: there are no rows. Nothing was released"):
            skdp.DPRidge().fit(Pickled((X[:0], Y[:0]), (X[:0], Y[:0])))
        assert budget.n_fits == 0


# ---------------------------------------------------------------- the same fits as in memory


def as_they_are(*columns):
    return (*columns[:2], None, None)


def test_unclipped_rows_are_those_of_rows_in_memory():
    """Ranges and the bound on rows go, centres and scales stay, and the constant becomes 1."""
    targets = Y[:, None]
    limits = Columns(np.zeros(4), np.ones(4), np.full(4, 0.5), np.full(4, 2.0))
    scaling = Scaling(limits, Columns([-1.0], [1.0], [0.5], [2.0]))
    sizes, task = [150, 200, 0, 550, 400, 690, 10], SumTask(as_they_are, 1.0, 0.3)
    held = PartitionedSource(in_seven(X, targets), sizes, task)
    given = MemorySource.of(X, targets, None, 1.0, 0.3)
    found, expected = (
        source.transformed(scaling.unclipped, None, unit_constant=True).total(bounded_gram, 1e100)
        for source in (held, given)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    rows = np.c_[(X - 0.5) / 2, np.ones(len(X))]
    np.testing.assert_allclose(found, rows.T @ rows, rtol=1e-12)


BAD_WEIGHTS = {
    "missing": (np.nan, "missing values"),
    "infinite": (np.inf, "infinity"),
    "negative": (-SECRET, "must not be negative"),
    "text": (f"x{SECRET}", "sample_weight"),
}


@pytest.mark.parametrize("kind", BAD_WEIGHTS)
def test_bad_weights_are_refused_before_the_charge_and_not_quoted(kind):
    value, match = BAD_WEIGHTS[kind]
    weights = WEIGHTS.astype(object if kind == "text" else float)
    weights[1500] = value
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=rf"DPRidge: .*{match}.*Nothing was rel") as refusal:
            skdp.DPRidge().fit(in_seven(X, Y, weights))
        assert budget.n_fits == 0
    assert str(SECRET) not in str(refusal.value)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (in_seven(X, Y, 0 * Y), "zero for every record"),
        (Pickled((X[:1000], Y[:1000], WEIGHTS[:1000]), (X[1000:], Y[1000:])), "weights, or none"),
        (Pickled((X[:1000], Y[:1000], WEIGHTS[:999])), r"inconsistent"),
    ],
    ids=["all zero", "some without", "too few"],
)
def test_weights_that_are_none_are_refused_before_the_charge(rows, match):
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=match):
            skdp.DPRidge().fit(rows)
        assert budget.n_fits == 0


def test_refusals_name_columns_of_parquet_files(parquet):
    def fit(column, target="target"):
        file = parquet / "spark"
        rows = skdp.data.ParquetColumns(file, ["a", column]), skdp.data.ParquetColumns(file, target)
        skdp.DPRidge().fit(skdp.data.Chunks(*rows))

    for column, match in (
        ("day", "X holds dates .*in column 'day'"),
        ("label", "X holds text .*in column 'label'"),
        ("agee", "has no column 'agee'. It has 'a', 'b'"),
    ):
        with pytest.raises(ValueError, match=match):
            fit(column)
    with pytest.raises(ValueError, match="y holds text where numbers are needed"):
        fit("b", "label")
    pd.DataFrame({"a": ["text"], "target": [1.0]}).to_parquet(parquet / "spark" / "part-9.parquet")
    with pytest.raises(ValueError, match=r"column 'a' has another type in .*part-9"):
        fit("b")


@pytest.mark.filterwarnings("ignore:.*classes=None:skdp.PrivacyWarning")
@pytest.mark.parametrize(
    ("model", "where", "error"),
    [(skdp.DPRidge, "X", KeyError), (skdp.DPRidge, "y", ValueError),
     (skdp.DPLogisticRegression, "y", TypeError)],
)  # fmt: skip
def test_the_error_of_a_cell_in_a_chunk_is_not_quoted(model, where, error):
    def fail(*cells):
        raise error(f"cell is {SECRET}")

    cell = type("Cell", (), {"__float__": fail, "__eq__": fail, "__hash__": None})()
    given = {"X": X.astype(object), "y": (Y > 0).astype(object)}
    given[where].flat[1500] = cell
    with pytest.raises(ValueError, match=model.__name__) as refusal:
        model().fit(skdp.data.Chunks(given["X"], given["y"], 700))
    assert str(SECRET) not in str(refusal.value)


def test_rows_of_dask_are_predicted_block_by_block():
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    model = seeded(skdp.DPLogisticRegression).fit(X, LABELS)
    rows = array.from_array(X, chunks=(450, -1))
    answers = rows.map_blocks(model.decision_function, drop_axis=1, dtype=float)
    np.testing.assert_array_equal(answers.compute(), model.decision_function(X))
    with pytest.raises(ValueError, match="map_blocks"):
        model.predict(rows)
