"""Pinball and hinge loss, their kinks smoothed by a logistic distribution."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from skdp._numbers import AnyArray, is_integer, is_real, require, store_float
from skdp.objective.losses import HINGE, SIGMOID, Float, Link, Loss, ResidualKernel, TargetKind

# Width for a signal-to-noise ratio of 1, the power of the ratio in it, and its limits, all in
# standard deviations of the targets: coverage was off by 0.09 with three times that at 2,000 rows.
WIDTH, WIDTH_POWER, LEAST_WIDTH, MOST_WIDTH = 0.3, -0.4, 0.01, 0.2
# Curvature that steps of quantile regression go by, in inverse deviations of the targets: the
# density of residuals at 0, which is 0.4 where columns explain nothing of a normal target.
TYPICAL_DENSITY = 1.0


class _Smoothed(Loss):
    """A loss with one kink, where the derivative is that of a logistic distribution."""

    width: float
    smooth: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    @property
    def curvature(self) -> float:
        return 1 / (4 * self.width)

    @property
    def weight_bound(self) -> float:
        return self.curvature

    @property
    def typical_curvature(self) -> float:
        return min(TYPICAL_DENSITY, self.curvature)

    def __post_init__(self) -> None:
        store_float(self, "width", "be positive and finite", lambda value: 0 < value < math.inf)

    @abstractmethod
    def _past(self, margins: AnyArray, targets: AnyArray) -> AnyArray:
        """Return how far margins are past the kink, in widths."""

    def second_derivative(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        with np.errstate(over="ignore"):
            half = np.tanh(np.abs(self._past(margins, targets)) / 2)
        return np.asarray((1 - half) * (1 + half) * self.curvature, dtype=margins.dtype)


@dataclass(frozen=True)
class SmoothedPinball(_Smoothed):
    """Pinball loss of quantiles, one for each output. Targets of shape (n, K).

    With ``r = m - y`` the loss of an output is ``width log(1 + exp(r / width)) - q r``, which is
    ``max(r, 0) - q r`` but for the kink. The residual ``1 / (1 + exp(-r / width)) - q`` is at most
    1 in size. Its mean is 0 at the quantile of targets to which logistic noise of this width was
    added.

    Parameters
    ----------
    quantiles : tuple of float, default=(0.5,)
        In (0, 1), one for each output.
    width : float, default=0.1
        Of the smoothing, in the unit of the targets, positive.

    Examples
    --------
    >>> import numpy as np
    >>> loss = SmoothedPinball((0.9,))
    >>> loss.residual(np.array([[0.0], [9.0]]), np.zeros((2, 1))).round(9).tolist()
    [[-0.4], [0.1]]
    """

    quantiles: tuple[float, ...] = (0.5,)
    width: float = 0.1
    name: ClassVar[str] = "smoothed_pinball"
    targets: ClassVar[TargetKind] = "real"
    link: ClassVar[Link] = "identity"
    degree = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = all(is_real(one) and 0 < one < 1 for one in self.quantiles)
        require("SmoothedPinball: quantiles", self.quantiles, "lie in (0, 1)", fine)
        object.__setattr__(self, "quantiles", tuple(map(float, self.quantiles)))

    @property
    def n_outputs(self) -> int:
        return len(self.quantiles)

    @property
    def residual_bound(self) -> float:
        return max(*self.quantiles, *(1 - one for one in self.quantiles))

    @property
    def largest_residual(self) -> float:
        # That of all quantiles together, which do not cross: a smaller cap would move those outside
        # towards the median, as only targets beyond them have long residuals.
        lowest = np.sort(self.quantiles)
        return max(math.hypot(*lowest[:k], *(1 - lowest[k:])) for k in range(self.n_outputs + 1))

    def for_signal(self, ratio: float) -> Self:
        width = min(max(WIDTH * ratio**WIDTH_POWER, LEAST_WIDTH), MOST_WIDTH)
        return replace(self, width=width)

    def _past(self, margins: AnyArray, targets: AnyArray) -> AnyArray:
        return np.asarray((margins - targets) / self.width)

    def _kernel(self) -> ResidualKernel:
        return ResidualKernel.of(SIGMOID, self.width, 1.0, 0.0, *self.quantiles)

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        past = self._past(margins, targets)
        np.copyto(out, expit(past) - np.array(self.quantiles), casting="same_kind")

    def _value(self, margins: AnyArray, targets: AnyArray) -> AnyArray:
        error = margins - targets
        kinked = np.maximum(error, 0.0) - np.array(self.quantiles) * error
        rounded = np.log1p(np.exp(-np.abs(error / self.width))) * self.width
        return np.asarray((kinked + rounded).sum(axis=1))


@dataclass(frozen=True)
class SmoothedHinge(_Smoothed):
    """Hinge loss of one class against the rest, one for each output, targets 0. or 1., (n, K).

    With ``s = 2 y - 1`` and ``r = 1 - s m`` the loss of an output is
    ``width log(1 + exp(r / width))``, which is ``max(r, 0)`` but for the kink (Chaudhuri,
    Monteleoni and Sarwate 2011, with another smoothing). The residual is at most 1 in size.

    Parameters
    ----------
    n_classes : int, default=1
        Number of outputs: 1 for two classes.
    width : float, default=0.25
        Of the smoothing, in the unit of the margin, positive.

    Examples
    --------
    >>> import numpy as np
    >>> margins, targets = np.array([[1.0], [-9.0]]), np.ones((2, 1))
    >>> SmoothedHinge().residual(margins, targets).round(9).tolist()
    [[-0.5], [-1.0]]
    """

    n_classes: int = 1
    width: float = 0.25
    name: ClassVar[str] = "smoothed_hinge"
    targets: ClassVar[TargetKind] = "label"
    link: ClassVar[Link] = "identity"
    residual_bound = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = is_integer(self.n_classes) and self.n_classes >= 1
        require("SmoothedHinge: n_classes", self.n_classes, "be an integer >= 1", fine)
        object.__setattr__(self, "n_classes", int(self.n_classes))

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    @property
    def value_at_zero(self) -> float:
        return self.n_classes * self.width * math.log1p(math.exp(1 / self.width))

    @property
    def typical_curvature(self) -> float:
        return min(TYPICAL_DENSITY / 2, self.curvature)

    def for_signal(self, ratio: float) -> Self:
        return replace(self, width=self.width * min(1.0, max(0.2, (ratio / 500) ** WIDTH_POWER)))

    def _past(self, margins: AnyArray, targets: AnyArray) -> AnyArray:
        return np.asarray((1 - (2 * targets - 1) * margins) / self.width)

    def _kernel(self) -> ResidualKernel:
        return ResidualKernel.of(HINGE, self.width)

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        past = self._past(margins, targets)
        np.copyto(out, (1 - 2 * targets) * expit(past), casting="same_kind")

    def _value(self, margins: AnyArray, targets: AnyArray) -> AnyArray:
        past = self._past(margins, targets)
        rounded = np.maximum(past, 0.0) + np.log1p(np.exp(-np.abs(past)))
        return np.asarray(self.width * rounded.sum(axis=1))
