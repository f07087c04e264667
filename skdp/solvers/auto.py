"""Choose the solver that ``solver="auto"`` stands for, only by public facts.

0. Without noise, and without hyperparameters: Newton's method, if the penalty is smooth, there is
   no constraint and the Hessian can be summed in the time of a fit.
1. "laplace_newton" with delta = 0, for least squares with one column. "gd" otherwise with
   delta = 0, weights under noise, an L1 penalty, a constraint, or a loss that is not smooth: the
   others cannot solve these problems, or do it less well. Also for regressions in groups of rows
   with a guess of their number, whose means "gd" can clip at less noise.
2. "whitened" where the noisy Gram matrix has a signal-to-noise ratio ``a / sqrt(p)`` of at least
   1.5: as accurate as "gd" or better, much better where columns are correlated, in fewer passes.
3. "gd" otherwise: the noise of a Gram matrix costs more than the matrix gains.

Rows that arrive in blocks, and can be read only once, have "adaptive_shuffled_sgd" in place of
"gd", also for several outputs. a is ``mu n / (p sqrt(K))``, see
:attr:`skdp._oracle.Public.signal_to_noise`. ``docs/reference/auto_values.rst`` has measurements.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from skdp._numbers import listed, shown
from skdp._oracle import Public
from skdp.objective import Problem
from skdp.solvers.base import REGISTRY, Solver, get_solver
from skdp.solvers.core.newton import Newton

LEAST_RATIO = 1.5  # of signal to noise in the Gram matrix
MOST_PARAMETERS = 1001  # more were not measured
MOST_PURE = 2  # of parameters under delta = 0, for steps with a matrix


def automatic_solver(
    public: Public, problem: Problem, given: Mapping[str, object] = MappingProxyType({})
) -> str:
    """Return the name of the solver that "auto" stands for.

    Parameters
    ----------
    public : Public
    problem : Problem
    given : dict of str to value, default={}
        The hyperparameters set on the estimator. A solver without them is not chosen.

    Returns
    -------
    str

    Examples
    --------
    >>> from skdp.accounting import Adjacency
    >>> from skdp.objective import Logistic, Problem
    >>> from skdp._oracle import Public
    >>> from skdp.solvers.auto import automatic_solver
    >>> few, many = (Public(n, 20, 1, Adjacency.ZERO_OUT, 1.0, 1e-6) for n in (500, 100_000))
    >>> automatic_solver(few, Problem(Logistic())), automatic_solver(many, Problem(Logistic()))
    ('gd', 'whitened')
    """
    suited = _suited(public, problem)
    last = [] if public.streamed else ["adp_sgd"]  # the only one whose steps follow gradients
    able = (name for name in (*suited, *last) if _takes(name, public, problem, given))
    return next(able, suited[-1])


def _suited(public: Public, problem: Problem) -> list[str]:
    """Return the solvers for these public values, the best one first."""
    if public.is_pure and not public.streamed:
        return ["laplace_newton", "gd"] if _is_simple(public, problem) else ["gd"]
    means = public.clips_means and problem.loss.targets != "label"
    weighted = public.has_weights and (public.is_noisy or public.streamed)
    whitened = (
        REGISTRY["whitened"].needs <= problem.provides
        and not (weighted or means)
        and (public.n_outputs == 1 or not public.streamed)
        and public.n_parameters <= MOST_PARAMETERS
        and public.signal_to_noise >= LEAST_RATIO * math.sqrt(public.n_parameters)
    )
    others = ["adaptive_shuffled_sgd", "shuffled_sgd"] if public.streamed else ["gd"]
    return ["whitened", *others] if whitened else others


def _is_simple(public: Public, problem: Problem) -> bool:
    """Return whether this is simple least squares: one target on so few columns."""
    is_small = public.n_parameters <= MOST_PURE and public.n_outputs == 1
    return (
        is_small and not public.has_weights and REGISTRY["laplace_newton"].needs <= problem.provides
    )


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
        The user's argument.
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
                f"{who}: {names} was set beside a configured solver, which would ignore it. Set "
                f"{', '.join('solver__' + name for name in sorted(given))} instead."
            )
        return solver
    name, arguments = name_and_arguments(solver)
    if not (isinstance(name, str) and isinstance(arguments, Mapping)):
        raise ValueError(
            f"{who}: solver must be a name, a pair of a name and hyperparameters, or a Solver, got "
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


def require_use(who: str, solver: Solver, public: Public, problem: Problem, start: Any) -> None:
    """Raise ValueError if a solver cannot read these rows, meet this budget or take this start."""
    if public.has_laplace_noise and not solver.pure_dp:
        able = sorted(name for name, cls in REGISTRY.items() if "laplace" in cls.mechanisms)
        raise ValueError(
            f"{who}: delta=0 asks for pure differential privacy, which solver {solver.name!r} "
            f"cannot give as it is. Pass delta=1e-6, or a solver that can, with mechanism 'auto' "
            f"or 'laplace': {', '.join(able)}. Nothing was released."
        )
    if start is not None and not solver.takes_start:
        raise ValueError(
            f"{who}: solver {solver.name!r} releases a minimum, wherever its search starts. Leave "
            "coef_init and intercept_init out. Nothing was released."
        )
    if start is not None and not problem.constraint.contains(start[0]):
        raise ValueError(
            f"{who}: coef_init must lie in the constraint, {problem.constraint}. Nothing was "
            "released."
        )
    if public.streamed and not solver.one_pass:
        able = sorted(name for name, cls in REGISTRY.items() if cls.one_pass)
        raise ValueError(
            f"{who}: solver {solver.name!r} reads rows more than once, and blocks are gone when "
            f"they are read. Solvers that can: {', '.join(able)}. Nothing was released."
        )
