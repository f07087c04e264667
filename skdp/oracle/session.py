"""From a solver to its answer: rehearse without rows, calibrate, then run on the rows once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from skdp.accounting import (
    Calibration,
    Composed,
    Event,
    PrivacyStatement,
    ReleaseRecord,
    calibrate,
    gaussian_mu,
    walk,
)
from skdp.objective import Problem
from skdp.oracle.ledger import Anything, Entry, FollowPlan, Guard, Ledger, WithinBudget
from skdp.oracle.noise import NoiseSource
from skdp.oracle.oracle import Oracle
from skdp.oracle.public import Public
from skdp.oracle.releases import Terms
from skdp.oracle.releases.base import Array
from skdp.oracle.rows import Rows
from skdp.oracle.scaling import Scaling

RUNAWAY = 10.0  # growth of gradients that tells divergence, where no noise can be the reason


@dataclass(frozen=True)
class Solution:
    """What a solver returns.

    Attributes
    ----------
    coef : array of shape (n_parameters, n_outputs)
    n_iter : int
        Steps taken.
    n_gradients : float, default=0.0
        Gradients of single records that were taken, in expectation; a session fills it in.
    scaling : Scaling or None
        How the records were standardised on the way, if they were: then ``coef`` is in
        standardised units.
    """

    coef: Array
    n_iter: int
    n_gradients: float = 0.0
    scaling: Scaling | None = None


class Solves(Protocol):
    """The part of a solver that a session needs."""

    @property
    def adaptive(self) -> bool:
        """Whether it decides its noise on the way."""

    def solve(self, oracle: Oracle) -> Solution:
        """Ask releases of the oracle and return a solution."""


@dataclass(frozen=True)
class Plan:
    """What a fit is going to release, and with how much noise.

    Attributes
    ----------
    entries : tuple of Entry
        Debts in order, noise in relative units. For a solver that decides its noise on the way:
        one entry which stands for the whole budget.
    calibration : Calibration
        The factor on the noise, and the epsilon it is certified for.
    adaptive : bool
        Whether a privacy filter guards the run, instead of the plan itself.
    """

    entries: tuple[Entry, ...]
    calibration: Calibration
    adaptive: bool

    def guard(self, public: Public) -> Guard:
        """Return a fresh guard for one run of this plan."""
        return WithinBudget(public.adjacency) if self.adaptive else FollowPlan(self.entries)

    def statement(
        self, public: Public, assumptions: tuple[str, ...], noise_source: str
    ) -> PrivacyStatement:
        """Return the privacy statement of a run that keeps to the plan.

        A run that stops early has the same statement: what it might have asked is what it costs,
        because where it stopped tells something, too.
        """
        scale = self.calibration.scale
        return PrivacyStatement(
            epsilon=self.calibration.epsilon,
            delta=public.delta,
            adjacency=str(public.adjacency),
            accountant=self.calibration.accountant,
            releases=tuple(
                _record(entry.kind, entry.event.scaled(scale), entry.count)
                for entry in self.entries
            ),
            assumptions=assumptions,
            noise_source="none" if scale == 0 else noise_source,
            n_rows=public.n_rows,
        )


def _record(kind: str, event: Event, count: int) -> ReleaseRecord:
    return ReleaseRecord(kind, count, _noise_multiplier(event), event)


def _noise_multiplier(event: Event) -> float:
    """Noise multiplier of an event whose mechanisms are all alike, else nan."""
    found = {part for part, _ in walk(event) if not part.inner()}
    return (
        float(getattr(found.pop(), "noise_multiplier", math.nan)) if len(found) == 1 else math.nan
    )


def rehearse(solver: Solves, public: Public, problem: Problem) -> tuple[Entry, ...]:
    """Run a solver against an oracle without rows and return the debts that it makes.

    The stand-in answers come from a fixed, public seed: they hold no secret, and a plan should not
    change from one call to the next.
    """
    ledger = Ledger(Anything())
    terms = Terms(public, problem, scale=1.0)
    solver.solve(Oracle(terms, ledger, coins=np.random.default_rng(0)))
    return ledger.entries


def noise_per_mu(
    solver: Solves, public: Public, problem: Problem, accountant: str = "auto"
) -> float:
    """Return the noise that makes a solver spend a Gaussian-DP parameter of 1, relative to its own.

    Stages that share a budget in mu squared relate their noise by it. It comes from calibrating the
    solver's plan alone; where that is not exact, for batches, shares come out approximate, and the
    price of the whole is exact all the same.
    """
    entries = rehearse(solver, public, problem)
    event = Composed(tuple((entry.event, entry.count) for entry in entries))
    scale = calibrate(event, public.epsilon, public.delta, public.adjacency, accountant).scale
    return scale * gaussian_mu(public.epsilon, public.delta)


def make_plan(solver: Solves, public: Public, problem: Problem, accountant: str = "auto") -> Plan:
    """Find out what a solver is going to ask, and how much noise the budget needs for it.

    Raises
    ------
    UnknownCost
        If no accountant can price the plan, or no amount of noise meets the budget.
    """
    if solver.adaptive:
        entries: tuple[Entry, ...] = (Entry("adaptive", WithinBudget.whole_budget()),)
    else:
        entries = rehearse(solver, public, problem)
    event = Composed(tuple((entry.event, entry.count) for entry in entries))
    found = calibrate(event, public.epsilon, public.delta, public.adjacency, accountant)
    return Plan(entries, found, solver.adaptive)


def run(
    plan: Plan,
    solver: Solves,
    public: Public,
    problem: Problem,
    rows: Rows,
    source: NoiseSource,
    coins: np.random.Generator,
) -> Solution:
    """Run a solver on rows, guarded by its plan.

    Raises
    ------
    PlanError, BudgetError
        If the solver asks for something else than it announced, or for more than it has.
    FloatingPointError
        If the solver diverged: to nan or inf, or, without noise, to ever longer gradients.
    """
    terms = Terms(public, problem, plan.calibration.scale)
    oracle = Oracle(terms, Ledger(plan.guard(public)), coins, rows, source)
    # Runaway iterates are told by the check below, not by warnings on the way.
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solver.solve(oracle)
    if not np.isfinite(solution.coef).all():
        raise FloatingPointError(
            "the solver diverged: its parameter holds nan or inf. Lower learning_rate. "
            "The budget of this fit is spent."
        )
    _refuse_runaway(oracle.gradient_lengths, public, problem)
    return replace(solution, n_gradients=oracle.n_gradients)


def _refuse_runaway(lengths: list[float], public: Public, problem: Problem) -> None:
    """Raise FloatingPointError if gradients grew, where no noise can be the reason.

    All of the last tenth have to be long, as those of small batches differ. A start outside of the
    constraint does not count: from there to the set they may grow.
    """
    inside = problem.constraint.contains(np.zeros(public.n_features))
    compared = [length for length in lengths[not inside :] if length > 0]
    if compared and min(compared[-max(1, len(compared) // 10) :]) > RUNAWAY * compared[0]:
        raise FloatingPointError(
            f"the solver ran away: without noise, its last gradients are more than {RUNAWAY:g} "
            "times as long as the first. Lower learning_rate (where there is none: step, or raise "
            "smoothness), or standardise the columns."
        )
