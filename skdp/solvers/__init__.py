"""How we get there: one solver a file, found by being there."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from skdp.solvers.base import REGISTRY, Solver

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

# After the loop, which must not miss a file.
from skdp.solvers.adaptive_shuffled_sgd import AdaptiveShuffledSGD  # noqa: E402
from skdp.solvers.adp_sgd import AdaptiveNoiseSGD  # noqa: E402
from skdp.solvers.gd import GradientDescent  # noqa: E402
from skdp.solvers.heavy_ball import HeavyBallDescent  # noqa: E402
from skdp.solvers.multistage_nesterov import MultistageNesterov  # noqa: E402
from skdp.solvers.nesterov import Nesterov  # noqa: E402
from skdp.solvers.residual_budget import ResidualBudget  # noqa: E402
from skdp.solvers.shuffled_sgd import ShuffledSGD  # noqa: E402

__all__ = [
    "AdaptiveNoiseSGD",
    "AdaptiveShuffledSGD",
    "GradientDescent",
    "HeavyBallDescent",
    "MultistageNesterov",
    "Nesterov",
    "ResidualBudget",
    "ShuffledSGD",
    "Solver",
    "available",
    "get_solver",
]


def available() -> dict[str, str]:
    """Names of the registered solvers, with one line on each.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> import skdp
    >>> "gd" in skdp.solvers.available()
    True
    """
    return {name: (cls.__doc__ or "").splitlines()[0] for name, cls in sorted(REGISTRY.items())}


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
        known = ", ".join(repr(word) for word in ["auto", *sorted(REGISTRY)])
        raise ValueError(f"solver must be one of {known}, or a Solver; got {name!r}.")
    unknown = sorted(set(parameters) - set(REGISTRY[name]().get_params(deep=False)))
    if unknown:
        raise ValueError(f"solver {name!r} has no {', '.join(unknown)}.")
    return REGISTRY[name](**parameters)
