"""Statements in the words of registries and model cards, and their mu."""

from __future__ import annotations

import json

import pytest

import skdp
from skdp.accounting import gaussian_epsilon, gaussian_mu, model_card_section

SHAPE = (1000, 5)


def test_mu_stands_beside_epsilon_and_means_the_same():
    statement = skdp.DPRidge(epsilon=2.0).plan(*SHAPE)
    assert statement.mu == pytest.approx(gaussian_mu(2.0, 1e-6))
    assert gaussian_epsilon(statement.mu, 1e-9) == pytest.approx(statement.epsilon_at(1e-9))
    assert f"mu = {statement.mu:.6g}" in str(statement)
    assert f"mu = {statement.mu:.6g}" in statement._repr_html_()


@pytest.mark.parametrize(
    "parameters",
    [{"delta": 0.0}, {"solver": "gd", "batch_size": 50, "max_iter": 20, "scaling": "none"}],
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
def test_an_entry_has_every_field_and_every_sentence(model):
    statement = model.plan(*SHAPE)
    entry = json.loads(json.dumps(statement.to_registry()))
    assert entry["guarantee"]["epsilon"] == statement.to_dict()["epsilon"]
    said = [*entry["unprotected_quantities"], *entry["tuning_and_preprocessing"]]
    assert sorted(said) == sorted(statement.assumptions)
    assert sum(one["count"] for one in entry["mechanisms"]) == sum(
        release.count for release in statement.releases
    )
    assert {"floating_point", "timing", "randomness"} <= set(entry["implementation"])
    [(title, text)] = model_card_section(statement).items()
    assert title == "Privacy"
    assert all(sentence in text for sentence in statement.assumptions)


def test_an_entry_of_a_fit_with_groups_says_who_is_protected():
    model = skdp.DPRidge()
    grouped, plain = model.plan(None, 5, n_groups=987), model.plan(987, 5)
    entry, of_rows = grouped.to_registry(), plain.to_registry()
    assert entry["unit_of_privacy"]["unit"] == "one of 987 groups"
    assert of_rows["unit_of_privacy"]["unit"] == "one of 987 rows"
    assert any("numbers of their rows are not" in text for text in entry["unprotected_quantities"])
    assert entry["mechanisms"] == of_rows["mechanisms"]
    assert set(entry) == set(of_rows)
    assert model_card_section(grouped)["Privacy"] != model_card_section(plain)["Privacy"]
