"""Refusals quote no cell, give no advice that would break the guarantee, and cost nothing."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp.metrics import evaluate
from skdp.model_selection import dp_train_test_split

SECRET = 987654.321


@pytest.mark.parametrize("where", ["X", "y"])
@pytest.mark.parametrize(
    ("cell", "message"),
    [(np.nan, "missing values"), (np.inf, "holds infinity"), (10**400, "too large")],
)
@pytest.mark.parametrize("frame", [False, True])
def test_a_refusal_does_not_advise_to_impute(where, cell, message, frame, regression):
    X, y = (part.astype(object) for part in regression)
    (X if where == "X" else y).flat[7] = cell
    with pytest.raises(ValueError, match=message) as refusal:
        skdp.DPRidge().fit(pd.DataFrame(X) if frame else X, y)
    text = str(refusal.value)
    assert "Nothing was released" in text
    assert "SimpleImputer" not in text
    assert "HistGradientBoosting" not in text
    if cell is np.nan:
        assert "would not be private" in text


class Unreadable:
    """A cell whose error takes other arguments than a message, and holds what it could not read."""

    def __float__(self):
        raise UnicodeDecodeError("utf-8", b"987", 0, 1, "987")


@pytest.mark.parametrize("grouped", [False, True])
def test_the_error_of_a_cell_is_not_quoted(regression, grouped):
    X, y = regression
    X = X.astype(object)
    X[7, 2] = Unreadable()
    groups = np.arange(len(y)) // 2 if grouped else None
    with pytest.raises(ValueError, match="DPRidge: X or y holds cells that are no") as refusal:
        skdp.DPRidge().fit(X, y, groups=groups)
    assert "0x" not in str(refusal.value)
    assert refusal.value.__suppress_context__


def raising(method, error):
    def fail(*cells):
        raise error(f"cell is {SECRET}")

    others = {"__float__": lambda self: 1.0, "__hash__": lambda self: 1}
    return type("Cell", (), others | {method: fail})()


class OwnError(Exception):
    """Neither numpy nor scikit-learn knows it, and its text has an error of its own."""

    def __str__(self):
        raise RuntimeError(self.args[0])


ERRORS = [ValueError, TypeError, KeyError, OverflowError, MemoryError, StopIteration, OwnError]
CELLS = {
    "signalling Decimal": Decimal("sNaN"),
    **{f"__float__ raises {error.__name__}": raising("__float__", error) for error in ERRORS},
    **{f"{name} raises": raising(name, ValueError) for name in ("__eq__", "__ne__", "__array__")},
}


@pytest.mark.parametrize("cell", CELLS)
def test_no_error_of_a_cell_comes_through(cell, regression):
    X, y = regression
    labels = (y > 0).astype(int)
    rows, ones = X.astype(object), np.ones(len(y)).astype(object)
    rows[7, 2] = ones[7] = CELLS[cell]
    targets, marked = y.astype(object), labels.astype(object)
    targets[7] = marked[7] = CELLS[cell]
    logistic, declared = skdp.DPLogisticRegression, skdp.DPLogisticRegression(classes=[0, 1])
    frame = pd.DataFrame(rows).add_prefix("column ").assign(text="SECRET")
    tabular = skdp.DPTabularPreprocessor(categories={2: [1, 2]})
    refusals = []
    with skdp.PrivacyBudget(50.0, 1e-5) as budget:
        for run in (
            lambda: skdp.DPRidge().fit(rows, y),
            lambda: skdp.DPRidge().fit(frame, y),
            lambda: skdp.DPRidge().fit(X, targets),
            lambda: skdp.DPRidge().fit(X, y, ones),
            lambda: skdp.DPRidge().fit(rows, y, groups=labels),
            lambda: logistic().fit(X, marked),
            lambda: declared.fit(X, marked),
            lambda: skdp.DPStandardScaler().fit(rows),
            lambda: tabular.fit_transform(rows),
        ):
            before = budget.n_fits
            try:
                run()
            except (ValueError, TypeError, MemoryError) as refusal:
                refusals.append((refusal, budget.n_fits - before))
    assert len(refusals) > 1
    for refusal, charged in refusals:
        assert not charged
        assert str(SECRET) not in str(refusal)
        assert "SECRET" not in str(refusal)
        assert refusal.__suppress_context__ or refusal.__context__ is None


def test_a_heavy_record_does_not_show_its_class(classification):
    X, y = classification
    for record in (np.argmin(y), np.argmax(y)):
        weights = np.ones(len(y))
        weights[record] = 1e308
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", skdp.NoiseWarning)  # of what was released
            skdp.DPLogisticRegression(
                epsilon=20.0, classes=np.unique(y), class_weight={y.min(): 1, y.max(): 10}
            ).fit(X, y, weights)


PASSED = {
    "array": lambda: np.full((30, 3), SECRET),
    "list": lambda: [[SECRET] * 3] * 30,
    "frame": lambda: pd.DataFrame({"a": [SECRET] * 30}),
    "series": lambda: pd.Series([SECRET] * 30),
}
# Rows passed for a parameter, or for a parameter of its object.
PARAMETERS = {
    **{
        name: lambda rows, name=name: skdp.DPRidge(**{name: rows})
        for name in sorted(set(skdp.DPRidge().get_params()) - {"verbose"})
    },
    "noise": lambda rows: skdp.DPRidge(privacy=skdp.Privacy(noise=rows)),
    "seed": lambda rows: skdp.DPRidge(privacy=skdp.Privacy(noise=skdp.SeededNoise(rows))),
    "budget": lambda rows: skdp.DPRidge(privacy=skdp.Privacy(budget=rows)),
    "adjacency": lambda rows: skdp.DPRidge(privacy=skdp.Privacy(adjacency=rows)),
    "rows_per_group": lambda rows: skdp.DPRidge(privacy=skdp.Privacy(rows_per_group=rows)),
    "norm": lambda rows: skdp.DPRidge(scaling=skdp.RowNorm(rows)),
    "low": lambda rows: skdp.DPRidge(scaling=skdp.PublicRange(rows, 0.0)),
    "by_column": lambda rows: skdp.DPRidge(scaling=skdp.PublicRange(by_column=rows)),
    "radius": lambda rows: skdp.DPRidge(constraint=skdp.objective.L2Ball(rows)),
    "share": lambda rows: skdp.DPRidge(inference=skdp.CoefficientInference(rows)),
    "beta": lambda rows: skdp.DPRidge(momentum=("averaged", {"beta": rows})),
}


@pytest.mark.parametrize("kind", PASSED)
@pytest.mark.parametrize("name", PARAMETERS)
def test_rows_passed_for_a_parameter_are_not_quoted(name, kind, regression):
    with pytest.raises((ValueError, TypeError)) as refusal:
        PARAMETERS[name](PASSED[kind]()).fit(*regression)
    assert "987" not in str(refusal.value)


@pytest.mark.parametrize(
    "model",
    [
        skdp.DPRidge(),
        skdp.DPPoissonRegressor(),
        skdp.DPQuantileRegressor(quantiles=[0.1, 0.9]),
        skdp.DPLogisticRegression(classes=[0, 1]),
    ],
)
def test_targets_that_are_scored_are_not_quoted(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        for cell in ("HIV positive", b"HIV positive", Unreadable()):
            scored = y.astype(object)
            scored[7] = cell
            with pytest.raises((ValueError, TypeError), match=r"Nothing was released|mix of") as no:
                model.score(X, scored)
            assert "HIV" not in str(no.value)
            assert str(SECRET) not in str(no.value)


SCALER = skdp.DPStandardScaler
REMEDIES = {
    "share": (
        lambda X, y: dp_train_test_split(X, y, test_size=1.5),
        r"^dp_train_test_split: test_size must be a share between .* got 1.5. Nothing was released",
    ),
    "missing offset": (
        lambda X, y: skdp.DPRidge().fit(X, y, offset=np.where(y > 1, np.nan, 0)),
        r"^DPRidge: offset holds missing values \(NaN\): give each row a number, 0 for one without",
    ),
    "two targets": (
        lambda X, y: evaluate(skdp.DPRidge().fit(X, y), X, np.column_stack([y, y])),
        r"^evaluate: y must have one target, got 2. Fit and score a model for each target. Nothing",
    ),
    "no delta": (
        lambda X, y: SCALER(delta=0).fit(X),
        r"^DPStandardScaler: delta must be .* got 0. Pass delta=1e-6, or declare scaling=Public",
    ),
}


@pytest.mark.parametrize("mistake", REMEDIES)
def test_a_refusal_names_the_tool_the_value_and_the_remedy(mistake, regression):
    call, said = REMEDIES[mistake]
    with pytest.raises(ValueError, match=said):
        call(*regression)
