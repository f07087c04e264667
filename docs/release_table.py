"""Write the entries of "Every release and its proof" from the audited registry.

    python -m docs.release_table > docs/reviewers/releases.inc

Arguments are the docstrings' own; figures are computed with the fields that the tests use.
"""

import inspect
import re

import numpy as np

from benchmarks.releases import CLIP, OTHERS, PROOFS, ROW_NORM, STATISTICS
from skdp.accounting import Adjacency
from skdp.objective import Logistic, Problem
from skdp.oracle import Public
from skdp.oracle.releases import base, one_step

PUBLIC = Public(60, 4, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=2.0)
TEST = "tests/audit/test_every_release.py::test_half_of_the_sensitivity_is_found"
ARGUMENT = re.compile(r"Sensitivity|\*Theorem|Theorem|cost")

_newton = ROW_NORM**2 / 4
# The bound in exact arithmetic, for the fields of `STATISTICS`.
EXACT = {
    "GradientSum": CLIP,
    "GradientDifference": CLIP,
    "DirectionalSum": CLIP,
    "TailSum": CLIP,
    "ResidualCount": 1.0,
    "GradientCount": 1.0,
    "SquaredNormSum": 1.0,
    "MagnitudeCounts": 2.0,
    "BinCounts": 2.0,
    "GramSum": ROW_NORM**2,
    "ShrunkGradientSum": ROW_NORM * CLIP,
    "ResidualSquares": 1.0,
    "LargestEigenvalue": (PUBLIC.row_norm or 0.0) ** 2,
    "SmallestEigenvalue": ROW_NORM**2,
    "NewtonDirection": _newton / (1e3 * (1e3 + _newton)),
    "CappedHessian": ROW_NORM**2,
    "ScoreSquares": (CLIP * ROW_NORM) ** 2,
    "LogisticStep": one_step.GRADIENT_WEIGHT * ROW_NORM**2,
    "CappedResiduals": CLIP,
    "CutCount": 1.0,
    "UnitSum": 1.0,
    "InfluenceSquares": 1.0,
    "TableCounts": 1.0,
}
TRIANGLE = "triangle inequality (Abadi et al. 2016, sec. 3.1)"
ONE_CELL = "a record is in one cell of a histogram (Dwork, McSherry, Nissim, Smith 2006)"
OUTER = "the outer product of a vector has its squared length for Frobenius norm"
PARALLEL = "parallel composition (McSherry 2009, Thm 4)"
THEOREMS = {
    "GradientSum": TRIANGLE,
    "GradientDifference": TRIANGLE,
    "DirectionalSum": TRIANGLE,
    "TailSum": TRIANGLE,
    "ShrunkGradientSum": TRIANGLE,
    "ResidualCount": ONE_CELL,
    "GradientCount": ONE_CELL,
    "MagnitudeCounts": ONE_CELL,
    "BinCounts": ONE_CELL,
    "SquaredNormSum": "a record adds a number in [0, 1]",
    "ResidualSquares": "a record adds a number in [0, bound squared]",
    "GramSum": OUTER,
    "CappedHessian": OUTER,
    "ScoreSquares": OUTER,
    "LogisticStep": f"the largest norm over a class's probability, in closed form; {TRIANGLE}",
    "CappedResiduals": "a record adds a number in [-bound, bound]",
    "CutCount": ONE_CELL,
    "InfluenceSquares": "a record adds a number in [-1, 1]",
    "UnitSum": "a record adds a number in [-1, 1] (Dwork, McSherry, Nissim, Smith 2006, Prop. 1)",
    "TableCounts": ONE_CELL,
    "LargestEigenvalue": "Weyl's inequality",
    "SmallestEigenvalue": "Weyl's inequality",
    "NewtonDirection": "Sherman-Morrison (Ganesh et al. 2023, Lemma 3.3)",
    "LastIterate": "shifted interpolation (Bok, Su, Altschuler 2024)",
    "ShuffledPass": f"{PARALLEL}; amplification by shuffling (Feldman, McMillan, Talwar 2021)",
    "SVRGPass": "composition of its steps (Dong, Roth, Su 2019)",
    "PerturbedMinimum": "Redberg, Koskela, Wang 2023; Iyengar et al. 2019",
    "NoisyMinimum": "strong convexity (Chaudhuri, Monteleoni, Sarwate 2011, Lemma 7)",
    "GaussianNoise": "Balle and Wang 2018, Thm 8",
    "VertexSelection": "report noisy max (Dwork and Roth 2014, Claim 3.9), proved in the docstring",
    "LaplaceNoise": "Dwork, McSherry, Nissim, Smith 2006, Prop. 1; Kuru et al. 2022, Thm A.1",
    "NoisyStatistic": "that of its statistic, its mechanism and its sampler",
    "Coordinates": "a public map",
    "AllRows": "none is needed",
    "Poisson": "dominating pairs (Zhu, Dong, Wang 2022, Thm 11)",
    "FixedSize": "advanced joint convexity (Balle, Barthe, Gaboardi 2018, Thm 2)",
    "Block": PARALLEL,
    "Fold": PARALLEL,
    "Bin": f"{PARALLEL}; balls and bins (Chua et al. 2025)",
    "Cut": PARALLEL,
}
FLOATING_POINT = {
    "LastIterate": "``LastIterate._rounding``, added to the sensitivity of every step",
    "ShuffledPass": "that of GradientSum; noise is added exactly (``StepNoise``)",
    "SVRGPass": "that of GradientDifference; the grid follows the bound (``VaryingNoise``)",
    "PerturbedMinimum": "``_rounding`` of gradients, hidden by noise on the answer",
    "NoisyMinimum": "``_rounding`` of gradients, added to the bound; the grid's step, too",
    "GaussianNoise": "one step of the grid in every coordinate, added to the bound",
    "VertexSelection": "one step of the grid, added to the bound; sums on the grid are exact",
    "LaplaceNoise": "one step of the grid in every coordinate, added to the bound",
    "NoisyStatistic": "that of its statistic and its mechanism",
    "Coordinates": "``transform_rounding``, charged by the statistics that use it",
}


