"""Former names of public objects, which keep working with a FutureWarning."""

import importlib
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType

# The new name for each former one, by module; with the module before it, if the object has moved.
FORMER_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "skdp.accounting": {
            "AdvancedComposition": "AdvancedCompositionAccountant",
            "BallsAndBinsModel": "BallsAndBinsAccountant",
            "GaussianDP": "GDPAccountant",
            "MixedComposition": "MixedAccountant",
            "ObjectiveModel": "ObjectivePerturbationAccountant",
            "OnePass": "DisjointPass",
            "OptimalComposition": "OptimalCompositionAccountant",
            "PrivacyLossDistribution": "PLDAccountant",
            "PureDP": "PureDPAccountant",
            "RenyiDP": "RDPAccountant",
            "SelectionModel": "SelectionAccountant",
            "ShuffleModel": "ShuffleAccountant",
            "ZeroConcentratedDP": "ZCDPAccountant",
            "knowing": "supporting_accountants",
        },
        "skdp.oracle": {
            "DebiasedEstimate": "skdp.stages.inference.stage.DebiasedEstimate",
            "Everyone": "AllRows",
            "NoisySum": "NoisyStatistic",
            "Sum": "Statistic",
        },
    }
)


def former_names(module: str) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a module some of whose names have changed.

    Parameters
    ----------
    module : str
        Full name of the module. The module to which an object has moved is imported at the first
        use of its former name.
    """
    new_names = FORMER_NAMES[module]

    def getattr_of_module(name: str) -> object:
        """Return the object that a former name stands for, with a warning."""
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = new_names[name].rpartition(".")
        message = f"{module}.{name} is now {home or module}.{new}; the old name will be removed."
        warnings.warn(message, FutureWarning, stacklevel=2)
        return getattr(importlib.import_module(home or module), new)

    return getattr_of_module
