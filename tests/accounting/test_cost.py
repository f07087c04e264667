"""Costs: composed on the same rows, the maximum on disjoint parts of them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from composition import DELTA, together
from skdp.accounting import (
    Cost,
    Gaussian,
    Laplace,
    OnBlock,
    Partition,
    ReleaseRecord,
    composed,
    gaussian_mu,
)


def fit(epsilon=1.0, delta=DELTA, adjacency="zero_out", **facts):
    event = Gaussian(1 / gaussian_mu(epsilon, delta), spread=1.0)
    return Cost((ReleaseRecord.of("fit", event),), delta, adjacency, **facts)


def epsilon(cost):
    return cost.price()[0]


def test_same_rows_compose_and_disjoint_parts_cost_the_maximum():
    one, other = fit(1.0), fit(0.5)
    assert epsilon(one + other) == pytest.approx(together(1.0, 0.5))
    assert epsilon(one | other) == epsilon(other | one) == pytest.approx(1.0)
    # A hold-out after a search on the first part; and the maximum of three.
    assert epsilon((one + other) | fit(1.1)) == pytest.approx(together(1.0, 0.5))
    assert epsilon(one | other | fit(2.0)) == pytest.approx(2.0)


def test_splits_of_several_costs_are_not_taken_for_each_other():
    """A record may be in the costlier part of each split; the same split is one."""
    halves = fit(1.0) | fit(0.1)
    assert epsilon(halves + (fit(0.1) | fit(1.0))) == pytest.approx(together(1.0, 1.0), rel=1e-4)
    assert epsilon(composed("a test", [halves] * 3)) == pytest.approx(together(*[1.0] * 3))
    split = [((Partition(0, 2, shared="a"), number),) for number in (0, 1)]
    parts = [replace(fit(1.0), part=part) for part in split]
    assert epsilon(parts[0] + parts[1]) == pytest.approx(1.0)
    assert epsilon(parts[0] + parts[0]) == pytest.approx(together(1.0, 1.0))
    assert "part 1 of 2 of a random split" in parts[0].statement().assumptions[-1]
    assert "part 1 of 2 of a random split" in (parts[0] + fit()).assumptions[-1]


@pytest.mark.parametrize("seed", range(5))
def test_algebra_of_costs(seed):
    """Sums do not depend on order or brackets; a maximum is no more than a sum."""
    rng = np.random.default_rng(seed)
    split = Partition(0, 2)
    costs = []
    for _ in range(3):
        events = [
            Gaussian(float(noise)) if rng.integers(2) else Laplace(float(noise), spread=1.0)
            for noise in rng.uniform(2, 9, 2)
        ]
        events.append(OnBlock(split, int(rng.integers(2)), events[0]))
        records = tuple(ReleaseRecord.of("one", event, int(rng.integers(1, 4))) for event in events)
        costs.append(Cost(records, DELTA, "replace_one"))
    one, two, three = costs
    whole = epsilon(one + two + three)
    for order in itertools.permutations(costs):
        assert epsilon(order[0] + (order[1] + order[2])) == pytest.approx(whole, rel=1e-5)
    largest = max(map(epsilon, (one, two)))
    assert largest <= epsilon(one | two) * (1 + 1e-6) <= epsilon(one + two) * (1 + 1e-5)
    assert sum(record.count for record in (one + two).releases) == sum(
        record.count for cost in (one, two) for record in cost.releases
    )


def test_terms_that_differ_do_not_add_up():
    for join in (lambda a, b: a + b, lambda a, b: a | b):
        with pytest.raises(ValueError, match=r"different adjacencies \(\['label', 'zero_out'\]\)"):
            join(fit(), fit(adjacency="label"))
        with pytest.raises(ValueError, match="protect groups"):
            join(fit(), fit(unit="group"))
    with pytest.raises(ValueError, match=r"^total: the fits state different deltas"):
        composed("total", [fit(), fit(delta=1e-7)])
    with pytest.raises(ValueError, match=r"state different deltas\. Pass the delta"):
        (fit() + fit(delta=1e-7)).statement()
    assert replace(fit() + fit(delta=1e-7), delta=1e-5).statement().delta == 1e-5
    with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\)"):
        fit(delta=1.0).statement()


def test_a_certified_price_holds_for_the_releases_and_the_delta_that_it_was_certified_for():
    cost = fit(1.0).certify(0.5, "a theorem")
    assert cost.price() == (0.5, "a theorem")
    part = replace(cost, part=((Partition(0, 2, shared="a"), 1),), assumptions=("a",))
    assert part.statement().epsilon == 0.5
    for other in (
        cost + fit(),
        cost | fit(),
        replace(cost, delta=1e-5),
        replace(cost, releases=fit(2.0).releases),
        composed("a test", [cost], 1e-5),
        Cost.of(cost.statement()),
    ):
        assert other.price()[1] == "gdp"
    assert replace(cost, delta=1e-5).price()[1] == "gdp"
