"""Displays draw what the scores say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdp.metrics import ScoreCurveDisplay, ScoreMatrixDisplay, evaluate

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


@pytest.fixture
def scores(classification):
    X, y = classification
    names = ["roc_curve", "calibration_curve", "confusion_matrix", "accuracy"]
    return evaluate(LogisticRegression().fit(X, y), X, y, names, epsilon=5.0)


def test_curves(scores):
    _, ax = pyplot.subplots()
    for name in ("roc_curve", "calibration_curve"):
        display = ScoreCurveDisplay.from_scores(scores, name, ax=ax)
        assert display.ax_ is ax
        x, y, _ = scores[name].value
        np.testing.assert_array_equal(display.line_.get_xdata(), x)
        np.testing.assert_array_equal(display.line_.get_ydata(), y)
        low, high = scores[name].band()
        corners = display.band_.get_paths()[0].vertices[:, 1]
        assert corners.min() == pytest.approx(low.min())
        assert corners.max() == pytest.approx(high.max())
    with pytest.raises(ValueError, match="is not a curve"):
        ScoreCurveDisplay.from_scores(scores, "accuracy")
    pyplot.close("all")


def test_confusion_matrix(scores):
    display = ScoreMatrixDisplay.from_scores(scores)
    np.testing.assert_array_equal(display.im_.get_array(), scores["confusion_matrix"].value)
    assert len(display.text_) == 4
    assert " to " in display.text_[0].get_text()
    pyplot.close("all")
