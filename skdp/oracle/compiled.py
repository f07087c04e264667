"""Compile loops over rows with numba, and choose between them and numpy by public facts.

A kernel that is written in numpy may have a compiled one beside it, in the same file, of the same
arguments and meaning (``pip install "skdp[fast]"``). `use_compiled` decides which of the two
runs: by whether numba is installed, the shape and type of the rows, and the loss. Either way the
records add the same up to rounding errors, whose bound is charged for; so the guarantee holds for
both.
"""

import functools
import importlib
import itertools
import math
import os
import typing
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from skdp._numbers import AnyArray, Array, Indices
from skdp._warnings import warn

# Entries of X from which compiled kernels are worth it. Importing numba and loading the compiled
# code from disk takes about half a second, compiling it for the first time ten seconds; a fit to
# fewer entries takes about a tenth of a second without it.
LEAST_NUMBERS = 1 << 17
# The same once everything is loaded, for a kernel whose results are bit-identical: it must make up
# for one more call.
LEAST_NUMBERS_ONCE_LOADED = 1 << 12

# Earlier versions choose the wrong loop for named tuples of arrays in single precision.
LEAST_NUMBA = (0, 61, 2)

# Environment variable: "auto", or "never" for numpy alone. Read when skdp is imported.
SWITCH = "SKDP_COMPILED"
_is_on = os.environ.get(SWITCH, "auto").strip().lower() not in ("never", "0", "off", "false")


Function = TypeVar("Function", bound=Callable[..., Any])


# ---------------------------------------------------------------- compilation


@dataclass(frozen=True)
class _Layout:
    """A contiguous array as a loop takes it; one that is only read may be write-protected."""

    dtypes: tuple[str, ...]
    n_dims: int
    is_read: bool = True


# Types of the parameters of loops; a loop is compiled for each type that its rows may have.
Rows = Annotated[AnyArray, _Layout(("float64", "float32"), 2)]
Entries = Annotated[AnyArray, _Layout(("float64", "float32"), 1)]
ColumnNumbers = Annotated[AnyArray, _Layout(("int32", "int64"), 1)]
BitPatterns = Annotated[AnyArray, _Layout(("uint64",), 2)]
Matrix = Annotated[Array, _Layout(("float64",), 2)]
Vector = Annotated[Array, _Layout(("float64",), 1)]
Integers = Annotated[Indices, _Layout(("int64",), 1)]
# Those that a loop writes to.
MatrixOut = Annotated[Array, _Layout(("float64",), 2, is_read=False)]
VectorOut = Annotated[Array, _Layout(("float64",), 1, is_read=False)]
IntegersOut = Annotated[Indices, _Layout(("int64",), 1, is_read=False)]


class Loop:
    """A function in plain Python that numba compiles when it is first called or loaded.

    Functions that are compiled by themselves, ahead of a call, are so for the types that their
    annotations state; others are compiled into those that call them. All attributes are those of
    numba's dispatcher, so that numba takes a loop in another loop for a compiled function.
    """

    def __init__(self, function: Callable[..., Any], is_inner: bool, **options: Any) -> None:
        functools.update_wrapper(self, function)
        self._function, self._is_inner, self._options = function, is_inner, options

    @functools.cached_property
    def dispatcher(self) -> Any:
        """The compiled function; its code is kept on disk where numba finds a place for it."""
        import numba

        options = {"error_model": "numpy", "nogil": True, **self._options}
        if self._is_inner:
            return numba.njit(**options)(self._function)
        signatures = _signatures(self._function)
        try:
            return numba.njit(signatures, cache=True, **options)(self._function)
        except (RuntimeError, OSError):  # no directory that it can write to
            return numba.njit(signatures, **options)(self._function)

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher, name)


def _signatures(function: Callable[..., Any]) -> list[Any]:
    """Return numba's signatures of a function, from its annotations."""
    hints = typing.get_type_hints(function, include_extras=True)
    (result,) = _numba_types(hints.pop("return"))
    return [result(*types) for types in itertools.product(*map(_numba_types, hints.values()))]


