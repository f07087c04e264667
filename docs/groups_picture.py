"""Draw docs/_static/groups.png: rows, groups of rows, and what one of them may add to a sum."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

COLOURS = {"Ada": "#1f6f9f", "Ben": "#c0504d", "Cem": "#6a9a3b"}
ROWS = ["Ada", "Ben", "Ada", "Cem", "Ada", "Ada"]
ANGLES = {"Ada": (35, 115, -20, 75), "Ben": (160,), "Cem": (-80,)}


def table(axes):
    axes.text(1.6, 9.4, "rows of X", ha="center", fontsize=9, weight="bold")
    axes.text(1.6, 8.95, "their number is private", ha="center", fontsize=8, color="#555555")
    for i, name in enumerate(ROWS):
        axes.add_patch(plt.Rectangle((0.6, 8.2 - 0.6 * i), 2.0, 0.5, color=COLOURS[name], lw=0))
        place = 1.6, 8.45 - 0.6 * i
        axes.text(*place, name, ha="center", va="center", color="white", fontsize=9)


def arrow(axes, start, vector, colour, width=2.0):
    style = {"arrowstyle": "-|>", "color": colour, "lw": width, "mutation_scale": 12}
    axes.annotate("", xy=start + vector, xytext=start, arrowprops=style)


def ball(axes, centre, title, note):
    x, y = centre
    axes.text(x, y + 2.35, title, ha="center", fontsize=9, weight="bold")
    axes.text(x, y + 1.9, note, ha="center", fontsize=8, color="#555555")
    axes.add_patch(plt.Circle(centre, 1.6, fill=False, color="#888888", ls="--"))
    return np.array(centre)


def unit(angle, length=1.6):
    radians = np.radians(angle)
    return length * np.array([np.cos(radians), np.sin(radians)])


def main():
    figure, axes = plt.subplots(figsize=(4.8, 5.6))
    table(axes)
    # 1. Rows: each may add a vector of length C.
    centre = ball(axes, (5.9, 7.0), "unit: a row", "Ada adds up to 4 C")
    for name, angles in ANGLES.items():
        for angle in angles:
            arrow(axes, centre, unit(angle), COLOURS[name])
    # 2. Groups: the mean of a group's vectors.
    centre = ball(axes, (1.7, 1.8), "clip, then average", "Ada adds up to C")
    for name, angles in ANGLES.items():
        for angle in angles:
            arrow(axes, centre, unit(angle), COLOURS[name], 0.6)
        arrow(axes, centre, np.mean([unit(angle) for angle in angles], axis=0), COLOURS[name], 3.0)
    # 3. Means have smaller norms than rows, so the clipping norm can be smaller.
    centre = ball(axes, (5.9, 1.8), "average, then clip", "smaller norms: a smaller C")
    axes.add_patch(plt.Circle(centre, 1.05, fill=False, color="#333333", ls="--"))
    for name, angles in ANGLES.items():
        mean = np.mean([unit(angle) for angle in angles], axis=0)
        arrow(axes, centre, mean * min(1.0, 1.05 / np.linalg.norm(mean)), COLOURS[name], 3.0)
    axes.set_xlim(-0.1, 7.7)
    axes.set_ylim(0.0, 9.8)
    axes.set_aspect("equal")
    axes.axis("off")
    target = Path(__file__).parent / "_static" / "groups.png"
    figure.savefig(target, dpi=200, bbox_inches="tight")


if __name__ == "__main__":
    main()
