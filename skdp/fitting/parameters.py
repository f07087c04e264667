"""Checks of the parameters that all estimators share, before any row is looked at."""

import math
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skdp._numbers import (
    LARGEST_BOUND,
    LEAST_BOUND,
    Array,
    is_integer,
    is_real,
    require,
    shown,
)
from skdp.objective import Box, Constraint, L1Ball, L2Ball, Problem, Simplex, Unconstrained
from skdp.oracle import Public, Solution
from skdp.solvers import Solver, get_solver
from skdp.solvers.base import REGISTRY

NOISE_SOURCES = ("system", "seeded")
# Length of the last gradient without noise, next to the first, up to which a fit has converged:
# with "whitened" a sound fit ends below 1e-11, and Longley's data in raw units at 3e-6, where
# coefficients are off by 710 per cent; with "gd" they are right to three digits from about here on.
CONVERGED = 1e-6


class PrivacyWarning(UserWarning):
    """A guarantee is weaker than its user may think."""


class SeededNoiseWarning(PrivacyWarning):
    """The noise of a fit follows from a seed: whoever knows the seed can subtract the noise."""


def check_noise_source(noise_source: Any, random_state: Any) -> None:
    """Raise ValueError unless the noise is secure, or a seed was asked for and given.

    A seed alone does not make noise reproducible. Meta-estimators such as `BaggingClassifier`
    write seeds into the ``random_state`` of their members and keep them in their pickles.
    """
    if not isinstance(noise_source, str) or noise_source not in NOISE_SOURCES:
        raise ValueError(
            f"noise_source must be 'system' (secure noise) or 'seeded' (reproducible noise, not "
            f"private); got {shown(noise_source)}."
        )
    if not (
        random_state is None
        or is_integer(random_state)
        or isinstance(random_state, np.random.RandomState | np.random.Generator)
    ):
        raise ValueError(
            "random_state must be None, an integer, a numpy RandomState or a numpy Generator; got "
            f"{shown(random_state)}."
        )
    if noise_source == "seeded" and random_state is None:
        raise ValueError(
            "noise_source='seeded' takes the noise from random_state, which is None. Pass an "
            "integer (generators are not sent to other processes: two workers would draw the same "
            "noise), or leave noise_source='system' for secure noise. Nothing was released."
        )


def warn_about_seed(who: str, noise_source: str, epsilon: float) -> None:
    """Warn that the noise of a fit can be reproduced, where there is noise."""
    if noise_source == "seeded" and not math.isinf(epsilon):
        warnings.warn(
            f"{who}: noise_source='seeded' makes the noise reproducible: whoever knows the seed "
            "can subtract it, so the result is NOT private. Use it for tests and for research on "
            "public data; the default, noise_source='system', is secure.",
            SeededNoiseWarning,
            stacklevel=3,
        )


def check_budget(epsilon: Any, delta: Any) -> None:
    """Raise ValueError unless epsilon > 0 and 0 <= delta < 1."""
    allowed = "be a positive number, or inf for no privacy at all"
    require("epsilon", epsilon, allowed, is_real(epsilon) and epsilon > 0)
    require("delta", delta, "be a number in [0, 1)", is_real(delta) and 0 <= delta < 1)


