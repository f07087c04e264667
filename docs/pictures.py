"""Draw the pictures of the pages from benchmarks/results into docs/generated/pictures.

    python docs/pictures.py

The build of the documentation does that by itself.
"""

import itertools
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from benchmarks import results_file, table, verdict  # noqa: E402
from skdp.accounting import gaussian_mu  # noqa: E402

RESULTS = DOCS.parent / "benchmarks" / "results"
RED, BLUE, GREY, BLACK = "#c0504d", "#1f6f9f", "#9aa3ab", "#333333"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


def rows_of(name):
    """Rows of a file of results, cells as text."""
    return results_file.read(RESULTS / f"{name}.csv")[1]


def of(rows, **wanted):
    """Rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def scores(rows, data, method, condition="raw"):
    """Scores of a method by epsilon; references have one for all."""
    own = of(rows, data=data, method=method, condition=condition) or of(
        rows, data=data, method=method
    )
    return {row["epsilon"]: row["score"] for row in own}


def accuracy():
    """Score against epsilon on every data set of utility.csv."""
    rows = table.read(RESULTS / "utility.csv")[1]
    names = sorted({row["data"] for row in rows})
    figure, panels = plt.subplots(3, 4, figsize=(11, 7), sharex=True)
    for axes, data in zip(panels.flat, names, strict=False):
        high, low = (
            next(iter(scores(rows, data, name).values()))
            for name in (verdict.TWIN, verdict.CONSTANT)
        )
        rivals = of(rows, data=data, kind="rival", condition="standardised")
        for name in {row["method"] for row in rivals}:
            found = scores(rows, data, name, "standardised")
            axes.plot(EPSILONS, [found.get(e, math.nan) for e in EPSILONS], color=GREY, lw=0.8)
        found = scores(rows, data, verdict.DEFAULT)
        axes.plot(EPSILONS, [found[e] for e in EPSILONS], color=RED, lw=2.2, marker="o", ms=4)
        axes.axhline(high, color=BLACK, ls="--", lw=1)
        axes.axhline(low, color=BLACK, ls=":", lw=1)
        height = max(high - low, 0.02)
        axes.set_ylim(low - 0.3 * height, high + 0.2 * height)
        axes.set_xscale("log")
        axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        axes.set_title(data, fontsize=10)
    panels.flat[-1].axis("off")
    for axes in panels[-1]:
        axes.set_xlabel("epsilon")
    figure.tight_layout()
    return figure


def dots():
    """Private, rival, non-private and constant scores at epsilon 1 on one line a data set."""
    rows = table.read(RESULTS / "utility.csv")[1]
    names = sorted({row["data"] for row in rows}, reverse=True)
    figure, axes = plt.subplots(figsize=(8.5, 4.6))
    for place, data in enumerate(names):
        rivals = of(rows, data=data, condition="standardised", kind="rival", epsilon=1.0)
        marks = [
            (next(iter(scores(rows, data, verdict.CONSTANT).values())), "constant", "|", BLACK),
            (max(row["score"] for row in rivals), "best rival", "D", GREY),
            (next(iter(scores(rows, data, verdict.TWIN).values())), "not private", "o", BLUE),
            (scores(rows, data, verdict.DEFAULT)[1.0], "private", "o", RED),
        ]
        axes.plot([marks[0][0], marks[2][0]], [place] * 2, color=GREY, lw=0.8, zorder=0)
        for value, label, marker, colour in marks:
            axes.plot(
                value, place, marker, color=colour, ms=11 if marker == "|" else 6, mew=1.5,
                label=label if not place else None,
            )  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("accuracy, or R² (bike, California housing, diabetes, diamonds, wine)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    return figure


def intervals():
    """Coverage against width of intervals, and coverage of the textbook's around `coef_`."""
    rows = [row for row in rows_of("inference") if row["coverage"]]
    figure, axes = plt.subplots(figsize=(7.5, 4))
    widths = [float(row["width"]) for row in rows]
    axes.plot(widths, [float(row["naive"]) for row in rows], "x", color=GREY, label="naive")
    axes.plot(widths, [float(row["coverage"]) for row in rows], "o", ms=4, color=RED, label="skdp")
    axes.axhline(0.95, color=BLACK, ls="--", lw=1)
    axes.set(
        xscale="log", ylim=(0, 1.02), ylabel="coverage of 95 % intervals",
        xlabel="width of skdp's intervals, next to non-private ones",
    )  # fmt: skip
    axes.legend(loc="lower left")
    return figure


