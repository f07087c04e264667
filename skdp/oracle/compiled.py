"""Which block functions run compiled: one rule for all of them.

A function of rows that is written in numpy may have a *twin* of the same arguments and meaning,
compiled by numba (``pip install "skdp[fast]"``). Its decorator, `has_twin`, decides which
of the two runs, by public facts: whether numba is there, the shape and type of the rows, the loss.
Either way the records add the same, within the rounding errors that noise is added for, so the
guarantee does not know the difference.
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

# Numbers of X from which a twin is worth it. To import numba and load what is kept on disk takes
# about half a second, and to compile it once ten: a fit of fewer numbers takes less than a tenth.
LEAST_NUMBERS = 1 << 17
FEW_NUMBERS = 1 << 12  # from which an exact twin is worth it where all is loaded: it costs a call

LOOPS = "skdp.oracle.loops"

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
    """Let ``compiled_<name>`` in a module do the work where that is worth it.

    The twin returns NotImplemented, before anything else, for what it cannot do.

    Parameters
    ----------
    module : str
        Imported only when it is needed.
    is_exact : bool, default=False
        Whether the twin's results are equal, but for the sign of a 0, which no sum shows. Once it
        is loaded it may then take smaller blocks, too: what ran before in a process must not show
        in a result.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def either(rows: HasShape, *arguments: Any) -> Any:
            if is_worth(rows.shape) or (is_exact and _is_ready(rows.shape)):
                twins = _loaded(module)
                if isinstance(twins, ModuleType):
                    found = getattr(twins, f"compiled_{function.__name__}")(rows, *arguments)
                    if found is not NotImplemented:
                        return found
            return function(rows, *arguments)

        # mypy: no type says "has a shape as its first argument, and else takes what it is given".
        return either  # type: ignore[return-value]

    return decorate


def is_worth(shape: tuple[int, ...]) -> bool:
    """Whether twins are asked for, and worth it for rows of a public shape."""
    return _is_on and math.prod(shape) >= LEAST_NUMBERS


def _is_ready(shape: tuple[int, ...]) -> bool:
    return _is_on and _is_loaded and math.prod(shape) >= FEW_NUMBERS


def prepare(shape: tuple[int, ...]) -> None:
    """Compile or load what rows of a public shape may need, while nothing has been charged."""
    found = _loaded(LOOPS) if is_worth(shape) else None
    if isinstance(found, Exception) and not isinstance(found, ImportError):
        warnings.warn(
            f"skdp: numba is installed but cannot compile here ({type(found).__name__}); numpy is "
            f"used, which is slower. Set the environment variable {SWITCH}=never to say so.",
            RuntimeWarning,
            stacklevel=2,
        )


_is_loaded = False


@functools.cache
def _loaded(module: str) -> ModuleType | Exception:
    """Return a module of twins, or why there is none.

    Nothing is said here: with groups, the number of rows in a part is private.
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
