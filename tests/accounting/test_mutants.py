"""Seeded bugs: for each, the check that is to catch it fails on the mutant and holds without it.

A check is a function that asserts; `catches` says whether it fails.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

import skdp.accounting.additive as additive_module
import skdp.accounting.composition as composition_module
import skdp.accounting.dominating as dominating_module
import skdp.accounting.papers as papers_module
import skdp.accounting.plan as plan_module
import skdp.accounting.pricing as pricing_module
from costs import by_pairs, cost
from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    OnBlock,
    Partition,
    PoissonSampled,
    Selected,
    Shuffled,
    delta_at,
    gaussian_delta,
    gaussian_epsilon,
)
from skdp.accounting.pairs import AntipodalPair, GaussianPair, SampledPair
from skdp.accounting.shuffle import guarantee

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE


@pytest.fixture(autouse=True)
def forget():
    """Costs are remembered; a mutant must not see those of the sound code, nor leave its own."""

    def clear():
        dominating_module.dominating_pairs.cache_clear()
        composition_module.epsilon_of.cache_clear()
        composition_module.delta_of.cache_clear()
        dominating_module._shift_of_path.cache_clear()

    clear()
    yield clear
    clear()


def catches(check):
    try:
        check()
    except AssertionError:
        return True
    return False


@pytest.fixture
def mutate(monkeypatch, forget):
    """Check that ``check`` holds, seed the mutant, and check that it no longer holds."""

    def seed(check, target, name, mutant):
        check()
        forget()
        monkeypatch.setattr(target, name, mutant)
        assert catches(check), f"the mutant of {name} was not caught"

    return seed


# The checks: figures from closed forms, and properties.


def replace_one_doubles():
    assert cost(Gaussian(2.0), 1e-6, REPLACE_ONE) == pytest.approx(gaussian_epsilon(1.0, 1e-6))
    assert cost(Laplace(2.0), 0.0, REPLACE_ONE) == pytest.approx(1.0)


def zero_out_is_one_bound():
    assert cost(Gaussian(2.0), 1e-6, ZERO_OUT) == pytest.approx(gaussian_epsilon(0.5, 1e-6))


def more_noise_costs_less():
    for base in (Gaussian(1.0), PoissonSampled(0.1, Gaussian(1.0)), Laplace(1.0)):
        quiet = by_pairs(base.scaled(0.5), 1e-6, ZERO_OUT)
        assert by_pairs(base.scaled(2.0), 1e-6, ZERO_OUT) < quiet


def one_sampled_step_in_closed_form():
    """``delta(log(1 + q (exp(e) - 1))) = q delta_base(e)``."""
    rate, sigma = 0.1, 1.0
    for epsilon in (0.5, 2.0):
        amplified = math.log1p(rate * math.expm1(epsilon))
        found = delta_at(PoissonSampled(rate, Gaussian(sigma)), amplified, ZERO_OUT)
        assert found == pytest.approx(rate * gaussian_delta(1 / sigma, epsilon), rel=1e-3)
        fixed = FixedSizeSampled(1, 10, Gaussian(sigma))
        found = delta_at(fixed, amplified, REPLACE_ONE)
        assert found == pytest.approx(rate * gaussian_delta(2 / sigma, epsilon), rel=1e-3)


def sampled_laplace_in_closed_form():
    found = cost(PoissonSampled(0.1, Laplace(1.0)), 0.0, ZERO_OUT)
    assert found == pytest.approx(math.log1p(0.1 * math.expm1(1.0)))
    found = cost(FixedSizeSampled(1, 10, Laplace(1.0)), 0.0, REPLACE_ONE)
    assert found == pytest.approx(math.log1p(0.1 * math.expm1(2.0)))


def poisson_under_replace_one_in_closed_form():
    """At epsilon 0 the divergence is the total variation of the two mixtures."""
    rate, sigma = 0.3, 1.0
    found = delta_at(PoissonSampled(rate, Gaussian(sigma)), 0.0, REPLACE_ONE)
    assert found == pytest.approx(rate * math.erf(1 / sigma / math.sqrt(2)), rel=1e-3)


def a_block_asked_twice_is_charged_twice():
    block = OnBlock(Partition(0, 4), 1, Gaussian(1.0))
    twice = cost(Composed(((block, 1), (block, 1))), 1e-6, ZERO_OUT)
    assert twice == pytest.approx(gaussian_epsilon(math.sqrt(2), 1e-6))
    sampled = OnBlock(Partition(0, 4), 1, PoissonSampled(0.1, Gaussian(1.0)))
    pair = Composed(((sampled, 1), (sampled, 1)))
    assert by_pairs(pair, 1e-6, ZERO_OUT) > by_pairs(sampled, 1e-6, ZERO_OUT)


def two_epochs_are_charged_twice():
    blocks = [OnBlock(Partition(epoch, 4), 1, Gaussian(1.0)) for epoch in (0, 1)]
    found = cost(Composed.of(blocks), 1e-6, ZERO_OUT)
    assert found == pytest.approx(gaussian_epsilon(math.sqrt(2), 1e-6))


def the_costliest_block_is_charged():
    partition = Partition(0, 2)
    for order in ((1.0, 5.0), (5.0, 1.0)):
        plan = Composed.of(OnBlock(partition, k, Gaussian(s)) for k, s in enumerate(order))
        assert cost(plan, 1e-6, ZERO_OUT) == pytest.approx(gaussian_epsilon(1.0, 1e-6))


def both_directions_are_composed():
    """Removing a record is costlier here than adding one; alone it is known in closed form."""
    event = PoissonSampled(0.1, Gaussian(0.5))
    epsilon = math.log1p(0.1 * math.expm1(4.0))
    found = delta_at(event, epsilon, ZERO_OUT)
    assert found >= 0.1 * gaussian_delta(2.0, 4.0) * (1 - 1e-9)


def the_second_direction_counts():
    """A pair whose backward direction is the costlier one costs what its mirror image costs."""
    pair = SampledPair(GaussianPair(2.0), 0.1)
    mirrored = Mirrored(GaussianPair(2.0), 0.1)
    for pairs in (((pair, 5),), ((mirrored, 5),)):
        found = composition_module.epsilon_of(pairs, pairs, 1e-6)
        assert found == pytest.approx(MIRROR_COST, rel=1e-4)


class Mirrored(SampledPair):
    def forward(self, epsilon):
        return SampledPair.backward(self, epsilon)

    def backward(self, epsilon):
        return SampledPair.forward(self, epsilon)

    def reach(self, tail):
        return SampledPair.reach(self, tail)[::-1]


MIRROR_COST = composition_module.epsilon_of(
    ((SampledPair(GaussianPair(2.0), 0.1), 5),), ((SampledPair(GaussianPair(2.0), 0.1), 5),), 1e-6
)


def deltas_are_charged_in_advanced_composition():
    plan = Composed(((ApproximateDP(0.1, 1e-7), 20),))
    assert papers_module.advanced_epsilon(plan, 1e-6, ZERO_OUT) == math.inf
    # Twenty Gaussians share delta: no part may have it all.
    shared = papers_module.advanced_epsilon(Composed(((Gaussian(9.0), 20),)), 1e-6, ZERO_OUT)
    once, _ = guarantee(Gaussian(9.0), 1e-6, ZERO_OUT)
    unshared = papers_module.composed_epsilon([(once, 0.0, 20)], 1e-6)
    assert shared > unshared


def deltas_are_charged_in_mixed_composition():
    """The selection enters with the delta at which it was priced, out of the same total."""
    run = Composed(((Gaussian(8.0), 1), (Laplace(50.0), 1)))  # whose selection has no known pair
    chosen, rest, delta = Selected(run, 10), Gaussian(20.0), 1e-5
    found = cost(Composed(((chosen, 1), (rest, 1))), delta, ZERO_OUT)
    points = [
        ApproximateDP(cost(chosen, share * delta, ZERO_OUT), share * delta)
        for share in (0.2, 0.5, 0.8)
    ]
    plans = [Composed(((point, 1), (rest, 1))) for point in points]
    assert found >= min(by_pairs(plan, delta, ZERO_OUT) for plan in plans) * (1 - 1e-9)


def local_deltas_are_charged_in_shuffling():
    leaky = Shuffled(1000, ApproximateDP(1.0, 1e-10))
    assert cost(leaky, 1e-6, ZERO_OUT) > cost(Shuffled(1000, ApproximateDP(1.0)), 1e-6, ZERO_OUT)


def lost_mass_is_charged():
    plan = Composed(((ApproximateDP(0.1, 1e-6), 5), (Gaussian(2.0), 1)))
    assert by_pairs(plan, 4e-6, ZERO_OUT) == math.inf
    assert delta_at(plan, 50.0, ZERO_OUT) == pytest.approx(5e-6, rel=1e-3)


def discretisation_errs_upwards():
    for delta in (1e-3, 1e-6, 1e-10):
        exact = gaussian_epsilon(1.0, delta)
        assert exact <= by_pairs(Gaussian(1.0), delta, ZERO_OUT) <= exact * (1 + 1e-5)


# The mutants.


def test_sensitivity_halved(mutate):
    mutate(
        zero_out_is_one_bound, Gaussian, "sensitivity",
        lambda self, adjacency: 0.5 if adjacency is ZERO_OUT else self.spread / 2,
    )  # fmt: skip


def test_sensitivity_halved_in_the_dominating_pair(mutate):
    real = dominating_module.pairs.GaussianPair
    mutate(one_sampled_step_in_closed_form, dominating_module.pairs, "GaussianPair",
           lambda mu: real(mu / 2))  # fmt: skip


@pytest.mark.parametrize("event", [Gaussian, Laplace])
def test_replace_one_treated_as_zero_out(mutate, event):
    mutate(replace_one_doubles, event, "sensitivity", lambda self, adjacency: 1.0)


def test_replace_one_treated_as_zero_out_where_sampled_without_replacement(mutate):
    real = dominating_module._base
    mutate(one_sampled_step_in_closed_form, dominating_module, "_base",
           lambda inner, adjacency, sampled: real(inner, ZERO_OUT, sampled))  # fmt: skip


def test_poisson_under_replace_one_with_the_factor_twice(mutate):
    mutate(poisson_under_replace_one_in_closed_form, dominating_module.pairs, "AntipodalPair",
           lambda mu, rate: AntipodalPair(2 * mu, rate))  # fmt: skip


def test_poisson_under_replace_one_with_the_pair_of_zero_out(mutate):
    mutate(poisson_under_replace_one_in_closed_form, dominating_module.pairs, "AntipodalPair",
           lambda mu, rate: SampledPair(GaussianPair(mu), rate))  # fmt: skip


def test_rate_squared(mutate):
    real = dominating_module.pairs.SampledPair
    mutate(one_sampled_step_in_closed_form, dominating_module.pairs, "SampledPair",
           lambda base, rate: real(base, rate**2))  # fmt: skip


def test_rate_squared_without_replacement(mutate):
    real = dominating_module.pairs.SymmetricSampledPair
    mutate(one_sampled_step_in_closed_form, dominating_module.pairs, "SymmetricSampledPair",
           lambda base, rate: real(base, rate**2))  # fmt: skip


def test_rate_squared_in_pure_amplification(mutate):
    real = additive_module.amplified
    mutate(sampled_laplace_in_closed_form, additive_module, "amplified",
           lambda epsilon, rate: real(epsilon, rate**2))  # fmt: skip


def test_noise_taken_for_its_inverse(mutate):
    mutate(more_noise_costs_less, Gaussian, "mu",
           lambda self, adjacency: self.sensitivity(adjacency) * self.noise_multiplier)  # fmt: skip


def test_laplace_noise_taken_for_its_inverse(mutate):
    mutate(more_noise_costs_less, Laplace, "pure_epsilon",
           lambda self, adjacency: self.noise_multiplier)  # fmt: skip


def test_laplace_standard_deviation_taken_for_its_scale(mutate):
    mutate(replace_one_doubles, Laplace, "pure_epsilon",
           lambda self, adjacency: self.sensitivity(adjacency)
           / (self.noise_multiplier * math.sqrt(2)))  # fmt: skip


def test_one_block_asked_twice_charged_once(mutate):
    real = plan_module.by_block

    def forgetful(event):
        common, blocks = real(event)
        once = {
            partition: {k: dict.fromkeys(content, 1) for k, content in inside.items()}
            for partition, inside in blocks.items()
        }
        return common, once

    mutate(a_block_asked_twice_is_charged_twice, plan_module, "by_block", forgetful)


def test_epochs_taken_for_one_partition(mutate):
    real = plan_module.by_block

    def merged(event):
        common, blocks = real(event)
        one = {}
        for inside in blocks.values():
            for block, content in inside.items():
                one[len(one), block] = content
        return common, {Partition(0, 1): one}

    mutate(two_epochs_are_charged_twice, plan_module, "by_block", merged)


def test_the_last_block_charged_instead_of_the_costliest(mutate):
    mutate(the_costliest_block_is_charged, plan_module, "_costliest",
           lambda contents, adjacency: [list(contents)[-1]])  # fmt: skip


def test_first_direction_dropped(mutate):
    mutate(both_directions_are_composed, composition_module, "_sides", lambda pairs: (1,))


def test_second_direction_dropped(mutate):
    mutate(the_second_direction_counts, composition_module, "_sides", lambda pairs: (0,))


def test_delta_split_forgotten_in_advanced_composition(mutate):
    mutate(deltas_are_charged_in_advanced_composition, papers_module, "_total_delta",
           lambda guarantees: 0.0)  # fmt: skip


def test_delta_split_forgotten_in_mixed_composition(mutate):
    real = pricing_module.ApproximateDP
    mutate(deltas_are_charged_in_mixed_composition, pricing_module, "ApproximateDP",
           lambda epsilon, delta: real(epsilon, 0.0))  # fmt: skip


def test_local_deltas_forgotten_in_shuffling(mutate):
    import skdp.accounting.shuffle as shuffle_module

    mutate(local_deltas_are_charged_in_shuffling, shuffle_module, "approximate_delta",
           lambda n, local_epsilon, local_delta, epsilon: 0.0)  # fmt: skip


def test_lost_mass_forgotten(mutate):
    real = composition_module.connect_the_dots
    mutate(lost_mass_is_charged, composition_module, "connect_the_dots",
           lambda *given: replace(real(*given), infinity_mass=0.0))  # fmt: skip


def test_losses_rounded_down(mutate):
    real = composition_module.connect_the_dots

    def rounded_down(pair, gains, drops):
        atoms = real(pair, gains, drops)
        shifted = np.append(atoms.up[1:], 0.0)
        return replace(atoms, up=shifted, centre=atoms.centre + float(atoms.up[0]))

    mutate(discretisation_errs_upwards, composition_module, "connect_the_dots", rounded_down)


def test_counts_ignored(mutate):
    def thirty_steps():
        found = by_pairs(Composed(((Gaussian(5.0), 30),)), 1e-6, ZERO_OUT)
        assert found == pytest.approx(gaussian_epsilon(math.sqrt(30) / 5, 1e-6), rel=1e-5)

    real = dominating_module.epsilon_of
    mutate(thirty_steps, dominating_module, "epsilon_of",
           lambda pairs, coarse, delta, effort: real(
               tuple((pair, 1) for pair, _ in pairs), coarse, delta, effort))  # fmt: skip
