"""Pickles of fitted models: one that is stored, and those of other versions.

PYTHONPATH=. python tests/fitting/test_pickles.py    # stores a pickle anew, until 0.1.0 is released
"""

from __future__ import annotations

import pickle
import pickletools
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

import skdp
from skdp._fitting import estimator as path

STORED = Path(__file__).parent / "models_0_1_0.pkl"
ROWS = np.linspace(-2.0, 2.0, 12).reshape(4, 3)


def models():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3))
    y = X @ [1.0, -0.5, 0.0] + rng.standard_normal(4000)
    return {
        "ridge": skdp.DPRidge(inference=True).fit(X, y),
        "logistic": skdp.DPLogisticRegression(classes=["no", "yes"]).fit(
            X, np.where(y > 0, "yes", "no")
        ),
        "scaler": skdp.DPStandardScaler().fit(X),
    }


def answers(model):
    predict = getattr(model, "decision_function", getattr(model, "predict", None))
    return model.transform(ROWS) if predict is None else predict(ROWS)


def test_a_stored_pickle_is_read():
    """Predictions, intervals and statements are those of the version that stored it."""
    with warnings.catch_warnings(action="error"):
        stored = pickle.loads(STORED.read_bytes())
    for model, expected, statement in stored.values():
        np.testing.assert_allclose(answers(model), expected, rtol=1e-12)
        assert model.privacy_.to_dict() == statement
    assert stored["ridge"][0].conf_int().shape == (3, 2)


def test_a_pickle_holds_numbers_and_classes_of_skdp():
    operations = [(op.name, arg) for op, arg, _ in pickletools.genops(STORED.read_bytes())]
    texts = [arg for _, arg in operations if isinstance(arg, str)]
    modules = {text for text in texts if text.startswith(("skdp.", "numpy", "sklearn"))}
    assert {one.partition(".")[0] for one in modules} == {"numpy", "skdp"}
    assert "GLOBAL" not in {name for name, _ in operations}, "protocol 4 or later"


def test_another_version_is_warned_of(monkeypatch):
    written = pickle.dumps(skdp.DPRidge())
    monkeypatch.setattr(path, "__version__", "9.9.9")
    with pytest.warns(InconsistentVersionWarning, match=r"DPRidge from version .* 9\.9\.9"):
        read = pickle.loads(written)
    assert not any("version" in name for name in vars(read))


if __name__ == "__main__":
    kept = {name: (one, answers(one), one.privacy_.to_dict()) for name, one in models().items()}
    STORED.write_bytes(pickle.dumps(kept))
