"""What can fail for its size fails before the budget is charged."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import skdp
from skdp._oracle import compiled
from skdp._oracle.sources import memory

# Limits from less than a copy of X, over those around what is reserved, to ample.
LIMITED = """
import resource, sys
import numpy as np
import skdp
from scipy import sparse
from skdp._oracle.sources.memory import MemorySource

n_rows, is_sparse, is_mutant, limits = (int(sys.argv[1]), *map(eval, sys.argv[2:]))
X, y = np.random.default_rng(0).standard_normal((n_rows, 20)), np.arange(n_rows) % 2
if is_sparse:
    X = sparse.csr_array(X)
if is_mutant:
    MemorySource.reserve = lambda self, transformed: None
for model in (skdp.DPLogisticRegression(delta=1e-7), skdp.DPRidge(delta=1e-7)):
    model.fit(X[:100], y[:100])  # libraries are loaded, threads are started
    for megabytes in limits:
        with open("/proc/self/statm") as pages:
            taken = int(pages.read().split()[0]) * resource.getpagesize()
        limit = taken + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        with skdp.PrivacyBudget(3.0, 1e-7) as budget:
            try:
                model.fit(X, y)
                end = "fitted"
            except MemoryError:
                end = "refused"
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        print(type(model).__name__, end, budget.n_fits)
"""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits memory as Linux does"
)


def ends_of_fits(n_rows, is_sparse, limits, is_mutant=False, threads=1):
    """How fits ended, and how often they were charged, by estimator."""
    given = map(str, (n_rows, is_sparse, is_mutant, limits))
    command = [sys.executable, "-c", LIMITED, *given]
    limited = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=limited)
    ends: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        model, end = line.split(" ", 1)
        ends.setdefault(model, []).append(end)
    return ends


@pytest.mark.parametrize(
    ("n_rows", "is_sparse", "limits", "threads"),
    [
        pytest.param(100_000, False, [5, 50, 90, 400], 2, marks=pytest.mark.slow),
        (40_000, True, [2, 20, 50, 400], 1),
    ],
    ids=["dense", "sparse"],
)
def test_a_fit_that_lacks_memory_costs_nothing(n_rows, is_sparse, limits, threads):
    ends = ends_of_fits(n_rows, is_sparse, limits, threads=threads)
    assert ends.keys() == {"DPLogisticRegression", "DPRidge"}
    for found in ends.values():
        assert len(found) == len(limits)
        assert set(found) == {"refused 0", "fitted 1"}
        assert (found[0], found[-1]) == ("refused 0", "fitted 1")


@pytest.fixture
def two_threads(monkeypatch):
    library = SimpleNamespace(
        info=lambda: [{"num_threads": 2}], limit=lambda limits: contextlib.nullcontext()
    )
    loaded = SimpleNamespace(select=lambda user_api: library)
    monkeypatch.setattr(memory, "_controller", lambda: loaded)


def test_threads_show_no_compilations_of_a_search(two_threads):
    with compiled.quiet(), memory.row_threads() as spread:
        assert list(spread(lambda _: compiled.is_quiet.get(), range(4))) == [True] * 4


def test_threads_that_cannot_be_started(monkeypatch, two_threads):
    """The one that waits for the others does not wait for ever."""
    start, started = threading.Thread.start, []

    def failing(self):
        started.append(self)
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", failing)
    with pytest.raises(MemoryError, match="nothing was charged"), memory.row_threads():
        raise AssertionError("threads have started")
    assert len(started) == 2


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_lack_of_memory_tells_no_number_of_stored_entries(monkeypatch, is_sparse):
    def lacking(*arguments):
        raise OSError

    monkeypatch.setattr(memory.mmap, "mmap", lacking)
    X, y = np.eye(50), np.arange(50.0)
    with skdp.PrivacyBudget(3.0, 1e-6) as budget:
        with pytest.raises(MemoryError, match="Nothing was released") as refusal:
            skdp.DPRidge().fit(sparse.csr_array(X) if is_sparse else X, y)
        assert budget.n_fits == 0
    assert ("MB" in str(refusal.value)) != is_sparse
