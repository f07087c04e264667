"""Issue warnings at the user's line, however deep in this library or in a search the cause is."""

import sys
import warnings
from collections.abc import Iterator
from types import FrameType

# Packages whose frames are not the user's: this one, and those that call estimators for users.
LIBRARIES = frozenset(
    {"skdp", "sklearn", "imblearn", "joblib", "contextlib", "threading", "concurrent"}
)
_shown: dict[object, set[tuple[object, ...]]] = {}  # warnings and their lines, by where they went


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line outside of the libraries, and once for each line.

    A fixed stack level would depend on how a fit was reached: by ``fit``, in a pipeline, in a
    search. Where no such line exists, as in a worker's thread, the outermost line is named.

    Python's own record of shown warnings is lost whenever a library changes filters, as for every
    fit of a search. This one is lost where warnings go elsewhere, as in every
    ``catch_warnings(record=True)``. Filters of the category decide as ever, such as "always".

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).split(".")[0] in LIBRARIES:
        level, frame = level + 1, frame.f_back
    place = message, category, frame.f_code.co_filename, frame.f_lineno
    filters = [one[0] for one in warnings.filters if issubclass(category, one[2]) and not one[1]]
    is_default = filters[:1] in ([], ["default"])
    target = getattr(warnings, "_showwarnmsg_impl", None)
    if target not in _shown:
        _shown.clear()
    shown = _shown.setdefault(target, set())
    if not (is_default and place in shown):
        warnings.warn(message, category, stacklevel=level)
    if is_default:
        shown.add(place)


def calls_around() -> Iterator[FrameType]:
    """Yield the calls around this one by other code than this package, innermost first.

    An estimator is given rows, and does not see which estimator made them. Like the line of a
    warning, this follows from Python's stack. Nothing that is released or charged may depend on it.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not str(frame.f_globals.get("__name__")).startswith("skdp."):
            yield frame
        frame = frame.f_back
