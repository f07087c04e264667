"""Attacks that were published, and the fuzzer, in short."""

from __future__ import annotations

import pytest

from benchmarks import fuzz, noise


def test_bits_of_an_answer_tell_nothing():
    """The attacks work on textbook noise, so that they could fail."""
    textbook, ours = noise.least_significant_bits(1000)
    assert textbook > 0.5
    assert ours == 0
    textbook, ours = noise.precision(4000)
    assert textbook > 0.05
    assert ours == 0


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning", "ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("seed", range(2000, 2012))
def test_random_cases_show_nothing(seed):
    case = fuzz.Case(seed)
    case.run()
    assert case.findings == []
