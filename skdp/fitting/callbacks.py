"""Callbacks of scikit-learn 1.9 and later: they get steps and budget, and nothing of rows."""

import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self

from skdp import accounting
from skdp._warnings import warn
from skdp.fitting import parts
from skdp.oracle import Entry, Plan

HOOKS = "on_fit_task_begin", "on_fit_task_end"  # scikit-learn's, that may ask for X and y
PROGRESS_LINES = 10  # that a fit with verbose=2 prints, at most
RELEASES_PER_LINE = 100  # where the number of releases is not known beforehand

try:
    _callback: Any = importlib.import_module("sklearn.callback")
except ImportError:  # before scikit-learn 1.9
    _callback = None


class _NoCallbacks:
    """Takes the place of scikit-learn's mixin in versions without callbacks."""


CallbackSupport: Any = _NoCallbacks if _callback is None else _callback.CallbackSupportMixin


def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method so that callbacks end with it, whatever happens in it."""
    if _callback is None:
        return method
    wrapped: Callable[..., Any] = _callback.with_callbacks(method)
    return wrapped


def supports_callbacks(estimator: Any) -> bool:
    """Whether scikit-learn has callbacks, and the number of fits inside of it is public."""
    return _callback is not None and bool(estimator._n_fits_is_public)


def warn_about_rows(estimator: Any, callbacks: Iterable[Any]) -> None:
    """Warn about callbacks that request rows, which they do not get."""
    if hasattr(estimator, "_parent_callback_ctx"):  # a meta-estimator's, which others use as well
        return
    for callback in callbacks:
        requested = {name for hook in HOOKS for name in _requested(callback, hook)}
        rows = sorted({"X", "y"} & requested)
        if rows:
            warn(
                f"{type(estimator).__name__}: {type(callback).__name__} asks for "
                f"{' and '.join(rows)}, and gets None: what it computed from the rows would "
                "not be private. Score the fitted model on rows that are public, or by "
                "skdp.metrics.evaluate.",
                UserWarning,
            )


def _requested(callback: Any, hook: str) -> set[str]:
    """Return the keyword-only parameters of a hook: by scikit-learn's convention, what it gets."""
    parameters = inspect.signature(getattr(callback, hook)).parameters.values()
    return {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}


def _has_callbacks(estimator: Any) -> bool:
    return _callback is not None and bool(vars(estimator).get("_skl_callbacks"))


def without_callbacks(estimator: Any) -> Any:
    """Take the callbacks off an estimator, and off those inside of it; clones share them."""
    for part in (estimator, *estimator.get_params().values()):
        if not isinstance(part, type):
            getattr(part, "__dict__", {}).pop("_skl_callbacks", None)
    return estimator


class Progress:
    """Reports releases to callbacks, and prints them with ``verbose=2``.

    It knows the plan and what was charged, and sees neither rows nor answers.

    Parameters
    ----------
    estimator : estimator
    plan : Plan
    statement : PrivacyStatement
    """

    def __init__(self, estimator: Any, plan: Plan, statement: accounting.PrivacyStatement) -> None:
        self._estimator, self._statement, self._scale = estimator, statement, plan.calibration.scale
        self._n_steps = None if plan.adaptive else sum(entry.count for entry in plan.entries)
        self._step = 0
        self._prints = getattr(estimator, "verbose", 0) > 1
        self._context: Any = None
        if _has_callbacks(estimator):
            self._context = estimator._init_callback_context(max_subtasks=self._n_steps)
            self._context.call_on_fit_task_begin(estimator=estimator)

    @classmethod
    def of(cls, estimator: Any, plan: Plan, statement: accounting.PrivacyStatement) -> Self | None:
        """Return the progress of a fit; None without callbacks and with ``verbose`` below 2.

        None for fits in a private search, too: their number is secret.
        """
        if parts.is_charged():
            return None
        is_wanted = _has_callbacks(estimator) or getattr(estimator, "verbose", 0) > 1
        return cls(estimator, plan, statement) if is_wanted else None

    def released(self, kind: str, entries: tuple[Entry, ...]) -> None:
        """Take note of one more release.

        Parameters
        ----------
        kind : str
        entries : tuple of Entry
            The debts so far, in relative units.
        """
        self._step += 1
        if self._prints and self._step % self._interval == 0:
            who, of = type(self._estimator).__name__, self._n_steps
            print(f"[{who}] release {self._step}{f' of {of}' if of else ''}: {kind}")
        if self._context is not None:
            task = self._context.subcontext(task_name=kind)
            task.call_on_fit_task_begin(estimator=self._estimator)
            # A function, called only if a hook asks for it: prices take their time.
            task.call_on_fit_task_end(
                estimator=self._estimator, metadata=lambda: self._facts(kind, entries)
            )

    def ended(self) -> None:
        """Take note that nothing else is going to be released."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)

    @property
    def _interval(self) -> int:
        return RELEASES_PER_LINE if self._n_steps is None else -(-self._n_steps // PROGRESS_LINES)

    def _facts(self, kind: str, entries: tuple[Entry, ...]) -> dict[str, Any]:
        """Return what a callback may know."""
        stated = self._statement
        spent = stated.epsilon
        if self._scale > 0 and self._step != self._n_steps:
            debts = tuple(entry.record(self._scale) for entry in entries)
            so_far = replace(accounting.Cost.of(stated), releases=debts)
            spent = min(spent, so_far.price()[0])
        return {
            "release": kind,
            "step": self._step,
            "n_steps": self._n_steps,
            "epsilon_spent": spent,
            "epsilon": stated.epsilon,
            "delta": stated.delta,
        }
