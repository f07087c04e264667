"""Tables of coefficients and HTML for notebooks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import skdp

X, Y = load_breast_cancer(return_X_y=True)


def test_table_of_coefficients():
    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    model = skdp.DPRidge(epsilon=10.0).fit(frame, y)
    table = model.coefficients()
    assert set(table.index) == set(frame.columns)
    assert table.loc[frame.columns, "coefficient"].tolist() == model.coef_.tolist()
    sizes = model.scaling_.columns.scale
    assert table.loc[frame.columns, "effect"].tolist() == (model.coef_ * sizes).tolist()
    assert table["effect"].abs().is_monotonic_decreasing
    several = skdp.DPLogisticRegression(classes=[0, 1, 2], epsilon=20.0).fit(
        *load_iris(return_X_y=True)
    )
    found = several.coefficients()
    assert list(found) == ["coefficient 0", "coefficient 1", "coefficient 2", "effect"]
    assert isinstance(found, pd.DataFrame)


def test_rates_have_intervals(rng):
    X = pd.DataFrame(rng.standard_normal((5000, 2)), columns=["a", "b"])
    model = skdp.DPPoissonRegressor(inference="coefficients").fit(X, rng.poisson(np.exp(X["a"])))
    table = model.coefficients().loc[["a", "b"]]
    assert table[["lower", "upper"]].to_numpy() == pytest.approx(np.exp(model.conf_int()))
