"""Write the table of the constants of scaling, from benchmarks/results/constants.csv.

python docs/constants_table.py > docs/reference/constants_table.inc
"""

import math
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from benchmarks import constants  # noqa: E402
from benchmarks.variants import BELOW  # noqa: E402

RESULTS = DOCS.parent / "benchmarks" / "results" / "constants.csv"
METRICS = ("score", "log_loss")
HEADS = ("constant", "as it is", "below", "score", "log loss", "above", "score", "log loss")


def name_of(row):
    """Module and name of a constant."""
    return f"{row['module']}.{row['constant']}"


def counts(row, what):
    """Return how many figures got better, or worse."""
    return row[what] + row[f"log_loss_{what}"]


def cell(row, metric):
    """Mean gain, bold beyond two standard errors over cells, and cells better and worse."""
    if not row["changed"] or math.isnan(row[metric]):
        return ""
    prefix = "" if metric == "score" else f"{metric}_"
    better, worse = row[f"{prefix}better"], row[f"{prefix}worse"]
    gain = round(row[metric], 4) + 0.0  # no zero has a sign
    mark = "**" if gain and abs(row[metric]) > 2 * row[f"{metric}_se"] else ""
    return f"{mark}{gain:+.4f}{mark} ({better}, {worse})"


def line(own):
    """Return the line of a constant from the rows of its other values."""
    below = [row for row in own if row["at"] in BELOW]
    above = [row for row in own if row["at"] not in BELOW]
    cells = [f"``{name_of(own[0])}``", own[0]["as_it_is"]]
    for some in (below, above):
        for row in some:
            cells += [row["value"], *(cell(row, metric) for metric in METRICS)]
        cells += [""] * 3 * (not some)
    return cells


def most(rows, which):
    """Say which of the values has the largest or the smallest mean gain in score."""
    row = which(rows, key=lambda row: row["score"])
    return f"{row['score']:+.4f} (``{name_of(row)}`` {row['value']} in place of {row['as_it_is']})"


def sentences(command, rows, idle):
    """Say what the table says."""
    moved = [row for row in rows if row["changed"] and not math.isnan(row["score"])]
    n_constants, n_cells = len({name_of(row) for row in rows}), max(row["cells"] for row in rows)
    n_runs = sorted({row["runs"] for row in rows})
    better = sum(counts(row, "better") > counts(row, "worse") for row in moved)
    worse = sum(counts(row, "better") < counts(row, "worse") for row in moved)
    runs = " or ".join(map(str, n_runs))
    yield (
        f"From ``{command}``: {n_cells} cells, each a data set with its kind of target or of "
        f"columns and an epsilon; {runs} {'run' if runs == '1' else 'runs'} a cell, with the same "
        "rows and the same seeds for all values."
    )
    yield (
        f"{len(idle)} of {n_constants} constants change no fit in any cell"
        + (f": {', '.join(f'``{name}``' for name in idle)}." if idle else ".")
    )
    if moved:
        yield (
            f"Of the {len(moved)} values that change some fit, {worse} make more scores and log "
            f"losses worse than better, and {better} the other way round; on average over all "
            f"cells the score changes by {most(moved, min)} to {most(moved, max)}."
        )


def main() -> None:
    """Print sentences and the table."""
    commands, rows = constants.read(RESULTS)
    if not rows:
        print("There are no results yet.")
        return
    by_name: dict[str, list[dict]] = {}
    for row in rows:
        by_name.setdefault(name_of(row), []).append(row)
    idle = [name for name, own in by_name.items() if not any(row["changed"] for row in own)]
    print(*sentences(commands[-1], rows, idle), sep="\n")
    if len(idle) == len(by_name):
        return
    print(
        "\n.. list-table:: Gain at other values: mean over cells, more is better, bold beyond two "
        "standard errors; in brackets cells that are better and worse\n   :header-rows: 1\n"
    )
    lines = [line(own) for name, own in by_name.items() if name not in idle]
    for cells in [HEADS, *lines]:
        print(*(f"   {'*' if i == 0 else ' '} - {text}".rstrip() for i, text in enumerate(cells)),
              sep="\n")  # fmt: skip


if __name__ == "__main__":
    main()
