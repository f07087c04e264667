"""Paragraphs that several docstrings have in common, written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

Class = TypeVar("Class", bound=type)


def fill(**paragraphs: str) -> Callable[[Class], Class]:
    """Put paragraphs in place of their ``{names}`` in a class's docstring (class decorator)."""

    def filled(cls: Class) -> Class:
        doc = inspect.cleandoc(cls.__doc__ or "")
        for name, text in paragraphs.items():
            doc = doc.replace(f"{{{name}}}", text.strip())
        cls.__doc__ = doc + "\n"
        return cls

    return filled
