"""What the tests of estimators and budgets share."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import skdp
from skdp._oracle.oracle import Oracle


@pytest.fixture
def asked(monkeypatch):
    """Answers about rows."""
    answers = []
    ask = Oracle.request

    def counted(self, release):
        if self._source is not None:
            answers.append(release)
        return ask(self, release)

    monkeypatch.setattr(Oracle, "request", counted)
    return answers


@pytest.fixture(
    params=[
        skdp.DPLinearRegression,
        skdp.DPRidge,
        skdp.DPElasticNet,
        skdp.DPHuberRegressor,
        skdp.DPPoissonRegressor,
        skdp.DPLogisticRegression,
    ],
    ids=lambda cls: cls.__name__,
)
def case(request, classification, regression):
    """An estimator class, with its labels declared, and data that suit it."""
    is_classifier = request.param is skdp.DPLogisticRegression
    X, y = classification if is_classifier else regression
    if request.param in (skdp.DPElasticNet, skdp.DPLasso):
        y = 100 * y  # in smaller units, alpha=1 leaves no coefficient
    if request.param is skdp.DPPoissonRegressor:
        y = np.exp(y - y.mean())
    estimator = request.param
    if is_classifier:
        estimator = partial(estimator, classes=[0, 1])
        estimator.__name__, estimator.__doc__ = request.param.__name__, request.param.__doc__
    return estimator, X, y
