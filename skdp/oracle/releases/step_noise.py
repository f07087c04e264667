"""Noise for passes of many tiny steps: drawn for many steps at once, added without loss."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import daxpy

from skdp._numbers import Array
from skdp.oracle.exact_sampling import LARGEST_GAUSSIAN
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases.base import Contribution
from skdp.oracle.releases.mechanisms import GRID_BITS, GaussianNoise

BLOCK = 1 << 15  # numbers drawn at once
SUM_BITS = 50  # sums in units of the grid stay below this power of two: exact, with room for noise


@dataclass(frozen=True, eq=False)
class StepNoise:
    """`GaussianNoise.add_noise` for one statistic after the other, in two additions to a vector.

    With g the grid, let ``shift = 1.5 * 2**52 * g``. Floating-point numbers between ``2**52 g`` and
    ``2**53 g`` are the multiples of g. So

    1. ``u = shift + s``, in one rounding, is shift plus s rounded to the grid (a tie goes to the
       even multiple, whatever the noise is), as long as ``|s| <= 2**51 g``: the grid is chosen so.
    2. ``u + (g N - shift)`` is exact, N being the rounded noise: both are multiples of g, as is
       the sum, and none exceeds ``2**53 g`` (a float64 holds all of those) unless N exceeds
       ``2**51``, which :attr:`std` keeps 32 standard deviations away.

    The answer is ``g (rint(s / g) + N)``, as in `GaussianNoise`, and the same argument holds.
    Adding s to shift and noise at once would not do: which way a tie goes, and so whether an answer
    is even, would then tell of s. The noise of a step is never used before the statistic is on
    the grid.

    Attributes
    ----------
    mechanism : GaussianNoise
    contribution : Contribution
        Of one step's statistic.
    scale : float
        Calibrated factor; 0 adds nothing.
    """

    mechanism: GaussianNoise
    contribution: Contribution
    scale: float

    LARGEST: ClassVar[float] = 2.0**46

    @cached_property
    def grid(self) -> float:
        """Width of the grid; 0 without noise."""
        return self.mechanism._grid(self.contribution, self.scale) if self.scale else 0.0

    @cached_property
    def std(self) -> float:
        """Standard deviation of the noise in each coordinate of an answer."""
        std = self.mechanism.std(self.contribution, self.scale)
        if self.scale and std / self.grid > self.LARGEST:
            raise ValueError(
                "StepNoise: the noise is too large next to its grid; choose a larger epsilon. "
                "Nothing was released."
            )
        return std

    @cached_property
    def shift(self) -> float:
        """Number that a statistic is added to so that it comes out rounded to the grid."""
        return 1.5 * 2.0**52 * self.grid

    def draw(self, n_steps: int, noise_source: NoiseSource) -> Array:
        """Return ``g N - shift`` for this many steps, one in a row."""
        shape = n_steps, self.contribution.size
        if self.scale == 0:
            return np.zeros(shape)
        noise = noise_source.gaussian(self.std / self.grid, shape)
        noise *= self.grid
        noise -= self.shift
        return noise

    def add_noise(self, shifted: Array, noise: Array) -> Array:
        """Turn ``shift + s`` into the noisy answer, in place."""
        answer: Array = daxpy(noise, shifted)
        return answer

    def adder(self, noise_source: NoiseSource) -> Callable[[Array, Array], Array]:
        """Return `add_noise`; one that shows every answer to a source that keeps a record."""
        if not noise_source.keeps_record:
            return self.add_noise
        event = self.mechanism.event(self.contribution.spread)
        # What is shown is on the grid already, which the noise is charged for.
        bound = self.contribution.bound + self.grid * math.sqrt(self.contribution.size)

        def shown(shifted: Array, noise: Array) -> Array:
            statistic = shifted - self.shift
            answer = self.add_noise(shifted, noise)
            answer[:] = noise_source.record_answer(answer.copy(), statistic, event, bound, self.std)
            return answer

        return shown


class VaryingNoise:
    """Noise for a sequence of statistics, on a grid that depends on the bound of each.

    All have the same noise multiplier.

    Let b > 0 be the bound on what one record adds to the statistic s of a step, a number that may
    differ from step to step and is public once the answers before it are. The grid of that step is
    ``g = b / cells``, with ``cells`` a power of two fixed for the whole pass. What is released is
    the integer vector ``z = rint(s / g) + round(N(0, std**2 I))``, with one ``std``, in units of
    the grid, for all steps; so noise can be drawn before the steps are known. The answer ``g z``
    is a function of z.

    *Proof.* As for `GaussianNoise`: rint(s / g) being integers k, z is a rounding of
    ``k + N(0, std**2 I)``, hence post-processing of the Gaussian mechanism on k. Dividing by g,
    which need not be a power of two, takes at most three roundings: with ``|s / g| <= 2**50`` they
    move s / g by at most 3/8, rint by 1/2, so that k is within 7/8 of s / g in every coordinate.
    Two neighbouring k are therefore at most ``sensitivity / g + 1.75 sqrt(size)`` apart, and b
    being as it is ``sensitivity / g`` is at most ``spread * cells * slack``. As

        std = noise_multiplier * (cells * slack + 2 sqrt(size)),

    the step is Gaussian with this noise multiplier and spread, under both adjacencies since
    spread >= 1.

    Parameters
    ----------
    mechanism : GaussianNoise
    contribution : Contribution
        Of the sum whose bound is 1, before rounding: ``bound`` is the slack, ``total`` bounds the
        coordinates of the sum over all rows that may take part.
    scale : float
        Calibrated factor; 0 means no noise.
    noise_source : NoiseSource or None
        None where only :attr:`std` is wanted.
    n_steps : int
        No more noise is drawn at once than so many steps need.

    Attributes
    ----------
    cells : float
        Grid cells in one bound.
    std : float
        Standard deviation of the noise, in cells.
    is_watched : bool
        Whether the source keeps a record, so that every answer has to go through `add_noise`.
    """

    def __init__(
        self,
        mechanism: GaussianNoise,
        contribution: Contribution,
        scale: float,
        noise_source: NoiseSource | None = None,
        n_steps: int = 1,
    ) -> None:
        self.mechanism, self.contribution, self.scale = mechanism, contribution, scale
        multiplier = mechanism.relative_noise * scale
        self.cells, self.std = 1.0, 0.0
        if scale > 0:
            most = SUM_BITS - math.ceil(math.log2(max(contribution.total, 1.0)))
            # Fine next to the noise, but no finer than doubles bear.
            bits = min(max(GRID_BITS - math.floor(math.log2(multiplier)), 16), most)
            self.cells = 2.0**bits
            self.std = multiplier * (
                self.cells * contribution.bound + 2.0 * math.sqrt(contribution.size)
            )
            if not 1 <= self.std <= LARGEST_GAUSSIAN:
                raise ValueError(
                    f"a noise multiplier of {multiplier:g} cannot be drawn: it is too fine to be "
                    "told from rounding errors, where epsilon=inf adds none, or too large. "
                    "Nothing was released."
                )
        self._source = noise_source
        self.is_watched = noise_source is not None and noise_source.keeps_record
        self._at_once = max(1, min(n_steps, BLOCK // contribution.size))
        self._block = np.empty((0, contribution.size))
        self._used = 0

    def next(self, n_steps: int) -> Array:
        """Return the noise of the next steps in units of the grid, of one step or of a few.

        For whoever rounds sums to the grid first, as `add_noise` does.
        """
        assert self._source is not None
        if self._used == len(self._block):
            shape = (self._at_once, self.contribution.size)
            self._block, self._used = self._source.gaussian(self.std, shape), 0
        result = self._block[self._used : self._used + n_steps]
        self._used += len(result)
        return result

    def add_noise(self, cells: Array) -> Array:
        """Turn a flat statistic in units of the grid into its noisy answer in those, in place."""
        if self.scale == 0:
            return cells
        assert self._source is not None
        statistic = cells.copy() if self.is_watched else cells
        np.rint(cells, cells)
        np.add(cells, self.next(1)[0], cells)
        if self.is_watched:
            event = self.mechanism.event(self.contribution.spread)
            bound = self.contribution.bound * self.cells
            answer = self._source.record_answer(cells.copy(), statistic, event, bound, self.std)
            cells[:] = answer
        return cells
