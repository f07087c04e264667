"""Every regressor, for targets in any unit and of any type: none depends on how they are stored."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import RegressorMixin, clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags

import skdp
from replays import seeded

SEEDED = {
    "epsilon": 5.0,
    "privacy": skdp.Privacy(noise=skdp.SeededNoise(0)),
}
N_FITTED = 3000
REGRESSORS = [
    model
    for model in (getattr(skdp, name) for name in skdp.__all__)
    if inspect.isclass(model) and issubclass(model, RegressorMixin)
]


# Others have a unit and no origin: tests/linear_model/test_glm.py.
REAL = [one for one in REGRESSORS if not get_tags(one()).target_tags.positive_only]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_FITTED + 1000, 3))
    return X, X @ [2.0, -1.0, 0.5] + 0.3 * rng.standard_normal(len(X))


def held_out(model, X, y):
    return model.fit(X[:N_FITTED], y[:N_FITTED]).score(X[N_FITTED:], y[N_FITTED:])


def with_penalty_in_units(regressor, unit):
    """An L1 penalty is in the unit of the targets, as scikit-learn's is; an L2 penalty has none."""
    penalty = {}
    if regressor is skdp.DPLasso:
        penalty = {"alpha": 0.01 * unit}
    elif regressor is skdp.DPElasticNet:
        penalty = {"alpha": 0.01 * (unit + 1), "l1_ratio": unit / (unit + 1)}
    return regressor(**SEEDED, **penalty)


@pytest.mark.parametrize("regressor", REAL)
def test_the_unit_of_the_targets_does_not_matter(regressor, rows):
    X, y = rows
    plain = held_out(with_penalty_in_units(regressor, 1.0), X, y)
    assert plain > 0.85  # of quantiles D2, which is less than R2
    for unit, shift in ((1e-6, 0.0), (1e-3, 0.1), (1e3, -5e4), (1e6, 1e7)):
        model = with_penalty_in_units(regressor, unit)
        assert abs(held_out(model, X, unit * y + shift) - plain) < 0.05, (unit, shift)
        assert model.scaling_.targets is not None
        assert np.all(model.prediction_range_[0] < model.prediction_range_[1])


BOUNDS = {"scaling": skdp.PublicRange(-4, 4)}
BOUND = {"scaling": skdp.PublicRange(target=8.0)}
COUNTED = {"delta": 0, **BOUNDS}  # under pure privacy, too
BOTH = {"delta": 0, "scaling": skdp.PublicRange(-4, 4, target=8.0)}
NOT_STANDARDISED = [
    {"scaling": "none"},
    {"scaling": skdp.RowNorm(5.0, target=8.0)},
    {"constraint": skdp.objective.L2Ball(4.0), **BOUND},
]


@pytest.mark.parametrize(
    "declared", [*NOT_STANDARDISED, {"delta": 0, **BOUND}, COUNTED, BOTH], ids=str
)
def test_the_threshold_of_huber_is_in_the_unit_that_its_docstring_names(declared, rows):
    X, y = rows
    model = skdp.DPHuberRegressor(**SEEDED, **declared).fit(X, y)
    targets = None if model.scaling_ is None else model.scaling_.targets
    assert (targets is None) == (declared in NOT_STANDARDISED)
    assert targets is None or declared == COUNTED or targets.scale == 8.0 / 4


DECLARED = {
    "targets": lambda X, target: skdp.PublicRange(target=target),
    "columns and targets": lambda X, target: skdp.PublicRange(-4.0, 4.0, target=target),
    "public rows and targets": lambda X, target: skdp.PublicSample(X[:50], target=target),
    "norm and targets": lambda X, target: skdp.RowNorm(5.0, target=target),
}


@pytest.mark.parametrize("kind", DECLARED)
def test_a_declared_range_of_targets_costs_nothing_and_is_kept(kind, rows):
    X, y = rows
    declare = DECLARED[kind]
    model = skdp.DPRidge(**SEEDED, scaling=declare(X, (-3.0, 1.0))).fit(X, y)
    low, high = model.prediction_range_
    assert (low, high) == (-3.0, 1.0)
    kinds = [release.kind for release in model.privacy_.releases]
    assert kinds.count("magnitudes") == (kind == "targets")  # of columns
    assert any("range of targets, -3 to 1, was" in text for text in model.privacy_.assumptions)
    # Targets outside count as the nearest end, and a bound is a range on both sides of 0.
    again = skdp.DPRidge(**SEEDED, scaling=declare(X, [-3.0, 1.0])).fit(X, np.clip(y, -3.0, 1.0))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    both = [
        skdp.DPRidge(**SEEDED, scaling=declare(X, one)).fit(X, y).coef_ for one in (2, (-2.0, 2.0))
    ]
    np.testing.assert_array_equal(*both)


def test_ranges_of_targets_are_searched_by_name(rows):
    model = skdp.DPRidge(scaling=skdp.PublicRange(target=3.0))
    assert clone(model).set_params(scaling__target=(0.0, 2.0)).scaling.target == (0.0, 2.0)
    with pytest.raises(ValueError, match="without a target"):
        skdp.DPStandardScaler(scaling=skdp.PublicRange(-1, 1, target=3.0)).fit(rows[0])


def test_a_mean_of_doubtful_size_is_not_far_from_all_targets():
    """With a mean of scales in place of one of their squares it is 12,500; targets reach 346."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X, _, y, _ = train_test_split(X, y, random_state=12)
    model = skdp.DPLinearRegression(epsilon=0.1, privacy=seeded(12)).fit(X, y)
    assert y.min() < model.scaling_.targets.centre < y.max()
