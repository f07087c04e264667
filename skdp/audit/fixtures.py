"""Fixtures for the tests of your own solvers and estimators.

Put ``pytest_plugins = ["skdp.audit.fixtures"]`` into ``conftest.py``.
"""

from typing import Any, Protocol

import pytest
from sklearn.base import BaseEstimator

from skdp.audit.comparing import ReplayReport
from skdp.audit.replaying import replay

ADJACENCIES = ("zero_out", "replace_one")


class AssertPrivate(Protocol):
    """Return a check of an estimator, which returns the report if it passes."""

    def __call__(self, estimator: BaseEstimator, *data: Any, **options: Any) -> ReplayReport: ...


@pytest.fixture(params=ADJACENCIES)
def assert_private(request: pytest.FixtureRequest) -> AssertPrivate:
    """Replay an estimator under the adjacency at hand. A test with it runs under both.

    Examples
    --------
    ::

        def test_my_solver(assert_private):
            assert_private(DPRidge(solver=MySolver()))
    """

    def check(estimator: BaseEstimator, *data: Any, **options: Any) -> ReplayReport:
        report = replay(estimator, *data, **{"adjacency": request.param, **options})
        assert report.ok, f"\n{report}"
        return report

    return check
