"""Write the table of noise multipliers, for each accountant, as reStructuredText.

    python docs/noise_table.py > docs/research/noise_table.inc

The noise multiplier is the standard deviation (for Laplace noise: the scale) over the most that
one record can add to a sum.
"""

import math

from skdp.accounting import (
    Adjacency,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    UnknownCost,
    calibrate,
)

ACCOUNTANTS = ("gdp", "pld", "rdp", "zcdp", "advanced", "pure")
BUDGETS = ((0.1, 1e-6), (1.0, 1e-6), (8.0, 1e-6))
STEPS = (1, 100, 1000)
PLANS = {
    "Gaussian noise, all rows, zero-out": (Gaussian(1.0), Adjacency.ZERO_OUT),
    "Gaussian noise, all rows, replace-one": (Gaussian(1.0), Adjacency.REPLACE_ONE),
    "Gaussian noise, Poisson samples of 1 %, zero-out": (
        PoissonSampled(0.01, Gaussian(1.0)),
        Adjacency.ZERO_OUT,
    ),
    "Gaussian noise, Poisson samples of 1 %, replace-one": (
        PoissonSampled(0.01, Gaussian(1.0)),
        Adjacency.REPLACE_ONE,
    ),
    "Gaussian noise, samples of 1 % without replacement, replace-one": (
        FixedSizeSampled(1, 100, Gaussian(1.0)),
        Adjacency.REPLACE_ONE,
    ),
    "Laplace noise, all rows, replace-one": (Laplace(1.0), Adjacency.REPLACE_ONE),
}


def cell(event, steps, epsilon, delta, adjacency, accountant):
    """Noise multiplier with three digits, or a dash where the accountant has no theorem."""
    plan = Composed(((event, steps),))
    try:
        scale = calibrate(plan, epsilon, delta, adjacency, accountant).scale
    except UnknownCost:
        return "-"
    digits = max(0, 2 - math.floor(math.log10(scale)))
    return f"{scale:.{digits}f}"


def table(event, adjacency):
    """Return rows of text: budget and steps, and the noise that each accountant asks for."""
    rows = [["epsilon", "delta", "steps", *ACCOUNTANTS]]
    for epsilon, delta in BUDGETS:
        for steps in STEPS:
            cells = [cell(event, steps, epsilon, delta, adjacency, name) for name in ACCOUNTANTS]
            rows.append([f"{epsilon:g}", f"{delta:g}", str(steps), *cells])
    keep = [k for k in range(len(rows[0])) if any(row[k] != "-" for row in rows[1:])]
    return [[row[k] for k in keep] for row in rows]


def as_grid(rows):
    """Lay rows out as a simple reStructuredText table."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
             for row in rows]  # fmt: skip
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def main():
    """Print all tables."""
    tables = (
        f"{title}\n{'~' * len(title)}\n\n{as_grid(table(event, adjacency))}\n"
        for title, (event, adjacency) in PLANS.items()
    )
    print(*tables, sep="\n", end="")


if __name__ == "__main__":
    main()
