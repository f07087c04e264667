"""Draw the pictures of the pages from benchmarks/results into docs/generated/pictures.

    python docs/pictures.py

The build of the documentation does that by itself.
"""

import math
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import accuracy_table  # noqa: E402

import skdp  # noqa: E402
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


def name_of(data):
    """Name of a data set, as in the tables."""
    return accuracy_table.NAMES.get(data, data)


def style():
    """Set sizes that are legible when a picture is as narrow as a phone."""
    plt.rcParams.update({
        "figure.figsize": (4.8, 3.4), "figure.dpi": 200, "font.size": 10, "legend.frameon": False,
        "axes.spines.top": False, "axes.spines.right": False,
    })  # fmt: skip


def gallery_style(gallery_conf, fname):
    """Use the same sizes in the examples of the gallery."""
    plt.rcdefaults()
    style()


def kept():
    """Share of the non-private improvement over a constant that is kept, against epsilon."""
    rows = table.read(RESULTS / "utility.csv")[1]
    figure, axes = plt.subplots()
    for data, colour in (("adult", BLUE), ("bank", BLACK), ("digits", RED), ("diabetes", GREY)):
        low, high = (
            next(iter(scores(rows, data, name).values()))
            for name in (verdict.CONSTANT, verdict.TWIN)
        )
        found = scores(rows, data, verdict.DEFAULT)
        share = [100 * max((found[e] - low) / (high - low), -0.05) for e in EPSILONS]
        size = accuracy_table.fitted(of(rows, data=data)[0])
        label = f"{name_of(data)}, {size:,} rows"
        axes.plot(EPSILONS, share, marker="o", ms=4, color=colour, label=label)
    axes.axhline(100, color=BLACK, ls="--", lw=1)
    axes.set(xscale="log", xlabel="epsilon (left: more private)", ylim=(-8, 108))
    axes.set_ylabel("per cent of the non-private\nimprovement over a baseline")
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.minorticks_off()
    axes.legend(loc="lower right", fontsize=9)
    return figure


def accuracy():
    """Score against epsilon on every data set of utility.csv."""
    rows = table.read(RESULTS / "utility.csv")[1]
    names = sorted({row["data"] for row in rows}, key=name_of)
    figure, panels = plt.subplots(6, 2, figsize=(4.8, 10), sharex=True)
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
        axes.minorticks_off()
        axes.set_title(name_of(data), fontsize=10)
    panels.flat[-1].axis("off")
    for axes in panels[-1]:
        axes.set_xlabel("epsilon")
    figure.tight_layout()
    return figure


def dots():
    """Scores of skdp, other methods and a baseline at epsilon 1, a line for each data set."""
    rows = table.read(RESULTS / "utility.csv")[1]
    names = sorted({row["data"] for row in rows}, key=name_of, reverse=True)
    figure, axes = plt.subplots(figsize=(4.8, 4.6))
    for place, data in enumerate(names):
        rivals = of(rows, data=data, condition="standardised", kind="rival", epsilon=1.0)
        marks = [
            (next(iter(scores(rows, data, verdict.CONSTANT).values())), "baseline", "|", BLACK),
            (max(row["score"] for row in rivals), "best other", "D", GREY),
            (next(iter(scores(rows, data, verdict.TWIN).values())), "not private", "o", BLUE),
            (scores(rows, data, verdict.DEFAULT)[1.0], "skdp", "o", RED),
        ]
        axes.plot([marks[0][0], marks[2][0]], [place] * 2, color=GREY, lw=0.8, zorder=0)
        for (value, label, marker, colour), shift in zip(marks, (0, -0.2, 0.2, 0), strict=True):
            axes.plot(
                value, place + shift, marker, color=colour, ms=11 if marker == "|" else 5, mew=1.5,
                label=label if not place else None,
            )  # fmt: skip
    axes.set_yticks(range(len(names)), [name_of(data) for data in names])
    axes.set_xlabel("accuracy or R²")
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, columnspacing=0.6, handletextpad=0.1
    )
    return figure


