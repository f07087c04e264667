"""Write what the pages on accuracy say in figures, from benchmarks/results.

    python docs/accuracy_table.py

writes tables of docs/concepts and docs/research from utility.csv and
held_out.csv, and the table of README.md. docs/pictures.py draws the pictures.
"""

import math
import sys
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from benchmarks import table, verdict  # noqa: E402

RESULTS = DOCS.parent / "benchmarks" / "results" / "utility.csv"
HELD_OUT = RESULTS.with_name("held_out.csv")
README = DOCS.parent / "README.md"
MARK = "<!-- accuracy, written by docs/accuracy_table.py -->\n"
END = "<!-- end -->\n"
PUBLIC_ROWS = "skdp, 2 % public"  # a method with a table of its own

NAMES = {
    "adult": "Adult",
    "bank": "bank marketing",
    "bike": "bike sharing",
    "breast_cancer": "breast cancer",
    "california_housing": "California housing",
    "covertype": "forest cover",
    "mnist": "MNIST",
    "wine": "wine quality",
}
IN_README = (
    "breast_cancer",
    "digits",
    "adult",
    "bank",
    "diabetes",
    "california_housing",
)
FITTED = {"adult": 32561, "mnist": 10000}  # their own splits; three quarters of the others
WHY = {
    "AdaSSP": "It reads X'X and X'y once. If one release is enough, a budget that is not divided "
    "among steps is a small advantage.",
    "Boosted AdaSSP": "It clips residuals at one standard deviation of the target, so outliers "
    "among the targets have less influence.",
    "AMP": "It adds noise once, to the objective, which costs little at a large budget.",
    "objective perturbation": "It adds noise once, and its ridge penalty shrinks the coefficients.",
    "IHM": "Like AdaSSP, it divides its budget among few releases.",
    "TukeyEM": "It chooses a deep point among many small models, which is robust to outliers. "
    "It needs many rows for each column and a large budget.",
    "DP-GD, 30 lines": "It is gradient descent with other constants, which were chosen on these "
    "data.",
    "diffprivlib": "This is probably chance: its noise is far larger than that of the others.",
}


def is_classification(rows):
    return any(verdict.is_classification(row) for row in rows)


def number(value):
    """Three decimals; very bad scores in words."""
    if value is None or math.isnan(value):
        return "-"
    return "< -10" if value < -10 else "> 10" if value > 10 else f"{round(value, 3) + 0.0:.3f}"


def grid(rows):
    """Lay rows of text out as a simple reStructuredText table, the first column to the left."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule]) + "\n"


def of(rows, **wanted):
    """Rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def fitted(row):
    """Number of rows in a fit, not in the file."""
    return FITTED.get(row["data"], row["rows"] - math.ceil(row["rows"] / 4))


def score_of(own, method, epsilon=math.inf, condition="raw"):
    """Mean score of a method in a cell; references have one for every budget."""
    found = of(own, method=method, condition=condition, epsilon=epsilon)
    return number((found or of(own, method=method))[0]["score"])


def summary(rows):
    """One line for each data set, at epsilon 1."""
    lines = [["data", "rows", "columns", "score", "skdp", "best other", "not private", "baseline"]]
    for data in sorted({row["data"] for row in rows}):
        own = of(rows, data=data)
        rivals = of(own, condition="standardised", kind="rival", epsilon=1.0)
        lines.append([
            NAMES.get(data, data), f"{fitted(own[0]):,}", str(own[0]["columns"]),
            "accuracy" if is_classification(own) else "R²",
            score_of(own, verdict.DEFAULT, 1.0),
            number(max((row["score"] for row in rivals), default=math.nan)),
            score_of(own, verdict.TWIN), score_of(own, verdict.CONSTANT),
        ])  # fmt: skip
    return grid(lines)


def readme(rows):
    """Table of README.md: raw columns, some data sets and budgets."""
    head = ["data (rows in the fit, columns)", "score", "epsilon 0.1", "1", "10"]
    lines = [[*head, "not private", "baseline"], ["---"] * 7]
    for data in IN_README:
        own = of(rows, data=data)
        name = f"{NAMES.get(data, data)} ({fitted(own[0]):,}, {own[0]['columns']})"
        scores = [score_of(own, verdict.DEFAULT, epsilon) for epsilon in (0.1, 1.0, 10.0)]
        scores += [score_of(own, verdict.TWIN), score_of(own, verdict.CONSTANT)]
        lines.append([name, "accuracy" if is_classification(own) else "R²", *scores])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_figures(page, mark, text):
    """README.md with this text between a mark and the end."""
    before, rest = page.split(mark)
    return before + mark + text + END + rest.partition(END)[2]


