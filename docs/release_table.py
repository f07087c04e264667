"""Write the table of "Every release and its proof" from the audited registry.

    python -m docs.release_table > docs/reviewers/releases.inc

Figures are computed with the fields that the tests use; arguments are on the pages of the classes.
"""

import numpy as np

from benchmarks.releases import CLIP, PROOFS, ROW_NORM, STATISTICS
from skdp._oracle import Public
from skdp._oracle.releases import base, moments
from skdp.accounting import Adjacency
from skdp.objective import Logistic, Problem

PUBLIC = Public(60, 4, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=2.0)

# The bound in exact arithmetic, for the fields of `STATISTICS`.
EXACT = {
    "GradientSum": CLIP,
    "GradientDifference": CLIP,
    "DirectionalSum": CLIP,
    "TailSum": CLIP,
    "ResidualCount": 1.0,
    "MagnitudeCounts": 2.0,
    "BinCounts": 2.0,
    "GramSum": ROW_NORM**2,
    "ShrunkGradientSum": ROW_NORM * CLIP,
    "ResidualSquares": 1.0,
    "CappedHessian": Logistic().weight_bound * ROW_NORM**2,
    "ScoreSquares": (CLIP * ROW_NORM) ** 2,
    "LogisticStep": moments.GRADIENT_WEIGHT * ROW_NORM**2,
    "CappedResiduals": CLIP,
    "CutCount": 1.0,
    "UnitSum": 1.0,
    "InfluenceSquares": 1.0,
    "TableCounts": 1.0,
    "WeightCounts": 1.0,
    "WeightSums": 2**0.5,
}
TRIANGLE = "triangle inequality (Abadi et al. 2016)"
ONE_CELL = "one cell of a histogram (Dwork et al. 2006)"
OUTER = "Frobenius norm of an outer product"
PARALLEL = "parallel composition (McSherry 2009, Thm 4)"
THEOREMS = {
    "GradientSum": TRIANGLE,
    "GradientDifference": TRIANGLE,
    "DirectionalSum": TRIANGLE,
    "TailSum": TRIANGLE,
    "ShrunkGradientSum": TRIANGLE,
    "ResidualCount": ONE_CELL,
    "MagnitudeCounts": ONE_CELL,
    "BinCounts": ONE_CELL,
    "ResidualSquares": "a record adds a number in [0, bound squared]",
    "GramSum": OUTER,
    "CappedHessian": OUTER,
    "ScoreSquares": OUTER,
    "LogisticStep": "the largest norm over a class's probability, in closed form, for several "
    f"classes by their curvature (Böhning 1992); {TRIANGLE}",
    "CappedResiduals": "a record adds a number in [-bound, bound]",
    "CutCount": ONE_CELL,
    "InfluenceSquares": "a record adds a number in [-1, 1]",
    "UnitSum": "a record adds a number in [-1, 1] (Dwork, McSherry, Nissim, Smith 2006, Prop. 1)",
    "TableCounts": ONE_CELL,
    "WeightCounts": ONE_CELL,
    "WeightSums": "a record adds two numbers in [0, 1]",
    "ShuffledPass": f"{PARALLEL}; amplification by shuffling (Feldman, McMillan, Talwar 2021)",
    "GaussianNoise": "Balle and Wang 2018, Thm 8",
    "VertexSelection": "report noisy max (Dwork and Roth 2014, Claim 3.9), proved in the docstring",
    "LaplaceNoise": "Dwork, McSherry, Nissim, Smith 2006, Prop. 1; Kuru et al. 2022, Thm A.1",
    "NoisyStatistic": "that of its statistic, its mechanism and its sampler",
    "Coordinates": "a public map",
    "AllRows": "none is needed",
    "Poisson": "dominating pairs (Zhu, Dong, Wang 2022, Thm 11)",
    "FixedSize": "advanced joint convexity (Balle, Barthe, Gaboardi 2018, Thm 2)",
    "Cut": PARALLEL,
}


def contribution(kind):
    """Bound and spread of a statistic, with the figures of its test."""
    context = base.PublicContext(PUBLIC, Problem(Logistic()), 1.0)
    statistic = STATISTICS[kind](np.zeros(PUBLIC.shape))
    return statistic.contribution(context, PUBLIC.n_rows)


def entry(kind):
    """Cells of one class: its page, its name in statements, its sensitivity and its theorem."""
    title, sensitivity = kind.__name__, ""
    if kind in STATISTICS:
        found = contribution(kind)
        slack = found.bound / EXACT[title] - 1
        if not 0 <= slack < 1e-3:
            raise ValueError(f"{title}: the bound is {found.bound}, not {EXACT[title]}")
        sensitivity = f"{EXACT[title]:.4g}, times {found.spread:.4g}"
    name = getattr(kind, "kind", None)
    return f"`{title}`", name if isinstance(name, str) else "", sensitivity, THEOREMS[title]


def text():
    """All entries; what is halved in its test first, samplers and other parts last."""
    kinds = sorted(base._AUDITED, key=lambda kind: (kind not in PROOFS, kind.__name__))
    head = ("class", "in statements", "sensitivity, replace one", "rests on")
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 24 16 18 42", ""]
    for row in [head, *map(entry, kinds)]:
        lines += [f"   {'*' if cell is row[0] else ' '} - {cell}".rstrip() for cell in row]
    return "\n".join(lines)


if __name__ == "__main__":
    print(text())
