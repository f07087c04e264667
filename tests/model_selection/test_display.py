"""Score against epsilon, tables and what notebooks show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.pipeline import make_pipeline

import skdp
from skdp.model_selection import PrivacyUtilityDisplay

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")
X, Y = load_breast_cancer(return_X_y=True)
SPLIT = X[:400], Y[:400], X[400:], Y[400:]


def test_scores_at_each_budget():
    model = make_pipeline(
        skdp.DPStandardScaler(scaling=skdp.PublicRange(0, 5000)),
        skdp.DPLogisticRegression(classes=[0, 1]),
    )
    display = PrivacyUtilityDisplay.from_estimator(
        model, *SPLIT, epsilons=[0.5, 20.0], scoring="neg_log_loss"
    )
    assert display.scores.shape == (2, 3)
    assert np.isfinite(display.scores).all()
    assert display.total.epsilon > 20
    display.references = {"not private": -0.1}
    display.plot()
    assert display.ax_.get_xlabel() == "epsilon"
    assert display.ax_.get_ylabel() == "neg_log_loss"
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["private", "not private"]
    assert display.plot(ax=display.ax_).figure_ is display.ax_.figure
    assert model[-1].epsilon == 1.0  # clones were fitted


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="epsilons must"):
        PrivacyUtilityDisplay.from_estimator(skdp.DPLogisticRegression(), *SPLIT, epsilons=[])


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


def test_notebooks_show_budgets_and_statements():
    with skdp.PrivacyBudget(3.0, 1e-6) as budget:
        skdp.DPLogisticRegression(classes=[0, 1]).fit(X, Y)
    shown = budget._repr_html_()
    assert "&lt;PrivacyBudget: epsilon=3" in shown
    assert " x gradient, noise multiplier" in shown
