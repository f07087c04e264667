"""Choose the solver that ``solver="auto"`` stands for, by public facts alone.

0. Without noise, and without hyperparameters: Newton's method, if the penalty is smooth, there is
   no constraint and the Hessian can be summed in the time of a fit.
1. For rows that arrive in blocks, and can be read only once: "whitened", which reads them once
   there, with one output, up to 500 columns and a at least 2, where its first moments are better
   than as many rows of steps; else "adaptive_shuffled_sgd".
2. "gd" with delta = 0, weights under noise, an L1 penalty, a constraint, or a loss that is not
   smooth: the others cannot solve these problems, or do it less well. Without noise its steps
   for weights are without momentum.
3. "whitened" where a step has a signal-to-noise ratio a of at least 10, and the Gram matrix, whose
   ratio is ``a sqrt(K / p)``, one of at least 0.8: as accurate as "gd" or better, much better where
   columns are correlated, in fewer passes. For regressions in groups of rows with a guess
   of their number, whose means "gd" can clip at less noise, only from a = 40 on.
4. "gd" otherwise: the noise of a Gram matrix costs more than the matrix gains.

a is ``mu n / (p sqrt(K))``, see :attr:`skdp.oracle.Public.signal_to_noise`. Measurements are in
``docs/reference/auto_values.rst``.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from skdp._numbers import Array, listed, shown
from skdp.objective import Problem
from skdp.oracle import Public
from skdp.solvers.base import REGISTRY, Solver, get_solver
from skdp.solvers.core.newton import Newton

LEAST_RATIO, LEAST_RATIO_OF_GRAM = 10.0, 0.8  # signal to noise, of a step and of the Gram matrix
LEAST_RATIO_OF_STREAM = 2.0
LEAST_RATIO_OF_MEANS = 40.0  # where "gd" clips means of groups
MOST_PARAMETERS, MOST_OF_STREAM = 1001, 501  # more were not measured


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
    >>> few, many = (Public(n, 20, 1, Adjacency.ZERO_OUT, 1.0, 1e-6) for n in (500, 100_000))
    >>> automatic_solver(few, Problem(Logistic())), automatic_solver(many, Problem(Logistic()))
    ('gd', 'whitened')
    """
    suited = _suited(public, problem)
    last = [] if public.streamed else ["adp_sgd"]  # alone has step sizes that follow gradients
    able = (name for name in (*suited, *last) if _takes(name, public, problem, given))
    return next(able, suited[-1])


def _suited(public: Public, problem: Problem) -> list[str]:
    """Return the solvers for these public values, the best one first."""
    whitened = (
        REGISTRY["whitened"].needs <= problem.provides
        and not (public.is_pure or (public.has_weights and (public.is_noisy or public.streamed)))
        and _serves(public, problem)
    )
    others = ["adaptive_shuffled_sgd", "shuffled_sgd"] if public.streamed else ["gd"]
    return ["whitened", *others] if whitened else others


def _serves(public: Public, problem: Problem) -> bool:
    """Return whether "whitened" is chosen, by the evidence in docs/reference/auto_values.rst."""
    if public.streamed:
        is_clear = public.signal_to_noise >= LEAST_RATIO_OF_STREAM
        return is_clear and public.n_outputs == 1 and public.n_parameters <= MOST_OF_STREAM
    means = public.clips_means and problem.loss.targets != "label"
    least = LEAST_RATIO_OF_MEANS if means else LEAST_RATIO
    of_gram = public.signal_to_noise * math.sqrt(public.n_outputs / public.n_parameters)
    is_clear = public.signal_to_noise >= least and of_gram >= LEAST_RATIO_OF_GRAM
    return is_clear and public.n_parameters <= MOST_PARAMETERS


def _takes(name: str, public: Public, problem: Problem, given: Mapping[str, object]) -> bool:
    """Return whether a solver takes these hyperparameters, by their names and by their values.

    Values that no solver takes are refused by the solver that is chosen instead.
    """
    if not given:
        return True
    try:
        get_solver(name, **given).resolve(public, problem)
    except ValueError:
        return False
    return True


