"""Data, estimators and the replay harness that the tests share."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import secrets
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from sklearn.base import BaseEstimator

from skdp._fitting import estimator as fits
from skdp._fitting import rows
from skdp._oracle import compiled, exact_sampling
from skdp._stages.scaling.weights import WeightStage
from skdp.audit.recording import ReplayMismatch, record
from skdp.audit.replaying import ReplayComparison

# Benchmarks and the scripts of the documentation are not installed: they lie beside the tests.
sys.path.append(str(Path(__file__).parents[1]))

# Every fit, clone and repr inspects signatures, which stay as they are.
BaseEstimator._get_param_names = classmethod(
    functools.cache(BaseEstimator._get_param_names.__func__)
)

# Secure noise has other bits in each fit, but the same bits in each run of a test: a bound that
# holds with probability .999 would fail one run in a thousand. Forked processes draw anew. Examples
# of hypothesis are the same in each run as well.
BITS, START = np.random.default_rng(7), np.random.default_rng(7).bit_generator.state
PROCESS = os.getpid()
assert (exact_sampling.os, rows.secrets) == (os, secrets)  # in use outside of tests
exact_sampling.os = SimpleNamespace(
    urandom=lambda n: BITS.bytes(n) if os.getpid() == PROCESS else os.urandom(n),
    getpid=lambda: os.getpid(),
)
rows.secrets = SimpleNamespace(token_bytes=BITS.bytes)  # keys of random divisions

settings.register_profile("repeatable", derandomize=True, database=None)
settings.load_profile("repeatable")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Begin the bits of noise anew, before fixtures are made."""
    BITS.bit_generator.state = START


gc.disable()  # until the tests are collected: what they are made of is no garbage


def pytest_collection_finish():
    """Collect garbage from now on, seldom, and never look at the tests for it."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


class Leak(AssertionError):  # noqa: N818
    """Something that depends on a row left by another way than a charged release."""


@pytest.fixture
def raw_weights(monkeypatch):
    """Leave out the scale of weights: bounds of releases hold for records of any weight."""
    monkeypatch.setattr(WeightStage, "concerns", lambda problem, parameters: False)


class Replay:
    """Fit on D and record every answer; fit on D' with the recorded answers forced.

    What `skdp.audit.replay` does to one pair of data sets, for models that are made anew.
    """

    def __init__(self, monkeypatch):
        self._patch = monkeypatch

    def check(self, make_model, data, neighbour, adjacency):
        """Raise `Leak` if the two fits differ by more than the ledger was told."""
        self.check_each(make_model, [(data, neighbour)], adjacency)

    def check_each(self, make_model, pairs, adjacency):
        """Raise `Leak` at the first pair whose fits differ; equal first halves are fitted once."""
        comparison, recorded, found = ReplayComparison(), {}, []
        for data, neighbour in pairs:
            contents = pickle.dumps(data)
            if contents not in recorded:
                recorded[contents] = first = record(make_model(), by_name(data))
                first.__dict__["seen"] = functools.cache(first.seen)
            first = recorded[contents]
            second = record(make_model(), by_name(neighbour), first)
            comparison.compare("pair", first, second, adjacency)
            if first.error is not None and not isinstance(first.error, ReplayMismatch):
                raise first.error
            if second.n_reads_outside:
                found.append("rows were read while no release was being answered")
            if comparison.findings or found:
                break
        found += [finding.text for finding in comparison.report("model").findings]
        if found:
            raise Leak("; ".join(found))


def by_name(data):
    return dict(zip(("X", "y", "sample_weight", "groups"), data, strict=False))


@pytest.fixture(autouse=True)
def own_plans(monkeypatch):
    """Plans of earlier fits are kept by parameters and shape: a mutant's must stay in its test."""
    monkeypatch.setattr(fits, "_plans", {})


@pytest.fixture
def compiled_kernels():
    """Compiled loops in place of numpy's for rows of any shape, where numba is installed."""
    pytest.importorskip("numba", reason="compiled loops need numba: pip install 'skdp[fast]'")
    with compiled.switched(True):
        yield
        assert compiled.is_active()  # no loop failed


@pytest.fixture(params=["numpy", "compiled"])
def either_way(request):
    """The test runs in numpy, and where numba is installed in compiled loops as well."""
    if request.param == "compiled":
        request.getfixturevalue("compiled_kernels")


@pytest.fixture
def replay(monkeypatch):
    return Replay(monkeypatch)


@pytest.fixture
def leak():
    return Leak


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def classification(rng):
    """A well-behaved binary problem of 400 rows."""
    X = rng.standard_normal((400, 5))
    y = (X @ np.array([2.0, -1.0, 0.5, 0.0, 0.0]) + 0.3 * rng.standard_normal(400) > 0.2).astype(
        int
    )
    return X, y


@pytest.fixture
def regression(rng):
    """A well-behaved regression problem of 400 rows."""
    X = rng.standard_normal((400, 5))
    return X, X @ np.array([1.0, -0.5, 0.25, 0.0, 0.0]) + 0.4 + 0.1 * rng.standard_normal(400)
