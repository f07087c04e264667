"""Decisions about draws are exact: by floating point where that suffices, else by more bits."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats

from laws import ALPHA, goodness_of_fit, p_value_of_law
from skdp._oracle import exact_sampling

KINDS = ["gaussian", "laplace"]


class TestExactDecisions:
    @pytest.mark.parametrize("kind", KINDS)
    def test_deciding_everything_exactly_gives_the_same_law(self, kind, words):
        """At other scales, exact decisions are those of floating point, as the next test shows."""
        scale = 3.7
        staircase = dataclasses.replace(getattr(exact_sampling, kind)(scale), band=2.0)
        assert p_value_of_law(staircase.rounded(1500, words), kind, scale) > ALPHA

    @pytest.mark.parametrize("scale", [1.0, 1.37 * 2**28])
    @pytest.mark.parametrize("kind", KINDS)
    def test_float_and_exact_decisions_agree(self, kind, scale):
        staircase = getattr(exact_sampling, kind)(scale)
        bits = np.random.default_rng(5)

        def fixed(n):
            return bits.integers(2**64, size=n, dtype=np.uint64)

        quick = staircase.rounded(500, fixed)
        bits = np.random.default_rng(5)
        exact = dataclasses.replace(staircase, band=2.0).rounded(500, fixed)
        assert np.array_equal(quick, exact)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_draw_on_the_edge_is_decided_by_more_bits(self, kind, words):
        # U has the 40 bits of p: it is accepted with the probability of the bits that follow.
        staircase = getattr(exact_sampling, kind)(3.7)
        offset, asked = 2**51 + 12345, []

        def counting(n):
            asked.append(n)
            return words(n)

        with localcontext() as context:
            context.prec = 60
            ratio = Decimal(staircase.ratio)
            x = 1 + Decimal(offset) / 2**53
            power = x / ratio if kind == "laplace" else (x / ratio) ** 2 / 2
            p = (Decimal(2).ln() - power - Decimal(staircase.ceiling)).exp() * 2**40
        u, rest = int(p), float(p - int(p))
        assert 0.02 < rest < 0.98
        n_tries = 1000
        accepted = sum(staircase.is_accepted(1, offset, u, counting) for _ in range(n_tries))
        assert len(asked) >= n_tries
        assert stats.binomtest(accepted, n_tries, rest).pvalue > ALPHA
        assert staircase.is_accepted(1, offset, u - 1, words)
        assert not staircase.is_accepted(1, offset, u + 1, words)

    def test_decisions_do_not_depend_on_the_callers_decimal_context(self, words):
        staircase = exact_sampling.gaussian(3.7)
        with localcontext() as context:
            context.prec, context.Emax, context.Emin = 3, 1, -1
            assert staircase.is_accepted(0, 0, 2**20, words)
            assert not staircase.is_accepted(40, 0, 0, words)

    def test_the_ceiling_is_a_bound_and_nearly_reached(self):
        for scale in np.linspace(1, 4, 301):
            for power, kind in enumerate((exact_sampling.laplace, exact_sampling.gaussian), 1):
                staircase = kind(float(scale))
                step = np.arange(2000)
                x = step * 2.0**staircase.log2_width / scale
                highest = np.max(step * math.log(2) - x**power / power)
                assert 0 <= staircase.ceiling - highest < 2e-12

    def test_the_acceptance_rate_is_the_one_that_sizes_batches(self, words):
        for staircase in (exact_sampling.gaussian(13.2), exact_sampling.laplace(13.2)):
            n = exact_sampling.BATCH
            accepted = len(staircase._accepted(10**9, words(2 * exact_sampling.BATCH), words)[0])
            assert stats.binomtest(accepted, n, staircase.acceptance).pvalue > ALPHA

    def test_steps_go_on_past_the_bits_read_at_once(self, words):
        # All 24 bits zero in every candidate: the step starts at 24, and its law is as before.
        def no_step_bits(n):
            drawn = words(n).copy()
            if n > 1:
                drawn[n // 2 :] &= ~np.uint64(2**24 - 1)
            return drawn

        # Memoryless: beyond 24 steps it is as at 0. The width 1 is nearly 1.44 ln 2: the proposal
        # is nearly the law itself, and what it proposes out there is nearly always accepted.
        staircase = exact_sampling.laplace(1.44)
        assert staircase.log2_width == 0
        tail = staircase.floors(2500, no_step_bits) - 24
        pmf = np.exp(-np.arange(100) / 1.44) * -math.expm1(-1 / 1.44)
        assert goodness_of_fit(np.bincount(tail, minlength=100), pmf) > ALPHA

    def test_leading_zeros(self):
        for given, zeros in [([2**63], 0), ([1], 63), ([0, 2**64 - 1], 64), ([0, 0, 3], 190)]:
            rest = iter(given)
            words = lambda n: np.array([next(rest)], np.uint64)  # noqa: B023, E731
            assert exact_sampling.leading_zeros(words) == zeros

    @pytest.mark.parametrize("rate", [*2.0 ** -np.arange(3, 41, 3.7), 2.0**-3, 0.1, 1e-3, 1e-9])
    def test_the_rate_of_gaps_is_never_above_the_one_asked_for(self, rate):
        staircase = exact_sampling.geometric(float(rate))
        with localcontext() as context:
            context.prec = 60
            scale = Decimal(staircase.ratio) * 2**staircase.log2_width
            got = 1 - (-1 / scale).exp()
            assert 0 <= Decimal(float(rate)) - got <= Decimal(float(rate)) * Decimal(2) ** -49


class TestSampleBuffer:
    LAW = exact_sampling.gaussian(1000.0)

    def test_every_sample_is_given_once(self, words, monkeypatch):
        """What is handed out is, in order, what was drawn; nothing of it stays behind."""
        drawn = []
        rounded = exact_sampling.RejectionSampler.rounded

        def recording(law, size, source):
            drawn.append(rounded(law, size, source))
            return drawn[-1].copy()

        monkeypatch.setattr(exact_sampling.RejectionSampler, "rounded", recording)
        buffer = exact_sampling.SampleBuffer()
        given = [buffer.rounded(self.LAW, 7, words) for _ in range(100)]
        assert len(drawn) < 10
        assert np.array_equal(np.concatenate(given), np.concatenate(drawn)[:700])
        assert not buffer._drawn[: buffer._used].any()
        assert sum(map(len, drawn)) < 2 * 700 + 7

    def test_laws_do_not_share_samples(self, words):
        buffer, other = exact_sampling.SampleBuffer(), exact_sampling.gaussian(1.0)
        for _ in range(5):
            assert np.abs(buffer.rounded(other, 50, words)).max() < 20
            assert np.abs(buffer.rounded(self.LAW, 50, words)).max() > 20

    def test_a_forked_process_drops_what_it_inherits(self, words, monkeypatch):
        buffer = exact_sampling.SampleBuffer()
        for _ in range(4):
            buffer.rounded(self.LAW, 50, words)
        left = buffer._drawn[buffer._used :].copy()
        assert len(left) >= 50
        monkeypatch.setattr(exact_sampling.os, "getpid", lambda: -1)
        assert not np.array_equal(buffer.rounded(self.LAW, 50, words), left[:50])

    def test_many_at_once_are_not_kept(self, words):
        buffer = exact_sampling.SampleBuffer()
        buffer.rounded(self.LAW, buffer.MOST + 1, words)
        assert not len(buffer._drawn)
