"""A resolved value stands for itself: setting what "auto" stands for changes nothing."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from skdp.linear_model.base import HANDED_ON
from skdp.solvers.base import REGISTRY

FEW, MANY = (500, 6), (20_000, 6)
SOLVERS = ["auto", *sorted(REGISTRY)]
ESTIMATORS = {
    "least squares": skdp.DPLinearRegression(),
    "ridge": skdp.DPRidge(),
    "two classes": skdp.DPLogisticRegression(classes=[0, 1]),
    "three classes": skdp.DPLogisticRegression(classes=[0, 1, 2]),
    "huber": skdp.DPHuberRegressor(),
    "counts": skdp.DPPoissonRegressor(),
    "lasso": skdp.DPLasso(),
    "elastic net": skdp.DPElasticNet(),
    "ball": skdp.DPRidge(constraint=skdp.objective.L2Ball(2.0)),
    "inference": skdp.DPRidge(inference="coefficients"),
}
IN_FULL = ["ridge", "two classes"]  # each value by itself, of the solvers in turn


def plan_of(model, shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = model.plan(*shape)
    return plan.releases, plan.epsilon, plan.assumptions, plan.expectations


def resolved(model, shape):
    """Return the solver with values for "auto", None if the problem is not for it."""
    n_classes = len(getattr(model, "classes", ()) or ())
    try:
        return model._prepare(*shape, n_classes if n_classes > 2 else 1).solver
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("solver", "kind"),
    [("auto", kind) for kind in ESTIMATORS]
    + [(name, IN_FULL[place % 2]) for place, name in enumerate(SOLVERS[1:])],
)
def test_resolved_values_change_no_plan(solver, kind):
    shape = MANY if solver == "auto" else FEW
    model = clone(ESTIMATORS[kind]).set_params(solver=solver)
    chosen = resolved(model, shape)
    if chosen is None:
        with pytest.raises(ValueError, match="Nothing was released"):
            model.plan(*shape)
        return
    expected = plan_of(model, shape)
    assert plan_of(clone(model).set_params(solver=chosen), shape) == expected
    values = {name: value for name, value in chosen.get_params(False).items() if name in HANDED_ON}
    subsets = [tuple(values)]
    if kind in IN_FULL:
        subsets += [(name,) for name in values]  # pairs: tests/solvers/test_resolved_values.py
    for names in subsets:
        given = {name: values[name] for name in names}
        assert plan_of(clone(model).set_params(**given), shape) == expected, given


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_resolved_values_change_no_fit(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.standard_normal(500)
    privacy = skdp.Privacy(noise=skdp.SeededNoise(1))
    labels = (y > 0).astype(int)
    for make, targets in ((skdp.DPRidge, y), (skdp.DPLogisticRegression, labels)):
        model = make(solver=solver, privacy=privacy)
        if targets is labels:
            model.set_params(classes=[0, 1])
        try:
            model.fit(X, targets)
        except ValueError:  # a problem that is not for this solver
            continue
        chosen = model.solver_
        values = {
            name: value for name, value in chosen.get_params(False).items() if name in HANDED_ON
        }
        variants = [{"solver": chosen}, values]
        for given in variants:
            again = clone(model).set_params(**given).fit(X, targets)
            np.testing.assert_array_equal(again.coef_, model.coef_, err_msg=str(given))


def test_a_hyperparameter_selects_the_best_solver_that_has_it():
    model = skdp.DPRidge()
    assert resolved(model, MANY).name == "whitened"
    assert model.plan(*MANY).notes[0] == "solver='auto' is 'whitened' here."
    model.set_params(solver=("auto", {"batch_size": 100}))
    assert resolved(model, MANY).name == "gd"
    assert "does not take batch_size=100" in model.plan(*MANY).notes[0]