def linear():
    """Lines of ordinary least squares and of private fits through rows with outliers."""
    rng = np.random.default_rng(0)
    x = rng.uniform(20, 80, 1000)
    y = 0.2 * x + 3 + rng.standard_t(3, 1000) * 2
    figure, axes = plt.subplots()
    axes.plot(x, y, ".", color=GREY, ms=2, alpha=0.6)
    ends = np.array([[20.0], [80.0]])
    for epsilon, colour in ((0.1, BLUE), (1.0, RED)):
        for again in range(10):
            line = skdp.DPLinearRegression(epsilon=epsilon).fit(x[:, None], y).predict(ends)
            axes.plot(
                ends, line, color=colour, lw=1, alpha=0.7, label=None if again else f"{epsilon:g}"
            )
    line = LinearRegression().fit(x[:, None], y).predict(ends)
    axes.plot(ends, line, "--", color=BLACK, label="not private")
    axes.set(xlabel="age", ylabel="days", ylim=(0, 30))
    axes.legend(title="epsilon, ten fits each", loc="upper left")
    return figure


def logistic():
    """Probability of a benign tumour against its radius, of twenty private fits."""
    X, y = load_breast_cancer(return_X_y=True)
    radius, grid_ = X[:, :1], np.linspace(6, 26, 100)[:, None]
    figure, axes = plt.subplots()
    axes.plot(radius, y, "|", color=GREY, ms=6)
    for again in range(20):
        model = skdp.DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(radius, y)
        axes.plot(
            grid_, model.predict_proba(grid_)[:, 1], color=RED, lw=0.8, alpha=0.6,
            label=None if again else "epsilon 1, 20 fits",
        )  # fmt: skip
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(radius, y)
    axes.plot(grid_, model.predict_proba(grid_)[:, 1], "--", color=BLACK, label="not private")
    axes.set(xlabel="mean radius", ylabel="probability of a benign tumour")
    axes.legend(loc="upper right")
    return figure


def made_up_counts():
    """Claims of 20,000 insured people by age."""
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 80, 20_000)
    return age, rng.poisson(np.exp(0.5 - 0.03 * age))


def counts():
    """Mean claims by age, of a private Poisson regression and of the rows."""
    age, claims = made_up_counts()
    edges = np.arange(18, 80, 4)
    place = np.digitize(age, edges)
    means = [claims[place == k].mean() for k in range(1, len(edges) + 1)]
    grid_ = np.linspace(18, 80, 100)[:, None]
    model = skdp.DPPoissonRegressor(epsilon=1.0).fit(age[:, None], claims)
    figure, axes = plt.subplots()
    axes.plot(edges + 2, means, "o", color=GREY, ms=4, label="mean of the rows")
    axes.plot(grid_, model.predict(grid_), color=RED, label="private, epsilon 1")
    axes.set(xlabel="age", ylabel="claims per year", ylim=(0, None))
    axes.legend()
    return figure


def quantiles():
    """Quantiles of a waiting time, private and exact."""
    rng = np.random.default_rng(0)
    hour = rng.uniform(8, 18, 10_000)
    wait = (5 + 2 * (hour - 8)) * rng.lognormal(0, 0.4, 10_000)
    levels = [0.1, 0.5, 0.9]
    model = skdp.DPQuantileRegressor(epsilon=1.0, quantiles=levels).fit(hour[:, None], wait)
    ends = np.array([[8.0], [18.0]])
    figure, axes = plt.subplots()
    axes.plot(hour[:3000], wait[:3000], ".", color=GREY, ms=2, alpha=0.5)
    for level, line in zip(levels, model.predict(ends).T, strict=True):
        axes.plot(ends, line, color=RED)
        axes.text(18.1, line[1], f"{level:g}", color=RED, va="center")
        exact = (5 + 2 * (ends - 8)) * np.exp(0.4 * norm.ppf(level))
        axes.plot(ends, exact, "--", color=BLACK, lw=1)
    axes.set(xlabel="hour of the day", ylabel="minutes of waiting", ylim=(0, 70), xlim=(8, 19))
    axes.plot([], [], color=RED, label="private, epsilon 1")
    axes.plot([], [], "--", color=BLACK, label="true quantile")
    axes.legend(loc="upper left")
    return figure


