"""The privacy statement of a fit, its plan, and the total of several."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from replays import seeded
from skdp.accounting import gaussian_epsilon
from skdp.audit import replay


def test_statement(case):
    estimator, X, y = case
    model = estimator(solver="gd", epsilon=0.7, delta=1e-7, max_iter=20, scaling="none").fit(X, y)
    statement = model.privacy_
    assert 0.7 * (1 - 1e-6) <= statement.epsilon <= 0.7
    assert (statement.delta, statement.adjacency, statement.accountant) == (1e-7, "zero_out", "gdp")
    (record,) = statement.releases
    assert (record.kind, record.count) == ("gradient", 20)
    # by hand: 20 releases of multiplier s are (sqrt(20)/s)-GDP
    by_hand = gaussian_epsilon(math.sqrt(20) / record.noise_multiplier, 1e-7)
    assert by_hand == pytest.approx(0.7, rel=1e-6)
    assert statement.epsilon_at(1e-7) == pytest.approx(statement.epsilon)
    assert statement.epsilon_at(1e-9) > statement.epsilon > statement.epsilon_at(1e-4)
    assert statement.delta_at(0.7) == pytest.approx(1e-7, rel=1e-3)
    told = json.loads(json.dumps(statement.to_dict()))
    assert told["releases"][0]["count"] == 20
    assert "20 x gradient" in str(statement)
    assert "<table>" in statement._repr_html_()
    with pytest.raises(AttributeError):
        statement.epsilon = 0.1


def test_replace_one_needs_twice_the_noise(case):
    estimator, X, y = case
    given = {"solver": "gd", "max_iter": 9, "scaling": "none"}
    both = [skdp.Privacy(adjacency=adjacency) for adjacency in ("zero_out", "replace_one")]
    fits = [estimator(privacy=privacy, **given).fit(X, y) for privacy in both]
    one, two = (fit.privacy_.releases[0].noise_multiplier for fit in fits)
    assert two == pytest.approx(2 * one, rel=1e-9)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one", "label"])
def test_a_plan_knows_of_weights(case, adjacency):
    """With weights there is no correction of the size, and features alone tell no columns."""
    estimator, X, y = case
    model = estimator(privacy=skdp.Privacy(adjacency=adjacency))
    planned = model.plan(*X.shape, weighted=True)
    fitted = model.fit(X, y, np.ones(len(y))).privacy_
    assert (fitted.releases, fitted.epsilon) == (planned.releases, planned.epsilon)
    assert fitted.assumptions == planned.assumptions
    assert clone(model).fit(X, y).privacy_.releases == model.plan(*X.shape).releases


def test_what_is_assumed_is_said(classification):
    X, y = classification

    def said(**parameters):
        given = {"classes": [0, 1], **parameters}
        return " ".join(skdp.DPLogisticRegression(**given).fit(X, y).privacy_.assumptions)

    assert "n = 400, is public" in said()
    with pytest.warns(skdp.PrivacyWarning, match="classes="):
        assert "taken from y" in said(classes=None)
    assert "as declared" in said()
    assert "norm of rows, 3, was chosen" in said(scaling=skdp.RowNorm(3.0))
    assert "seed" not in said()
    assert "follows from a seed, which must stay secret" in said(privacy=seeded())


def test_total_privacy_of_two_fits_is_one_of_both(case):
    estimator, X, y = case
    models = [estimator(solver="gd", max_iter=5, scaling="none").fit(X, y) for _ in range(2)]
    total = skdp.total_privacy(*models, delta=1e-6)
    (record,) = models[0].privacy_.releases
    by_hand = gaussian_epsilon(math.sqrt(10) / record.noise_multiplier, 1e-6)
    assert total.epsilon == pytest.approx(by_hand)
    assert 1.0 < total.epsilon < 2.0
    assert sum(record.count for record in total.releases) == 10
    assert skdp.total_privacy(models[0], delta=1e-6).epsilon == pytest.approx(1.0, rel=1e-6)


def test_steps_are_printed(capsys, regression, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # without tqdm
    skdp.DPRidge(solver="whitened", verbose=1).fit(*regression)
    steps = capsys.readouterr().out.splitlines()
    assert steps[:2] == [
        "[DPRidge] estimating column ranges, 1 of 5",
        "[DPRidge] estimating second moments, 2 of 5",
    ]
    assert steps[-1].endswith("5 of 5"), "each kind of step is printed once"
    prior = skdp.PublicSample(regression[0][:50], y=regression[1][:50])
    skdp.DPRidge(prior=prior, verbose=1).fit(*regression)
    printed = capsys.readouterr().out
    assert printed.count(", 1 of ") == 2, "the fits of the slope and the difference"


def test_a_bar_of_tqdm_shows_steps(capsys, regression):
    pytest.importorskip("tqdm")
    model = skdp.DPRidge(solver="whitened", verbose=1).fit(*regression)
    shown = capsys.readouterr()
    n_releases = sum(one.count for one in model.privacy_.releases)
    assert f"{n_releases}/{n_releases}" in shown.err
    assert "[DPRidge] estimating second moments, 2 of 5" in shown.err
    assert shown.out == ""
    audited = replay(skdp.DPRidge(solver="gd", max_iter=3, verbose=1))
    assert audited.ok, "it shows nothing that depends on the rows, such as times"
