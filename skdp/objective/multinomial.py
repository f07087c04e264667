"""Cross-entropy of several classes, and losses whose margins have offsets.

An offset is part of a record, and so is kept with its target: a loss at the margin ``m + o`` is one
more convex function of m, with the same bounds on residuals and curvatures, for any o. So clipping
norms, sensitivities and step sizes stay as they are.
"""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import softmax

from skdp._numbers import AnyArray, Array, require
from skdp.objective.losses import (
    SOFTMAX,
    Float,
    Link,
    Logistic,
    Loss,
    ResidualKernel,
    TargetKind,
)


@dataclass(frozen=True)
class Multinomial(Loss):
    """Cross-entropy ``log(sum_k exp(m_k)) - m_y``. Targets are integer class codes, shape (n,).

    The residual is ``p - e_y`` with ``p`` the softmax of the margins. ``|p - e_y| <= sqrt(2)``,
    approached where all of ``p`` is on one wrong class. The Hessian ``diag(p) - p p'`` has no
    eigenvalue above 1/2 (Böhning 1992). With ``s`` the sum of the squares of ``p``, and that of the
    cubes at least ``s**2``, its squared Frobenius norm is at most ``s + s**2 - 2 s**2 <= 1/4``.

    Parameters
    ----------
    n_classes : int
        Number of classes and of outputs, at least 2. Codes are ``0 .. n_classes - 1``.

    Examples
    --------
    >>> import numpy as np
    >>> Multinomial(4).residual(np.zeros((1, 4)), np.array([2])).tolist()
    [[0.25, 0.25, -0.75, 0.25]]
    """

    n_classes: int
    name: ClassVar[str] = "multinomial"
    targets: ClassVar[TargetKind] = "label"
    link: ClassVar[Link] = "logit"
    smooth: ClassVar[bool] = True
    separable: ClassVar[bool] = False
    curvature = 0.5
    weight_bound = 0.5
    residual_bound = math.sqrt(2.0)

    def __post_init__(self) -> None:
        n_classes: object = self.n_classes
        is_allowed = isinstance(n_classes, Integral) and int(n_classes) >= 2
        require("Multinomial: n_classes", n_classes, "be an integer >= 2", is_allowed)
        object.__setattr__(self, "n_classes", int(self.n_classes))

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    @property
    def value_at_zero(self) -> float:
        return math.log(self.n_classes)

    def mean(self, margins: NDArray[Float]) -> NDArray[Float]:
        return np.asarray(softmax(margins, axis=1))

    def with_offsets(
        self, offsets: Array, targets: AnyArray, weights: Array | None
    ) -> tuple[AnyArray, Array | None]:
        every = np.broadcast_to(offsets, (len(offsets), self.n_classes))
        return np.column_stack([targets, every]), weights

    @property
    def contrasts(self) -> Array:
        return np.asarray(helmert(self.n_classes).T)

    def working_weight(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        with np.errstate(over="ignore", invalid="ignore"):
            p = _softmax(margins)
            # diag(p) - p p' is the covariance of an indicator of the class.
            C = self.contrasts.astype(margins.dtype)
            means: Array = _total(p[:, :, None] * C[:, None])
            squares = np.zeros((*means.shape, means.shape[1]), p.dtype)
            for one, contrasts in zip(p, C, strict=True):
                squares += one[:, None, None] * np.outer(contrasts, contrasts)
            return np.asarray(squares - means[:, :, None] * means[:, None, :])

    def _target_shape(self, margins: AnyArray) -> tuple[int, ...]:
        return margins.shape[:1]

    def second_derivative_along(
        self, margins: NDArray[Float], along: NDArray[Float], targets: AnyArray
    ) -> NDArray[Float]:
        with np.errstate(over="ignore", invalid="ignore"):
            p = _softmax(margins)
            # The variance over the classes of the movements of their margins.
            mean = np.sum(p * along.T, axis=0)
            return np.asarray(np.sum(p * (along.T - mean) ** 2, axis=0))

    def _kernel(self) -> ResidualKernel:
        return ResidualKernel.of(SOFTMAX)

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        p = _softmax(margins)
        p[targets, np.arange(targets.size)] -= 1
        out[...] = p.T


def _below_largest(margins: AnyArray) -> AnyArray:
    """Return each record's margins minus the largest of them, transposed to shape (K, n)."""
    # Transposed, because to reduce over a short last axis takes twice as long.
    below = np.array(margins.T, order="C")
    below -= below.max(axis=0)
    return below


def _softmax(margins: AnyArray) -> AnyArray:
    """Return each record's probabilities, transposed to shape (K, n)."""
    p = _below_largest(margins)
    np.exp(p, out=p)
    p /= _total(p)
    return p


def _total(of_classes: AnyArray) -> AnyArray:
    """Return the sum over the first axis, in order, however many records there are."""
    total: AnyArray = of_classes[0].copy()
    for one in of_classes[1:]:
        total += one
    return total


# ---------------------------------------------------------------- offsets


class _Offset:
    """Targets of shape (n, 1 + K): the label's code, and an offset for each margin."""

    value_at_zero: ClassVar[Any] = None  # depends on the offset

    def _target_shape(self, margins: AnyArray) -> tuple[int, ...]:
        return margins.shape[0], 1 + margins.shape[1]

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        parent: Any = super()
        parent._residual(_moved(margins, targets), self._codes(targets), out)

    def _codes(self, targets: AnyArray) -> AnyArray:
        return targets[:, :1]


@dataclass(frozen=True)
class OffsetLogistic(_Offset, Logistic):
    """Binary cross-entropy at ``m + o``. Targets are pairs (y, o), of shape (n, 2).

    Examples
    --------
    >>> import numpy as np
    >>> OffsetLogistic().residual(np.array([[3.0]]), np.array([[1.0, -3.0]])).tolist()
    [[-0.5]]
    """

    def second_derivative(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        return super().second_derivative(_moved(margins, targets), targets)


@dataclass(frozen=True)
class OffsetMultinomial(_Offset, Multinomial):
    """Cross-entropy of several classes at ``m + o``. Targets of shape (n, 1 + K): (y, o).

    Examples
    --------
    >>> import numpy as np
    >>> loss = OffsetMultinomial(2)
    >>> loss.residual(np.array([[3.0, 0.0]]), np.array([[1.0, -3.0, 0.0]])).tolist()
    [[0.5, -0.5]]
    """

    def _codes(self, targets: AnyArray) -> AnyArray:
        return targets[:, 0].astype(np.intp)

    def working_weight(self, margins: NDArray[Float], targets: AnyArray) -> NDArray[Float]:
        return super().working_weight(_moved(margins, targets), targets)

    def second_derivative_along(
        self, margins: NDArray[Float], along: NDArray[Float], targets: AnyArray
    ) -> NDArray[Float]:
        return super().second_derivative_along(_moved(margins, targets), along, targets)


def _moved(margins: AnyArray, targets: AnyArray) -> AnyArray:
    """Return margins plus the offsets that are kept with targets. As given if there are none."""
    if targets.shape[1:] != (1 + margins.shape[1],):
        return margins
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(margins + targets[:, 1:].astype(margins.dtype))
