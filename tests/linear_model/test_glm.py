"""Generalised linear models with a log link: solutions, accuracy, units, refusals."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score

import skdp
from replays import seeded
from skdp.audit import replay

EXACT = pytest.mark.filterwarnings("ignore:.*adds no noise:skdp.PrivacyWarning")
SLOPES = np.array([0.5, -0.4, 0.3, 0.2, 0, 0, 0, 0, 0, 0])
MODELS = {
    1.0: (skdp.DPPoissonRegressor, PoissonRegressor),
    1.5: (skdp.DPTweedieRegressor, TweedieRegressor),
    2.0: (skdp.DPGammaRegressor, GammaRegressor),
}


def draws(n_rows, mean, seed=0, power=1.0):
    """Rows, and counts or amounts with this mean."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 10))
    means = mean * np.exp(X @ SLOPES - SLOPES @ SLOPES / 2)
    if power == 2:
        return X, rng.gamma(2.0, means / 2)
    y = rng.poisson(means).astype(float)
    return X, y if power == 1 else rng.gamma(1.0, y)


def made(power, **parameters):
    given = {"power": power} if power == 1.5 else {}
    return MODELS[power][0](**given, **parameters)


def plain(power, **parameters):
    given = {"power": power} if power == 1.5 else {}
    return MODELS[power][1](**given, max_iter=1000, tol=1e-10, **parameters)


held_out = functools.cache(lambda mean, power: draws(20_000, mean, 99, power))


def d2_of(model, power=1.0, mean=2.0):
    X, y = held_out(mean, power)
    return d2_tweedie_score(y, model.predict(X), power=power)


# ---------------------------------------------------------------- without noise


@EXACT
def test_the_solution_of_glmnet():
    """glmnet 2.0 with family "poisson", alpha 0 and lambda 1, as scikit-learn's tests quote it."""
    X, y = np.array([[-2, -1, 1, 2], [0, 0, 1, 1.0]]).T, [0, 1, 1, 2]
    model = skdp.DPPoissonRegressor(
        alpha=1.0, epsilon=np.inf, scaling="none", solver=("gd", {"max_iter": 3000})
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, [0.29019207995, 0.03741173122], atol=1e-6)
    assert model.intercept_ == pytest.approx(-0.12889386979, abs=1e-6)


@EXACT
@pytest.mark.parametrize("scaling", [skdp.RowNorm(1e3, 1e3), skdp.PublicRange(target=1e3)])
@pytest.mark.parametrize("power", MODELS)
def test_without_noise_the_model_is_that_of_scikit_learn(power, scaling):
    X, y = draws(3000, 1.5, power=power)
    expected = plain(power, alpha=0.0).fit(X, y)
    model = made(power, epsilon=np.inf, scaling=scaling).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=2e-4)
    assert model.intercept_ == pytest.approx(expected.intercept_, abs=2e-4)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-3)
    assert model.score(X, y) == pytest.approx(expected.score(X, y), abs=1e-4)


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(np.inf, marks=EXACT)])
def test_without_an_intercept_the_mean_of_a_null_row_is_1(epsilon):
    X, y = draws(20_000, 1.0)
    expected = plain(1.0, alpha=0.0, fit_intercept=False).fit(X, y)
    model = skdp.DPPoissonRegressor(epsilon=epsilon, fit_intercept=False, privacy=seeded(0))
    np.testing.assert_allclose(model.fit(X, y).coef_, expected.coef_, atol=0.06)
    assert model.intercept_ == 0.0
    assert model.predict(0 * X[:1]) == 1.0


@EXACT
def test_power_0_is_least_squares():
    X, y = draws(300, 1.5)
    model = skdp.DPTweedieRegressor(epsilon=np.inf).fit(X, -y)
    expected = TweedieRegressor(power=0, alpha=0).fit(X, -y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)


# ---------------------------------------------------------------- accuracy at a budget


@pytest.mark.parametrize(
    ("n_rows", "mean", "epsilon", "least"),
    [(20_000, 2.0, 0.1, 0.95), (20_000, 2.0, 1.0, 0.98), (2000, 2.0, 1.0, 0.94)],
)
def test_most_of_the_explained_deviance_remains(n_rows, mean, epsilon, least):
    X, y = draws(n_rows, mean)
    model = skdp.DPPoissonRegressor(epsilon=epsilon, privacy=seeded(0)).fit(X, y)
    assert d2_of(model) >= least * d2_of(plain(1.0, alpha=0.0).fit(X, y))
    assert model.intercept_ == pytest.approx(np.log(2) - SLOPES @ SLOPES / 2, abs=0.15)


