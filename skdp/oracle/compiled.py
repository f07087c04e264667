"""Which block functions run compiled: one rule for all of them.

A function of rows that is written in numpy may have a *twin* of the same arguments and meaning,
compiled by numba (``pip install "skdp[fast]"``). Its decorator, `has_twin`, decides which
of the two runs, by public facts: whether numba is there, the shape and type of the rows, the loss.
Either way the records add the same, but for rounding errors, whose bound is charged for; so the
guarantee holds for both.
"""

import functools
import importlib
import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Protocol, TypeVar

# Entries of X from which a twin is worth it. Importing numba and loading the compiled code from
# disk takes about half a second, compiling it for the first time ten seconds; a fit to fewer
# entries takes about a tenth of a second without it.
LEAST_NUMBERS = 1 << 17
# The same once everything is loaded, for a twin whose results are bit-identical: it must make up
# for one more call.
FEW_NUMBERS = 1 << 12

# Steps of a pass run compiled from so many times LEAST_NUMBERS on, counting the numbers that they
# read and, for what numpy does at every step, NUMBERS_PER_STEP more: about 40 ms. Their loops
# are loaded in a few hundredths of a second beside numba, and compiled in five seconds.
MANY_STEPS, NUMBERS_PER_STEP = 1 << 7, 1 << 11

LOOPS = "skdp.oracle.loops"  # the module that imports numba
STEPS = "skdp.oracle.kernels.step_twins"  # hands passes of many small steps to loops of their own

# Environment variable: "auto", or "never" for numpy alone. Read when skdp is imported.
SWITCH = "SKDP_COMPILED"
_is_on = os.environ.get(SWITCH, "auto").strip().lower() not in ("never", "0", "off", "false")


class HasShape(Protocol):
    """Rows, as an array or as records."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""


Function = TypeVar("Function", bound=Callable[..., Any])


def has_twin(module: str, is_exact: bool = False) -> Callable[[Function], Function]:
    """Decorate a function so that ``compiled_<its name>`` in a module does the work where faster.

    For what it cannot do the twin returns NotImplemented, before it does anything else; then the
    function itself does it.

    Parameters
    ----------
    module : str
        Imported only when it is needed.
    is_exact : bool, default=False
        Whether the twin's results are bit-identical, but for the sign of a 0, which no sum shows.
        It then takes smaller blocks, too, once it is loaded. Other twins must not: results would
        depend on what ran before in the process.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def faster_of_both(rows: HasShape, *arguments: Any) -> Any:
            if is_large(rows.shape) or (is_exact and _is_loaded_and_large(rows.shape)):
                twins = _loaded(module)
                if isinstance(twins, ModuleType):
                    found = getattr(twins, f"compiled_{function.__name__}")(rows, *arguments)
                    if found is not NotImplemented:
                        return found
            return function(rows, *arguments)

        # mypy: no type says "has a shape as its first argument, and else takes what it is given".
        return faster_of_both  # type: ignore[return-value]

    return decorate


def is_large(shape: tuple[int, ...]) -> bool:
    """Whether twins are switched on, and rows of a public shape are many enough to gain by one."""
    return _is_on and math.prod(shape) >= LEAST_NUMBERS


def _is_loaded_and_large(shape: tuple[int, ...]) -> bool:
    return _is_on and _is_loaded and math.prod(shape) >= FEW_NUMBERS


def is_long(n_steps: int, n_rows: float, n_columns: int) -> bool:
    """Whether twins are switched on, and steps on so many rows each are enough to gain by one.

    All arguments are public: the steps of a pass, the *expected* rows of a step, and the columns.
    """
    work = n_steps * (n_rows * n_columns + NUMBERS_PER_STEP)
    return _is_on and work >= MANY_STEPS * LEAST_NUMBERS


def step_twins(n_steps: int, n_rows: float, n_columns: int) -> Any:
    """Return the module that takes steps compiled, where they are enough; else None."""
    found = _loaded(STEPS) if is_long(n_steps, n_rows, n_columns) else None
    return found if isinstance(found, ModuleType) else None


def prepare(shape: tuple[int, ...], has_long_passes: bool = False) -> None:
    """Compile or load what rows of a public shape may need, while nothing has been charged.

    ``has_long_passes`` says whether the solver takes passes of which `is_long` is true.
    """
    wanted = [LOOPS] * is_large(shape) + [STEPS] * has_long_passes
    found = next(filter(_is_failure, map(_loaded, wanted)), None)
    if found is not None:
        warnings.warn(
            f"skdp: numba is installed but cannot compile here ({type(found).__name__}); numpy is "
            f"used, which is slower. Set the environment variable {SWITCH}=never to say so.",
            RuntimeWarning,
            stacklevel=2,
        )


def _is_failure(found: object) -> bool:
    return isinstance(found, Exception) and not isinstance(found, ImportError)


_is_loaded = False


@functools.cache
def _loaded(module: str) -> ModuleType | Exception:
    """Return a module of twins, or the error that kept it from being imported.

    No warning is given here: whether this is reached depends on the number of rows in a part, which
    is private with groups. `prepare` warns, by the public shape.
    """
    global _is_loaded
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = importlib.import_module(module)
    except Exception as failure:  # whatever numba raises where it cannot compile: numpy does
        return failure
    _is_loaded = True
    return found


def is_installed() -> bool:
    """Whether there are compiled twins in this process; compiles or loads them."""
    return isinstance(_loaded(LOOPS), ModuleType)


@contextmanager
def switched(on: bool, least_numbers: int | None = None) -> Iterator[None]:
    """Turn twins on or off in the block, for tests and benchmarks; not safe with other threads."""
    global _is_on, LEAST_NUMBERS
    former = _is_on, LEAST_NUMBERS
    _is_on = on
    if least_numbers is not None:
        LEAST_NUMBERS = least_numbers
    try:
        yield
    finally:
        _is_on, LEAST_NUMBERS = former
