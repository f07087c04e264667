"""Represent private scores, with intervals for noise and the sampling of rows."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import Any, Self, TypeVar

import numpy as np
from scipy.special import ndtri

from skdp._numbers import AnyArray, Array, is_real, require
from skdp.accounting import PrivacyStatement

OF = ("rows", "population")


def normal_quantile(level: float) -> float:
    """Return the half-width of an interval of this level, in standard deviations."""
    require("level", level, "lie in (0, 1), such as 0.95", is_real(level) and 0 < level < 1)
    return float(ndtri((1 + level) / 2))


@dataclass(frozen=True, eq=False, repr=False)
class Score(float):
    """A private score: a number with the uncertainty that noise and the draw of rows cause.

    It is a float wherever one is expected. Before ``power`` it is the ratio of two noisy numbers,
    or a noisy mean.

    Attributes
    ----------
    name : str
    numerator, denominator : float
        Their ratio is in units of ``unit``. A mean has the denominator 1.
    noise : tuple (variance, covariance, variance)
        Of the noise in the numerator, of both together, and in the denominator.
    sampling : float
        Standard deviation of the ratio from one draw of so many independent rows to another, by the
        delta method. An estimate from private answers. 0 where there is none.
    limits : tuple (low, high)
        Limits of any ratio of this name.
    sign : {1, -1}
        -1 for losses under names like "neg_log_loss", where greater is better.
    note : str
        The target of the score and its intervals, if targets or losses were clipped.
    unit : float
        Largest value of a loss, of which the square of a standard deviation may overflow, or 1.
    power : float
        The score is this power of the ratio: 1/2 for a root of a mean squared error, 1 for others.
    """

    name: str
    numerator: float
    denominator: float
    noise: tuple[float, float, float]
    sampling: float
    limits: tuple[float, float]
    sign: int = 1
    note: str = ""
    unit: float = 1.0
    power: float = 1.0

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Return the score. It is nan where noise hides it: any value is in the interval of 95%.

        One without a least value, such as R2, is nan where noise leaves nothing to divide by.
        """
        of = SimpleNamespace(sign=1, unit=1.0, power=1.0)
        vars(of).update(zip([one.name for one in fields(cls)], given, strict=False), **named)
        value = math.nan
        ends = _ratios(of.numerator, of.denominator, of.noise, normal_quantile(0.95) ** 2)
        low, high = (of.unit * end for end in ends)
        is_hidden = low <= of.limits[0] < of.limits[1] <= high and of.limits[0] > -math.inf
        if of.denominator > 0 and not is_hidden:
            ratio = float(np.clip(of.unit * of.numerator / of.denominator, *of.limits))
            value = of.sign * ratio**of.power
        return super().__new__(cls, value)

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made of."""
        return tuple(getattr(self, one.name) for one in fields(self))

    @property
    def value(self) -> float:
        """The score as a plain float. It is nan if every value lies in its interval of 95%."""
        return float(self)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise in the score, to first order; inf where that is nan."""
        if math.isnan(self):
            return math.inf
        ratio = self.numerator / self.denominator
        above, both, below = self.noise
        std = math.sqrt(max(0.0, above - 2 * ratio * both + ratio**2 * below))
        return self._of_power(self.unit * std / self.denominator)

    @property
    def sampling_std(self) -> float:
        """Standard deviation of the score from one draw of as many rows to another, an estimate."""
        return self._of_power(self.sampling)

    def _of_power(self, std: float) -> float:
        """Return the standard deviation of a power of the ratio, to first order."""
        if self.power == 1 or not std > 0:
            return std
        value = abs(self)
        slope = self.power * value ** (1 - 1 / self.power) if value else math.inf
        return float(min(slope * std, std**self.power))

    @property
    def std_error(self) -> float:
        """Standard error of the score as an estimate for other rows: noise and sampling."""
        return math.hypot(self.noise_std, self.sampling_std)

    def interval(self, level: float = 0.95, of: str = "rows") -> tuple[float, float]:
        """Return an interval that holds the exact score with this probability.

        Parameters
        ----------
        level : float, default=0.95
        of : {"rows", "population"}, default="rows"
            "rows": the exact score of the same rows, which only noise hides. "population": the
            score on the population of the rows, which their sampling also hides.

        Returns
        -------
        tuple (low, high)

        Notes
        -----
        The interval holds the ratios r for which ``numerator - r denominator`` is 0 within its
        noise (Fieller 1954). So it keeps its level where the denominator is itself uncertain, as
        for rare classes. Where that may be 0 the interval is all that is possible.

        "population" assumes independent rows (or groups), and many of them: it adds
        ``sampling_std``, as if the score were normal. That follows from counts for scores of
        predicted classes. For mean losses and R2 it follows from a fourth moment, requested for a
        tenth of the budget, whatever the distribution of the errors. One standard deviation of its
        noise is added, so that these intervals are too wide where that noise is large. For areas
        under curves and balanced accuracy, tables of counts are simulated about the noisy one.
        """
        require("of", of, "be 'rows' or 'population'", of in OF)
        width = normal_quantile(level)
        above, both, below = self.noise
        if of == "population":
            above += (self.sampling / self.unit * self.denominator) ** 2
        ratios = _ratios(self.numerator, self.denominator, (above, both, below), width**2)
        ends = (float(np.clip(self.unit * end, *self.limits)) for end in ratios)
        low, high = (end**self.power for end in ends)
        return (low, high) if self.sign > 0 else (-high, -low)

    def __str__(self) -> str:
        low, high = self.interval()
        if math.isnan(self):
            return f"{self.name} nan ({low:.4g} to {high:.4g}: the noise hides this score)"
        return (
            f"{self.name} {self:.4g} ({low:.4g} to {high:.4g}"
            f"{self.note and f', {self.note}'}; std of noise {self.noise_std:.2g}, of sampling "
            f"{self.sampling_std:.2g})"
        )

    __repr__ = __str__


