"""The estimate depends on ratios of weights, and not on their unit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.ensemble import BaggingRegressor
from sklearn.metrics import r2_score

import skdp
from skdp import audit
from skdp._oracle import Weights
from skdp._oracle.releases import histograms as releases
from skdp._stages.scaling.weights import WeightStage
from skdp.solvers import available

N_ROWS = 20_000
SHIFT = 2.0**20  # exact, and by whole bins of counts: fits with the same noise are equal
GROUPS = np.arange(N_ROWS) // 2
TASKS = {
    skdp.DPLinearRegression: ({}, linear_model.LinearRegression(), "real"),
    skdp.DPRidge: ({}, linear_model.Ridge(), "real"),
    skdp.DPLasso: ({"alpha": 0.1}, linear_model.Lasso(0.1), "real"),
    skdp.DPElasticNet: ({"alpha": 0.1}, linear_model.ElasticNet(0.1), "real"),
    skdp.DPHuberRegressor: ({}, linear_model.HuberRegressor(), "real"),
    skdp.DPQuantileRegressor: ({}, linear_model.LinearRegression(), "real"),  # normal errors
    skdp.DPLogisticRegression: ({"classes": [0, 1]}, linear_model.LogisticRegression(), "label"),
    skdp.DPLinearSVC: ({"classes": [0, 1]}, svm.LinearSVC(loss="hinge"), "label"),
    skdp.DPPoissonRegressor: ({}, linear_model.PoissonRegressor(alpha=0), "count"),
    skdp.DPGammaRegressor: ({}, linear_model.GammaRegressor(alpha=0), "positive"),
}
# Of other problems, with the same gradients: a ball, or a penalty that is strongly convex.
OTHERS = {"accelerated_mirror_descent", "frank_wolfe"}
CONVEX = {"heavy_ball", "multistage_nesterov", "nesterov"}


@pytest.fixture(scope="module")
def problem():
    """Rows, targets of each kind and weights, on which slopes depend; a tenth of them are 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 3))
    weights = rng.uniform(0.1, 1.9, N_ROWS) * (rng.random(N_ROWS) < 0.9)
    mean = np.exp(0.5 + X @ [0.3, -0.2, 0.1] * (0.5 + weights / 2))
    margins = X @ [1.0, -1.0, 0.5] * (0.5 + weights)
    real = X @ [1.0, -2.0, 0.5] + 0.5 * X[:, 0] * (weights - 1) + rng.standard_normal(N_ROWS)
    targets = {
        "real": real,
        "label": (rng.random(N_ROWS) < 1 / (1 + np.exp(-margins))).astype(int),
        "count": rng.poisson(mean).astype(float),
        "positive": rng.gamma(2.0, mean / 2) + 1e-9,
    }
    return X, targets, weights


def made(estimator, seed=0, **parameters):
    given = {"epsilon": 50.0, **TASKS[estimator][0], **parameters}
    return estimator(privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)), **given)


def relative_error(coef, exact):
    return np.linalg.norm(np.ravel(coef) - np.ravel(exact)) / np.linalg.norm(exact)


def check_units(fit, weights):
    """Return the coefficients, which are the same in other units of weights."""
    coef = fit(weights).coef_
    np.testing.assert_array_equal(fit(weights * SHIFT).coef_, coef)
    assert relative_error(fit(weights * 1e-6).coef_, coef) < 0.02
    return coef


@pytest.mark.parametrize("estimator", TASKS, ids=lambda estimator: estimator.__name__)
def test_estimates_do_not_depend_on_the_unit(problem, estimator):
    X, targets, weights = problem
    _, theirs, kind = TASKS[estimator]
    y = targets[kind]
    coef = check_units(lambda w: made(estimator).fit(X, y, w), weights)
    exact = theirs.fit(X, y, sample_weight=weights).coef_
    assert relative_error(coef, exact) < 0.03


