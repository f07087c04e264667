"""Half the deviance of Tweedie's family with a log link whose ends are straight."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from skdp._numbers import AnyArray, Array, store_float
from skdp.objective.losses import (
    EXPONENTIAL,
    Float,
    Link,
    Loss,
    ResidualKernel,
    TargetKind,
    TargetUnits,
    finite,
)

LARGEST_RATIO = 20.0  # of a mean to the mean of all targets, up to which the link is logarithmic
# Likewise, up to which records have their full weight in intervals. Noise grows with it: at 2 and 3
# intervals are about as wide with 10,000 rows, and 2 determines more coefficients of 0/1 columns.
LARGEST_FULL_RATIO = 2.0
LARGEST_OFFSET = 50.0  # of the logarithm of an exposure, in size
LARGEST_TARGET = 1e4  # likewise of a target, where the curvature depends on it: for powers above 1
# Squared ratio of the mean of targets to their standard deviation: rarer events count as this rare.
RAREST = 1e-3
# Largest ratio of the unit of targets to their mean. The unit is variance over mean, the size of an
# event where counts are rare. Where they vary for other reasons it is far larger than any event.
LARGEST_UNIT = 10.0
TARGET_REACH = 4.0  # least range of targets above their mean, in their units
LARGEST_EXPONENT = 700.0  # of a mean that is predicted


def unbounded_unit(centre: AnyArray, scale: AnyArray, high: AnyArray) -> AnyArray:
    """Return the unit of targets before ``LARGEST_UNIT`` bounded it, over the bounded one.

    The ends of ranges, as `TweedieLog.target_units` sets them, follow from the former.
    """
    ratio = np.maximum((high - centre) / (TARGET_REACH * scale), 1.0)
    return np.asarray(np.where(scale >= LARGEST_UNIT * centre, ratio, 1.0))


@dataclass(frozen=True)
class TweedieLog(Loss):
    """Half the deviance of Poisson (power 1), gamma (2) and Tweedie targets, with a log link.

    In units of the mean c of all targets, with ``x = unit * m`` the logarithm of the mean over c,
    and ``r = base + unit * y`` the target over c, the residual is
    ``(exp((2 - power) x) - r exp((1 - power) x)) / unit``. Beyond ``log(largest)``, and for powers
    above 1 below ``-log(largest)``, it goes on as a straight line, so that the loss is convex and
    its curvature bounded. Targets in units of their deviation around c make for a curvature of 1
    at the mean and for residuals of about unit size, as in least squares.

    Parameters
    ----------
    power : float, default=1.0
        Of the mean in the variance, in [1, 2].
    largest : float, default=20.0
        Largest mean, over c, for which the link is logarithmic, above 1.
    unit : float, default=1.0
        Unit of the targets over c, and of the margins, which are logarithms of means, positive.
    base : float, default=0.0
        The value of a target of 0, over c: 1 for centred targets.
    bounded : bool, default=False
        Whether working weights w are capped at a smaller ``weight_bound``, and residuals multiplied
        by ``min(1, weight_bound / w)``. These residuals are not derivatives of the value. Their
        mean is 0 where the model is right, because w is a function of the margin.

    Examples
    --------
    >>> import numpy as np
    >>> TweedieLog().residual(np.log([[2.0], [4.0]]), np.array([[1.0], [4.0]])).round(9).tolist()
    [[1.0], [0.0]]
    """

    power: float = 1.0
    largest: float = LARGEST_RATIO
    unit: float = 1.0
    base: float = 0.0
    bounded: bool = False
    name: ClassVar[str] = "tweedie_log"
    targets: ClassVar[TargetKind] = "nonnegative"
    link: ClassVar[Link] = "log"
    smooth: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    residual_bound = None
    n_outputs = 1

    @property
    def typical_curvature(self) -> float:
        return 2 * self.power

    def __post_init__(self) -> None:
        store_float(self, "power", "be in [1, 2]", lambda value: 1 <= value <= 2)
        store_float(self, "largest", "be above 1 and finite", lambda value: 1 < value < math.inf)
        store_float(self, "unit", "be positive and finite", lambda value: 0 < value < math.inf)
        store_float(self, "base", "be 0 or 1", lambda value: value in (0, 1))

    @property
    def curvature(self) -> float:
        if self.power == 1:
            return self.largest
        # Its two terms are largest at the two ends.
        first = (2 - self.power) * math.pow(self.largest, 2 - self.power)
        return first + (self.power - 1) * LARGEST_TARGET * math.pow(self.largest, self.power - 1)

    @property
    def weight_bound(self) -> float:
        ratio = min(self.largest, LARGEST_FULL_RATIO) if self.bounded else self.largest
        return math.pow(ratio, 2 - self.power)

    @property
    def slowdown(self) -> float:
        # Where events are rare, noise changes means by larger factors.
        return max(1.0, self.unit / 1.5)

    def with_offsets(
        self, offsets: Array, targets: AnyArray, weights: Array | None
    ) -> tuple[AnyArray, Array | None]:
        # The residual at m + o is exp((2 - power) o) times that of the target y exp(-o) at m.
        if (np.abs(offsets) > LARGEST_OFFSET).any():
            raise ValueError(f"an offset with a log link is at most {LARGEST_OFFSET:g} in size.")
        factor = np.exp(offsets)
        if self.power < 2:
            own = factor[:, 0] ** (2 - self.power)
            weights = own if weights is None else finite(weights, own, np.multiply)
        return finite(targets, factor, np.divide), weights

    def mean(self, margins: NDArray[Float]) -> NDArray[Float]:
        most = LARGEST_EXPONENT if margins.dtype == np.float64 else LARGEST_EXPONENT / 8
        return np.asarray(np.exp(np.clip(margins, -most, most)))

    def target_units(self, centre: AnyArray | None, scale: AnyArray, noise: float) -> TargetUnits:
        # A deviation is no unit where events are rare: most of the variance of counts comes of
        # single ones, whose size is the variance over the mean. Amounts vary for other reasons,
        # too, and the estimated mean of their long tail may be far too small.
        if centre is None:
            centre = np.ones_like(scale)  # whose logarithm is 0
        else:
            # A share of events below its noise is estimated as anything down to 0, and too small
            # a mean costs far more deviance than too large a one.
            rarest = min(max(noise, RAREST), 1.0)
            centre = np.maximum(centre, scale * math.sqrt(rarest))
            if noise > 0:
                # Histograms of long tails show a median. Of a lognormal amount the mean is larger
                # by this factor, where the deviation is so many medians.
                spread = np.square(scale / centre)
                factor = np.sqrt((1 + np.sqrt(1 + 4 * spread)) / 2) ** (self.power - 1)
                centre, scale = centre * factor, scale * factor
        scale = scale * np.maximum(1.0, scale / centre) ** (2 - self.power)
        high = np.maximum(LARGEST_RATIO * centre, centre + TARGET_REACH * scale)
        scale = np.minimum(scale, LARGEST_UNIT * centre)
        high = np.minimum(high, np.finfo(np.float64).max)
        return TargetUnits(centre, scale, np.zeros_like(centre), high)

    def for_targets(self, centre: AnyArray, scale: AnyArray) -> Self:
        return replace(self, unit=float(scale[0] / centre[0]), base=1.0)

    @property
    def with_bounded_weights(self) -> Self:
        return replace(self, bounded=True)

    def second_derivative(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        with np.errstate(over="ignore"):
            slope = self._slope(self._log_ratio(margins)[0], self._ratio(targets))
        return np.asarray(slope, dtype=margins.dtype)

    def working_weight(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        # The mean of the second derivative: it depends on no target, whose tail may be long.
        most = math.log(self.weight_bound)
        with np.errstate(under="ignore"):
            weights = np.exp(np.minimum(self._log_weight(margins), most))
        return np.asarray(np.minimum(weights, self.weight_bound), dtype=margins.dtype)

    def _log_weight(self, margins: AnyArray) -> AnyArray:
        """Return the logarithm of the slope of the mean residual."""
        most = (2 - self.power) * math.log(self.largest)
        with np.errstate(over="ignore"):
            logarithms = (2 - self.power) * self.unit * np.nan_to_num(margins)
        return np.asarray(np.minimum(logarithms, most))

    @property
    def _margin_range(self) -> tuple[float, float]:
        """The margins between which the link is logarithmic."""
        most = math.log(self.largest) / self.unit
        return -LARGEST_EXPONENT / self.unit if self.power == 1 else -most, most

    @property
    def _largest_target(self) -> float:
        return math.inf if self.power == 1 else LARGEST_TARGET

    def _kernel(self) -> ResidualKernel | None:
        if self.bounded:
            return None
        numbers = self.power, self.unit, self.base, *self._margin_range, self._largest_target
        return ResidualKernel.of(EXPONENTIAL, *numbers)

    def _log_ratio(self, margins: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return the logarithm of the mean over c within the bounds of the link, and the rest."""
        within = np.clip(margins, *self._margin_range)
        beyond = margins - within
        if self.power == 1:  # whose residual is bounded there by itself
            beyond = np.maximum(beyond, 0.0)
        return within * self.unit, beyond

    def _ratio(self, targets: AnyArray) -> AnyArray:
        """Return the targets over c."""
        return np.clip(self.base + self.unit * targets, 0.0, self._largest_target)

    def _slope(self, x: AnyArray, ratio: AnyArray) -> AnyArray:
        """Return the derivative in x of `_first`."""
        p = self.power
        if p == 1:
            return np.asarray(np.exp(x))
        return np.asarray((2 - p) * np.exp((2 - p) * x) + (p - 1) * ratio * np.exp((1 - p) * x))

    def _first(self, x: AnyArray, ratio: AnyArray) -> AnyArray:
        """Return the derivative in x of half the deviance, with the logarithmic link."""
        p = self.power
        return np.asarray(np.exp((2 - p) * x) - ratio * np.exp((1 - p) * x))

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        (x, beyond), ratio = self._log_ratio(margins), self._ratio(targets)
        largest = np.finfo(out.dtype).max
        residuals = self._first(x, ratio) / self.unit + self._slope(x, ratio) * beyond
        if self.bounded:
            excess = self._log_weight(margins) - math.log(self.weight_bound)
            residuals = residuals * np.exp(-np.maximum(excess, 0.0))
        np.clip(residuals, -largest, largest, out=out)
