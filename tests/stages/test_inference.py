"""The one-step estimate and its covariance: closed forms, the law of its noise, coverage."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import skdp
from skdp._oracle import Public, make_plan, noise_source, run
from skdp._oracle.sources.memory import MemorySource
from skdp._stages.inference import InferenceStage
from skdp._stages.inference_bounds import Bounds, weighted_means
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Logistic, Problem, SquaredError, TweedieLog

MODELS = {
    "linear": skdp.DPLinearRegression,
    "logistic": functools.partial(skdp.DPLogisticRegression, classes=[0, 1]),
}


def fitted(kind, X, y, seed=0, adjacency="zero_out", **parameters):
    privacy = skdp.Privacy(adjacency=adjacency, noise=skdp.SeededNoise(seed))
    return MODELS[kind](inference="coefficients", privacy=privacy, **parameters).fit(X, y)


def draw(kind, rng, n=4000, sizes=(1.0, 2.0, 0.1, 50.0), offset=2.0):
    """Raw columns, targets, slopes and the intercept."""
    sizes = np.array(sizes)
    Z = rng.standard_normal((n, len(sizes)))
    slopes = np.resize([0.7, -0.5, 0.0, 0.3], len(sizes)) / sizes
    X = (Z + offset) * sizes
    margins = 0.2 + X @ slopes - (X @ slopes).mean()
    intercept = 0.2 - (X @ slopes).mean()
    if kind == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-margins))).astype(int), slopes, intercept
    return X, margins + rng.standard_normal(n) * (0.5 + np.abs(Z[:, 0])), slopes, intercept


# ---------------------------------------------------------------- without noise: closed forms


def hc1(Z, y):
    """Least squares and its heteroskedasticity-consistent covariance, times n / (n - p)."""
    inverse = np.linalg.inv(Z.T @ Z)
    found = inverse @ Z.T @ y
    scores = Z * (y - Z @ found)[:, None]
    return found, n_over_rest(Z) * inverse @ (scores.T @ scores) @ inverse


def n_over_rest(Z):
    return len(Z) / (len(Z) - Z.shape[1])


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("scaling", ["none", "private"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_least_squares(rng, scaling, fit_intercept):
    # Without a scaling, columns of very different sizes would make the solver diverge.
    sizes = np.ones(4) if scaling == "none" else (1.0, 2.0, 0.1, 50.0)
    X, y, *_ = draw("linear", rng, sizes=sizes, offset=0.3)
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    expected, covariance = hc1(Z, y)
    # A solution that is far off: one step mends it, as the loss is quadratic.
    model = fitted(
        "linear", X, y, epsilon=np.inf, scaling=scaling, fit_intercept=fit_intercept,
        solver="gd", max_iter=2,
    )  # fmt: skip
    assert not np.allclose(model.coef_, expected[:4], rtol=0.01)
    np.testing.assert_allclose(model.coef_debiased_, expected[:4], rtol=1e-7)
    if fit_intercept:
        assert model.intercept_debiased_ == pytest.approx(expected[-1], rel=1e-6)
    # The sandwich is that of the residuals at the solution; from the least squares fit it is HC1.
    model = fitted("linear", X, y, epsilon=np.inf, scaling="private", fit_intercept=fit_intercept)
    np.testing.assert_allclose(model.coef_debiased_, expected[:4], rtol=1e-9)
    if fit_intercept:
        np.testing.assert_allclose(model.coef_covariance_, covariance[:4, :4], rtol=1e-4)
    assert model.inference_.cut == 0
    assert (model.inference_.privacy_share == 0).all()


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_without_noise_it_is_the_maximum_of_the_likelihood_under_any_penalty(rng):
    X, y, *_ = draw("logistic", rng)
    model = fitted("logistic", X, y, epsilon=np.inf, C=0.001, scaling="none")
    plain = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(X, y)
    assert not np.allclose(model.coef_, plain.coef_, rtol=0.1)
    np.testing.assert_allclose(model.coef_debiased_, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_debiased_, plain.intercept_, rtol=1e-6)
    Z = np.column_stack([X, np.ones(len(X))])
    q = plain.predict_proba(X)[:, 1]
    inverse = np.linalg.inv((Z * (q * (1 - q))[:, None]).T @ Z)
    scores = Z * (q - y)[:, None]
    sandwich = n_over_rest(Z) * inverse @ (scores.T @ scores) @ inverse
    np.testing.assert_allclose(model.coef_covariance_, sandwich[:4, :4], rtol=1e-6)
    assert model.intercept_std_error_ == pytest.approx(np.sqrt(sandwich[-1, -1]), rel=1e-6)


def draw_classes(rng, n=3000, intercepts=(0.4, 0.0, -0.4)):
    """Raw columns, classes 0 to 2, slopes and intercepts that add up to 0."""
    sizes = np.array([1.0, 50.0, 0.1])
    slopes = np.array([[1.0, -0.5, 0.0], [-0.5, 0.5, 0.3], [-0.5, 0.0, -0.3]]) / sizes
    X = (rng.standard_normal((n, 3)) + 1.0) * sizes
    margins = (X - sizes) @ slopes.T + intercepts
    labels = (margins + rng.gumbel(size=margins.shape)).argmax(axis=1)
    return X, labels, slopes, intercepts - slopes @ sizes


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_without_noise_it_is_the_multinomial_maximum_with_its_sandwich(rng):
    """Under any penalty; its classes add up to 0, which the pseudoinverse keeps."""
    X, y, *_ = draw_classes(rng)
    X /= [1.0, 50.0, 0.1]
    model = skdp.DPLogisticRegression(
        classes=[0, 1, 2], epsilon=np.inf, C=0.001, scaling="none", inference="coefficients"
    ).fit(X, y)
    plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    assert not np.allclose(model.coef_, plain.coef_, rtol=0.1)
    np.testing.assert_allclose(model.coef_debiased_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_debiased_, plain.intercept_, atol=1e-6)
    Z, p = np.column_stack([X, np.ones(len(X))]), plain.predict_proba(X)
    weights = p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]
    hessian = np.einsum("nij,na,nb->iajb", weights, Z, Z).reshape(12, 12)
    scores = ((p - np.eye(3)[y])[:, :, None] * Z[:, None, :]).reshape(-1, 12)
    inverse = np.linalg.pinv(hessian, 1e-10, hermitian=True)
    # Eight parameters are free.
    covariance = len(X) / (len(X) - 8) * inverse @ (scores.T @ scores) @ inverse
    slopes = np.ix_(*[[4 * k + j for k in range(3) for j in range(3)]] * 2)
    np.testing.assert_allclose(model.coef_covariance_, covariance[slopes], atol=1e-7)
    errors = np.sqrt(np.diag(covariance)).reshape(3, 4)
    np.testing.assert_allclose(model.coef_std_error_, errors[:, :3], rtol=1e-5)
    np.testing.assert_allclose(model.intercept_std_error_, errors[:, 3], rtol=1e-5)
    margins, error = model.decision_function(X[:4], return_std=True)
    np.testing.assert_allclose(margins, plain.decision_function(X[:4]), atol=1e-5)
    own = [covariance[4 * k : 4 * k + 4, 4 * k : 4 * k + 4] for k in range(3)]
    expected = np.sqrt(np.einsum("na,kab,nb->nk", Z[:4], own, Z[:4]))
    np.testing.assert_allclose(error, expected, rtol=1e-5)


def test_the_error_of_classes_is_as_large_as_stated():
    """In z values, of raw columns, at a small budget."""
    z = []
    for seed in range(20):
        X, y, slopes, intercepts = draw_classes(np.random.default_rng(seed), 6000)
        privacy = skdp.Privacy(noise=skdp.SeededNoise(seed))
        model = skdp.DPLogisticRegression(
            classes=[0, 1, 2], epsilon=2.0, scaling="private", inference="coefficients",
            privacy=privacy,
        ).fit(X, y)  # fmt: skip
        assert model.determined_.all()
        errors = model.coef_debiased_ - slopes, model.intercept_debiased_ - intercepts
        stds = model.coef_std_error_, model.intercept_std_error_
        z.append(np.concatenate([np.ravel(e / s) for e, s in zip(errors, stds, strict=True)]))
    # 160 values are free: their mean square has a standard error of 0.11.
    assert 0.6 < np.mean(np.square(z)) < 1.5


GENERAL = {
    "poisson": (skdp.DPPoissonRegressor, lambda m, y: (m - y, m)),
    "gamma": (skdp.DPGammaRegressor, lambda m, y: (1 - y / m, np.ones_like(m))),
    "tweedie": (
        functools.partial(skdp.DPTweedieRegressor, power=1.5),
        lambda m, y: (m**0.5 - y / m**0.5, m**0.5),
    ),
}


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("kind", GENERAL)
def test_without_noise_it_is_the_quasi_likelihood_with_hc1_errors(rng, kind):
    X = rng.standard_normal((2000, 3))
    mean = np.exp(X @ [0.3, -0.2, 0.0] + 2.0)
    y = rng.poisson(mean) * 1.0 if kind == "poisson" else rng.gamma(2.0, mean / 2)
    make, terms = GENERAL[kind]
    privacy = skdp.Privacy(noise=skdp.SeededNoise(0))
    model = make(epsilon=np.inf, inference="coefficients", privacy=privacy).fit(X, y)
    Z, found = np.column_stack([X, np.ones(2000)]), np.array([0.0, 0.0, 0.0, np.log(y.mean())])
    for _ in range(20):
        r, w = terms(np.exp(Z @ found), y)
        inverse = np.linalg.inv((Z * w[:, None]).T @ Z)
        found = found - inverse @ (Z.T @ r)
    scores = Z * r[:, None]
    sandwich = n_over_rest(Z) * inverse @ (scores.T @ scores) @ inverse
    errors = np.sqrt(np.diag(sandwich))
    debiased = np.append(model.coef_debiased_, model.intercept_debiased_)
    assert np.abs((debiased - found) / errors).max() < 0.01
    np.testing.assert_allclose(model.coef_std_error_, errors[:3], rtol=0.01)
    ratios = model.coefficients().sort_index()
    ends = ratios[["lower", "upper"]].to_numpy()
    np.testing.assert_allclose(ends, np.exp(model.conf_int()))
    mean, error = model.predict(X[:2], return_std=True)
    np.testing.assert_allclose(mean, np.exp(Z[:2] @ debiased))
    np.testing.assert_allclose(
        error / mean, np.sqrt(np.einsum("ij,jk,ik->i", Z[:2], sandwich, Z[:2])), rtol=0.02
    )


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_weighted_means_of_normal_columns(rng, power):
    """By a quadrature; of squared error they are the means."""
    Z = np.column_stack([rng.standard_normal((200_000, 2)), np.ones(200_000)])
    Z[:, 0] += 0.2
    coef = np.array([0.5, -0.3, 0.1])
    gram = Z.T @ Z / len(Z)
    loss = TweedieLog(power, bounded=True)
    weights = loss.working_weight((Z @ coef)[:, None], np.zeros((len(Z), 1)))[:, 0]
    weight, means = weighted_means(loss, gram, coef)
    assert weight == pytest.approx(weights.mean(), rel=0.01)
    np.testing.assert_allclose(means, weights @ Z[:, :2] / weights.sum(), atol=0.01)
    weight, means = weighted_means(SquaredError(), gram, coef)
    assert weight == pytest.approx(1.0)
    np.testing.assert_allclose(means, gram[-1, :2], atol=1e-12)


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_without_noise_it_is_hubers_regression_with_hc1_errors(rng):
    X, y, *_ = draw("linear", rng, sizes=np.ones(4), offset=0.3)
    model = skdp.DPHuberRegressor(
        1.0, epsilon=np.inf, scaling="none", inference="coefficients"
    ).fit(X, y)
    Z = np.column_stack([X, np.ones(len(X))])
    found = hc1(Z, y)[0]
    for _ in range(30):
        r = Z @ found - y
        inverse = np.linalg.inv(Z[np.abs(r) < 1].T @ Z[np.abs(r) < 1])
        scores = Z * np.clip(r, -1, 1)[:, None]
        found = found - inverse @ scores.sum(axis=0)
    errors = np.sqrt(n_over_rest(Z) * np.diag(inverse @ (scores.T @ scores) @ inverse))
    assert np.abs((model.coef_debiased_ - found[:4]) / errors[:4]).max() < 0.01
    np.testing.assert_allclose(model.coef_std_error_, errors[:4], rtol=0.01)


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_without_noise_steps_to_where_numbers_end_are_not_taken(rng):
    X, y = 1e80 ** rng.uniform(-1, 1, (200, 3)), rng.integers(0, 2, 200)
    assert not fitted("logistic", X, y, epsilon=np.inf, C=1e-3, scaling="none").determined_.any()


def test_under_a_strong_penalty_there_are_more_steps_ahead():
    """Of a rare column; with two steps it came out 1.8 standard errors too low, on average."""
    slopes, z = np.array([0.5, 3.0]), []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.standard_normal(200_000), rng.random(200_000) < 0.05])
        y = rng.random(200_000) < 1 / (1 + np.exp(0.5 - X @ slopes))
        model = fitted("logistic", X, y, seed, scaling=skdp.RowNorm(2.0), C=1e-5)
        z.append((model.coef_debiased_[0] - slopes) / model.coef_std_error_)
    assert np.abs(np.mean(z, axis=0)).max() < 4 / np.sqrt(8)


# ---------------------------------------------------------------- the law of the noise


def estimates(kind, rng, n_draws, n, d=4, epsilon=2.0):
    """Debiased estimates of the same rows by a step from 0, with fresh noise each."""
    X = rng.standard_normal((n, d)) @ np.linalg.cholesky(0.5 * np.eye(d) + 0.5).T
    margins = X @ np.linspace(0.5, -0.4, d)
    loss, targets = SquaredError(), margins + 0.7 * rng.standard_normal(n)
    if kind == "logistic":
        loss, targets = Logistic(), (rng.random(n) < 1 / (1 + np.exp(-margins))).astype(float)
    public = Public(n, d, 1, Adjacency.ZERO_OUT, epsilon, 1e-6)
    problem = Problem(loss, ElasticNet())
    stages = (InferenceStage(1 / 3),)
    plan = make_plan(stages, public, problem)
    rows, coins = MemorySource.of(X, targets[:, None]), np.random.default_rng(0)
    return [
        run(plan, stages, public, problem, rows, noise_source(seed), coins).results["debiased"]
        for seed in range(n_draws)
    ]


def moments_of_noise(found):
    """Covariance of the estimates next to the one they state: eigenvalues, and their mean."""
    coef = np.array([one.coef for one in found])
    stated = np.mean([one.privacy_covariance for one in found], axis=0)
    half = np.linalg.inv(np.linalg.cholesky(stated))
    ratios = np.linalg.eigvalsh(half @ np.cov(coef.T) @ half.T)
    return ratios, ratios.mean()


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_the_noise_has_the_covariance_that_is_stated(rng, kind):
    ratios, mean = moments_of_noise(estimates(kind, rng, n_draws=500, n=6000))
    # 500 draws in 5 directions: the mean has a standard error of 0.03, a single one of 0.06.
    assert 0.88 < mean < 1.12
    assert (ratios > 0.75).all()
    assert (ratios < 1.35).all()


# ---------------------------------------------------------------- coverage


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("linear", {"scaling": "private"}),
        ("logistic", {"adjacency": "replace_one", "epsilon": 6.0}),
        pytest.param(
            "linear", {"adjacency": "replace_one", "epsilon": 6.0}, marks=pytest.mark.slow
        ),
        pytest.param("logistic", {"scaling": "private"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_errors_are_as_large_as_stated(rng, kind, parameters):
    """In z values, which are standard normal if intervals cover at their level."""
    z = []
    for seed in range(25):
        X, y, slopes, intercept = draw(kind, rng, 3000)
        model = fitted(kind, X, y, seed, **{"epsilon": 3.0, **parameters})
        assert model.determined_.all()
        errors = np.append(model.coef_debiased_ - slopes, model.intercept_debiased_ - intercept)
        z.append(errors / np.append(model.coef_std_error_, model.intercept_std_error_))
    z = np.array(z)
    # 125 values: their mean square has a standard error of 0.13.
    assert 0.55 < np.mean(z**2) < 1.5
    assert np.mean(np.abs(z) < 1.96) > 0.88


def test_what_the_rows_cannot_tell_is_not_determined(rng):
    """Of few rows nothing; a column that holds one value, by itself."""
    X, y = rng.standard_normal((2000, 20)), rng.integers(2, size=2000)
    for kind, epsilon in itertools.product(MODELS, (0.3, 1.0)):
        with pytest.warns(skdp.NoiseWarning, match="no coefficient is likely"):
            model = fitted(kind, X, y, epsilon=epsilon, scaling="none")
        assert not model.determined_.any()
        assert np.isnan(model.p_values_).all()
        assert np.isinf(model.conf_int(intercept=True)).all()
    X = rng.standard_normal((20_000, 4))
    X[:, 2] = 0.0
    model = fitted("linear", X, X[:, 0] + rng.standard_normal(20_000), scaling="none")
    np.testing.assert_array_equal(model.determined_, [True, True, False, True])
    covariance = model.coef_covariance_
    assert covariance[2, 2] == np.inf
    assert np.isnan(covariance[2, [0, 1, 3]]).all()
    assert np.isfinite(np.delete(np.delete(covariance, 2, 0), 2, 1)).all()
    assert model.intercept_std_error_ == np.inf


# ---------------------------------------------------------------- what is expected beforehand


@pytest.mark.parametrize(
    ("kind", "n", "d", "epsilon"),
    [("linear", 10_000, 5, 1.0), ("linear", 3000, 8, 2.0), ("logistic", 4000, 5, 1.0)],
)
def test_the_expected_error_is_near_what_comes_out(rng, kind, n, d, epsilon):
    loss = SquaredError() if kind == "linear" else Logistic()
    public = Public(n, d, 1, Adjacency.ZERO_OUT, epsilon, 1e-6)
    expected = Bounds.of(public, Problem(loss, ElasticNet()), 1 / 3).relative_error
    X = rng.standard_normal((n, d))
    y = X @ np.full(d, d**-0.5)
    if kind == "logistic":
        y = (y + rng.logistic(size=n) > 0).astype(int)
    else:
        y = (y + rng.standard_normal(n)) / np.sqrt(2)
    found = fitted(kind, X, y, epsilon=epsilon, scaling="none").inference_.relative_error
    assert expected == pytest.approx(np.median(found), rel=0.3)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_of_zeros_that_are_public_lead_to_no_error():
    """A Gram matrix without noise may be 0; nothing is refused once the budget is spent."""
    given = {"fit_intercept": False, "inference": "coefficients"}
    model = skdp.DPRidge(**given, privacy=skdp.Privacy(adjacency="label"))
    model.fit(np.zeros((40, 3)), np.arange(40.0))
    assert np.isfinite(model.coef_).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_huge_targets_of_a_log_link_lead_to_no_error():
    """Caps of residuals stay in the range of bounds, whatever unit the targets appear to have."""
    rng = np.random.default_rng(5)
    given = {"fit_intercept": False, "inference": "coefficients"}
    model = skdp.DPGammaRegressor(epsilon=1e4, solver="gd", max_iter=5, **given)
    model.fit(rng.standard_normal((40, 2)), np.exp(rng.standard_normal(40)) * 1e299)
    assert np.isfinite(model.coef_).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_huge_targets_without_an_intercept_have_a_finite_range():
    """The range of counts is finite, also where their unit squared is not."""
    y = np.exp(np.random.default_rng(5).standard_normal(40)) * 1e299
    model = skdp.DPPoissonRegressor(epsilon=1e4, fit_intercept=False, solver="gd", max_iter=5)
    model.fit(np.ones((40, 2)), y)
    assert np.isfinite(model.scaling_.targets.high).all()


def test_a_plan_speaks_of_groups():
    model = skdp.DPLinearRegression(inference="coefficients")
    with pytest.warns(UserWarning, match="Use more groups"):
        model.plan(None, 10, n_groups=300)
    rows, groups = model.plan(90_000, 10), model.plan(None, 10, n_groups=90_000)
    assert rows.releases == groups.releases


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize(("share", "n_rows"), [(1 / 3, 1000), (0.1, 1000), (1 / 3, 100_000)])
def test_shares_add_up_to_that_of_the_stage(share, n_rows, adjacency):
    """In mu squared, next to what scaling leaves; the solver has the rest."""
    parameters = {"scaling": "none", "inference": skdp.CoefficientInference(share), "epsilon": 2.0}
    privacy = skdp.Privacy(adjacency=str(adjacency))
    for model in (
        skdp.DPLinearRegression(),
        skdp.DPHuberRegressor(),
        skdp.DPLogisticRegression(classes=[0, 1]),
        skdp.DPLogisticRegression(classes=[0, 1, 2]),
    ):
        statement = model.set_params(privacy=privacy, **parameters).plan(n_rows, 4)
        squares = [record.count * record.event.mu(adjacency) ** 2 for record in statement.releases]
        names = [record.kind for record in statement.releases]
        first = len(names) - names[::-1].index("gram") - 1
        assert sum(squares[first:]) == pytest.approx(share * sum(squares), rel=1e-6)
