"""What can fail for its size fails before the budget is charged."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIMITED = """
import resource
import numpy as np
import skdp
from scipy import sparse

X = np.random.default_rng(0).standard_normal((400_000, 20))
if {sparse}:
    X = sparse.csr_array(X)
y = np.arange(400_000) % 2
small = skdp.{model}.fit(X[:100], y[:100])  # libraries are loaded, threads are started
with open("/proc/self/statm") as pages:
    taken = int(pages.read().split()[0]) * resource.getpagesize()
# More than a few vectors of the rows, less than a copy of X.
resource.setrlimit(resource.RLIMIT_AS, (taken + {more}, resource.RLIM_INFINITY))
with skdp.PrivacyBudget(3.0, 1e-7) as budget:
    try:
        skdp.{model}.fit(X, y)
    except MemoryError:
        print("refused", budget.n_fits)
    else:
        print("fitted", budget.n_fits)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
@pytest.mark.parametrize("model", ["DPLogisticRegression(delta=1e-7)", "DPRidge(delta=1e-7)"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_a_fit_that_lacks_memory_costs_nothing(model, is_sparse):
    found = []
    for megabytes in (60, 150, 600):
        code = LIMITED.format(model=model, sparse=is_sparse, more=megabytes << 20)
        run = [sys.executable, "-c", code]
        found.append(subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip())
    assert found == ["refused 0", "refused 0", "fitted 1"]
