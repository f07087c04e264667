"""Functions that travel to worker processes, which cannot import test files."""

from __future__ import annotations

import types


def sendable(function):
    """The same function without a module, so that it travels to workers."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__
    )
    copy.__module__ = "__main__"
    return copy
