"""Translate events from and to plain Python objects."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np

from skdp.accounting import events
from skdp.accounting.events import Event, Partition

Plain = str | float | bool | None | list["Plain"] | dict[str, "Plain"]

# The types that a file may name: nothing else is ever constructed from one.
_KNOWN: dict[str, type[object]] = {
    name: cls
    for name in events.__all__
    if isinstance(cls := getattr(events, name), type)
    and (issubclass(cls, Event) or cls is Partition)
}


def plain(value: object) -> Plain:
    """Return an event, or mappings and sequences of values, as dicts, lists, numbers and text.

    Numbers that are not finite become text, as JSON has none.
    """
    if is_dataclass(value) and not isinstance(value, type):
        parts = {item.name: plain(getattr(value, item.name)) for item in fields(value)}
        return {"type": type(value).__name__, **parts}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return cast(Plain, value)


def from_plain(value: object) -> Any:  # of a type that the file names
    """Return the value that :func:`plain` turned into ``value``, lists become tuples.

    Raises
    ------
    ValueError
        If it names a type that is no event, or its fields are not those of the type.
    """
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    if not isinstance(value, dict):
        return float(value) if value in ("inf", "-inf", "nan") else value
    entries = dict(value)
    name = entries.pop("type", None)
    if name not in _KNOWN:
        raise ValueError(f"a privacy statement names an unknown type of event, {name!r}.")
    try:
        return _KNOWN[name](**{key: from_plain(item) for key, item in entries.items()})
    except TypeError:
        raise ValueError(f"a privacy statement has a {name} with other fields.") from None
