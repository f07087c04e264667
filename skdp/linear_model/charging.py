"""Whom a fit is charged to, in which process: the budgets that are open, and the one charge."""

from __future__ import annotations

import os
import threading
import uuid
from typing import Any, Protocol

import joblib
import numpy as np

from skdp._numbers import is_integer
from skdp.accounting import PrivacyStatement

IN_PROCESS = (
    "A budget counts in the process that made it, and nowhere else. Fit there (n_jobs=1), or in "
    'its threads (with joblib.parallel_config(backend="threading"): ...), or make a budget in each '
    "worker, their epsilons and deltas adding up to the whole. Nothing was released."
)


class PrivacyBudgetError(ValueError):
    """A privacy budget refused a fit. Nothing was released and nothing was charged."""


class Purse(Protocol):
    """The part of a budget that a charge needs."""

    @property
    def home(self) -> str | None:
        """The process that it counts in."""

    def admit(self, who: str, asked: PrivacyStatement, seed: str | None) -> PrivacyStatement:
        """Return the total with one more fit, or raise and leave everything as it was."""

    def owe(self, total: PrivacyStatement, seed: str | None) -> None:
        """Write the debt down."""


# Budgets whose ``with`` block is open. A context variable would not reach the threads of a pool, so
# a block charges the fits of all threads: too much in doubt, never too little.
_open: list[Purse] = []
_lock = threading.RLock()
_program = uuid.uuid4().hex


def process() -> str:
    """Name of this process, which its forks do not share."""
    return f"{_program}-{os.getpid()}"


def enter(budget: Purse) -> None:
    """Charge every fit of this process to ``budget`` from now on."""
    with _lock:
        _open.append(budget)


def leave(budget: Purse) -> None:
    """Take back one `enter`; blocks of several threads need not close in order."""
    with _lock:
        del _open[max(place for place, item in enumerate(_open) if item is budget)]


def charge(
    who: str,
    asked: PrivacyStatement,
    budget: Purse | None,
    seed: str | None,
    elsewhere: str | None,
) -> None:
    """Charge a fit, before it uses rows, to its own budget and to all whose block is open.

    Parameters
    ----------
    who : str
        The estimator, for messages.
    asked : PrivacyStatement
        The plan of the fit.
    budget : Purse or None
        The estimator's own.
    seed : str or None
        What the noise follows from; see `seed_of`.
    elsewhere : str or None
        The process with the open budget in whose block the estimator was pickled.

    Raises
    ------
    PrivacyBudgetError
        If a budget does not admit the fit, or cannot be reached. None is charged then.
    """
    if elsewhere is not None:
        raise PrivacyBudgetError(
            f"{who} asked for a fit in a worker process, but it was sent there from inside the "
            "block of a PrivacyBudget of another process, which would not be charged. "
            f"{IN_PROCESS} "
            f"(For a fit that this budget has nothing to do with, make a new {who}.)"
        )
    with _lock:
        asked_for = list(dict.fromkeys([*_open, *([] if budget is None else [budget])]))
        # 1. All of them admit the fit, or none is charged.
        totals = [item.admit(who, asked, seed) for item in asked_for]
        # 2. From here on the debts stand, whatever becomes of the fit.
        for item, total in zip(asked_for, totals, strict=True):
            item.owe(total, seed)


def seed_of(random_state: Any) -> str | None:
    """Return a word for the noise that will follow from ``random_state``, None if none can tell."""
    if is_integer(random_state):
        return f"integer {int(random_state)}"
    if isinstance(random_state, np.random.Generator):
        return str(joblib.hash(random_state.bit_generator.state))
    if isinstance(random_state, np.random.RandomState):
        return str(joblib.hash(random_state.get_state(legacy=False)))
    return None


def open_elsewhere(note: str | None) -> str | None:
    """Return the process whose open budgets an estimator belongs to as it is pickled, if any."""
    with _lock:
        return note or next((budget.home for budget in _open), None)


def is_here(note: str) -> bool:
    """Whether ``note`` names this process, where open budgets are charged anyway."""
    return note == process()


def _renew_lock() -> None:
    """In a forked process: another thread may have held the lock in that moment."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