@pytest.mark.parametrize("estimator", TASKS, ids=lambda estimator: estimator.__name__)
def test_one_pass_over_weighted_rows_ends_at_the_exact_fit(problem, estimator):
    X, targets, weights = problem
    _, theirs, kind = TASKS[estimator]
    exact = theirs.fit(X, targets[kind], sample_weight=weights).coef_
    fits = (KINDS["stream"](made(estimator, k), X, targets[kind], weights) for k in range(3))
    assert relative_error(np.mean([one.coef_ for one in fits], axis=0), exact) < 0.03


@pytest.mark.parametrize("solver", sorted({*available()} - OTHERS))
def test_no_solver_depends_on_the_unit(problem, solver):
    X, targets, weights = problem
    of_labels = solver in CONVEX
    estimator = skdp.DPLogisticRegression if of_labels else skdp.DPLinearRegression
    _, theirs, kind = TASKS[estimator]
    y = targets[kind]
    first, second = (made(estimator, solver=solver).fit(X, y, w) for w in (weights, 1e6 * weights))
    assert relative_error(second.coef_, first.coef_) < 0.02
    assert relative_error(first.coef_, theirs.fit(X, y, sample_weight=weights).coef_) < 0.03


@pytest.mark.parametrize("solver", sorted(OTHERS))
def test_no_solver_of_a_ball_depends_on_the_unit(problem, solver):
    X, targets, weights = problem
    terms = {"solver": solver, "constraint": ("l1_ball", {"radius": 2.0}), "fit_intercept": False}
    check_units(
        lambda w: made(skdp.DPLogisticRegression, C=np.inf, **terms).fit(X, targets["label"], w),
        weights,
    )


def in_blocks(*columns):
    return (tuple(column[i : i + 2000] for column in columns) for i in range(0, N_ROWS, 2000))


