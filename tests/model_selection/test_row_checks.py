"""Steps of pipelines in searches and cross-validations, tried before the charge."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import skdp
from skdp.model_selection import DPSearchCV, dp_cross_validate

SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))


def table(rng, n_rows):
    X = pd.DataFrame(rng.standard_normal((n_rows, 3)), columns=["a", "b", "d"])
    return X, 10 * X["a"].to_numpy() + rng.standard_normal(n_rows)


@pytest.fixture
def frame(rng):
    return table(rng, 600)


def in_place(X):
    X["a"] = X["a"] / 10
    return X


def dropped(X):
    return X.dropna()


def filled(X):
    return X.fillna(0)


def search(pipeline, grid=None, privacy=SEEDED):
    grid = {"dpridge__alpha": [1.0, 2.0]} if grid is None else grid
    return DPSearchCV(pipeline, grid, epsilon=20.0, n_candidates=6, privacy=privacy)


def test_steps_that_write_into_their_input_write_into_copies(rng):
    X, y = table(rng, 6000)
    before = X.copy()
    pipeline = make_pipeline(FunctionTransformer(in_place), skdp.DPRidge())
    model = search(pipeline).fit(X, y)
    pd.testing.assert_frame_equal(X, before)
    # Whatever the number of runs, the coefficient is that of one division.
    assert model.best_estimator_[-1].coef_[0] == pytest.approx(100, rel=0.2)
    pipeline = make_pipeline(FunctionTransformer(in_place), skdp.DPRidge())
    found = dp_cross_validate(pipeline, X, y, epsilon=20.0, delta=1e-6, privacy=SEEDED)
    pd.testing.assert_frame_equal(X, before)
    assert found["r2"].value > 0.8
    assert any("a failure is reported" in line for line in found.privacy_.assumptions)


def test_encoders_with_declared_categories(frame):
    X, y = frame
    X["kind"] = np.where(X["b"] > 0, "u", "v")
    encoder = OneHotEncoder(categories=[["u", "v"]])
    columns = make_column_transformer(
        (encoder, ["kind"]), remainder="passthrough", sparse_threshold=0
    )
    pipeline = make_pipeline(columns, skdp.DPRidge())
    assert search(pipeline).fit(X, y).best_score_ > 0.5
    assert dp_cross_validate(pipeline, X, y, epsilon=20.0, delta=1e-6, privacy=SEEDED)


def test_one_cell_decides_nothing(frame):
    X, y = frame
    X.loc[3, "b"] = np.nan
    choices = [FunctionTransformer(dropped), FunctionTransformer(filled)]
    pipeline = make_pipeline(choices[0], skdp.DPRidge())
    budget = skdp.PrivacyBudget(50.0, 1e-6)
    charged = skdp.Privacy(budget=budget)
    refused = search(pipeline, {"functiontransformer": choices}, charged)
    with pytest.raises(ValueError, match="leaves some out"):
        refused.fit(X, y)
    codes = pd.DataFrame({"c": pd.Series([0, 1, 2] * 200, dtype=object)})
    codes.loc[5, "c"] = "unknown"
    pipeline = make_pipeline(skdp.DPTabularPreprocessor(), skdp.DPRidge())
    choices = [{"c": [0, 1, 2]}, None]
    for order in (choices, choices[::-1]):
        refused = search(pipeline, {"dptabularpreprocessor__categories": order}, charged)
        with pytest.raises(ValueError, match=r"text where numbers|'c'"):
            refused.fit(codes, y)
    assert budget.n_fits == 0


def changed(values, value):
    """Return a copy in which one record has another value."""
    return np.where(np.arange(len(values)) == 5, value, values)


@pytest.mark.parametrize("model", [skdp.DPPoissonRegressor(), skdp.DPGammaRegressor()])
def test_one_target_or_offset_decides_nothing_after_the_charge(rng, model):
    X, y = rng.standard_normal((300, 3)), rng.poisson(1.0, 300) + 1.0
    nothing, invalid = np.zeros(300), 0.0 if model.power == 2 else -1.0
    several = np.zeros((300, 2))
    cases = [(changed(y, invalid), nothing), (y, changed(nothing, 51.0)), (y, several)]
    pipeline = make_pipeline(skdp.DPStandardScaler(), model)
    budget = skdp.PrivacyBudget(50.0, 1e-6)
    terms = {"target_range": (0, 10), "privacy": skdp.Privacy(budget=budget)}
    for targets, offset in cases:
        inside = skdp.data.Chunks(X, targets, 100, offset=offset)
        for given, beside in [((X, targets), {"offset": offset}), ((inside,), {})]:
            for one in (model, pipeline):
                with pytest.raises(ValueError, match=r"y must be|offset"):
                    DPSearchCV(one, {}, n_candidates=2, **terms).fit(*given, **beside)
                with pytest.raises(ValueError, match=r"y must be|offset"):
                    dp_cross_validate(one, *given, **terms, **beside)
    assert budget.n_fits == 0
