"""Compile loops over rows with numba if their work repays the time that numba needs to load.

A loop does the work of a kernel in numpy (``pip install "skdp[fast]"``). Public facts decide which
of the two runs: whether numba is installed, and the shape of a fit and its number of passes. Either
way records add the same up to rounding errors, whose bound is charged for. So the guarantee holds
for both.
"""

import functools
import importlib
import os
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

# Numbers that passes read, times outputs, from which loops repay the half second of loading numba:
# each number is read about 2 nanoseconds faster.
LEAST_WORK = 1 << 28
# Earlier versions choose the wrong loop for named tuples of arrays.
LEAST_NUMBA = (0, 61, 2)
# Loops whose compilation takes seconds and is announced. They run for public reasons: others run
# only if rows have few entries.
ANNOUNCED = {("skdp._oracle.kernels.loops", name) for name in ("add_dense", "add_sparse")}
ANNOUNCEMENT = (
    "skdp: numba compiles a loop for rows of this type. It takes several seconds, once if numba "
    "finds a directory to keep it."
)
# Environment variable: "auto", or "never" for numpy only. Read when skdp is imported.
SWITCH = "SKDP_COMPILED"

Function = TypeVar("Function", bound=Callable[..., Any])

_is_on = os.environ.get(SWITCH, "auto").strip().lower() not in ("never", "0", "off", "false")
_is_loaded = False
is_quiet = ContextVar("is_quiet", default=False)


class Loop:
    """A function in plain Python that numba compiles on its first call, for each type of its rows.

    All attributes are those of numba's dispatcher, so that numba uses a loop in another loop as a
    compiled function. There is no fast-math unless an option says so: nan stays nan, and sums are
    added up as they are written.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        self._function, self._options = function, options

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The compiled function. Its code is kept on disk if numba finds a directory for it."""
        import numba

        options = {"error_model": "numpy", "nogil": True, **self._options}
        try:
            return numba.njit(cache=True, **options)(self._function)
        except (RuntimeError, OSError):  # no directory that it can write to
            return numba.njit(**options)(self._function)

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)


def compile_loop(**options: Any) -> Callable[[Function], Function]:
    """Decorate a loop, with options of numba."""
    return typing.cast(Callable[[Function], Function], functools.partial(Loop, **options))


def is_active() -> bool:
    """Whether compiled loops do the work."""
    return _is_on and _is_loaded


def prepare(n_numbers: float) -> None:
    """Load numba if it repays, or if it is in the process already.

    Parameters
    ----------
    n_numbers : float
        Numbers that all passes of a fit read, times outputs: a public fact.
    """
    if _is_on and (n_numbers >= LEAST_WORK or sys.modules.get("numba") is not None):
        load()


@compile_loop()
def double(number: float) -> float:
    """Return twice a number. Compiled to see whether anything can be."""
    return 2.0 * number


def load() -> bool:
    """Load numba, and return whether loops can be compiled, which a small one shows."""
    global _is_loaded
    try:
        is_recent = importlib.import_module("numba").version_info[:3] >= LEAST_NUMBA
        _is_loaded = is_recent and double(1.0) == 2.0
        _announce_compilations()
    except Exception:  # whatever numba raises if it is missing, or cannot compile here
        _is_loaded = False
    return _is_loaded


@functools.cache
def _announce_compilations() -> None:
    """Print a line whenever numba begins to compile a large loop that is not on disk."""
    events: Any = importlib.import_module("numba.core.event")

    def announce(_: object, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        is_large = (function.__module__, function.__name__) in ANNOUNCED
        if is_large and sys.__stderr__ and not is_quiet.get():
            # Not `sys.stderr`, which audits of fits compare: this depends on earlier fits.
            with suppress(OSError, ValueError):
                print(ANNOUNCEMENT, file=sys.__stderr__, flush=True)

    methods = {"on_start": announce, "on_end": lambda *_: None}
    events.register("numba:compile", type("Announcement", (events.Listener,), methods)())


@contextmanager
def quiet() -> Iterator[None]:
    """Show no compilation and no step: they would show which candidate a search has drawn."""
    token = is_quiet.set(True)
    try:
        yield
    finally:
        is_quiet.reset(token)


def or_numpy(by_loops: Function) -> Function:
    """Decorate a function that uses loops: it returns None if numpy is to do the work.

    That is so if loops do not run, and if numba cannot compile them for the types of their
    arguments, which are public. No other error is caught: it could depend on values of rows.
    """

    @functools.wraps(by_loops)
    def tried(*arguments: Any, **options: Any) -> Any:
        if not is_active():
            return None
        try:
            return by_loops(*arguments, **options)
        except importlib.import_module("numba.core.errors").NumbaError:
            return None

    return typing.cast(Function, tried)


@contextmanager
def switched(on: bool) -> Iterator[None]:
    """Turn compiled loops on or off in the block, for tests and benchmarks.

    Not safe with other threads.
    """
    global _is_on, _is_loaded
    former = _is_on, _is_loaded
    _is_on = on
    try:
        if on:
            load()
        yield
    finally:
        _is_on, _is_loaded = former
