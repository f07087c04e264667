"""Bad input is refused by a clear message, before anything is released."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import skdp
from skdp.oracle.oracle import Oracle
from skdp.solvers import GradientDescent

LOGISTIC, RIDGE, LINEAR = skdp.DPLogisticRegression, skdp.DPRidge, skdp.DPLinearRegression
ALL = [LOGISTIC, RIDGE, LINEAR]


@pytest.fixture(autouse=True)
def nothing_is_released(monkeypatch):
    """No test in this file may reach the rows."""
    ask = Oracle.request

    def guarded(self, release):
        assert self._source is None, "a release was answered"
        return ask(self, release)

    monkeypatch.setattr(Oracle, "request", guarded)


SHARED = [
    ({"epsilon": 1e-300}, "epsilon must be a positive number from 1e-6 to 1e9"),
    ({"epsilon": 1e300}, "epsilon must be a positive number from 1e-6 to 1e9"),
    ({"epsilon": 0}, "epsilon must be a positive number"),
    ({"epsilon": -1.0}, "epsilon must be a positive number"),
    ({"epsilon": np.nan}, "epsilon must be a positive number"),
    ({"epsilon": "1"}, "epsilon must be a positive number"),
    ({"epsilon": True}, "epsilon must be a positive number"),
    ({"delta": -1e-9}, r"delta must be a number in \[0, 1\)"),
    ({"delta": 1.0}, r"delta must be a number in \[0, 1\)"),
    ({"delta": np.nan}, r"delta must be a number in \[0, 1\)"),
    (
        {"delta": 0, "solver": skdp.solvers.GradientDescent(mechanism="gaussian")},
        "delta=0 asks for pure differential privacy.*Solvers that can",
    ),
    ({"delta": 0, "solver": "residual_budget"}, "pure differential privacy.*Solvers that can"),
    (
        {"solver": "newton-cg"},
        r"solver must be 'auto', .*; got 'newton-cg'.*\nSolvers:\ngd: .*\nwhitened: ",
    ),
    ({"solver": 3}, "solver must be a name, .*, or a Solver; got 3"),
    ({"noise_schedule": "cosine"}, r"noise_schedule must be 'auto', .*'uniform'"),
    ({"noise_schedule": [1.0, 2.0], "max_iter": 3}, "3 positive, finite numbers"),
    ({"noise_schedule": [1.0, -2.0], "max_iter": 2}, "2 positive, finite numbers"),
    (
        {"privacy": skdp.Privacy(adjacency="add_one")},
        "adjacency must be one of 'zero_out', 'replace_one'",
    ),
    ({"clip_norm": -1.0}, "clip_norm must be positive and finite"),
    ({"clip_norm": 0}, "clip_norm must be positive and finite"),
    ({"clip_norm": np.inf}, "clip_norm must be positive and finite"),
    ({"clip_norm": "median"}, "clip_norm must be 'auto', a positive number, an Adaptive"),
    ({"clip_norm": 1e-320}, r"clip_norm must be .*, from 1e-100 to 1e\+100"),
    ({"clip_norm": 1e-320, "solver": "residual_budget"}, "clip_norm must be positive and finite"),
    ({"clip_norm": 1.7e308}, "clip_norm must be positive and finite"),
    ({"clip_norm": 1e-320, "solver": "shuffled_sgd"}, "clip_norm must be positive and finite"),
    ({"scaling": skdp.RowNorm(1e-300)}, r"norm must be .*, from 1e-50 to 1e\+50; got 1e-300"),
    ({"scaling": skdp.RowNorm(0.0)}, "RowNorm: norm must be a positive, finite number"),
    ({"scaling": skdp.RowNorm(np.inf)}, "RowNorm: norm must be a positive, finite number"),
    ({"privacy": "replace_one"}, "privacy must be None or a Privacy object.*got 'replace_one'"),
    ({"privacy": skdp.Privacy}, "privacy must be None or a Privacy object"),
    ({"privacy": {"adjacency": "label"}}, "privacy must be None or a Privacy object"),
    ({"privacy": skdp.Privacy(budget=1.0)}, "budget must be None or a PrivacyBudget; got 1"),
    ({"privacy": skdp.Privacy(rows_per_group=0)}, "rows_per_group must be None or a positive"),
    ({"verbose": "loud"}, "verbose must be an integer, at least 0; got 'loud'"),
    ({"noise_schedule": None}, "noise_schedule, where .*, one per step; got None"),
    ({"noise_schedule": skdp.Privacy()}, r"noise_schedule, where .*; got Privacy\(\)"),
    ({"noise_schedule": ("exponential",)}, r"noise_schedule, where .*; got \('exponential',\)"),
    ({"learning_rate": "adaptive", "solver": "gd"}, "which solver 'adp_sgd' alone can do"),
    ({"max_iter": 0}, "max_iter must be 'auto' or an integer, at least 1"),
    ({"max_iter": 2.5}, "max_iter must be 'auto' or an integer, at least 1"),
    ({"learning_rate": -0.1}, "learning_rate must give positive, finite steps"),
    ({"learning_rate": "fast"}, "learning_rate must be 'auto', a positive number"),
    ({"fit_intercept": "no"}, "fit_intercept must be True or False"),
    ({"momentum": 1.0}, r"momentum must be 'auto' or a number in \[0, 1\)"),
    ({"momentum": -0.5}, r"momentum must be 'auto' or a number in \[0, 1\)"),
    (
        {"solver": GradientDescent(), "max_iter": 7},
        "max_iter was set beside a configured solver.*solver__max_iter",
    ),
    ({"solver": GradientDescent(averaging="best")}, "averaging must be one of 'last'"),
]


@pytest.mark.parametrize("estimator", ALL, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(("parameters", "message"), SHARED, ids=lambda value: str(value)[:40])
def test_shared_parameters(estimator, parameters, message, classification):
    X, y = classification
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(X, y)
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).plan(400, 5)


OWN = [
    (RIDGE, {"alpha": -1.0}, "alpha must be a finite number, at least 0"),
    (RIDGE, {"alpha": np.nan}, "alpha must be a finite number, at least 0"),
    (RIDGE, {"target_bound": -1.0}, "target_bound must be None or a positive"),
    (LINEAR, {"target_bound": np.nan}, "target_bound must be None or a positive"),
    (LINEAR, {"target_bound": 1.7e308}, r"target_bound must be .*, from 1e-50 to 1e\+50"),
    (LOGISTIC, {"C": 0}, "C must be a positive number"),
    (LOGISTIC, {"l1_ratio": 1.5}, r"l1_ratio must be a number in \[0, 1\]"),
    (LOGISTIC, {"class_weight": "balanced"}, "would have to count the private labels"),
    (LOGISTIC, {"class_weight": [1, 2]}, "class_weight must be None or a dict"),
    (LOGISTIC, {"class_weight": {7: 1.0}}, "class_weight names labels that are not among"),
    (LOGISTIC, {"class_weight": {1: -1.0}}, "class_weight must be finite and not negative"),
    (LOGISTIC, {"classes": [1]}, "classes must name at least 2 labels"),
    (LOGISTIC, {"classes": [1, 2]}, "label that is not among the declared classes"),
]


@pytest.mark.parametrize(("estimator", "parameters", "message"), OWN)
def test_own_parameters(estimator, parameters, message, classification):
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(*classification)


@pytest.mark.parametrize("estimator", ALL, ids=lambda cls: cls.__name__)
class TestData:
    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite(self, estimator, bad, classification):
        X, y = classification
        X[3, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            estimator().fit(X, y)

    def test_target_not_finite(self, estimator, classification):
        X, y = classification
        y = y.astype(float)
        y[0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            estimator().fit(X, y)

    def test_no_rows(self, estimator):
        with pytest.raises(ValueError, match="0 sample"):
            estimator().fit(np.empty((0, 3)), np.empty(0))

    def test_shapes(self, estimator, classification):
        X, y = classification
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            estimator().fit(X, y[:-1])

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.ones(3), "inconsistent numbers of samples"),
            (np.ones((400, 1)), "1D array or scalar"),
            (np.full(400, np.nan), "NaN"),
            (-np.ones(400), "must not be negative"),
            (np.zeros(400), "zero for every record"),
        ],
    )
    def test_weights(self, estimator, weights, message, classification):
        with pytest.raises(ValueError, match=message):
            estimator().fit(*classification, sample_weight=weights)


def test_one_class(classification):
    X, _ = classification
    with pytest.raises(ValueError, match="one class only"):
        LOGISTIC().fit(X, np.zeros(len(X)))


def test_continuous_target(classification):
    X, _ = classification
    with pytest.raises(ValueError, match=r"Unknown label type"):
        LOGISTIC().fit(X, X[:, 0])


@pytest.mark.parametrize("arguments", [(0, 5), (10, 0)])
def test_plan_of_nothing(arguments):
    with pytest.raises(ValueError, match="must be at least 1"):
        RIDGE().plan(*arguments)


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
@pytest.mark.parametrize("estimator", ALL, ids=lambda cls: cls.__name__)
def test_rows_of_no_shape_are_not_quoted(estimator, shape):
    """scikit-learn prints the array, found by fuzzing."""
    with pytest.raises(ValueError, match="Reshape your data") as refusal:
        estimator().fit(np.full(shape, 8675309.0), np.ones(3))
    assert "8675309" not in str(refusal.value)


def test_text_is_refused_without_being_quoted(classification):
    X, y = classification
    X = X.astype(object)
    X[5, 2] = "secret-cell"
    for estimator in ALL:
        with pytest.raises(ValueError, match="holds text where numbers are needed") as refusal:
            estimator().fit(X, y)
        assert "secret" not in str(refusal.value)
        assert refusal.value.__cause__ is None


def test_columns_that_scikit_learn_cannot_convert_are_refused_in_our_words(classification):
    pandas = pytest.importorskip("pandas")
    X, y = classification
    sparse_ones = pandas.DataFrame(X > 0).astype(pandas.SparseDtype(float, 1.0))
    categories = pandas.DataFrame({"ward": np.where(X[:, 0] > 0, "secret", "b")}, dtype="category")
    for estimator in ALL:
        with pytest.raises(
            ValueError, match=r"fill value is not 0.*Nothing was released"
        ) as refusal:
            estimator().fit(sparse_ones, y)
        assert estimator.__name__ in str(refusal.value)
        with pytest.raises(ValueError, match=r"'ward', whose levels were learnt") as refusal:
            estimator().fit(categories, y)
        assert "secret" not in str(refusal.value)


def test_complex_numbers_are_refused_without_being_quoted(classification):
    X, y = classification
    for data in ((X + 123.25j, y), (X, y + 123.25j)):
        with pytest.raises(ValueError, match="Complex data not supported") as refusal:
            RIDGE().fit(*data)
        assert "123.25" not in str(refusal.value)
        assert refusal.value.__cause__ is None


def test_regression_on_words(classification):
    X, y = classification
    with pytest.raises(ValueError, match="numbers"):
        RIDGE().fit(X, np.array(["a", "b"])[y])


def test_sparse_parts_that_overflow():
    X = sparse.csr_array(
        (np.array([1.7e308, 1.7e308, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    with pytest.raises(ValueError, match="add up to infinity"):
        RIDGE().fit(X, [0.0, 1.0])


def test_a_refused_fit_leaves_no_trace(classification):
    X, y = classification
    model = LOGISTIC()
    with pytest.raises(ValueError, match="must not be negative"):
        model.fit(X, y, sample_weight=-np.ones(len(y)))
    assert not hasattr(model, "classes_")
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_plan_with_another_number_of_classes():
    with pytest.raises(ValueError, match="3 classes are declared"):
        LOGISTIC(classes={0, 1, 2}).plan(10, 2, n_classes=2)


def test_plan_of_one_class():
    with pytest.raises(ValueError, match="n_classes must be at least 2"):
        LOGISTIC().plan(10, 2, n_classes=1)


def test_a_solver_without_the_hyperparameter_is_named():
    with pytest.raises(ValueError, match="solver 'gd' has no inertia"):
        skdp.solvers.get_solver("gd", inertia=1)


def test_a_solver_whose_needs_are_not_met(classification):
    class Picky(GradientDescent):
        needs = frozenset({"strongly_convex"})

    with pytest.raises(
        ValueError, match="solver 'gd' needs strongly_convex, a penalty that is strongly convex"
    ):
        LINEAR(solver=Picky()).fit(*classification)
    RIDGE(solver=Picky()).plan(400, 5)


def test_an_estimator_has_to_say_how_its_targets_are_read():
    class Unfinished(skdp.linear_model.base.DPLinearModel):
        pass

    with pytest.raises(TypeError, match=r"_declared_targets.*_read_targets"):
        Unfinished()
