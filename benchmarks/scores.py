"""What a fitted model is worth on test rows."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score

METRICS = ("score", "log_loss", "auc")


def scores_of(model, split) -> dict[str, float]:
    """Accuracy, log loss and, for two classes, AUC; or R2 as the score. Others are nan."""
    if not split.is_classification:
        return {"score": r2_score(split.y_test, model.predict(split.X_test))}
    chances = model.predict_proba(split.X_test)
    labels = model.classes_
    found = {
        "score": accuracy_score(split.y_test, labels[np.argmax(chances, axis=1)]),
        "log_loss": log_loss(split.y_test, chances, labels=labels),
    }
    if len(labels) == 2:
        found["auc"] = roc_auc_score(split.y_test == labels[1], chances[:, 1])
    return found
