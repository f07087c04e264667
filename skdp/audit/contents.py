"""Serialise all state of an object: what its pickle contains, and what pickling leaves out."""

import contextlib
import copyreg
import functools
import io
import pickle
import sys
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

REDUCERS = ("__getstate__", "__reduce__", "__reduce_ex__")


def as_bytes(value: object) -> bytes | None:
    """Return bytes that are equal for two objects only if they hold the same; None if unknown.

    They are a pickle in which attributes stand beside what the class chooses to pickle, an array
    that is a view is followed by the array that it views, one of a subclass by its attributes, and
    functions that no module knows by name show their defaults and closures and, if partial, their
    arguments. It is made twice, so that it does not matter which of the equal parts are one object.
    """
    written = io.BytesIO()
    with contextlib.suppress(Exception):  # of whatever type: what is not known is a finding
        _FullPickler(written).dump(value)
        return pickle.dumps(pickle.loads(written.getvalue()))
    return None


class _Contents:
    """Stands for an object of another type in the pickle of all that it holds."""


class _FullPickler(pickle.Pickler):
    """Pickles parts of objects that pickling leaves out; what it writes is not to be used."""

    def reducer_override(self, value: object) -> Any:
        parts = _parts(value)
        # Parts are written as a state, once the object itself was noted, so that cycles end.
        return NotImplemented if parts is None else (_Contents, (), {"parts": parts})


def _parts(value: object) -> list[object] | None:
    """Return what stands for an object; None if its pickle leaves nothing out."""
    kind = type(value)
    if isinstance(value, ModuleType):
        return [value.__name__]
    if isinstance(value, type | FunctionType) and _is_importable(value):
        return None
    if isinstance(value, type):
        return [value.__qualname__]
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [value.__qualname__, value.__defaults__, value.__kwdefaults__, cells, vars(value)]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords, vars(value)]
    if isinstance(value, np.ndarray) and (value.base is not None or hasattr(value, "__dict__")):
        owner = value.base
        viewed = owner if isinstance(owner, np.ndarray | None) else bytes(memoryview(owner))
        # Attributes are those of a subclass, whose pickle leaves them out.
        plain = np.array(value, order="K", subok=False)
        return [kind, plain, viewed, getattr(value, "__dict__", None)]
    names = copyreg._slotnames(kind)  # type: ignore[attr-defined]  # typeshed has not this one
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    held |= getattr(value, "__dict__", {})
    is_plain = all(getattr(kind, name) is getattr(object, name) for name in REDUCERS)
    if (is_plain and _is_importable(kind)) or not held:
        return None
    pickled = None
    with contextlib.suppress(Exception):  # rows refuse; what they are made of follows
        pickled = value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
    return [kind, pickled, held]


def _is_importable(value: type | FunctionType) -> bool:
    target: Any = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        target = getattr(target, name, None)
    return target is value
