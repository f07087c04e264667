"""adjacency="label": the targets alone are private, and the features cost nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from replays import seeded
from skdp._oracle import BinCounts, MagnitudeCounts
from skdp._oracle.public import Public
from skdp._oracle.releases import moments
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.releases.moments import GramSum
from skdp.accounting import Adjacency
from skdp.metrics import evaluate
from skdp.objective import Logistic, Problem, SquaredError
from skdp.solvers.core.whitened import Whitened

RELATION = Adjacency.REPLACE_ONE  # whose prices hold for labels
LABEL = skdp.Privacy(adjacency="label")


def made(make, **parameters):
    declared = {"classes": [0, 1]} if make is skdp.DPLogisticRegression else {}
    return make(privacy=seeded(adjacency="label"), **declared, **parameters)


def problem(make, rng, n_rows=50):
    X = rng.standard_normal((n_rows, 3)) * [1.0, 100.0, 1e-3] + [0.0, 2000.0, 0.0]
    y = 40.0 * X[:, 0] - 300.0
    return X, (y > -300).astype(int) if make is skdp.DPLogisticRegression else y


def test_the_budget_goes_to_the_targets(rng):
    X, y = problem(skdp.DPLogisticRegression, rng, 2000)
    model = made(skdp.DPLogisticRegression, solver="gd").fit(X, y)
    assert [release.kind for release in model.privacy_.releases] == ["gradient", "calibration"]
    assert model.privacy_.adjacency == "label"
    assert any("features of every record are public" in line for line in model.privacy_.assumptions)
    assert not any("found privately" in line for line in model.privacy_.assumptions)
    # Targets of regressions are scaled at a price, features and their moments at none.
    X, y = problem(skdp.DPRidge, rng, 2000)
    kinds = {release.kind for release in made(skdp.DPRidge).fit(X, y).privacy_.releases}
    assert "gram" not in kinds
    assert "histograms" in kinds


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one", "label"])
@pytest.mark.parametrize("make", [skdp.DPRidge, skdp.DPLogisticRegression])
@pytest.mark.parametrize("inference", [None, "coefficients"])
def test_the_plan_is_the_statement_without_the_rows(rng, adjacency, make, inference):
    model = made(make, inference=inference, solver="whitened", epsilon=3.0)
    model.set_params(privacy__adjacency=adjacency)
    planned, spent = model.plan(2000, 3), model.fit(*problem(make, rng, 2000)).privacy_
    assert planned.releases == spent.releases
    assert planned.epsilon == spent.epsilon


def test_columns_are_read_exactly(rng):
    X = rng.standard_normal((3000, 4)) * [1, 1e3, 1e-3, 5] + [0, 1e6, 1, -20]
    columns = made(skdp.DPRidge).fit(X, X[:, 0]).scaling_.columns
    assert np.allclose(columns.centre, X.mean(axis=0), atol=0.1 * X.std(axis=0))
    assert np.allclose(columns.scale, X.std(axis=0), rtol=0.15)


def test_without_stages_it_costs_what_replacing_a_record_does(rng):
    X, y = problem(skdp.DPLogisticRegression, rng, 500)
    given = {"scaling": "none", "solver": "gd", "max_iter": 20}
    label = made(skdp.DPLogisticRegression, **given).fit(X, y)
    record = made(skdp.DPLogisticRegression, **given).set_params(privacy__adjacency="replace_one")
    assert np.array_equal(label.coef_, record.fit(X, y).coef_)
    assert label.privacy_.epsilon == record.privacy_.epsilon


def test_one_budget_holds_one_adjacency(rng):
    X, y = problem(skdp.DPRidge, rng, 500)
    budget = skdp.PrivacyBudget(2.0, 1e-6, "label", allow_seeded_noise=True)
    model = made(skdp.DPRidge).set_params(privacy__budget=budget).fit(X, y)
    assert budget.statement.adjacency == "label"
    other = clone(model).set_params(privacy__adjacency="replace_one")
    with pytest.raises(ValueError, match=r"'replace_one'.*'label'"):
        other.fit(X, y)


@pytest.mark.parametrize(
    "refusing",
    [
        lambda X, y: skdp.DPStandardScaler(privacy=LABEL).fit(X),
        lambda X, y: evaluate(skdp.DPRidge().fit(X, y), X, y, epsilon=1.0, privacy=LABEL),
    ],
    ids=["scaler", "scores"],
)
def test_it_is_for_models(rng, refusing):
    with pytest.raises(ValueError, match="adjacency must be one of 'zero_out', 'replace_one'"):
        refusing(*problem(skdp.DPRidge, rng))


@pytest.mark.parametrize(
    ("loss", "cap", "expected"),
    [
        (Logistic(), 0.4, (0.4, 2.0)),
        (Logistic(), 0.8, (0.8, 1.25)),
        (Logistic(), 5.0, (1.0, 1.0)),
        (SquaredError(), 0.8, (0.8, 2.0)),
    ],
)
def test_two_labels_are_as_far_apart_as_residuals_can_be(loss, cap, expected):
    """Not with weights, which may follow from labels, nor of whole rows."""
    facts = {"n_rows": 9, "n_features": 2, "n_outputs": 1, "epsilon": 1.0, "delta": 1e-6}
    public = Public(adjacency=RELATION, labels_alone=True, **facts)
    context = PublicContext(public, Problem(loss), 1.0)
    assert moments.capped_residuals_of(context, cap) == pytest.approx(expected)
    for other in (replace(public, weighted=True), replace(public, labels_alone=False)):
        assert moments.capped_residuals_of(replace(context, public=other), cap) == (cap, 2.0)


def test_residuals_are_capped_less_where_the_bound_is_that_of_labels():
    class Other(Logistic):
        """With this link, too, but without that bound."""

    facts = {"n_rows": 99, "n_features": 2, "n_outputs": 1, "epsilon": 1.0, "delta": 1e-6}
    public = Public(adjacency=RELATION, labels_alone=True, **facts)
    norms = [Whitened().resolve(public, Problem(loss)).clip_norm for loss in (Logistic(), Other())]
    assert norms[1] < norms[0]


def test_audit(monkeypatch):
    assert skdp.audit.replay(made(skdp.DPRidge, solver="gd", max_iter=3)).ok
    for statistic in (MagnitudeCounts, BinCounts):
        monkeypatch.setattr(statistic, "reads_targets", False)
    assert not skdp.audit.replay(made(skdp.DPRidge, solver="gd", max_iter=3)).ok


def test_statistics_that_read_targets_say_so():
    assert not GramSum(1.0).reads_targets
    assert MagnitudeCounts(True, True).reads_targets
    assert not MagnitudeCounts(True, False).reads_targets
