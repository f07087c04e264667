"""Paragraphs that several docstrings have in common, written once."""

import inspect
import re
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


def section_of(documented: object, title: str) -> dict[str, str]:
    """Return the entries of a section of a numpydoc docstring by the names that they begin with.

    Without docstrings (``python -OO``) there are none.
    """
    doc = inspect.getdoc(documented) or ""
    _, _, rest = doc.partition(f"\n{title}\n{'-' * len(title)}\n")
    entries = re.split(r"\n(?=\S)", rest.partition("\n\n")[0])
    return {entry.split(" : ")[0]: entry for entry in entries if entry}
