"""A table, a figure and a verdict, written beside each other."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from benchmarks import results_file
from benchmarks.registry import Unavailable

RESULTS = Path(__file__).parent / "results"


def mean_and_error(name, values):
    """Mean and its standard error, as two columns."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values))
    return {name: f"{values.mean():.6g}", f"{name}_error": f"{error:.3g}"}


def errorbar(ax, rows, x, y, **style):
    """Draw column ``y`` of some rows over column ``x``, with its error."""
    ax.errorbar(
        [float(row[x]) for row in rows],
        [float(row[y]) for row in rows],
        [float(row[f"{y}_error"]) for row in rows],
        capsize=2,
        **style,
    )


class Report:
    """Rows as they come in; at the end a CSV file, a PNG file and a text."""

    def __init__(self, name):
        self.name, self.command = name, f"python -m benchmarks.papers.{name}"
        self.rows, self.skipped = [], []
        self._started, self._seconds = time.process_time(), None

    def add(self, **row):
        self.rows.append(row)
        print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)

    def attempt(self, what, part, *arguments):
        """Run a part of the experiment, or write down that its data is not here."""
        try:
            part(self, *arguments)
        except Unavailable as reason:
            self.skipped.append(f"{what}: {reason}")
            print(f"skipped {self.skipped[-1]}")

    def run(self, parts, names, verdict, draw):
        """Run the parts of these names, without writing; with no names, run all and write."""
        for name in names or parts:
            self.attempt(name, parts[name])
        if not names:
            judged = ["There is no verdict: parts are missing."] if self.skipped else verdict(self)
            self.finish(judged, draw)

    def reload(self, *numbers):
        """Take the rows of the last complete run, to judge and draw them anew."""
        self.rows = results_file.read(RESULTS / f"{self.name}.csv")[1]
        for row in self.rows:
            for name in numbers:
                row[name] = float(row[name]) if row[name] else row[name]
                if isinstance(row[name], float) and row[name].is_integer():
                    row[name] = int(row[name])
        made = (RESULTS / f"{self.name}.txt").read_text().splitlines()[-1]
        self._seconds = float(made.split(" in ")[-1].split(" s ")[0])

    def finish(self, verdict, draw):
        seconds = self._seconds
        if seconds is None:
            seconds = time.process_time() - self._started
        lines = [*verdict, *(f"Skipped: {reason}" for reason in self.skipped)]
        lines.append(f"Made by `{self.command}` in {seconds:.0f} s of processor time.")
        print("\n" + "\n".join(lines))
        if self.skipped:
            return  # what is there from a complete run stays
        RESULTS.mkdir(exist_ok=True)
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        path = RESULTS / f"{self.name}.csv"
        results_file.write(path, [f"made by: {self.command}"], columns, self.rows)
        (RESULTS / f"{self.name}.txt").write_text("\n".join(lines) + "\n")
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt

        figure = draw(self, plt)
        figure.savefig(RESULTS / f"{self.name}.png", dpi=110)
        plt.close(figure)