def contribution(kind):
    """Bound and spread of a statistic, with the figures of its test."""
    context = base.PublicContext(PUBLIC, Problem(Logistic()), 1.0)
    statistic = STATISTICS[kind](np.zeros(PUBLIC.shape))
    return statistic.contribution(context, PUBLIC.n_rows)


def paragraphs(kind):
    """Paragraphs of a docstring, each on one line, parameters left out."""
    text = inspect.getdoc(kind).partition("\nParameters\n")[0].partition("\nAttributes\n")[0]
    return [" ".join(part.split()) for part in text.split("\n\n")]


def entry(kind):
    """Lines of one class."""
    title, (first, *rest) = kind.__name__, paragraphs(kind)
    lines = [title, "~" * len(title), ""]
    if isinstance(name := getattr(kind, "kind", None), str):
        lines.append(f":In statements: {name}")
    lines.append(f":What: {first}")
    argument = [part for part in rest if ARGUMENT.search(part)]
    if argument:
        lines.append(f":Argument: {argument[0]}")
    lines.append(f":Theorem: {THEOREMS[title]}")
    if kind in STATISTICS:
        found = contribution(kind)
        slack = found.bound / EXACT[title] - 1
        if not 0 <= slack < 1e-3:
            raise ValueError(f"{title}: the bound is {found.bound}, not {EXACT[title]}")
        lines += [
            f":Sensitivity: {EXACT[title]:.4g} under zero-out, {found.spread:.4g} times that under "
            f"replace-one, in L{found.order} norm (with the figures of the test)",
            f":Floating point: {slack:.1e} of the bound is added to it, for 60 rows"
            if slack
            else ":Floating point: sums are exact",
        ]
    elif title in FLOATING_POINT:
        lines.append(f":Floating point: {FLOATING_POINT[title]}")
    if kind in PROOFS:
        lines += [f":Test: ``{TEST}[{title}-...]``", f":Mutant: {PROOFS[kind].mutant}"]
    else:
        lines.append(f":Test: ``{OTHERS[kind]}``")
    return [*lines, ""]


def text():
    """All entries; what is halved in its test first, samplers and other parts last."""
    kinds = sorted(base._AUDITED, key=lambda kind: (kind not in PROOFS, kind.__name__))
    return "\n".join(line for kind in kinds for line in entry(kind))


if __name__ == "__main__":
    print(text())
