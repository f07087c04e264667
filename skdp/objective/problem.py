"""The optimisation problem of a fit: a loss, a penalty and a constraint on one parameter matrix."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

import numpy as np

from skdp._numbers import Array
from skdp.objective.constraints import Constraint, L1Ball, Unconstrained
from skdp.objective.losses import Loss
from skdp.objective.penalties import ElasticNet, Penalty

CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "smooth_loss": "a loss that is twice differentiable everywhere",
        "quadratic_loss": "a loss whose Hessian is the same at every point",
        "smooth_penalty": "a penalty with a gradient everywhere",
        "strongly_convex": "a penalty that is strongly convex in the coefficients",
        "unconstrained": "no constraint on the coefficients",
        "l1_ball": "an L1Ball as the constraint on the coefficients",
        "bounded_set": "a constraint set of finite diameter",
        "no_intercept": "no intercept, so that penalty and constraint act on every parameter",
    }
)
"""Names by which solvers declare their needs, and the meaning of each in an error message."""


@dataclass(frozen=True)
class Problem:
    """Minimise the mean of ``loss`` plus ``penalty``, with the coefficients in ``constraint``.

    The parameter is an array of shape (p, K): a row for each feature and, with ``fit_intercept``,
    the intercept as its last row. The intercept is neither penalised nor constrained. Penalty and
    constraint apply to the rest as one vector of all its entries.

    Parameters
    ----------
    loss : Loss
    penalty : Penalty, default=ElasticNet()
    constraint : Constraint, default=Unconstrained()
    fit_intercept : bool, default=True

    Attributes
    ----------
    provides : frozenset of str
        The keys of ``CAPABILITIES`` that hold for this problem, on which a solver may rely:

        * of the loss ``smooth_loss``, ``quadratic_loss``.
        * of the penalty ``smooth_penalty``, ``strongly_convex``.
        * of the set ``unconstrained``, ``l1_ball``, ``bounded_set``.
        * of the parameter ``no_intercept``. Properties of penalty and set concern the coefficients.
          A solver whose theory needs them for every parameter also needs this name.

    Raises
    ------
    ValueError
        If projecting after the penalty's prox is not the prox of their sum. It is (proofs in
        :mod:`skdp.objective.constraints`) for every penalty without constraint, for smooth ones
        with any convex set, and for the elastic net with L2Ball, L1Ball and Box. It is not for
        an L1 part with Simplex, where ``|w|_1`` is constant:
        leave it out.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.objective import ElasticNet, L2Ball, Logistic
    >>> problem = Problem(Logistic(), ElasticNet(1.0), L2Ball(1.0))
    >>> problem.prox(np.array([[6.0], [8.0], [100.0]]), step=1.0).round(3).tolist()
    [[0.6], [0.8], [100.0]]
    >>> sorted(problem.provides - {"smooth_loss"})
    ['bounded_set', 'smooth_penalty', 'strongly_convex']
    """

    loss: Loss
    penalty: Penalty = field(default_factory=ElasticNet)
    constraint: Constraint = field(default_factory=Unconstrained)
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("loss", Loss), ("penalty", Penalty), ("constraint", Constraint)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(
                    f"Problem: {name} must be an instance of {kind.__name__}, "
                    f"got {getattr(self, name)!r}."
                )
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise TypeError(
                f"Problem: fit_intercept must be True or False, got {self.fit_intercept!r}."
            )
        self.constraint.check()
        if not self.constraint.composes_with(self.penalty):
            raise ValueError(
                f"Problem: penalty {self.penalty} cannot be combined with constraint "
                f"{self.constraint}: projecting after its prox is not the prox of both. "
                "An ElasticNet with l1_ratio=0 goes with every constraint, every penalty with "
                "Unconstrained, and an ElasticNet also with L2Ball, L1Ball and Box."
            )

    @property
    def provides(self) -> frozenset[str]:
        """Names of the capabilities that hold. See the class."""
        loss, penalty, constraint = self.loss, self.penalty, self.constraint
        capabilities = {
            "smooth_loss": loss.smooth,
            "quadratic_loss": loss.quadratic,
            "smooth_penalty": penalty.smooth,
            "strongly_convex": penalty.strong_convexity > 0,
            "unconstrained": isinstance(constraint, Unconstrained),
            "l1_ball": isinstance(constraint, L1Ball),
            "bounded_set": constraint.bounded,
            "no_intercept": not self.fit_intercept,
        }
        return frozenset(name for name, true in capabilities.items() if true)

    def for_targets(self, centre: Array, scale: Array) -> Self:
        """Return the problem for targets ``(y - centre) / scale`` instead of y.

        Parameters
        ----------
        centre, scale : array of shape (K,)

        Returns
        -------
        Problem
        """
        penalty = self.penalty.for_targets(tuple((scale ** (self.loss.degree - 1)).tolist()))
        return replace(self, loss=self.loss.for_targets(centre, scale), penalty=penalty)

    @property
    def strong_convexity(self) -> float:
        """The penalty's strong convexity in the coefficients. An intercept is not penalised."""
        return self.penalty.strong_convexity

    def penalty_value(self, w: Array) -> float:
        """Penalty at a parameter of shape (p, K). The intercept adds nothing.

        Returns
        -------
        float
        """
        return self.penalty.value(self._coefficients(w))

    def penalty_gradient(self, w: Array) -> Array:
        """Gradient of the penalty, of shape (p, K), 0 in the intercept. ValueError without one.

        Returns
        -------
        array of shape (p, K)
        """
        return self._with_intercept(self.penalty.gradient(self._coefficients(w)), w, 0.0)

    def project(self, w: Array) -> Array:
        """Nearest parameter whose coefficients lie in the set, as a first iterate needs.

        Returns
        -------
        array of shape (p, K)
        """
        return self._with_intercept(self.constraint.project(self._coefficients(w)), w, 1.0)

    def prox(self, w: Array, step: float) -> Array:
        """Minimiser over z in the set of ``penalty_value(z) + |z - w|**2 / (2 step)``.

        Computed as the projection of the penalty's prox, which is exact for every problem that
        can be constructed.

        Parameters
        ----------
        w : array of shape (p, K), finite
        step : float
            Finite and >= 0.

        Returns
        -------
        array of shape (p, K), new. The intercept as in ``w``
        """
        moved = self.penalty.prox(self._coefficients(w), step)
        return self._with_intercept(self.constraint.project(moved), w, 1.0)

    def _coefficients(self, w: Array) -> Array:
        if w.ndim != 2:
            raise ValueError(f"Problem: a parameter has shape (p, K), got {w.shape}.")
        return w[:-1] if self.fit_intercept else w

    def _with_intercept(self, coefficients: Array, w: Array, factor: float) -> Array:
        if not self.fit_intercept:
            return coefficients
        return np.concatenate([coefficients, factor * w[-1:]])
