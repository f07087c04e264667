"""Translate events from and to plain Python objects, and events of dp-accounting."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from skdp.accounting import events
from skdp.accounting.events import Adjacency, Composed, Event, Partition, UnknownCost
from skdp.accounting.pricing import event_mu

DpEvent: TypeAlias = Any  # dp_accounting.DpEvent, which is optional


def from_dp_event(event: DpEvent, adjacency: str) -> Event:
    """Return an event of dp-accounting as one of skdp.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Its noise multipliers are relative to the sensitivity under ``adjacency``, as dp-accounting
        has it for the relation of its accountant. Discrete Laplace noise becomes its guarantee,
        which is at least the cost.
    adjacency : {"zero_out", "replace_one", "label"}
        Of the total that the event is charged to.

    Returns
    -------
    Event

    Raises
    ------
    ValueError
        If the event has no counterpart. Poisson samples have none under replacement, where a
        sensitivity does not determine their cost.
    """
    relation = Adjacency.parse(adjacency, labels=True)

    def inside(part: DpEvent) -> Event:
        return from_dp_event(part, adjacency)

    match type(event).__name__:
        case "NoOpDpEvent":
            return Composed()
        case "NonPrivateDpEvent":
            return events.Gaussian(0.0)
        case "GaussianDpEvent":
            return events.Gaussian(event.noise_multiplier, spread=1.0)
        case "LaplaceDpEvent":
            return events.Laplace(event.noise_multiplier, spread=1.0)
        case "DiscreteLaplaceDpEvent":
            return events.ApproximateDP(event.noise_parameter * event.sensitivity)
        case "ComposedDpEvent":
            return Composed(tuple((inside(part), 1) for part in event.events))
        case "SelfComposedDpEvent":
            return Composed(((inside(event.event), event.count),) if event.count else ())
        case "PoissonSampledDpEvent" if relation is Adjacency.ZERO_OUT:
            return events.PoissonSampled(event.sampling_probability, inside(event.event))
    raise ValueError(
        f"from_dp_event: {type(event).__name__} has no counterpart under {adjacency!r}. Charge its "
        "guarantee, ApproximateDP(epsilon, delta), as an accountant of dp-accounting computes it."
    )


def to_dp_event(event: Event, adjacency: str) -> DpEvent:
    """Return an event as one of dp-accounting, which has to be installed.

    Parameters
    ----------
    event : Event
        Such as ``statement.event``. A release for which dp-accounting has no event, such as answers
        on disjoint blocks, becomes the Gaussian release of the same Gaussian-DP parameter, which
        costs at least as much.
    adjacency : {"zero_out", "replace_one", "label"}
        Of the statement. For sampled releases use an accountant of dp-accounting with the relation
        REPLACE_SPECIAL, which is zero-out.

    Returns
    -------
    dp_accounting.DpEvent

    Raises
    ------
    ImportError
        If dp-accounting is not installed.
    UnknownCost
        If there is no such event.
    """
    import dp_accounting  # optional

    relation = Adjacency.parse(adjacency, labels=True)
    match event:
        case events.Gaussian() | events.Laplace():
            noise = event.noise_multiplier / event.sensitivity(relation)
            name = "GaussianDpEvent" if isinstance(event, events.Gaussian) else "LaplaceDpEvent"
            return getattr(dp_accounting, name)(noise)
        case events.PoissonSampled() if relation is Adjacency.ZERO_OUT:
            inner = to_dp_event(event.event, adjacency)
            return dp_accounting.PoissonSampledDpEvent(event.rate, inner)
    try:
        mu = event_mu(event, relation)
    except UnknownCost:
        if not isinstance(event, Composed):
            raise UnknownCost(
                f"to_dp_event: dp-accounting has no event for {type(event).__name__} under "
                f"{adjacency!r}."
            ) from None
        # Blocks of one partition in different parts only cost more when they are added up.
        parts = [
            dp_accounting.SelfComposedDpEvent(to_dp_event(part, adjacency), count)
            for part, count in event.parts
        ]
        return dp_accounting.ComposedDpEvent(parts)
    if mu == 0:
        return dp_accounting.NoOpDpEvent()
    return dp_accounting.GaussianDpEvent(1 / mu)


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
