"""Certify a rate of the heavy ball for all smooth, strongly convex functions.

Prop. 3.4 of Kuru, Birbil, Gurbuzbalaban, Yildirim (2022): if for some rho in (0, 1), positive
semidefinite P and c0, c >= 0

    c0 X0 + c (X1 + (1 - rho**2) X2) - Phi(A, B, P, rho)  is positive semidefinite,

then ``V(t) = <P, xi xi'> + c (F(x_t) - F*)`` falls by ``rho**2`` at every step without noise. The
iteration subtracts gradients, so B is ``(-alpha, 0)``; the paper prints ``(alpha, 0)``.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp._numbers import Array
from skdp.planning.acceleration import check_conditions

# Least eigenvalue of an accepted certificate, relative to the largest entry: a hundred times the
# rounding error of the eigenvalues of 3x3 matrices.
MARGIN = 1e-11
MAX_ITERATIONS = 1500  # of the ellipsoid method


@dataclass(frozen=True)
class HeavyBallCertificate:
    """Numbers that prove a rate, and the error bound that follows from them.

    Attributes
    ----------
    rate : float
        rho.
    P : array of shape (2, 2)
    c0 : float
        The constant c is 1.
    step, momentum, smoothness, strong_convexity : float
        alpha and beta of the heavy ball, and L and mu of the functions.
    """

    rate: float
    P: Array
    c0: float
    step: float
    momentum: float
    smoothness: float
    strong_convexity: float

    def slack(self) -> float:
        """Least eigenvalue of the matrix and of P; not negative if the certificate is valid.

        It is computed in units in which the smoothness is 1, which keeps the signs and makes
        rounding errors small.
        """
        L = self.smoothness
        P, c0 = self.P / L, self.c0 * L
        matrix = certificate_matrix(
            P, c0, self.rate, self.step * L, self.momentum, 1.0, self.strong_convexity / L
        )
        return float(min(np.linalg.eigvalsh(matrix)[0], np.linalg.eigvalsh(P)[0], c0))

    def excess_bound(
        self, n_steps: int, initial_excess: float, distance: float, variance: float
    ) -> float:
        """Bound on the expected excess after ``n_steps`` noisy steps, eq. 23.

        Parameters
        ----------
        n_steps : int
        initial_excess, distance : float
            ``F(x_0) - F*`` and ``|x_0 - x*|``, with ``x_{-1} = x_0``.
        variance : float
            Expected squared length of the noise on the gradient in each step. (The paper's
            ``d E_T`` counts the dimension twice, as its E_T includes it already.)
        """
        L, P, gamma = self.smoothness, self.P, self.rate**2
        start = float(P.sum()) * distance**2 + initial_excess
        determinant = max(0.0, float(np.linalg.det(P)))
        below = P[1, 1] * L + 2 * determinant
        extra = 2 * P[0, 1] ** 2 / below if below > 0 else 0.0
        noise = L * self.step**2 / 2 * variance * (1 + extra)
        left = gamma**n_steps
        return float(left * start + (1 - left) / (1 - gamma) * noise)


def certificate_matrix(
    P: Array,
    c0: float,
    rate: float,
    step: float,
    momentum: float,
    smoothness: float,
    strong_convexity: float,
) -> Array:
    """Return the 3x3 matrix of Prop. 3.4 for c = 1."""
    facts = rate, step, momentum, smoothness, strong_convexity
    weights = (P[0, 0], P[0, 1], P[1, 1], c0)
    matrix = _constant(*facts)
    for weight, part in zip(weights, _parts(*facts), strict=True):
        matrix = matrix + weight * part
    return matrix


def _constant(rate: float, step: float, momentum: float, L: float, mu: float) -> Array:
    """Return X1 + (1 - rho^2) X2."""
    b, side = momentum, (1 - L * step) * momentum
    X1 = np.array(
        [
            [-L * b * b, L * b * b, -side],
            [L * b * b, -L * b * b, side],
            [-side, side, step * (2 - L * step)],
        ]
    )
    X2 = np.array([[mu, 0.0, -1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    return np.asarray(X1 / 2 + (1 - rate**2) * X2 / 2)


def _parts(rate: float, step: float, momentum: float, L: float, mu: float) -> list[Array]:
    """Return the matrices that P11, P12, P22 and c0 multiply."""
    ahead = np.array([[1 + momentum, -momentum, -step], [1.0, 0.0, 0.0]])  # (A, B)
    here = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    basis = ([[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]])
    parts = []
    for entries in basis:
        E = np.array(entries, dtype=np.float64)
        parts.append(rate**2 * here.T @ E @ here - ahead.T @ E @ ahead)
    X0 = np.array([[2 * mu * L, 0.0, -(mu + L)], [0.0, 0.0, 0.0], [-(mu + L), 0.0, 2.0]])
    return [*parts, X0]


def find_certificate(
    rate: float, step: float, momentum: float, smoothness: float, strong_convexity: float
) -> HeavyBallCertificate | None:
    """Search for P and c0 that certify the rate; return None if there are none within reach.

    The least eigenvalue is concave in (P, c0), so the ellipsoid method on its subgradients finds a
    certificate if a ball of certificates lies in the initial ellipsoid. The eigenvalues of a
    certificate that is returned have been checked, with a margin above rounding errors.

    Parameters
    ----------
    rate : float
        rho, in (0, 1).
    step, momentum, smoothness, strong_convexity : float
    """
    check_conditions("find_certificate", smoothness, strong_convexity)
    if not (0 < rate < 1 and step > 0 and 0 <= momentum < 1):
        raise ValueError(
            "find_certificate: needs rate in (0, 1), step > 0 and momentum in [0, 1); got "
            f"{rate!r}, {step!r}, {momentum!r}."
        )
    # In units in which L is 1: P is in units of L, c0 in units of 1/L.
    alpha, mu = step * smoothness, strong_convexity / smoothness
    constant = _constant(rate, alpha, momentum, 1.0, mu)
    parts = _parts(rate, alpha, momentum, 1.0, mu)
    # 1. An ellipsoid that contains all certificates of moderate size.
    x, size = np.array([1.0, -0.5, 1.0, 0.5]), 4
    shape = np.eye(size) * (100.0 / min(alpha, 1.0)) ** 2
    for _ in range(MAX_ITERATIONS):
        # 2. The condition that the centre violates most, and the gradient of its violation.
        matrix = constant + sum(w * part for w, part in zip(x, parts, strict=True))
        values, vectors = np.linalg.eigh(matrix)
        P = np.array([[x[0], x[1]], [x[1], x[2]]])
        own, axes = np.linalg.eigh(P)
        worst = min(values[0], own[0], x[3])
        if worst >= MARGIN * max(1.0, float(np.abs(matrix).max()), float(np.abs(P).max())):
            facts = step, momentum, smoothness, strong_convexity
            return HeavyBallCertificate(rate, P * smoothness, float(x[3]) / smoothness, *facts)
        if worst == values[0]:
            v = vectors[:, 0]
            uphill = np.array([v @ part @ v for part in parts])
        elif worst == own[0]:
            v = axes[:, 0]
            uphill = np.array([v[0] ** 2, 2 * v[0] * v[1], v[1] ** 2, 0.0])
        else:
            uphill = np.array([0.0, 0.0, 0.0, 1.0])
        # 3. Cut the ellipsoid, as deep as the violation allows.
        reach = math.sqrt(max(float(uphill @ shape @ uphill), 0.0))
        depth = -float(worst) / reach if reach > 0 else math.inf
        if depth >= 1:
            return None  # the ellipsoid contains no certificate
        depth = max(depth, 0.0)
        along = shape @ uphill / reach
        x = x + (1 + size * depth) / (size + 1) * along
        cut = 2 * (1 + size * depth) / ((size + 1) * (1 + depth))
        shape = size**2 * (1 - depth**2) / (size**2 - 1) * (shape - cut * np.outer(along, along))
        shape = (shape + shape.T) / 2
    return None


def best_certificate(
    step: float,
    momentum: float,
    smoothness: float,
    strong_convexity: float,
    tolerance: float = 1e-4,
) -> HeavyBallCertificate | None:
    """Find the certificate of the best rate, up to a relative ``tolerance`` of ``1 - rho``.

    None means that no rate below 1 was found: the heavy ball may converge on quadratics and cycle
    on other functions of the same class.

    Examples
    --------
    >>> from benchmarks.papers.theory import best_certificate
    >>> found = best_certificate(step=1.0, momentum=0.0, smoothness=1.0, strong_convexity=0.1)
    >>> found.slack() >= 0, round(found.rate, 2)
    (True, 0.9)
    >>> best_certificate(0.0689, 0.536, 25.0, 1.0) is None  # the textbook choice for kappa = 25
    True
    """
    # Rates near 1, at the low end of log(1 - rho), are the easiest to certify.
    low, high = math.log(1e-9), math.log(1 - 1e-6)
    facts = step, momentum, smoothness, strong_convexity
    known = find_certificate(1 - math.exp(low), *facts)
    for gap in np.geomspace(1e-7, 0.5, 12):
        if known is not None:
            break
        low = math.log(gap)
        known = find_certificate(1 - gap, *facts)
    if known is None:
        return None
    while high - low > tolerance:
        middle = (low + high) / 2
        found = find_certificate(-math.expm1(middle), *facts)
        if found is None:
            high = middle
        else:
            low, known = middle, found
    return known
