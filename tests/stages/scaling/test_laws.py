"""Laws that columns may follow, and columns that are read from all their histograms at once."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from skdp.oracle.kernels.histograms import magnitude_counts
from skdp.oracle.sources.records import Records
from skdp.stages.scaling.estimates import Ranges, columns_from_all
from skdp.stages.scaling.templates import (
    OWN,
    ROUNDS,
    _common_prior,
    fine_laws,
    laws,
    magnitude_edges,
    magnitude_templates,
    median_end,
)

N_ROWS = 2000


def samples(laws, rng, n=200_000):
    """Values of one law of each family, with its place among the laws."""
    n_bells, n_skewed = len(laws.centre), len(laws.power)
    z, u = rng.standard_normal(n), rng.random(n)
    bell = n_bells // 2
    yield bell, laws.centre[bell] + laws.deviation[bell] * z
    for skewed in n_skewed // 2 + np.arange(6):
        signs = np.where(rng.random(n) < laws.positive[skewed], 1.0, -1.0)
        values = 2.0 ** (laws.power[skewed] + laws.spread[skewed] * z)
        yield n_bells + skewed, signs * values
    for other in len(laws.zeros) // 2 + np.arange(10):
        values = laws.sign[other] * laws.least[other] * 2.0 ** (laws.octaves * u)
        yield n_bells + n_skewed + other, np.where(rng.random(n) < laws.zeros[other], 0.0, values)


@pytest.mark.parametrize("arguments", [((1.0, 8.0), 1, 2.0), ((0.5, 4.0), 2, 0.5)])
def test_probabilities_are_those_of_samples(arguments, rng):
    found = laws(*arguments)
    points = np.array([-40.0, -3.0, -0.3, 0.0, 0.2, 0.9, 1.7, 6.0, 90.0])
    below = found.below(points)
    assert below.shape == (len(found.log_prior), 9)
    assert np.all(np.diff(below, axis=1) >= 0)
    for place, values in samples(found, rng):
        seen = np.mean(values[:, None] < points, axis=0)
        assert below[place] == pytest.approx(seen, abs=0.006), place


def test_moments_are_those_of_samples(rng):
    found = laws((1.0, 8.0), 2, 0.5)
    means, sizes = found.moments
    for place, values in samples(found, rng):
        low, high = np.quantile(np.abs(values), [0.1, 0.9])
        kept = values
        if len(found.centre) <= place < len(found.centre) + len(found.power):
            kept = np.sign(values) * np.clip(np.abs(values), low, high)
        assert means[place] == pytest.approx(kept.mean(), abs=0.03 * kept.std())
        assert sizes[place] == pytest.approx(kept.std(), rel=0.05)


def test_shapes_of_magnitudes_add_up_to_1():
    for templates in (magnitude_templates(), fine_laws()[1]):
        assert templates.shapes.shape[1] == len(magnitude_edges()) + 1
        assert templates.shapes.sum(axis=1) == pytest.approx(1.0)
        assert templates.shapes.min() >= 0


def read(X, low, high, noise, rng, centred=True):
    """What is found of the columns of X from magnitudes and 8 bins with this share of noise."""
    n_rows, n_columns = X.shape
    std = np.full(n_columns, noise * n_rows)

    def noisy(counts):
        return counts + noise * n_rows * rng.standard_normal(counts.shape), std

    edges = np.linspace(low, high, 9)[1:-1]
    bins = np.apply_along_axis(
        lambda x: np.bincount(np.searchsorted(edges, x, side="right"), minlength=8), 0, X
    ).T
    ranges = Ranges(np.full(n_columns, low), np.full(n_columns, high))
    magnitudes = magnitude_counts(Records.of(X, np.zeros((n_rows, 1))), True, False)
    return columns_from_all(noisy(magnitudes), noisy(bins), n_rows, ranges, centred)[0]


@pytest.mark.parametrize(
    ("mean", "size", "low", "high"), [(20.0, 5.0, -16.0, 64.0), (-9.0, 3.0, -64.0, 4.0)]
)
def test_columns_are_read_though_their_counts_nearly_drown(mean, size, low, high, rng):
    X = mean + size * rng.standard_normal((N_ROWS, 10))
    found = read(X, low, high, 0.12, rng)
    assert np.abs(found.centre - mean).max() < 1.2 * size
    assert size / 2 < found.size.min() <= found.size.max() < 2 * size
    around = read(X, low, high, 0.12, rng, centred=False)
    assert not around.centre.any()
    assert around.size == pytest.approx(np.hypot(mean, size), rel=0.4)
    assert np.all((around.low < 0) & (around.high > 0))


def test_indicators_have_the_size_of_indicators(rng):
    X = (rng.random((N_ROWS, 30)) < 0.05).astype(float)
    found = read(X, 0.0, 4.0, 0.1, rng)
    assert found.size.min() > 0.1
    assert np.quantile(found.size, 0.85) < 0.5  # noise alone widens few of them


@pytest.mark.parametrize("n_columns", [1, 3, 300])
def test_any_number_of_columns_is_read(n_columns, rng):
    found = read(rng.standard_normal((500, n_columns)), -4.0, 4.0, 0.3, rng)
    for values in (found.low, found.high, found.centre, found.size):
        assert values.shape == (n_columns,)
        assert np.all(np.isfinite(values))
    assert found.size.min() > 0


def test_noise_alone_gives_columns_that_can_be_used(rng):
    found = read(rng.standard_normal((500, 20)), -1e-12, 1e12, 50.0, rng)
    assert np.all(np.isfinite(found.size))
    assert found.size.min() > 0
    assert np.all(found.low < found.high)


def test_two_hundred_rows_are_enough_for_four_columns_in_odd_units():
    """A fit of four columns, 5 wide around 20, learned .30 of .64 from their last bins alone."""
    scores = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((4200, 4))
        y = Z @ rng.standard_normal(4) + 0.6 * rng.standard_normal(4200)
        X = 5 * Z + 20
        model = skdp.DPLinearRegression(epsilon=1.0, noise_source="seeded", random_state=seed)
        scores.append(model.fit(X[:200], y[:200]).score(X[200:], y[200:]))
    assert np.mean(scores) > 0.5


def test_what_columns_have_in_common_is_the_kind_and_the_place_of_other_columns(rng):
    found = magnitude_templates()
    kinds, places = np.eye(found.kinds.max() + 1)[found.kinds], np.eye(81)[found.places]
    likelihood = rng.random((4, len(found.prior))) ** 20
    known = OWN * found.prior @ kinds, OWN * found.prior @ places

    def product(of_kinds, of_places):
        same_kind = (of_places[found.places] @ kinds)[found.kinds]
        return (of_kinds / of_kinds.sum())[found.kinds] * of_places[found.places] / same_kind

    priors = np.tile(found.prior, (4, 1))
    for _ in range(ROUNDS):
        posterior = likelihood * priors
        posterior /= posterior.sum(axis=1, keepdims=True)
        others = [np.delete(posterior, i, axis=0).sum(axis=0) for i in range(4)]
        priors = np.array([product(known[0] + o @ kinds, known[1] + o @ places) for o in others])
    everything = posterior.sum(axis=0)
    for_more = product(known[0] + everything @ kinds, known[1] + everything @ places)
    own, more = _common_prior(likelihood, found)
    assert own == pytest.approx(priors, rel=1e-9)
    assert more[0] == pytest.approx(for_more, rel=1e-9)
    assert own.sum(axis=1) == pytest.approx(1.0)


def test_the_median_of_ends_is_the_first_that_half_of_the_shapes_reach():
    ends = np.array([5, 2, 7, 2])
    posterior = np.array([[0.1, 0.3, 0.4, 0.2], [0.2, 0.3, 0.4, 0.1], [0.0, 0.0, 1.0, 0.0]])
    assert median_end(posterior, ends).tolist() == [2, 5, 7]
