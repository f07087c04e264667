"""Write the table of linear predictions, from benchmarks/results/linear.csv.

python docs/linear_table.py > docs/how_to/linear_table.inc
"""

import csv
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "linear.csv"
METHODS = {
    "skdp": "default",
    "skdp linear": "linear",
    "skdp linear, clipped": "clipped",
    "skdp linear, bounds": "bounds",
}


def main() -> None:
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        if row["method"] in METHODS:
            name = row["data"].replace("_", " "), f"{float(row['epsilon']):g}"
            cells.setdefault(name, {})[row["method"]] = _cell(row)
    text = [
        ".. list-table:: R2, or accuracy and log loss, on test rows",
        "   :header-rows: 1",
        "",
    ]
    found = [(*name, *(own.get(method, "") for method in METHODS)) for name, own in cells.items()]
    for line in [("data", "epsilon", *METHODS.values()), *found]:
        text += [f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(line)]
    print(*text, sep="\n")


def _cell(row: dict[str, str]) -> str:
    log_loss = f" / {float(row['log_loss']):.3g}" if row["log_loss"] else ""
    return f"{float(row['score']):.3f}{log_loss}"


if __name__ == "__main__":
    main()
