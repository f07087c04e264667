"""Define the base of all solvers, which request noisy answers of an oracle and never see a row.

Some hyperparameters mean the same in several solvers. Their docstrings use these descriptions:

Parameters
----------
batch_size : int, float or None, default=None
    Expected rows in a batch, as a number or a fraction. None uses all rows in every step.
sampling : {"poisson", "fixed_size"}, default="poisson"
    How batches are drawn. "poisson": every row independently, the least noise for most plans.
    "fixed_size": without replacement, under replace_one only.
clip_norm : float or "auto", default="auto"
    L2 bound of one record's gradient.
momentum : float, str, tuple (str, dict) or "auto", default="auto"
    A number in [0, 1) is the beta of Polyak's heavy ball. 0 is none. ``("averaged", {"beta":
    0.8})`` is the bias-corrected average of gradients. Both have unit gain: a constant gradient is
    followed with steps of ``learning_rate``.
averaging : {"last", "tail", "random"} or "auto", default="auto"
    Which iterate is returned. "tail" is the mean of the last half, "random" a uniformly random one
    of the points at which gradients were computed, whose expected squared gradient theory bounds if
    the problem is not convex (Wang, Ye, Xu 2017, Thm 6.3).
curvature : float or "auto", default="auto"
    Largest eigenvalue of the mean loss's second derivative: a public guess.
condition_number : float or "auto", default="auto"
    Ratio of that curvature to the one along the flattest direction: a public guess.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator, clone

from skdp._docstrings import fill, section_of
from skdp._numbers import shown
from skdp._oracle import Oracle, Public, Solution
from skdp.objective import CAPABILITIES, Problem
from skdp.solvers import checks
from skdp.steps import AnyMomentum, Named, RelativeNoise, StepSize, is_named

# For authors of solvers: everything in one place.
__all__ = [
    "AUTO", "REGISTRY", "AnyMomentum", "Oracle", "Problem", "Public", "RelativeNoise",
    "Resolved", "Settings", "Solution", "Solver", "StepSize", "hyperparameters",
]  # fmt: skip

REGISTRY: dict[str, type[Solver]] = {}
# Names of the papers' algorithms, with the solver that runs each and its hyperparameters.
ALGORITHMS: dict[str, tuple[str, Mapping[str, object]]] = {}
# Values that leave an algorithm as it is, even if its theory does not have the hyperparameter.
NEUTRAL = {"momentum": 0.0, "noise_schedule": "uniform"}
# The solvers that "auto" takes for rows in memory, which lists name first.
RECOMMENDED = ("gd", "whitened")

AUTO: Any = "auto"  # default of a hyperparameter of any type that is resolved
Settings = dict[str, Any]  # hyperparameters by name; each solver has others
T = TypeVar("T")


class Resolved(Generic[T]):
    """Type of a hyperparameter that may be a word such as "auto", and has type T once resolved.

    It is only for annotations in a solver's class: attributes are plain values, and their default
    is ``AUTO``.
    """

    if TYPE_CHECKING:

        def __get__(self, solver: object, owner: type | None = None) -> T: ...

        def __set__(self, solver: object, value: T | str) -> None: ...


@dataclass_transform(kw_only_default=True, eq_default=False)
def hyperparameters(cls: type[T]) -> type[T]:
    """Give a class of solvers an ``__init__`` that stores its annotated attributes, by keyword."""
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


# Descriptions of the hyperparameters above, for the docstrings that have their names in braces.
_SHARED = section_of(sys.modules[__name__], "Parameters")


class Solver(BaseEstimator):
    """Base of all solvers. A subclass with a ``name`` is registered under it.

    Parameters are hyperparameters. "auto" stands for a function of public facts, the value of which
    :meth:`resolve` puts in its place. In the docstring of a subclass ``{Parameters}`` stands for
    the parameters of the class that it extends, and ``{References}`` for its references.

    Attributes
    ----------
    name : str
        Value of the estimators' ``solver`` parameter that selects this solver. With
        ``registered=False`` as an argument of the class, the name is for messages only.
    purpose : str
        Problems that the solver is for, and when to prefer another one, in a line.
    paper : str
        Authors and year of the paper whose algorithms the solver runs. "" if there is none.
    algorithms : tuple of (str, dict)
        The names of these algorithms in the paper, each with the hyperparameters that select it.
        An estimator's ``solver`` accepts these names.
    needs : frozenset of str
        Capabilities that the problem has to provide, see `skdp.objective.Problem.provides`.
    mechanisms : tuple of str
        Noise mechanisms that the solver supports. If there are several, its hyperparameter
        ``mechanism`` selects one.
    max_columns : int or None
        Largest number of columns, intercept included. None means any number.
    pure_dp : bool
        Whether, with its hyperparameters, it can meet a budget with delta = 0.
    adaptive : bool
        Whether its noise depends on earlier answers. There is no plan to rehearse then, and a
        privacy filter guards the run.
    one_pass : bool
        Whether it reads each row once, so that rows may arrive block by block.
    has_checkpoint : bool
        Whether, resolved, it calls ``Oracle.checkpoint`` after half of its steps.
    takes_start : bool
        Whether its solution depends on where it starts, so that a start may be given.
    """

    name: ClassVar[str]
    purpose: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    algorithms: ClassVar[tuple[tuple[str, Mapping[str, object]], ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset()
    mechanisms: ClassVar[tuple[str, ...]] = ("gaussian",)
    max_columns: ClassVar[int | None] = None
    adaptive: bool = False
    one_pass: ClassVar[bool] = False
    takes_start: ClassVar[bool] = True

    # Types of hyperparameters that several solvers have.
    max_iter: Resolved[int]

    def __init_subclass__(cls, *, registered: bool = True, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            titles = ("Parameters", "References")
            inherited = {
                title: "\n".join(section_of(cls.__base__, title).values()) for title in titles
            }
            fill(**inherited, **_SHARED)(cls)
        if registered and "name" in vars(cls):
            if cls.name in REGISTRY:
                raise ValueError(f"a solver named {cls.name!r} is registered already.")
            REGISTRY[cls.name] = cls
            for algorithm, settings in cls.algorithms:
                ALGORITHMS[algorithm] = cls.name, settings

    @property
    def pure_dp(self) -> bool:
        """Return whether the solver uses Laplace noise if delta is 0."""
        return "laplace" in self.mechanisms and self.mechanism_for(pure=True) == "laplace"

    @property
    def has_checkpoint(self) -> bool:
        """Return whether it calls ``Oracle.checkpoint``, with its hyperparameters."""
        return False

    def mechanism_for(self, pure: bool) -> str:
        """Return the noise mechanism: "auto" is Laplace if, and only if, delta is 0.

        Returns
        -------
        "gaussian" or "laplace"
        """
        mechanism: str = getattr(self, "mechanism", self.mechanisms[0])
        if mechanism == "auto":
            return "laplace" if pure and "laplace" in self.mechanisms else "gaussian"
        return mechanism

    def provided(self, problem: Problem) -> frozenset[str]:
        """Return the capabilities of the problem, and those that hyperparameters declare.

        Returns
        -------
        frozenset of str
        """
        return problem.provides

    def averages_groups(self, pure: bool) -> bool:
        """Return whether all of its gradients may be means of groups, clipped as a whole.

        Its default clipping norm allows for that then. Otherwise each row's gradient is clipped.

        Returns
        -------
        bool
        """
        return False

    def check(self, problem: Problem) -> None:
        """Raise ValueError if the problem is not suitable for this solver.

        Raises
        ------
        ValueError
            If the problem is not suitable for this solver.
        """
        missing = sorted(self.needs - self.provided(problem))
        if missing:
            wanted = "; ".join(f"{need}, {CAPABILITIES.get(need, need)}" for need in missing)
            able = short_menu(
                name for name, cls in REGISTRY.items() if cls.needs <= problem.provides
            )
            least_squares = " (DPLinearRegression and DPRidge have it)"
            raise ValueError(
                f"solver {self.name!r} needs {wanted}"
                f"{least_squares if 'quadratic_loss' in missing else ''}, which this problem does "
                f"not have. Nothing was released.\nSolvers that fit it:\n{able}"
            )

    def resolve(self, public: Public, problem: Problem) -> Self:
        """Return a copy with a value in place of every "auto", and with all values checked.

        Returns
        -------
        Solver

        Raises
        ------
        ValueError
            If a hyperparameter is out of its range, or there are too many columns.
        """
        if self.max_columns is not None and public.n_parameters > self.max_columns:
            raise ValueError(
                f"solver {self.name!r} works with a matrix of all pairs of columns, and takes at "
                f"most {self.max_columns} of them, intercept included, got {public.n_parameters}. "
                "Solver 'gd' does without. Nothing was released."
            )
        values = self.automatic(public, problem)
        resolved: Self = clone(self)
        resolved.set_params(
            **{name: values[name] for name in values if checks.is_auto(getattr(self, name))}
        )
        resolved.check_values(public, problem)
        return resolved

    @abstractmethod
    def automatic(self, public: Public, problem: Problem) -> Settings:
        """Return the values that "auto" stands for, as functions of public facts only.

        Parameters
        ----------
        public : Public
            Shape, budget and declared bounds.
        problem : Problem
            Loss, penalty and constraint.

        Returns
        -------
        dict of str to value
            By hyperparameter. Values of hyperparameters that were set are ignored.
        """

    def check_values(self, public: Public, problem: Problem) -> None:
        """Raise ValueError if a hyperparameter is out of its range. No "auto" is left.

        Names of rules may be replaced by the rules that they stand for.
        """

    @abstractmethod
    def solve(self, oracle: Oracle) -> Solution:
        """Request releases of the oracle and return a solution. All parameters are resolved.

        Parameters
        ----------
        oracle : Oracle
            Answers each request with noise, within the budget.

        Returns
        -------
        Solution
            Coefficients of shape (n_parameters, n_outputs), and the number of steps.
        """


def get_solver(name: Named, **parameters: object) -> Solver:
    """Make a solver by name.

    Parameters
    ----------
    name : str or tuple (str, dict)
        A registered name, the name of an algorithm in its paper ("DP-SVRG"), or a pair of such a
        name and hyperparameters: ``("gd", {"max_iter": 20})``.
    **parameters
        Further hyperparameters, which override those of the pair. ``momentum=0.0`` and
        ``noise_schedule="uniform"`` are accepted by every solver: one whose algorithm has no such
        hyperparameter has neither momentum nor a schedule.

    Returns
    -------
    Solver

    Raises
    ------
    ValueError
        If the name is unknown, or the solver has no such hyperparameter.

    Examples
    --------
    >>> from skdp.solvers import get_solver
    >>> get_solver(("gd", {"max_iter": 20, "momentum": 0.5}), max_iter=30)
    GradientDescent(max_iter=30, momentum=0.5)
    """
    word, arguments = name if is_named(name) and not isinstance(name, str) else (name, {})
    if not isinstance(word, str) or word not in REGISTRY.keys() | ALGORITHMS.keys():
        raise ValueError(
            "solver must be 'auto', a Solver or a name of one or ('gd', {...}), "
            f"got {shown(name)}.{_similar(word)}\nSolvers:\n{short_menu()}"
        )
    word, settings = ALGORITHMS.get(word, (word, {}))
    known = _hyperparameters(word)
    parameters = {
        key: value
        for key, value in {**settings, **arguments, **parameters}.items()
        if key in known or not _is_neutral(key, value)
    }
    unknown = sorted(parameters.keys() - known)
    if unknown:
        able = [one for one in menu() if _hyperparameters(one).issuperset(unknown)]
        others = f"Solvers that have it: {', '.join(able)}. " if able else ""
        raise ValueError(
            f"solver {word!r} has no {', '.join(unknown)}. {others}It has "
            f"{', '.join(sorted(known))}. Nothing was released."
        )
    return REGISTRY[word](**parameters)


def _is_neutral(key: str, value: object) -> bool:
    return key in NEUTRAL and isinstance(value, int | float | str) and value == NEUTRAL[key]


def _similar(word: object) -> str:
    """Return a question that names the solver, or algorithm, with the most similar name."""
    names = {name.lower(): name for name in (*REGISTRY, *ALGORITHMS)}
    close = get_close_matches(str(word).lower().replace("_", "-"), names, 1)
    close = close or get_close_matches(str(word).lower(), names, 1)
    return f" Did you mean {names[close[0]]!r}?" if close else ""


def _hyperparameters(name: str) -> set[str]:
    return set(REGISTRY[name]().get_params(deep=False))


def menu(names: Iterable[str] = REGISTRY) -> dict[str, str]:
    """Return the purpose of each of these solvers, in a line. Those for general use come first."""

    def rank(name: str) -> tuple[bool, bool, str]:
        return _is_of_a_paper(name), name not in RECOMMENDED, name

    return {name: _described(REGISTRY[name]) for name in sorted(names, key=rank)}


def _described(solver: type[Solver]) -> str:
    """Return the paper and its algorithms, if there are any, and the purpose."""
    names = " and ".join(name for name, _ in solver.algorithms)
    return f"{names} of {solver.paper}. {solver.purpose}" if solver.paper else solver.purpose


def short_menu(names: Iterable[str] = REGISTRY) -> str:
    """Return a menu for a refusal: a line for each general solver, and the others' names."""
    purposes = menu(names)
    lines = [f"{name}: {purpose}" for name, purpose in purposes.items() if not _is_of_a_paper(name)]
    others = [name for name in purposes if _is_of_a_paper(name)]
    return "\n".join([*lines, *([f"Of papers: {', '.join(others)}."] if others else [])])


def _is_of_a_paper(name: str) -> bool:
    return REGISTRY[name].__module__.startswith("skdp.solvers.papers.")
