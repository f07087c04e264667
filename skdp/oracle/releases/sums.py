"""Sums over rows, each of which enforces the bound that it declares."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from skdp.oracle import kernels
from skdp.oracle.releases.base import Array, Terms, audited
from skdp.oracle.releases.fields import require_shape, store_bounds, store_points
from skdp.oracle.releases.mechanisms import Contribution

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows


def gradient_contribution(norm: float, terms: Terms, n_rows: int, order: int = 2) -> Contribution:
    """Bound on a record's part in a sum of vectors cut to ``norm``, with what rounding adds."""
    public = terms.public
    slack = kernels.gradient_rounding(n_rows, public.n_features, public.n_outputs, public.sparse)
    bound = norm * (1 + slack)
    size = math.prod(public.shape)
    return Contribution(bound, spread=2.0, size=size, total=n_rows * bound, order=order)


class Sum(ABC):
    """A sum over rows of bounded contributions.

    Attributes
    ----------
    kind : str
        What is summed, in the words of the privacy statement.
    gradients : int
        Gradients that are taken of each record, for the count of a fit's cost.
    """

    kind: ClassVar[str]
    gradients: ClassVar[int] = 1

    @abstractmethod
    def contribution(self, terms: Terms, n_rows: int) -> Contribution:
        """Return the bound on one record's part in a sum over at most ``n_rows`` rows."""

    @abstractmethod
    def shape(self, terms: Terms) -> tuple[int, ...]:
        """Return the shape of the total."""

    @abstractmethod
    def total(self, rows: Rows, terms: Terms) -> Array:
        """Return the sum over the rows, each contribution cut down to the bound."""


@audited
@dataclass(frozen=True, eq=False)
class GradientSum(Sum):
    """Sum of the records' gradients at ``point``, each clipped to norm ``clip_norm``.

    Sensitivity: a record adds ``g * min(1, clip_norm / |g|)``, the gradient of its loss alone,
    whose norm over all ``d * K`` coordinates, L2 or, with ``order=1``, L1, is at most
    ``clip_norm``; a null record adds 0. So zero-out moves the sum, in the same norm, by at most
    ``clip_norm`` and replace-one by at most twice that (Abadi et al. 2016, sec. 3.1; the triangle
    inequality is all that it takes). The L1 norm of a gradient, an outer product of row and
    residual, is ``|x|_1 |residual|_1``, the row's constant included. Weights act before clipping,
    so the bound does not depend on them. Floating point adds what
    :func:`skdp.oracle.kernels.gradient_rounding` proves.

    Parameters
    ----------
    point : array of shape (n_parameters, n_outputs)
        Where the gradient is taken; finite.
    clip_norm : float
        From 1e-100 to 1e100: limits on residuals, which are this over the norm of a row, lose
        their relative precision where numbers are subnormal. It is a number, fixed here: a solver
        knows no rows, so whatever it names is public, and the very number that bounds the noise is
        the one that clips.
    order : {1, 2}, default=2
        Of the norm: 2 for Gaussian noise, 1 for Laplace noise.
    """

    point: Array = field(repr=False)
    clip_norm: float
    order: int = 2
    kind: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        store_points(self, "point")
        store_bounds(self, "clip_norm")
        if type(self.order) is not int or self.order not in (1, 2):
            raise ValueError(f"GradientSum: order must be 1 or 2; got {self.order!r}.")

    def contribution(self, terms: Terms, n_rows: int) -> Contribution:
        return gradient_contribution(self.clip_norm, terms, n_rows, self.order)

    def shape(self, terms: Terms) -> tuple[int, ...]:
        return terms.public.shape

    def total(self, rows: Rows, terms: Terms) -> Array:
        require_shape(self, terms, "point")
        return rows.clipped_gradient_sum(
            terms.problem.loss, self.point, self.clip_norm, order=self.order
        )
