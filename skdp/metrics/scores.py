"""Private scores with intervals, and how they are estimated from noisy tables and means."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from skdp._numbers import AnyArray, Array, is_real, require
from skdp._stages.scores import RESOLUTION, NoisyTable, Totals
from skdp.accounting import PrivacyStatement

OF = ("rows", "population")


def normal_quantile(level: float) -> float:
    """Return the half-width of an interval of this level, in standard deviations."""
    require("level", level, "lie in (0, 1), such as 0.95", is_real(level) and 0 < level < 1)
    return float(ndtri((1 + level) / 2))


@dataclass(frozen=True, eq=False, repr=False)
class Score(float):
    """A private score: a number with the uncertainty that noise and the draw of rows cause.

    It is a float wherever one is expected. It is the ratio of two noisy numbers, a noisy mean, or
    the root of that.

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
        The score is this power of the ratio: 1/2 for a root of a mean loss.
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
        return self._of_score(self.unit * std / self.denominator)

    @property
    def sampling_std(self) -> float:
        """Standard deviation of the score from one draw of as many rows to another, an estimate."""
        return self._of_score(self.sampling)

    def _of_score(self, std: float) -> float:
        """Return the standard deviation of the score from that of the ratio, to first order."""
        slope = abs(self) ** (1 / self.power - 1) / self.power  # of the ratio, by the score
        return std and std / max(slope, std ** (1 - self.power))

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
        Intervals of an average precision at level 0.95 held it in 0.88 to 0.94 of simulations.
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


class Scores(dict[Any, Any]):
    """Private scores by name, or the scores of subgroups by their names, and the total cost.

    Attributes
    ----------
    privacy_ : PrivacyStatement
        Releases, cost and assumptions. All subgroups share this statement, which is charged once.
    """

    def __init__(self, scores: Iterable[tuple[Any, Any]], privacy: PrivacyStatement) -> None:
        super().__init__(scores)
        self.privacy_ = privacy

    @property
    def _has_subgroups(self) -> bool:
        return all(isinstance(one, Scores) for one in self.values())

    def to_frame(self, level: float = 0.95, of: str = "rows") -> Any:
        """Return the scores as a table. It needs pandas.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.
        of : {"rows", "population"}, default="rows"
            As in `Score.interval`.

        Returns
        -------
        pandas.DataFrame
            A row for each score (and subgroup): the score, the ends of its interval, and the
            standard deviations of noise and sampling.
        """
        pandas: Any = importlib.import_module("pandas")
        if self._has_subgroups:
            tables = {name: scores.to_frame(level, of) for name, scores in self.items()}
            return pandas.concat(tables, names=["subgroup", "metric"])
        rows = [
            [float(one), *one.interval(level, of), one.noise_std, one.sampling_std]
            for one in self.values()
        ]
        columns = ["score", "low", "high", "noise_std", "sampling_std"]
        return pandas.DataFrame(rows, list(self), columns)

    def __repr__(self) -> str:
        cost = f"epsilon={self.privacy_.epsilon:.6g}, delta={self.privacy_.delta:.6g}"
        lines = list(map(str, self.values()))
        if self._has_subgroups:
            lines = [f"{name}: {one}" for name, of in self.items() for one in of.values()]
        return "\n".join([f"<{type(self).__name__} at {cost}>", *lines])


# ---------------------------------------------------------------- estimates
# Nothing here sees a row. Standard errors of sampling are those of so many independent records. A
# record that is a group of rows adds the mean of its rows' contributions, whose variance is at most
# the mean of theirs (Jensen). So the same formulas, with the number of groups for that of rows, are
# bounds: exact where the rows of a group are all alike, too large where they differ.

UNIT = (0.0, 1.0)
DRAWS = 400  # simulated tables


@dataclass(frozen=True)
class Metric:
    """A metric, under a name of scikit-learn's.

    Attributes
    ----------
    quantity : str
        The estimated quantity. "log_loss" and "neg_log_loss" share it.
    estimate : callable
        Returns the score from its name, this metric and the answers.
    needs : dict of str to float
        Statistics of rows that it follows from, and the part of the budget of each next to others.
        "labels" stands for the least informative one from which all requested metrics of predicted
        labels follow.
    sign : {1, -1}, default=1
        -1 for losses under names like "neg_log_loss".
    of_two : bool, default=False
        Whether it is for two classes only.
    """

    quantity: str
    estimate: Callable[[str, Metric, Answers], Score]
    needs: Mapping[str, float]
    sign: int = 1
    of_two: bool = False

    @property
    def greater_is_better(self) -> bool:
        """Whether more of it is better."""
        return self.sign < 0 or self.estimate not in (mean_loss, root)


