"""Noise schedules for accelerated gradient descent, with one stage or several."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._numbers import is_integer, is_real
from skdp.steps.influence import Array, NoiseSchedule, powers, require


class NesterovNoise(NoiseSchedule):
    """Noise for accelerated gradient descent: ``q_t = (1 - sqrt(step/kappa)) ** (T - t)``.

    (Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, eq. 29.)

    Parameters
    ----------
    kappa : float, default=100.0
        Condition number; above ``step``.
    step : float, default=1.0
        Step size in units of 1/L, in (0, 1].
    """

    def __init__(self, kappa: float = 100.0, step: float = 1.0) -> None:
        self.kappa = kappa
        self.step = step

    def log_influence(self, n_steps: int) -> Array:
        _check_conditioning("NesterovNoise", self.kappa, self.step)
        return powers(1 - math.sqrt(self.step / self.kappa), n_steps)


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
        require("HeavyBallNoise", "rate", self.rate, "lie in (0, 1]", holds)
        return powers(self.rate**2, n_steps)


def _check_conditioning(who: str, kappa: Any, step: Any) -> None:
    require(who, "step", step, "lie in (0, 1]", is_real(step) and 0 < step <= 1)
    require(who, "kappa", kappa, "be finite and above step", is_real(kappa) and kappa > step)
    require(who, "kappa", kappa, "be finite and above step", kappa < math.inf)


def stages(n_steps: int, kappa: float, first_stage: int, p: float) -> NDArray[np.int_]:
    """Stage, from 1 on, of each of the steps 1..n_steps of multistage acceleration.

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
    kappa : float, default=100.0
        Condition number; above ``step``.
    step : float, default=1.0
        Factor on all step sizes, in (0, 1].
    first_stage : int, default=20
        Steps of the first stage, at least 1.
    p : float, default=1.0
        Length of the later stages; at least 0.
    """

    def __init__(
        self, kappa: float = 100.0, step: float = 1.0, first_stage: int = 20, p: float = 1.0
    ) -> None:
        self.kappa = kappa
        self.step = step
        self.first_stage = first_stage
        self.p = p

    def log_influence(self, n_steps: int) -> Array:
        who, first = "MultistageNoise", self.first_stage
        _check_conditioning(who, self.kappa, self.step)
        require(who, "first_stage", first, "be at least 1", is_integer(first) and first >= 1)
        require(who, "p", self.p, "be at least 0", is_real(self.p) and 0 <= self.p < math.inf)
        stage = stages(n_steps, self.kappa, first, self.p)
        sizes = self.step * np.where(stage == 1, 1.0, 4.0**-stage)
        contraction = np.log1p(-np.sqrt(sizes / self.kappa))
        later = np.cumsum(contraction[::-1])[::-1] - contraction
        growth = (stage[-1] - stage) * math.log(2)
        return np.asarray(growth + later + np.log(sizes) + np.log1p(sizes), dtype=np.float64)
