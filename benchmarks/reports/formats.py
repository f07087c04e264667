"""Reports on formats: types of tables, columns, cells, labels and files."""

from __future__ import annotations

import decimal
import tempfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score

import skdp
from benchmarks.reports.verdicts import (
    SLOPES,
    at_least,
    classes_of,
    classifier,
    frame_of,
    holds,
    near,
    prepared,
    r2_of,
    refused,
    report,
    rows,
    supported,
)
from skdp import DPLinearRegression, DPRidge, DPTabularPreprocessor
from skdp.data import Chunks


@report("formats", "scikit-learn #10590; butterfree #284; rally #79", "times in milliseconds")
def time_stamps():
    X, y = rows()
    days = np.random.default_rng(1).uniform(0, 1000, len(y))
    table, target = frame_of(X, time=1.6e12 + days * 86_400e3), y + 0.01 * days
    seconds = frame_of(X, time=1.6e9 + days * 86_400)
    right = r2_of(seconds, target)[0]
    found = [*r2_of(table, target, n_fits=2), *r2_of(table, target, DPRidge(epsilon=50), 6)]
    return near(found, right, 0.01)


@report("formats", "scikit-learn #7486", "one cell of 1e100 or 1.7e308, in X or in y")
def huge_cells():
    found = []
    for cell in (1e100, 1.7e308):
        X, y = rows()
        X[7, 0] = cell
        found.append(r2_score(y[8:], DPRidge().fit(X, y).predict(X[8:])))
        X, y = rows()
        clean = y.copy()
        y[7] = cell
        found.append(r2_score(clean, DPRidge().fit(X, y).predict(X)))
    return near(found, 0.84, 0.02)


@report("formats", "scikit-learn #34883", 'text labels "1", "2" and class_weight')
def text_labels():
    X, y = classes_of()
    labels = np.array(["1", "2"])[y]
    right = LogisticRegression().fit(X, y).score(X, y)
    own = classifier(classes=["1", "2"], class_weight={"1": 0.5, "2": 0.5}).fit(X, labels)
    wrong_keys = classifier(classes=["1", "2"], class_weight={1: 1, 2: 1})
    return [
        near(own.score(X, labels), right, 0.01),
        refused(lambda: wrong_keys.fit(X, labels), "class_weight"),
    ]


@report("formats", "scikit-learn #17675, #25953, #19889", "nullable pandas columns and targets")
def nullable_targets():
    X, y = classes_of()
    right = LogisticRegression().fit(X, y).score(X, y)
    kinds = {"Int64": [0, 1], "boolean": [False, True], "string": ["0", "1"]}
    table, found = frame_of(X).convert_dtypes(), []
    for dtype, labels in kinds.items():
        target = pd.Series(np.array(labels)[y], dtype=dtype)
        found.append(classifier(classes=labels).fit(table, target).score(table, target))
    gaps = pd.Series(y, dtype="Int64").mask(np.arange(len(y)) == 3)
    return [
        near(found, right, 0.01),
        refused(lambda: classifier().fit(table, gaps), "y", "missing"),
    ]


@report("formats", "scikit-learn #15816", "lists, arrays and structs in cells")
def lists_in_cells():
    import polars
    import pyarrow

    X, y = rows(500)
    cells, age = X.tolist(), X[:, 0]
    structs = [{"u": a, "v": b} for a, b, _ in cells]
    frames = [
        pd.DataFrame({"emb": list(X), "age": age}),
        pd.DataFrame({"emb": cells, "age": age}),
        polars.DataFrame({"emb": cells, "age": age}),
        polars.DataFrame({"emb": structs, "age": age}),
        pyarrow.table({"emb": cells, "age": age}),
    ]
    found = [refused(lambda frame=frame: prepared(frame), "emb") for frame in frames]
    return [*found, refused(lambda: DPRidge().fit(frames[1], y), "emb")]


@report("formats", "aws-sdk-pandas #431; DoubleML #232; pandas #20525", "Decimal columns")
def decimals():
    X, y = rows(2000)
    table = frame_of(X).map(lambda cell: decimal.Decimal(str(round(cell, 6))))
    return [
        at_least(r2_score(y, DPRidge(epsilon=5).fit(table, y).predict(table)), 0.8),
        supported(lambda: prepared(table), lambda out: near(out, X, 1e-5 * np.abs(X).max())),
    ]


