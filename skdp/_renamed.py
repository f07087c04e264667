"""Former names of public objects, which keep working with a FutureWarning."""

import importlib
import warnings
from collections.abc import Callable, Mapping


def former_names(module: str, new_names: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a module some of whose names have changed.

    Parameters
    ----------
    module : str
        Full name of the module.
    new_names : mapping of str to str
        The new name for each former one; with the module before it, if the object has moved. That
        module is imported at the first use of a former name.
    """

    def getattr_of_module(name: str) -> object:
        """Return the object that a former name stands for, with a warning."""
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = new_names[name].rpartition(".")
        message = f"{module}.{name} is now {home or module}.{new}; the old name will be removed."
        warnings.warn(message, FutureWarning, stacklevel=2)
        return getattr(importlib.import_module(home or module), new)

    return getattr_of_module
