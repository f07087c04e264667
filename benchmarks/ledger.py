"""Race and kill processes that charge one ledger.

PYTHONPATH=. python -m benchmarks.ledger [--races 1000] [--kills 200]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import tempfile
import time
from pathlib import Path

import skdp
from skdp._fitting import budget as budgets
from skdp._fitting import ledger

DELTA = 1e-6
FORK = multiprocessing.get_context("fork")
PLAN = skdp.DPRidge(epsilon=1.0).plan(10_000, 5)
SMALL = skdp.DPRidge(epsilon=0.01).plan(10**6, 5)


def charge(budget, plan):
    budgets.charge("DPRidge", plan, budget, None)


def race(folder, n_races):
    """Two processes at one ledger each time; three charges of epsilon 1 fit into 2."""
    admitted = FORK.Array("i", n_races)
    barrier = FORK.Barrier(2)

    def work():
        for number in range(n_races):
            budget = skdp.PrivacyBudget(2.0, DELTA, ledger=folder / f"race{number}.db")
            barrier.wait()  # the very same moment
            for _ in range(3):
                try:
                    charge(budget, PLAN)
                except skdp.PrivacyBudgetError:
                    continue
                with admitted.get_lock():
                    admitted[number] += 1

    processes = [FORK.Process(target=work) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    wrong = 0
    for number in range(n_races):
        ((*_, n_charges, total),) = ledger.totals(ledger.all_lines(folder / f"race{number}.db"))
        wrong += not (admitted[number] == n_charges == 3 and total <= 2.0)
    print(f"{n_races} races of two processes: {wrong} with another number of charges than 3")


def kill(folder, n_kills):
    """Kill a charging process at a random moment; what it was admitted must be in the ledger."""
    file = folder / "killed.db"
    lost = invented = half_lines = 0
    longest = 0.02  # seconds; a charge takes some 3 ms
    for _ in range(n_kills):
        budget = skdp.PrivacyBudget(100.0, DELTA, ledger=file)
        before = budget.n_fits
        done = FORK.Value("i", 0, lock=False)

        def work(budget=budget, done=done):
            while True:
                charge(budget, SMALL)
                done.value += 1

        process = FORK.Process(target=work)
        process.start()
        while not done.value:
            time.sleep(1e-4)
        time.sleep(random.uniform(0, longest))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        half_lines += ledger.has_half_line(file)
        kept = skdp.PrivacyBudget(100.0, DELTA, ledger=file).n_fits - before
        lost += kept < done.value
        invented += kept > done.value + 1
    lines = ledger.all_lines(file)
    print(
        f"{n_kills} kills: {lost} lost a charge, {invented} had one too many, {half_lines} left a "
        f"half line to undo; {len(lines)} lines, chain complete"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--races", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        race(Path(name), options.races)
        kill(Path(name), options.kills)


if __name__ == "__main__":
    main()