@report("formats", "scikit-learn #10667, #25165, #4597, #28111", "read-only memory maps")
def memory_maps():
    X, y = rows()
    weights, matrix = np.ones(len(y)), sparse.csr_matrix(X)
    for part in (weights, matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, np.asfortranarray(X))
        mapped = np.load(path, mmap_mode="r")
        found = [*r2_of(mapped, y, sample_weight=weights), *r2_of(matrix, y)]
        del mapped
    return near(found, r2_score(y, LinearRegression().fit(X, y).predict(X)), 0.01)


@report("formats", "scikit-learn #25584", "a model loaded from a memory map")
def mapped_model():
    X, y = rows(2000)
    model = DPRidge().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        joblib.dump(model, f"{folder}/model")
        again = joblib.load(f"{folder}/model", mmap_mode="r").predict(X)
    return near(np.abs(again - model.predict(X)).max(), 0, 0)


@report("formats", "scikit-learn #13526, #15924, #21067", "sparse rows of every kind")
def sparse_kinds():
    X, y = rows()
    long = sparse.csr_matrix(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    halves = sparse.coo_matrix(X / 2)
    twice = [np.r_[part, part] for part in (halves.data, halves.row, halves.col)]
    matrices = [
        long,
        sparse.csr_matrix((twice[0], (twice[1], twice[2])), shape=X.shape),
        sparse.csr_matrix(X.astype(np.float32)),
        *(sparse.csr_matrix(X).asformat(name) for name in ("csc", "lil", "dok", "bsr", "coo")),
    ]
    right = r2_score(y, LinearRegression().fit(X, y).predict(X))
    return near([r2_of(matrix, y, score_on=(X, y))[0] for matrix in matrices], right, 0.01)


@report("formats", "sherpa #695; astropy #4824", "cells that a mask hides")
def masked_arrays():
    X, y = rows(2000)
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[5:900, 1] = True
    masked = np.ma.masked_array(X, mask=hidden)
    target = np.ma.masked_array(y, mask=hidden[:, 1])
    return [
        refused(lambda: DPRidge().fit(masked, y), "missing"),
        refused(lambda: DPRidge().fit(X, target), "missing", "y"),
    ]


@report("formats", "scikit-learn #19835, #12470; patientflow #157", "other types when served")
def served_types():
    days, spans = pd.date_range("2020-01-01", periods=2), pd.to_timedelta([1, 2], unit="D")
    served = [  # labels, column when fitted, column when served
        (["02139", "10001"], ["02139", "10001"], [2139, 10001]),
        ([1, 2], [1, 2], ["1", "2"]),
        ([False, True], [True, False], ["True", "False"]),
        (None, [1.0, 2.0], days),
        (None, days, spans),
        (None, days, [1.0, 2.0]),
        (None, [1.0, 2.0], ["1", "2"]),
    ]
    found = []
    for labels, first, second in served:
        categories = None if labels is None else {"k": labels}
        maker = DPTabularPreprocessor(categories, missing=[]).fit(pd.DataFrame({"k": first}))
        other = pd.DataFrame({"k": second})
        found.append(refused(lambda maker=maker, other=other: maker.transform(other), "k"))
    mixed = pd.DataFrame({"k": [2139, "02139"]})
    return [*found, refused(lambda: prepared(mixed, {"k": ["02139", "10001"]}), "k")]


@report("formats", "smartnoise-samples #100", "object columns of numbers and of text")
def object_columns():
    X, y = rows()
    text = frame_of(X).assign(b=np.where(X[:, 1] > 0, "high", "low"))
    return [
        near(r2_of(X.astype(object), y, score_on=(X, y)), 0.84, 0.02),
        refused(lambda: DPRidge().fit(text, y), "'b'", "text"),
    ]


@report("formats", "scikit-learn #7242", "blocks with columns in another order")
def order_of_blocks():
    X, y = rows()
    table, pieces = frame_of(X), np.array_split(np.arange(len(y)), 20)

    def fit(*orders):
        blocks = (
            (table.iloc[piece][list(orders[i % len(orders)])], y[piece])
            for i, piece in enumerate(pieces)
        )
        return DPLinearRegression().fit_blocks(blocks, n_samples=len(y), n_features=3)

    model = fit("abc")
    names = getattr(model, "feature_names_in_", ())
    return [
        near(r2_score(y, model.predict(table)), 0.84, 0.02),
        holds(list(names) == list("abc"), "names of columns are kept", list(names)),
        refused(lambda: fit("abc", "cab"), "order"),
        refused(lambda: model.predict(table[list("cba")]), "order"),
    ]


@report("formats", "notebooks on UCI Adult", 'labels " >50K" beside ">50K"')
def labels_with_blanks():
    X, y = classes_of(2000)
    labels = np.array(["<=50K", " >50K"])[y]
    return refused(lambda: classifier(classes=["<=50K", ">50K"]).fit(X, labels), "blank")


@report("formats", "polars, pyarrow and xarray", "their types of columns and tables")
def other_tables():
    import polars
    import pyarrow
    import xarray

    X, y = rows(2000)
    named = dict(zip("abc", X.T, strict=True))
    table = pyarrow.table(named)
    fits = [
        polars.DataFrame(named),
        table,
        table.to_batches()[0],
        xarray.DataArray(X, dims=("row", "column")),
    ]
    found = [at_least(r2_of(one, y, DPRidge(epsilon=5), score_on=(one, y))[0], 0.8) for one in fits]
    levels = ["low", "high"]
    cells = np.where(X[:, 0] > 0, "high", "low")
    wanted = (X[:, :1] > 0).astype(float)
    tables = [
        polars.DataFrame({"k": cells}, schema={"k": polars.Enum(levels)}),
        polars.DataFrame({"k": cells}, schema={"k": polars.Categorical}),
        pyarrow.table({"k": pyarrow.array(cells).dictionary_encode()}),
    ]
    found += [near(prepared(one, {"k": levels}), wanted, 0) for one in tables]
    records = np.array(list(map(tuple, X)), dtype=[(name, float) for name in "abc"])
    return [
        *found,
        refused(lambda: DPRidge().fit(xarray.Dataset({"a": ("row", X[:, 0])}), y), "Dataset"),
        refused(lambda: DPRidge().fit(records, y), "struct"),
    ]


@report("formats", "integers beyond 2**53", "labels and categories 2**53 and 2**53 + 1")
def large_integers():
    X, y = classes_of(2000)
    labels = [2**53, 2**53 + 1]
    model = classifier(epsilon=5, classes=labels).fit(X, np.array(labels)[y])
    table = pd.DataFrame({"k": np.array(labels)[y]})
    unsigned = pd.DataFrame({"k": np.array([2**63, 2**63 + 1], dtype=np.uint64)[y]})
    return [
        holds(model.classes_.tolist() == labels, str(labels), model.classes_.tolist()),
        near(prepared(table, {"k": labels})[:, 0], y, 0),
        near(prepared(unsigned, {"k": [2**63, 2**63 + 1]})[:, 0], y, 0),
    ]


@report("formats", "ids and codes left in a table", "13 and 16 digits, and int64 hashes")
def codes_left_in():
    X, y = rows()
    rng = np.random.default_rng(1)
    found = []
    for low, high in ((10**12, 10**13), (10**15, 10**16), (0, 2**62)):
        table = frame_of(X, code=rng.integers(low, high, len(y)))
        found.append(DPRidge().fit(table, y).coef_[:3])
    return near(found, np.tile(SLOPES, (3, 1)), 0.1)


@report("formats", "tables written by Spark and dask", "directories of Parquet files; messages")
def parquet():
    import pyarrow
    from pyarrow.parquet import write_table

    X, y = rows()
    days = pd.date_range("2020", periods=len(y), freq="h")
    whole = pyarrow.table(frame_of(X, t=y, d=days, k=["u", "v"] * (len(y) // 2)))
    with tempfile.TemporaryDirectory() as folder:
        for part in (0, 1):
            write_table(whole.slice(part * 10_000, 10_000), f"{folder}/part-{part}.parquet")

        def fit(path, *columns):
            target = skdp.data.ParquetColumns(path, "t")
            return DPRidge().fit(Chunks(skdp.data.ParquetColumns(path, list(columns)), target))

        file = f"{folder}/part-0.parquet"
        return [
            supported(lambda: fit(folder, *"abc").coef_, lambda out: near(out, SLOPES, 0.1)),
            refused(lambda: fit(file, "a", "d"), "'d'", "dates"),
            refused(lambda: fit(file, "a", "k"), "'k'", "text"),
            refused(lambda: fit(file, "a", "agee"), "'agee'"),
        ]


@report("formats", "SACRO-ML #408", "parameters to YAML and back; models in skops")
def parameters_to_yaml():
    import skops.io
    import yaml

    X, y = rows(2000)
    model = DPRidge(epsilon=2.0, max_iter=7, clip_norm=1.5)
    again = DPRidge(**yaml.safe_load(yaml.safe_dump(model.get_params(deep=False))))
    model.fit(X, y)
    saved = skops.io.dumps(model)
    loaded = skops.io.loads(saved, trusted=skops.io.get_untrusted_types(data=saved))
    return [
        holds(again.get_params() == clone(model).get_params(), "the same parameters"),
        near(np.abs(loaded.predict(X) - model.predict(X)).max(), 0, 0),
    ]
