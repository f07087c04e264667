"""Every audited class: who asks for it in an audit, what halves its sensitivity, and its tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import skdp
from skdp._oracle import Solution
from skdp._oracle.public import INTERCEPT_SIZE, LONG_ROW
from skdp._oracle.releases import (
    gradients,
    histograms,
    mechanisms,
    moments,
    record_sums,
    shuffled_pass,
)
from skdp.solvers import Solver

CLIP, ROW_NORM = 0.3, 0.7  # below what hostile records reach, so that the bounds are met


class Asking(Solver):
    """Asks for one noisy statistic and learns nothing from it."""

    def __init__(self, statistic=None):
        self.statistic = statistic

    def automatic(self, public, problem):
        return {}

    def check_values(self, public, problem):
        pass

    def solve(self, oracle):
        statistic = STATISTICS[self.statistic](oracle.start())
        mechanism = mechanisms.GaussianNoise()
        if getattr(statistic, "order", 2) == 1:
            mechanism = mechanisms.LaplaceNoise()
        answer = oracle.request(mechanisms.NoisyStatistic(statistic, mechanism))
        # Moved a little, so that attributes depend on the answer.
        return Solution(oracle.start() + 1e-3 * np.tanh(answer.sum()), 1)


def _whitened(kind, at, residual_bound=CLIP):
    """In coordinates in which the longest records are longer than `ROW_NORM`, but not by much."""
    longest = LONG_ROW * len(at) ** 0.5  # that fits take, without the intercept
    coordinates = moments.Coordinates(np.eye(len(at)) * ROW_NORM / longest)
    return kind(at, coordinates, ROW_NORM, residual_bound)


def _sure(at):
    """A point at which every record of class 0 is wrong, for sure."""
    sure = np.zeros(at.shape)
    sure[-1] = 1e3
    return sure


def _halfway(at):
    """Return a point of three classes at which the residuals of two labels are orthogonal."""
    point = np.zeros(at.shape)
    point[-1, 0] = np.log(1 + 3**0.5) / INTERCEPT_SIZE  # p, p and (1 + sqrt(3)) p
    return point


STATISTICS = {
    gradients.GradientSum: lambda at: gradients.GradientSum(at, CLIP),
    gradients.GradientDifference: lambda at: gradients.GradientDifference(at + 1.0, at, CLIP),
    record_sums.ResidualCount: lambda at: record_sums.ResidualCount(_sure(at), 0.5),
    histograms.MagnitudeCounts: lambda at: histograms.MagnitudeCounts(True, False),
    histograms.BinCounts: lambda at: histograms.BinCounts(
        True, False, np.full(4, -2.0), np.ones(4), 4
    ),
    record_sums.DirectionalSum: lambda at: record_sums.DirectionalSum(
        at, np.ones(at.shape), CLIP, True
    ),
    record_sums.TailSum: lambda at: record_sums.TailSum(
        at + 3.0, np.full(4, -0.5), np.full(4, 0.5), 1.0, CLIP
    ),
    moments.GramSum: lambda at: moments.GramSum(ROW_NORM),
    moments.ShrunkGradientSum: lambda at: _whitened(moments.ShrunkGradientSum, at),
    record_sums.ResidualSquares: lambda at: record_sums.ResidualSquares(_sure(at), 1.0),
    moments.CappedHessian: lambda at: _whitened(moments.CappedHessian, at, residual_bound=1.0),
    moments.ScoreSquares: lambda at: _whitened(moments.ScoreSquares, _halfway(at)),
    moments.LogisticStep: lambda at: _whitened(moments.LogisticStep, _sure(at)),
    record_sums.CappedResiduals: lambda at: record_sums.CappedResiduals(at, CLIP),
    record_sums.CutCount: lambda at: _whitened(record_sums.CutCount, _sure(at), residual_bound=0.5),
    record_sums.UnitSum: lambda at: record_sums.UnitSum(0),
    record_sums.InfluenceSquares: lambda at: record_sums.InfluenceSquares(np.ones(4), -1.0),
    histograms.TableCounts: lambda at: histograms.TableCounts(0, np.array([-1.0, 1.0])),
    histograms.WeightCounts: lambda at: histograms.WeightCounts(-4.0, 1.0, 8),
    record_sums.WeightSums: lambda at: record_sums.WeightSums(1.0, np.zeros(0)),
}


@dataclass(frozen=True)
class Proof:
    """Where an audited class is put to the test.

    Attributes
    ----------
    estimator : callable
        ``estimator(adjacency)`` returns one whose fit uses the class.
    halve : callable
        ``halve(patch)`` halves the sensitivity that is charged, with pytest's monkeypatch.
    mutant : str
        What the halving does.
    """

    estimator: Any
    halve: Any
    mutant: str = "declared bound halved"


def _statistic(kind, factor=0.5, classes=(0, 1)):
    def estimator(adjacency):
        return skdp.DPLogisticRegression(
            classes=list(classes),
            solver=Asking(kind),
            scaling="none",
            privacy=skdp.Privacy(adjacency=adjacency),
        )

    def halve(patch):
        original = kind.contribution

        def contribution(self, context, n_rows):
            found = original(self, context, n_rows)
            return replace(found, bound=found.bound * factor)

        patch.setattr(kind, "contribution", contribution)

    mutant = "declared bound halved" if factor == 0.5 else f"declared bound times {factor}"
    return Proof(estimator, halve, mutant)


def _halved(owner, name, get=lambda found: replace(found, bound=found.bound / 2)):
    """Halve what a method returns."""

    def halve(patch):
        original = getattr(owner, name)
        patch.setattr(owner, name, lambda self, *given: get(original(self, *given)))

    return halve


def _less_noise(owner):
    """Halve the noise that is added."""
    return _halved(owner, "scale_of_noise", lambda scale: scale / 2)


def _model(**parameters):
    def estimator(adjacency):
        return skdp.DPLogisticRegression(
            classes=[0, 1],
            scaling="none",
            privacy=skdp.Privacy(adjacency=adjacency),
            **parameters,
        )

    return estimator


PROOFS = {
    **{kind: _statistic(kind) for kind in STATISTICS},
    # Of two classes the squares of both residuals may be the same.
    moments.ScoreSquares: _statistic(moments.ScoreSquares, classes=(0, 1, 2)),
    shuffled_pass.ShuffledPass: Proof(
        _model(solver=skdp.solvers.ShuffledSGD(batch_size=1, clip_norm=CLIP)),
        _halved(shuffled_pass.ShuffledPass, "_contribution"),
    ),
    gradients.VertexSelection: Proof(
        _model(
            solver=skdp.solvers.FrankWolfe(max_iter=6, clip_norm=CLIP),
            constraint=skdp.objective.L1Ball(),
            fit_intercept=False,
        ),
        _halved(gradients.VertexSelection, "contribution"),
    ),
    mechanisms.GaussianNoise: Proof(
        _model(max_iter=3), _less_noise(mechanisms.GaussianNoise), "standard deviation halved"
    ),
    mechanisms.LaplaceNoise: Proof(
        lambda adjacency: skdp.DPRidge(
            delta=0.0, max_iter=3, scaling="none", privacy=skdp.Privacy(adjacency=adjacency)
        ),
        _less_noise(mechanisms.LaplaceNoise),
        "scale halved",
    ),
}

# Sums in which no label of a logistic loss plays a part, or one that cancels: labels move none.
NOT_OF_LABELS = {
    histograms.WeightCounts,
    record_sums.WeightSums,
    gradients.GradientDifference,
    histograms.MagnitudeCounts,
    histograms.BinCounts,
    moments.GramSum,
    moments.CappedHessian,
    record_sums.UnitSum,
    record_sums.InfluenceSquares,
    histograms.TableCounts,
}

# Parts that move no statistic by themselves: tests of what they draw, cost or answer, and mutants.
MUTANTS = "benchmarks/bugs.py::no_clipping"
ACCOUNTING = "tests/accounting/test_mutants.py"
OTHERS = {
    mechanisms.NoisyStatistic: MUTANTS,
    moments.Coordinates: "tests/oracle/releases/test_moments.py",
    mechanisms.AllRows: MUTANTS,
    mechanisms.Poisson: f"{ACCOUNTING}::one_sampled_step_in_closed_form",
    mechanisms.FixedSize: f"{ACCOUNTING}::one_sampled_step_in_closed_form",
    mechanisms.Cut: "tests/oracle/releases/test_cuts.py",
}
