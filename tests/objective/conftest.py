"""Every loss, penalty and constraint, and a generic optimiser to compare them with.

A test with an argument `loss`, `penalty` or `constraint` runs once for each of the cases below;
`test_contract.py` fails if a class of the package is not among them. One with an argument `pair`
runs for each penalty and constraint that go together, one with `refused_pair` for the others.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from skdp.objective import (
    Box,
    ElasticNet,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    Multinomial,
    OffsetLogistic,
    OffsetMultinomial,
    Simplex,
    SmoothedHinge,
    SmoothedPinball,
    SquaredError,
    TweedieLog,
    Unconstrained,
)

CASES = {
    "loss": [
        SquaredError(),
        Logistic(),
        Multinomial(2),
        Multinomial(5),
        OffsetLogistic(),
        OffsetMultinomial(3),
        Huber(),
        Huber(0.1),
        SmoothedHinge(),
        SmoothedHinge(3, 0.5),
        SmoothedPinball((0.1, 0.5, 0.9), 0.5),
        TweedieLog(unit=10.0, base=1.0),
        TweedieLog(),
        TweedieLog(1.5),
        TweedieLog(2.0, unit=0.5, base=1.0),
    ],
    "penalty": [
        ElasticNet(),
        ElasticNet(0.8),
        ElasticNet(0.0),
        ElasticNet(0.7, 1.0),
        ElasticNet(0.0, 1.0),
        ElasticNet(1.5, 0.4),
        ElasticNet(1.5, 0.0),
        ElasticNet(1.5, 1.0),
    ],
    "constraint": [
        Unconstrained(),
        L2Ball(1.3),
        L1Ball(1.7),
        Box(-0.5, 0.5),
        Box(0.25, 2.0),  # without 0
        Box(0.0, np.inf),
        Simplex(),
        Simplex(3.5),
    ],
}


def strengths(penalty):
    """Factors of |w|_1 and |w|_2**2 / 2."""
    return penalty.strength * penalty.l1_ratio, penalty.strength * (1 - penalty.l1_ratio)


def go_together(penalty, constraint):
    """An L1 part and a simplex do not go together, everything else does."""
    return not (isinstance(constraint, Simplex) and strengths(penalty)[0] > 0)


PAIRS = list(itertools.product(CASES["penalty"], CASES["constraint"]))
GENERATED = {
    **CASES,
    "proper_set": [one for one in CASES["constraint"] if not isinstance(one, Unconstrained)],
    "pair": [pair for pair in PAIRS if go_together(*pair)],
    "refused_pair": [pair for pair in PAIRS if not go_together(*pair)],
}


def pytest_generate_tests(metafunc):
    for name, cases in GENERATED.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, cases, ids=repr)


@pytest.fixture(scope="session")
def cases():
    return CASES


def minimise(penalty, constraint, w, step):
    """Minimise penalty + |z - w|**2 / (2 step) over the set by SLSQP on z = up - down >= 0."""
    l1, l2 = strengths(penalty)
    w = np.asarray(w, dtype=np.float64)
    d = w.size

    def both(parts):
        z = parts[:d] - parts[d:]
        gap = z - w.ravel()
        value = l1 * parts.sum() + l2 / 2 * z @ z + gap @ gap / (2 * step)
        slope = l2 * z + gap / step
        return value, np.concatenate([slope, -slope]) + l1

    signs = np.vstack([np.eye(d), -np.eye(d)])
    rules = []
    if isinstance(constraint, L2Ball):
        rules = [
            {
                "type": "ineq",
                "fun": lambda v: constraint.radius**2 - np.sum((v @ signs) ** 2),
                "jac": lambda v: -2 * signs @ (v @ signs),
            }
        ]
    elif isinstance(constraint, L1Ball):
        rules = [
            {
                "type": "ineq",
                "fun": lambda v: constraint.radius - v.sum(),
                "jac": lambda v: -np.ones(2 * d),
            }
        ]
    elif isinstance(constraint, Box):
        ends = [(constraint.low, 1.0), (constraint.high, -1.0)]
        rules = [
            {
                "type": "ineq",
                "fun": lambda v, end=end, sign=sign: sign * (v @ signs - end),
                "jac": lambda v, sign=sign: sign * signs.T,
            }
            for end, sign in ends
            if np.isfinite(end)
        ]
    elif isinstance(constraint, Simplex):
        rules = [
            {
                "type": "eq",
                "fun": lambda v: np.sum(v @ signs) - constraint.total,
                "jac": lambda v: signs.sum(axis=1),
            },
            {"type": "ineq", "fun": lambda v: v @ signs, "jac": lambda v: signs.T},
        ]
    start = np.full(2 * d, 0.05)
    found = minimize(
        both,
        start,
        jac=True,
        bounds=[(0, None)] * (2 * d),
        constraints=rules,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    # 8: no descent left within rounding, that is, solved.
    assert found.status in (0, 8), found.message
    return (found.x[:d] - found.x[d:]).reshape(w.shape)


@pytest.fixture(scope="session", name="minimise")
def _minimise():
    return minimise


@pytest.fixture(scope="session", name="strengths")
def _strengths():
    return strengths
