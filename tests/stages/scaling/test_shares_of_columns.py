"""The rule of docs/research/defaults.rst on what columns get, figure by figure."""

from __future__ import annotations

import math

import numpy as np
import pytest

import skdp
from skdp._oracle import Public
from skdp._stages.scaling.shares import mu_per_count, scaling_budget
from skdp.accounting import Adjacency


def asked(n_rows, n_features, insist=False):
    public = Public(n_rows, n_features, 1, Adjacency.ZERO_OUT, 1.0, 1e-6)
    found, _ = scaling_budget(public, features=True, targets=False, insist=insist)
    return found, mu_per_count(public) * n_rows


def noise_of(share, rounds, n_features, signal):
    return math.sqrt(rounds * n_features / share) / signal


@pytest.mark.parametrize(("n_rows", "n_features"), [(10**6, 10), (6000, 50), (40_000, 300)])
def test_columns_have_six_histograms_and_a_fifth_of_the_budget(n_rows, n_features):
    found, signal = asked(n_rows, n_features)
    assert (found.share, found.rounds) == (0.2, 6)
    assert found.noise == pytest.approx(noise_of(0.2, 6, n_features, signal))
    assert found.noise < 0.15


def test_columns_in_need_get_up_to_30_per_cent_and_none_beyond_half_of_the_rows():
    seen = set()
    for n_rows in range(40, 1200, 10):
        found, signal = asked(n_rows, 20)
        if noise_of(0.3, 2, 20, signal) > 0.5:
            assert found.n_columns == 0
            seen.add("none")
            assert asked(n_rows, 20, insist=True)[0].share == pytest.approx(0.3)
        elif noise_of(0.2, 2, 20, signal) > 0.25:
            needed = 2 * 20 / (0.25 * signal) ** 2
            assert found.share == pytest.approx(min(needed, 0.3))
            assert (found.share > 0.2, found.rounds) == (True, 2)
            seen.add("in need" if needed < 0.3 else "most")
    assert seen == {"none", "in need", "most"}


@pytest.mark.parametrize(
    ("n_rows", "columns", "targets"), [(2000, 0.15, 0.04), (10**5, 0.04, 0.04)]
)
def test_before_an_inference_scaling_gets_no_more_than_it_needs(n_rows, columns, targets):
    """With the usual shares intervals are a sixth wider."""

    def counted(**parameters):
        releases = skdp.DPRidge(**parameters).plan(n_rows, 5).releases
        of_kind = [one for one in releases if one.kind in ("magnitudes", "histograms")]
        return sum(one.count / one.noise_multiplier**2 for one in of_kind)

    assert counted(inference=True) / counted() == pytest.approx(
        (columns + targets) / 0.35, rel=0.01
    )


@pytest.mark.parametrize(("n_rows", "share", "rounds"), [(10**6, 0.15, 6), (300, 0.9, 2)])
def test_targets_get_more_where_noise_hides_their_scale(n_rows, share, rounds):
    public = Public(n_rows, 10, 1, Adjacency.ZERO_OUT, 0.1, 1e-6)
    _, found = scaling_budget(public, features=False, targets=True, insist=False)
    assert found.rounds == rounds
    assert found.share == pytest.approx(share, rel=0.02)


def test_counts_with_a_long_tail_are_learnt_at_a_small_budget(rng):
    X = rng.standard_normal((12_000, 8))
    mean = 1.5 * np.exp(X @ np.full(8, 0.28))
    y = rng.poisson(mean * rng.gamma(0.15, 1 / 0.15, len(X)))
    y = (y - y.mean()) / y.std()  # most of it is one value, which is not 0
    scales = [
        skdp.DPLinearRegression(epsilon=0.3, privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)))
        .fit(X, y)
        .scaling_.targets.scale[0]
        for seed in range(8)
    ]
    assert np.median(scales) > 0.5
