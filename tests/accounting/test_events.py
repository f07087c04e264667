"""The algebra of events: what is trivially something simpler, and what noise they carry."""

import math
import pickle

import pytest

from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    BallsAndBins,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    OnBlock,
    OnePass,
    Partition,
    PoissonSampled,
    Selected,
    Shuffled,
    available_accountants,
    knowing,
    price,
)
from skdp.accounting.plan import coarsened, noise_levels, sequence_of

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
G = Gaussian(2.0)
EVENTS = [
    G,
    Laplace(2.0),
    ApproximateDP(0.5, 1e-6),
    PoissonSampled(0.1, G),
    FixedSizeSampled(10, 100, G),
    OnBlock(Partition(0, 3), 1, G),
    BallsAndBins(3, G),
    OnBlock(Partition(0, 2, cuts=(0, 3, 9)), 1, G),
    OnePass(7, G),
    Shuffled(1000, G),
    Selected(G, 10),
    Composed(((G, 2), (Laplace(1.0), 3))),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_are_values(event):
    assert pickle.loads(pickle.dumps(event)) == event
    assert hash(event) == hash(pickle.loads(pickle.dumps(event)))
    assert event.scaled(1.0) == event
    assert event.scaled(2.0).scaled(0.5) == event


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_scaling_scales_every_noise_level(event):
    assert noise_levels(event.scaled(3.0)) == tuple(3 * level for level in noise_levels(event))


def test_a_guarantee_has_no_noise_to_scale():
    assert ApproximateDP(0.5, 1e-6).scaled(9.0) == ApproximateDP(0.5, 1e-6)
    assert noise_levels(ApproximateDP(0.5)) == ()


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    ("trivial", "same_as"),
    [
        (PoissonSampled(1.0, G), G),
        (FixedSizeSampled(7, 7, G), G),
        (PoissonSampled(0.0, G), Composed()),
        (FixedSizeSampled(0, 7, G), Composed()),
        (PoissonSampled(0.3, Composed()), Composed()),
        (BallsAndBins(1, G), G),
        (Composed(((Composed(((G, 2),)), 3),)), Composed(((G, 6),))),
        (OnBlock(Partition(0, 2), 0, Composed(((G, 2),))), Composed(((G, 2),))),
    ],
)
def test_trivial_events_cost_what_they_are(trivial, same_as, adjacency):
    assert price(trivial, 1e-6, adjacency) == price(same_as, 1e-6, adjacency)


def test_nothing_costs_nothing():
    assert price(Composed(), 0.0, ZERO_OUT)[0] == 0.0


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(0.0),
        Laplace(0.0),
        PoissonSampled(0.1, Gaussian(0.0)),
        FixedSizeSampled(1, 10, Gaussian(0.0)),
        Composed(((G, 1), (Gaussian(0.0), 1))),
        ApproximateDP(math.inf),
        Selected(Gaussian(0.0), 10),
        Shuffled(100, Gaussian(0.0)),
    ],
)
def test_no_noise_costs_infinitely_much(event):
    for accountant in knowing(event, REPLACE_ONE):
        assert accountant.epsilon(event, 1e-6, REPLACE_ONE) == math.inf


def test_counts_are_gathered():
    plan = Composed(((G, 1), (Laplace(1.0), 1), (G, 2), (PoissonSampled(1.0, G), 4)))
    assert sequence_of(plan) == {G: 7, Laplace(1.0): 1}


def test_coarsening_never_adds_noise():
    plan = tuple((PoissonSampled(0.1, Gaussian(1 + k / 97)), 1) for k in range(97))
    rounded = coarsened(plan, 1.05)
    assert len(rounded) < 20
    assert sum(count for _, count in rounded) == 97
    least = min(noise_levels(event)[0] for event, _ in rounded)
    assert 1 / 1.05 <= least <= 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Gaussian(-1.0),
        lambda: Gaussian(math.nan),
        lambda: Gaussian(math.inf),
        lambda: Gaussian(1.0, spread=0.5),
        lambda: Gaussian(1.0, spread=2.5),
        lambda: Laplace(1.0, spread=math.sqrt(2)),
        lambda: ApproximateDP(-0.1),
        lambda: ApproximateDP(math.nan),
        lambda: ApproximateDP(1.0, 1.5),
        lambda: PoissonSampled(1.5, G),
        lambda: PoissonSampled(math.nan, G),
        lambda: FixedSizeSampled(5, 4, G),
        lambda: FixedSizeSampled(0, 0, G),
        lambda: Partition(0, 0),
        lambda: Partition(0, 2, shares=(0.4, 0.4)),
        lambda: Partition(0, 2, shares=(1.0,)),
        lambda: OnBlock(Partition(0, 2), 2, G),
        lambda: BallsAndBins(0, G),
        lambda: Shuffled(0, G),
        lambda: Shuffled(5, Composed(((G, 2),))),
        lambda: Selected(G, 1.0),
        lambda: Selected(G, 5, shape=-1.0),
        lambda: Composed(((G, 0),)),
        lambda: Composed((("no event", 1),)),
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(ValueError, match=r"got|single event"):
        wrong()


@pytest.mark.parametrize("mean", [1.001, 1.5, 10, 1e4])
@pytest.mark.parametrize("shape", [0.0, 0.3, 1.0, 4.0])
def test_stopping_parameter_gives_the_mean(mean, shape):
    gamma = Selected(G, mean, shape).gamma
    assert 0 < gamma < 1
    odds = (1 - gamma) / gamma
    found = odds / -math.log(gamma) if shape == 0 else shape * odds / (1 - gamma**shape)
    assert found == pytest.approx(mean, rel=1e-8)


def test_every_accountant_says_what_it_is():
    lines = available_accountants()
    assert set(lines) == {
        "gdp", "zcdp", "rdp", "pld", "pure", "advanced", "optimal", "parallel", "shuffle",
        "selection", "balls_and_bins", "mixed", "objective",
    }  # fmt: skip
    assert all(line.endswith(".") for line in lines.values())
