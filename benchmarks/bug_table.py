"""Which check raises the alarm on which seeded bug: replay, canaries, or tests of the contract."""

from __future__ import annotations

import csv
import itertools
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from benchmarks.bugs import BUGS, GROUPS, UNNOTICED
from skdp import audit
from skdp._fitting import estimator as fits
from skdp._oracle import compiled

CONTRACT = [
    "tests/oracle/test_boundary.py",
    "tests/oracle/test_hostile_solvers.py",
    "tests/oracle/test_noise.py",
    "tests/oracle/releases/test_mechanisms.py",
    "tests/oracle/sources/test_groups.py",
    "tests/fitting/test_ledger.py",
    "tests/linear_model/test_parts_of_people.py",
    "tests/linear_model/test_prior.py::test_two_fits_cost_what_one_does",
    "tests/audit/test_replay_matrix.py",
]
N_FITS = 400  # with and without a canary


def alarm(name):
    """Seed a bug; return the alarms of replay and canaries."""
    _, seed, estimator = BUGS[name]
    warnings.simplefilter("ignore")
    found = []
    with pytest.MonkeyPatch.context() as patch:
        fits._plans.clear()
        seed(patch)
        # Loops take the place of numpy for good once they are loaded.
        for adjacency, by_loops in itertools.product(("zero_out", "replace_one"), (False, True)):
            with compiled.switched(by_loops):
                report = audit.replay(estimator(adjacency), groups=GROUPS.get(name))
            found += [finding.text for finding in report.findings]
            if found:
                break
        canary = False
        try:
            suited = estimator("replace_one")
            with compiled.switched(False):
                shown = audit.canaries(suited, n_fits=N_FITS, confidence=0.999)
            canary = not shown.ok
        except Exception as error:
            print(f"  {name}: no canaries, {type(error).__name__}: {error}", file=sys.stderr)
    return (found[0] if found else ""), canary


class Seeded:
    """Seeds a bug in a run of pytest."""

    def __init__(self, name):
        self.name = name

    @pytest.fixture(autouse=True)
    def seeded(self, monkeypatch):
        BUGS[self.name][1](monkeypatch)


def contract_alarm(name):
    """Return the first test of the contract that fails with a bug; "" if none does."""
    code = (
        "import sys, pytest; from benchmarks.bug_table import Seeded, CONTRACT; "
        "sys.exit(pytest.main(['-x', '-q', '-p', 'no:cacheprovider', *CONTRACT], "
        f"plugins=[Seeded({name!r})]))"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split()[1].partition("[")[0] if failed else ""


def run(output, names=()):
    """Seed every bug and write down who raised the alarm."""
    rows = []
    for name in names or BUGS:
        told, canary = alarm(name)
        # The contract's tests take longer; they are asked where the audits are silent.
        is_known = told or canary or name in UNNOTICED
        test = UNNOTICED.get(name, "") if is_known else contract_alarm(name)
        rows.append([BUGS[name][0], told, "alarm" if canary else "", test])
        print(rows[-1], flush=True)
    if output is not None:
        with output.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["bug", "replay", "canaries", "contract"])
            writer.writerows(rows)
    silent = [row[0] for row in rows if not any(row[1:])]
    hostile = sum(row[3] in UNNOTICED.values() for row in rows)
    print(f"{len(rows)} bugs, {hostile} by hostile code; {len(silent)} others unnoticed: {silent}")
    return rows
