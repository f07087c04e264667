"""Noise follows its law exactly, from either source; randomness is never used twice."""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from laws import ALPHA, goodness_of_fit, p_value_of_law
from skdp._oracle import exact_sampling
from skdp._oracle.noise import NoiseSource, SeededSource, SystemSource, noise_source

N_DRAWS = 200_000
SCALES = [1.0, 1.9999, 2.0, 3.7, 13.2, 1.37 * 2**28]
KINDS = ["gaussian", "laplace"]
STD = {"gaussian": 1.0, "laplace": math.sqrt(2.0)}  # of the noise of scale 1
KURTOSIS = {"gaussian": 3.0, "laplace": 6.0}


class TestLaw:
    @pytest.mark.parametrize("scale", SCALES)
    @pytest.mark.parametrize("kind", KINDS)
    def test_draws_follow_the_law(self, source, kind, scale):
        draws = getattr(source, kind)(scale, N_DRAWS)
        assert p_value_of_law(draws, kind, scale) > ALPHA

    @pytest.mark.parametrize("scale", [1.0, 13.2, 1.37 * 2**28, 2.0**45])
    @pytest.mark.parametrize("kind", KINDS)
    def test_variance(self, source, kind, scale):
        # Var = std^2 + 1/12 for rounding (Sheppard; to 1e-8 for a Gaussian, not at all for a
        # Laplace of scale 1). The standard error is 0.3 % (Gaussian) or 0.5 % of it, the threshold
        # 6 of them: noise half as large (-75 %), or a Laplace scale taken for a standard deviation
        # (-50 %), is 90 errors off, 4 % too little variance is found with power 0.97 or more.
        draws = getattr(source, kind)(scale, N_DRAWS)
        variance = (STD[kind] * scale) ** 2 + 1 / 12
        if kind == "laplace" and scale == 1:
            j = np.arange(1, 800)
            variance = 2 * np.sum(j**2 * (math.exp(0.5) - math.exp(-0.5)) * np.exp(-j) / 2)
        error = variance * math.sqrt((KURTOSIS[kind] - 1) / N_DRAWS)
        assert abs(np.mean(draws**2) - variance) < 6 * error
        assert abs(np.mean(draws)) < 6 * math.sqrt(variance / N_DRAWS)

    @pytest.mark.parametrize("kind", KINDS)
    def test_low_bits_are_uniform_at_a_large_scale(self, source, kind):
        # A grid coarser than 1, or a parity that leaks, is invisible to the tests above.
        draws = getattr(source, kind)(1.37 * 2**28, N_DRAWS).astype(np.int64)
        counts = np.bincount(draws % 64, minlength=64)
        assert goodness_of_fit(counts, np.full(64, 1 / 64)) > ALPHA

    @pytest.mark.parametrize("kind", KINDS)
    def test_draws_are_independent(self, source, kind):
        draws = getattr(source, kind)(5.0, N_DRAWS)
        for lag in (1, 2, 17, 8192):
            correlation = np.corrcoef(draws[:-lag], draws[lag:])[0, 1]
            assert abs(correlation) < 6 / math.sqrt(N_DRAWS - lag)
        sign_and_size = np.corrcoef(np.sign(draws), np.abs(draws))[0, 1]
        assert abs(sign_and_size) < 6 / math.sqrt(N_DRAWS)

    @pytest.mark.parametrize("scale", [1, 3.7, 2.0**30, 2.0**45])
    @pytest.mark.parametrize("kind", KINDS)
    def test_draws_are_integers_and_no_zero_is_negative(self, source, kind, scale):
        draws = getattr(source, kind)(scale, 5000)
        assert draws.dtype == np.float64
        assert np.array_equal(draws, np.rint(draws))
        assert np.abs(draws).max() < 2.0**53
        assert not np.signbit(draws[draws == 0]).any()

    @pytest.mark.parametrize("kind", KINDS)
    def test_shapes(self, source, kind):
        for size, shape in [(0, (0,)), (3, (3,)), ((2, 3), (2, 3)), ((), ()), ((0, 4), (0, 4))]:
            assert getattr(source, kind)(2.0, size).shape == shape

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("scale", [0.0, 0.999, -3.0, math.nan, math.inf, 2.0**49.1])
    def test_scales_out_of_range_are_refused(self, source, kind, scale):
        with pytest.raises(ValueError, match="Nothing was drawn"):
            getattr(source, kind)(scale, 3)

    def test_largest_scales(self, source):
        assert source.gaussian(2.0**49, 3).shape == source.laplace(2.0**45, 3).shape
        with pytest.raises(ValueError, match=r"scale <= 2\*\*45"):
            source.laplace(2.0**46, 3)


