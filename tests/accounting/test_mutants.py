"""Seeded bugs: for each, the check that is to catch it fails on the mutant and holds without it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import skdp.accounting.composition as composition_module
import skdp.accounting.events as events_module
import skdp.accounting.pairs as pairs_module
import skdp.accounting.papers as papers_module
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
    gaussian_mu,
)
from skdp.accounting.pairs import GaussianPair, SampledPair

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE


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
        delta = rate * gaussian_delta(1 / sigma, epsilon)
        found = cost(PoissonSampled(rate, Gaussian(sigma)), delta, ZERO_OUT)
        assert found == pytest.approx(amplified, rel=1e-4)
        delta = rate * gaussian_delta(2 / sigma, epsilon)
        found = cost(FixedSizeSampled(1, 10, Gaussian(sigma)), delta, REPLACE_ONE)
        assert found == pytest.approx(amplified, rel=1e-4)


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
    """Removing a record is costlier here than adding one, and its cost has a closed form."""
    delta = 0.1 * gaussian_delta(2.0, 4.0)
    found = cost(PoissonSampled(0.1, Gaussian(0.5)), delta, ZERO_OUT)
    assert found >= math.log1p(0.1 * math.expm1(4.0)) * (1 - 1e-9)


def the_second_direction_counts():
    """A pair whose backward direction is the costlier one costs what its mirror image costs."""
    pair = SampledPair(GaussianPair(2.0), 0.1)
    mirrored = Mirrored(GaussianPair(2.0), 0.1)
    for pairs in (((pair, 5),), ((mirrored, 5),)):
        found = composition_module.epsilon_of(pairs, 1e-6)
        assert found == pytest.approx(MIRROR_COST, rel=1e-4)


class Mirrored(SampledPair):
    def forward(self, epsilon):
        return SampledPair.backward(self, epsilon)

    def backward(self, epsilon):
        return SampledPair.forward(self, epsilon)

    def reach(self, tail):
        return SampledPair.reach(self, tail)[::-1]


MIRROR_COST = composition_module.epsilon_of(((SampledPair(GaussianPair(2.0), 0.1), 5),), 1e-6)


def deltas_are_charged_in_mixed_composition():
    """The pass enters with the delta at which it was priced, out of the same total."""
    passed, rest, delta = Shuffled(5000, Gaussian(6.0)), Gaussian(20.0), 1e-5
    found = cost(Composed(((passed, 1), (rest, 1))), delta, ZERO_OUT)
    points = [
        ApproximateDP(cost(passed, share * delta, ZERO_OUT), share * delta)
        for share in (0.2, 0.5, 0.8)
    ]
    plans = [Composed(((point, 1), (rest, 1))) for point in points]
    assert found >= min(by_pairs(plan, delta, ZERO_OUT) for plan in plans) * (1 - 1e-9)


def the_best_of_runs_costs_what_the_vectors_say():
    """Runs of epsilon 0.5 at delta 1e-5, ten in expectation. See `test_vectors.py`."""
    mu = gaussian_mu(0.5, 1e-5)
    assert cost(Selected(Gaussian(1 / mu), 10), 1e-5, ZERO_OUT) == pytest.approx(0.834673, rel=1e-5)


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


def thirty_steps_in_closed_form():
    found = by_pairs(Composed(((Gaussian(5.0), 30),)), 1e-6, ZERO_OUT)
    assert found == pytest.approx(gaussian_epsilon(math.sqrt(30) / 5, 1e-6), rel=1e-5)


# The mutants: what is replaced, and by a function of the original.


def one_block_once(real):
    def forgetful(event):
        common, blocks = real(event)
        once = {
            partition: {k: dict.fromkeys(content, 1) for k, content in inside.items()}
            for partition, inside in blocks.items()
        }
        return common, once

    return forgetful


def one_partition(real):
    def merged(event):
        common, blocks = real(event)
        one = {}
        if not blocks:
            return common, blocks
        for inside in blocks.values():
            for block, content in inside.items():
                one[len(one), block] = content
        return common, {Partition(0, 1): one}

    return merged


def rounded_down(real):
    def connected(pair, gains, drops):
        atoms = real(pair, gains, drops)
        shifted = np.append(atoms.up[1:], 0.0)
        return replace(atoms, up=shifted, centre=atoms.centre + float(atoms.up[0]))

    return connected


PAIRS = pairs_module
MUTANTS = {
    "sensitivity halved": (
        zero_out_is_one_bound, Gaussian, "sensitivity",
        lambda real: lambda self, adjacency: real(self, adjacency) / 2,
    ),
    "sensitivity halved in the dominating pair": (
        one_sampled_step_in_closed_form, PAIRS, "GaussianPair",
        lambda real: lambda mu: real(mu / 2),
    ),
    "replace-one as zero-out, Gaussian": (
        replace_one_doubles, Gaussian, "sensitivity", lambda real: lambda self, adjacency: 1.0,
    ),
    "replace-one as zero-out, Laplace": (
        replace_one_doubles, Laplace, "sensitivity", lambda real: lambda self, adjacency: 1.0,
    ),
    "replace-one as zero-out where sampled without replacement": (
        one_sampled_step_in_closed_form, pricing_module, "_base",
        lambda real: lambda inner, adjacency, sampled: real(inner, ZERO_OUT, sampled),
    ),
    "poisson under replace-one with the factor twice": (
        poisson_under_replace_one_in_closed_form, PAIRS, "AntipodalPair",
        lambda real: lambda mu, rate: real(2 * mu, rate),
    ),
    "poisson under replace-one with the pair of zero-out": (
        poisson_under_replace_one_in_closed_form, PAIRS, "AntipodalPair",
        lambda real: lambda mu, rate: SampledPair(GaussianPair(mu), rate),
    ),
    "rate squared": (
        one_sampled_step_in_closed_form, PAIRS, "SampledPair",
        lambda real: lambda base, rate: real(base, rate**2),
    ),
    "rate squared without replacement": (
        one_sampled_step_in_closed_form, PAIRS, "SymmetricSampledPair",
        lambda real: lambda base, rate: real(base, rate**2),
    ),
    "rate squared in pure amplification": (
        sampled_laplace_in_closed_form, pairs_module, "amplified",
        lambda real: lambda epsilon, rate: real(epsilon, rate**2),
    ),
    "noise taken for its inverse": (
        more_noise_costs_less, Gaussian, "mu",
        lambda real: lambda self, adjacency: self.noise_multiplier,
    ),
    "Laplace noise taken for its inverse": (
        more_noise_costs_less, Laplace, "pure_epsilon",
        lambda real: lambda self, adjacency: self.noise_multiplier,
    ),
    "Laplace standard deviation taken for its scale": (
        replace_one_doubles, Laplace, "pure_epsilon",
        lambda real: lambda self, adjacency: real(self, adjacency) / math.sqrt(2),
    ),
    "one block asked twice charged once": (
        a_block_asked_twice_is_charged_twice, events_module, "by_block", one_block_once,
    ),
    "epochs taken for one partition": (
        two_epochs_are_charged_twice, events_module, "by_block", one_partition,
    ),
    "the last block charged, not the costliest": (
        the_costliest_block_is_charged, events_module, "_costliest",
        lambda real: lambda contents, adjacency: [list(contents)[-1]],
    ),
    "first direction dropped": (
        both_directions_are_composed, composition_module, "_sides", lambda real: lambda pairs: (1,),
    ),
    "second direction dropped": (
        the_second_direction_counts, composition_module, "_sides", lambda real: lambda pairs: (0,),
    ),
    "delta split forgotten in mixed composition": (
        deltas_are_charged_in_mixed_composition, pricing_module, "ApproximateDP",
        lambda real: lambda epsilon, delta: real(epsilon, 0.0),
    ),
    "shift of a selection halved": (
        the_best_of_runs_costs_what_the_vectors_say, pricing_module, "selection_shift",
        lambda real: lambda *given: real(*given) / 2,
    ),
    "number of runs forgotten": (
        the_best_of_runs_costs_what_the_vectors_say, pricing_module.pairs, "gaussian_epsilon",
        lambda real: lambda mu, delta: real(mu, min(10 * delta, 0.999)),
    ),
    "local deltas forgotten in shuffling": (
        local_deltas_are_charged_in_shuffling, papers_module, "approximate_delta",
        lambda real: lambda n, local_epsilon, local_delta, epsilon: 0.0,
    ),
    "lost mass forgotten": (
        lost_mass_is_charged, composition_module, "connect_the_dots",
        lambda real: lambda *given: replace(real(*given), infinity_mass=0.0),
    ),
    "losses rounded down": (
        discretisation_errs_upwards, composition_module, "connect_the_dots", rounded_down,
    ),
    "counts ignored": (
        thirty_steps_in_closed_form, pricing_module, "epsilon_of",
        lambda real: lambda pairs, *rest: real(tuple((pair, 1) for pair, _ in pairs), *rest),
    ),
}  # fmt: skip


def forget():
    """Costs are remembered; a mutant must not see those of the sound code, nor leave its own."""
    pricing_module.dominating_pairs.cache_clear()
    composition_module.epsilon_of.cache_clear()
    pricing_module.gaussian_shift.cache_clear()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name, monkeypatch, request):
    check, target, attribute, mutant = MUTANTS[name]
    request.addfinalizer(forget)
    check()
    forget()
    monkeypatch.setattr(target, attribute, mutant(getattr(target, attribute)))
    with pytest.raises(AssertionError):
        check()