def _numba_types(annotation: Any) -> list[Any]:
    """Return the numba types that an annotation stands for."""
    from numba import types

    from_types: Any = types.BaseTuple.from_types  # not typed by numba
    if typing.get_origin(annotation) is Annotated:
        layout = annotation.__metadata__[0]
        dtypes = [getattr(types, dtype) for dtype in layout.dtypes]
        return [types.Array(one, layout.n_dims, "C", readonly=layout.is_read) for one in dtypes]
    if hasattr(annotation, "_fields"):
        hints = typing.get_type_hints(annotation, include_extras=True)
        fields = itertools.product(*map(_numba_types, hints.values()))
        return list(map(functools.partial(from_types, pyclass=annotation), fields))
    scalars = {int: types.int64, float: types.float64, bool: types.boolean, type(None): types.void}
    return [scalars[annotation]]


_LOOPS: list[Loop] = []


def compile_loop() -> Callable[[Function], Function]:
    """Decorate a loop that is compiled by itself, for the types in its annotations.

    Sums are added up as they are written; there is no fast-math, so that nan stays nan.
    """

    def decorate(function: Function) -> Function:
        loop = Loop(function, is_inner=False)
        _LOOPS.append(loop)
        return typing.cast(Function, loop)

    return decorate


def compile_inner(**options: Any) -> Callable[[Function], Function]:
    """Decorate a loop that is compiled as a part of those that call it, with options of numba."""

    def decorate(function: Function) -> Function:
        return typing.cast(Function, Loop(function, is_inner=True, **options))

    return decorate


_is_loaded = False


@functools.cache
def _failure() -> Exception | None:
    """Load the loops; return the error that kept them from it.

    No warning is given here: whether this is reached depends on the number of rows in a part, which
    is private with groups. `prepare` warns, by the public shape.
    """
    global _is_loaded
    try:
        numba = importlib.import_module("numba")
        if numba.version_info[:3] < LEAST_NUMBA:
            raise ImportError("numba is too old; pip install 'skdp[fast]' brings another.")
        with warnings.catch_warnings(action="ignore"):
            for loop in _LOOPS:
                loop.dispatcher  # noqa: B018  which compiles it
    except Exception as failure:  # whatever numba raises where it cannot compile: numpy does
        return failure
    _is_loaded = True
    return None


# ---------------------------------------------------------------- the choice


def use_compiled(shape: tuple[int, ...], is_exact: bool = False) -> bool:
    """Whether a compiled kernel is to do the work on rows of a public shape; loads the loops.

    For what it cannot do the compiled kernel, ``_compiled_<name>`` beside the function in numpy,
    returns None before it does anything else; then numpy does it.

    Parameters
    ----------
    shape : tuple of int
    is_exact : bool, default=False
        Whether the compiled results are bit-identical, but for the sign of a 0, which no sum shows.
        They then replace numpy's on smaller blocks, too, once loops are loaded. Others must not:
        results would depend on what ran before in the process.

    Returns
    -------
    bool
    """
    once_loaded = LEAST_NUMBERS_ONCE_LOADED if is_exact and _is_loaded else math.inf
    pays = _is_on and math.prod(shape) >= min(LEAST_NUMBERS, once_loaded)
    return pays and _failure() is None


def is_large(shape: tuple[int, ...]) -> bool:
    """Whether compiled kernels are on, and rows of a public shape are enough to gain by them."""
    return _is_on and math.prod(shape) >= LEAST_NUMBERS


def prepare(shape: tuple[int, ...]) -> None:
    """Compile or load what rows of a public shape may need, while nothing has been charged."""
    if not is_large(shape):
        return
    failure = _failure()
    if failure is not None and not isinstance(failure, ImportError):
        warn(
            f"skdp: numba is installed but cannot compile here ({type(failure).__name__}); numpy "
            f"is used, which is slower. The environment variable {SWITCH}=never silences this.",
            RuntimeWarning,
        )


def is_installed() -> bool:
    """Whether there are compiled kernels in this process; compiles or loads them."""
    return _failure() is None


@contextmanager
def switched(on: bool, least_numbers: int | None = None) -> Iterator[None]:
    """Turn compiled kernels on or off in the block, for tests and benchmarks.

    Not safe with other threads.
    """
    global _is_on, LEAST_NUMBERS
    former = _is_on, LEAST_NUMBERS
    _is_on = on
    if least_numbers is not None:
        LEAST_NUMBERS = least_numbers
    try:
        yield
    finally:
        _is_on, LEAST_NUMBERS = former
