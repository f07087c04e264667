"""Losses whose margins have an offset of their own in each record.

The offset is part of a record, and so is kept with its target: a loss at the margin
``m + o`` is one more convex function of m, with the same bounds on residuals and curvatures, for
any o. So clipping norms, sensitivities and step sizes stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp._numbers import AnyArray
from skdp.objective.losses import Float, Logistic
from skdp.objective.multinomial import Multinomial


class _Offset:
    """Targets of shape (n, 1 + K): the label's code, and an offset for each margin."""

    # Both depend on the offset.
    value_at_zero: ClassVar[Any] = None
    residual_at_zero: ClassVar[Any] = None

    def _target_shape(self, margins: AnyArray) -> tuple[int, ...]:
        return margins.shape[0], 1 + margins.shape[1]

    def _residual(self, margins: AnyArray, targets: AnyArray, out: AnyArray) -> None:
        parent: Any = super()
        parent._residual(_moved(margins, targets), self._codes(targets), out)

    def _value(self, margins: AnyArray, targets: AnyArray) -> AnyArray:
        parent: Any = super()
        return np.asarray(parent._value(_moved(margins, targets), self._codes(targets)))

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
