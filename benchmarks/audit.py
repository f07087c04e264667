"""How much of its claim an audit shows: canaries in full-batch gradient descent, repeated."""

from __future__ import annotations

import time
import warnings

import skdp
from benchmarks import results_file
from skdp import audit

CASE = "gd, 1 step"
GIVEN = {"solver": "gd", "max_iter": 1, "scaling": "none", "epsilon": 4.0, "delta": 1e-5}
COLUMNS = ("case", "repetition", "claimed", "claimed_mu", "epsilon_lower", "mu_lower",
           "epsilon_of_mu", "share", "seconds")  # fmt: skip


def run(output, command, runs=20, n_fits=5000):
    """Repeat the audit; write one row for each time."""
    rows = []
    warnings.simplefilter("ignore")
    for repetition in range(runs):
        start = time.perf_counter()
        model = skdp.DPLinearRegression(**GIVEN)
        found = audit.canaries(model, n_fits=n_fits, random_state=repetition)
        figures = found.claim.epsilon, found.claim.mu, found.epsilon_lower, found.mu_lower
        seconds = time.perf_counter() - start
        cells = [f"{x:.6g}" for x in (*figures, found.epsilon_of_mu, found.share, seconds)]
        rows.append(dict(zip(COLUMNS, (CASE, repetition, *cells), strict=True)))
        print(repetition, f"{100 * found.share:.1f} %", flush=True)
    if output is not None:
        results_file.write(output, [command], COLUMNS, rows)
    print(*report(rows), sep="\n")
    return rows


def report(rows):
    """Least, mean and largest share of the claim that was shown."""
    shares = [float(row["share"]) for row in rows]
    yield (
        f"{CASE}: {100 * min(shares):.0f} to {100 * max(shares):.0f} % of the claim, mean "
        f"{100 * sum(shares) / len(shares):.0f} %, in {len(shares)} repetitions; passed it "
        f"{sum(share > 1 for share in shares)} times"
    )
