"""The ledger of debts, and the guards that refuse a debt which was not agreed on."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from skdp.accounting import Adjacency, Event, Gaussian, ReleaseRecord


class PlanError(RuntimeError):
    """A solver requested something that its rehearsal did not announce."""


class BudgetError(RuntimeError):
    """A solver requested more than the rest of its budget."""


@dataclass(frozen=True)
class Entry:
    """A run of equal debts. Noise is relative: the calibrated scale is not in it."""

    kind: str
    event: Event
    count: int = 1

    def record(self, scale: float) -> ReleaseRecord:
        """Return the releases at a calibrated scale, for a statement.

        Returns
        -------
        ReleaseRecord
        """
        return ReleaseRecord.of(self.kind, self.event.scaled(scale), self.count)


class Guard(ABC):
    """Says whether the next debt may be made."""

    @abstractmethod
    def admit(self, kind: str, event: Event) -> None:
        """Record the next charge, or raise without any change."""


class AdmitAll(Guard):
    """The guard of a rehearsal, where there are no rows to protect."""

    def admit(self, kind: str, event: Event) -> None:
        """Admit it."""


class FollowPlan(Guard):
    """Admits the charges of a plan in their order. A run may stop early."""

    def __init__(self, plan: tuple[Entry, ...]) -> None:
        self._plan = plan
        self._position = 0
        self._used = 0

    def admit(self, kind: str, event: Event) -> None:
        """Admit the plan's next debt, and no other."""
        if self._position == len(self._plan):
            raise PlanError(
                f"the solver requested a {kind!r} release after the end of its plan. "
                "It was refused and nothing more was released."
            )
        expected = self._plan[self._position]
        if (kind, event) != (expected.kind, expected.event):
            raise PlanError(
                f"the solver requested a {kind!r} release with {event!r}, but its plan has a "
                f"{expected.kind!r} release with {expected.event!r} next. It was refused and "
                "nothing more was released."
            )
        self._used += 1
        if self._used == expected.count:
            self._position, self._used = self._position + 1, 0


class PrivacyFilter(Guard):
    """A privacy filter: Gaussian releases whose noise is decided on the way.

    Admits full-batch Gaussian releases while the sum of squared mu stays at most 1, in the relative
    units in which one gradient release with noise 1 spends the whole budget. It may be steered by
    earlier answers (Smith and Thakurta 2022, "Fully adaptive composition for Gaussian
    differential privacy", Thm 2): the sequence is mu-GDP as if it had been fixed beforehand.
    """

    # The papers print "runs if the step costs less than what is left". An exact schedule would lose
    # its last step to that, so equality up to rounding is admitted and the scale pays for it.
    SLACK = 1e-9

    def __init__(self, adjacency: Adjacency) -> None:
        self._adjacency = adjacency
        self.spent = 0.0

    @classmethod
    def whole_budget(cls) -> Gaussian:
        """Return the release that spends everything at once, the rounding slack included."""
        return Gaussian((1 + cls.SLACK) ** -0.5)

    def admit(self, kind: str, event: Event) -> None:
        """Admit a Gaussian release that fits in the rest of the budget."""
        if not isinstance(event, Gaussian):
            raise BudgetError(
                f"a privacy filter admits Gaussian releases over all rows only. The {kind!r} "
                f"release is {event!r}. Nothing more was released."
            )
        unit = Gaussian(1.0).sensitivity(self._adjacency)
        noise = event.noise_multiplier
        cost = (event.sensitivity(self._adjacency) / unit / noise) ** 2 if noise > 0 else math.inf
        if self.spent + cost > 1 + self.SLACK:
            raise BudgetError(
                f"the {kind!r} release would cost {cost:.6g} of the budget, of which "
                f"{max(0.0, 1 - self.spent):.6g} is left. Nothing more was released."
            )
        self.spent += cost


class Ledger:
    """Debts in the order in which they were made."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._entries: list[Entry] = []

    def charge(self, kind: str, event: Event, count: int = 1) -> None:
        """Write a debt down, if the guard admits it. It cannot be undone."""
        self._guard.admit(kind, event)
        last = self._entries[-1] if self._entries else None
        if last is not None and last.kind == kind and last.event == event:
            self._entries[-1] = Entry(kind, event, last.count + count)
        else:
            self._entries.append(Entry(kind, event, count))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The debts, runs of equal ones merged."""
        return tuple(self._entries)
