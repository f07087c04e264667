"""Solvers, which ask an oracle for noisy answers; a file in this folder is found by being there."""

import importlib
import pkgutil
from typing import Any

from skdp.solvers.accelerated_mirror_descent import AcceleratedMirrorDescent
from skdp.solvers.adaptive_shuffled_sgd import AdaptiveShuffledSGD
from skdp.solvers.adassp import AdaptiveSufficientStatistics
from skdp.solvers.adp_sgd import AdaptiveNoiseSGD
from skdp.solvers.base import REGISTRY, Solver
from skdp.solvers.boosted_ssp import BoostedSufficientStatistics
from skdp.solvers.gd import GradientDescent
from skdp.solvers.heavy_ball import HeavyBallDescent
from skdp.solvers.nesterov import MultistageNesterov, Nesterov
from skdp.solvers.newton import Newton
from skdp.solvers.objective_perturbation import ObjectivePerturbation
from skdp.solvers.residual_budget import ResidualBudget
from skdp.solvers.shuffled_sgd import ShuffledSGD
from skdp.solvers.svrg import SVRG, SVRGPlusPlus
from skdp.solvers.whitened import Whitened

__all__ = [
    "SVRG",
    "AcceleratedMirrorDescent",
    "AdaptiveNoiseSGD",
    "AdaptiveShuffledSGD",
    "AdaptiveSufficientStatistics",
    "BoostedSufficientStatistics",
    "GradientDescent",
    "HeavyBallDescent",
    "MultistageNesterov",
    "Nesterov",
    "Newton",
    "ObjectivePerturbation",
    "ResidualBudget",
    "SVRGPlusPlus",
    "ShuffledSGD",
    "Solver",
    "Whitened",
    "available",
    "get_solver",
]

# The imports above are for type checkers and editors. A solver in a new file is registered, and can
# be imported from here, without them.
for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
for _solver in REGISTRY.values():
    globals().setdefault(_solver.__name__, _solver)


def available() -> dict[str, str]:
    """Names of the registered solvers, with the purpose of each in a line.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> import skdp
    >>> print(skdp.solvers.available()["gd"])
    For every problem: proximal gradient descent with momentum. Start with this one.
    """
    return {name: cls.purpose for name, cls in sorted(REGISTRY.items())}


def get_solver(name: str, **parameters: Any) -> Solver:
    """Make a solver by name.

    Parameters
    ----------
    name : str
        A registered name.
    **parameters
        Its hyperparameters.

    Returns
    -------
    Solver

    Raises
    ------
    ValueError
        If the name is unknown, or the solver has no such hyperparameter.
    """
    if name not in REGISTRY:
        names = ", ".join(repr(word) for word in ["auto", *sorted(REGISTRY)])
        raise ValueError(f"solver must be one of {names}, or a Solver; got {name!r}.")
    known = REGISTRY[name]().get_params(deep=False)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise ValueError(
            f"solver {name!r} has no {', '.join(unknown)}. It has {', '.join(sorted(known))}."
        )
    return REGISTRY[name](**parameters)
