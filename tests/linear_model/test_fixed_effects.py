"""Fixed effects of groups: the within estimator, in every form of rows, and its privacy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import skdp
from replays import seeded
from skdp._fitting.grouping import within_groups

TRUE = np.array([1.0, -0.5, 0.0])


def panel(rng, n_groups=3000, sizes=5):
    """Rows of persons whose own level moves columns and targets alike."""
    codes = np.repeat(np.arange(n_groups), sizes)
    level = rng.standard_normal(n_groups)[codes]
    X = rng.standard_normal((len(codes), 3)) + level[:, None]
    return X, X @ TRUE + 3 * level + rng.standard_normal(len(codes)), codes


def small_panel(rng):
    """Groups of 1 to 6 rows in no order, with weights, and a target that has one outlier."""
    X, y, codes = panel(rng, 40, rng.integers(1, 7, 40))
    order = rng.permutation(len(codes))
    return X[order], y[order], rng.exponential(size=len(codes)), codes[order]


def with_dummies(X, y, weights, codes):
    """Least squares with a constant of each group, whose rows share one unit of weight."""
    shares = weights / np.bincount(codes)[codes]
    columns = np.column_stack([X, np.equal.outer(codes, np.unique(codes))])
    root = np.sqrt(shares)[:, None]
    return np.linalg.lstsq(columns * root, y * root[:, 0], rcond=None)[0][: X.shape[1]]


class InParts(skdp.data.Partitions):
    """Three partitions of whole groups."""

    def __init__(self, X, y, sample_weight, groups):
        self._parts = [
            {"X": X[own], "y": y[own], "sample_weight": sample_weight[own], "groups": groups[own]}
            for own in (np.flatnonzero(groups % 3 == part) for part in range(3))
        ]

    def run(self, task, spread=map):
        return [task(**part) for part in self._parts]


def fitted_in_blocks(X, y, weights, codes, **given):
    model = skdp.DPLinearRegression(solver="whitened", scaling="none", privacy=seeded(), **given)
    parts = (np.flatnonzero(codes % 3 == part) for part in range(3))
    blocks = ((X[own], y[own], weights[own], codes[own]) for own in parts)
    return model.fit_blocks(
        blocks, n_groups=len(np.unique(codes)), n_features=X.shape[1], weighted=True
    )


FORMS = {
    "dense": lambda model, X, y, w, codes: model.fit(X, y, w, groups=codes),
    "columns first": lambda model, X, y, w, codes: model.fit(
        np.asfortranarray(X), y, w, groups=codes
    ),
    "float32": lambda model, X, y, w, codes: model.fit(X.astype(np.float32), y, w, groups=codes),
    "sparse": lambda model, X, y, w, codes: model.fit(sparse.csr_array(X), y, w, groups=codes),
    "partitions": lambda model, *columns: model.fit(InParts(*columns)),
}


@pytest.mark.parametrize("form", FORMS)
def test_coefficients_are_those_with_a_constant_of_each_group(rng, form):
    X, y, weights, codes = small_panel(rng)
    model = skdp.DPLinearRegression(
        fixed_effects=True, epsilon=np.inf, scaling="none", solver="boosted_ssp"
    )
    with pytest.warns(skdp.PrivacyWarning):
        FORMS[form](model, X, y, weights, codes)
    rtol = 1e-4 if form == "float32" else 1e-7
    np.testing.assert_allclose(model.coef_, with_dummies(X, y, weights, codes), rtol=rtol)
    assert model.intercept_ == 0.0
    np.testing.assert_allclose(model.predict(1e3 * X), 1e3 * X @ model.coef_, rtol=1e-9)
    plain = model.to_sklearn()
    np.testing.assert_allclose(plain.predict(X), model.predict(X), rtol=1e-9)


def test_blocks_are_fitted_as_rows_within_groups(rng):
    X, y, weights, codes = small_panel(rng)
    rows, targets = within_groups(X, y[:, None], weights, codes)
    found = fitted_in_blocks(X, y, weights, codes, fixed_effects=True)
    expected = fitted_in_blocks(rows, targets[:, 0], weights, codes, fit_intercept=False)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    assert np.abs(found.coef_ - fitted_in_blocks(X, y, weights, codes).coef_).max() > 0.01


@pytest.mark.parametrize("model", [skdp.DPLinearRegression, skdp.DPRidge])
def test_it_is_refused_without_groups_before_the_charge(rng, model):
    X, y, codes = panel(rng, 40)
    budget = skdp.PrivacyBudget(1.0, 1e-6)
    given = {"fixed_effects": True, "privacy": skdp.Privacy(budget=budget)}
    with pytest.raises(ValueError, match=rf"{model.__name__}: fixed_effects=True.*Nothing was rel"):
        model(**given).fit(X, y)
    with pytest.raises(ValueError, match="fixed_effects=True"):
        model(**given).fit_blocks(iter([(X, y)]), n_samples=200, n_features=3)
    with pytest.raises(ValueError, match="fixed_effects=True"):
        model(**given).plan(200, 3)
    with pytest.raises(ValueError, match="fixed_effects must be True or False"):
        model(fixed_effects=1.5).fit(X, y, groups=codes)
    with pytest.raises(ValueError, match="no intercept: fit_intercept=False, or fixed_eff"):
        model(**given).fit(X, y, groups=codes, intercept_init=1.0)
    assert budget.n_fits == 0


# ---------------------------------------------------------------- the map of a group


def test_a_group_follows_from_its_own_rows_bit_for_bit(rng):
    """Whatever other groups are, hostile rows among them; and its mean, however large, is gone."""
    X, y, weights, codes = small_panel(rng)
    own = codes == 5
    first = within_groups(X, y[:, None], weights, codes)
    for X_hostile, weight in ((1e308, 1e300), (-1e308, 5e-324), (5e-324, 0.0)):
        X[~own] = X_hostile * rng.choice([-1.0, 1.0], X[~own].shape)
        weights[~own] = weight
        alone = X[own], y[own, None], weights[own], np.zeros(own.sum(), dtype=np.int64)
        with np.errstate(all="raise"):
            both = within_groups(X, y[:, None], weights, codes), within_groups(*alone)
        for again in both:
            mapped = own if len(again[0]) == len(own) else slice(None)
            np.testing.assert_array_equal(again[0][mapped], first[0][own])
            np.testing.assert_array_equal(again[1][mapped], first[1][own])
            assert np.isfinite(again[0]).all()
            assert np.isfinite(again[1]).all()
