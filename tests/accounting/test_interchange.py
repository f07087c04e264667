"""A statement written as JSON and read back says, and costs, the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

import skdp
from replays import ASKED_BY
from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    Gaussian,
    Laplace,
    OnBlock,
    Partition,
    PoissonSampled,
    UnknownCost,
    from_dp_event,
    price,
    to_dp_event,
)
from skdp.solvers import GradientDescent, available, get_solver

MODELS = [
    *(skdp.DPLogisticRegression(solver=name, scaling="none") for name in sorted(available())),
    skdp.DPRidge(solver="whitened", privacy=skdp.Privacy(adjacency="replace_one")),
    skdp.DPLogisticRegression(delta=0),
    skdp.DPLogisticRegression(solver=("auto", {"batch_size": 0.5})),
    skdp.DPLogisticRegression(
        solver=GradientDescent(sampling="fixed_size", batch_size=0.5, max_iter=3),
        privacy=skdp.Privacy(adjacency="replace_one"),
    ),
    skdp.DPRidge(epsilon=np.inf),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_there_and_back(model):
    solver = model.solver
    if isinstance(solver, str) and solver != "auto":
        needs = get_solver(solver).needs
        model.set_params(**ASKED_BY.get(solver, {}))
        if "quadratic_loss" in needs and not isinstance(model, skdp.DPRidge):
            model = skdp.DPRidge(solver=solver)
    statement = model.plan(400, 5)
    again = skdp.PrivacyStatement.from_json(statement.to_json())
    assert repr(again) == repr(statement)
    assert str(again) == str(statement)
    assert again.event == statement.event
    if np.isfinite(statement.epsilon) and statement.delta > 0:
        assert again.epsilon_at(statement.delta) == statement.epsilon_at(statement.delta)


def without(name):
    return lambda stated: stated.pop(name)


def with_event(**changes):
    return lambda stated: stated["releases"][0]["event"].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("epsilon"), "epsilon must be given"),
        (without("releases"), "releases must be given"),
        (with_event(type="PosixPath"), "unknown type of event, 'PosixPath'"),
        (with_event(type="walk"), "unknown type of event, 'walk'"),
        (with_event(more=1), "Gaussian with other fields"),
    ],
)
def test_what_is_no_statement_is_refused(change, message):
    stated = json.loads(skdp.DPRidge().plan(400, 5).to_json())
    change(stated)
    with pytest.raises(ValueError, match=message):
        skdp.PrivacyStatement.from_dict(stated)


# ---------------------------------------------------------------- events of dp-accounting


def zero_out_epsilon(event, delta=1e-5):
    dpa = pytest.importorskip("dp_accounting")
    from dp_accounting import pld

    accountant = pld.PLDAccountant(dpa.NeighboringRelation.REPLACE_SPECIAL)
    return accountant.compose(event).get_epsilon(delta)


PLANS = [
    Composed(((Gaussian(3.0), 4), (Laplace(5.0), 2))),
    PoissonSampled(0.1, Gaussian(2.0)),
    Composed(((OnBlock(Partition(0, 2), 0, Gaussian(3.0)), 1), (Gaussian(4.0), 1))),
    Composed(((PoissonSampled(0.1, Gaussian(2.0)), 3), (Gaussian(9.0), 5))),
]


@pytest.mark.parametrize("event", PLANS, ids=str)
def test_their_accountant_agrees_on_translated_events(event):
    theirs = to_dp_event(event, "zero_out")
    ours = price(event, 1e-5, Adjacency.ZERO_OUT)[0]
    assert zero_out_epsilon(theirs) == pytest.approx(ours, rel=2e-3)
    back = from_dp_event(theirs, "zero_out")
    assert price(back, 1e-5, Adjacency.ZERO_OUT)[0] == pytest.approx(ours, rel=1e-6)


def test_noise_is_relative_to_the_sensitivity_of_the_relation():
    event = to_dp_event(Gaussian(3.0), "replace_one")
    assert event.noise_multiplier == 1.5
    assert from_dp_event(event, "replace_one").mu(Adjacency.REPLACE_ONE) == 1 / 1.5


def test_other_events_of_theirs():
    dpa = pytest.importorskip("dp_accounting")
    from dp_accounting import dp_event

    assert from_dp_event(dpa.NoOpDpEvent(), "label") == Composed()
    assert from_dp_event(dp_event.DiscreteLaplaceDpEvent(0.5, 2), "zero_out") == ApproximateDP(1.0)
    assert from_dp_event(dpa.NonPrivateDpEvent(), "zero_out").noise_multiplier == 0
    twice = dpa.SelfComposedDpEvent(dpa.GaussianDpEvent(2.0), 2)
    both = from_dp_event(dpa.ComposedDpEvent([twice, dpa.LaplaceDpEvent(3.0)]), "zero_out")
    assert dict(both.flattened()) == {Gaussian(2.0, 1.0): 2, Laplace(3.0, 1.0): 1}
    sampled = dpa.PoissonSampledDpEvent(0.1, dpa.GaussianDpEvent(2.0))
    for unknown, adjacency in ((sampled, "replace_one"), (dpa.ZCDpEvent(0.1), "zero_out")):
        with pytest.raises(ValueError, match="no counterpart under"):
            from_dp_event(unknown, adjacency)
    with pytest.raises(UnknownCost, match="no event for PoissonSampled"):
        to_dp_event(PoissonSampled(0.1, Gaussian(2.0)), "replace_one")
