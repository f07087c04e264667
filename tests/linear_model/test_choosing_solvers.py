"""Which solvers fit an estimator, and searches over them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import skdp
from skdp.objective import L1, L2, Logistic, Problem, SquaredError
from skdp.solvers import available

ALL = set(available())
CASES = {
    "lasso with momentum": skdp.DPLasso(alpha=0.1, momentum=0.5),
    "linear on batches": skdp.DPLinearRegression(batch_size=0.5),
    "ridge, pure": skdp.DPRidge(delta=0.0),
    "schedule": skdp.DPRidge(noise_schedule="optimal"),
    "huber in a ball": skdp.DPHuberRegressor(constraint="l2_ball"),
    "logistic": skdp.DPLogisticRegression(learning_rate=0.1),
}


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_search_over_those_that_fit_never_ends_in_nan(case, rng):
    model = CASES[case]
    X = rng.standard_normal((80, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(80)
    if case == "logistic":
        y = (y > 0).astype(int)
    fitting = available(model, n_samples=40, n_features=3)
    assert set(fitting) | set(fitting.others) == ALL
    assert not set(fitting) & set(fitting.others)
    assert fitting
    search = GridSearchCV(model, {"solver": list(fitting)}, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    for name, why in fitting.others.items():
        with pytest.raises(ValueError, match=r"\w") as refusal:
            model.__sklearn_clone__().set_params(solver=name).fit(X, y)
        assert str(refusal.value)[:40] == why[:40]


def test_solvers_of_a_problem():
    assert set(available(Problem(SquaredError(), L2(0.1)))) >= {"gd", "nesterov", "adassp"}
    sparse = available(Problem(Logistic(), L1(0.1)))
    assert {"adassp", "nesterov"} <= set(sparse.others)
    assert "not nesterov: solver 'nesterov' needs a penalty" in str(sparse)


def test_a_missing_hyperparameter_is_refused_with_the_names_there_are():
    model = skdp.DPRidge(solver="nesterov", momentum=0.5)
    with pytest.raises(ValueError, match=r"has no momentum\. It has batch_size, clip_norm, first_"):
        model.set_params(solver="multistage_nesterov").plan(100, 2)


def test_nested_hyperparameters_make_an_object_of_a_named_solver():
    model = skdp.DPRidge(solver="nesterov")
    assert model.set_params(solver__step=0.25).solver.step == 0.25
    with pytest.raises(ValueError, match="'solver__step' needs a solver whose"):
        skdp.DPRidge().set_params(solver__step=0.5)
    model.set_params(solver=skdp.solvers.Nesterov(), solver__step=0.5)
    assert model.solver.step == 0.5