@dataclass(frozen=True)
class Answers:
    """Noisy answers, and the public facts by which scores follow from them. There are no rows.

    Attributes
    ----------
    by_statistic : dict of str to NoisyMean or NoisyTable
    totals : Totals or None
        None of a subgroup, whose size is private.
    unit : float
        The weights' scale.
    bounds : dict of str to float
        Largest value of each loss.
    classes : array of shape (n_classes,)
        Of the model, public.
    """

    by_statistic: Mapping[str, Any]
    totals: Totals | None
    unit: float
    bounds: Mapping[str, float]
    classes: AnyArray


# ---------------------------------------------------------------- means


def mean_loss(name: str, metric: Metric, answers: Answers) -> Score:
    """Return the mean of losses from zero to their bound, from that of losses and their squares."""
    loss, square = metric.needs
    return _mean(name, answers, loss, answers.by_statistic[square], answers.bounds[loss])


def root(name: str, metric: Metric, answers: Answers) -> Score:
    """Return the root of a mean loss. The ends of its interval are roots, as roots increase."""
    return replace(mean_loss(name, metric, answers), power=0.5)


def _mean(name: str, answers: Answers, loss: str, square: Any = None, bound: float = 1.0) -> Score:
    """Return the mean of losses in [0, bound].

    It is a ratio, as the sum of the weights, or the size of a subgroup, is noisy. What was released
    is the mean of ``2 loss / bound - 1``, or of a subgroup the sums of ``1 - loss / bound`` and of
    ``loss / bound``, which add up to the size, and in the same way for ``(loss / bound)**2``. If
    its noise is large the losses are taken to vary as much as that noise allows, or as their mean
    allows.
    """
    mean, totals, second = answers.by_statistic[loss], answers.totals, None
    if totals is None:
        parts = np.array([[0.0, 1.0]]), np.ones((1, 2))
        score = _ratio(name, mean, *parts)
        n_effective = max(score.denominator, 1.0) / mean.design
        if square is not None:
            of_squares = _ratio(name, square, *parts)
            second = of_squares.value, of_squares.noise_std
    else:
        of_total = totals.std**2
        noise = (math.hypot(mean.std, totals.std) / 2) ** 2, of_total / 2, of_total
        score = Score(name, (1 + mean.value) / 2, 1.0, noise, 0.0, UNIT)
        n_effective = totals.n_effective
        if square is not None:
            second = (1 + square.value) / 2, square.std / 2
    share = 0.5 if math.isnan(score) else score.value
    most = share * (1 - share)
    variance = most
    if second is not None and not math.isnan(second[0]):
        variance = min(most, max(0.0, second[0] - share**2) + second[1])
    sampling = bound * math.sqrt(variance / n_effective)
    return replace(score, sampling=sampling, limits=(0.0, bound), unit=bound)


def explained(name: str, metric: Metric, answers: Answers) -> Score:
    """Return D2, ``1 - deviance / deviance from the mean``. With squared errors it is R2.

    As a ratio: (deviance from the mean - deviance) / deviance from the mean. The influence is the
    mean of the squares of the rows' contributions to ``deviance - (1 - D2) deviance from the
    mean``. By the delta method this over n and the square of the latter is the sampling variance of
    D2, for targets of any distribution. One standard deviation of its noise is added, so that noise
    rarely makes it too small.
    """
    assert answers.totals is not None  # `metrics_by_name` refuses it for subgroups
    means, influence = answers.by_statistic[f"{metric.quantity} influence"]
    null, variance = means.null, max(influence.value, 0.0) + influence.std
    sampling = math.sqrt(variance / answers.totals.total) / null if null > 0 else 0.0
    return Score(name, null - means.residual, null, means.noise, sampling, (-math.inf, 1.0))


# ---------------------------------------------------------------- tables of classes


def _ratio(name: str, table: NoisyTable, above: Array, below: Array) -> Score:
    """Return a ratio of two weighted sums of cells.

    Sampling varies it by the delta method: what a row adds to ``above - ratio * below`` has the
    mean 0 and this mean square. For a share that is ``share (1 - share)`` over the rows it is of,
    for F1, in which true positives count twice, ``f1 (1 - f1) (2 - f1)``.
    """
    numerator = float(np.vdot(above, table.counts))
    denominator = float(np.vdot(below, table.counts))
    noise = table.variance(above), table.variance(above, below), table.variance(below)
    ratio = min(max(numerator / denominator, 0.0), 1.0) if denominator > 0 else 0.5
    squares = float(np.vdot(table.counts, (above - ratio * below) ** 2))
    sampling = math.sqrt(table.design * max(squares, 0.0)) / max(denominator, 1.0)
    return Score(name, numerator, denominator, noise, sampling, UNIT)


