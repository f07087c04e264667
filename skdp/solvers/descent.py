"""Run gradient methods: one loop along a path, over a public schedule of steps.

A path decides where the next answer is requested, where to move and which iterate is the result.
Wrappers of paths add to it: sizes from noisy gradients, clipping norms from noisy counts, a
checkpoint. All but the requests is post-processing of released answers. A batch size and a way of
sampling become the samplers of all steps.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, NamedTuple

from skdp._numbers import Array, is_integer, is_real, shown
from skdp._oracle import (
    AllRows,
    FixedSize,
    GaussianNoise,
    NoisyStatistic,
    Oracle,
    Poisson,
    Public,
    Sampler,
    Statistic,
)
from skdp.accounting import Gaussian
from skdp.objective import Problem
from skdp.solvers import base, checks
from skdp.steps import (
    AVERAGES,
    AnyMomentum,
    IterateAverage,
    Momentum,
    constant_clip,
    relative_noise,
    step_sizes,
)

# Rows in a batch, as a number or a fraction. None is all rows.
BatchSize = int | float | None


def batch_rows(batch_size: BatchSize, n_rows: int) -> int:
    """Turn a batch size into an expected number of rows.

    Raises
    ------
    ValueError
        If it is neither an integer in [1, n_rows] nor a fraction in (0, 1].
    """
    if is_integer(batch_size):
        if 1 <= batch_size <= n_rows:
            return int(batch_size)
    elif is_real(batch_size) and 0 < batch_size <= 1:
        return max(1, round(float(batch_size) * n_rows))
    raise ValueError(
        f"batch_size must be None, an integer in [1, {n_rows}] or a fraction of the rows in "
        f"(0, 1], got {shown(batch_size)}."
    )


def batch_rate(batch_size: BatchSize, n_rows: int) -> float:
    """Return the expected fraction of the rows in a batch. 1 if ``batch_size`` is None."""
    return 1.0 if batch_size is None else batch_rows(batch_size, n_rows) / n_rows


def spent_on_batches(spent: float, batch_size: BatchSize, public: Public) -> float:
    """Return about the ratio of the budget of steps on batches to that of steps on all rows.

    By mu squared. T random samples with the rate q cost ``mu**2 = q**2 T (exp(sigma**-2) - 1)``
    with a noise multiplier sigma (Bu, Dong, Long, Su 2020, sec. 3), which is that of the steps
    where mu is the whole budget. Not where noise is so small that a row pays as often as it is
    drawn.
    """
    rate, budget = batch_rate(batch_size, public.n_rows), public.gradient_mu**2
    most = max(spent * rate, 1.0)
    if rate == 1:
        return most
    return min(most, budget / math.log1p(budget / (rate**2 * spent)))


SAMPLINGS = ("poisson", "fixed_size")


def check_batches(batch_size: BatchSize, sampling: str, public: Public) -> None:
    """Raise ValueError if batches of this size cannot be drawn in this way."""
    checks.choice("sampling", sampling, SAMPLINGS)
    batch_rate(batch_size, public.n_rows)


def samplers(batch_size: BatchSize, sampling: str, public: Public) -> Iterator[Sampler]:
    """Return the samplers of the steps, one after the other, without end."""
    if batch_size is None:
        return itertools.repeat(AllRows())
    size = batch_rows(batch_size, public.n_rows)
    is_poisson = sampling == "poisson"
    return itertools.repeat(Poisson(size / public.n_rows) if is_poisson else FixedSize(size))


def given_beta(momentum: AnyMomentum, public: Public) -> float | None:
    """Return the beta that step sizes follow from, None if the default decides.

    The first steps of averaged momentum are plain ones. Noisy ones are clipped.
    """
    if checks.is_auto(momentum):
        return None
    rule = Momentum.of(momentum)
    return rule.beta if public.is_noisy or rule.kind == "heavy_ball" else 0.0


class GradientSolver(base.Solver):
    """Base of solvers whose steps follow noisy gradients. It checks what several of them have.

    Attributes
    ----------
    averages : tuple of str
        Values of ``averaging``.
    """

    averages: ClassVar[tuple[str, ...]] = AVERAGES

    learning_rate: base.StepSize
    noise_schedule: base.RelativeNoise
    clip_norm: base.Resolved[float]

    def check_values(self, public: Public, problem: Problem) -> None:
        checks.count(max_iter=self.max_iter)
        given = self.get_params(deep=False)
        if "momentum" in given:
            Momentum.of(given["momentum"])
        if "averaging" in given:
            checks.choice("averaging", given["averaging"], self.averages)
        if len(self.mechanisms) > 1:
            checks.choice("mechanism", given["mechanism"], self.mechanisms)
        if "batch_size" in given:
            check_batches(given["batch_size"], given["sampling"], public)
        constant_clip(self.clip_norm)
        self._noises()

    def _sizes(self) -> Array:
        """Return the step sizes, or those to which noise is matched."""
        return step_sizes(self.learning_rate, self.max_iter)

    def _noises(self, composition: str = "gaussian") -> Array:
        """Return the relative noise of the steps."""
        return relative_noise(self.noise_schedule, self._sizes(), composition)


class Step(NamedTuple):
    """Public numbers of a step: its size, and the request that it makes."""

    size: float
    clip_norm: float
    noise: float = 1.0
    batch: Sampler = AllRows()
    mechanism: str = "gaussian"


def schedule(
    sizes: Iterable[float],
    clip_norm: float,
    noises: Iterable[float],
    batches: Iterable[Sampler] | None = None,
    mechanism: str = "gaussian",
) -> Iterator[Step]:
    """Yield the steps of a run, as many as there are sizes."""
    for size, noise, batch in zip(
        sizes, noises, batches or itertools.repeat(AllRows()), strict=False
    ):
        yield Step(float(size), clip_norm, float(noise), batch, mechanism)


def descend(oracle: Oracle, path: "Path", steps: Iterable[Step]) -> Array:
    """Return the result of a path after these steps.

    In a rehearsal no path moves, as the cost of requests does not depend on points.
    """
    for step in steps:
        answer = path.query(oracle, step)
        if not oracle.is_rehearsal:
            path.move(answer, step)
    return oracle.start() if oracle.is_rehearsal else path.result()


class Path(ABC):
    """The iterates of a method."""

    @abstractmethod
    def at(self, step: Step) -> Array:
        """Return the point of a step's gradient."""

    def query(self, oracle: Oracle, step: Step) -> Array:
        """Make the requests of a step, whose number does not depend on answers."""
        return oracle.gradient(
            self.at(step), step.clip_norm, step.noise, step.batch, step.mechanism
        )

    @abstractmethod
    def move(self, answer: Array, step: Step) -> None:
        """Move to the next iterate."""

    @abstractmethod
    def result(self) -> Array:
        """Return the solution after the last step."""


