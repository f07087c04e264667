"""The interface of optional stages, and the parameters that decide which of them a fit has."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from skdp._oracle import Public, Stage
from skdp._stages.column_bounds import DeclaredBounds
from skdp.objective import Problem

GAUSSIAN = "Gaussian noise: delta > 0, such as delta=1e-6"  # a requirement of several stages


@dataclass(frozen=True)
class StageParameters:
    """Parameters of a fit that its stages depend on.

    Attributes
    ----------
    who : str
        The estimator, for refusals.
    scaling : {"auto", "private", "none"}
        A bound on rows, `RowNorm`, is "none".
    bounds : DeclaredBounds or None
    targets : tuple of two floats, or None
        The declared range of targets.
    calibrates : bool
        Whether fits of the estimator end with a calibration.
    inference_share : float, "auto" or None
        Share of the inference, in mu squared, of the rest after scaling. None for no inference.
    has_weights : bool
        Whether rows have weights of their own, or by their labels.
    adaptive, has_checkpoint : bool
        As the solver declares them, resolved.
    chosen : tuple of Stage
        The stages outside of the one in question, from the outermost inwards.
    """

    who: str
    scaling: str = "none"
    bounds: DeclaredBounds | None = None
    targets: tuple[float, float] | None = None
    calibrates: bool = False
    inference_share: float | Literal["auto"] | None = None
    has_weights: bool = False
    adaptive: bool = False
    has_checkpoint: bool = False
    chosen: tuple[Stage, ...] = ()


class OptionalStage(Stage):
    """A stage that a fit has if its parameters and public facts allow for it.

    Attributes
    ----------
    title : str
        Its name, in a word that users know.
    """

    title: ClassVar[str]

    @classmethod
    def concerns(cls, problem: Problem, parameters: StageParameters) -> bool:
        """Whether fits to such problems have the stage unless something keeps them from it."""
        return True

    @classmethod
    @abstractmethod
    def applies(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        """Return the requirement of the stage that this fit does not satisfy, or None."""

    @classmethod
    def demanded(cls, public: Public, problem: Problem, parameters: StageParameters) -> str | None:
        """Return the parameter, with its value, that refuses a fit without this stage, if any."""
        return None

    @classmethod
    @abstractmethod
    def of(cls, public: Public, problem: Problem, parameters: StageParameters) -> Self:
        """Return the stage for these public facts, where it applies. Its share is set here."""


def is_regression(problem: Problem) -> bool:
    """Return whether targets are numbers in a unit of their own."""
    return problem.loss.targets != "label"


def first_missing(needs: Mapping[str, bool]) -> str | None:
    """Return the first need that is missing, by whether each of them is. None if none is."""
    return next((need for need, is_missing in needs.items() if is_missing), None)