def accuracy(name: str, _: Metric, answers: Answers) -> Score:
    """Return the share of the rows that were predicted right."""
    if "correct" in answers.by_statistic:
        return _mean(name, answers, "correct")
    table, totals, correct = answers.by_statistic["cells"], answers.totals, np.eye(2).ravel()[None]
    score = _ratio(name, table, correct, np.ones_like(correct))
    if totals is None or totals.std:  # the number of rows is private
        return score
    noise = score.noise[0] / totals.total**2, 0.0, 0.0
    return replace(score, numerator=score.numerator / totals.total, denominator=1.0, noise=noise)


def of_second_class(name: str, _: Metric, answers: Answers) -> Score:
    """Return precision, recall or F1 of the second of two classes, from their confusion matrix."""
    above, below = np.zeros((2, 2)), np.zeros((2, 2))
    above[1, 1] = 2.0 if name == "f1" else 1.0
    if name in ("precision", "f1"):
        below[:, 1] += 1.0
    if name in ("recall", "f1"):
        below[1] += 1.0
    return _ratio(name, _by_classes(answers), above, below)


def balanced_accuracy(name: str, _: Metric, answers: Answers) -> Score:
    """Return the mean recall of two classes: the area under the ROC curve of predicted classes."""
    return _simulated(name, _by_classes(answers), _pairs_in_order)


def _by_classes(answers: Answers) -> NoisyTable:
    """Return the numbers of rows by true class and predicted class, of two."""
    table: NoisyTable = answers.by_statistic["cells"]
    return replace(table, counts=table.counts.reshape(2, 2))


# ---------------------------------------------------------------- tables of scores


Parts = Callable[[Array], tuple[Array, Array]]  # of tables, numerators and denominators


def roc_auc(name: str, _: Metric, answers: Answers) -> Score:
    """Return the area under the ROC curve, ties within a bin counting one half.

    ``sum_b p_b (N_below + n_b / 2) / (P N)``: a quadratic form of noisy counts over another.
    """
    return _simulated(name, answers.by_statistic["ranking"], _pairs_in_order)


def average_precision(name: str, _: Metric, answers: Answers) -> Score:
    """Return the average precision, the area below the curve of precision against recall."""
    return _simulated(name, answers.by_statistic["ranking"], _precision)


def _simulated(name: str, table: NoisyTable, parts: Parts) -> Score:
    """Return a ratio of two functions of a table, with the deviations of simulated tables.

    These lie about the noisy one, so that they contain what the curvature of both functions adds.
    """
    if not (table.counts.sum(axis=1) > 0).all():
        return Score(name, math.nan, 0.0, (0.0, 0.0, 0.0), 0.0, UNIT)
    above, below = map(float, parts(table.counts))
    draws = np.random.default_rng(0).standard_normal((DRAWS, *table.counts.shape))
    # Cells were made to add up to a known number, or not.
    noise_in = draws - draws.sum(axis=(1, 2), keepdims=True) / table.n_cells
    ups, downs = parts(table.counts + table.std * noise_in)
    both = float(np.mean((ups - above) * (downs - below)))
    noise = float(np.mean((ups - above) ** 2)), both, float(np.mean((downs - below) ** 2))
    ups, downs = parts(table.counts + np.sqrt(table.design * np.maximum(table.counts, 0)) * draws)
    sampling = float((ups - above / below * downs).std()) / below
    return Score(name, above, below, noise, sampling, UNIT)


def _pairs_in_order(counts: Array) -> tuple[Array, Array]:
    """Return the pairs of rows of both classes that are in order, and all pairs, by tables."""
    negatives, positives = counts[..., 0, :], counts[..., 1, :]
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    return (positives * below).sum(axis=-1), positives.sum(axis=-1) * negatives.sum(axis=-1)


def _precision(counts: Array) -> tuple[Array, Array]:
    """Return the sum of the positives' precisions, and the positives, by tables.

    A row has on average half of the rows of its own bin above it.
    """
    both = np.stack((counts.sum(axis=-2), counts[..., 1, :]))[..., ::-1]
    rows, positives = np.cumsum(both, axis=-1) - both / 2
    precision = np.clip(positives / np.maximum(rows, RESOLUTION), 0, 1)
    return (both[1] * precision).sum(axis=-1), both[1].sum(axis=-1)
