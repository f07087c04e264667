"""Progress of a fit, for callbacks of scikit-learn 1.9 and later; rows and answers stay here."""

import importlib
from collections.abc import Callable
from typing import Any, Self

from skdp.fitting import parts
from skdp.oracle import Plan

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

    It sees the number and the kinds of the releases, and neither rows nor answers.

    Parameters
    ----------
    estimator : estimator
    plan : Plan
    """

    def __init__(self, estimator: Any, plan: Plan) -> None:
        self._estimator, self._step = estimator, 0
        self._n_steps = None if plan.adaptive else sum(entry.count for entry in plan.entries)
        self._prints = getattr(estimator, "verbose", 0) > 1
        self._context: Any = None
        if _has_callbacks(estimator):
            self._context = estimator._init_callback_context(max_subtasks=self._n_steps)
            self._context.call_on_fit_task_begin(estimator=estimator)

    @classmethod
    def of(cls, estimator: Any, plan: Plan) -> Self | None:
        """Return the progress of a fit; None without callbacks and with ``verbose`` below 2.

        It is also None for fits in a private search, whose number is secret.
        """
        if parts.is_charged():
            return None
        is_wanted = _has_callbacks(estimator) or getattr(estimator, "verbose", 0) > 1
        return cls(estimator, plan) if is_wanted else None

    def released(self, kind: str) -> None:
        """Report one more release, of this kind."""
        self._step += 1
        if self._prints and self._step % self._interval == 0:
            who, of = type(self._estimator).__name__, self._n_steps
            print(f"[{who}] release {self._step}{f' of {of}' if of else ''}: {kind}")
        if self._context is not None:
            task = self._context.subcontext(task_name=kind)
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)

    def ended(self) -> None:
        """Report that nothing else is going to be released."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)

    @property
    def _interval(self) -> int:
        return RELEASES_PER_LINE if self._n_steps is None else -(-self._n_steps // PROGRESS_LINES)
