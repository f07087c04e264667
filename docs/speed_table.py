"""Write the table of speed from what was measured, as reStructuredText.

    python docs/speed_table.py > docs/concepts/speed_table.inc

The figures are those of `python -m benchmarks speed`, in benchmarks/results/speed.csv.
"""

import csv
import re
import sys
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "speed.csv"


def met(value, wanted):
    """Whether an aim such as "<= 0.3" is met; None where there is none."""
    aim = re.fullmatch(r"(<=|<|>=) ([0-9.]+)", wanted)
    if aim is None or not value:
        return None
    sign, limit = aim[1], float(aim[2])
    return float(value) >= limit if sign == ">=" else float(value) <= limit


def cell(value, wanted):
    """Return a figure, and its aim if there is one, with a word where it is missed."""
    if not wanted or not value:
        return value
    return f"{value} ({wanted})" if met(value, wanted) is not False else f"**{value}** ({wanted})"


def main():
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    command = lines[0].removeprefix("# made by: ")
    print(f"Measured by ``{command}``. In brackets what is aimed at; bold figures miss it.\n")
    print(".. list-table::\n   :header-rows: 1\n   :widths: 60 20 20\n")
    rows = [("what", "numpy", 'with "fast"')]
    for row in csv.DictReader(lines[1:]):
        rows.append(
            (
                row["what"],
                cell(row["value"], row["wanted"]),
                cell(row["with_fast"], row["wanted_with_fast"]),
            )
        )
    for row in rows:
        print("\n".join(f"   {'* -' if i == 0 else '  -'} {text}" for i, text in enumerate(row)))


if __name__ == "__main__":
    sys.exit(main())
