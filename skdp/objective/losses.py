"""Losses of a linear model, as functions of the margins ``X w``, one record at a time."""

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from skdp._numbers import AnyArray, Array, is_integer, is_real, require, store_float

Float = TypeVar("Float", np.float32, np.float64)
TargetKind = Literal["real", "label", "nonnegative"]
Link = Literal["identity", "logit", "log"]

# Codes of formulas for compiled loops, which read only numbers.
LINEAR, SIGMOID, HINGE, EXPONENTIAL, SOFTMAX = range(5)


class ResidualKernel(NamedTuple):
    """Formula of a residual in compiled loops, and its numbers.

    With m the margin and y the target, it is

    * ``LINEAR``: ``m - y``, clipped to the first number.
    * ``SIGMOID``: ``sigmoid((m - numbers[1] * y) / numbers[0]) - numbers[2] * y - level``, the
      levels of outputs being the numbers from the third on.
    * ``HINGE``: ``s sigmoid((1 + s m) / numbers[0])`` with ``s = 1 - 2 y``.
    * ``EXPONENTIAL``: that of `TweedieLog`.
    * ``SOFTMAX``: that of `Multinomial`.
    """

    code: int
    numbers: Array

    @classmethod
    def of(cls, code: int, *numbers: float) -> "ResidualKernel":
        """Return the formula with these numbers."""
        values = np.array(numbers, dtype=np.float64)
        values.flags.writeable = False
        return cls(code, values)


class TargetUnits(NamedTuple):
    """Standardisation of targets: clipped from low to high, less centre, over scale, each (K,)."""

    centre: AnyArray
    scale: AnyArray
    low: AnyArray
    high: AnyArray


def finite(one: AnyArray, other: AnyArray, operation: np.ufunc) -> AnyArray:
    """Return ``operation(one, other)`` of the type of the first, within its range.

    A warning of an overflow would show a row.
    """
    largest = np.finfo(one.dtype).max
    with np.errstate(over="ignore", under="ignore"):
        result = operation(one.astype(np.float64), other)
    return np.asarray(np.clip(result, -largest, largest).astype(one.dtype))


