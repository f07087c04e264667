"""Choose the solver that ``solver="auto"`` stands for, by public facts alone.

0. "adaptive_shuffled_sgd" for rows that arrive in blocks, and can be read only once.
1. "gd" with delta = 0, weights, an L1 penalty, a constraint, a loss that is not smooth, more than
   two classes, or more than 500 columns: the others cannot solve these problems, or do it less
   well.
2. "whitened" for squared error with one output and up to 100 columns where the signal-to-noise
   ratio a is at least ``2.5 sqrt(p)``, so that the Gram matrix exceeds its noise: as accurate
   as "gd" or better, much better where columns are correlated. Not for groups of rows with a guess
   of their number, whose means "gd" can clip: less noise.
3. "whitened" where a is at least 150: nearly as accurate as "gd", in a tenth of the passes. With
   two classes and 150 to 500 columns, where passes take long, from 60 on.
4. "gd" otherwise: the noise of a Gram matrix costs more than the matrix gains.

a is ``mu n / (p sqrt(K))``, see :attr:`skdp.oracle.Public.signal_to_noise`. Measurements are in
``docs/defaults.rst``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from skdp.objective import Problem
from skdp.oracle import Public
from skdp.solvers.base import REGISTRY


@dataclass(frozen=True)
class Domain:
    """Problems for which "whitened" is chosen, as measured on the data sets of docs/defaults.rst.

    Attributes
    ----------
    least_ratio, least_per_root : float
        Least signal-to-noise ratio a, and least ratio of it to the root of the parameters: the
        noise of a Gram matrix, next to it, is as the inverse of that.
    most_columns, least_columns : int
        Parameters for each output.
    """

    least_ratio: float
    least_per_root: float
    most_columns: int
    least_columns: int = 0

    def contains(self, public: Public) -> bool:
        """Return whether a problem lies in it."""
        least = max(self.least_ratio, self.least_per_root * math.sqrt(public.n_parameters))
        enough = public.signal_to_noise >= least
        return enough and self.least_columns <= public.n_parameters <= self.most_columns


ONE_TARGET, ANY = Domain(5.0, 2.5, 100), Domain(150.0, 0.0, 500)
TWO_CLASSES = Domain(60.0, 0.0, 500, least_columns=150)


def automatic_solver(
    public: Public, problem: Problem, given: Mapping[str, object] = MappingProxyType({})
) -> str:
    """Return the name of the solver that "auto" stands for.

    Parameters
    ----------
    public : Public
    problem : Problem
    given : dict of str to value, default={}
        The hyperparameters set on the estimator; a solver that does not take them is not chosen.

    Returns
    -------
    str

    Examples
    --------
    >>> from skdp.accounting import Adjacency
    >>> from skdp.objective import Logistic, Problem
    >>> from skdp.oracle import Public
    >>> from skdp.solvers.auto import automatic_solver
    >>> few, many = (Public(n, 20, 1, Adjacency.ZERO_OUT, 1.0, 1e-6) for n in (1000, 100_000))
    >>> automatic_solver(few, Problem(Logistic())), automatic_solver(many, Problem(Logistic()))
    ('gd', 'whitened')
    """
    if public.streamed:
        return "adaptive_shuffled_sgd"
    domains = [ANY]
    if public.n_outputs == 1 and not public.clips_means:
        domains.append(ONE_TARGET if problem.loss.targets == "real" else TWO_CLASSES)
    whitened = (
        "separable_loss" in problem.provides
        and not (public.is_pure or public.weighted)
        and any(domain.contains(public) for domain in domains)
    )
    return "whitened" if whitened and _takes("whitened", public, problem, given) else "gd"


def _takes(
    name: str, public: Public, problem: Problem, hyperparameters: Mapping[str, object]
) -> bool:
    """Return whether a solver takes these hyperparameters, by their names and by their values.

    Values that no solver takes are refused by the solver that is chosen instead.
    """
    solver = REGISTRY[name]
    if not solver.needs <= problem.provides:
        return False
    if not hyperparameters:
        return True
    try:
        solver().set_params(**hyperparameters).resolve(public, problem)
    except ValueError:
        return False
    return True