def wins(rows):
    """Cells where a rival is better than the default by more than two standard errors."""
    cells = verdict.Table(rows)
    for data, condition, epsilon in cells.cells():
        row = cells.get(data, condition, verdict.DEFAULT, epsilon)
        for rival in cells.rivals(data, condition, epsilon):
            better, error = verdict.advantage(row, rival)
            if better > 2 * error:
                yield rival["method"], condition, data, epsilon, better, error


def rivals(rows):
    """How often rivals win, by how much at most, and why; every rival once."""
    found = sorted(wins(rows))
    if not found:
        return "No competing method is better by more than two standard errors in any cell.\n"
    n_cells, n_lost = len(verdict.Table(rows).cells()), len({cell[1:4] for cell in found})
    text = (
        f"In {n_lost} of {n_cells} cells a competing method is better by more than two standard "
        "errors:\n\n"
    )
    for name in dict.fromkeys(cell[0] for cell in found):
        own = [cell for cell in found if cell[0] == name]
        data = ", ".join(dict.fromkeys(NAMES.get(cell[2], cell[2]) for cell in own))
        text += f"* **{name}** on {data}, by at most {max(cell[4] for cell in own):.4f}. "
        text += f"{WHY.get(name, 'The reason is unknown.')}\n"
    for word, metric, sign in verdict.METRICS[2:]:
        lost = verdict.lost_cells(verdict.Table(rows), metric, sign)
        text += f"\nBy {word} a competing method is better in {sum(lost)} of {len(lost)} cells."
    return text + "\n"


def rivals_in_short(rows):
    """The sentence of the page for users: in how many cells a rival wins, by how much at most."""
    found = list(wins(rows))
    if not found:
        return "On these data sets no competing method is significantly better.\n"
    n_lost, most = len({cell[1:4] for cell in found}), max(cell[4] for cell in found)
    return (
        "On the eleven data sets above, a competing method is better by more than two standard "
        f"errors in {n_lost} of {len(verdict.Table(rows).cells())} comparisons, by at most "
        f"{most:.4f}.\n"
    )


def lost(row):
    """What a cell loses to the non-private model: R², or log loss."""
    return row["log_loss_gap"] if is_classification([row]) else -row["score_gap"]


def with_public_rows(rows):
    """What raw columns lose, and what they lose where 2 % of the rows are public."""
    epsilons = (0.1, 0.3, 1.0)
    heads = [f"{epsilon:g}, {what}" for epsilon in epsilons for what in ("raw", "2 % public")]
    lines = [["data", "loss in", *heads]]
    halved = {True: [], False: []}
    for data in sorted({row["data"] for row in of(rows, method=PUBLIC_ROWS)}):
        pairs = [
            [of(rows, data=data, condition="raw", method=name, epsilon=epsilon)[0]
             for name in (verdict.DEFAULT, PUBLIC_ROWS)]
            for epsilon in epsilons
        ]  # fmt: skip
        what = "log loss" if is_classification(pairs[0]) else "R²"
        lines.append(
            [NAMES.get(data, data), what, *(number(lost(row)) for pair in pairs for row in pair)]
        )
        before, after = (lost(row) for row in pairs[0])
        halved[after <= max(before / 2, 0.0)].append(NAMES.get(data, data))
    said = {True: "at least halve the loss, or there was none, on", False: "do not on"}
    halves = [f"{said[which]} {', '.join(found)}" for which, found in halved.items() if found]
    return f"{grid(lines)}\nAt epsilon 0.1 the public rows {', and '.join(halves)}.\n"


def spread(values):
    """Mean and median of what is lost, without a zero that has a sign."""
    mean, median = (round(float(f(values)), 3) + 0.0 for f in (np.mean, np.median))
    return f"{'> 10' if mean > 10 else format(mean, '.3f')} ({median:.3f})"


def held_out_distances(rows):
    """What the default loses on held-out sets: mean and median over data sets."""
    metrics = ("R2", "accuracy", "log loss", "AUC")
    lines = [["columns, epsilon", "R²", *metrics[1:]]]
    for condition, epsilon, own in verdict.conditions_and_budgets(verdict.Table(rows)):
        lost = [verdict.of_metric(own, metric) for metric in metrics]
        cells = [spread(values) if values else "-" for values in lost]
        lines.append([f"{condition}, {epsilon:g}", *cells])
    return grid(lines)