class Proximal(Path):
    """``w = prox(w - size * direction)``, and an average of the iterates.

    Parameters
    ----------
    problem : Problem
    start : array
    average : IterateAverage
    momentum : Momentum or None
        Turns gradients into directions.
    rates : array or float
        Factors on the steps of the parameters.
    """

    def __init__(
        self,
        problem: Problem,
        start: Array,
        average: IterateAverage,
        momentum: Momentum | None = None,
        rates: Array | float = 1.0,
    ) -> None:
        self.point, self._average, self._rates = start, average, rates
        self._prox = problem.prox
        self._direction = momentum.start() if momentum else lambda gradient: gradient
        average.add(start)

    def at(self, step: Step) -> Array:
        return self.point

    def move(self, answer: Array, step: Step) -> None:
        along = self._rates * self._direction(answer)
        self.point = self._prox(self.point - step.size * along, step.size)
        self._average.add(self.point)

    def result(self) -> Array:
        return self._average.result()


class SmoothPath(Path):
    """A path along the gradient of the objective, with that of its smooth penalty."""

    def query(self, oracle: Oracle, step: Step) -> Array:
        return super().query(oracle, step) + oracle.problem.penalty_gradient(self.at(step))


class MomentumPath(SmoothPath):
    """Polyak's and Nesterov's momentum (Kuru et al. 2022, eqs. 9 and 27).

    With ``z = x + beta (x - x_previous)``, the next iterate is ``z - a g(x)``, or ``z - a g(z)`` if
    the path looks ahead. A new stage begins where the step size changes, and momentum restarts
    there from the last iterate.

    Parameters
    ----------
    start : array
    momentum : callable
        Returns beta for a step size a.
    looks_ahead : bool
        Whether gradients are taken at z: Nesterov's method, else the heavy ball.
    """

    def __init__(self, start: Array, momentum: Callable[[float], float], looks_ahead: bool) -> None:
        self._iterate = self._previous = start
        self._momentum, self._looks_ahead, self._size = momentum, looks_ahead, math.nan

    def _ahead(self, step: Step) -> Array:
        before = self._previous if step.size == self._size else self._iterate
        return self._iterate + self._momentum(step.size) * (self._iterate - before)

    def at(self, step: Step) -> Array:
        return self._ahead(step) if self._looks_ahead else self._iterate

    def move(self, answer: Array, step: Step) -> None:
        ahead, self._size = self._ahead(step), step.size
        self._previous, self._iterate = self._iterate, ahead - step.size * answer

    def result(self) -> Array:
        return self._iterate


class Wrapper(Path):
    """A path that does as another one does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def at(self, step: Step) -> Array:
        return self.path.at(step)

    def query(self, oracle: Oracle, step: Step) -> Array:
        return self.path.query(oracle, step)

    def move(self, answer: Array, step: Step) -> None:
        self.path.move(answer, step)

    def result(self) -> Array:
        return self.path.result()


class Sized(Wrapper):
    """Computes the sizes of steps by a rule, from the point, its noisy gradient and the noise.

    The rule is post-processing of the answer, and costs nothing.
    """

    def __init__(self, path: Path, size_of: Callable[[Array, Array, float], float]) -> None:
        super().__init__(path)
        self._size_of, self._size = size_of, math.nan

    def query(self, oracle: Oracle, step: Step) -> Array:
        answer = super().query(oracle, step)
        std = oracle.gradient_std(step.clip_norm, step.noise, step.batch, step.mechanism)
        self._size = self._size_of(self.at(step), answer, std)
        return answer

    def move(self, answer: Array, step: Step) -> None:
        super().move(answer, step._replace(size=self._size))


def count_ratio(public: Public) -> float:
    """Return a count's noise over that of a gradient of the same cost, each in its own unit."""
    return Gaussian(1.0, spread=1.0).sensitivity(public.adjacency) / public.sensitivity_factor


def noisy_count(oracle: Oracle, count: Statistic, noise: float, rows: Sampler) -> float:
    """Request a count. A gradient of the same cost would have the same relative ``noise``."""
    mechanism = GaussianNoise(noise * count_ratio(oracle.public))
    return float(oracle.request(NoisyStatistic(count, mechanism, rows))[0])
