"""Write what "How accurate is it?" says in figures, from benchmarks/results/utility.csv.

    python docs/accuracy_table.py

writes ``docs/concepts/accuracy_*.inc``, ``docs/reference/defaults_solvers.inc``, the figures of
this kind in ``README.md``, from benchmarks/results/demo.csv (``python -m skdp --csv
benchmarks/results/demo.csv``) the first table of ``README.md`` and, where matplotlib is installed,
one picture for each data set in ``docs/_static/accuracy``.
"""

import math
import sys
import textwrap
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from benchmarks import held_out_verdict, results_file, table, verdict  # noqa: E402

RESULTS = DOCS.parent / "benchmarks" / "results" / "utility.csv"
HELD_OUT, DEMO = RESULTS.with_name("held_out.csv"), RESULTS.with_name("demo.csv")
PICTURES = DOCS / "_static" / "accuracy"
README = DOCS.parent / "README.md"
DEMO_MARK, SUMMARY_MARK = (
    f"<!-- {what}, written by docs/accuracy_table.py -->\n" for what in ("demo", "summary")
)
END = "<!-- end -->\n"
CONDITIONS = ("raw", "standardised")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
PUBLIC_ROWS = "skdp, 2 % public"  # a method with a table of its own

NAMES = {
    "adult": "Adult",
    "bank": "bank marketing",
    "bike": "bike sharing",
    "california_housing": "California housing",
    "mnist": "MNIST in 49 pixels",
    "wine": "wine quality",
}
WORDS = {"raw": "raw columns", "standardised": "standardised columns"}
WHY = {
    "AdaSSP": "it sees X'X and X'y once and then only divides: where one look is enough, a budget "
    "that is not spread over steps is a small advantage.",
    "Boosted AdaSSP": "it clips residuals at one standard deviation of the target, so far-off "
    "targets pull less than least squares lets them; on such data it can pass the non-private "
    "model, too.",
    "AMP": "it adds its noise once, to the objective, and then finds the exact minimum; with a "
    "large budget that is nearly free, where a descent pays in each step.",
    "objective perturbation": "it adds its noise once, to the objective, and then finds the exact "
    "minimum; its ridge also shrinks the weights, which helps where columns are many and rows are "
    "few.",
    "TukeyEM": "it takes a deep point among many small models, which a few far-off rows cannot "
    "move; that needs many rows for each column and a large budget.",
    "DP-GD, 30 lines": "it is gradient descent, as skdp is, with other constants, which were "
    "chosen while looking at these very data; some of them suit them better than a rule does.",
    "diffprivlib": "chance, most likely: its noise is far larger than that of the others.",
}


def is_classification(rows):
    return any(verdict.is_classification(row) for row in rows)


def number(value):
    """Three decimals; very bad scores in words."""
    if value is None or math.isnan(value):
        return "-"
    return "< -10" if value < -10 else "> 10" if value > 10 else f"{value:.3f}"


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


def summary(rows):
    """One line for each data set, at epsilon 1."""
    head = ["data", "rows", "columns", "score", "raw", "standardised", "best rival", "non-private",
            "constant"]  # fmt: skip
    lines = [head]
    for data in sorted({row["data"] for row in rows}):
        own = of(rows, data=data)
        cells = []
        for condition in CONDITIONS:
            found = of(own, condition=condition, method=verdict.DEFAULT, epsilon=1.0)
            cells.append(number(found[0]["score"]) if found else "-")
        rivals = of(own, condition="standardised", kind="rival", epsilon=1.0)
        best = max((row["score"] for row in rivals), default=math.nan)
        twin, constant = (
            of(own, method=name)[0]["score"] for name in (verdict.TWIN, verdict.CONSTANT)
        )
        score = "accuracy" if is_classification(own) else "R²"
        sizes = [str(own[0]["rows"]), str(own[0]["columns"])]
        lines.append([data, *sizes, score, *cells, number(best), number(twin), number(constant)])
    return grid(lines)


