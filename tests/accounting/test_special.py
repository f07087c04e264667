"""Blocks, shuffles, bins, selections, and plans that mix them."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    BallsAndBins,
    Composed,
    Gaussian,
    GaussianDP,
    Laplace,
    MixedComposition,
    OnBlock,
    ParallelComposition,
    Partition,
    PoissonSampled,
    PrivacyLossDistribution,
    PureDP,
    RenyiDP,
    Selected,
    SelectionModel,
    Shuffled,
    ShuffleModel,
    calibrate,
    gaussian_delta,
    gaussian_epsilon,
    knowing,
    price,
    selection_delta,
    selection_epsilon,
)
from skdp.accounting.clones import clone_delta

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
G = Gaussian(1.5)


def on(partition, block, event=G):
    return OnBlock(partition, block, event)


def test_the_dearest_block_is_found_among_mixed_contents():
    partition = Partition(0, 4)
    plan = Composed(
        (
            (on(partition, 0, Gaussian(3.0)), 1),
            (on(partition, 1, PoissonSampled(0.1, Gaussian(1.0))), 1),
            (on(partition, 2, Laplace(1.0)), 1),
            (on(partition, 3, Composed(((Gaussian(3.0), 1), (Laplace(9.0), 1)))), 1),
            (Gaussian(5.0), 1),
        )
    )
    pld = PrivacyLossDistribution()
    contents = [Gaussian(3.0), PoissonSampled(0.1, Gaussian(1.0)), Laplace(1.0)]
    contents.append(Composed(((Gaussian(3.0), 1), (Laplace(9.0), 1))))
    alone = [
        pld.epsilon(Composed(((content, 1), (Gaussian(5.0), 1))), 1e-6, ZERO_OUT)
        for content in contents
    ]
    assert pld.epsilon(plan, 1e-6, ZERO_OUT) == pytest.approx(max(alone), rel=1e-9)


def test_repeated_questions_to_one_block_add_up():
    partition = Partition(0, 2)
    forty = Composed(((on(partition, 0), 40), (on(partition, 1), 1)))
    assert price(forty, 1e-6, ZERO_OUT)[0] == pytest.approx(
        gaussian_epsilon(math.sqrt(40) / 1.5, 1e-6)
    )


def test_different_partitions_add_up():
    plan = Composed(((on(Partition(0, 2), 0), 1), (on(Partition(1, 2), 0), 1)))
    assert price(plan, 1e-6, ZERO_OUT)[0] == pytest.approx(
        gaussian_epsilon(math.sqrt(2) / 1.5, 1e-6)
    )
    plan = Composed(((on(Partition(0, 2), 0), 1), (on(Partition(0, 3), 0), 1)))
    assert price(plan, 1e-6, ZERO_OUT)[0] == pytest.approx(
        gaussian_epsilon(math.sqrt(2) / 1.5, 1e-6)
    )


def test_many_sampled_blocks_reduce_to_the_least_noisy_one():
    partition = Partition(0, 500)
    plan = Composed.of(
        on(partition, k, PoissonSampled(0.1, Gaussian(1 + k / 500))) for k in range(500)
    )
    alone = price(PoissonSampled(0.1, Gaussian(1.0)), 1e-6, ZERO_OUT)
    assert price(plan, 1e-6, ZERO_OUT) == alone


def test_the_average_over_a_random_partition():
    sigmas, shares = (1.0, 2.0, 4.0), (0.2, 0.3, 0.5)
    partition = Partition(0, 3, shares=shares)
    plan = Composed(tuple((on(partition, k, Gaussian(s)), 1) for k, s in enumerate(sigmas)))
    model = ParallelComposition()
    for epsilon in (0.5, 2.0):
        expected = sum(
            share * gaussian_delta(1 / sigma, epsilon)
            for share, sigma in zip(shares, sigmas, strict=True)
        )
        assert model.delta(plan, epsilon, ZERO_OUT) == pytest.approx(expected, rel=1e-9)
    found, name = price(plan, 1e-5, ZERO_OUT)
    assert name == "parallel"
    assert model.delta(plan, found, ZERO_OUT) == pytest.approx(1e-5, rel=1e-4)
    assert found < GaussianDP().epsilon(plan, 1e-5, ZERO_OUT)
    assert calibrate(plan, 1.0, 1e-5, REPLACE_ONE).epsilon == pytest.approx(1.0, rel=1e-3)


def test_blocks_not_asked_and_sampled_blocks_in_the_average():
    partition = Partition(0, 2, shares=(0.25, 0.75))
    fixed = Partition(1, 2)
    sampled = PoissonSampled(0.1, Gaussian(1.0))
    plan = Composed(((on(partition, 0, sampled), 3), (on(fixed, 1, Laplace(5.0)), 1)))
    pld = PrivacyLossDistribution()
    met = Composed(((sampled, 3), (Laplace(5.0), 1)))
    expected = 0.25 * pld.delta(met, 0.1, ZERO_OUT) + 0.75 * pld.delta(Laplace(5.0), 0.1, ZERO_OUT)
    assert ParallelComposition().delta(plan, 0.1, ZERO_OUT) == pytest.approx(expected, rel=1e-6)


def brute_clone_delta(n, local, epsilon):
    """All numbers of clones and all counts, written out."""
    rate, truth = math.exp(-local), 1 / (1 + math.exp(-local))
    binomial = lambda n, k, p: math.comb(n, k) * p**k * (1 - p) ** (n - k) if 0 <= k <= n else 0.0  # noqa: E731
    total = 0.0
    for clones in range(n):
        for count in range(clones + 2):
            with_it, without = binomial(clones, count - 1, 0.5), binomial(clones, count, 0.5)
            first = truth * with_it + (1 - truth) * without
            second = (1 - truth) * with_it + truth * without
            gain = max(first - math.exp(epsilon) * second, 0.0)
            total += binomial(n - 1, clones, rate) * gain
    return total


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("local", [0.3, 2.0])
def test_clones_against_the_sum_written_out(n, local):
    for epsilon in (0.0, 0.1, 0.25):
        expected = brute_clone_delta(n, local, epsilon)
        assert clone_delta(n, local, epsilon) == pytest.approx(expected, rel=1e-7, abs=1e-15)


def test_a_million_shuffled_records():
    alone = price(Laplace(2.0), 1e-8, REPLACE_ONE)[0]
    found, name = price(Shuffled(1_000_000, Laplace(2.0)), 1e-8, REPLACE_ONE)
    assert name == "shuffle"
    assert found < 0.01 * alone


def test_shuffling_never_costs_more_than_one_answer():
    for adjacency in Adjacency:
        for n in (1, 10, 1000):
            cost = price(Shuffled(n, G), 1e-6, adjacency)[0]
            assert cost <= price(G, 1e-6, adjacency)[0]


def test_shuffling_prices_randomisers_between_any_two_records():
    """Amplification uses the replace-one guarantee, also for the zero-out relation."""
    local = 2 / 1.0
    event = Shuffled(10_000, Laplace(1.0))
    for adjacency in Adjacency:
        found = ShuffleModel().epsilon(event, 1e-6, adjacency)
        assert clone_delta(10_000, local, found) == pytest.approx(1e-6, rel=1e-4)


def test_shuffled_local_deltas_are_charged():
    clean = ShuffleModel().epsilon(Shuffled(1000, ApproximateDP(1.0)), 1e-6, ZERO_OUT)
    leaky = ShuffleModel().epsilon(Shuffled(1000, ApproximateDP(1.0, 1e-10)), 1e-6, ZERO_OUT)
    assert clean < leaky < 1.0
    hopeless = Shuffled(1000, ApproximateDP(1.0, 1e-5))
    assert ShuffleModel().epsilon(hopeless, 1e-6, ZERO_OUT) == math.inf


def test_selection_inverts():
    for mu in (0.1, 0.5, 2.0):
        epsilon = selection_epsilon(mu, 8, 1e-6)
        assert selection_delta(mu, 8, epsilon) == pytest.approx(1e-6, rel=1e-6)
    assert selection_epsilon(0.0, 8, 1e-6) == 0.0
    assert selection_epsilon(math.inf, 8, 1e-6) == math.inf
    assert selection_delta(math.inf, 8, 3.0) == 1.0


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("mu", [0.2, 1.0])
def test_selection_bound_lies_above_the_best_of_gaussian_scores(mu, shape):
    """The score is the answer: density of the winner in closed form, integrated on a grid."""
    mean = 10
    gamma = Selected(G, mean, shape).gamma
    y = np.linspace(-12, 12 + mu, 200_001)

    def winner(shift):
        x = norm.cdf(y, loc=shift)
        rise = (1 - (1 - gamma) * x) ** -(shape + 1)
        density = norm.pdf(y, loc=shift) * rise
        return density / density.sum()

    for first, second in ((winner(mu), winner(0.0)), (winner(0.0), winner(mu))):
        for epsilon in (0.1, 0.5, 2.0):
            actual = float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())
            assert actual <= selection_delta(mu, mean, epsilon, shape) + 1e-12


def test_selection_of_pure_runs_is_pure():
    event = Selected(Laplace(10.0), 12, shape=1.0)
    assert PureDP().epsilon(event, 0.0, ZERO_OUT) == pytest.approx(0.3)
    assert price(event, 0.0, ZERO_OUT)[0] == pytest.approx(0.3)
    assert PrivacyLossDistribution().epsilon(event, 1e-6, ZERO_OUT) <= 0.3 * (1 + 1e-6)


def test_selection_of_sampled_runs_goes_by_renyi():
    event = Selected(Composed(((PoissonSampled(0.01, Gaussian(2.0)), 100),)), 10)
    found, name = price(event, 1e-5, ZERO_OUT)
    assert name == "rdp"
    assert RenyiDP().epsilon(event.event, 1e-5, ZERO_OUT) < found < 3


def test_a_selection_inside_a_plan():
    chosen, refit = Selected(Gaussian(8.0), 10), Gaussian(8.0)
    plan = Composed(((chosen, 1), (refit, 1)))
    assert [item.name for item in knowing(plan, ZERO_OUT)] == ["rdp", "mixed"]
    found, name = price(plan, 1e-5, ZERO_OUT)
    alone = SelectionModel().epsilon(chosen, 1e-5, ZERO_OUT)
    assert name == "mixed"
    halves = SelectionModel().epsilon(chosen, 5e-6, ZERO_OUT) + gaussian_epsilon(1 / 8, 5e-6)
    assert alone < found <= halves
    assert MixedComposition().delta(plan, found, ZERO_OUT) <= 1.01e-5
    assert calibrate(plan, 1.0, 1e-5, REPLACE_ONE).epsilon == pytest.approx(1.0, rel=1e-3)


def test_a_shuffled_pass_and_a_polish():
    plan = Composed(((Shuffled(5000, Gaussian(6.0)), 1), (PoissonSampled(0.01, Gaussian(2.0)), 20)))
    found, name = price(plan, 1e-6, ZERO_OUT)
    assert name == "mixed"
    assert found < PrivacyLossDistribution().epsilon(plan, 1e-6, ZERO_OUT)


def test_bins_of_different_epochs_and_noise():
    PLD_accounting = pytest.importorskip(
        "PLD_accounting", reason="the extra skdp[amplification] is not installed"
    )
    partition = Partition(0, 10, allocation=True)
    blocks = Composed.of(on(partition, k, Gaussian(1 + k / 100)) for k in range(10))
    whole = price(BallsAndBins(10, Gaussian(1.0)), 1e-5, ZERO_OUT)
    assert whole[1] == "balls_and_bins"
    assert price(blocks, 1e-5, ZERO_OUT) == whole
    assert whole[0] < gaussian_epsilon(1.0, 1e-5)
    twice = price(Composed(((BallsAndBins(10, Gaussian(1.0)), 2),)), 1e-5, ZERO_OUT)
    assert whole[0] < twice[0] < 2 * whole[0]
    # Beside other releases, such as histograms of columns, the pass stays as cheap as it is.
    beside = Composed(((blocks, 1), (Gaussian(40.0), 2)))
    assert whole[0] < price(beside, 1e-5, ZERO_OUT)[0] < 1.02 * whole[0]
    reference = PLD_accounting.gaussian_allocation_epsilon_range(
        delta=1e-5, sigma=1.0, num_steps=10, num_epochs=2
    )
    assert reference[1] <= twice[0] <= 1.02 * reference[0]
    # Under replace_one the maximum over blocks is charged.
    assert price(blocks, 1e-5, REPLACE_ONE) == price(Gaussian(1.0), 1e-5, REPLACE_ONE)