def margins():
    """Two classes, the private separating line and its margins."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 5000)
    X = rng.standard_normal((5000, 2)) + np.outer(2 * y - 1, [1.2, 0.8])
    model = skdp.DPLinearSVC(epsilon=1.0, classes=[0, 1]).fit(X, y)
    figure, axes = plt.subplots()
    for label, colour in ((0, GREY), (1, BLUE)):
        axes.plot(*X[:1500][y[:1500] == label].T, ".", color=colour, ms=2, label=f"class {label}")
    (first, second), constant = model.coef_[0], model.intercept_[0]
    ends = np.array([-4.0, 4.0])
    for level, line in ((0, "-"), (-1, ":"), (1, ":")):
        axes.plot(ends, (level - constant - first * ends) / second, line, color=RED)
    axes.plot([], [], color=RED, label="private boundary")
    axes.set(xlim=(-4, 4), ylim=(-4, 4), xlabel="first column", ylabel="second column")
    axes.legend(markerscale=4, loc="lower left")
    return figure


def promise():
    """Distributions of a noisy count with a person's row and without it."""
    mu = gaussian_mu(1.0, 1e-6)
    outcome = np.linspace(80, 121, 400)
    figure, axes = plt.subplots()
    for count, style_, label in ((100, "-", "without the row"), (101, "--", "with the row")):
        axes.plot(
            outcome, norm.pdf(outcome, count, 1 / mu), style_, color=RED if count > 100 else BLUE,
            label=label,
        )  # fmt: skip
    axes.set(xlabel="published count", ylabel="probability density", ylim=(0, 0.13), yticks=[])
    axes.legend(loc="upper right", ncols=2)
    return figure


def intervals():
    """Coverage against width of intervals, and coverage of the textbook's around `coef_`."""
    rows = [row for row in rows_of("inference") if row["coverage"]]
    figure, axes = plt.subplots()
    widths = [float(row["width"]) for row in rows]
    axes.plot(widths, [float(row["naive"]) for row in rows], "x", color=GREY, label="textbook")
    axes.plot(widths, [float(row["coverage"]) for row in rows], "o", ms=3, color=RED, label="skdp")
    axes.axhline(0.95, color=BLACK, ls="--", lw=1)
    axes.set(
        xscale="log", ylim=(0, 1.02), ylabel="coverage of 95 % intervals",
        xlabel="width relative to non-private intervals",
    )  # fmt: skip
    axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    axes.minorticks_off()
    axes.legend(loc="lower left")
    return figure


