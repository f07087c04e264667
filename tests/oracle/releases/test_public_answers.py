"""Which answers are public: a table by hand, for every statistic and every kind of rows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.releases import OTHERS, PROOFS, STATISTICS
from skdp._oracle.public import Public
from skdp._oracle.releases import (
    histograms,
    mechanisms,
    moments,
    record_sums,
)
from skdp._oracle.releases.base import PublicContext, Release
from skdp._oracle.sources.base import IN_MEMORY, REPEATABLE
from skdp.accounting import Adjacency
from skdp.objective import (
    Huber,
    Logistic,
    Multinomial,
    Problem,
    SmoothedHinge,
    SmoothedPinball,
    SquaredError,
    TweedieLog,
)


class OwnLogistic(Logistic):
    """Has the same name, and may have another second derivative."""


LOSSES = {
    "squared": SquaredError(),
    "logistic": Logistic(),
    "own logistic": OwnLogistic(),
    "multinomial": Multinomial(3),
    "huber": Huber(),
    "hinge": SmoothedHinge(),
    "pinball": SmoothedPinball(),
    "tweedie": TweedieLog(),
}
EVERY = set(LOSSES)
POINT = np.zeros((5, 1))


def hessian(residual_bound):
    coordinates = moments.Coordinates(np.eye(5))
    return moments.CappedHessian(POINT, coordinates, 1.0, residual_bound)


def bins(features, targets):
    n_columns = 4 * features + targets
    return histograms.BinCounts(features, targets, np.zeros(n_columns), np.ones(n_columns), 3)


# Statistics by name, and the losses for which no target plays a part. Whatever is not here, and all
# else that `STATISTICS` makes, is never public.
TABLE = {
    "magnitudes": (histograms.MagnitudeCounts(True, False), EVERY),
    "magnitudes with targets": (histograms.MagnitudeCounts(True, True), set()),
    "bins": (bins(True, False), EVERY),
    "bins with targets": (bins(True, True), set()),
    "gram": (moments.GramSum(1.0), EVERY),
    # Without weights, that is: "label" with weights is another situation.
    "weights": (histograms.WeightCounts(-2.0, 1.0, 4), EVERY),
    "sums of weights": (record_sums.WeightSums(1.0, np.zeros(0)), EVERY),
    "sums of weights by label": (record_sums.WeightSums(1.0, np.ones(2)), set()),
    "hessian": (hessian(residual_bound=1.0), {"logistic"}),
    "hessian, residuals capped": (hessian(residual_bound=0.99), set()),
}
MADE = {type(statistic) for statistic, _ in TABLE.values()}
TABLE |= {
    kind.__name__: (STATISTICS[kind](POINT), set()) for kind in STATISTICS if kind not in MADE
}
# Adjacency "label", weights, groups, rows that are read once: public in the first case alone.
SITUATIONS = [*itertools.product([True, False], repeat=4)]


def context(loss, labels_alone, weighted, grouped, once):
    public = Public(
        n_rows=60,
        n_features=4,
        n_outputs=3 if loss == "multinomial" else 1,
        adjacency=Adjacency.REPLACE_ONE,
        epsilon=1.0,
        delta=1e-6,
        labels_alone=labels_alone,
        weighted=weighted,
        unit="group" if grouped else "row",
        provides=IN_MEMORY - {REPEATABLE} if once else IN_MEMORY,
    )
    return PublicContext(public, Problem(LOSSES[loss]), 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", TABLE)
def test_an_answer_is_public_in_these_cases_alone(name, loss):
    statistic, losses = TABLE[name]
    noise = mechanisms.GaussianNoise()
    answer = mechanisms.NoisyStatistic(statistic, noise)
    of_a_batch = mechanisms.NoisyStatistic(statistic, noise, mechanisms.Poisson(0.5))
    for situation in SITUATIONS:
        expected = loss in losses and situation == (True, False, False, False)
        about = context(loss, *situation)
        assert answer.is_public(about) is expected, situation
        assert not of_a_batch.is_public(about), situation
    for adjacency in Adjacency:  # both relations whose rows differ
        about = context(loss, False, False, False, False)
        about = replace(about, public=replace(about.public, adjacency=adjacency))
        assert not answer.is_public(about)


def test_every_statistic_is_in_the_table():
    assert {type(statistic) for statistic, _ in TABLE.values()} == set(STATISTICS)


def test_no_release_but_that_of_a_statistic_is_ever_public():
    releases = {kind for kind in PROOFS.keys() | OTHERS.keys() if issubclass(kind, Release)}
    own = {kind for kind in releases if kind.is_public is not Release.is_public}
    assert mechanisms.NoisyStatistic in releases
    assert own == {mechanisms.NoisyStatistic}
