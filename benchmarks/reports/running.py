"""Run the reports and tabulate what is right, what the package does and the verdict.

Noise is fresh. Tolerances are several standard deviations of the noise, so a verdict "wrong" that
does not come back in a second run is chance.
"""

from __future__ import annotations

import warnings
from collections import Counter
from importlib import import_module

from benchmarks import results_file
from benchmarks.reports.verdicts import REPORTS, VERDICTS, WRONG, Found

COLUMNS = ("kind", "report", "source", "input", "right", "skdp", "verdict")
SKIPPED = "skipped"
SMOKE = ("huge_cells", "object_columns", "no_weight", "separation", "large_epsilons")

for _name in ("formats", "weights", "tools"):
    import_module(f"benchmarks.reports.{_name}")


def outcome(report):
    """The findings of a report as one, with the worst verdict; an error is wrong."""
    try:
        with warnings.catch_warnings(action="ignore"):
            found = report.run()
    except ModuleNotFoundError as error:
        return Found("", f"needs {error.name}", SKIPPED)
    except Exception as error:
        return Found("no error", f"{type(error).__name__}: {error}"[:160], WRONG)
    found = found if isinstance(found, list) else [found]
    worst = max((one.verdict for one in found), key=VERDICTS.index)
    first = {one.verdict: one for one in reversed(found)}[worst]
    more = f" ({len(found)} checks)" if len(found) > 1 else ""
    return Found(first.right + more, first.skdp, worst)


def run(output, command, names=()):
    """Run all reports, or those of these names or kinds, and write their table."""
    known = {*REPORTS, *(report.kind for report in REPORTS.values())}
    results_file.refuse_unknown(names, known, "reports")
    rows = []
    for name, one in REPORTS.items():
        if not names or {name, one.kind} & set(names):
            found = outcome(one)
            row = (one.kind, name, one.source, one.input)
            rows.append(dict(zip(COLUMNS, (*row, *vars(found).values()), strict=True)))
            print(f"{name}: {found.verdict}", flush=True)
    if output is not None and not names:
        results_file.write(output, [command], COLUMNS, rows)
    return rows


def report(rows):
    """How many reports have each verdict, and those that are not right."""
    counts = Counter(row["verdict"] for row in rows)
    yield ", ".join(f"{verdict}: {counts[verdict]}" for verdict in (*VERDICTS, SKIPPED))
    for row in rows:
        if row["verdict"] != VERDICTS[0]:
            yield f"{row['verdict']}: {row['report']}, right is {row['right']}; {row['skdp']}"