def speed():
    """Seconds of a default fit against the number of rows."""
    rows = {row["what"]: row for row in rows_of("speed")}
    sizes = [(1000, 10), (10_000, 50), (100_000, 50), (1_000_000, 20)]
    figure, axes = plt.subplots()
    for name, model, colour in (
        ("two classes", "LogisticRegression", RED),
        ("ridge", "Ridge", BLUE),
    ):
        found = [rows[f"{name} {size}"] for size in sizes]
        counts = [size[0] for size in sizes]
        ours, fast, ratio = (
            np.array([float(row[column]) for row in found])
            for column in ("milliseconds", "milliseconds_with_fast", "value")
        )
        for times, line, label in (
            (ours, "--", f"DP{model}"),
            (fast, "-", f'DP{model} with "fast"'),
            (ours / ratio, ":", f"scikit-learn's {model}"),
        ):
            axes.plot(counts, times / 1000, line, marker="o", ms=4, color=colour, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
    axes.legend(fontsize=8)
    return figure


def certainty():
    """How certain an attacker can become, against epsilon."""
    epsilons = np.geomspace(0.05, 12, 200)
    attack = [norm.cdf(norm.ppf(0.05) + gaussian_mu(epsilon, 1e-6)) for epsilon in epsilons]
    figure, axes = plt.subplots()
    axes.plot(epsilons, 100 / (1 + np.exp(-epsilons)), color=RED, lw=2, label="belief, at most")
    axes.plot(epsilons, 100 * np.array(attack), color=BLUE, lw=2, label="members detected")
    axes.set(xscale="log", xlabel="epsilon", ylabel="per cent", ylim=(0, 102))
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.minorticks_off()
    axes.legend(loc="upper left")
    return figure


def boundary():
    """The trust boundary: code that sees rows, and the answers that leave it."""
    figure, axes = plt.subplots(figsize=(4.8, 4.2))
    axes.axis("off")
    axes.set(xlim=(0, 6), ylim=(0, 5.4))
    axes.add_patch(plt.Rectangle((0.1, 2.5), 5.8, 2.8, fill=False, ec=RED, ls="--", lw=1.5))
    axes.text(3.0, 4.95, "audited code: sees rows", color=RED, ha="center")
    boxes = {
        "rows\nX, y": (0.3, 3.3, GREY), "clip each\nrow, sum": (2.25, 3.3, BLUE),
        "charge,\nadd noise": (4.2, 3.3, BLUE), "solver": (4.2, 0.9, BLACK),
        "model and\nstatement": (1.6, 0.9, BLACK),
    }  # fmt: skip
    for text, (left, bottom, colour) in boxes.items():
        axes.add_patch(plt.Rectangle((left, bottom), 1.5, 1.1, color=colour, lw=0))
        axes.text(left + 0.75, bottom + 0.55, text, color="white", ha="center", va="center")
    for start, end in (
        ((1.8, 3.85), (2.25, 3.85)), ((3.75, 3.85), (4.2, 3.85)), ((4.2, 1.45), (3.1, 1.45)),
        ((5.3, 3.3), (5.3, 2.0)), ((4.6, 2.0), (4.6, 3.3)),
    ):  # fmt: skip
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": BLACK})
    axes.text(5.35, 2.15, "answer", fontsize=8)
    axes.text(3.65, 2.15, "request", fontsize=8)
    axes.text(3.0, 0.3, "any code: sees only released answers", color=BLACK, ha="center")
    return figure


def prior():
    """Fits from a public model that matches, next to that model and to the default."""
    rows = of(rows_of("prior"), kind="match")
    names = [name for name in ("california_housing", "bike", "adult") if of(rows, data=name)]
    figure, axes = plt.subplots(len(names), 1, figsize=(4.8, 7), sharex=True, layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        own = of(rows, data=name)
        places = [float(row["epsilon"]) for row in own]
        for column, colour in (("public", GREY), ("default", BLUE), ("prior", RED)):
            heights = [float(row[column]) for row in own]
            axis.plot(places, heights, "o-", color=colour, label=column, clip_on=True)
        low = min(float(row[column]) for row in own for column in ("default", "prior"))
        high = max(float(row["prior"]) for row in own)
        score = "minus log loss" if name == "adult" else "R²"
        axis.set(xscale="log", title=name_of(name), ylabel=score)
        axis.set_ylim(low - 0.1 * (high - low), high + 0.15 * (high - low))
        axis.set_xticks(places, [f"{place:g}" for place in places])
        axis.minorticks_off()
    axis.set_xlabel("epsilon")
    axis.legend(frameon=False)
    return figure


PICTURES = (
    accuracy, boundary, certainty, counts, dots, intervals, kept, linear, logistic, margins,
    promise, quantiles, speed,
    prior,
)  # fmt: skip


def main(folder=DOCS / "generated" / "pictures"):
    """Draw all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(), warnings.catch_warnings(action="ignore", category=skdp.NoiseWarning):
        style()
        for draw in PICTURES:
            figure = draw()
            figure.savefig(folder / f"{draw.__name__}.png", bbox_inches="tight")
            plt.close(figure)


if __name__ == "__main__":
    main()
