"""Draw docs/_static/adjacency.png: which data sets are neighbours, and how far a sum can move."""

from pathlib import Path

import matplotlib.pyplot as plt

BLUE, GREY, RED = "#1f6f9f", "#d9dde1", "#c0504d"


def table(axes, left, title, third, colour, note):
    """Draw five records. Only the third one differs."""
    axes.text(left + 1.0, 7.95, title, ha="center", fontsize=9, weight="bold")
    axes.text(left + 1.0, 7.35, note, ha="center", fontsize=8, color="#555555")
    for i, record in enumerate(["record 1", "record 2", third, "record 4", "record 5"]):
        face = colour if i == 2 else GREY
        axes.add_patch(plt.Rectangle((left, 6.5 - 0.7 * i), 2.0, 0.6, color=face, lw=0))
        text = "white" if i == 2 else "#333333"
        place = left + 1.0, 6.8 - 0.7 * i
        axes.text(*place, record, ha="center", va="center", color=text, fontsize=9)


def arrow(axes, start, end, colour):
    style = {"arrowstyle": "-|>", "color": colour, "lw": 2, "mutation_scale": 14}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def main():
    figure, axes = plt.subplots(figsize=(4.8, 5.4))
    table(axes, 0.0, "data set D", "record 3", BLUE, "n = 5, public")
    table(axes, 2.4, "zero_out", "null record", "#9aa3ab", "it adds nothing")
    table(axes, 4.8, "replace_one", "any record", RED, "it adds up to C")
    centre = (1.6, 1.7)
    axes.add_patch(plt.Circle(centre, 1.5, fill=False, color="#888888", ls="--"))
    arrow(axes, centre, (centre[0] + 1.5, centre[1]), BLUE)
    arrow(axes, centre, (centre[0] - 1.5, centre[1]), RED)
    axes.plot(*centre, "o", color="#9aa3ab", ms=9)
    axes.text(centre[0] + 0.75, centre[1] + 0.2, "C", color=BLUE, ha="center")
    axes.text(centre[0] - 0.75, centre[1] + 0.2, "C", color=RED, ha="center")
    words = "The sum moves by at most\nC under zero_out,\n2C under replace_one."
    axes.text(3.4, centre[1], words, va="center", fontsize=9)
    axes.set_xlim(-0.1, 6.9)
    axes.set_ylim(0.0, 8.4)
    axes.set_aspect("equal")
    axes.axis("off")
    target = Path(__file__).parent / "_static" / "adjacency.png"
    figure.savefig(target, dpi=200, bbox_inches="tight")


if __name__ == "__main__":
    main()
