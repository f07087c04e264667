"""The algebra of events: the walk, noise, trivial events, and that each event is emitted."""

import math
import pickle
from pathlib import Path

import pytest

import skdp
from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    NoisyMaximum,
    OnBlock,
    Partition,
    PoissonSampled,
    Selected,
    Shuffled,
    delta_at,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    price,
    walk,
)
from skdp.accounting.events import coarsened, noise_levels
from skdp.accounting.papers import zcdp_epsilon

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
PACKAGE = Path(skdp.__file__).parent
G = Gaussian(2.0)
EVENTS = [
    G,
    Laplace(2.0),
    NoisyMaximum(2.0),
    ApproximateDP(0.5, 1e-6),
    PoissonSampled(0.1, G),
    FixedSizeSampled(10, 100, G),
    OnBlock(Partition(0, 3), 1, G),
    OnBlock(Partition(0, 2, cuts=(0, 3, 9)), 1, G),
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


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_walk_misses_no_noise_and_can_change_what_is_inside(event):
    """Noise is found by `with_noise` and by `walk`, neither of which uses the other."""
    mechanisms = [part for part, _ in walk(event) if not part.inner()]
    assert sum((noise_levels(part) for part in mechanisms), ()) == noise_levels(event)
    assert event.with_inner(lambda inner: inner) == event
    changed = event.with_inner(lambda inner: Gaussian(9.0))
    assert changed.inner() == tuple((Gaussian(9.0), count) for _, count in event.inner())


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    ("trivial", "same_as"),
    [
        (PoissonSampled(1.0, G), G),
        (FixedSizeSampled(7, 7, G), G),
        (PoissonSampled(0.0, G), Composed()),
        (FixedSizeSampled(0, 7, G), Composed()),
        (PoissonSampled(0.3, Composed()), Composed()),
        (Composed(((Composed(((G, 2),)), 3),)), Composed(((G, 6),))),
        (OnBlock(Partition(0, 2), 0, Composed(((G, 2),))), Composed(((G, 2),))),
    ],
)
def test_trivial_events_cost_what_they_are(trivial, same_as, adjacency):
    assert price(trivial, 1e-6, adjacency) == price(same_as, 1e-6, adjacency)


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(0.0),
        Laplace(0.0),
        NoisyMaximum(0.0),
        PoissonSampled(0.1, Gaussian(0.0)),
        FixedSizeSampled(1, 10, Gaussian(0.0)),
        Composed(((G, 1), (Gaussian(0.0), 1))),
        ApproximateDP(math.inf),
        Selected(Gaussian(0.0), 10),
        Shuffled(100, Gaussian(0.0)),
    ],
)
def test_no_noise_costs_infinitely_much(event):
    assert price(event, 1e-6, REPLACE_ONE)[0] == math.inf
    assert delta_at(event, 3.0, REPLACE_ONE) == 1.0


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
        lambda: gaussian_mu(1.0, 2.0),  # without a refusal it would search without end
        lambda: gaussian_mu(-1.0, 1e-6),
        lambda: gaussian_epsilon(-1.0, 1e-6),
        lambda: gaussian_epsilon(1.0, -1e-6),
        lambda: gaussian_delta(-1.0, 1.0),
        lambda: zcdp_epsilon(-1.0, 1e-6),
        lambda: Gaussian(-1.0),
        lambda: Gaussian(math.nan),
        lambda: Gaussian(math.inf),
        lambda: Gaussian(1.0, spread=0.5),
        lambda: Gaussian(1.0, spread=2.5),
        lambda: Laplace(1.0, spread=math.sqrt(2)),
        lambda: NoisyMaximum(1.0, spread=3.0),
        lambda: ApproximateDP(-0.1),
        lambda: ApproximateDP(math.nan),
        lambda: ApproximateDP(1.0, 1.5),
        lambda: PoissonSampled(1.5, G),
        lambda: PoissonSampled(math.nan, G),
        lambda: FixedSizeSampled(5, 4, G),
        lambda: FixedSizeSampled(0, 0, G),
        lambda: Partition(0, 0),
        lambda: Partition(0, 2, cuts=(0, 3)),
        lambda: OnBlock(Partition(0, 2), 2, G),
        lambda: Shuffled(0, G),
        lambda: Shuffled(5, Composed(((G, 2),))),
        lambda: Selected(G, 1.0),
        lambda: Composed(((G, 0),)),
        lambda: Composed(((G, math.nan),)),
        lambda: Composed(((G, 2.5),)),
        lambda: Partition(-1, 2),
        lambda: Composed((("no event", 1),)),
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(ValueError, match="got"):
        wrong()


def test_a_parameter_that_is_no_number_proves_nothing():
    assert gaussian_epsilon(math.nan, 1e-6) == math.inf
