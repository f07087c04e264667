"""What the statement of any fit says was assumed."""

from __future__ import annotations

import math

from skdp.oracle import Public


def about_rows(public: Public) -> list[str]:
    """Say what everybody may know of the rows."""
    return [
        f"One record is one row; the number of rows, n = {public.n_rows}, is public.",
        f"The number of columns, {public.n_features}, their names and the type of X are public.",
        "That no value is missing or infinite is public: such rows are refused.",
    ]


def about_noise(noise_source: str, epsilon: float) -> list[str]:
    """Say what a seed does to the guarantee, and what no noise does."""
    said = []
    if noise_source == "seeded":
        said.append(
            "The noise follows from a seed, which stays secret: whoever knows it can subtract the "
            "noise."
        )
    if math.isinf(epsilon):
        said.append("There is NO privacy: epsilon is infinite and no noise was added.")
    return said