class TestSystemSource:
    def test_two_draws_and_two_sources_differ(self):
        source = SystemSource()
        draws = [s.gaussian(2.0**30, 10) for s in (source, source, SystemSource())]
        assert len(np.unique(draws)) == 30  # else P < 1e-6 * 2^-8

    def test_no_word_is_given_twice_and_none_is_zero(self, words):
        # Small and large requests, over the edges of blocks; 2^-64 * 10^9 for a pair to agree.
        drawn = np.concatenate([words(n) for n in [1, 7, 1000, 20, 5000, 1023, 3, 1024] * 5])
        assert len(np.unique(drawn)) == len(drawn)
        assert (drawn != 0).all()

    def test_words_are_bits_of_urandom(self, words, monkeypatch):
        monkeypatch.setattr(exact_sampling.os, "urandom", lambda n: bytes([0xA5]) * n)
        assert set(words(5).tolist() + words(5000).tolist()) == {0xA5A5A5A5A5A5A5A5}

    def test_noise_differs_from_process_to_process(self):
        """Without the repeatable bits of these tests: those of the operating system."""
        program = (
            "import os; from skdp._oracle import exact_sampling, noise; "
            "assert exact_sampling.os is os; "
            "print(noise.noise_source(None).gaussian(2.0**30, 10))"
        )
        command = [sys.executable, "-c", program]
        first, second = (subprocess.check_output(command) for _ in range(2))
        assert first != second

    def test_words_that_were_given_are_wiped(self, words):
        given = words(100)
        assert given.any()
        assert not words._block[:100].any()
        assert not np.isin(given, words._block).any()

    def test_threads_share_no_words(self, words):
        drawn, blocks = [], [words._block]

        def work():
            drawn.append(np.concatenate([words(11) for _ in range(500)]))
            blocks.append(words._block)  # kept, so that no id can come back

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(np.unique(drawn)) == 4 * 11 * 500
        assert len(set(map(id, blocks))) == 5  # each has a block of its own: no race to lose

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
    def test_a_forked_process_shares_no_words(self):
        source = SystemSource()
        source.integers(2**63, 10)  # there is a block that the child inherits
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
            child = os.fork()
        if child == 0:
            try:
                os.write(write, source.integers(2**63, 100).tobytes())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            in_child = np.frombuffer(pipe.read(), np.int64)
        os.waitpid(child, 0)
        in_parent = source.integers(2**63, 100)
        assert len(in_child) == 100
        assert len(np.unique(np.concatenate((in_child, in_parent)))) == 200

    def test_a_new_process_id_drops_the_block(self, words, monkeypatch):
        words(10)
        inherited = words._block[words._used :].copy()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert not np.isin(words(100), inherited).any()
        assert not np.isin(words._block, inherited[inherited != 0]).any()

    def test_an_integer_added_to_the_noise_stays_exact(self):
        noise = SystemSource().gaussian(2.0**30, 1000)
        k = np.float64(2**51 - 1)
        exact = [int(k) + int(x) for x in noise]
        assert [int(x) for x in k + noise] == exact

    @pytest.mark.parametrize("kind", KINDS)
    def test_words_are_asked_for_by_the_batch(self, words, kind):
        """A loop over draws would ask for each of them; about four words make a draw."""
        source, asked = SystemSource(), []

        def counting(n):
            asked.append(n)
            return words(n)

        source._words = counting
        for n_draws, requests in [(10**6, 300), (50, 8)]:
            asked.clear()
            getattr(source, kind)(2.0**30, n_draws)
            assert len(asked) < requests
            assert sum(asked) < 6 * n_draws + 200


class TestSeededSource:
    @staticmethod
    def sample(source: NoiseSource) -> list[float]:
        return np.concatenate(
            (
                source.gaussian(1e6, 5),
                source.laplace(1e6, 5),
                source.integers(10**9, 5),
                source.permutation(20),
                source.choose(10**6, 5),
                source.bernoulli_subset(10**6, 1e-4),
            )
        ).tolist()

    def test_reproducible(self):
        assert self.sample(SeededSource(3)) == self.sample(SeededSource(3))
        assert self.sample(SeededSource(3)) == self.sample(noise_source(np.int64(3)))
        generators = [np.random.default_rng(3) for _ in range(2)]
        assert self.sample(SeededSource(generators[0])) == self.sample(SeededSource(generators[1]))

    def test_seeds_and_successive_draws_differ(self):
        source = SeededSource(3)
        draws = [s.gaussian(2.0**30, 10) for s in (source, source, SeededSource(4))]
        assert len(np.unique(draws)) == 30

    def test_a_generator_is_used_as_it_is(self):
        ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
        drawn = SeededSource(ours).gaussian(100.5, (3, 2))
        assert np.array_equal(drawn, np.rint(100.5 * theirs.standard_normal((3, 2))))

    def test_noise_is_not_the_data_made_from_the_same_seed(self):
        data = np.random.default_rng(0).standard_normal(10)
        assert not np.isin(np.rint(1e6 * data), SeededSource(0).gaussian(1e6, 10)).any()


class TestFactory:
    def test_kinds(self):
        assert noise_source(None).name == "system"
        for seeded in (0, np.int32(7), np.random.default_rng(1), np.random.RandomState(1)):
            assert noise_source(seeded).name == "seeded"

    def test_successive_sources_of_one_random_state_differ(self):
        for make in (np.random.RandomState, np.random.default_rng):
            state, same = make(5), make(5)
            first, second = (noise_source(state).gaussian(1e9, 5).tolist() for _ in range(2))
            assert not set(first) & set(second)
            assert first == noise_source(same).gaussian(1e9, 5).tolist()

    @pytest.mark.parametrize("bad", ["0", 1.5, True, False, np.random, [1]])
    def test_anything_else_is_refused(self, bad):
        with pytest.raises(ValueError, match="random_state must be None"):
            noise_source(bad)

    def test_negative_seeds_are_refused(self):
        with pytest.raises(ValueError, match="non-negative"):
            noise_source(-1)


class TestContract:
    def test_sources_cannot_be_copied(self, source):
        for act in (copy.copy, copy.deepcopy, lambda s: copy.deepcopy({"inside": [s]})):
            with pytest.raises(TypeError, match="neither pickled nor copied"):
                act(source)

    def test_sources_cannot_be_pickled(self, source):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match="neither pickled nor copied"):
                pickle.dumps(source, protocol)
            with pytest.raises(TypeError, match="neither pickled nor copied"):
                pickle.dumps({"inside": [source]}, protocol)

    def test_a_source_must_draw(self):
        with pytest.raises(TypeError, match="abstract"):
            NoiseSource()