def test_noise_takes_no_rare_counts_far_from_their_mean():
    """Without shrinkage D2 is -.25 on average."""
    X, y = draws(1000, 0.1)
    fits = [made(1.0, epsilon=0.1, privacy=seeded(seed)).fit(X, y) for seed in range(8)]
    assert np.mean([d2_of(model, mean=0.1) for model in fits]) > -0.15


def test_rare_counts():
    X, y = draws(20_000, 0.1)
    for epsilon, least in ((0.3, 0.08), (1.0, 0.09)):
        model = skdp.DPPoissonRegressor(epsilon=epsilon, privacy=seeded(0)).fit(X, y)
        assert d2_of(model, mean=0.1) >= least
    for n_rows, least in ((2000, -0.02), (4000, 0.055)):  # errors of the means: 0.01, 0.003
        X, y = draws(n_rows, 0.1)
        scores = [
            d2_of(skdp.DPPoissonRegressor(epsilon=0.3, privacy=seeded(run)).fit(X, y), mean=0.1)
            for run in range(12)
        ]
        assert np.mean(scores) > least


@pytest.mark.parametrize("mean", [0.1, 2.0])
def test_few_rows_and_little_budget(mean):
    """A mean that noise hides is not taken for 0, which would cost several times the deviance."""
    X, y = draws(200, mean)
    scores = [
        d2_of(skdp.DPPoissonRegressor(epsilon=0.1, privacy=seeded(run)).fit(X, y), mean=mean)
        for run in range(20)
    ]
    assert np.median(scores) > -0.65  # -0.04 and -0.5 over 60 runs
    assert np.quantile(scores, 0.1) > -1.5


def test_a_mean_is_not_corrected_for_a_tail_that_targets_do_not_have():
    """The median of 60 is .54; it is .34 if the skewness of the targets plays no part in it."""
    scores = []
    for run in range(60):
        rng = np.random.default_rng(run)
        X, y = rng.standard_normal((200, 10)), rng.standard_normal(200)
        y = 4.4 + 0.9 * X[:, 0] + 0.5 * y
        scores.append(skdp.DPPoissonRegressor(privacy=seeded(run)).fit(X, y).score(X, y))
    assert np.median(scores) > 0.48


@pytest.mark.parametrize("power", [1.5, 2.0])
def test_amounts(power):
    X, y = draws(20_000, 2.0, power=power)
    share = d2_of(made(power, privacy=seeded(0)).fit(X, y), power)
    assert share >= 0.93 * d2_of(plain(power, alpha=0.0).fit(X, y), power)


def test_weights_are_exposures():
    """Half of the rows were watched for a tenth of the time."""
    X, _ = draws(20_000, 2.0)
    rng = np.random.default_rng(1)
    time = np.where(np.arange(len(X)) % 2, 1.0, 0.1)
    y = rng.poisson(time * np.exp(X @ SLOPES)) / time
    model = skdp.DPPoissonRegressor(privacy=seeded(0)).fit(X, y, sample_weight=time)
    np.testing.assert_allclose(model.coef_, SLOPES, atol=0.08)


# ---------------------------------------------------------------- units, shapes, what is kept


def test_the_unit_of_the_targets_moves_the_intercept_alone():
    """With little noise on counts, as other bins have other noise in another unit."""
    X, y = draws(2000, 2.0)
    one, other = (
        skdp.DPPoissonRegressor(epsilon=1e5, privacy=seeded(0)).fit(X, unit * y)
        for unit in (1.0, 4.0**5)
    )
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-3, atol=1e-4)
    assert other.intercept_ == pytest.approx(one.intercept_ + np.log(4.0**5), abs=1e-3)


