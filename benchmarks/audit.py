"""How much of its claim an audit shows: canaries in full-batch gradient descent, repeated."""

from __future__ import annotations

import csv
import time
import warnings

import skdp
from skdp import audit

EPSILON, DELTA = 4.0, 1e-5
COMMON = {"solver": "gd", "scaling": "none", "epsilon": EPSILON, "delta": DELTA}
CASES = {
    "gd, 1 step": lambda: skdp.DPLinearRegression(max_iter=1, **COMMON),
    "gd, 1 step, replace_one": lambda: skdp.DPLinearRegression(
        max_iter=1, privacy=skdp.Privacy(adjacency="replace_one"), **COMMON
    ),
    "gd, 10 steps": lambda: skdp.DPLinearRegression(max_iter=10, **COMMON),
}
COLUMNS = ["case", "repetition", "claimed", "claimed_mu", "epsilon_lower", "mu_lower",
           "epsilon_of_mu", "share", "seconds"]  # fmt: skip


def run(output, command, runs=20, n_fits=5000, cases=("gd, 1 step",)):
    """Repeat the audits; write one row for each."""
    rows = []
    warnings.simplefilter("ignore")
    for case in cases:
        for repetition in range(runs):
            start = time.perf_counter()
            found = audit.canaries(CASES[case](), n_fits=n_fits, random_state=repetition)
            rows.append(
                [
                    case,
                    repetition,
                    found.claim.epsilon,
                    found.claim.mu,
                    found.epsilon_lower,
                    found.mu_lower,
                    found.epsilon_of_mu,
                    found.share,
                    time.perf_counter() - start,
                ]
            )
            print(case, repetition, f"{100 * found.share:.1f} %", flush=True)
    if output is not None:
        with output.open("w", newline="", encoding="utf-8") as file:
            file.write(f"# {command}\n")
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([f"{x:.6g}" if isinstance(x, float) else x for x in r] for r in rows)
    print(*report(rows), sep="\n")
    return rows


def report(rows):
    """Least, mean and largest share of the claim that was shown, for each case."""
    for case in dict.fromkeys(row[0] for row in rows):
        shares = [row[COLUMNS.index("share")] for row in rows if row[0] == case]
        passed = sum(share > 1 for share in shares)
        mean = sum(shares) / len(shares)
        yield (
            f"{case}: {100 * min(shares):.0f} to {100 * max(shares):.0f} % of the claim, mean "
            f"{100 * mean:.0f} %, in {len(shares)} repetitions; passed it {passed} times"
        )
