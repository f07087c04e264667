"""Write the table of noise multipliers, of skdp and of papers' theorems, as reStructuredText.

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
from skdp.accounting.papers import composed_epsilon, guarantee, needs_delta, zcdp_epsilon
from skdp.accounting.pricing import least_factor

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


def zcdp(event, delta, adjacency):
    """Return epsilon of the steps by zero-concentrated differential privacy."""
    if not isinstance(event, Gaussian | Laplace):
        raise UnknownCost("zCDP has no theorem for samples.")
    return zcdp_epsilon(
        STEPS * (event.sensitivity(adjacency) / event.noise_multiplier) ** 2 / 2, delta
    )


def advanced(event, delta, adjacency):
    """Return epsilon of the steps by advanced composition, for the best division of delta."""

    def divided(share):
        each = -math.expm1(math.log1p(-share * delta) / STEPS)
        epsilon, spent = guarantee(event, each, adjacency)
        slack = delta + math.expm1(STEPS * math.log1p(-spent))
        return composed_epsilon([(epsilon, spent, STEPS)], max(slack, 0.0))

    shares = [k / 64 for k in range(1, 64)] if needs_delta(event, adjacency) else [0.0]
    return min(map(divided, shares))


def by_paper(theorem):
    """Return the function that calibrates noise by a paper's theorem."""

    def scale(event, adjacency):
        def cost(factor):
            return theorem(event.scaled(factor), DELTA, adjacency)

        return least_factor(cost, EPSILON, DELTA)

    return scale


def price(delta):
    """Return the function that calibrates noise as fits do."""

    def scale(event, adjacency):
        return calibrate(Composed(((event, STEPS),)), EPSILON, delta, adjacency).scale

    return scale


COLUMNS = {
    "skdp": price(DELTA),
    "skdp, delta=0": price(0.0),
    "zCDP": by_paper(zcdp),
    "advanced composition": by_paper(advanced),
}


def cell(scale, event, adjacency):
    """Noise multiplier with three digits, or a dash if there is no theorem."""
    try:
        found = scale(event, adjacency)
    except UnknownCost:
        return "-"
    digits = max(0, 2 - math.floor(math.log10(found)))
    return f"{found:.{digits}f}"


def table():
    """Return rows of text: a plan, and the noise that each theorem requires."""
    rows = [["plan", *COLUMNS]]
    for title, plan in PLANS.items():
        rows.append([title, *(cell(scale, *plan) for scale in COLUMNS.values())])
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
