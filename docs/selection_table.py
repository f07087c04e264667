"""Write the table of private searches, from benchmarks/results/selection.csv.

python docs/selection_table.py > docs/how_to/selection_table.inc
"""

import csv
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "selection.csv"
METHODS = ("default", "DPSearchCV", "by Renyi DP", "a third of epsilon", "GridSearchCV")


def main() -> None:
    head, *lines = RESULTS.read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(lines))
    cells: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        name = f"{row['data']} ({row['rows']})", row["grid"], row["epsilon"]
        cells.setdefault(name, {})[row["method"]] = row
    text = [
        f".. {head.removeprefix('# ')}",
        "",
        ".. list-table:: Score on test rows (accuracy, or R2); for searches, the difference to the "
        "default and its standard error",
        "   :header-rows: 1",
        "",
    ]
    titles = ("data (rows)", "grid", "epsilon", *METHODS)
    for line in (titles, *((*name, *map(_cell, METHODS, [cells[name]] * 5)) for name in cells)):
        text += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(line)]
    print(*text, sep="\n")


def _cell(method: str, found: dict[str, dict[str, str]]) -> str:
    row = found[method]
    if method == "default":
        return f"{float(row['score']):.3f}"
    return f"{float(row['gain']):+.3f} ± {float(row['gain_error']):.3f}"


if __name__ == "__main__":
    main()
