"""Paragraphs that several docstrings have in common, written once."""

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

Documented = TypeVar("Documented", bound=Callable[..., object])  # a class, or a method


def fill(**paragraphs: str) -> Callable[[Documented], Documented]:
    """Put paragraphs in place of their ``{names}`` in the docstring of a class or method."""

    def filled(documented: Documented) -> Documented:
        doc = inspect.cleandoc(documented.__doc__ or "")
        for name, text in paragraphs.items():
            doc = doc.replace(f"{{{name}}}", text.strip())
        documented.__doc__ = doc + "\n"
        return documented

    return filled


def without_types(method: Documented) -> Documented:
    """Let help show the parameters of a method without their types, which its docstring states."""
    given = inspect.signature(method)
    bare = [one.replace(annotation=one.empty) for one in given.parameters.values()]
    signature = given.replace(parameters=bare, return_annotation=given.empty)
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def section_of(documented: object, title: str) -> dict[str, str]:
    """Return the entries of a section of a numpydoc docstring by the names that they begin with.

    Without docstrings (``python -OO``) there are none.
    """
    doc = inspect.getdoc(documented) or ""
    _, _, rest = doc.partition(f"\n{title}\n{'-' * len(title)}\n")
    entries = re.split(r"\n(?=\S)", rest.partition("\n\n")[0])
    return {entry.split(" : ")[0]: entry for entry in entries if entry}
