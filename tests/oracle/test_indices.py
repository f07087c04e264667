"""Integers, permutations and subsets are drawn by their law, from either source."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from laws import ALPHA, goodness_of_fit
from skdp._oracle.noise import SystemSource


class TestIndices:
    @pytest.mark.parametrize("high", [1, 2, 3, 8, 10, 100])
    def test_integers_are_uniform(self, source, high):
        draws = source.integers(high, 50_000)
        assert draws.dtype == np.int64
        counts = np.bincount(draws, minlength=high)
        assert len(counts) == high
        assert high == 1 or goodness_of_fit(counts, np.full(high, 1 / high)) > ALPHA

    def test_integers_have_no_modulo_bias(self, source):
        # Modulo 3 * 2^61 a 63 or 64-bit word would fall into the lowest third too often.
        draws = source.integers(3 * 2**61, (100, 500))
        assert draws.shape == (100, 500)
        counts = np.bincount((draws >> 61).ravel(), minlength=3)
        assert goodness_of_fit(counts, np.full(3, 1 / 3)) > ALPHA
        assert source.integers(2**63, 100).min() >= 0

    def test_permutations_are_uniform(self, source):
        counts = Counter(tuple(source.permutation(4).tolist()) for _ in range(8000))
        assert goodness_of_fit([counts[p] for p in permutations(range(4))], [1 / 24] * 24) > ALPHA
        assert sum(counts.values()) == 8000

    def test_long_permutations(self, source):
        drawn = source.permutation(100_000)
        assert drawn.dtype == np.int64
        assert np.array_equal(np.sort(drawn), np.arange(100_000))
        assert np.count_nonzero(drawn == np.arange(100_000)) < 20  # Poisson(1): P < 1e-18
        assert len(source.permutation(0)) == 0

    def test_a_permutation_with_equal_keys_is_drawn_again(self):
        source = SystemSource()
        batches = iter([[5, 1, 5], [9, 9, 2], [3, 1, 2]])
        source._words = lambda n: np.array(next(batches), np.uint64)
        assert source.permutation(3).tolist() == [1, 2, 0]

    @pytest.mark.parametrize(("n", "m"), [(5, 1), (6, 3), (17, 2), (25, 2)])
    def test_chosen_subsets_are_uniform(self, source, n, m):
        # (17, 2) and (25, 2) are few of many, the others many of few.
        counts = Counter(tuple(source.choose(n, m).tolist()) for _ in range(20_000))
        subsets = list(combinations(range(n), m))
        assert sum(counts[s] for s in subsets) == 20_000
        assert goodness_of_fit([counts[s] for s in subsets], [1 / len(subsets)] * len(subsets)) > (
            ALPHA
        )

    @pytest.mark.parametrize(
        ("n", "m"),
        [(0, 0), (9, 0), (9, 9), (10**5, 10**4), (10**5, 49_999), (10**5, 99_000), (10**7, 10**5)],
    )
    def test_chosen_are_sorted_and_distinct(self, source, n, m):
        chosen = source.choose(n, m)
        assert chosen.dtype == np.int64
        assert len(chosen) == m
        assert (np.diff(chosen) > 0).all()
        assert m == 0 or (chosen[0] >= 0 and chosen[-1] < n)

    @pytest.mark.parametrize("m", [10_000, 60_000])
    def test_chosen_are_spread_evenly(self, source, m):
        n = 100_000
        hit = np.add.reduceat(np.bincount(source.choose(n, m), minlength=n), range(0, n, n // 20))
        # Hypergeometric counts vary by (1 - m/n) less than multinomial ones.
        statistic = np.sum((hit - m / 20) ** 2) / (m / 20 * (1 - m / n))
        assert ALPHA < stats.chi2.sf(statistic, 19) < 1 - ALPHA

    def test_choosing_few_of_very_many_draws_few(self, source, monkeypatch):
        integers, drawn = source.integers, []

        def counting(high, size):
            drawn.append(size)
            return integers(high, size)

        monkeypatch.setattr(source, "integers", counting)
        chosen = source.choose(10**12, 10)
        assert sum(drawn) < 20
        assert len(chosen) == 10
        assert chosen[-1] > 10**9  # else P = 1e-30

    @pytest.mark.parametrize("rate", [0.06, 0.11, 0.125, 0.5, 0.9])
    def test_each_coin_is_fair_and_independent(self, source, rate):
        outcomes = [s for k in range(4) for s in combinations(range(3), k)]
        counts = Counter(tuple(source.bernoulli_subset(3, rate).tolist()) for _ in range(8000))
        law = [rate ** len(s) * (1 - rate) ** (3 - len(s)) for s in outcomes]
        assert sum(counts[s] for s in outcomes) == 8000
        assert goodness_of_fit([counts[s] for s in outcomes], law) > ALPHA

    @pytest.mark.parametrize("rate", [1e-3, 0.03, 0.124, 0.126, 0.7])
    def test_gaps_and_number_of_a_large_subset(self, source, rate):
        n = int(30_000 / rate)
        chosen = source.bernoulli_subset(n, rate)
        assert chosen.dtype == np.int64
        assert (np.diff(chosen) > 0).all()
        assert stats.binomtest(len(chosen), n, rate).pvalue > ALPHA
        gaps = np.diff(chosen, prepend=-1)
        cuts = np.unique(np.append(stats.geom.ppf(np.linspace(0, 0.98, 50), rate), 2**40))
        law = np.diff(stats.geom.cdf(cuts, rate))
        assert goodness_of_fit(np.histogram(gaps, cuts + 0.5)[0], law) > ALPHA
        hit = np.bincount(chosen * 20 // n, minlength=20)
        assert goodness_of_fit(hit, np.full(20, 1 / 20)) > ALPHA

    def test_the_number_follows_the_binomial_law(self, source):
        for n, rate in [(400, 0.01), (30, 0.3)]:
            numbers = [len(source.bernoulli_subset(n, rate)) for _ in range(8000)]
            law = stats.binom.pmf(np.arange(n + 1), n, rate)
            assert goodness_of_fit(np.bincount(numbers, minlength=n + 1), law) > ALPHA

    def test_rates_zero_and_one(self, source):
        assert len(source.bernoulli_subset(1000, 0.0)) == 0
        assert np.array_equal(source.bernoulli_subset(1000, 1.0), np.arange(1000))
        assert len(source.bernoulli_subset(0, 0.3)) == len(source.bernoulli_subset(0, 0.01)) == 0

    def test_tiny_rates(self, source):
        numbers = [len(source.bernoulli_subset(10**9, 1e-8)) for _ in range(1000)]
        assert abs(np.sum(numbers) - 10_000) < 6 * 100  # Poisson(10^4)
        assert abs(np.var(numbers) - 10) < 7 * math.sqrt((10 + 3 * 10**2 - 10**2) / 1000)
        rate = 2.0**-41 * 1.5  # below 2^-40: thinned; 192 are expected
        found = [source.bernoulli_subset(2**48, rate) for _ in range(200)]
        assert abs(sum(map(len, found)) - 200 * 192) < 6 * math.sqrt(200 * 192)
        assert stats.kstest(np.concatenate(found) / 2**48, "uniform").pvalue > ALPHA
        for rate in (1e-30, 5e-324):
            assert len(source.bernoulli_subset(2**48, rate)) == 0

    def test_requests_out_of_range_are_refused(self, source):
        for refused in [
            lambda: source.integers(0, 3),
            lambda: source.integers(2**63 + 1, 3),
            lambda: source.permutation(-1),
            lambda: source.choose(5, 6),
            lambda: source.choose(5, -1),
            lambda: source.choose(2**49, 1),
            lambda: source.bernoulli_subset(-1, 0.5),
            lambda: source.bernoulli_subset(5, 1.001),
            lambda: source.bernoulli_subset(5, -1e-300),
            lambda: source.bernoulli_subset(5, math.nan),
        ]:
            with pytest.raises(ValueError, match=r"must be .*, got"):
                refused()
        with pytest.raises(TypeError):
            source.choose(5, 2.5)
