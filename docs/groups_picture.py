"""Draw docs/_static/groups.png: rows, groups of rows, and what one of them may add to a sum."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

COLOURS = {"Ada": "#1f6f9f", "Ben": "#c0504d", "Cem": "#6a9a3b"}
ROWS = ["Ada", "Ben", "Ada", "Cem", "Ada", "Ada"]
ANGLES = {"Ada": (35, 115, -20, 75), "Ben": (160,), "Cem": (-80,)}


def table(axes):
    axes.text(1.0, 5.75, "rows of X", ha="center", fontsize=11, weight="bold")
    axes.text(1.0, 5.35, "their number is private", ha="center", fontsize=9, color="#555555")
    for i, name in enumerate(ROWS):
        axes.add_patch(plt.Rectangle((0, 4.4 - 0.75 * i), 2.0, 0.62, color=COLOURS[name], lw=0))
        axes.text(1.0, 4.71 - 0.75 * i, name, ha="center", va="center", color="white")


def arrow(axes, start, vector, colour, width=2.0):
    style = {"arrowstyle": "-|>", "color": colour, "lw": width, "mutation_scale": 12}
    axes.annotate("", xy=start + vector, xytext=start, arrowprops=style)


def ball(axes, x, title, note):
    centre = np.array([x, 2.75])
    axes.text(x, 5.75, title, ha="center", fontsize=11, weight="bold")
    axes.text(x, 5.35, note, ha="center", fontsize=9, color="#555555")
    axes.add_patch(plt.Circle(centre, 1.6, fill=False, color="#888888", ls="--"))
    return centre


def unit(angle, length=1.6):
    radians = np.radians(angle)
    return length * np.array([np.cos(radians), np.sin(radians)])


def main():
    figure, axes = plt.subplots(figsize=(11, 4.4))
    table(axes)
    # 1. Rows: each may add a vector of length C.
    centre = ball(axes, 4.6, "unit: a row", "Ada adds up to 4 C")
    for name, angles in ANGLES.items():
        for angle in angles:
            arrow(axes, centre, unit(angle), COLOURS[name])
    # 2. Groups: the mean of a group's vectors.
    centre = ball(axes, 8.6, "clip, then average", "Ada adds up to C")
    for name, angles in ANGLES.items():
        for angle in angles:
            arrow(axes, centre, unit(angle), COLOURS[name], 0.6)
        arrow(axes, centre, np.mean([unit(angle) for angle in angles], axis=0), COLOURS[name], 3.0)
    # 3. The mean is shorter than the rows, and so may be the ball.
    centre = ball(axes, 12.6, "average, then clip", "means are shorter: a smaller C")
    axes.add_patch(plt.Circle(centre, 1.05, fill=False, color="#333333", ls="--"))
    for name, angles in ANGLES.items():
        mean = np.mean([unit(angle) for angle in angles], axis=0)
        arrow(axes, centre, mean * min(1.0, 1.05 / np.linalg.norm(mean)), COLOURS[name], 3.0)
    axes.set_xlim(-0.2, 14.6)
    axes.set_ylim(0.3, 6.2)
    axes.set_aspect("equal")
    axes.axis("off")
    target = Path(__file__).parent / "_static" / "groups.png"
    figure.savefig(target, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
