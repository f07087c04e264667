"""What the tests of estimators and budgets share."""

from __future__ import annotations

import pytest

import skdp
from skdp.oracle.oracle import Oracle


@pytest.fixture
def asked(monkeypatch):
    """Answers about rows."""
    answers = []
    ask = Oracle.ask

    def counted(self, release):
        if self._source is not None:
            answers.append(release)
        return ask(self, release)

    monkeypatch.setattr(Oracle, "ask", counted)
    return answers


@pytest.fixture(
    params=[
        skdp.DPLinearRegression,
        skdp.DPRidge,
        skdp.DPElasticNet,
        skdp.DPLasso,
        skdp.DPHuberRegressor,
        skdp.DPLogisticRegression,
    ],
    ids=lambda cls: cls.__name__,
)
def case(request, classification, regression):
    """An estimator class and data that suit it."""
    is_classifier = request.param is skdp.DPLogisticRegression
    X, y = classification if is_classifier else regression
    if issubclass(request.param, skdp.DPElasticNet):
        y = 100 * y  # in smaller units, alpha=1 leaves no coefficient
    return request.param, X, y
