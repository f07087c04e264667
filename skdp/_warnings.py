"""Issue warnings at the user's line, however deep in this library or in a search the cause is."""

import sys
import warnings

# Packages whose frames are not the user's: this one, and those that call estimators for users.
LIBRARIES = frozenset({"skdp", "sklearn", "joblib", "contextlib", "threading", "concurrent"})
_shown: set[tuple[object, ...]] = set()  # warnings, and the lines that they name


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line outside of the libraries, and once for each line.

    A fixed stack level would depend on how a fit was reached: by ``fit``, in a pipeline, in a
    search. Where no such line exists, as in a worker's thread, the outermost line is named.

    Python's own record of what was shown is lost whenever a library changes filters, as for every
    fit of a search. Filters of the category decide as ever, such as "always".

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_of_library(str(frame.f_globals.get("__name__", ""))):
        level, frame = level + 1, frame.f_back
    place = message, category, frame.f_code.co_filename, frame.f_lineno
    actions = {one[0] for one in warnings.filters if issubclass(category, one[2]) and not one[1]}
    if place not in _shown or actions - {"default"}:
        warnings.warn(message, category, stacklevel=level)
    if not actions - {"default"}:
        _shown.add(place)


def _is_of_library(module: str) -> bool:
    return module.partition(".")[0] in LIBRARIES