def speed():
    """Milliseconds of a default fit against the number of rows."""
    rows = rows_of("speed")
    sizes = {"(1000, 10)": 1e3, "(10000, 50)": 1e4, "(100000, 50)": 1e5, "(1000000, 50)": 1e6}
    figure, axes = plt.subplots(figsize=(7.5, 3.8))
    for model, colour in (("LogisticRegression", RED), ("Ridge", BLUE)):
        found = {}
        for row, following in itertools.pairwise(rows):
            for size, n in sizes.items():
                if row["what"] == f"default fit {size} factor / scikit-learn's {model}":
                    found[n] = following
        for column, style, label in (("value", "--", "numpy"), ("with_fast", "-", '"fast"')):
            times = [float(row[column]) / 1000 for row in found.values()]
            name = {"Ridge": "DPRidge"}.get(model, "DPLogisticRegression")
            axes.plot(list(found), times, style, marker="o", color=colour, label=f"{name}, {label}")
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
    axes.legend()
    return figure


def certainty():
    """What an attacker can know at most, against epsilon."""
    epsilons = np.geomspace(0.05, 12, 200)
    attack = [norm.cdf(norm.ppf(0.05) + gaussian_mu(epsilon, 1e-6)) for epsilon in epsilons]
    figure, axes = plt.subplots(figsize=(7.5, 3.8))
    axes.plot(
        epsilons, 100 / (1 + np.exp(-epsilons)), color=RED, lw=2, label="50:50 becomes (bound)"
    )
    axes.plot(epsilons, 100 * np.array(attack), color=BLUE, lw=2, label="caught by the best attack")
    axes.set(xscale="log", xlabel="epsilon", ylabel="per cent", ylim=(0, 102))
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.minorticks_off()
    axes.legend()
    return figure


def boundary():
    """The trust boundary: where rows are, and what leaves."""
    figure, axes = plt.subplots(figsize=(9, 2.9))
    axes.axis("off")
    axes.set(xlim=(0, 12.6), ylim=(0, 4))
    axes.add_patch(plt.Rectangle((0.1, 0.2), 6.6, 3.6, fill=False, ec=RED, ls="--", lw=1.5))
    axes.text(3.4, 3.5, "audited code: sees rows", color=RED, ha="center")
    boxes = {
        "rows\nX, y": (0.4, 1.3, GREY), "clip each row,\nadd up": (2.5, 1.3, BLUE),
        "charge,\nadd noise": (4.9, 1.3, BLUE), "solver": (8.2, 1.3, BLACK),
        "model and\nstatement": (10.7, 1.3, BLACK),
    }  # fmt: skip
    for text, (left, bottom, colour) in boxes.items():
        axes.add_patch(plt.Rectangle((left, bottom), 1.6, 1.1, color=colour, lw=0))
        axes.text(
            left + 0.8, bottom + 0.55, text, color="white", ha="center", va="center", fontsize=9
        )
    for start, end in (
        ((2.0, 1.85), (2.5, 1.85)),
        ((4.1, 1.85), (4.9, 1.85)),
        ((9.8, 1.85), (10.7, 1.85)),
    ):
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": BLACK})
    axes.annotate("", (8.2, 2.1), (6.5, 2.1), arrowprops={"arrowstyle": "-|>", "color": BLACK})
    axes.annotate("", (6.5, 1.5), (8.2, 1.5), arrowprops={"arrowstyle": "-|>", "color": BLACK})
    axes.text(7.45, 2.25, "noisy answer", ha="center", fontsize=8)
    axes.text(7.45, 1.15, "request", ha="center", fontsize=8)
    axes.text(9.8, 3.5, "any code: sees released answers alone", color=BLACK, ha="center")
    return figure


PICTURES = (accuracy, boundary, certainty, dots, intervals, speed)


def main(folder=DOCS / "generated" / "pictures"):
    """Draw all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw in PICTURES:
        figure = draw()
        figure.savefig(folder / f"{draw.__name__}.png", dpi=110, bbox_inches="tight")
        plt.close(figure)


if __name__ == "__main__":
    main()
