"""A statement as text and as HTML lists the same facts."""

from __future__ import annotations

import html

import pytest

import skdp
from skdp.accounting import gaussian_epsilon, gaussian_mu

SHAPE = (1000, 5)


def test_mu_stands_beside_epsilon_and_means_the_same():
    statement = skdp.DPRidge(epsilon=2.0).plan(*SHAPE)
    assert statement.mu == pytest.approx(gaussian_mu(2.0, 1e-6))
    assert gaussian_epsilon(statement.mu, 1e-9) == pytest.approx(statement.epsilon_at(1e-9))
    assert f"mu = {statement.mu:.6g}" in str(statement)
    assert f"mu = {statement.mu:.6g}" in statement._repr_html_()


@pytest.mark.parametrize(
    "parameters",
    [{"delta": 0.0}, {"solver": ("gd", {"batch_size": 50, "max_iter": 20}), "scaling": "none"}],
    ids=["Laplace", "batches"],
)
def test_what_has_no_mu_says_none(parameters):
    statement = skdp.DPRidge(**parameters).plan(*SHAPE)
    assert statement.mu is None
    assert "Gaussian DP" not in str(statement)
    assert statement.to_dict()["mu"] is None


@pytest.mark.parametrize(
    "model",
    [
        skdp.DPRidge(),
        skdp.DPRidge(delta=0.0),
        skdp.DPRidge(epsilon=float("inf")),
        skdp.DPRidge(privacy=skdp.Privacy(adjacency="replace_one"), solver="shuffled_sgd"),
    ],
    ids=str,
)
def test_every_rendering_contains_every_fact(model):
    statement = model.plan(*SHAPE)
    facts = dict(statement._facts())
    assert facts["assumed"] == statement.assumptions
    assert len(facts["released"]) >= len({release.kind for release in statement.releases})
    for rendering in (str(statement), html.unescape(statement._repr_html_())):
        for label, texts in facts.items():
            assert label in rendering
            assert all(text in rendering for text in texts)