class Loss(ABC):
    """Loss of one record as a function of its K margins: convex, and the same for every record.

    The gradient of a record in the parameter is the outer product of its row and its *residual*,
    the derivative of the loss in the margins. Declarations hold for every margin and every valid
    target, hence are public.

    Attributes
    ----------
    name : str
        The loss's name in messages and tables.
    targets : {"real", "label", "nonnegative"}
        Kind of targets. "real": any number, in a unit of its own, which scaling standardises.
        "nonnegative": likewise, a number of at least 0. "label": the code of a class.
    link : {"identity", "logit", "log"}
        The function from the mean of a target, given its row, to the margins: `mean` is its
        inverse. Of several classes it is the multinomial logit.
    smooth : bool
        Twice differentiable everywhere.
    quadratic : bool
        The Hessian is the same at every point, so that sufficient statistics exist.
    separable : bool
        A sum over the outputs of a function of one margin each: the columns of the parameter
        are independent problems.
    """

    name: ClassVar[str]
    targets: ClassVar[TargetKind]
    link: ClassVar[Link]
    smooth: ClassVar[bool]
    quadratic: ClassVar[bool] = False
    separable: ClassVar[bool]

    @property
    @abstractmethod
    def curvature(self) -> float:
        """Supremum of the largest eigenvalue of one record's Hessian in the margins.

        Where there is a Hessian. The mean loss over rows of norm at most R is
        ``curvature * R**2``-smooth.
        """

    @property
    @abstractmethod
    def residual_bound(self) -> float | None:
        """Supremum of the L2 norm of one record's residual. None if there is no bound.

        Of a separable loss, in one output: with K outputs it is ``sqrt(K)`` times as large.
        """

    @property
    def largest_residual(self) -> float | None:
        """L2 norm of a record's residual to which larger ones may be capped."""
        return self.residual_bound

    @property
    def weight_bound(self) -> float | None:
        """Supremum of the norm of `working_weight`. None if the loss declares none."""
        return None

    @property
    def contrasts(self) -> Array:
        """Orthonormal combinations of a record's margins that the loss depends on, as columns.

        Of a loss with intervals: one of its one margin, K - 1 of the margins of K classes.
        """
        return np.ones((1, 1))

    @property
    def typical_curvature(self) -> float:
        """Curvature that determines step sizes: the largest, unless few records are close to it."""
        return self.curvature

    @property
    def slowdown(self) -> float:
        """Number by which to divide steps where standardised targets turned out to call for it."""
        return 1.0

    def target_units(
        self, centre: AnyArray | None, scale: AnyArray, noise: float
    ) -> TargetUnits | None:
        """Return how targets of this mean and deviation are standardised. None if by these.

        Parameters
        ----------
        centre : array of shape (K,) or None
            None without an intercept, which could not make up for another centre.
        scale : array of shape (K,)
        noise : float
            Of the share of records that an estimate of the mean goes by.

        Returns
        -------
        TargetUnits or None
        """
        return None

    def with_offsets(
        self, offsets: Array, targets: AnyArray, weights: Array | None
    ) -> tuple[AnyArray, Array | None]:
        """Return targets and weights of the records, whose margins have offsets.

        The loss of the result equals that of ``m + offset``, up to a term without m.

        Parameters
        ----------
        offsets : array of shape (n, 1) or (n, K)
        targets : array, first axis n
        weights : array of shape (n,) or None

        Returns
        -------
        targets, weights

        Raises
        ------
        ValueError
            If the loss has no such form.
        """
        if self.targets == "label" or self.link != "identity":
            raise ValueError(f"neither offset nor prior is possible with the loss {self.name!r}.")
        return finite(targets, offsets, np.subtract), weights

    degree: ClassVar[int] = 2
    """Power of the unit of margins and targets that the loss is proportional to."""

    def for_signal(self, ratio: float) -> "Loss":
        """Return the loss of a fit with this signal-to-noise ratio: a public fact.

        Parameters
        ----------
        ratio : float
            See ``signal_to_noise`` of `skdp._oracle.Public`.

        Returns
        -------
        Loss
            Itself, unless the loss is smoothed according to the noise.
        """
        return self

    def for_targets(self, centre: AnyArray, scale: AnyArray) -> "Loss":
        """Return the loss of targets ``(y - centre) / scale`` instead of y, up to a factor.

        Its margins m stand for the margin of ``centre``, plus m times ``scale`` times the
        derivative of the link there. Its `curvature` is the present one.

        Parameters
        ----------
        centre, scale : array of shape (K,)

        Returns
        -------
        Loss
        """
        return self

    @property
    def with_bounded_weights(self) -> "Loss":
        """The loss with residuals and weights reduced at large means, itself by default."""
        return self

    @functools.cached_property
    def kernel(self) -> ResidualKernel | None:
        """Formula of the residual in compiled loops. None if they have none."""
        formula = vars(type(self)).get("_kernel")  # not a parent's, which has another residual
        return None if formula is None else formula(self)

    @property
    def n_outputs(self) -> int | None:
        """Number of margins of a record, K. None if any will do."""
        return None

    @property
    def value_at_zero(self) -> float | None:
        """Loss of a record whose margins are 0. None if it depends on the target."""
        return None

    def mean(self, margins: NDArray[Float]) -> NDArray[Float]:
        """Return the mean of targets that the margins predict, by the inverse of the link.

        Parameters
        ----------
        margins : array of shape (n, K), float32 or float64

        Returns
        -------
        array of shape (n, K)
            For labels the probability of each class, with one margin that of class 1.
        """
        return margins

    def residual(
        self, margins: NDArray[Float], targets: AnyArray, out: NDArray[Float] | None = None
    ) -> NDArray[Float]:
        """Return the derivative of the loss in the margins.

        Each record's derivative depends only on that record.

        Finite for finite input, without a warning. One exception: a difference of squared error
        beyond the range of the type is inf.

        Parameters
        ----------
        margins : array of shape (n, K), float32 or float64
        targets : array, first axis n
            Of the shape that the class of the loss states, and valid: values are not checked here.
        out : array of shape (n, K), the type of ``margins``, optional
            Where to write. May be ``margins`` itself.

        Returns
        -------
        array of shape (n, K), the type of ``margins``

        Raises
        ------
        ValueError
            If a shape is wrong. Nothing is broadcast.
        """
        self._check_shapes(margins, targets)
        out = np.empty_like(margins) if out is None else out
        with np.errstate(over="ignore"):
            self._residual(margins, targets, out)
        return out

    def residual_of_one(self, margin: float, target: float) -> float:
        """Return the derivative of one record's loss in its one margin, in float64.

        For passes over single records. inf or nan are returned without a warning.

        Returns
        -------
        float
        """
        with np.errstate(invalid="ignore"):
            margins = np.array([[margin]])
            return float(self.residual(margins, np.array([[target]]), out=margins)[0, 0])

    def second_derivative(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        """Return the second derivative in each margin, of a smooth, separable loss.

        At least 0 and at most ``curvature``.

        Parameters
        ----------
        margins : array of shape (n, K), float32 or float64
        targets : array, first axis n

        Returns
        -------
        array of shape (n, K), new

        Raises
        ------
        ValueError
            If the loss has none at some margin, or is not separable.
        """
        raise ValueError(f"{self.name}: it has no second derivative of one margin each.")

    def working_weight(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        """Return each record's weight in the derivative of the estimating equation.

        The second derivative, or its mean where the model holds, from 0 to ``weight_bound``. Of
        several classes it is a matrix, in the coordinates of `contrasts`.

        Parameters
        ----------
        margins : array of shape (n, K), float32 or float64
        targets : array, first axis n

        Returns
        -------
        array of shape (n, 1), or (n, K - 1, K - 1) for K classes, new

        Raises
        ------
        ValueError
            If ``weight_bound`` is None.
        """
        if self.weight_bound is None:
            raise ValueError(f"{self.name}: it has no working weight.")
        return self.second_derivative(margins, targets)

    def second_derivative_along(
        self, margins: NDArray[Float], along: NDArray[Float], targets: AnyArray
    ) -> NDArray[Float]:
        """Return each record's second derivative as its margins move by a multiple of ``along``.

        Of a smooth loss, at least 0. inf or nan where the square of ``along`` exceeds the range of
        its type, never a warning.

        Parameters
        ----------
        margins, along : array of shape (n, K), float32 or float64
        targets : array, first axis n

        Returns
        -------
        array of shape (n,), new

        Raises
        ------
        ValueError
            If the loss has none at some margin.
        """
        curvatures = self.second_derivative(margins, targets)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.einsum("ij,ij,ij->i", curvatures, along, along))

    @abstractmethod
    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        """Write the residual into ``out``, which may be ``margins``. Shapes are right."""

    def _target_shape(self, margins: AnyArray) -> tuple[int, ...]:
        return margins.shape

    def _check_shapes(self, margins: AnyArray, targets: AnyArray) -> None:
        # Broadcasting (n,) against (n, 1) would silently mix the records.
        size = self.n_outputs
        if margins.ndim != 2 or (size is not None and margins.shape[1] != size):
            raise ValueError(
                f"{self.name}: margins must have shape (n, {size or 'K'}), got {margins.shape}."
            )
        if targets.shape != self._target_shape(margins):
            raise ValueError(
                f"{self.name}: for margins of shape {margins.shape} targets must have shape "
                f"{self._target_shape(margins)}, got {targets.shape}."
            )


@dataclass(frozen=True)
class SquaredError(Loss):
    """Half the squared difference, ``sum_k (m_k - y_k)**2 / 2``. Targets of shape (n, K).

    The residual is ``m - y`` and the Hessian the identity. The residual has no bound.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredError().residual(np.array([[3.0], [0.5]]), np.array([[1.0], [1.0]])).tolist()
    [[2.0], [-0.5]]
    """

    name: ClassVar[str] = "squared_error"
    targets: ClassVar[TargetKind] = "real"
    link: ClassVar[Link] = "identity"
    smooth: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    curvature = 1.0
    weight_bound = 1.0
    residual_bound = None

    def residual_of_one(self, margin: float, target: float) -> float:
        return margin - target

    def second_derivative(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        return np.ones_like(margins)

    def _kernel(self) -> ResidualKernel:
        return ResidualKernel.of(LINEAR, math.inf)

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        np.subtract(margins, targets, out=out)


@dataclass(frozen=True)
class Logistic(Loss):
    """Binary cross-entropy ``log(1 + exp(m)) - y m``, one output, targets 0. or 1. of shape (n, 1).

    The residual is ``p - y`` with ``p = 1 / (1 + exp(-m))``, so at most 1 in size. The second
    derivative ``p (1 - p)`` is at most 1/4.

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().residual(np.array([[0.0], [1e9]]), np.array([[1.0], [0.0]])).tolist()
    [[-0.5], [1.0]]
    """

    name: ClassVar[str] = "logistic"
    targets: ClassVar[TargetKind] = "label"
    link: ClassVar[Link] = "logit"
    smooth: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    curvature = 0.25
    weight_bound = 0.25
    residual_bound = 1.0
    n_outputs = 1
    value_at_zero = math.log(2)

    def mean(self, margins: NDArray[Float]) -> NDArray[Float]:
        return np.asarray(expit(margins))

    def with_offsets(
        self, offsets: Array, targets: AnyArray, weights: Array | None
    ) -> tuple[AnyArray, Array | None]:
        every = np.broadcast_to(offsets, (len(offsets), 1))
        return np.column_stack([targets, every]), weights

    def residual_of_one(self, margin: float, target: float) -> float:
        if margin < -709.0:  # where exp would overflow the quotient is 0 to the last bit but one
            return -target
        return 1.0 / (1.0 + math.exp(-margin)) - target

    def second_derivative(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        with np.errstate(over="ignore"):
            half = np.tanh(np.abs(margins) / 2)
        return np.asarray((1 - half) * (1 + half) / 4)

    def _kernel(self) -> ResidualKernel:
        return ResidualKernel.of(SIGMOID, 1.0, 0.0, 1.0, 0.0)

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        # 1 / (1 + exp(-m)), quicker than scipy's expit, as numpy's exp is vectorised. Where
        # exp overflows, the quotient is 0, as it should be.
        with np.errstate(over="ignore"):
            np.exp(np.negative(margins, out=out), out=out)
        np.add(out, 1, out=out)
        np.reciprocal(out, out=out)
        np.subtract(out, targets, out=out)


@dataclass(frozen=True)
class Huber(Loss):
    """Squared error near the target, absolute error beyond ``threshold``, targets (n, K).

    With ``r = m - y`` the loss of an output is ``r**2 / 2`` where ``|r| <= threshold`` and
    ``threshold * (|r| - threshold / 2)`` elsewhere. Outputs are summed. The residual is ``r``
    clipped to ``[-threshold, threshold]``, also in floating point. There is no second derivative at
    the threshold.

    Parameters
    ----------
    threshold : float, default=1.35
        Positive and finite, in units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(1.5).residual(np.array([[9.0], [1.0]]), np.zeros((2, 1))).tolist()
    [[1.5], [1.0]]
    """

    threshold: float = 1.35
    name: ClassVar[str] = "huber"
    targets: ClassVar[TargetKind] = "real"
    link: ClassVar[Link] = "identity"
    smooth: ClassVar[bool] = False
    separable: ClassVar[bool] = True
    curvature = 1.0
    weight_bound = 1.0

    def __post_init__(self) -> None:
        store_float(self, "threshold", "be positive and finite", lambda value: 0 < value < math.inf)

    @property
    def residual_bound(self) -> float:
        return self.threshold

    def residual_of_one(self, margin: float, target: float) -> float:
        return min(max(margin - target, -self.threshold), self.threshold)

    def working_weight(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        within = np.abs(self.residual(margins, targets)) < self.threshold
        return within.astype(margins.dtype)

    def _kernel(self) -> ResidualKernel:
        return ResidualKernel.of(LINEAR, self.threshold)

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        np.subtract(margins, targets, out=out)  # clipping makes an overflow finite
        limit = margins.dtype.type(self.threshold)
        if float(limit) > self.threshold:
            # Rounded up to float32 it would exceed the declared bound.
            limit = np.nextafter(limit, margins.dtype.type(0))
        np.clip(out, -limit, limit, out=out)


# ---------------------------------------------------------------- smoothed kinks

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