def note_on_choice(
    public: Public, problem: Problem, given: Mapping[str, object], chosen: str
) -> str:
    """Return which solver "auto" stands for, and why, in a sentence."""
    best = _suited(public, problem)[0]
    if chosen in (best, Newton.name):
        return f"solver='auto' is {chosen!r} here."
    refused = [name for name in given if not _takes(best, public, problem, {name: given[name]})]
    return (
        f"solver='auto' is {chosen!r} here: {best!r}, which would be chosen otherwise, does not "
        f"take {', '.join(f'{name}={shown(given[name])}' for name in refused or given)}."
    )


def name_and_arguments(solver: object) -> tuple[object, Any]:
    """Return the name and the hyperparameters of a solver that is not configured yet."""
    return solver if isinstance(solver, tuple) and len(solver) == 2 else (solver, {})


def choose_solver(
    who: str,
    solver: object,
    given: Mapping[str, object],
    public: Public,
    problem: Problem,
    is_last: bool = True,
) -> Solver:
    """Turn an estimator's ``solver``, and the hyperparameters set on it, into a solver.

    Parameters
    ----------
    who : str
        The estimator, for messages.
    solver : str, tuple (str, dict) or Solver
        What the user passed.
    given : mapping
        The hyperparameters on the estimator that the user changed from their defaults.
    public : Public
    problem : Problem
    is_last : bool, default=True
        Whether no stage follows, so that the solver may end before its plan does.

    Raises
    ------
    ValueError
        If the name is unknown, the solver has no such hyperparameter, or hyperparameters are given
        beside a configured solver, where they would be ignored.
    """
    if isinstance(solver, Solver):
        if given:
            names = ", ".join(sorted(given))
            raise ValueError(
                f"{who}: {names} was set beside a configured solver, which would ignore it; set "
                f"{', '.join('solver__' + name for name in sorted(given))} instead."
            )
        return solver
    name, arguments = name_and_arguments(solver)
    if not (isinstance(name, str) and isinstance(arguments, Mapping)):
        raise ValueError(
            f"{who}: solver must be a name, a pair of a name and hyperparameters, or a Solver; got "
            f"{shown(solver)}."
        )
    twice = sorted(set(arguments) & set(given))
    if twice:
        raise ValueError(f"{who}: {listed(twice)} is set on the solver and on the estimator.")
    is_free = name == "auto" and is_last and not (given or arguments)
    if is_free and Newton.solves(public, problem):
        return Newton()
    if name == "auto":
        name = automatic_solver(public, problem, {**given, **arguments})
    return get_solver(name, **{**given, **arguments})


def require_one_pass(who: str, solver: Solver) -> None:
    """Raise ValueError if a solver reads rows more than once, where they arrive in blocks."""
    if not solver.one_pass:
        able = sorted(name for name, cls in REGISTRY.items() if cls.one_pass)
        raise ValueError(
            f"{who}: solver {solver.name!r} reads rows more than once, and blocks are gone when "
            f"they are read. Solvers that can: {', '.join(able)}. Nothing was released."
        )


def require_start(who: str, solver: Solver, problem: Problem, coef: Array) -> None:
    """Raise ValueError if a start is of no use to a solver, or outside of the constraint."""
    if not solver.takes_start:
        raise ValueError(
            f"{who}: solver {solver.name!r} releases a minimum, wherever its search starts; leave "
            "coef_init and intercept_init out. Nothing was released."
        )
    if not problem.constraint.contains(coef):
        raise ValueError(
            f"{who}: coef_init must lie in the constraint, {problem.constraint}. Nothing was "
            "released."
        )


def require_pure_dp(who: str, solver: Solver) -> None:
    """Raise ValueError if delta is 0 and the solver cannot add Laplace noise."""
    if not solver.pure_dp:
        able = sorted(name for name, cls in REGISTRY.items() if "laplace" in cls.mechanisms)
        raise ValueError(
            f"{who}: delta=0 asks for pure differential privacy, which solver {solver.name!r} "
            f"cannot give as it is: Gaussian noise needs delta > 0. Solvers that can, with "
            f"mechanism 'auto' or 'laplace': {', '.join(able)}. Nothing was released."
        )
