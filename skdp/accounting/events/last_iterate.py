"""Noisy steps on all rows of which only the last point is released, and their privacy cost."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skdp.accounting.events.base import Adjacency, Event, Wrapper, check_field
from skdp.accounting.events.mechanisms import Gaussian


@functools.lru_cache(maxsize=256)
def last_iterate_factor(n_steps: int, contraction: float, reach: float = math.inf) -> float:
    """Gaussian-DP parameter of the last of ``n_steps`` hidden noisy steps, in units of one step's.

    A run ``Y_t = M(Y_{t-1}) + N(0, sigma^2 I)`` starts at a public point, and ``Y_T`` alone is
    released. On neighbouring data the map is M', and ``|M(y) - M'(y')| <= c |y - y'| + s`` for all
    y, y'; one step that is released is mu_1-GDP with ``mu_1 = s / sigma``. By shifted interpolation
    (Bok, Su, Altschuler 2024, "Shifted interpolation for differential privacy", arXiv:2403.00278,
    sec. 3 and 4), ``Y_T`` is mu-GDP with ``mu = sqrt(sum a_t^2) / sigma`` for any ``a_t >= 0``
    such that ``z_t = c z_{t-1} + s - a_t`` stays >= 0 and ends at 0, where z bounds a distance
    known beforehand. With ``G_k = sum_{i<k} c^i`` and ``H_k = sum_{i<k} c^{2i}``, the best ``a``
    is proportional to ``c^{T-t}`` (z stays >= 0: it cannot come back from below 0), so

    * from the common start, ``mu / mu_1 = G_T / sqrt(H_T)``, which for c < 1 is
      ``sqrt((1 - c^T) / (1 + c^T) * (1 + c) / (1 - c))``; linear maps attain it;
    * with all points in a set of diameter D, and ``reach = D / s`` in the units in which ``M`` as
      a function of the point is 1-Lipschitz, also ``(c^{k-1} reach + G_k) / sqrt(H_k)`` for every
      k <= T: the last k steps make up for all that went before. For c = 1 and the best k this is
      ``sqrt(3 D/s + ceil(D/s))``, or less;
    * by composition always ``sqrt(T)``.

    Parameters
    ----------
    n_steps : int
        T, at least 1; fixed beforehand.
    contraction : float
        c, at least 0. From 1 on only a bounded set helps; above 1 nothing but composition holds.
    reach : float, default=inf
        At least 0; inf without a bounded set.

    Returns
    -------
    float
        ``mu / mu_1``, the least of these; from 1 to ``sqrt(n_steps)``.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> round(0.1 * last_iterate_factor(1000, 0.99), 6)  # composition: 3.162278
    1.410613
    """
    if n_steps < 1 or not contraction >= 0 or not reach >= 0:
        raise ValueError(
            "last_iterate_factor: n_steps must be at least 1, contraction and reach at least 0; "
            f"got {n_steps!r}, {contraction!r}, {reach!r}."
        )
    composed = math.sqrt(n_steps)
    if contraction > 1:
        return composed
    gap = 1.0 - contraction  # exact for c >= 1/2, where it matters
    factor = composed
    if contraction < 1:
        decay = -math.log1p(-gap) if contraction > 0 else math.inf
        factor = min(factor, math.sqrt(math.tanh(0.5 * n_steps * decay) * (2.0 - gap) / gap))
    if reach < math.inf:
        steps = np.arange(1, n_steps + 1, dtype=np.float64)
        if contraction == 0:
            left, sums, squares = (steps == 1).astype(float), np.ones(n_steps), np.ones(n_steps)
        elif contraction == 1:
            left, sums, squares = np.ones(n_steps), steps, steps
        else:
            left = np.exp(-decay * (steps - 1))
            sums = -np.expm1(-decay * steps) / gap
            squares = -np.expm1(-2.0 * decay * steps) / (gap * (2.0 - gap))
        factor = min(factor, float(np.min((left * reach + sums) / np.sqrt(squares))))
    # Rounded up; never below the cost of one step, since the last step is released.
    return min(composed, max(1.0, factor * (1 + 1e-12)))


@dataclass(frozen=True)
class HiddenIterates(Wrapper):
    """``n_steps`` noisy steps from a public start, of which only the last point is released.

    Meaning: ``Y_t = M(Y_{t-1}) + N(0, (noise_multiplier * C)**2 I)`` with the noise multiplier of
    ``event``. For the maps M and M' of neighbouring data,
    ``|M(y) - M'(y')| <= contraction * |y - y'| + S`` with S the sensitivity of ``event``: C under
    zero-out, ``spread * C`` under replace-one. Only ``Y_T`` and functions of it are released. Then
    the release is mu-GDP with mu that of one step times
    :func:`~skdp.accounting.events.last_iterate.last_iterate_factor` (Bok, Su, Altschuler 2024,
    arXiv:2403.00278). Every mu-GDP release is dominated by the Gaussian one of that mu, so any
    accountant may treat it as such: as one Gaussian event whose noise multiplier and spread give
    the right mu under both relations.

    Parameters
    ----------
    event : Gaussian
        One step, if it were released.
    n_steps : int
        At least 1; fixed beforehand.
    contraction : float
        At least 0.
    reach : float, default=inf
        Diameter of the set that holds every point, in units of C; inf if there is none. The map
        from points must be 1-Lipschitz.

    Raises
    ------
    ValueError
        If the event is not Gaussian, or a number is out of its range.
    """

    count_field = "n_steps"
    event: Gaussian
    n_steps: int
    contraction: float
    reach: float = math.inf

    def __post_init__(self) -> None:
        check_field(self, "event", isinstance(self.event, Gaussian), "be Gaussian")
        last_iterate_factor(self.n_steps, self.contraction, self.reach)  # checks the rest

    def sensitivity(self, adjacency: Adjacency) -> float:
        """Return the L2 sensitivity of one step, in units of the contribution bound.

        Parameters
        ----------
        adjacency : Adjacency

        Returns
        -------
        float
        """
        return self.event.sensitivity(adjacency)

    def equivalent(self) -> Gaussian:
        """Return the Gaussian event that costs as much, under both relations.

        Returns
        -------
        Gaussian
        """
        spread = self.event.spread
        zero_out = last_iterate_factor(self.n_steps, self.contraction, self.reach)
        # In units of a sensitivity that is `spread` times as large the set is smaller.
        replaced = last_iterate_factor(self.n_steps, self.contraction, self.reach / spread)
        joint = min(spread, max(1.0, spread * replaced / zero_out))
        return Gaussian(self.event.noise_multiplier / zero_out, joint)

    def flattened(self) -> Iterator[tuple[Event, int]]:
        yield self.equivalent(), 1
