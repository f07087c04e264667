"""Hostile rows of every form, and sums over them in numpy and in compiled loops."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from skdp._oracle import Columns, Scaling, compiled
from skdp._oracle.sources.memory import MemorySource
from skdp.objective import (
    Huber,
    Logistic,
    Multinomial,
    SmoothedHinge,
    SmoothedPinball,
    SquaredError,
)
from skdp.objective.tweedie import TweedieLog

# Each with its number of outputs.
LOSSES = [
    (SquaredError(), 1),
    (SquaredError(), 2),
    (Logistic(), 1),
    (Huber(0.7), 1),
    (Multinomial(3), 3),
    (SmoothedPinball((0.3,)), 1),
    (SmoothedPinball((0.1, 0.5, 0.9)), 3),
    (SmoothedHinge(), 1),
    (SmoothedHinge(3), 3),
    *((TweedieLog(power, unit=0.7, base=1.0), 1) for power in (1.0, 1.5, 2.0)),
]
HOSTILE = [0.0, -0.0, 5e-324, -1e-310, 1e-170, 1e-30, 1.0, -3.0, 1e5, 1e154, -1e200, 1.7e308]
N_COLUMNS, CLIP = 3, 0.3
FORMS = ("dense", "columns first", "single precision", "mapped", "sparse", "sparse with a base")


def hostile_rows(form, loss, n_outputs, n_rows=300):
    """Yield rows of hostile numbers beside common ones; with weights and bounds, or without."""
    rng = np.random.default_rng(0)
    few = [x for x in HOSTILE if form != "single precision" or abs(x) < 1e38]
    X = rng.choice(few, (n_rows, N_COLUMNS)) * rng.choice([1.0, 1.0, 0.3], (n_rows, N_COLUMNS))
    X[::2] = rng.standard_normal(X[::2].shape)
    targets = rng.choice([0.0, 1.0], (n_rows, n_outputs))
    if isinstance(loss, Multinomial):
        targets = rng.integers(n_outputs, size=n_rows)
    weights = rng.choice([0.0, 1e-300, 0.5, 1.0, 1e300], n_rows)
    ones = np.ones(N_COLUMNS)
    if form == "single precision":
        X = X.astype(np.float32)
    if form == "columns first":
        X = np.asfortranarray(X)
    if form.startswith("sparse"):
        X = sparse.csr_array(X)
        X.data[::7] = 0.0
    centre = 0.25 * ones if form != "sparse" else 0.0 * ones
    in_units = Scaling(Columns(-2 * ones, 9 * ones, centre, 3 * ones))
    for row_bound, constant in ((None, 0.5), (1.5, 1.0), (None, 0.0)):
        for given in (None, weights):
            rows = MemorySource.of(X, targets, given, row_bound, constant)
            yield rows.transformed(in_units, row_bound) if form in FORMS[3:] else rows


def both_ways(compute, *arguments, **options):
    with compiled.switched(False):
        by_numpy = compute(*arguments, **options)
    with compiled.switched(True):
        by_loops = compute(*arguments, **options)
        assert compiled.is_active()  # no loop failed
    return by_numpy, by_loops