def readme(rows):
    """The paragraph of README.md on data sets with many rows: raw columns, epsilon 1."""
    own = of(rows, condition="raw", epsilon=1.0, method=verdict.DEFAULT)
    own = sorted(own, key=lambda row: -row["rows"])
    found = {"accuracy": [], "R²": []}
    for row in own:
        if row["rows"] >= 5000:
            name = NAMES.get(row["data"], row["data"])
            twin = of(rows, data=row["data"], condition="raw", method=verdict.TWIN)[0]
            figures = f"{number(row['score'])} ({number(twin['score'])})"
            score = "accuracy" if is_classification([row]) else "R²"
            found[score].append(f"{name} ({row['rows']} rows) {figures}")
    text = """The noise matters less the more rows there are. On raw columns at epsilon 1, in
    brackets the model of
        scikit-learn without privacy on the same splits (page "How accurate is it?"): """
    text += "; ".join(f"{score} of {', '.join(some)}" for score, some in found.items())
    return textwrap.fill(" ".join(f"{text}.".split()), 120) + "\n"


def demo(rows):
    """Table of README.md: medians of the demonstration, a line for each data set."""
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    head = ["data (rows for fitting, columns)", "score", f"epsilon {epsilons[0]}", *epsilons[1:]]
    head += ["not private", "constant"]
    lines = [head, ["---"] * len(head)]
    for data in dict.fromkeys(row["data"] for row in rows):
        own = of(rows, data=data)
        first = own[0]
        figures = [*(row["score"] for row in own), first["non_private"], first["constant"]]
        name = f"{data} ({first['rows']}, {first['columns']})"
        lines.append([name, first["measure"], *(number(float(figure)) for figure in figures)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_figures(page, mark, text):
    """README.md with this text between a mark and the end."""
    before, rest = page.split(mark)
    return before + mark + text + END + rest.partition(END)[2]


def solvers(rows):
    """Scores of "gd" and of "whitened" where both are to be had, on standardised columns."""
    epsilons = (0.1, 0.3, 1.0, 10.0)
    lines = [["data", "score, solver", "non-private", *(f"{epsilon:g}" for epsilon in epsilons)]]
    for data in ("california_housing", "wine", "bike", "diamonds", "bank"):
        own = of(rows, data=data, condition="standardised")
        metrics = {"score": "R²"}
        if is_classification(own):
            metrics = {"score": "accuracy", "log_loss": "log loss"}
        for metric, word in metrics.items():
            twin = number(of(own, method=verdict.TWIN)[0][metric])
            for name in ("gd", "whitened"):
                found = [of(own, method=f"skdp {name}", epsilon=epsilon) for epsilon in epsilons]
                cells = [number(some[0][metric]) if some else "-" for some in found]
                lines.append([data, f"{word}, {name}", twin, *cells])
    return grid(lines)


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
    """Where rivals win, and why; every rival once."""
    found = sorted(wins(rows))
    if not found:
        return "No rival is better by more than two standard errors in any cell of the tables.\n"
    n_cells = len(verdict.Table(rows).cells())
    n_lost = len({cell[1:4] for cell in found})
    text = (
        f"In {n_lost} of {n_cells} cells some rival is better by more than two standard errors:\n"
    )
    for name in dict.fromkeys(cell[0] for cell in found):
        text += f"\n**{name}**: {WHY.get(name, 'not looked into yet.')}\n\n"
        for condition in CONDITIONS:
            own = [cell for cell in found if cell[:2] == (name, condition)]
            listed = [
                f"{data} at epsilon {epsilon:g} ({better:+.4f} ± {error:.4f})"
                for _, _, data, epsilon, better, error in own
            ]
            if listed:
                text += f"* {WORDS[condition]}: {', '.join(listed)}\n"
    return text


def rivals_by_chances(rows):
    """Where rivals win by log loss and by AUC, the strongest one of each cell."""
    found = list(verdict.against_rivals(verdict.Table(rows)))
    text = ""
    for word in ("log loss", "AUC"):
        own = [one for one in found if one.aim.endswith(word)]
        won = [f"{one.cell} ({one.figure})" for one in own if not one.met]
        text += f"\nBy {word} a rival is better in {len(won)} of {len(own)} cells"
        text += f": {'; '.join(won)}.\n" if won else ".\n"
    return text


def order(rows):
    """Methods, the default first, then yardsticks, solvers and rivals."""
    kinds = ["skdp", "reference", "solver", "rival", "not private"]
    names = {row["method"]: row["kind"] for row in rows}
    return sorted(names, key=lambda name: (kinds.index(names[name]), name))


def cells_of(own, method, metric):
    """Figures of one method for every epsilon; one that takes no epsilon has one everywhere."""
    found = {row["epsilon"]: row for row in of(own, method=method)}
    rows = [found.get(epsilon, found.get(math.inf)) for epsilon in EPSILONS]
    return [number(row[metric]) if row else "-" for row in rows]


def tables(rows):
    """Score, and log loss where there is one, of every method on every data set."""
    text = ""
    for data in sorted({row["data"] for row in rows}):
        text += f"{data}\n{'~' * len(data)}\n\n"
        text += f".. image:: _static/accuracy/{data}.png\n   :alt: score against epsilon\n\n"
        metrics = {"score": "R²"}
        if is_classification(of(rows, data=data)):
            metrics = {"score": "Accuracy", "log_loss": "Log loss"}
        for metric, word in metrics.items():
            for condition in CONDITIONS:
                own = of(rows, data=data, condition=condition)
                if not own:
                    continue
                lines = [[f"{word}, {condition}", *(f"{epsilon:g}" for epsilon in EPSILONS)]]
                lines += [[name, *cells_of(own, name, metric)] for name in order(own)]
                text += grid(lines) + "\n"
    return text


def lost(row):
    """What a cell loses to the non-private model: R², or log loss."""
    return row["log_loss_gap"] if is_classification([row]) else -row["score_gap"]


def with_public_rows(rows):
    """What raw columns lose, and what they lose where 2 % of the rows are public."""
    epsilons = (0.1, 0.3, 1.0)
    heads = [f"{epsilon:g}, {what}" for epsilon in epsilons for what in ("raw", "2 % public")]
    lines = [["data", "lost", *heads]]
    halved = {True: [], False: []}
    for data in sorted({row["data"] for row in of(rows, method=PUBLIC_ROWS)}):
        pairs = [
            [of(rows, data=data, condition="raw", method=name, epsilon=epsilon)[0]
             for name in (verdict.DEFAULT, PUBLIC_ROWS)]
            for epsilon in epsilons
        ]  # fmt: skip
        what = "log loss" if is_classification(pairs[0]) else "R²"
        lines.append([data, what, *(number(lost(row)) for pair in pairs for row in pair)])
        before, after = (lost(row) for row in pairs[0])
        halved[after <= max(before / 2, 0.0)].append(data)
    said = {
        True: "At epsilon 0.1 at most half of it is left, or nothing was lost",
        False: "more is",
    }
    halves = [f"{said[which]}: {', '.join(found)}" for which, found in halved.items() if found]
    return f"{grid(lines)}\n{'; '.join(halves)}.\n"


def spread(values):
    """Mean and median of what is lost, without a zero that has a sign."""
    mean, median = (round(float(f(values)), 3) + 0.0 for f in (np.mean, np.median))
    return f"{'> 10' if mean > 10 else format(mean, '.3f')} ({median:.3f})"


def held_out_distances(rows):
    """What the default loses on held-out sets: mean and median over data sets."""
    metrics = ("R2", "accuracy", "log loss", "AUC")
    lines = [["columns, epsilon", "R²", *metrics[1:]]]
    for condition, epsilon, own in held_out_verdict.conditions_and_budgets(verdict.Table(rows)):
        lost = [held_out_verdict.of_metric(own, metric) for metric in metrics]
        cells = [spread(values) if values else "-" for values in lost]
        lines.append([f"{condition}, {epsilon:g}", *cells])
    return grid(lines)


def held_out_methods(rows):
    """What every private method loses in score on standardised columns, sets of a kind together."""
    text = ""
    kinds = {
        "R²": lambda row: not verdict.is_classification(row),
        "accuracy, two classes": lambda row: verdict.known(row.get("auc")),
        "accuracy, more classes": lambda row: (
            verdict.is_classification(row) and not verdict.known(row.get("auc"))
        ),
    }
    private = [row for row in of(rows, condition="standardised") if row["kind"] != "reference"]
    for word, is_of_kind in kinds.items():
        own = list(filter(is_of_kind, private))
        n_sets = len({row["data"] for row in own})
        lines = [[f"{word}, {n_sets} sets", *(f"{epsilon:g}" for epsilon in EPSILONS)]]
        for name in order(own):
            found = [of(own, method=name, epsilon=epsilon) for epsilon in EPSILONS]
            cells = [spread([-row["score_gap"] for row in some]) if some else "-" for some in found]
            lines.append([name, *cells])
        text += grid(lines) + "\n" if own else ""
    return text


def held_out_aims(rows):
    """Each aim on held-out sets, with the cells where it is missed; those of rivals are many."""
    text = ""
    found = held_out_verdict.findings(rows)
    for aim in dict.fromkeys(finding.aim for finding in found):
        own = [finding for finding in found if finding.aim == aim]
        missed = [finding.cell for finding in own if not finding.met]
        text += f"* {aim}: {len(own) - len(missed)} of {len(own)}."
        if missed and "rival" not in aim:
            text += f" Missed: {'; '.join(missed)}."
        text += "\n"
    return text


def pictures(rows):
    """Draw score against epsilon for every data set."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("matplotlib is not installed: no pictures")
        return
    PICTURES.mkdir(parents=True, exist_ok=True)
    for data in sorted({row["data"] for row in rows}):
        figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.4), sharey=True)
        palette = [colour for k, colour in enumerate(plt.get_cmap("tab10").colors) if k != 3]
        colours = dict(zip(order(of(rows, data=data, kind="rival")), palette, strict=False))
        colours[verdict.DEFAULT] = "#c0504d"
        for axes, condition in zip(panels, CONDITIONS, strict=True):
            own = of(rows, data=data, condition=condition)
            if not own:
                continue
            draw(axes, own, colours)
            axes.set_title(WORDS[condition], fontsize=10)
            axes.set_xlabel("epsilon")
        panels[0].set_ylabel("accuracy" if is_classification(own) else "R²")
        panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False)
        figure.suptitle(data, fontsize=11)
        figure.savefig(
            PICTURES / f"{data}.png", dpi=80, bbox_inches="tight", metadata={"Software": None}
        )
        plt.close(figure)


def draw(axes, own, colours):
    """Draw one panel: the default thick, rivals thin, yardsticks level."""
    level = {name: of(own, method=name)[0]["score"] for name in (verdict.TWIN, verdict.CONSTANT)}
    axes.axhline(level[verdict.TWIN], color="black", ls="--", lw=1, label="non-private")
    axes.axhline(level[verdict.CONSTANT], color="grey", ls=":", lw=1, label="constant")
    height = max(level[verdict.TWIN] - level[verdict.CONSTANT], 0.02)
    for name in [name for name in order(own) if name in colours]:
        line = sorted(of(own, method=name), key=lambda row: row["epsilon"])
        line = [row for row in line if row["epsilon"] in EPSILONS]
        is_default = name == verdict.DEFAULT
        axes.errorbar(
            [row["epsilon"] for row in line],
            [row["score"] for row in line],
            [min(row["score_gap_se"], height) for row in line],
            label=name,
            marker="o",
            ms=4 if is_default else 2,
            lw=2.4 if is_default else 1,
            color=colours[name],
            zorder=3 if is_default else 2,
        )
    axes.set_xscale("log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_ylim(level[verdict.CONSTANT] - 0.4 * height, level[verdict.TWIN] + 0.15 * height)


def texts(rows, others):
    """Text of every file to include, by name, from both tables of results."""
    public, rows = with_public_rows(rows), [row for row in rows if row["method"] != PUBLIC_ROWS]
    return {
        "concepts/accuracy_public.inc": public,
        "concepts/accuracy_held_out.inc": held_out_distances(others),
        "concepts/accuracy_held_out_methods.inc": held_out_methods(others),
        "concepts/accuracy_held_out_aims.inc": held_out_aims(others),
        "concepts/accuracy_summary.inc": summary(rows),
        "concepts/accuracy_rivals.inc": rivals(rows) + rivals_by_chances(rows),
        "concepts/accuracy_tables.inc": tables(rows),
        "reference/defaults_solvers.inc": solvers(rows),
    }


def main():
    """Write texts and pictures."""
    _, rows = table.read(RESULTS)
    others = held_out_verdict.read(HELD_OUT, "test")
    for name, text in texts(rows, others).items():
        (DOCS / name).write_text(text, encoding="utf-8")
    page = README.read_text(encoding="utf-8")
    page = with_figures(page, DEMO_MARK, demo(results_file.read(DEMO)[1]))
    README.write_text(with_figures(page, SUMMARY_MARK, readme(rows)), encoding="utf-8")
    pictures(rows)


if __name__ == "__main__":
    main()
