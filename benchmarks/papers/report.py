"""Run the experiments of a paper, and write a table, a figure and a verdict beside each other."""

from __future__ import annotations

import importlib
import tempfile
import time
import warnings
from pathlib import Path

from benchmarks import results_file
from benchmarks.table import mean_and_error
from skdp import NoiseWarning, PrivacyWarning
from skdp.accounting import Adjacency, calibrate

RESULTS = Path(__file__).parent / "results"
PAPERS = ("h22", "w17", "wu21", "k22", "v22")
NAMES = (*PAPERS, "pure")


def columns_of(name, values):
    """Return the mean and its standard error, as two columns."""
    mean, error = mean_and_error(values)
    return {name: f"{mean:.6g}", f"{name}_error": f"{error:.3g}"}


def shown(row, name, digits=2):
    """Return a mean and its standard error as text."""
    return f"{row[name]:.{digits}g}+-{row[f'{name}_error']:.1g}"


def errorbar(ax, rows, x, y, **style):
    """Draw column ``y`` of some rows against column ``x``, with its standard error."""
    values = ([row[name] for row in rows] for name in (x, y, f"{y}_error"))
    ax.errorbar(*values, capsize=2, **style)


def chosen(rows, **wanted):
    """Return the rows that have these values."""
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


class Report:
    """Rows of a table as they come in.

    Attributes
    ----------
    quick : bool
        Whether the experiment is a small one, on rows that need no download.
    """

    def __init__(self, quick):
        self.quick, self.rows = quick, []

    def add(self, **row):
        self.rows.append(row)
        print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)

    def add_noise(self, run, noise, adjacency="zero_out"):
        """Add what the printed noise of a run costs, and its ratio to the noise that suffices."""
        exact = calibrate(noise.event, noise.epsilon, noise.delta, Adjacency.parse(adjacency))
        self.add(
            part="noise",
            run=run,
            epsilon=noise.epsilon,
            true_epsilon=f"{noise.true_epsilon(adjacency):.4g}",
            ratio=f"{1 / exact.scale:.4g}",
        )


def cost_of_noise(rows):
    """Yield the lines of a verdict on what the printed noise costs."""
    for row in chosen(rows, part="noise"):
        yield (
            f"The printed noise keeps to the budget ({row['run']})",
            f"costs epsilon {row['true_epsilon']:,.4g}, {row['epsilon']:g} is named; noise "
            f"{row['ratio']:.2g} times what that needs",
            "holds" if row["true_epsilon"] <= row["epsilon"] else "does not hold",
        )


def number(cell):
    """Return a cell of a file as a number, if it is one."""
    try:
        return float(cell)
    except ValueError:
        return cell


def read(path):
    """Return the rows of a file, with numbers in place of their text."""
    rows = results_file.read(path)[1]
    return [{key: number(cell) for key, cell in row.items() if cell != ""} for row in rows]


def as_table(lines):
    """Return the verdict as a table in reStructuredText, for the page of the paper."""
    cells = [("The paper's claim", "Here", "Verdict"), *lines]
    text = "\n".join(
        f"   * - {first}\n     - {second}\n     - {third}" for first, second, third in cells
    )
    return f".. list-table::\n   :header-rows: 1\n   :widths: 34 50 16\n\n{text}\n"


def judge(module, name, folder):
    """Write the verdict on the rows of a file, and draw them."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = read(folder / f"{name}.csv")
    lines = list(module.verdict(rows))
    (folder / f"{name}.inc").write_text(as_table(lines), encoding="utf-8")
    figure = module.draw(rows, plt)
    figure.savefig(folder / f"{name}.png", dpi=110)
    plt.close(figure)
    for line in lines:
        print(f"- {line[0]}: {line[1]}. {line[2].capitalize()}.")


def run(names, quick=False, only_judge=False, folder=None):
    """Run experiments by name; all five papers by default.

    Parameters
    ----------
    names : list of str
    quick : bool
        Whether to run small experiments, which need no download.
    only_judge : bool
        Whether to judge and draw the rows of the last run.
    folder : Path, optional
        Where to write; by default the folder of results, or a new one for quick runs.
    """
    results_file.refuse_unknown(names, NAMES, "experiments")
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="skdp-papers-")) if quick else RESULTS
    folder.mkdir(exist_ok=True, parents=True)
    for name in names or PAPERS:
        module = importlib.import_module(f"benchmarks.papers.{name}")
        print(f"\n{name}: {module.__doc__.splitlines()[0]}")
        if not only_judge:
            report, start = Report(quick), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                warnings.simplefilter("ignore", NoiseWarning)
                module.run(report)
            columns = list(dict.fromkeys(key for row in report.rows for key in row))
            seconds = f"{time.process_time() - start:.0f} s of processor time"
            command = f"python -m benchmarks papers {name}{' --quick' if quick else ''}"
            comments = [f"made by: {command}", f"in: {seconds}"]
            results_file.write(folder / f"{name}.csv", comments, columns, report.rows)
        if quick:
            print("These runs are small: they show that all works, not which claims hold.")
        judge(module, name, folder)
        print(f"Written: {folder / name}.csv, .png and .inc")
