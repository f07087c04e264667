"""Fixtures for the tests of your own solvers and estimators.

Put ``pytest_plugins = ["skdp.audit.fixtures"]`` into ``conftest.py``.
"""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.base import BaseEstimator

from skdp.audit.comparing import ReplayReport
from skdp.audit.replaying import replay

ADJACENCIES = ("zero_out", "replace_one")


@pytest.fixture(params=ADJACENCIES)
def assert_private(request: pytest.FixtureRequest) -> Callable[..., ReplayReport]:
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