def check_strength(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` can be the strength of a penalty."""
    require(name, value, "be a finite number, at least 0", is_real(value) and 0 <= value < math.inf)


def check_l1_ratio(value: Any) -> None:
    """Raise ValueError unless ``value`` can be the share of the L1 penalty."""
    require("l1_ratio", value, "be a number in [0, 1]", is_real(value) and 0 <= value <= 1)


def check_bound(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is None or a number of a size that squares bear."""
    require(
        name,
        value,
        f"be None or a positive, finite number, from {LEAST_BOUND:g} to {LARGEST_BOUND:g}",
        value is None or (is_real(value) and LEAST_BOUND <= value <= LARGEST_BOUND),
    )


def constraint_set(name: Any, radius: Any) -> Constraint:
    """Return the set that coefficients have to lie in.

    Raises
    ------
    ValueError
        If the name is unknown, or the radius is not positive, finite and of a size that squares
        bear.
    """
    require(
        "radius",
        radius,
        f"be a positive, finite number, from {LEAST_BOUND:g} to {LARGEST_BOUND:g}",
        is_real(radius) and LEAST_BOUND <= radius <= LARGEST_BOUND,
    )
    size = float(radius)
    if name is None:
        return Unconstrained()
    sets: dict[str, Constraint] = {
        "l2_ball": L2Ball(size),
        "l1_ball": L1Ball(size),
        "box": Box(-size, size),
        "simplex": Simplex(size),
    }
    if not isinstance(name, str) or name not in sets:
        known = ", ".join(repr(word) for word in sets)
        raise ValueError(f"constraint must be None or one of {known}; got {shown(name)}.")
    return sets[name]


def check_counts(who: str, **counts: Any) -> None:
    """Raise ValueError unless these numbers, of rows and the like, are integers of at least 1."""
    for name, value in counts.items():
        if not (is_integer(value) and value >= 1):
            raise ValueError(f"{who}: {name} must be at least 1, an integer; got {shown(value)}.")


def planned_records(n_samples: int | None, n_groups: int | None, who: str = "plan") -> int:
    """Return the number of records of a planned fit: of groups, if it is given, else of rows.

    The number of rows has no say in a plan with groups, as it is private.
    """
    if n_groups is None:
        check_counts(who, n_samples=n_samples)
        assert n_samples is not None
        return n_samples
    check_counts(who, n_groups=n_groups)
    return n_groups


def warn_about_budget(who: str, epsilon: float, delta: float, n_rows: int) -> None:
    """Warn where a budget promises little."""
    if math.isinf(epsilon):
        warnings.warn(
            f"{who}: epsilon=inf adds no noise: the result is NOT private. Use it for debugging "
            "on public data only.",
            PrivacyWarning,
            stacklevel=3,
        )
    elif delta > 1 / n_rows:
        warnings.warn(
            f"{who}: delta={delta:g} is above 1/n = {1 / n_rows:g}: it allows a mechanism that "
            "publishes a whole record now and then. Choose delta well below 1/n.",
            PrivacyWarning,
            stacklevel=3,
        )


def warn_about_label_set(who: str, reads_labels: bool, epsilon: float, stacklevel: int = 4) -> None:
    """Warn that the set of labels comes from the rows, at the line so many callers up.

    With an infinite epsilon there is no guarantee to weaken, and `warn_about_budget` says so.
    """
    if reads_labels and not math.isinf(epsilon):
        warnings.warn(
            f"{who}: classes=None takes the set of labels from y and releases it exactly: a label "
            "that one record alone has gives that record away. Declare the labels that are "
            "possible, without looking at y, by classes=[...].",
            PrivacyWarning,
            stacklevel=stacklevel,
        )


def warn_unless_converged(who: str, solution: Solution, public: Public) -> None:
    """Warn if a fit without noise ended before its minimum, by gradients that were answered.

    Where a start was given the first gradient says nothing, as the minimum may be next to it.
    """
    if public.is_noisy or not solution.slopes or public.start is not None:
        return
    first, last = solution.slopes[0], solution.slopes[-1]
    if last <= CONVERGED * first:
        return
    warnings.warn(
        f"{who}: the solver stopped before it reached the minimum: its last gradient is "
        f"{last / first:.2g} times as long as its first, without noise. Coefficients may be far "
        "off. Standardise columns that are taken as they are (scaling='none'), leave out columns "
        "that nearly follow from others, or raise max_iter.",
        ConvergenceWarning,
        stacklevel=3,
    )


def choose_solver(who: str, solver: Any, given: dict[str, Any], automatic: str) -> Solver:
    """Turn a name or a configured solver, and the estimator's own hyperparameters, into a solver.

    Parameters
    ----------
    who : str
        The estimator, for messages.
    solver : str or Solver
        What the user passed.
    given : dict
        The hyperparameters on the estimator that the user changed from their defaults.
    automatic : str
        The name that "auto" stands for.

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
    if not isinstance(solver, str):
        raise ValueError(f"{who}: solver must be a name or a Solver; got {shown(solver)}.")
    return get_solver(automatic if solver == "auto" else solver, **given)


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
    """Raise ValueError if delta = 0 was asked of a solver that cannot meet it."""
    if not solver.pure_dp:
        able = sorted(name for name, cls in REGISTRY.items() if "laplace" in cls.mechanisms)
        raise ValueError(
            f"{who}: delta=0 asks for pure differential privacy, which solver {solver.name!r} "
            f"cannot give as it is: Gaussian noise needs delta > 0. Solvers that can, with "
            f"mechanism 'auto' or 'laplace': {', '.join(able)}. Nothing was released."
        )
