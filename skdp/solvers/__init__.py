"""Fit models by requests to an oracle: general solvers (core), and those of papers (papers).

A file in one of these folders is registered by being there.
"""

import importlib
import pkgutil
import warnings

from sklearn.base import BaseEstimator, clone

from skdp.objective import Problem
from skdp.solvers.base import REGISTRY, Solver, get_solver, menu
from skdp.solvers.core.boosted_ssp import BoostedSufficientStatistics
from skdp.solvers.core.frank_wolfe import FrankWolfe
from skdp.solvers.core.gd import GradientDescent
from skdp.solvers.core.whitened import Whitened
from skdp.solvers.papers.hong_2022 import ResidualBudget
from skdp.solvers.papers.kuru_2022 import HeavyBallDescent, MultistageNesterov, Nesterov
from skdp.solvers.papers.varshney_2022 import AdaptiveShuffledSGD, ShuffledSGD
from skdp.solvers.papers.wang_2017 import SVRG, AcceleratedMirrorDescent, SVRGPlusPlus
from skdp.solvers.papers.wu_2021 import AdaptiveNoiseSGD

__all__ = [
    "SVRG", "AcceleratedMirrorDescent", "AdaptiveNoiseSGD", "AdaptiveShuffledSGD",
    "BoostedSufficientStatistics", "FrankWolfe", "GradientDescent", "HeavyBallDescent",
    "MultistageNesterov", "Nesterov", "ResidualBudget", "SVRGPlusPlus", "ShuffledSGD", "Solver",
    "Whitened", "available", "get_solver",
]  # fmt: skip

# The imports above are for type checkers and editors. A solver in a new file is registered, and can
# be imported from here, without them.
for _file in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_file.name)
for _solver in REGISTRY.values():
    globals().setdefault(_solver.__name__, _solver)


class Listing(dict[str, str]):
    """Names of solvers, with the purpose of each in a line.

    Attributes
    ----------
    others : dict of str to str
        Names of the solvers that do not fit, and why they do not.
    """

    def __init__(self, fitting: dict[str, str], others: dict[str, str]) -> None:
        super().__init__(fitting)
        self.others = others

    def __str__(self) -> str:
        lines = [f"{name}: {purpose}" for name, purpose in self.items()]
        return "\n".join(lines + [f"not {name}: {why}" for name, why in self.others.items()])


def available(
    of: Problem | BaseEstimator | None = None,
    n_samples: int = 1000,
    n_features: int = 10,
    **shape: object,
) -> Listing:
    """Return the names of all solvers, or of those that fit, with the purpose of each in a line.

    A search over the names that fit an estimator has no fit that is refused.

    Parameters
    ----------
    of : Problem, estimator or None, default=None
        A problem, or an estimator with hyperparameters: those that it hands on, its budget and its
        penalty count, its ``solver`` does not. None lists all solvers.
    n_samples : int, default=1000
        Number of rows that the estimator is going to see, on which batches depend.
    n_features : int, default=10
        Number of columns.
    **shape
        Further arguments of the estimator's ``plan``, such as ``n_classes``.

    Returns
    -------
    dict of str to str
        With an attribute ``others``: why each of the others does not fit. Printed, it has both.

    Examples
    --------
    >>> import skdp
    >>> print(skdp.solvers.available()["gd"])
    For every problem: proximal gradient descent.
    >>> fitting = skdp.solvers.available(skdp.DPLasso(momentum=0.5))
    >>> list(fitting)
    ['gd', 'residual_budget']
    >>> print(fitting.others["frank_wolfe"].partition(".")[0])
    solver 'frank_wolfe' has no momentum
    """
    purposes, others = menu(), {}
    if of is not None:
        for name in purposes:
            try:
                if isinstance(of, Problem):
                    get_solver(name).check(of)
                else:
                    with warnings.catch_warnings(action="ignore"):
                        clone(of).set_params(solver=name).plan(n_samples, n_features, **shape)
            except ValueError as refusal:
                others[name] = str(refusal).splitlines()[0]  # without the solvers that fit
    return Listing(menu(purposes.keys() - others.keys()), others)
