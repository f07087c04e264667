"""The noise that five papers print, for literal runs of their experiments, beside its true cost.

None of it is the noise to use: fits calibrate their own. It is here so that a published experiment
can be repeated as it was, and so that what it really cost can be said.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.papers.theory import printed_adp_noise, printed_budget
from skdp.accounting import (
    Adjacency,
    Composed,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    UnknownCost,
    price,
)


@dataclass(frozen=True)
class PrintedNoise:
    """Noise as a paper prints it. Not the noise to use.

    Attributes
    ----------
    multiplier : float
        Standard deviation of each coordinate of a sum of clipped gradients, in units of the
        clipping norm; for Laplace noise its scale in units of the sensitivity.
    event : Event
        What a run with it releases.
    epsilon, delta : float
        The budget that the paper says it keeps to.
    """

    multiplier: float
    event: Event
    epsilon: float
    delta: float

    def true_epsilon(self, adjacency: str = "zero_out") -> float:
        """Return the certified epsilon of such a run, at the same delta.

        Parameters
        ----------
        adjacency : {"zero_out", "replace_one"}, default="zero_out"

        Returns
        -------
        float
            inf if no theorem prices it.
        """
        relation = Adjacency.parse(adjacency)
        try:
            return price(self.event, self.delta, relation)[0]
        except UnknownCost:
            return math.inf


@dataclass(frozen=True)
class _Asked:
    """A run: its budget, rows, steps, and rows in a batch."""

    epsilon: float
    delta: float
    n_rows: int
    n_steps: int
    batch_rows: int


def _repeated(event: Event, n_steps: int) -> Event:
    return Composed(((event, n_steps),))


def _h22(asked: _Asked) -> tuple[float, Event]:
    multiplier = math.sqrt(asked.n_steps / printed_budget(asked.epsilon, asked.delta))
    return multiplier, _repeated(Gaussian(multiplier), asked.n_steps)


def _w17_gd(asked: _Asked) -> tuple[float, Event]:
    # (9), (11): the noise is on the mean gradient; the constant, which is not given, is 1.
    multiplier = math.sqrt(asked.n_steps * math.log(1 / asked.delta)) / asked.epsilon
    return multiplier, _repeated(Gaussian(multiplier), asked.n_steps)


def _w17_svrg(asked: _Asked, factor: float = 1.0) -> tuple[float, Event]:
    # (3), (6): on the gradient of a single record. What the snapshots tell is not counted.
    multiplier = factor * math.sqrt(asked.n_steps * math.log(1 / asked.delta))
    multiplier /= asked.n_rows * asked.epsilon
    step = PoissonSampled(asked.batch_rows / asked.n_rows, Gaussian(multiplier))
    return multiplier, _repeated(step, asked.n_steps)


def _w17_svrg_remark(asked: _Asked) -> tuple[float, Event]:
    return _w17_svrg(asked, math.log(asked.n_steps / asked.delta))


def _wu21_experiments(asked: _Asked) -> tuple[float, Event]:
    # Thm 4.1 with the C_epsilon = 16 of section 6 in (6).
    budget = 1.0, asked.epsilon, asked.delta
    std = printed_adp_noise([1.0] * asked.n_steps, *budget, asked.n_rows, asked.batch_rows)
    multiplier = std * asked.batch_rows / 16
    step = PoissonSampled(asked.batch_rows / asked.n_rows, Gaussian(multiplier))
    return multiplier, _repeated(step, asked.n_steps)


def _k22(asked: _Asked) -> tuple[float, Event]:
    # (13), and the published code: a scale where the standard deviation was wanted.
    rate = asked.batch_rows / asked.n_rows
    share = math.log1p(math.expm1(asked.epsilon / asked.n_steps) / rate)
    multiplier = math.sqrt(0.5) / share
    step: Event = Laplace(multiplier)
    if rate < 1:
        step = PoissonSampled(rate, step)
    return multiplier, _repeated(step, asked.n_steps)


def _v22(asked: _Asked) -> tuple[float, Event]:
    # Thm 3.6, of the sensitivity 2 zeta.
    tail = math.log(1 / asked.delta)
    alpha = 2 * math.sqrt(tail + asked.epsilon) / asked.epsilon
    return 2 * alpha, Gaussian(2 * alpha)


_NOISES: dict[str, Callable[[_Asked], tuple[float, Event]]] = {
    "H22": _h22,
    "W17 gd": _w17_gd,
    "W17 svrg": _w17_svrg,
    "W17 svrg, Remark 4.1": _w17_svrg_remark,
    "Wu21, section 6": _wu21_experiments,
    "K22": _k22,
    "V22": _v22,
}


def printed_noise(
    paper: str,
    epsilon: float,
    delta: float,
    n_rows: int,
    n_steps: int,
    batch_rows: int | None = None,
) -> PrintedNoise:
    """Return the noise that a paper prints for a run with equally noisy steps. Not the one to use.

    Parameters
    ----------
    paper : str
        "H22" is Hong, Wang, Zhou 2022 (full batches, zCDP). "W17 gd" and "W17
        svrg" are Wang, Ye, Xu 2017, eq. 11 and eq. 3 (the constant, which is not given, is 1).
        Their Remark 4.1 multiplies the noise of eq. 3 by ln(T m / delta), which any epsilon
        permits. "Wu21, section 6" is that of the experiments of Wu, Wang, Cristali, Gu,
        Willett 2021. It is 16 times smaller than in Thm 4.1, because section 6 sets C_epsilon = 16
        in (6). "K22" is the
        published code of Kuru, Birbil, Gurbuzbalaban, Yildirim 2022, whose Laplace noise is
        sqrt(2) too small. "V22" is Varshney, Thakurta, Jain 2022, Thm 3.6 (``n_steps`` disjoint
        blocks).
    epsilon, delta : float
        What the paper says it keeps to; delta is not used by "K22".
    n_rows, n_steps : int
    batch_rows : int or None, default=None
        Rows in a batch. None is the paper's number: 1 for SVRG, otherwise all rows.

    Returns
    -------
    PrintedNoise

    Examples
    --------
    >>> from benchmarks.papers.printed_noise import printed_noise
    >>> noise = printed_noise("K22", 1.0, 0.0, n_rows=100_000, n_steps=200)
    >>> round(noise.true_epsilon(), 4)
    1.4142
    >>> round(printed_noise("H22", 4.0, 1e-8, 1000, 100).true_epsilon(), 2)
    3.46
    """
    if batch_rows is None:
        batch_rows = 1 if paper.startswith("W17 svrg") else n_rows
    asked = _Asked(epsilon, delta, n_rows, n_steps, batch_rows)
    multiplier, event = _NOISES[paper](asked)
    return PrintedNoise(multiplier, event, epsilon, 0.0 if paper == "K22" else delta)
