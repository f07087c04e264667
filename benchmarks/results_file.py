"""CSV files of results: their first lines are comments, the commands that made them."""

from __future__ import annotations

import csv
import math
from pathlib import Path


def read(path: Path) -> tuple[list[str], list[dict]]:
    """Return the comments and the rows, every cell as text; none if there is no file."""
    if not path.exists():
        return [], []
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line[2:] for line in lines if line.startswith("# ")]
    return comments, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def refuse_unknown(names, known, kind="data sets") -> None:
    """Stop if a name is not among those that are known."""
    if unknown := sorted(set(names) - set(known)):
        raise SystemExit(f"unknown {kind} {unknown}; known: {sorted(known)}")


def add(path: Path, command: str, columns, lines: list[dict], found, digits=3) -> None:
    """Add results to the lines of a file as text, print them, and write all anew."""
    for one in found:
        lines.append({name: _text(one.get(name, ""), digits) for name in columns})
        print(", ".join(f"{name} {text}" for name, text in lines[-1].items()), flush=True)
    write(path, [command], columns, lines)


def _text(value, digits) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if math.isnan(value) else f"{value:.{digits}g}"


def write(path: Path, comments, columns, rows) -> None:
    """Write all at once, so that an interrupted run leaves the old file."""
    part = path.with_name(path.name + ".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {comment}\n" for comment in comments)
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)
