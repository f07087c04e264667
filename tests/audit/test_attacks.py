"""Attacks that were published, and the fuzzer, in short."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import fuzz
from skdp._oracle.noise import SystemSource
from skdp._oracle.releases.base import Contribution
from skdp._oracle.releases.mechanisms import GaussianNoise, LaplaceNoise


def textbook_laplace(value, scale, rng):
    """Laplace noise as Mironov 2012 attacks it: the logarithm of a float64 in (0, 1)."""
    u = rng.random()
    sign = 1.0 if rng.random() < 0.5 else -1.0
    return value + sign * scale * math.log(max(u, 1e-300))


def reachable(answer, value, scale):
    """Mironov's test: whether a textbook sampler could have given ``answer`` from ``value``.

    Undo the sum and the logarithm, and try the doubles around: does one of them, a multiple of
    2**-53, lead back to the very bits of the answer?
    """
    noise = answer - value
    u = math.exp(-abs(noise) / scale)
    nearest = round(u * 2**53)
    sign = math.copysign(1.0, noise)
    for k in range(nearest - 4, nearest + 5):
        if k > 0 and value + sign * scale * -math.log(k * 2.0**-53) == answer:
            return True
    return False


def least_significant_bits(draws):
    """Share of answers from 0 and from 1 that Mironov's test rules out for the other one."""
    rng = np.random.default_rng(0)
    textbook = []
    for _ in range(draws):
        truth = float(rng.integers(2))
        answer = textbook_laplace(truth, 1.0, rng)
        textbook.append(not reachable(answer, 1 - truth, 1.0) and reachable(answer, truth, 1.0))
    ours, source = [], SystemSource()
    mechanism, contribution = LaplaceNoise(1.0), Contribution(1.0, 1.0, 1, 1.0, order=1)
    grid = mechanism._grid(contribution, 1.0)
    for _ in range(draws):
        truth = float(rng.integers(2))
        answer = mechanism.noisy(np.array([truth]), contribution, 1.0, source)[0]
        # The support from either value is the grid: an answer off it would tell them apart.
        ours.append((answer - (1 - truth)) / grid % 1 != 0)
    return float(np.mean(textbook)), float(np.mean(ours))


def precision(draws):
    """Attack of Haney et al. 2022: sums of floats are as coarse as their larger part.

    A textbook answer near 0 is a multiple of 2**-54 if it came from 1, whose noise was near -1 and
    no finer than that. If it is not such a multiple, the true value was 0. Returned is the share
    of answers from 0 that prove it.
    """
    rng, source = np.random.default_rng(1), SystemSource()
    mechanism, contribution = GaussianNoise(1.0), Contribution(1.0, 1.0, 1, 1.0)
    ours = [mechanism.noisy(np.zeros(1), contribution, 1.0, source)[0] for _ in range(draws)]
    textbook = 0.0 + rng.standard_normal(draws)
    return tuple(
        float(np.mean([abs(x) < 0.25 and (x * 2.0**54) % 1 != 0 for x in answers]))
        for answers in (textbook, ours)
    )


def test_bits_of_an_answer_tell_nothing():
    """The attacks work on textbook noise, so that they could fail."""
    textbook, ours = least_significant_bits(1000)
    assert textbook > 0.5
    assert ours == 0
    textbook, ours = precision(4000)
    assert textbook > 0.05
    assert ours == 0


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning", "ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("seed", range(2000, 2012))
def test_random_cases_show_nothing(seed):
    case = fuzz.Case(seed)
    case.run()
    assert case.findings == []
