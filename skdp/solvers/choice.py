"""What ``solver="auto"`` stands for: a function of public facts alone.

0. "adaptive_shuffled_sgd" for rows that come in blocks, to be read once.
1. "gd" with delta = 0, weights, sparse X, an L1 penalty, a constraint, a kinked loss, more than
   two classes, or more than 500 columns: others cannot do these problems, or not as well.
2. "whitened" where a >= 150: as accurate as "gd" there, in a tenth of the passes.
3. "gd" otherwise: the noise of a Gram matrix costs more than its use.

a is the signal-to-noise ratio ``mu n / (p sqrt(K))`` of
:attr:`skdp.oracle.Public.signal_to_noise`. What was measured is in ``docs/defaults.rst``.
"""

from __future__ import annotations

from typing import Any

from skdp.objective import Problem
from skdp.oracle import Public
from skdp.solvers.base import REGISTRY

AMPLE = 150.0
MOST_COLUMNS = 500


def automatic_solver(public: Public, problem: Problem, given: dict[str, Any] | None = None) -> str:
    """Name of the solver that "auto" stands for.

    Parameters
    ----------
    public : Public
    problem : Problem
    given : dict, optional
        Hyperparameters set on the estimator; a solver that lacks one of them is not chosen.

    Returns
    -------
    str

    Examples
    --------
    >>> from skdp.accounting import Adjacency
    >>> from skdp.objective import Logistic, Problem
    >>> from skdp.oracle import Public
    >>> from skdp.solvers.choice import automatic_solver
    >>> few, many = (Public(n, 20, 1, Adjacency.ZERO_OUT, 1.0, 1e-6) for n in (1000, 100_000))
    >>> automatic_solver(few, Problem(Logistic())), automatic_solver(many, Problem(Logistic()))
    ('gd', 'whitened')
    """
    if public.streamed:
        return "adaptive_shuffled_sgd"
    name = _best(public) if "separable_loss" in problem.provides else "gd"
    solver = REGISTRY[name]
    lacks = set(given or {}) - set(solver().get_params(deep=False))
    return "gd" if lacks or solver.needs - problem.provides else name


def _best(public: Public) -> str:
    if public.is_pure or public.weighted or public.sparse or public.n_parameters > MOST_COLUMNS:
        return "gd"
    return "whitened" if public.signal_to_noise >= AMPLE else "gd"
