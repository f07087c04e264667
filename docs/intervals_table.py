"""Write the tables of coverage and width, from the results of the benchmark.

python docs/intervals_table.py > docs/how_to/intervals_table.inc
"""

import csv
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "inference.csv"
COLUMNS = (
    ("columns", "columns"),
    ("errors", "errors"),
    ("runs", "runs"),
    ("determined", "determined"),
    ("naive", "naive"),
    ("coverage", "coverage"),
    ("least", "worst"),
    ("intercept", "intercept"),
    ("width", "width"),
)
EPSILON = 1.0


def read(path=RESULTS):
    """Return the command that made the results, and their lines."""
    command, *lines = path.read_text(encoding="utf-8").splitlines()
    return command.removeprefix("# "), list(csv.DictReader(lines))


def text(command, lines) -> str:
    """Return the tables."""
    command, _, remark = command.partition(" (")
    remark = f" ({remark}" if remark else ""
    found = [
        f"Raw columns with private scaling, epsilon {EPSILON:g}, delta 1e-6, from ``{command}``"
        f"{remark}. "
        'Coverage is the mean over determined coefficients, "worst" the least of one coefficient; '
        "a mean over r runs of d coefficients that cover 0.95 has a standard error of about "
        "0.22 / sqrt(r d). Widths are next to those without privacy. Other budgets and "
        "standardised columns are in ``benchmarks/results/inference.csv``.",
    ]
    for problem in ("linear", "logistic"):
        for n in ("2000", "10000", "100000"):
            chosen = [
                line for line in lines
                if (line["problem"], line["n"], line["condition"]) == (problem, n, "raw")
                and float(line["epsilon"]) == EPSILON
            ]  # fmt: skip
            if chosen:
                found += [_table(f"{problem.capitalize()}, n = {int(n):,}", chosen)]
    return "\n\n".join(found) + "\n"


def _table(title, lines) -> str:
    head = ["d", *(shown for _, shown in COLUMNS)]
    rows = [head, *([line["d"], *(line[name] or "-" for name, _ in COLUMNS)] for line in lines)]
    table = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in rows:
        table += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join(table)


if __name__ == "__main__":
    print(text(*read()), end="")
