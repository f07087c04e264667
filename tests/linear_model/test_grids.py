"""Grids over schedules, clipping, momentum, adjacency and solvers, without a failed fit."""

import pytest
from sklearn.model_selection import GridSearchCV

import skdp


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((200, 3))
    return X, X @ [1.0, -1.0, 0.5] + 0.1 * rng.standard_normal(200)


def test_a_budget_in_place_of_the_terms_is_refused_in_a_grid(rows):
    model = skdp.DPRidge(privacy=skdp.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ValueError, match="privacy must be None or a Privacy object"):
        GridSearchCV(model, {"alpha": [1.0]}, cv=2, error_score="raise").fit(*rows)
