"""Sums of differences of gradients between two points, which shrink as the points draw near."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from skdp.oracle.releases.base import Array, Terms, audited
from skdp.oracle.releases.fields import require_shape, store_bounds, store_points
from skdp.oracle.releases.last_iterate import smoothness
from skdp.oracle.releases.mechanisms import Contribution
from skdp.oracle.releases.sums import Sum, gradient_contribution

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows

# The bound never falls below this share of clip_norm: between equal points it would be 0.
LEAST_BOUND = 2.0**-40
# Below, limits on residuals of long rows could be subnormal numbers, which hold few digits.
LEAST_CLIP = 1e-100


def difference_smoothness(terms: Terms) -> float | None:
    """Public bound on the curvature of one record's loss; None if there is none.

    Nothing public bounds weights. Were differences of heavy records cut as those of records of
    weight 1, their gradients would seem to change too little from the snapshot on: steps between
    two snapshots would go too far, and further from one snapshot to the next.
    """
    return None if terms.public.weighted else smoothness(terms.public, terms.problem)


def difference_bound(clip_norm: float, smoothness: float | None, distance: float) -> float:
    """Bound to which a record's difference of gradients is cut: public, as its arguments are."""
    if smoothness is None or not distance * smoothness < clip_norm:
        return clip_norm
    return max(distance * smoothness, LEAST_BOUND * clip_norm)


@audited
@dataclass(frozen=True, eq=False)
class GradientDifference(Sum):
    """Sum of the records' gradients at ``point`` minus at ``anchor``, each difference clipped.

    Sensitivity: with ``beta = curvature * row_norm**2`` and ``C = clip_norm``, a record adds
    ``v * min(1, bound / |v|)``, v its difference of gradients and

        bound = min(C, beta * |point - anchor|),

    over all ``d * K`` coordinates; a null record adds 0. The bound is a function of the solver's
    number, of `Public` and of the two points, which are post-processing of earlier answers, and it
    is *enforced* on v whatever the record holds. So zero-out moves the sum by at most ``bound`` and
    replace-one by at most twice that, as for `GradientSum`.

    If records have weights the bound is C alone, see :func:`difference_smoothness`.

    *Nothing is lost by it*: for a record without weight, of a row x no longer than ``row_norm``,
    which the oracle enforces, the gradient in the parameter is ``x r(x'w)`` with a residual r that
    is ``curvature``-Lipschitz in the margins (the largest eigenvalue of a record's Hessian, Loss),
    so ``|v| <= |x| curvature |x'(point - anchor)| <= beta |point - anchor|`` and the second term
    clips nothing. Were each gradient clipped to C by itself, the first could not exceed 2C; the
    clip may be any number the solver names, such as that one. Weights act before clipping.

    Floating point adds what :func:`skdp.oracle.kernels.gradient_rounding` proves: it bounds the
    sum after clipping, so cancellation in v costs accuracy near the anchor, never privacy.

    Parameters
    ----------
    point, anchor : array of shape (n_parameters, n_outputs)
        Finite.
    clip_norm : float
        From 1e-100 to 1e100.
    """

    point: Array = field(repr=False)
    anchor: Array = field(repr=False)
    clip_norm: float
    kind: ClassVar[str] = "gradient_difference"
    gradients: ClassVar[int] = 2

    def __post_init__(self) -> None:
        store_points(self, "point", "anchor")
        store_bounds(self, "clip_norm")

    def bound(self, terms: Terms) -> float:
        """Return the bound to which differences are cut."""
        distance = float(np.linalg.norm(self.point - self.anchor))
        return difference_bound(self.clip_norm, difference_smoothness(terms), distance)

    def contribution(self, terms: Terms, n_rows: int) -> Contribution:
        return gradient_contribution(self.bound(terms), terms, n_rows)

    def shape(self, terms: Terms) -> tuple[int, ...]:
        return terms.public.shape

    def total(self, rows: Rows, terms: Terms) -> Array:
        require_shape(self, terms, "point", "anchor")
        return rows.clipped_gradient_sum(
            terms.problem.loss, self.point, self.bound(terms), precise=True, anchor=self.anchor
        )
