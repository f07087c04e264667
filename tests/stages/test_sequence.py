"""The sequence of stages: which apply, their order and shares, and why others are left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skdp._oracle import Public
from skdp._oracle.sources.base import IN_MEMORY
from skdp._stages.base import OptionalStage, StageParameters
from skdp._stages.sequence import STAGES, stages_of
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Logistic, Problem, SquaredError
from skdp.solvers import get_solver

PUBLIC = Public(5000, 4, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, row_bound=5.0, provides=IN_MEMORY)
RIDGE, LOGISTIC = Problem(SquaredError(), ElasticNet(0.1)), Problem(Logistic(), ElasticNet(0.1))
AUTO = StageParameters("Model", scaling="auto", calibrates=True)


def sequence(parameters, problem=RIDGE, public=PUBLIC, solver="gd"):
    return stages_of(parameters, public, problem, get_solver(solver))


def names(found):
    return [type(stage).__name__ for stage in found.stages]


def test_every_stage_is_in_the_fit_or_left_out_for_a_reason():
    found = sequence(AUTO)
    assert names(found) == ["ScalingStage", "SolverStage", "Correction"]
    assert [type(stage).__name__ for stage in found.stages[1].checkpoints] == ["Widening"]
    assert found.left_out == {}
    assert names(sequence(AUTO, LOGISTIC))[2:] == ["Recalibration"]
    for problem in (RIDGE, LOGISTIC):
        known = {kind.title for kind in STAGES if kind.concerns(problem, AUTO)}
        one = sequence(AUTO, problem, replace(PUBLIC, epsilon=float("inf")))
        chosen = {stage.title for stage in one.stages if isinstance(stage, OptionalStage)}
        assert {*one.left_out, *chosen} == known


def test_the_solver_gets_the_product_of_what_the_others_leave(monkeypatch):
    """Inference is outside of the correction; neither has a part of the share of scaling."""
    seen, solver = [], type(get_solver("gd"))
    original = solver.resolve

    def resolve(self, public, problem):
        seen.append(public.share)
        return original(self, public, problem)

    monkeypatch.setattr(solver, "resolve", resolve)
    found = sequence(replace(AUTO, inference_share=0.25))
    assert names(found) == ["ScalingStage", "SolverStage", "Correction", "InferenceStage"]
    scaling, inner, correction, inference = found.stages
    assert inner.checkpoints == ()
    assert inference.share == 0.25
    assert 0 < scaling.share < 1
    left = (1 - scaling.share) * (1 - inference.share) * (1 - correction.share)
    assert seen == [pytest.approx(left, rel=1e-12)]


@pytest.mark.parametrize(
    ("parameters", "problem", "message"),
    [
        ({"inference_share": 0.25}, Problem(SquaredError(), ElasticNet(0.1, 1.0)),
         r"Model: inference about coefficients is possible .* no L1 penalty.*Nothing was released"),
    ],
)  # fmt: skip
def test_a_stage_that_is_demanded_is_not_left_out(parameters, problem, message):
    with pytest.raises(ValueError, match=message):
        sequence(replace(AUTO, **parameters), problem)
