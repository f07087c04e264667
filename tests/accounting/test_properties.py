"""What must hold of every accountant and every plan."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    FixedSizeSampled,
    Gaussian,
    GDPAccountant,
    Laplace,
    OnBlock,
    Partition,
    PLDAccountant,
    PoissonSampled,
    PureDPAccountant,
    RDPAccountant,
    UnknownCost,
    calibrate,
    price,
    supporting_accountants,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
pld = PLDAccountant()
QUICK = settings(max_examples=20, deadline=None)
# The lattice adds a few millionths; comparisons allow for it.
CLOSE = 1 + 2e-5

noise = st.floats(0.4, 20.0)
rates = st.floats(1e-3, 0.9)
deltas = st.floats(-10, -2).map(lambda exponent: 10.0**exponent)
adjacencies = st.sampled_from(list(Adjacency))


@st.composite
def samples(draw, adjacency):
    base = draw(st.sampled_from([Gaussian, Laplace]))(draw(noise))
    if adjacency is REPLACE_ONE and draw(st.booleans()):
        return FixedSizeSampled(draw(st.integers(1, 99)), 100, base)
    return PoissonSampled(draw(rates), base)


@st.composite
def plans(draw, adjacency):
    single = st.one_of(
        noise.map(Gaussian),
        noise.map(Laplace),
        st.builds(ApproximateDP, st.floats(0.01, 1.0), st.just(0.0)),
        samples(adjacency),
    )
    parts = draw(st.lists(st.tuples(single, st.integers(1, 20)), min_size=1, max_size=3))
    return Composed(tuple(parts))


def epsilon(event, delta, adjacency):
    return price(event, delta, adjacency)[0]


@QUICK
@given(st.data(), adjacencies, deltas, st.floats(1.01, 3.0))
def test_more_noise_costs_no_more(data, adjacency, delta, factor):
    plan = data.draw(plans(adjacency))
    assert epsilon(plan.scaled(factor), delta, adjacency) <= epsilon(plan, delta, adjacency) * CLOSE


@QUICK
@given(noise, rates, st.floats(1.05, 2.0), st.integers(1, 200), deltas, adjacencies)
def test_a_higher_rate_costs_no_less(sigma, rate, factor, steps, delta, adjacency):
    def cost(rate):
        plan = Composed(((PoissonSampled(rate, Gaussian(sigma)), steps),))
        return epsilon(plan, delta, adjacency)

    assert cost(rate) <= cost(min(1.0, rate * factor)) * CLOSE


@QUICK
@given(st.data(), adjacencies, deltas, st.integers(1, 30))
def test_more_steps_cost_no_less(data, adjacency, delta, more):
    event = data.draw(samples(adjacency))
    few, many = Composed(((event, 5),)), Composed(((event, 5 + more),))
    assert epsilon(few, delta, adjacency) <= epsilon(many, delta, adjacency) * CLOSE


@QUICK
@given(st.data(), adjacencies, deltas, st.floats(1.1, 100.0))
def test_a_larger_delta_costs_no_more(data, adjacency, delta, factor):
    plan = data.draw(plans(adjacency))
    larger = epsilon(plan, min(0.5, delta * factor), adjacency)
    assert larger <= epsilon(plan, delta, adjacency) * CLOSE


@QUICK
@given(st.data(), adjacencies, deltas)
def test_a_composition_costs_no_less_than_its_parts(data, adjacency, delta):
    first, second = data.draw(plans(adjacency)), data.draw(plans(adjacency))
    both = epsilon(Composed(((first, 1), (second, 1))), delta, adjacency)
    assert both * CLOSE >= epsilon(first, delta, adjacency)
    assert both * CLOSE >= epsilon(second, delta, adjacency)


@QUICK
@given(st.data(), adjacencies, deltas)
def test_a_composition_costs_no_more_than_the_sums(data, adjacency, delta):
    first, second = data.draw(plans(adjacency)), data.draw(plans(adjacency))
    both = epsilon(Composed(((first, 1), (second, 1))), 2 * delta, adjacency)
    apart = epsilon(first, delta, adjacency) + epsilon(second, delta, adjacency)
    assert both <= apart * CLOSE


@QUICK
@given(st.data(), deltas)
def test_replace_one_costs_no_less_than_zero_out(data, delta):
    plan = data.draw(plans(ZERO_OUT))
    assert epsilon(plan, delta, ZERO_OUT) <= epsilon(plan, delta, REPLACE_ONE) * CLOSE


@QUICK
@given(noise, rates, deltas)
def test_sampling_costs_no_more_than_all_rows(sigma, rate, delta):
    for adjacency in Adjacency:
        whole = epsilon(Gaussian(sigma), delta, adjacency)
        sampled = epsilon(PoissonSampled(rate, Gaussian(sigma)), delta, adjacency)
        assert sampled <= whole * CLOSE


@QUICK
@given(st.data(), adjacencies, deltas)
def test_delta_inverts_epsilon(data, adjacency, delta):
    plan = data.draw(plans(adjacency))
    for accountant in supporting_accountants(plan, adjacency):
        if accountant.name == "pure":
            continue
        cost = accountant.epsilon(plan, delta, adjacency)
        assume(cost > 1e-3)
        assert accountant.delta(plan, cost * (1 + 1e-4), adjacency) <= delta * 1.05
        if accountant.name == "gdp":
            assert accountant.delta(plan, cost, adjacency) == pytest.approx(delta, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.data(), adjacencies, st.floats(0.05, 8.0), deltas)
def test_calibration_ends_just_on_the_private_side(data, adjacency, budget, delta):
    plan = data.draw(plans(adjacency))
    try:
        found = calibrate(plan, budget, delta, adjacency)
    except UnknownCost:  # parts whose noise cannot be scaled need nearly all of the budget
        assert epsilon(plan.scaled(1e9), delta, adjacency) > 0.99 * budget
        return
    spent, _ = price(plan.scaled(found.scale), delta, adjacency, found.accountant)
    assert spent == found.epsilon <= budget
    # Noise may not matter: other guarantees keep their cost, and a sample that is rarer than delta
    # needs no noise at all.
    if epsilon(plan.scaled(found.scale * 0.9), delta, adjacency) > budget:
        assert spent >= 0.999 * budget
    else:
        assert epsilon(plan.scaled(0.01), delta, adjacency) <= budget


@QUICK
@given(noise, st.integers(1, 50), deltas, adjacencies)
def test_pld_meets_the_exact_form_of_gaussians(sigma, count, delta, adjacency):
    plan = Composed(((Gaussian(sigma), count),))
    exact = GDPAccountant().epsilon(plan, delta, adjacency)
    found = pld.epsilon(plan, delta, adjacency)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-5) + 1e-9


@QUICK
@given(st.floats(0.05, 5.0), deltas)
def test_pld_meets_the_exact_form_of_laplace(sigma, delta):
    exact = max(0.0, 1 / sigma + 2 * math.log1p(-delta))
    assert pld.epsilon(Laplace(sigma), delta, ZERO_OUT) == pytest.approx(exact, rel=2e-5)


@QUICK
@given(st.floats(0.05, 5.0), st.floats(0.0, 1e-4), deltas)
def test_pld_meets_the_exact_form_of_a_guarantee(bound, leak, delta):
    assume(abs(leak - delta) > 0.1 * delta)
    found = pld.epsilon(ApproximateDP(bound, leak), delta, ZERO_OUT)
    if leak > delta:
        assert found == math.inf
        return
    share = (delta - leak) * (1 + math.exp(-bound)) / (1 - leak)
    assert found == pytest.approx(max(0.0, bound + math.log1p(-share)), rel=2e-5)


@QUICK
@given(st.data(), adjacencies, deltas)
def test_pld_is_the_least_of_all(data, adjacency, delta):
    plan = data.draw(plans(adjacency))
    tight = pld.epsilon(plan, delta, adjacency)
    for other in (PureDPAccountant(), RDPAccountant()):
        if other.why_unsupported(plan, adjacency) is None:
            assert tight <= other.epsilon(plan, delta, adjacency) * CLOSE


@QUICK
@given(st.lists(noise, min_size=2, max_size=6), deltas, adjacencies)
def test_blocks_cost_their_maximum_and_repeats_their_sum(sigmas, delta, adjacency):
    partition = Partition(0, len(sigmas))
    blocks = [OnBlock(partition, k, Gaussian(sigma)) for k, sigma in enumerate(sigmas)]
    costliest = epsilon(Gaussian(min(sigmas)), delta, adjacency)
    assert epsilon(Composed.of(blocks), delta, adjacency) == costliest
    twice = epsilon(Composed(((blocks[0], 2),)), delta, adjacency)
    assert twice == epsilon(Composed(((Gaussian(sigmas[0]), 2),)), delta, adjacency)
    other_epoch = OnBlock(Partition(1, len(sigmas)), 0, Gaussian(sigmas[0]))
    again = epsilon(Composed(((blocks[0], 1), (other_epoch, 1))), delta, adjacency)
    assert again == twice
