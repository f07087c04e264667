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
EPSILON, DELTA, STEPS = 1.0, 1e-6, 100
PLANS = {
    "all rows, zero-out": (Gaussian(1.0), Adjacency.ZERO_OUT),
    "all rows, replace-one": (Gaussian(1.0), Adjacency.REPLACE_ONE),
    "Poisson samples of 1 %, zero-out": (
        PoissonSampled(0.01, Gaussian(1.0)),
        Adjacency.ZERO_OUT,
    ),
    "Poisson samples of 1 %, replace-one": (
        PoissonSampled(0.01, Gaussian(1.0)),
        Adjacency.REPLACE_ONE,
    ),
    "fixed samples of 1 %, replace-one": (
        FixedSizeSampled(1, 100, Gaussian(1.0)),
        Adjacency.REPLACE_ONE,
    ),
    "Laplace, all rows, replace-one": (Laplace(1.0), Adjacency.REPLACE_ONE),
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


def table():
    """Return rows of text: a plan, and the noise that each accountant requires."""
    rows = [["plan", *ACCOUNTANTS]]
    for title, (event, adjacency) in PLANS.items():
        cells = (cell(event, STEPS, EPSILON, DELTA, adjacency, name) for name in ACCOUNTANTS)
        rows.append([title, *cells])
    return rows


def as_grid(rows):
    """Lay rows out as a simple reStructuredText table."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
             for row in rows]  # fmt: skip
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def main():
    """Print the table."""
    print(as_grid(table()))


if __name__ == "__main__":
    main()
