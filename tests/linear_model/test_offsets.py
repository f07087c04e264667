"""Offsets of margins: equal to exact fits, in all kinds of rows, and seen only through releases."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sklearn
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from replays import seeded
from skdp import audit
from skdp.audit.neighbours import hostile_pairs, made_up_data, relation_of
from skdp.linear_model import PublicModel
from skdp.metrics import evaluate
from skdp.objective import Multinomial, OffsetLogistic, OffsetMultinomial

N_ROWS = 3_000
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N_ROWS, 3))
OFFSET = 0.7 * RNG.standard_normal(N_ROWS)
MARGINS = 0.3 + X @ [0.5, -0.4, 0.2] + OFFSET
Y = {
    "real": MARGINS + RNG.standard_normal(N_ROWS),
    "label": (RNG.random(N_ROWS) < expit(MARGINS)).astype(int),
    "count": RNG.poisson(np.exp(MARGINS)).astype(float),
    "positive": RNG.gamma(2.0, np.exp(MARGINS) / 2) + 1e-9,
}
CLASSES = RNG.integers(0, 3, N_ROWS)
CLASSES[X[:, 0] > 1] = 0
pytestmark = pytest.mark.filterwarnings("ignore:.*adds no noise:skdp.PrivacyWarning")
# Value of the loss at a margin, up to a term without it.
EXACT = {
    "real": lambda m, y: (m - y) ** 2 / 2,
    "label": lambda m, y: np.logaddexp(0, m) - y * m,
    "count": lambda m, y: np.exp(m) - y * m,
    "positive": lambda m, y: m + y * np.exp(-m),
}
MODELS = {
    "real": skdp.DPLinearRegression,
    "label": lambda **given: skdp.DPLogisticRegression(C=math.inf, classes=[0, 1], **given),
    "count": skdp.DPPoissonRegressor,
    "positive": skdp.DPGammaRegressor,
}


def coefficients(model):
    return np.r_[np.ravel(model.intercept_), np.ravel(model.coef_)]


def fitted(kind, epsilon=math.inf, **given):
    terms = {} if math.isinf(epsilon) else {"privacy": seeded()}
    return MODELS[kind](epsilon=epsilon, **terms, **given)


@pytest.mark.parametrize("kind", MODELS)
def test_fits_are_those_of_the_margin_with_its_offset(kind):
    Z = np.c_[np.ones(N_ROWS), X]
    start = np.zeros(4)
    exact = minimize(lambda b: EXACT[kind](Z @ b + OFFSET, Y[kind]).mean(), start, tol=1e-10).x
    model = fitted(kind).fit(X, Y[kind], offset=OFFSET)
    np.testing.assert_allclose(coefficients(model), exact, atol=1e-4)
    noisy = fitted(kind, 50.0).fit(X, Y[kind], offset=OFFSET)
    assert np.linalg.norm(coefficients(noisy) - exact) < 0.1 * np.linalg.norm(exact)


def test_offsets_of_classes():
    """A fit from an offset by other coefficients ends where the fit without it does."""
    model = skdp.DPLogisticRegression(C=math.inf, classes=[0, 1, 2], epsilon=math.inf)
    base = RNG.standard_normal((3, 3))
    plain = model.fit(X, CLASSES).predict_proba(X)
    offset = X @ base.T
    moved = model.fit(X, CLASSES, offset=offset).predict_proba(X, offset=offset)
    np.testing.assert_allclose(plain, moved, atol=1e-5)


def test_medians_and_huber_fits_move_with_an_offset():
    for model in (skdp.DPQuantileRegressor(epsilon=20.0), skdp.DPHuberRegressor(epsilon=20.0)):
        model.set_params(privacy=seeded())
        moved = model.fit(X, Y["real"], offset=OFFSET).coef_
        np.testing.assert_array_equal(moved, model.fit(X, Y["real"] - OFFSET).coef_)


KINDS = {
    "csr": lambda model, y: model.fit(sparse.csr_array(X), y, offset=OFFSET),
    "float32": lambda model, y: model.fit(X.astype(np.float32), y, offset=OFFSET),
    "list": lambda model, y: model.fit(X, y, offset=OFFSET.tolist()),
    "column": lambda model, y: model.fit(X, y, offset=OFFSET[:, None]),
    "chunks": lambda model, y: model.fit(skdp.data.Chunks(X, y, 1_000, offset=OFFSET)),
    "groups": lambda model, y: model.fit(X, y, offset=OFFSET, groups=np.arange(N_ROWS)),
    "weights": lambda model, y: model.fit(X, y, np.ones(N_ROWS), offset=OFFSET),
    "pipeline": lambda model, y: make_pipeline(FunctionTransformer(), model).fit(
        X, y, **{f"{type(model).__name__.lower()}__offset": OFFSET}
    ),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("rows", KINDS)
def test_all_kinds_of_rows_take_offsets(rows, kind):
    exact = coefficients(fitted(kind).fit(X, Y[kind], offset=OFFSET))
    found = KINDS[rows](fitted(kind, 30.0), Y[kind])
    found = coefficients(found[-1] if rows == "pipeline" else found)
    assert np.linalg.norm(found - exact) < 0.15 * np.linalg.norm(exact)


def test_predictions_get_the_offset():
    for kind in ("real", "count"):
        model = fitted(kind).fit(X, Y[kind], offset=OFFSET)
        linear = model.intercept_ + X @ model.coef_ + OFFSET
        expected = linear if kind == "real" else np.exp(linear)
        np.testing.assert_allclose(model.predict(X, offset=OFFSET), expected, rtol=1e-6)
    model = fitted("label").fit(X, Y["label"], offset=OFFSET)
    linear = model.intercept_ + X @ model.coef_[0] + OFFSET
    np.testing.assert_allclose(model.predict_proba(X, offset=OFFSET)[:, 1], expit(linear))
    np.testing.assert_array_equal(model.predict(X, offset=OFFSET), (linear > 0).astype(int))
    log_odds = np.diff(model.predict_log_proba(X, offset=OFFSET), axis=1)[:, 0]
    np.testing.assert_allclose(log_odds, linear, rtol=1e-6)


@pytest.mark.parametrize("prior", [None, PublicModel(np.zeros(3))], ids=["", "prior"])
@pytest.mark.parametrize("rows", ["array", "chunks"])
@pytest.mark.parametrize("kind", MODELS)
def test_predictions_of_a_model_with_an_offset_need_one(kind, rows, prior):
    model = fitted(kind, 9.0, prior=prior)
    model.fit(X, Y[kind]).predict(X)
    if rows == "chunks":
        model.fit(skdp.data.Chunks(X, Y[kind], 1_000, offset=OFFSET))
    else:
        model.fit(X, Y[kind], offset=OFFSET)
    methods = ["predict", "predict_proba", "predict_log_proba", "decision_function"]
    for name in methods if kind == "label" else methods[:1]:
        method = getattr(model, name)
        with pytest.raises(skdp.InputError, match="fitted with an offset, and none was given"):
            method(X)
        assert np.any(method(X, offset=OFFSET) != method(X, offset=np.zeros(N_ROWS)))
    with pytest.raises(skdp.InputError, match="fitted with an offset"):
        model.score(X, Y[kind])
    with (
        skdp.PrivacyBudget(9.0, 1e-6) as budget,
        pytest.raises(ValueError, match="fitted with an offset"),
    ):
        evaluate(model, X, Y[kind], "accuracy" if kind == "label" else "r2", target_range=(0, 9))
    assert budget.n_fits == 0


@pytest.mark.parametrize("kind", MODELS)
def test_exact_scores_get_the_offset(kind):
    model = fitted(kind).fit(X, Y[kind], offset=OFFSET)
    predicted = model.predict(X, offset=OFFSET)
    metric = {
        "real": r2_score,
        "label": accuracy_score,
        "count": partial(d2_tweedie_score, power=1),
        "positive": partial(d2_tweedie_score, power=2),
    }[kind]
    assert model.score(X, Y[kind], offset=OFFSET) == metric(Y[kind], predicted)
    with pytest.raises(ValueError, match="offset must have"):
        model.score(X, Y[kind], offset=OFFSET[1:])


@pytest.mark.parametrize("as_chunks", [False, True])
def test_scores_get_the_offset(as_chunks):
    model = fitted("label").fit(X, Y["label"], offset=OFFSET)
    wanted = np.mean(model.predict(X, offset=OFFSET) == Y["label"])
    terms = {"epsilon": 50.0, "delta": 1e-6, "privacy": seeded()}
    if as_chunks:
        rows = skdp.data.Chunks(X, Y["label"], 500, offset=OFFSET)
        score = evaluate(model, rows, metrics="accuracy", **terms)
    else:
        score = evaluate(model, X, Y["label"], "accuracy", offset=OFFSET, **terms)
    assert score["accuracy"].value == pytest.approx(wanted, abs=5e-3)
    regressor = fitted("real").fit(X, Y["real"], offset=OFFSET)
    with pytest.raises(ValueError, match="declare target_range"):
        evaluate(regressor, X, Y["real"], "r2", offset=OFFSET, **terms)
    score = evaluate(
        regressor, X, Y["real"], "r2", offset=OFFSET, target_range=(-5.0, 5.0), **terms
    )
    assert score["r2"].value > 0.4


RATES = {
    1.0: skdp.DPPoissonRegressor(alpha=0.0),
    1.5: skdp.DPTweedieRegressor(power=1.5, alpha=0.0),
    2.0: skdp.DPGammaRegressor(alpha=0.0),
}


@pytest.mark.parametrize("power", RATES)
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, N_ROWS)])
@pytest.mark.parametrize("groups", [None, np.arange(N_ROWS) // 3])
def test_errors_of_rates_are_the_sandwich(power, weights, groups):
    """White (1980) for rows, Liang and Zeger (1986) for groups."""
    model = clone(RATES[power]).set_params(epsilon=math.inf, inference="coefficients")
    found = model.fit(X, Y["positive"], weights, groups=groups, offset=OFFSET).inference_
    Z = np.c_[X, np.ones(N_ROWS)]
    means = np.exp(Z @ np.r_[found.coef, found.intercept] + OFFSET)
    weights = np.ones(N_ROWS) if weights is None else weights
    scores = (weights * (Y["positive"] - means) * means ** (1 - power))[:, None] * Z
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-6)
    if groups is not None:
        scores = np.add.reduceat(scores, np.arange(0, N_ROWS, 3))
    bread = np.linalg.inv((Z * (weights * means ** (2 - power))[:, None]).T @ Z)
    errors = np.sqrt(np.diag(bread @ scores.T @ scores @ bread))
    reported = np.r_[found.std_error, found.intercept_std_error]
    np.testing.assert_allclose(reported, errors, rtol=3e-3)


def test_errors_of_rates_are_those_of_chunks():
    model = skdp.DPPoissonRegressor(epsilon=math.inf, inference="coefficients")
    errors = model.fit(X, Y["count"], offset=OFFSET).inference_.std_error
    chunks = skdp.data.Chunks(X, Y["count"], 1_000, offset=OFFSET)
    np.testing.assert_allclose(model.fit(chunks).inference_.std_error, errors, rtol=1e-6)


def test_intervals_of_rates_hold_the_truth_as_often_as_they_say():
    """Exposures vary by a factor of 40. Of 48 intervals, 2.4 miss on average."""
    truth, missed = np.array([0.5, -0.3, 0.0, -1.0]), 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows, exposure = rng.standard_normal((8_000, 3)), rng.uniform(0.05, 2.0, 8_000)
        claims = rng.poisson(exposure * np.exp(rows @ truth[:3] + truth[3])).astype(float)
        model = skdp.DPPoissonRegressor(
            epsilon=4.0, inference="coefficients", privacy=seeded(seed), alpha=0.0
        )
        found = model.fit(rows, claims, offset=np.log(exposure)).inference_
        errors = np.r_[found.std_error, found.intercept_std_error]
        assert np.isfinite(errors).all()
        missed += np.sum(np.abs(np.r_[found.coef, found.intercept] - truth) > 1.96 * errors)
    assert missed <= 6


def test_offsets_are_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        step = fitted("count").set_fit_request(offset=True).set_predict_request(offset=True)
        pipeline = make_pipeline(FunctionTransformer(), step)
        pipeline.fit(X, Y["count"], offset=OFFSET)
        found = pipeline.predict(X, offset=OFFSET)
    plain = fitted("count").fit(X, Y["count"], offset=OFFSET).predict(X, offset=OFFSET)
    np.testing.assert_allclose(found, plain)


@pytest.mark.parametrize(
    ("estimator", "offset", "message"),
    [
        (skdp.DPRidge(), OFFSET[:-1], "one number for each row"),
        (skdp.DPRidge(), np.full(N_ROWS, np.nan), "NaN"),
        (skdp.DPRidge(), np.full(N_ROWS, 1e60), "at most 1e.50"),
        (skdp.DPRidge(), np.zeros((N_ROWS, 2)), "one column"),
        (skdp.DPPoissonRegressor(), np.full(N_ROWS, 51.0), "at most 50"),
        (skdp.DPLinearSVC(classes=[0, 1]), OFFSET, "possible with the loss 'smoothed_hinge'"),
        (
            skdp.DPLinearSVC(classes=[0, 1], prior=PublicModel(np.zeros(X.shape[1]))),
            None,
            "nor prior is possible",
        ),
    ],
)
def test_a_bad_offset_is_refused_before_the_charge(estimator, offset, message):
    y = Y["label"] if isinstance(estimator, skdp.DPLinearSVC) else Y["count"]
    with (
        skdp.PrivacyBudget(9.0, 1e-6) as budget,
        pytest.raises(ValueError, match=message) as refusal,
    ):
        estimator.fit(X, y, offset=offset)
    assert budget.n_fits == 0
    assert "othing was released" in str(refusal.value)


@pytest.mark.parametrize("loss", [OffsetLogistic(), OffsetMultinomial(3)])
def test_derivatives_are_those_at_the_moved_margin(loss):
    K = loss.n_outputs
    rng = np.random.default_rng(1)
    margins, offsets = rng.standard_normal((2, 40, K))
    targets = np.c_[rng.integers(0, max(K, 2), 40).astype(float), offsets]
    parent = Multinomial(K) if K > 1 else skdp.objective.Logistic()
    codes = targets[:, 0].astype(int) if K > 1 else targets[:, :1]
    moved = margins + offsets
    np.testing.assert_array_equal(loss.residual(margins, targets), parent.residual(moved, codes))
    weight = loss.working_weight(margins, targets)
    np.testing.assert_array_equal(weight, parent.working_weight(moved, codes))
    along = loss.second_derivative_along(margins, margins, targets)
    np.testing.assert_array_equal(along, parent.second_derivative_along(moved, margins, codes))


# ---------------------------------------------------------------- replay and mutants


def pairs_with_offsets(estimator, relation, groups=None):
    """Hostile neighbours, whose records that differ have other offsets as well."""
    rows, y = made_up_data(estimator)
    weighted = relation != "label" and vars(estimator).get("inference") is None
    every = hostile_pairs(estimator, rows, y, relation_of(estimator), groups, weighted)
    rng = np.random.default_rng(2)
    for number, pair in enumerate(every):
        if len(pair.data["y"]) != len(pair.neighbour["y"]) or sparse.issparse(pair.data["X"]):
            continue
        offset = rng.standard_normal(len(pair.data["y"]))
        other = offset.copy()
        if relation != "label":
            differs = np.zeros(len(offset), bool)
            for name in ("X", "y", "sample_weight"):
                if name in pair.data:
                    one, two = (np.asarray(side[name]) for side in (pair.data, pair.neighbour))
                    differs |= ~(one == two).reshape(len(offset), -1).all(axis=1)
            other[differs] = (40.0, -40.0, 3.0)[number % 3]
        yield replace(
            pair,
            data={**pair.data, "offset": offset},
            neighbour={**pair.neighbour, "offset": other},
        )


REPLAYED = {
    "linear": lambda terms: skdp.DPLinearRegression(privacy=terms),
    "linear, few steps": lambda terms: skdp.DPRidge(solver="gd", max_iter=3, privacy=terms),
    "logistic": lambda terms: skdp.DPLogisticRegression(classes=[0, 1], privacy=terms),
    "classes": lambda terms: skdp.DPLogisticRegression(classes=[0, 1, 2], privacy=terms),
    "inference": lambda terms: skdp.DPLogisticRegression(
        classes=[0, 1], inference="coefficients", privacy=terms
    ),
    "one by one": lambda terms: skdp.DPLogisticRegression(
        classes=[0, 1], solver=skdp.solvers.ShuffledSGD(batch_size=1), privacy=terms
    ),
    "poisson": lambda terms: skdp.DPPoissonRegressor(privacy=terms),
    "intervals of rates": lambda terms: skdp.DPPoissonRegressor(
        inference="coefficients", privacy=terms
    ),
    "quantile": lambda terms: skdp.DPQuantileRegressor(privacy=terms),
}


def replayed(name, adjacency, groups=None):
    estimator = REPLAYED[name](seeded(adjacency=adjacency))
    return audit.replay(
        estimator,
        *made_up_data(estimator),
        neighbours=pairs_with_offsets(estimator, adjacency, groups),
        groups=groups,
    )


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning", "ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one", "label"])
@pytest.mark.parametrize("name", REPLAYED)
def test_offsets_show_only_through_releases(name, adjacency):
    report = replayed(name, adjacency)
    assert report.ok, report


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning", "ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
def test_offsets_of_groups_show_only_through_releases(name):
    report = replayed(name, "zero_out", np.arange(60) // 3)
    assert report.ok, report