def _ratios(
    numerator: float, denominator: float, noise: tuple[float, float, float], square: float
) -> tuple[float, float]:
    """Return the least and the largest ratio that the noise allows."""
    above, both, below = noise
    first = denominator**2 - square * below
    if not (first > 0 and denominator > 0) or math.isnan(numerator):
        return -math.inf, math.inf
    middle = numerator * denominator - square * both
    last = numerator**2 - square * above
    root = math.sqrt(max(0.0, middle**2 - first * last))
    return (middle - root) / first, (middle + root) / first


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """A private confusion matrix: true classes in rows, predicted ones in columns.

    Attributes
    ----------
    name : str
    counts : array of shape (n_classes, n_classes)
        With noise, before anything is cut off at 0.
    noise_std : float
        Standard deviation of the noise on each count.
    classes : array of shape (n_classes,)
    """

    name: str
    counts: Array = field(repr=False)
    noise_std: float
    classes: AnyArray = field(repr=False)

    @property
    def value(self) -> Array:
        """Counts, none of them negative. They are not whole."""
        return np.asarray(np.maximum(self.counts, 0.0))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return bounds between which each exact count lies with this probability."""
        reach = normal_quantile(level) * self.noise_std
        low, high = self.counts - reach, self.counts + reach
        return np.maximum(low, 0.0), np.maximum(high, 0.0)

    def __str__(self) -> str:
        return f"{self.name}, std of noise {self.noise_std:.2g}:\n{np.round(self.value, 1)}"


Entry = TypeVar("Entry")
AnyScore = Score | ScoreMatrix


class _ResultsByName(dict[Any, Entry]):
    """Results by name, and what they cost together."""

    def __init__(self, scores: Mapping[Any, Entry], privacy: PrivacyStatement) -> None:
        super().__init__(scores)
        self.privacy_ = privacy

    def _head(self) -> str:
        cost = f"epsilon={self.privacy_.epsilon:.6g}, delta={self.privacy_.delta:.6g}"
        return f"<{type(self).__name__} at {cost}>"


class Scores(_ResultsByName[AnyScore]):
    """Private scores by name, and their total cost.

    Attributes
    ----------
    privacy_ : PrivacyStatement
        Releases, cost and assumptions.
    """

    def to_frame(self, level: float = 0.95, of: str = "rows") -> Any:
        """Return the scores that are numbers as a table. It needs pandas.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.
        of : {"rows", "population"}, default="rows"
            As in `Score.interval`.

        Returns
        -------
        pandas.DataFrame
            A row for each score: the score, the ends of its interval, and the standard deviations
            of noise and sampling.
        """
        numbers = {name: score for name, score in self.items() if isinstance(score, Score)}
        rows = [
            [float(one), *one.interval(level, of), one.noise_std, one.sampling_std]
            for one in numbers.values()
        ]
        columns = ["score", "low", "high", "noise_std", "sampling_std"]
        return importlib.import_module("pandas").DataFrame(rows, list(numbers), columns)

    def __repr__(self) -> str:
        return "\n".join([self._head(), *map(str, self.values())])


class SubgroupScores(_ResultsByName[Scores]):
    """Private scores of declared subgroups, by their names, and their total cost.

    Attributes
    ----------
    privacy_ : PrivacyStatement
        Releases, cost and assumptions. The scores of each subgroup share this statement, which is
        charged once.
    """

    def to_frame(self, level: float = 0.95, of: str = "rows") -> Any:
        """Return a table like `Scores.to_frame`, whose rows have the subgroup and the metric."""
        tables = {name: scores.to_frame(level, of) for name, scores in self.items()}
        return importlib.import_module("pandas").concat(tables, names=["subgroup", "metric"])

    def __repr__(self) -> str:
        lines = (f"{name}: {one}" for name, scores in self.items() for one in scores.values())
        return "\n".join([self._head(), *lines])