def test_sparse_single_precision_and_pickled():
    X, y = draws(2000, 2.0)
    X[np.abs(X) < 0.5] = 0.0
    model = skdp.DPPoissonRegressor(privacy=seeded(0)).fit(sparse.csr_array(X, dtype="f4"), y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert (model.predict(X) >= 0).all()
    assert (model.predict(1e6 * X) <= model.prediction_range_[1]).all()


def test_rate_ratios():
    pytest.importorskip("pandas")
    X, y = draws(2000, 2.0)
    model = skdp.DPPoissonRegressor(privacy=seeded(0)).fit(X, y)
    table = model.coefficients().sort_index()
    assert list(table) == ["coefficient", "rate ratio", "effect"]
    np.testing.assert_allclose(table["rate ratio"], np.exp(model.coef_))


def test_a_stream_of_blocks():
    X, y = draws(20_000, 1.0)
    blocks = ((X[i : i + 1000], y[i : i + 1000]) for i in range(0, 20_000, 1000))
    model = skdp.DPPoissonRegressor(scaling="none", privacy=seeded(0))
    model.fit_blocks(blocks, n_samples=20_000, n_features=10)
    assert d2_of(model, mean=1.0) > 0.25


# ---------------------------------------------------------------- refusals and privacy


@pytest.mark.parametrize(
    ("power", "bad", "allowed"), [(1.0, -0.25, "at least 0"), (2.0, 0.0, "positive")]
)
def test_targets_of_the_wrong_kind_are_refused_before_a_charge(power, bad, allowed):
    X, y = draws(50, 2.0)
    y = y + 1.0
    y[7] = bad
    budget = skdp.PrivacyBudget(1.0, 1e-5)
    model = made(power, privacy=skdp.Privacy(budget=budget))
    with pytest.raises(ValueError, match=f"y must be {allowed} everywhere.*released") as refused:
        model.fit(X, y)
    assert str(bad) not in str(refused.value).replace("at least 0", "")
    assert budget.n_fits == 0
    with pytest.raises(ValueError, match=r"1d array|one column"):
        made(power).fit(X, np.c_[y, y])


def test_standard_errors_are_refused_without_the_advice_to_set_a_missing_parameter():
    X, y = draws(50, 2.0)
    model = skdp.DPQuantileRegressor(privacy=seeded(0)).fit(X, y)
    with pytest.raises(AttributeError, match=r"DPQuantileRegressor: return_std=True is not avail"):
        model.predict(X, return_std=True)


@pytest.mark.parametrize("scaling", ["none", skdp.RowNorm(2.0, target=20)])
def test_intervals_need_the_unit_of_the_targets(scaling):
    model = skdp.DPPoissonRegressor(scaling=scaling, inference="coefficients")
    with pytest.raises(ValueError, match="unit of the targets"):
        model.plan(5000, 3)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"power": 0.5}, r"0 or lie in \[1, 2\]"),
        ({"power": 3}, r"0 or lie in \[1, 2\]"),
        ({"power": 1.5, "link": "identity"}, "'auto' or 'log' with power=1.5"),
        ({"link": "log"}, "'auto' or 'identity' with power=0"),
    ],
)
def test_powers_and_links_without_a_convex_loss_are_refused(given, match):
    X, y = draws(50, 2.0)
    with pytest.raises(ValueError, match=match):
        skdp.DPTweedieRegressor(**given).fit(X, y)


@pytest.mark.parametrize(
    ("power", "solver", "adjacency"),
    [(1.0, "whitened", "zero_out"), (2.0, "gd", "replace_one"), (1.5, "whitened", "zero_out")],
)
def test_nothing_but_releases(power, solver, adjacency):
    model = made(power, solver=solver, max_iter=2)
    report = replay(model, adjacency=adjacency)
    assert report.ok, f"\n{report}"


@pytest.mark.parametrize(
    "model", [skdp.DPGammaRegressor(), skdp.DPTweedieRegressor(power=2)], ids=str
)
@pytest.mark.parametrize("rows", ["arrays", "groups", "chunks"])
@pytest.mark.parametrize("least", [1e-50, 5e-324])
def test_positive_targets_that_vanish_in_float32_are_positive(model, rows, least):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)).astype(np.float32), rng.gamma(2.0, size=300)
    y[5] = least
    fit = {
        "arrays": lambda one: one.fit(X, y),
        "groups": lambda one: one.fit(X, y, groups=np.arange(300)),
        "chunks": lambda one: one.fit(skdp.data.Chunks(X, y, 100)),
    }[rows]
    found = fit(clone(model))
    assert np.isfinite(found.coef_).all()
    y[5] = 0.0
    with pytest.raises(ValueError, match=r"must be positive everywhere.*Nothing was released"):
        fit(clone(model))
