"""CSV files of results: their first lines are comments, the commands that made them."""

from __future__ import annotations

import csv
from pathlib import Path


def read(path: Path) -> tuple[list[str], list[dict]]:
    """Return the comments and the rows, every cell as text; none if there is no file."""
    if not path.exists():
        return [], []
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line[2:] for line in lines if line.startswith("# ")]
    return comments, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def write(path: Path, comments, columns, rows) -> None:
    """Write all at once, so that an interrupted run leaves the old file."""
    part = path.with_name(path.name + ".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {comment}\n" for comment in comments)
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)
