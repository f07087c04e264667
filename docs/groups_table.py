"""Write the tables of the page on groups from benchmarks/results/groups.csv.

python docs/groups_table.py > docs/how_to/groups_tables.inc
"""

from __future__ import annotations

import csv
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "groups.csv"
METHODS = ("average, then clip", "clip, then average", "group privacy", "one row", "rows")
BY_HAND = "clip times "
INTRODUCTION = """\
From ``{command}``. R2 on new data, where each group counts once, and its standard error; (!) where
a rival is not behind "average, then clip" by two standard errors of the paired difference. "group
privacy" keeps at most k rows of each group and fits rows with a mu k times smaller, k being the
guess; "one row" keeps one random row of each group.
"""


def cells(rows):
    """Rows of the file by data, k, correlation and epsilon."""
    found = {}
    for row in rows:
        key = row["data"], row["k"], row["correlation"], row["epsilon"]
        found.setdefault(key, {})[row["method"]] = row
    return found


def figure(cell, name):
    """Score and its standard error; (!) where a rival is not behind by two standard errors."""
    row = cell[name]
    behind = float(row["behind"]) > 2 * float(row["behind_se"])
    mark = " (!)" if name in ("group privacy", "one row") and not behind else ""
    return f"{float(row['score']):.3f} ± {float(row['score_se']):.3f}{mark}"


def table(title, heads, lines):
    print(f".. list-table:: {title}\n   :header-rows: 1\n")
    for line in (heads, *lines):
        print("\n".join(("   * - " if not i else "     - ") + text for i, text in enumerate(line)))
    print()


def simulated(cell):
    """The line of a simulated panel: scores, and what the default clipping norm costs."""
    default = {**cell[METHODS[0]], "method": f"{BY_HAND}1"}
    tried = [default, *(row for name, row in cell.items() if name.startswith(BY_HAND))]
    best = max(tried, key=lambda row: float(row["score"]))
    # R2 is at most a half: half of the variance is error.
    excess = [0.5 - float(row["score"]) for row in (cell[METHODS[0]], best)]
    by_hand = f"{excess[0] / excess[1]:.2f} (times {best['method'].removeprefix(BY_HAND)})"
    return [*(figure(cell, name) for name in METHODS[:4]), by_hand]


def main():
    with RESULTS.open(encoding="utf-8") as file:
        command = file.readline().removeprefix("# made by: ").strip().replace("; ", "``, ``")
        rows = list(csv.DictReader(file))
    times = [row for row in rows if row["data"].startswith("time")]
    intervals = [row for row in rows if row["data"].startswith("coverage")]
    all_cells = cells(row for row in rows if row not in times + intervals)
    print(INTRODUCTION.format(command=command))
    table(
        "Simulated panels: 1000 groups, 8 columns, epsilon 1, delta 1e-6; at most 0.5",
        ["k", "correlation within", *METHODS[:4], "loss over that of the best clipping norm"],
        [
            [k, correlation, *simulated(cell)]
            for (data, k, correlation, _), cell in all_cells.items()
            if data == "simulated"
        ],
    )
    table(
        'Real panels; "rows" protects rows alone',
        ["data", "k", "epsilon", *METHODS],
        [
            [data, k, epsilon, *(figure(cell, name) for name in METHODS)]
            for (data, k, _, epsilon), cell in all_cells.items()
            if data != "simulated"
        ],
    )
    held = cells(intervals)
    table(
        "Share of 95% intervals that hold the truth: 2000 groups of 1 to 9 rows, 5 columns",
        ["model", "correlation within", "epsilon", *next(iter(held.values()), ())],
        [
            [
                data.removeprefix("coverage, "),
                correlation,
                epsilon,
                *(
                    f"{float(row['score']):.3f} ± {float(row['score_se']):.3f}"
                    for row in cell.values()
                ),
            ]
            for (data, _, correlation, epsilon), cell in held.items()
        ],
    )
    for row in times:
        what = f'{row["data"].capitalize()}, k = {row["k"]}, solver "gd", 100 steps'
        print(f'{what}, over that without groups: {row["score"]} with "{row["method"]}".')


if __name__ == "__main__":
    main()
