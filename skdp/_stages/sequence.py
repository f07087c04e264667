"""The sequence of stages of a fit: which there are, which of them apply, and their shares."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from skdp._oracle import Plan, Public, SolverStage, Stage, public_after
from skdp._oracle.session import inside
from skdp._stages.base import OptionalStage, StageParameters
from skdp._stages.calibration import Correction, MeanCorrection, Recalibration
from skdp._stages.inference import InferenceStage
from skdp._stages.scaling.stage import ScalingStage, Widening
from skdp._stages.scaling.weights import WeightStage
from skdp.objective import Problem
from skdp.solvers import Solver

PLACES = ("before", "checkpoint", "after")  # of optional stages

# All optional stages, in the order of their run. The solver stands after those "before" it, and
# checkpoints run inside of it.
STAGES: tuple[type[OptionalStage], ...] = (
    WeightStage,
    ScalingStage,
    Widening,
    MeanCorrection,
    Correction,
    Recalibration,
    InferenceStage,
)


class Sequence(NamedTuple):
    """The stages of a fit in the order of their run.

    Attributes
    ----------
    stages : tuple of Stage
        The solver's stage among them.
    solver : Solver
        Resolved: without "auto".
    left_out : mapping
        The missing requirement of each stage that does not apply, by the title of the stage.
    """

    stages: tuple[Stage, ...]
    solver: Solver
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class Prepared:
    """All that is settled about a fit before any row is read.

    Attributes
    ----------
    public : Public
    problem : Problem
    stages : tuple of Stage
    plan : Plan
    solver : Solver or None
        The solver among the stages, resolved. None for a scaler.
    notes : tuple of str
        Which solver "auto" stands for, and which stages are left out, with the reasons.
    """

    public: Public
    problem: Problem
    stages: tuple[Stage, ...]
    plan: Plan
    solver: Solver | None = None
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def public_after(self) -> Public:
        """Public facts about the records that the solver answers for."""
        return public_after(self.stages, self.public)


def stages_of(
    parameters: StageParameters, public: Public, problem: Problem, solver: Solver
) -> Sequence:
    """Return the stages that apply to a fit, and its solver with values in place of "auto".

    Each stage gets the public facts that the stages outside of it leave, their budget included:
    first those before the solver, then those after it from the last one inwards, then checkpoints.

    Raises
    ------
    ValueError
        If a parameter demands a stage that does not apply. Nothing was released.
    """
    parameters = replace(parameters, adaptive=solver.adaptive)
    at = {place: [kind for kind in STAGES if kind.place == place] for place in PLACES}
    left_out = {}
    for kind in (*at["before"], *reversed(at["after"]), *at["checkpoint"]):
        if kind is at["checkpoint"][0]:  # whether a solver has one depends on its steps
            solver = solver.resolve(public, problem)
            parameters = replace(parameters, has_checkpoint=solver.has_checkpoint)
        if not kind.concerns(problem, parameters):
            continue
        reason = kind.applies(public, problem, parameters)
        if reason is None:
            stage = kind.of(public, problem, parameters)
            parameters = replace(parameters, chosen=(*parameters.chosen, stage))
            public = public if stage.place == "checkpoint" else inside(stage, public)
            continue
        demanded = kind.demanded(public, problem, parameters)
        if demanded is not None:
            who = parameters.who
            raise ValueError(
                f"{who}: {demanded} is possible only with {reason}. Nothing was released."
            )
        left_out[kind.title] = reason
    chosen = {place: [one for one in parameters.chosen if one.place == place] for place in PLACES}
    inner = SolverStage(solver, tuple(chosen["checkpoint"]))
    return Sequence((*chosen["before"], inner, *reversed(chosen["after"])), solver, left_out)
