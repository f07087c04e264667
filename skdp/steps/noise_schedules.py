"""Define noise schedules: the noise of each step relative to that of the others."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp._numbers import Array, is_integer, is_real, require
from skdp.steps.influence import NoiseSchedule, influence_to_noise, positive_numbers
from skdp.steps.named import Named, named
from skdp.steps.schedules import PolynomialStep, StepSchedule, step_sizes


def powers(gamma: float, n_steps: int) -> Array:
    """Return ``log gamma ** (T - t)`` for the steps 1..T."""
    steps_left = n_steps - np.arange(1, n_steps + 1)
    return np.asarray(math.log(gamma) * steps_left, dtype=np.float64)


def check_rates(who: str, gamma: object, beta: object) -> None:
    """Raise ValueError unless gamma is a contraction and beta a momentum."""
    require(f"{who}: gamma", gamma, "lie in (0, 1]", is_real(gamma) and 0 < gamma <= 1)
    require(f"{who}: beta", beta, "lie in [0, 1)", is_real(beta) and 0 <= beta < 1)


class UniformNoise(NoiseSchedule):
    """Every step is equally noisy: ``q_t = 1``."""

    def log_influence(self, n_steps: int) -> Array:
        return np.zeros(n_steps)


class ExponentialNoise(NoiseSchedule):
    """Noise that falls with t: ``q_t = gamma ** (T - t)``, for strongly convex problems.

    The later steps contract the noise of the earlier ones (Hong, Wang, Zhou 2022, Thm 4.5).

    Parameters
    ----------
    gamma : float, default=0.95
        Contraction of one step in (0, 1]; ``1 - 1/kappa`` for gradient descent.
    """

    def __init__(self, gamma: float = 0.95) -> None:
        self.gamma = gamma

    def log_influence(self, n_steps: int) -> Array:
        check_rates("ExponentialNoise", self.gamma, 0.0)
        return powers(self.gamma, n_steps)


class MomentumNoise(NoiseSchedule):
    """Noise for gradient descent with bias-corrected momentum.

    ``q_t = sum_{s >= t} gamma**(T-s) ((1-beta) / (1-beta**s))**2 beta**(2(s-t))``: the noise of
    step t enters the averages of all later steps (Hong, Wang, Zhou 2022, U_3 of Thm 4.6).

    Parameters
    ----------
    gamma : float, default=0.95
        Contraction of one step in (0, 1]; ``1 - eta0/kappa`` for a step size of ``eta0/(2M)``.
    beta : float, default=0.9
        Momentum in [0, 1).
    """

    def __init__(self, gamma: float = 0.95, beta: float = 0.9) -> None:
        self.gamma = gamma
        self.beta = beta

    def log_influence(self, n_steps: int) -> Array:
        check_rates("MomentumNoise", self.gamma, self.beta)
        if self.beta == 0:
            return powers(self.gamma, n_steps)
        steps = np.arange(1, n_steps + 1)
        decay = steps * math.log(self.beta)
        correction = math.log1p(-self.beta) - np.log(-np.expm1(decay))
        terms = powers(self.gamma, n_steps) + 2 * correction + 2 * decay
        tails = np.logaddexp.accumulate(terms[::-1])[::-1]
        return np.asarray(tails - 2 * decay, dtype=np.float64)


def flattening_horizon(gamma: float, beta: float) -> float:
    """Return the number of steps up to which momentum flattens the influence, or inf.

    That is the greatest t with ``gamma**(t-1) >= (1-beta) / (1-beta**t)`` (Hong, Wang, Zhou 2022,
    Thm 4.7). The difference of the logarithms is concave in t and 0 at t = 1, so it changes sign
    once.
    """
    check_rates("flattening_horizon", gamma, beta)
    if gamma == 1:
        return math.inf

    def holds(t: int) -> bool:
        if beta == 0:
            return t == 1
        gain = math.log(-math.expm1(t * math.log(beta))) - math.log1p(-beta)
        return (t - 1) * math.log(gamma) + gain >= -1e-12

    low, high = 1, 2
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class TwoPhaseMomentumNoise(NoiseSchedule):
    """Noise for momentum in closed form: it rises in short runs and falls in long ones.

    ``q_t = gamma**(T+t)`` if the run ends by `flattening_horizon`, else ``gamma**(T-t)``, up to
    constants (Hong, Wang, Zhou 2022, Thm 4.8). It bounds `MomentumNoise` from above.

    Parameters
    ----------
    gamma : float, default=0.95
        Contraction of one step in (0, 1].
    beta : float, default=0.9
        Momentum in [0, 1).
    """

    def __init__(self, gamma: float = 0.95, beta: float = 0.9) -> None:
        self.gamma = gamma
        self.beta = beta

    def log_influence(self, n_steps: int) -> Array:
        if n_steps <= flattening_horizon(self.gamma, self.beta):
            return powers(self.gamma, n_steps)[::-1].copy()
        return powers(self.gamma, n_steps)


class NesterovNoise(NoiseSchedule):
    """Noise for accelerated gradient descent: ``q_t = (1 - sqrt(c/kappa)) ** (T - t)``.

    (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 29.)

    Parameters
    ----------
    condition_number : float, default=100.0
        kappa, above ``learning_rate``.
    learning_rate : float, default=1.0
        c, the step size in units of one over the curvature, in (0, 1].
    """

    def __init__(self, condition_number: float = 100.0, learning_rate: float = 1.0) -> None:
        self.condition_number = condition_number
        self.learning_rate = learning_rate

    def log_influence(self, n_steps: int) -> Array:
        _check_conditioning("NesterovNoise", self.condition_number, self.learning_rate)
        return powers(1 - math.sqrt(self.learning_rate / self.condition_number), n_steps)


class HeavyBallNoise(NoiseSchedule):
    """Noise for the heavy ball: ``q_t = rate ** (2 (T - t))``.

    (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 23, before the noise of the steps is taken to
    be equal.)

    Parameters
    ----------
    rate : float, default=0.9
        Rate of convergence rho, in (0, 1]; see `skdp.planning.heavy_ball_rate`.
    """

    def __init__(self, rate: float = 0.9) -> None:
        self.rate = rate

    def log_influence(self, n_steps: int) -> Array:
        holds = is_real(self.rate) and 0 < self.rate <= 1
        require("HeavyBallNoise: rate", self.rate, "lie in (0, 1]", holds)
        return powers(self.rate**2, n_steps)


def _check_conditioning(who: str, kappa: float, step: float) -> None:
    require(f"{who}: learning_rate", step, "lie in (0, 1]", is_real(step) and 0 < step <= 1)
    holds = is_real(kappa) and step < kappa < math.inf
    require(f"{who}: condition_number", kappa, "be finite and above learning_rate", holds)


def stages(n_steps: int, kappa: float, first_stage: int, p: float) -> NDArray[np.int_]:
    """Return the stage, counted from 1, of each of the steps 1..n_steps of multistage acceleration.

    The first stage has ``first_stage`` steps, stage k has ``2**k ceil(sqrt(kappa) log(2**(p+2)))``.
    """
    unit = math.ceil(math.sqrt(kappa) * (p + 2) * math.log(2))
    lengths = [min(first_stage, n_steps)]
    while sum(lengths) < n_steps:
        lengths.append(min(2 ** (len(lengths) + 1) * unit, n_steps))
    return np.repeat(np.arange(1, len(lengths) + 1), lengths)[:n_steps]


class MultistageNoise(NoiseSchedule):
    """Noise for multistage accelerated gradient descent.

    ``q_t = 2**(s_T - s_t) prod_{i > t} (1 - sqrt(mu a_i)) a_t (1 + a_t L)``, with s_t the stage of
    step t, ``a_t = 1/L`` in the first and ``1/(4**s_t L)`` in later ones (Kuru, Birbil,
    Gurbuzbalaban, Yildirim 2022, eq. 34).

    Parameters
    ----------
    condition_number : float, default=100.0
        kappa, above ``learning_rate``.
    learning_rate : float, default=1.0
        Step size of the first stage in units of one over the curvature, in (0, 1].
    first_stage : int, default=20
        Steps of the first stage, at least 1.
    p : float, default=1.0
        Length of the later stages; at least 0.
    """

    def __init__(
        self,
        condition_number: float = 100.0,
        learning_rate: float = 1.0,
        first_stage: int = 20,
        p: float = 1.0,
    ) -> None:
        self.condition_number = condition_number
        self.learning_rate = learning_rate
        self.first_stage = first_stage
        self.p = p

    def log_influence(self, n_steps: int) -> Array:
        who, first = "MultistageNoise", self.first_stage
        _check_conditioning(who, self.condition_number, self.learning_rate)
        require(f"{who}: first_stage", first, "be at least 1", is_integer(first) and first >= 1)
        require(f"{who}: p", self.p, "be at least 0", is_real(self.p) and 0 <= self.p < math.inf)
        stage = stages(n_steps, self.condition_number, first, self.p)
        sizes = self.learning_rate * np.where(stage == 1, 1.0, 4.0**-stage)
        contraction = np.log1p(-np.sqrt(sizes / self.condition_number))
        later = np.cumsum(contraction[::-1])[::-1] - contraction
        growth = (stage[-1] - stage) * math.log(2)
        return np.asarray(growth + later + np.log(sizes) + np.log1p(sizes), dtype=np.float64)


class StepMatchedNoise(NoiseSchedule):
    """Noise in inverse proportion to the square root of the step size: ``q_t = eta_t**2``.

    With falling steps the noise rises. This is optimal where later steps do not contract the noise,
    as in a bound on the mean squared gradient of a problem that is not strongly convex (Wu, Wang,
    Cristali, Gu, Willett 2021, ``alpha_t**2 = b_t``).

    Parameters
    ----------
    steps : float, StepSchedule or None, default=None
        Step sizes. None takes the step sizes of the solver that uses the schedule; outside of a
        solver it stands for ``PolynomialStep()``.
    """

    def __init__(self, steps: float | StepSchedule | None = None) -> None:
        self.steps = steps

    def log_influence(self, n_steps: int) -> Array:
        sizes = step_sizes(PolynomialStep() if self.steps is None else self.steps, n_steps)
        return np.asarray(2 * np.log(sizes), dtype=np.float64)


class CustomNoise(NoiseSchedule):
    """Influence weights that the user chooses.

    Parameters
    ----------
    influence : array of shape (n_steps,), callable (t, n_steps) -> float, or float, default=1.0
        Positive weights q_t, of which only the ratios matter. One number stands for equal weights.
    logarithmic : bool, default=False
        Whether ``influence`` is log q_t, which does not overflow in long runs.
    """

    def __init__(
        self,
        influence: ArrayLike | Callable[[int, int], float] = 1.0,
        logarithmic: bool = False,
    ) -> None:
        self.influence = influence
        self.logarithmic = logarithmic

    def log_influence(self, n_steps: int) -> Array:
        weights: object = self.influence
        if callable(weights):
            weights = [weights(t, n_steps) for t in range(1, n_steps + 1)]
        elif is_real(weights):
            weights = np.full(n_steps, float(weights))
        if not self.logarithmic:
            return np.asarray(np.log(positive_numbers(weights, n_steps, "CustomNoise: influence")))
        logs = np.asarray(weights, dtype=np.float64)
        if logs.shape != (n_steps,):
            raise ValueError(
                f"CustomNoise: influence must be {n_steps} numbers, one per step; "
                f"got an array of shape {logs.shape}."
            )
        return logs


NOISE_SCHEDULES: dict[str, Callable[..., NoiseSchedule]] = {
    "custom": CustomNoise,
    "exponential": ExponentialNoise,
    "momentum": MomentumNoise,
    "momentum_two_phase": TwoPhaseMomentumNoise,
    "multistage": MultistageNoise,
    "nesterov": NesterovNoise,
    "step_matched": StepMatchedNoise,
    "uniform": UniformNoise,
}


# What solvers accept as ``noise_schedule``.
RelativeNoise = NoiseSchedule | Named | ArrayLike


def relative_noise(
    schedule: RelativeNoise,
    n_steps: int,
    composition: str = "gaussian",
    sizes: ArrayLike | None = None,
) -> Array:
    """Turn a name, a schedule or an array of relative noise into ``n_steps`` positive numbers.

    Parameters
    ----------
    schedule : str, tuple (str, dict), NoiseSchedule or array of shape (n_steps,)
    n_steps : int
    composition : {"gaussian", "laplace"}, default="gaussian"
        Rule by which costs add up: squares of mu for "gaussian", epsilons for "laplace".
    sizes : array of shape (n_steps,) or None, default=None
        Step sizes of the solver, for a schedule that follows them.

    Returns
    -------
    array of shape (n_steps,)

    Raises
    ------
    ValueError
        If the name is unknown, or the numbers are not ``n_steps`` positive ones.
    """
    rule = named(
        "noise_schedule", NOISE_SCHEDULES, schedule, "an array of relative noise, a NoiseSchedule"
    )
    if isinstance(rule, StepMatchedNoise) and rule.steps is None and sizes is not None:
        positive = positive_numbers(sizes, n_steps, "learning_rate")
        return influence_to_noise(2 * np.log(positive), composition)
    if isinstance(rule, NoiseSchedule):
        return positive_numbers(rule.relative(n_steps, composition), n_steps, "noise_schedule")
    return positive_numbers(rule, n_steps, "noise_schedule")
