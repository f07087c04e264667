"""What a solver is: a recipe that asks an oracle for noisy answers and never sees a row."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, clone

from skdp.objective import CAPABILITIES, Problem
from skdp.oracle import Oracle, Public, Solution

REGISTRY: dict[str, type[Solver]] = {}


class Solver(BaseEstimator):
    """Base of all solvers. A subclass with a ``name`` is registered under it.

    Parameters are hyperparameters; "auto" stands for a function of public facts, which
    :meth:`resolve` puts in its place.

    Attributes
    ----------
    name : str
        What the estimators' ``solver`` parameter calls it.
    needs : frozenset of str
        What it needs a problem to provide, in the words of `skdp.objective.Problem.provides`.
    mechanisms : tuple of str
        Laws of noise that it can work with; where there is a choice, its hyperparameter
        ``mechanism`` makes it.
    pure_dp : bool
        Whether, with its hyperparameters, it can meet a budget with delta = 0.
    adaptive : bool
        Whether it decides its noise from earlier answers, under a privacy filter, so that there
        is no plan to rehearse.
    one_pass : bool
        Whether it reads each row once, so that rows may arrive block by block.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    mechanisms: ClassVar[tuple[str, ...]] = ("gaussian",)
    adaptive: bool = False
    one_pass: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            if cls.name in REGISTRY:
                raise ValueError(f"a solver named {cls.name!r} is registered already.")
            REGISTRY[cls.name] = cls

    @property
    def pure_dp(self) -> bool:
        """Whether Laplace noise is what it uses if delta is 0."""
        return "laplace" in self.mechanisms and self.mechanism_for(pure=True) == "laplace"

    def mechanism_for(self, pure: bool) -> str:
        """Name of the noise that it uses: "auto" is Laplace if, and only if, delta is 0."""
        asked: str = getattr(self, "mechanism", self.mechanisms[0])
        if asked == "auto":
            return "laplace" if pure and "laplace" in self.mechanisms else "gaussian"
        return asked

    def check(self, problem: Problem) -> None:
        """Raise ValueError if the problem does not provide what this solver needs."""
        missing = sorted(self.needs - problem.provides)
        if missing:
            wanted = "; ".join(f"{need}, {CAPABILITIES.get(need, need)}" for need in missing)
            raise ValueError(
                f"solver {self.name!r} needs {wanted}; this problem provides "
                f"{', '.join(sorted(problem.provides))}. Nothing was released."
            )

    def resolve(self, public: Public, problem: Problem) -> Self:
        """Return a copy with a value in place of every "auto", and with all values checked.

        Raises
        ------
        ValueError
            If a hyperparameter is out of its range.
        """
        resolved: Self = clone(self)
        resolved.set_params(**self.automatic(public, problem))
        return resolved

    @abstractmethod
    def automatic(self, public: Public, problem: Problem) -> dict[str, Any]:
        """Return values for the hyperparameters that are "auto", from public facts only."""

    @abstractmethod
    def solve(self, oracle: Oracle) -> Solution:
        """Ask releases of the oracle and return a solution; all parameters are resolved."""
