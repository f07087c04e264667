"""What it takes to calibrate a model's predictions: derivatives along the model itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from skdp.oracle import directional, kernels
from skdp.oracle.releases.base import Array, Terms, audited
from skdp.oracle.releases.fields import require_shape, store_bounds, store_points
from skdp.oracle.releases.mechanisms import Contribution
from skdp.oracle.releases.sums import Sum

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows

WIDER_THAN = 64.0 * kernels.UNIT_ROUNDOFF  # relative error of a clipped vector of five entries


@audited
@dataclass(frozen=True, eq=False)
class DirectionalSum(Sum):
    """Sum of derivatives of the records' losses along a direction of the parameter, clipped.

    At ``point + a * direction``, the margin shifted by b as well, a record's loss is a function
    of (a, b). The record adds its weighted derivatives at (0, 0): in a, twice in a; and, with
    ``with_shift``, in b, in both, and twice in b.

    Sensitivity: the record's vector of 2 or 5 derivatives is scaled down to L2 norm ``clip_norm``
    by the sum itself, and a null record, of weight 0, adds 0. So zero-out moves the sum by at most
    ``clip_norm``, replace-one by twice that: the triangle inequality is all that it takes (Abadi et
    al. 2016, sec. 3.1, of gradients). Point and direction are public, as whatever a solver names.
    Floating point adds what :func:`skdp.oracle.kernels.gradient_rounding` proves of sums over the
    same blocks.

    Parameters
    ----------
    point, direction : array of shape (n_parameters, n_outputs)
        Finite.
    clip_norm : float
        From 1e-100 to 1e100, in the derivatives' own scale.
    with_shift : bool, default=False
        For one output.
    """

    point: Array = field(repr=False)
    direction: Array = field(repr=False)
    clip_norm: float
    with_shift: bool = False
    kind: ClassVar[str] = "calibration"

    def __post_init__(self) -> None:
        store_points(self, "point", "direction")
        store_bounds(self, "clip_norm")
        object.__setattr__(self, "with_shift", bool(self.with_shift))

    def contribution(self, terms: Terms, n_rows: int) -> Contribution:
        size = self.shape(terms)[0]
        slack = WIDER_THAN + kernels.gradient_rounding(
            n_rows, terms.public.n_features, size, terms.public.sparse
        )
        bound = self.clip_norm * (1 + slack)
        return Contribution(bound, spread=2.0, size=size, total=n_rows * bound)

    def shape(self, terms: Terms) -> tuple[int, ...]:
        return (directional.WITH_SHIFT if self.with_shift else directional.ALONG,)

    def total(self, rows: Rows, terms: Terms) -> Array:
        if self.with_shift and terms.public.n_outputs != 1:
            raise ValueError(
                "DirectionalSum: a shift is for one output; got "
                f"{terms.public.n_outputs}. Nothing was released for it."
            )
        require_shape(self, terms, "point", "direction")
        return rows.directional_sum(
            terms.problem.loss,
            self.point,
            self.direction,
            self.clip_norm,
            self.with_shift,
        )
