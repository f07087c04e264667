"""Make momentum, step sizes, noise schedules and clipping rules from names and arguments."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from skdp._numbers import shown

# A name, or a pair of a name and its arguments.
Named = str | tuple[str, dict[str, object]]


def is_named(given: object) -> TypeGuard[Named]:
    """Return whether this is a name, or a pair of a name and a dict of arguments."""
    if isinstance(given, tuple | list) and len(given) == 2:
        return isinstance(given[0], str) and isinstance(given[1], dict)
    return isinstance(given, str)


def named(
    parameter: str, kinds: Mapping[str, Callable[..., object]], given: object, others: str
) -> Any:
    """Make the object of a name, or of a name and arguments; anything else is returned as it is.

    Parameters
    ----------
    parameter : str
        Name of the hyperparameter, for messages.
    kinds : dict of str to callable
        Classes by name.
    given : str, tuple (str, dict) or object
        ``"polynomial"``, or ``("polynomial", {"a": 50.0})``.
    others : str
        Values of other types that are allowed, for messages.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If the name is unknown, or takes no such argument.

    Examples
    --------
    >>> from skdp.steps import MOMENTA, named
    >>> named("momentum", MOMENTA, ("averaged", {"beta": 0.8}), "a number")
    AveragedGradient(beta=0.8)
    """
    if not is_named(given):
        return given
    name, arguments = (given, {}) if isinstance(given, str) else given
    if name not in kinds:
        known = ", ".join(repr(word) for word in sorted(kinds))
        raise ValueError(
            f"{parameter} must be 'auto', {others} or one of {known}, with arguments as in "
            f"({min(kinds)!r}, {{...}}); got {shown(name)}. Nothing was released."
        )
    allowed = inspect.signature(kinds[name]).parameters
    unknown = sorted(set(arguments) - set(allowed))
    if unknown:
        raise ValueError(
            f"{parameter}: {name!r} takes {', '.join(allowed) or 'no arguments'}; got "
            f"{', '.join(map(shown, unknown))}. Nothing was released."
        )
    return kinds[name](**arguments)
