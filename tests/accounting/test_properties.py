"""Properties of the price of every plan."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

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
    UnknownCost,
    calibrate,
    delta_at,
    price,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
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


@QUICK
@given(st.data(), adjacencies, deltas, st.floats(1.01, 3.0))
def test_more_noise_costs_no_more(data, adjacency, delta, factor):
    plan = data.draw(plans(adjacency))
    assert cost(plan.scaled(factor), delta, adjacency) <= cost(plan, delta, adjacency) * CLOSE


@QUICK
@given(st.data(), adjacencies, deltas, st.floats(1.1, 100.0))
def test_a_larger_delta_costs_no_more(data, adjacency, delta, factor):
    plan = data.draw(plans(adjacency))
    larger = cost(plan, min(0.5, delta * factor), adjacency)
    assert larger <= cost(plan, delta, adjacency) * CLOSE


@QUICK
@given(st.data(), adjacencies, deltas)
def test_a_composition_costs_no_less_than_its_parts(data, adjacency, delta):
    first, second = data.draw(plans(adjacency)), data.draw(plans(adjacency))
    both = cost(Composed(((first, 1), (second, 1))), delta, adjacency)
    assert both * CLOSE >= cost(first, delta, adjacency)
    assert both * CLOSE >= cost(second, delta, adjacency)


@QUICK
@given(st.data(), adjacencies, deltas)
def test_a_composition_costs_no_more_than_the_sums(data, adjacency, delta):
    first, second = data.draw(plans(adjacency)), data.draw(plans(adjacency))
    both = cost(Composed(((first, 1), (second, 1))), 2 * delta, adjacency)
    apart = cost(first, delta, adjacency) + cost(second, delta, adjacency)
    assert both <= apart * CLOSE


@QUICK
@given(st.data(), deltas)
def test_replace_one_costs_no_less_than_zero_out(data, delta):
    plan = data.draw(plans(ZERO_OUT))
    assert cost(plan, delta, ZERO_OUT) <= cost(plan, delta, REPLACE_ONE) * CLOSE


@settings(max_examples=8, deadline=None)
@given(st.data(), adjacencies, deltas)
def test_delta_inverts_epsilon(data, adjacency, delta):
    plan = data.draw(plans(adjacency))
    spent, theorem = price(plan, delta, adjacency)
    assume(spent > 1e-3)
    assert delta_at(plan, spent * (1 + 1e-4), adjacency) <= delta * 1.05
    if theorem == "gdp":
        assert delta_at(plan, spent, adjacency) == pytest.approx(delta, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.data(), adjacencies, st.floats(0.05, 8.0), deltas)
def test_calibration_ends_just_on_the_private_side(data, adjacency, budget, delta):
    plan = data.draw(plans(adjacency))
    try:
        found = calibrate(plan, budget, delta, adjacency)
    except UnknownCost:  # parts whose noise cannot be scaled need nearly all of the budget
        assert cost(plan.scaled(1e9), delta, adjacency) > 0.99 * budget
        return
    spent, theorem = price(plan.scaled(found.scale), delta, adjacency)
    assert (spent, theorem) == (found.epsilon, found.accountant)
    assert spent <= budget
    # Noise may not matter: other guarantees keep their cost, and a sample that is rarer than delta
    # needs no noise at all.
    if cost(plan.scaled(found.scale * 0.9), delta, adjacency) > budget:
        assert spent >= 0.999 * budget
    else:
        assert cost(plan.scaled(0.01), delta, adjacency) <= budget


@QUICK
@given(noise, st.integers(1, 50), deltas, adjacencies)
def test_pld_meets_the_exact_form_of_gaussians(sigma, count, delta, adjacency):
    plan = Composed(((Gaussian(sigma), count),))
    exact = cost(plan, delta, adjacency)
    found = by_pairs(plan, delta, adjacency)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-5) + 1e-9


@QUICK
@given(st.floats(0.05, 5.0), st.floats(0.0, 1e-4), deltas)
def test_pld_meets_the_exact_form_of_a_guarantee(bound, leak, delta):
    assume(abs(leak - delta) > 0.1 * delta)
    found = by_pairs(ApproximateDP(bound, leak), delta, ZERO_OUT)
    if leak > delta:
        assert found == math.inf
        return
    share = (delta - leak) * (1 + math.exp(-bound)) / (1 - leak)
    assert found == pytest.approx(max(0.0, bound + math.log1p(-share)), rel=2e-5)


@QUICK
@given(st.lists(noise, min_size=2, max_size=6), deltas, adjacencies)
def test_blocks_cost_their_maximum_and_repeats_their_sum(sigmas, delta, adjacency):
    partition = Partition(0, len(sigmas))
    blocks = [OnBlock(partition, k, Gaussian(sigma)) for k, sigma in enumerate(sigmas)]
    costliest = cost(Gaussian(min(sigmas)), delta, adjacency)
    assert cost(Composed.of(blocks), delta, adjacency) == costliest
    twice = cost(Composed(((blocks[0], 2),)), delta, adjacency)
    assert twice == cost(Composed(((Gaussian(sigmas[0]), 2),)), delta, adjacency)
    other_epoch = OnBlock(Partition(1, len(sigmas)), 0, Gaussian(sigmas[0]))
    again = cost(Composed(((blocks[0], 1), (other_epoch, 1))), delta, adjacency)
    assert again == twice
