"""Rehearse the stages of a fit without rows, calibrate the noise, then run on the rows once."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from skdp import accounting
from skdp._numbers import Array
from skdp._oracle.noise import NoiseSource
from skdp._oracle.oracle import AdmitAll, Entry, FollowPlan, Guard, Ledger, Oracle, PrivacyFilter
from skdp._oracle.public import Public
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.base import Source
from skdp._oracle.sources.column_map import Scaling
from skdp.objective import Problem

# Gradients that grow by this factor mean divergence, where no noise can be the reason.
DIVERGENCE_RATIO = 10.0


@dataclass(frozen=True)
class Solution:
    """Result of a solver, which the stages around it complete.

    Attributes
    ----------
    coef : array of shape (n_parameters, n_outputs)
    n_iter : int
        Steps taken.
    n_gradients : float, default=0.0
        Gradients of single records that were released, in expectation. A session fills it in.
    scaling : Scaling or None
        How the records were standardised on the way, if they were: then ``coef`` is in
        standardised units.
    row_bound : float or None
        Bound on the rows that the solver ended with. The solver's stage fills it in.
    slopes : tuple of float
        Lengths of gradients without noise, penalty and constraint included, from that of the first
        step to that of the last, which is about 0 at the minimum. Empty if the solver keeps none.
    results : mapping
        Other results of answers, by name: errors of a cross-validation, or an inference about the
        coefficients.
    """

    coef: Array
    n_iter: int
    n_gradients: float = 0.0
    scaling: Scaling | None = None
    row_bound: float | None = None
    slopes: tuple[float, ...] = ()
    results: Mapping[str, Any] = field(default_factory=dict)


class Stage(ABC):
    """A part of a fit that makes requests and completes its solution.

    Attributes
    ----------
    place : {"before", "solver", "after", "checkpoint"}
        Where it stands: before the solver, in its place, after it, or inside of it, after half of
        the solver's steps.
    share : float or None
        Share of the budget, in mu squared: of the rest after the stages outside of it, from the
        first one inwards, then from the last one. Of a checkpoint, relative to the solver's own
        releases. None for the solver, which gets the rest.
    adaptive : bool
        Whether it decides its noise from earlier answers, so that there is no plan to rehearse.
    first : int
        Of a stream: the number of first records, which it reads and no other stage does. 0 if all
        stages read the same. Its cost, up to the whole budget, does not reduce the budget of the
        others then: a record is charged for the costlier of both.
    """

    place: ClassVar[str] = "solver"
    share: float | None
    adaptive: bool = False
    first: int = 0

    @abstractmethod
    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        """Make the requests, and return the solution that follows from the answers.

        The relative noise of a release determines its part of the stage's share. A checkpoint gets
        the point that the solver has reached as ``solution.coef``. Its results are kept, and the
        solver goes on from that point.

        Returns
        -------
        Solution
            Input of later stages and of the model.
        """

    def public_after(self, public: Public) -> Public:
        """Return the public facts once it has run, no function of answers.

        Returns
        -------
        Public
        """
        return public.divided(self.first)[1] if self.first else public

    def results(self, solution: Solution) -> Mapping[str, Any]:
        """Return the attributes that the model keeps of the fit's solution, by name.

        Returns
        -------
        mapping of str to object
            Empty if the stage leaves nothing to the model.
        """
        return {}

    def assumptions(self) -> tuple[str, ...]:
        """Return the privacy statement's sentences on this stage.

        Returns
        -------
        tuple of str
        """
        return ()


class SolverProtocol(Protocol):
    """The part of a solver that a session needs."""

    @property
    def adaptive(self) -> bool:
        """Whether it decides its noise from earlier answers."""

    def solve(self, oracle: Oracle) -> Solution:
        """Request releases of the oracle and return a solution."""


@dataclass(frozen=True, eq=False)
class SolverStage(Stage):
    """A solver as the stage that gets the rest of the budget.

    Parameters
    ----------
    solver : SolverProtocol
    checkpoints : tuple of Stage
        Stages that run after half of its steps. Their releases are in the solver's plan.
    """

    solver: SolverProtocol
    checkpoints: tuple[Stage, ...] = ()
    share: float | None = None

    # mypy: other stages have a class attribute of this name. Here it follows from the solver.
    @property
    def adaptive(self) -> bool:  # type: ignore[override]
        return self.solver.adaptive

    def run(self, oracle: Oracle, solution: Solution) -> Solution:
        results = dict(solution.results)

        def checkpoint(point: Array, spent: float) -> None:
            reached = replace(solution, coef=point)
            for stage in self.checkpoints:
                # In the unit of the solver's own releases.
                inner = replace(stage, share=stage.share * spent)  # type: ignore[type-var, operator]
                reached = inner.run(oracle, reached)
            results.update(reached.results)

        oracle.checkpoint = checkpoint
        solved = self.solver.solve(oracle)
        scaling = solution.scaling and oracle.scaling
        return replace(
            solved,
            scaling=scaling,
            row_bound=oracle.public.row_bound,
            results={**solved.results, **results},
        )

    def results(self, solution: Solution) -> Mapping[str, Any]:
        kept = {
            "scaling_": solution.scaling,
            "n_iter_": solution.n_iter,
            "n_gradients_": solution.n_gradients,
            "row_bound_": solution.row_bound,
        }
        for stage in self.checkpoints:
            kept.update(stage.results(solution))
        return kept

    def assumptions(self) -> tuple[str, ...]:
        return tuple(text for stage in self.checkpoints for text in stage.assumptions())


Stages = tuple[Stage, ...]


def inside(stage: Stage, public: Public) -> Public:
    """Return public facts for stages within another stage, with the budget it leaves to them."""
    after = stage.public_after(public)
    if public.is_noisy and stage.share is not None and not stage.first:
        after = replace(after, share=public.share * (1 - stage.share))
    return after


def public_after(stages: Stages, public: Public) -> Public:
    """Return the public facts of the records that the solver and later stages answer for.

    Parameters
    ----------
    stages : tuple of Stage
    public : Public
        The facts before.

    Returns
    -------
    Public
    """
    for stage in stages:
        if stage.place == "before":
            public = inside(stage, public)
    return public


@dataclass(frozen=True)
class Plan:
    """Releases of a fit to come, and their noise.

    Attributes
    ----------
    entries : tuple of Entry
        Debts in order, noise in relative units. For a solver that decides its noise on the way:
        one entry which stands for the whole budget.
    units : tuple of float
        Relative noise 1 of each stage, in units of the plan.
    calibration : Calibration
        The factor on the noise, and the epsilon it is certified for.
    adaptive : bool
        Whether a privacy filter guards the run, instead of the plan itself.
    """

    entries: tuple[Entry, ...]
    units: tuple[float, ...]
    calibration: accounting.Calibration
    adaptive: bool

    def guard(self, public: Public) -> Guard:
        """Return a fresh guard for one run of this plan.

        Returns
        -------
        Guard
            It allows the releases of the plan, each of them once, in their order.
        """
        return PrivacyFilter(public.adjacency) if self.adaptive else FollowPlan(self.entries)

    def cost(
        self, public: Public, assumptions: tuple[str, ...], noise_source: str
    ) -> accounting.Cost:
        """Return the cost of a run that keeps to the plan.

        A run that stops early costs the same: the releases that it might have requested count,
        because the step at which it stopped is information as well.

        Returns
        -------
        Cost
        """
        scale = self.calibration.scale
        return accounting.Cost(
            releases=tuple(entry.record(scale) for entry in self.entries),
            delta=public.delta,
            adjacency=public.adjacency_name,
            unit=public.unit,
            n=public.n_rows,
            assumptions=assumptions,
            noise_source="none" if scale == 0 else noise_source,
        ).certify(self.calibration.epsilon, self.calibration.accountant)


def rehearse(stage: Stage, public: Public, problem: Problem) -> tuple[Entry, ...]:
    """Run a stage on an oracle without rows, and return the debts of its requests.

    The placeholder answers come from a fixed, public seed: nothing in them is secret, and a plan
    should not change from one call to the next.

    Parameters
    ----------
    stage : Stage
    public : Public
        Facts about the records that it answers for.
    problem : Problem

    Returns
    -------
    tuple of Entry
        The debts in order, noise in relative units.
    """
    ledger = Ledger(AdmitAll())
    context = PublicContext(public, problem, scale=1.0)
    oracle = Oracle(context, ledger, rng=np.random.default_rng(0))
    stage.run(oracle, Solution(oracle.start(), 0))
    return ledger.entries


def make_plan(stages: Stages, public: Public, problem: Problem) -> Plan:
    """Rehearse the stages of a fit, and calibrate their noise to the budget.

    Each stage is rehearsed by itself. Stages with a share speak of noise next to the whole budget:
    a release of share q has ``1 / sqrt(q)`` times the noise of a gradient sum that uses all of it.
    The solver speaks of noise in a unit of its own. Calibrating only this stage shows the unit that
    leaves the other stages their shares. Where that is not exact, for batches, shares come out
    approximate, and the price of the whole is exact all the same. A stage with records of its own
    leaves the others the whole budget.

    Parameters
    ----------
    stages : tuple of Stage
        In the order of their run.
    public : Public
    problem : Problem

    Returns
    -------
    Plan

    Raises
    ------
    UnknownCost
        If no theorem prices the plan, or no amount of noise meets the budget.
    """
    adaptive = any(stage.adaptive for stage in stages)
    solver = next((i for i, stage in enumerate(stages) if stage.place == "solver"), 0)
    inside_out = [*range(solver, len(stages)), *reversed(range(solver))]
    units = [1.0] * len(stages)
    debts: dict[int, tuple[Entry, ...]] = {}
    for number in inside_out:
        stage, share = stages[number], stages[number].share
        if share and number != solver and (adaptive or public.is_noisy):
            left = 1.0 if stages[number].first else 1 - share
            unit = 1 / (left if public.is_pure else math.sqrt(left))  # shares of epsilon, or mu**2
            if not adaptive:
                unit *= _noise_for_gradients(_in_order(debts, units), public)
            for inner in debts:
                units[inner] *= unit
        facts = public_after(stages[:number], public)
        debts[number] = () if adaptive else rehearse(stage, facts, problem)
    entries = _in_order(debts, units)
    if adaptive:
        entries = (Entry("adaptive", PrivacyFilter.whole_budget()),)
    calibration = accounting.calibrate(
        _event(entries), public.epsilon, public.delta, public.adjacency
    )
    return Plan(entries, tuple(units), calibration, adaptive)


def _in_order(debts: dict[int, tuple[Entry, ...]], units: list[float]) -> tuple[Entry, ...]:
    """Return the debts of all stages in the order of the run, their noise in one unit."""
    ledger = Ledger(AdmitAll())
    for number, entries in sorted(debts.items()):
        for entry in entries:
            ledger.charge(entry.kind, entry.event.scaled(units[number]), entry.count)
    return ledger.entries


def _event(entries: tuple[Entry, ...]) -> accounting.Composed:
    return accounting.Composed(tuple((entry.event, entry.count) for entry in entries))


def _noise_for_gradients(entries: tuple[Entry, ...], public: Public) -> float:
    """Return the noise factor at which a plan costs as much as one gradient sum.

    That is one with noise 1.
    """
    epsilon, delta = public.epsilon, public.delta
    scale = accounting.calibrate(_event(entries), epsilon, delta, public.adjacency).scale
    spent = epsilon if public.is_pure else accounting.gaussian_mu(epsilon, delta)
    return scale * spent / public.sensitivity_factor


def run(
    plan: Plan,
    stages: Stages,
    public: Public,
    problem: Problem,
    source: Source,
    noise_source: NoiseSource,
    rng: np.random.Generator,
    on_release: Callable[[str], None] | None = None,
) -> Solution:
    """Run stages on rows, guarded by their plan.

    Parameters
    ----------
    plan : Plan
        From `make_plan`, of the same stages and facts.
    stages : tuple of Stage
        In the order of their run.
    public : Public
    problem : Problem
    source : Source
        The rows.
    noise_source : NoiseSource
    rng : numpy.random.Generator
        For choices of solvers that need not be secret.
    on_release : callable or None, default=None
        Called after each charge, with the kind of the release.

    Returns
    -------
    Solution

    Raises
    ------
    PlanError, BudgetError
        If a stage asks for something else than it announced, or for more than it has.
    FloatingPointError
        If the solver diverged: to nan or inf, or, without noise, to ever longer gradients.
    """
    context = PublicContext(public, problem, plan.calibration.scale)
    oracle = Oracle(context, Ledger(plan.guard(public)), rng, source, noise_source, on_release)
    solution = Solution(oracle.start(), 0)
    # Divergence is checked below, no overflow warnings here.
    with np.errstate(over="ignore", invalid="ignore"):
        for stage, unit in zip(stages, plan.units, strict=True):
            oracle.set_noise_unit(unit)
            solution = stage.run(oracle, solution)
    if not np.isfinite(solution.coef).all():
        raise FloatingPointError(
            "the solver diverged: its parameter holds nan or inf. Lower learning_rate. "
            "The budget of this fit is spent."
        )
    _refuse_divergence(oracle.gradient_lengths, public, problem)
    return replace(solution, n_gradients=oracle.n_gradients)


def _refuse_divergence(lengths: list[float], public: Public, problem: Problem) -> None:
    """Raise FloatingPointError if gradients grew, where no noise can be the reason.

    All of the last tenth have to be long, as those of small batches differ. A start outside of the
    constraint does not count: from there to the set they may grow.
    """
    if public.start is not None:
        return  # next to a minimum, where a given start may lie, first gradients say nothing
    inside = problem.constraint.contains(np.zeros(public.n_features))
    compared = [length for length in lengths[not inside :] if length > 0]
    last = compared[-max(1, len(compared) // 10) :]
    if compared and min(last) > DIVERGENCE_RATIO * compared[0]:
        raise FloatingPointError(
            "the solver diverged: without noise, its last gradients are more than "
            f"{DIVERGENCE_RATIO:g} times as long as the first. Lower learning_rate (where there is "
            "none: raise curvature), or standardise the columns."
        )
