"""A statement written as JSON and read back says, and costs, the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

import skdp
from replays import ASKED_BY
from skdp.accounting import (
    Adjacency,
    Composed,
    Cost,
    Gaussian,
    Laplace,
    PoissonSampled,
    price,
)
from skdp.solvers import (
    AdaptiveShuffledSGD,
    GradientDescent,
    ShuffledSGD,
    available,
    get_solver,
)

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


@pytest.mark.parametrize("solver", [ShuffledSGD, AdaptiveShuffledSGD])
def test_a_pass_writes_its_cuts_only_once(solver):
    """The text grows with the number of blocks, not with its square, and keeps every release."""
    model = skdp.DPRidge(solver=solver(max_iter=400))
    statements = model.plan(20_000, 3), model.set_params(solver__max_iter=800).plan(20_000, 3)
    smaller, larger = (statement.to_json() for statement in statements)
    assert len(smaller) < len(larger) < 2.1 * len(smaller)
    assert len(larger) < 100 * len(statements[1].releases)
    assert skdp.PrivacyStatement.from_json(larger) == statements[1]
    both = Cost.of(statements[1]) + Cost.of(statements[1])
    assert skdp.PrivacyStatement.from_json(both.statement().to_json()) == both.statement()


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
        (lambda stated: stated["releases"].insert(0, {"like": 0, "block": 0}), "lacks an entry"),
        (lambda stated: stated["releases"].append({"like": -1, "block": 0}), "lacks an entry"),
        (lambda stated: stated["releases"].append({"like": 0, "block": None}), "lacks an entry"),
        (lambda stated: stated["releases"][0].pop("kind"), "lacks an entry"),
    ],
)
def test_what_is_no_statement_is_refused(change, message):
    stated = json.loads(skdp.DPRidge().plan(400, 5).to_json())
    change(stated)
    with pytest.raises(ValueError, match=message):
        skdp.PrivacyStatement.from_dict(stated)


# ---------------------------------------------------------------- events of dp-accounting


PLANS = [
    Composed(((Gaussian(3.0), 4), (Laplace(5.0), 2))),
    Composed(((PoissonSampled(0.1, Gaussian(2.0)), 3), (Gaussian(9.0), 5))),
]


@pytest.mark.parametrize("event", PLANS, ids=str)
def test_their_accountant_agrees_on_translated_events(event):
    dpa = pytest.importorskip("dp_accounting")
    from dp_accounting import pld

    def translated(part):
        if isinstance(part, PoissonSampled):
            return dpa.PoissonSampledDpEvent(part.rate, translated(part.event))
        kind = dpa.GaussianDpEvent if isinstance(part, Gaussian) else dpa.LaplaceDpEvent
        return kind(part.noise_multiplier)

    accountant = pld.PLDAccountant(dpa.NeighboringRelation.REPLACE_SPECIAL)
    for part, count in event.parts:
        accountant.compose(translated(part), count)
    ours = price(event, 1e-5, Adjacency.ZERO_OUT)[0]
    assert accountant.get_epsilon(1e-5) == pytest.approx(ours, rel=2e-3)
