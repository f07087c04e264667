"""Draw docs/_static/adjacency.png: which data sets are neighbours, and how far a sum can move."""

from pathlib import Path

import matplotlib.pyplot as plt

BLUE, GREY, RED = "#1f6f9f", "#d9dde1", "#c0504d"


def table(axes, left, title, third, colour, note):
    """Draw five records; the third one is what differs."""
    axes.text(left + 1.0, 5.75, title, ha="center", fontsize=11, weight="bold")
    axes.text(left + 1.0, 5.35, note, ha="center", fontsize=9, color="#555555")
    for i, record in enumerate(["record 1", "record 2", third, "record 4", "record 5"]):
        face = colour if i == 2 else GREY
        axes.add_patch(plt.Rectangle((left, 4.3 - 0.8 * i), 2.0, 0.68, color=face, lw=0))
        text = "white" if i == 2 else "#333333"
        axes.text(left + 1.0, 4.64 - 0.8 * i, record, ha="center", va="center", color=text)


def arrow(axes, start, end, colour):
    style = {"arrowstyle": "-|>", "color": colour, "lw": 2, "mutation_scale": 14}
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def main():
    figure, axes = plt.subplots(figsize=(10.5, 4.6))
    table(axes, 0.0, "data set D", "record 3", BLUE, "n = 5, public")
    table(axes, 3.5, "zero_out neighbour", "null record", "#9aa3ab", "n stays 5; it adds nothing")
    table(axes, 7.0, "replace_one neighbour", "any record", RED, "n stays 5; it adds what it likes")
    centre = (11.6, 2.6)
    axes.add_patch(plt.Circle(centre, 1.5, fill=False, color="#888888", ls="--"))
    axes.text(centre[0], 4.35, "what one record may add", ha="center", fontsize=9, color="#555555")
    arrow(axes, centre, (centre[0] + 1.5, centre[1]), BLUE)
    arrow(axes, centre, (centre[0] - 1.5, centre[1]), RED)
    axes.plot(*centre, "o", color="#9aa3ab", ms=9)
    axes.text(centre[0] + 0.75, centre[1] + 0.15, "C", color=BLUE, ha="center", fontsize=11)
    axes.text(centre[0] - 0.75, centre[1] + 0.15, "C", color=RED, ha="center", fontsize=11)
    axes.text(
        centre[0],
        0.55,
        "sum moves by at most\nC under zero_out, 2C under replace_one",
        ha="center",
        fontsize=9,
    )
    axes.set_xlim(-0.2, 13.5)
    axes.set_ylim(0.2, 6.2)
    axes.axis("off")
    target = Path(__file__).parent / "_static" / "adjacency.png"
    figure.savefig(target, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
