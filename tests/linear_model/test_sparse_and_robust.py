"""DPElasticNet, DPLasso and DPHuberRegressor: agreement, units, sparsity, robustness."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

import skdp

N_ROWS = 3000
WITHOUT_NOISE = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")


@pytest.fixture
def rows(rng):
    """Columns and targets far from unit size, a few coefficients that matter."""
    Z = rng.standard_normal((N_ROWS, 10))
    coef = np.array([3.0, -2.0, 1.0] + [0.0] * 7)
    y = 100.0 * (Z @ coef + 0.5 * rng.standard_normal(N_ROWS)) + 70.0
    return Z * np.geomspace(0.01, 100.0, 10) + 5.0, y


@WITHOUT_NOISE
@pytest.mark.parametrize("scaling", ["private", "none"])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_agree_with_scikit_learn_without_noise(scaling, l1_ratio, rows, rng):
    """With scaling, after a StandardScaler, in the unit of the targets."""
    X, y = rows
    if scaling == "none":
        X = rng.standard_normal((N_ROWS, 10))
        y = X[:, 0] - 0.7 * X[:, 1] + rng.standard_normal(N_ROWS)
    alpha = 0.05 * y.std()
    options = {"epsilon": np.inf, "scaling": scaling, "solver": "gd", "max_iter": 2000}
    model = skdp.DPElasticNet(alpha, l1_ratio, **options)
    if l1_ratio == 1:
        model = skdp.DPLasso(alpha, **options)
    model.fit(X, y)
    Z = X
    if scaling == "private":
        # What the fit found: without noise sizes come from fine histograms, not from moments.
        Z = (X - model.scaling_.columns.centre) / model.scaling_.columns.scale
        assert model.scaling_.targets.scale[0] > 50
    right = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-12, max_iter=10**5).fit(Z, y)
    assert model.predict(X) == pytest.approx(right.predict(Z), abs=1e-4 * y.std())
    assert ((model.coef_ != 0) == (right.coef_ != 0)).all()
    assert (model.coef_ == 0).any()


def test_solutions_are_sparse_where_noise_is(rows, rng):
    _, y = rows
    X = np.random.default_rng(20).standard_normal((N_ROWS, 10))  # as in ``rows``, of unit size
    options = {
        "alpha": 5.0,
        "epsilon": 2.0,
        "privacy": skdp.Privacy(noise=skdp.SeededNoise(1)),
    }
    model = skdp.DPLasso(solver="gd", **options).fit(X, y)
    assert model.solver_.averaging == "sparse"
    assert (model.coef_[3:] == 0).sum() >= 5
    assert (model.coef_[:3] != 0).all()
    assert model.score(X, y) > 0.9
    assert model.sparse_coef_.shape == (1, 10)
    assert model.sparse_coef_.nnz == np.count_nonzero(model.coef_)
    plain = skdp.solvers.GradientDescent(averaging="tail")
    tail = skdp.DPLasso(solver=plain, **options).fit(X, y)
    assert np.count_nonzero(tail.coef_) > np.count_nonzero(model.coef_)
    assert tail.privacy_.releases == model.privacy_.releases  # the zeros are free


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (skdp.DPLasso(-1.0), "alpha must be"),
        (skdp.DPElasticNet(l1_ratio=2.0), "l1_ratio must be"),
        (skdp.DPHuberRegressor(0.0), "threshold must be"),
        (skdp.DPHuberRegressor(alpha=np.nan), "alpha must be"),
        (skdp.DPLasso(solver="nesterov"), "strongly convex"),
        (skdp.DPHuberRegressor(solver="whitened"), "twice differentiable"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_released(model, message, asked, rng):
    X = rng.standard_normal((50, 2))
    with pytest.raises(ValueError, match=message):
        model.fit(X, X[:, 0])
    assert not asked
