"""Grids over schedules, clipping, momentum, adjacency and solvers, without a failed fit."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp


def searched(grid, X, y):
    pipeline = make_pipeline(FunctionTransformer(), skdp.DPRidge(max_iter=4, epsilon=5.0))
    named = [{f"dpridge__{name}": values for name, values in one.items()} for one in grid]
    once = [(np.arange(100), np.arange(100, 200))]
    return GridSearchCV(pipeline, named, cv=once, error_score="raise").fit(X, y)


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((200, 3))
    return X, X @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(200)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
def test_a_grid_over_all_that_solvers_share(rows):
    grid = {
        "solver": ["auto", "gd", "whitened", "residual_budget", "heavy_ball"],
        "momentum": [0.5, skdp.steps.HeavyBall(0.5)],
        "noise_schedule": ["uniform", ("exponential", {"gamma": 0.9})],
        "clip_norm": ["auto", 2.0],
        "scaling": [skdp.PublicRange(-4.0, 4.0)],
    }
    relations = {
        "solver": ["auto", "gd", "whitened", "residual_budget", "heavy_ball"],
        "privacy": [skdp.Privacy()],
        "privacy__adjacency": ["zero_out", "replace_one"],
    }
    others = {
        "solver": ["gd", "whitened", "nesterov", "svrg", "adp_sgd"],
        "scaling": ["auto", skdp.PublicRange(-4.0, 4.0), skdp.RowNorm(4.0)],
    }
    averaged = {
        "solver": ["gd", "whitened", "residual_budget"],
        "momentum": ["auto", skdp.steps.AveragedGradient(0.5)],
    }
    search = searched([grid, relations, others, averaged], *rows)
    assert len(search.cv_results_["params"]) == 5 * 2**3 + 5 * 2 + 5 * 3 + 3 * 2
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_budget_in_place_of_the_terms_is_refused_in_a_grid(rows):
    model = skdp.DPRidge(privacy=skdp.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ValueError, match="privacy must be None or a Privacy object"):
        GridSearchCV(model, {"alpha": [1.0]}, cv=2, error_score="raise").fit(*rows)
