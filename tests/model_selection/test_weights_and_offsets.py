"""Weights and offsets of rows reach every fit and every score of hold-outs and searches."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp.metrics import evaluate
from skdp.model_selection import DPHoldout, DPSearchCV, dp_cross_validate

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RANGE = (-9.0, 9.0)
TERMS = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(0))}


def held_out(model, *rows, target_range=RANGE, **beside):
    """Return the score of a hold-out."""
    halves = DPHoldout(*rows, random_state=0, **beside)
    model = halves.fit(model.set_params(epsilon=np.inf) if hasattr(model, "epsilon") else model)
    (score,) = halves.evaluate(model, epsilon=np.inf, target_range=target_range).values()
    return score


def searched(model, *rows, target_range=RANGE, **beside):
    """Return the score of a search over one candidate."""
    options = {"epsilon": np.inf, "target_range": target_range, **TERMS}
    return DPSearchCV(model, {}, **options).fit(*rows, **beside).best_score_


def cross_validated(model, *rows, target_range=RANGE, **beside):
    """Return the mean score over folds."""
    options = {"epsilon": np.inf, "cv": 3, "target_range": target_range, **TERMS}
    (score,) = dp_cross_validate(model, *rows, **options, **beside).values()
    return score


TOOLS = [held_out, searched, cross_validated]
tools = pytest.mark.parametrize("tool", TOOLS)


@pytest.fixture
def rows(rng):
    """Rows, half of which contradict the others, weights that leave them out, and groups."""
    X, is_other = rng.standard_normal((900, 3)), np.arange(900) % 2 == 1
    y = np.clip(X @ [1.0, -1.0, 0.5], -8.0, 8.0)
    weights = np.where(is_other, 0.0, rng.uniform(1.0, 5.0, 900))
    return X, np.where(is_other, 3.0 - y, y), weights, np.arange(900) // 3


RIDGE = skdp.DPRidge(epsilon=np.inf, alpha=0.0)


@tools
@pytest.mark.parametrize("model", [RIDGE, make_pipeline(FunctionTransformer(), RIDGE)])
def test_weights_reach_fits_and_scores(rows, tool, model):
    X, y, weights, groups = rows
    assert tool(model, X, y) < 0.5
    assert tool(model, X, y, sample_weight=weights) > 0.99
    assert tool(model, X, y, sample_weight=weights, groups=groups) > 0.99


@tools
def test_weights_of_partitions_reach_fits_and_scores(rows, tool):
    X, y, weights, _ = rows
    assert tool(RIDGE, skdp.data.Chunks(X, y, 200, sample_weight=weights)) > 0.99


@tools
def test_offsets_reach_fits_and_scores(rng, tool):
    X, offset = rng.standard_normal((2_000, 2)), rng.uniform(0.0, 3.0, 2_000)
    y = rng.poisson(np.exp(0.3 * X[:, 0] + offset)).astype(float)
    model = skdp.DPPoissonRegressor(epsilon=np.inf, alpha=0.0)
    within = {"target_range": (0.0, 100.0)}
    assert tool(model, X, y, **within) < 0.4
    assert tool(model, X, y, offset=offset, **within) > 0.8
    with pytest.raises(ValueError, match="target_range"):
        tool(model, X, y, offset=offset, target_range=None)


def test_a_score_of_partitions_with_offsets_needs_a_range(rng):
    X, y, offset = rng.standard_normal((200, 2)), rng.poisson(2.0, 200), np.ones(200)
    model = skdp.DPPoissonRegressor(epsilon=np.inf).fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="declare target_range"):
        evaluate(model, skdp.data.Chunks(X, y, 50, offset=offset), epsilon=np.inf)


@pytest.mark.parametrize("tool", TOOLS[1:])
def test_a_part_without_weight_is_no_failure(rows, tool):
    """A fit that failed would show that all rows of a part have weight 0."""
    X, y, *_ = rows
    weights = np.where(np.arange(900) == 7, 1.0, 0.0)
    tool(skdp.DPRidge(scaling=skdp.RowNorm(4.0)), X, y, sample_weight=weights)


@pytest.mark.parametrize("bad", [-1.0, np.nan, "cell"])
@pytest.mark.parametrize("name", ["sample_weight", "offset"])
def test_bad_weights_are_refused_before_the_charge(rows, name, bad):
    X, y, weights, _ = rows
    given = weights.astype(object)
    given[3] = bad if name == "sample_weight" or bad != -1.0 else 1e60
    terms = {"target_range": RANGE, "privacy": skdp.Privacy()}
    with skdp.PrivacyBudget(9.0, 1e-6) as budget:
        for run in (
            lambda **beside: DPSearchCV(skdp.DPRidge(), {}, **terms).fit(X, y, **beside),
            lambda **beside: dp_cross_validate(skdp.DPRidge(), X, y, **terms, **beside),
        ):
            with pytest.raises(ValueError, match=f"{name} .*Nothing was released") as refusal:
                run(**{name: given})
            assert "cell" not in str(refusal.value)
        assert budget.n_fits == 0


def test_what_takes_no_weights_is_refused(rows):
    X, y, weights, _ = rows

    class Unweighted(skdp.DPRidge):
        def fit(self, X, y):
            return super().fit(X, y)

    for run in (
        lambda: DPHoldout(X, y, sample_weight=weights).fit(Unweighted()),
        lambda: DPSearchCV(Unweighted(), {}).fit(X, y, sample_weight=weights),
    ):
        with pytest.raises(ValueError, match="Unweighted does not accept sample_weight"):
            run()


def test_a_declared_bound_of_weights_holds_for_fits_and_scores(rows):
    X, y, weights, _ = rows
    terms = skdp.Privacy(max_weight=2.0, noise=skdp.SeededNoise(0))
    found = dp_cross_validate(skdp.DPRidge(), X, y, cv=2, sample_weight=weights, privacy=terms)
    assert {model.privacy.max_weight for model in found.estimators} == {2.0}
    assert "weights clipped to 2" in found.folds[0]["r2"].note


def test_exact_scores_of_a_search_are_weighted_and_offset(rng):
    X, offset = rng.standard_normal((500, 2)), rng.uniform(0.0, 3.0, 500)
    beside = {"offset": offset, "sample_weight": rng.uniform(0.0, 2.0, 500)}
    y = rng.poisson(np.exp(0.3 * X[:, 0] + offset)).astype(float)
    model = skdp.DPPoissonRegressor()
    search = DPSearchCV(model, {}, epsilon=np.inf, target_range=(0, 100)).fit(X, y, offset=offset)
    assert search.score(X, y, **beside) == search.best_estimator_.score(X, y, **beside)
    assert search.score(X, y, **beside) > search.score(X, y, offset=0 * offset) + 0.1
