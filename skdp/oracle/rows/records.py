"""Some records side by side, ready for steps that take them one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Records:
    """Records as the model sees them: rows scaled down to the bound, the constant feature added.

    Attributes
    ----------
    rows : array of shape (n, n_parameters), float64
    targets : array of shape (n,), float64
    weights : array of shape (n,) or None
    inverse_norms : array of shape (n,)
        As :func:`skdp.oracle.kernels.quotient` gives them.
    """

    rows: Array
    targets: Array
    weights: Array | None
    inverse_norms: Array

    def __reduce__(self) -> Any:
        raise TypeError("records cannot be pickled: a saved model must not hold its training data.")


@dataclass(frozen=True, eq=False)
class Singles:
    """A few rows written out, for steps that take them one by one.

    Attributes
    ----------
    vectors : array of shape (n, n_parameters), float64
        Rows, scaled down to their bound, with the constant feature.
    targets : array, first axis n
    weights : array of shape (n,) or None
    limits : array of shape (n,)
        What a residual, times its weight, may be at most, for the gradient to be at most
        ``clip_norm`` long.
    """

    vectors: Array
    targets: NDArray[Any]
    weights: Array | None
    limits: Array