def held_out_medians(rows):
    """What the default loses on raw columns of half of the held-out sets, at most."""
    lines = [["epsilon", "R²", "accuracy"]]
    for condition, epsilon, own in verdict.conditions_and_budgets(verdict.Table(rows)):
        if condition == "raw":
            lost = [verdict.of_metric(own, metric) for metric in ("R2", "accuracy")]
            lines.append([f"{epsilon:g}", *(number(float(np.median(one))) for one in lost)])
    return grid(lines)


def held_out_rivals(rows):
    """How often each competing method, with standardised columns, is ahead of raw ones."""
    cells, ahead = verdict.Table(rows), {}
    for data, condition, epsilon in cells.cells():
        row = cells.get(data, condition, verdict.DEFAULT, epsilon)
        for rival in cells.rivals(data, "standardised", epsilon) if condition == "raw" else ():
            better, error = verdict.advantage(row, rival)
            is_ahead = better > 2 * error and better > LEAST_LEAD
            ahead.setdefault(rival["method"], []).append(is_ahead)
    lines = [["method", "comparisons", "ahead, %"]]
    for name, found in sorted(ahead.items()):
        lines.append([name, str(len(found)), f"{100 * np.mean(found):.1f}"])
    return grid(lines)


LEAST_LEAD = 0.002  # of R² or accuracy, in which a method is ahead
SIZES = ((1_000, "up to 1,000"), (5_000, "up to 5,000"), (20_000, "up to 20,000"),
         (math.inf, "over 20,000"))  # fmt: skip
RARE = 0.1  # events are rare below this share of the rows
OUTCOMES = ("number", "two classes", "rare events", "more classes")


def share_kept(own):
    """Kind of outcome of a data set, and the share of the non-private improvement kept at 1."""
    row = of(own, method=verdict.DEFAULT, condition="raw", epsilon=1.0)[0]
    twin = (of(own, method=verdict.TWIN, condition="raw") or of(own, method=verdict.TWIN))[0]
    low = of(own, method=verdict.CONSTANT)[0]["score"]
    if not verdict.is_classification(row):
        return "number", row["score"] / twin["score"]
    if verdict.known(twin["auc"]):
        rate = min(low, 1 - low)
        return "rare events" if rate < RARE else "two classes", (row["auc"] - 0.5) / (
            twin["auc"] - 0.5
        )
    return "more classes", (row["score"] - low) / (twin["score"] - low)


def is_it_for_me(rows):
    """Median and least share of the non-private improvement that is kept at epsilon 1."""
    cells = {}
    for data in sorted({row["data"] for row in of(rows, method=verdict.DEFAULT, epsilon=1.0)}):
        own = of(rows, data=data)
        outcome, share = share_kept(own)
        size = next(name for most, name in SIZES if own[0]["rows"] <= most)
        columns = "up to 20" if own[0]["columns"] <= 20 else "over 20"
        cells.setdefault((size, columns, outcome), []).append(100 * min(share, 1.0))
    lines = [["rows", "columns", *OUTCOMES]]
    for _, size in SIZES:
        for columns in ("up to 20", "over 20"):
            found = [cells.get((size, columns, outcome)) for outcome in OUTCOMES]
            lines.append([
                size, columns,
                *(f"{np.median(one):.0f} ({min(one):.0f})" if one else "none" for one in found),
            ])  # fmt: skip
    return grid(lines)


def texts(rows, others):
    """Text of every file to include, by name, from both tables of results."""
    public, rows = with_public_rows(rows), [row for row in rows if row["method"] != PUBLIC_ROWS]
    return {
        "concepts/is_it_for_me.inc": is_it_for_me(rows + table.read(HELD_OUT)[1]),
        "concepts/accuracy_summary.inc": summary(rows),
        "concepts/held_out_medians.inc": held_out_medians(others),
        "concepts/rivals_in_short.inc": rivals_in_short(rows),
        "research/public.inc": public,
        "research/rivals.inc": rivals(rows),
        "research/held_out.inc": held_out_distances(others),
        "research/held_out_rivals.inc": held_out_rivals(others),
    }


def main():
    """Write all of it."""
    _, rows = table.read(RESULTS)
    others = verdict.read(HELD_OUT, "test")
    for name, text in texts(rows, others).items():
        (DOCS / name).write_text(text, encoding="utf-8")
    page = README.read_text(encoding="utf-8")
    README.write_text(with_figures(page, MARK, readme(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