KINDS = {
    "float32": lambda model, X, y, w: model.fit(X.astype(np.float32), y, w),
    "csr": lambda model, X, y, w: model.set_params(max_iter=100).fit(sparse.csr_array(X), y, w),
    "groups": lambda model, X, y, w: model.fit(X, y, w, groups=GROUPS),
    "chunks": lambda model, X, y, w: model.set_params(max_iter=100).fit(
        skdp.data.Chunks(X, y, 7_000, sample_weight=w)
    ),
    "stream": lambda model, X, y, w: model.fit_blocks(
        in_blocks(X, y, w), n_samples=N_ROWS, n_features=3, weighted=True
    ),
    "stream as it came": lambda model, X, y, w: model.set_params(scaling="none").fit_blocks(
        in_blocks(X, y, w), n_samples=N_ROWS, n_features=3, weighted=True
    ),
    "stream of groups": lambda model, X, y, w: model.fit_blocks(
        in_blocks(X, y, w, GROUPS), n_groups=N_ROWS // 2, n_features=3, weighted=True
    ),
    "pure": lambda model, X, y, w: model.set_params(delta=0.0).fit(X, y, w),
    "declared columns": lambda model, X, y, w: model.set_params(
        scaling=skdp.PublicRange(-3, 3)
    ).fit(X, y, w),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_rows_depends_on_the_unit(problem, kind):
    X, targets, weights = problem
    y = targets["real"]
    coef = check_units(lambda w: KINDS[kind](made(skdp.DPLinearRegression), X, y, w), weights)
    exact = linear_model.LinearRegression().fit(X, y, weights).coef_
    assert relative_error(coef, exact) < 0.03


def test_long_tails_are_not_cut_away(rng):
    """Log-normal weights: without them slopes are 1 and .7."""
    z, X = rng.standard_normal(N_ROWS), rng.standard_normal((N_ROWS, 1))
    weights = 3e4 * np.exp(z)
    y = (1 + z) * X[:, 0] + rng.standard_normal(len(z))
    labels = rng.random(len(z)) < 1 / (1 + np.exp(-(0.8 + 0.6 * z) * X[:, 0]))
    for estimator, theirs, targets in (
        (skdp.DPLinearRegression, linear_model.LinearRegression(), y),
        (skdp.DPLogisticRegression, linear_model.LogisticRegression(), labels.astype(int)),
    ):
        exact = theirs.fit(X, targets, weights).coef_
        for epsilon, error in ((1.0, 0.15), (10.0, 0.05)):
            fits = (made(estimator, seed, epsilon=epsilon) for seed in range(3))
            coef = np.mean([one.fit(X, targets, weights).coef_ for one in fits], axis=0)
            assert relative_error(coef, exact) < error


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_rows_of_weight_0_are_as_if_left_out(rng, share):
    X = rng.standard_normal((6_000, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(len(X))
    weights = (np.arange(len(X)) >= share * len(X)).astype(float)
    for estimator in (skdp.DPRidge, skdp.DPLasso, skdp.DPQuantileRegressor):
        terms = {"epsilon": 2.0, "alpha": 0.1} if estimator is skdp.DPLasso else {"epsilon": 2.0}
        model = made(estimator, **terms).fit(X, y, weights)
        assert r2_score(y, model.predict(X)) > 0.91
        assert model.scaling_.targets.scale[0] < 7  # 3.9
    if share == 0.5:
        bag = BaggingRegressor(
            skdp.DPRidge(epsilon=2.0), 3, bootstrap=False, max_samples=0.5, random_state=0
        )
        assert r2_score(y, bag.fit(X, y).predict(X)) > 0.91


def test_rows_of_a_label_of_weight_0_are_as_if_left_out(rng):
    """Three rows of four have the label 0."""
    X = rng.standard_normal((6_000, 3))
    y = np.argmax(X @ rng.standard_normal((3, 3)) + rng.gumbel(size=X.shape) + [2.5, 0, 0], axis=1)
    by_label = {0: 0, 1: 1, 2: 3}
    theirs = linear_model.LogisticRegression(C=0.1, class_weight=by_label).fit(X, y)
    model = made(skdp.DPLogisticRegression, classes=[0, 1, 2], C=0.1, class_weight=by_label)
    for weights in (None, np.full(6_000, 7.0)):
        found = model.fit(100 * X + 3000, y, weights).predict_proba(100 * X + 3000)
        assert np.abs(found - theirs.predict_proba(X)).mean() < 0.02  # 0.2 with wrong ranges
    planned = model.plan(6_000, n_features=3, n_classes=3, weighted=True)
    assert [one.kind for one in planned.releases] == [one.kind for one in model.privacy_.releases]


@pytest.fixture
def scales(monkeypatch, rng):
    """Return scales of weights, from counts with noise of this standard deviation."""

    def estimated(weights, std, number):
        weights = releases.logarithms(weights)

        def counts(self, oracle, request, share):
            places = np.clip((weights - request.low) / request.width, 0, request.n_bins - 1)
            exact = np.bincount(places.astype(int), minlength=request.n_bins)
            return exact + std * rng.standard_normal(request.n_bins), std

        monkeypatch.setattr(WeightStage, "_request", counts)
        return np.array([WeightStage()._scale(None) for _ in range(number)])

    return estimated


@pytest.mark.parametrize(("std", "unit"), [(27.0, 1e-6), (40.0, 1.0)])
def test_noise_is_hardly_ever_taken_for_weights(scales, std, unit):
    """Of 300 rows with one weight: in nearly all fits the scale is at most 4 times as large."""
    found = scales(np.full(300, unit), std, 2_000)
    assert np.sum(found > 30 * unit) <= 4
    assert np.sum(found > 4 * unit) <= 50
    assert np.sum(found < unit) <= 20


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    ("n_heavy", "heavy", "clipped"), [(200, 20.0, 0.01), (160, 50.0, 0.01), (80, 50.0, 0.2)]
)
def test_few_heavy_rows_keep_their_weights(scales, n_heavy, heavy, clipped, unit):
    """Of 4,000 rows, with the noise of epsilon 1: of most weights, by a scale that is no larger."""
    weights = np.where(np.arange(4_000) < n_heavy, heavy, 1.0)
    found = scales(unit * weights, 19.0, 300) / unit
    kept = np.minimum(weights, found[:, None]).sum(axis=1)
    assert 1 - kept.mean() / weights.sum() < clipped
    assert np.median(found) < 1.3 * heavy


def test_a_scaler_leaves_out_rows_of_weight_0(rng):
    X = rng.standard_normal((6_000, 3)) * [1.0, 10.0, 0.1]
    weights = (np.arange(len(X)) >= 0.8 * len(X)).astype(float)
    scaler = skdp.DPStandardScaler(epsilon=2.0, privacy=skdp.Privacy(noise=skdp.SeededNoise(0)))
    scaler.fit(skdp.data.Chunks(X, X[:, 0], 2_000, sample_weight=weights))
    np.testing.assert_allclose(scaler.scale_, [1.0, 10.0, 0.1], rtol=0.5)


def test_a_declared_bound_takes_the_place_of_the_estimate(problem):
    X, targets, weights = problem
    terms = skdp.Privacy(noise=skdp.SeededNoise(0), max_weight=2.0)
    model = skdp.DPLinearRegression(epsilon=50.0, privacy=terms).fit(X, targets["real"], weights)
    kinds = {release.kind for release in model.privacy_.releases}
    assert "weight_sums" in kinds
    assert "weight_counts" not in kinds
    assert "declared" in " ".join(model.privacy_.assumptions)
    assert model.scaling_.weights.scale == 2.0
    exact = linear_model.LinearRegression().fit(X, targets["real"], weights).coef_
    assert relative_error(model.coef_, exact) < 0.03
    with pytest.raises(ValueError, match="max_weight"):
        skdp.DPRidge(privacy=skdp.Privacy(max_weight=-1.0)).fit(X, targets["real"], weights)


@pytest.mark.parametrize("scale", [5e-324, 1e-5, 1.0, 1e300])
def test_weights_in_units_of_the_scale_are_at_most_1(scale):
    weights = np.array([0.0, 5e-324, 1e-300, 1.0, 1e6, 1.7e308])
    found = Weights(scale).apply(weights, np.zeros((6, 1)))
    assert ((found >= 0) & (found <= 1)).all()
    assert found[0] == 0


# ---------------------------------------------------------------- privacy


MODELS = {
    "rows": (skdp.DPRidge(solver="gd", max_iter=3), {}),
    "classes": (
        skdp.DPLogisticRegression(
            classes=[0, 1], class_weight={0: 1, 1: 99}, solver="gd", max_iter=3, epsilon=20.0
        ),
        {},
    ),
    "groups": (skdp.DPRidge(solver="gd", max_iter=3), {"groups": np.arange(12) // 3}),
    "pure": (skdp.DPRidge(solver="gd", max_iter=3, delta=0.0, epsilon=20.0), {}),
}


def replayed(model, adjacency, groups=None):
    X, y = audit.neighbours.made_up_data(model, (12, 3))
    return audit.replay(model, X, y, groups=groups, adjacency=adjacency)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("name", MODELS)
def test_no_weight_moves_an_answer_by_more_than_its_sensitivity(name, adjacency):
    model, beside = MODELS[name]
    report = replayed(model, adjacency, **beside)
    assert report.ok, report
    assert {"weight_counts", "weight_sums"} <= {release.kind for release in report.releases}


@pytest.mark.filterwarnings("ignore:.*epsilon=inf adds no noise")
@pytest.mark.parametrize("max_weight", [None, 1.0])
def test_without_noise_a_solver_with_a_filter_takes_weights(max_weight):
    """Weights leave a filter its budget, also where answers carry no noise."""
    X = np.random.default_rng(3).standard_normal((50, 2))
    weights = np.where(np.arange(50) < 40, 1.0, 0.0)
    given = {"solver": "residual_budget", "epsilon": np.inf, "scaling": "none", "max_iter": 500}
    privacy = skdp.Privacy(max_weight=max_weight)
    y = np.where(weights > 0, X @ [1.0, -2.0], 7.0)
    model = skdp.DPLinearRegression(**given, privacy=privacy).fit(X, y, sample_weight=weights)
    assert model.coef_ == pytest.approx([1.0, -2.0], abs=0.01)
