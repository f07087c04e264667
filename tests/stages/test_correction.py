"""The slope and the shift that end a regression: what they mend, what they cost, what leaves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import replays
import skdp
from replays import data_for, seeded
from skdp._oracle import Oracle, Public, Solution, noise_source
from skdp._oracle.oracle import AdmitAll, Ledger
from skdp._oracle.releases.base import PublicContext
from skdp._oracle.sources.memory import MemorySource
from skdp._stages.calibration import (
    LEAST_RATIO,
    LOG_FACTOR,
    MOST_RATIO,
    MOST_SHIFT,
    Correction,
    MeanCorrection,
)
from skdp.accounting import Adjacency
from skdp.objective import ElasticNet, Problem, SquaredError, TweedieLog

N, D = 2000, 3
REGRESSORS = [skdp.DPLinearRegression, skdp.DPRidge]


def setting(rng, strength=0.0, fit_intercept=True, scale=1e-9):
    """Rows, and an oracle of them with so much noise."""
    X = rng.standard_normal((N, D))
    X -= X.mean(axis=0)
    truth = np.array([[0.5], [-0.3], [0.1]])
    y = X @ truth + 0.4 * fit_intercept + 0.5 * rng.standard_normal((N, 1))
    public = Public(N, D, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, has_intercept=fit_intercept)
    problem = Problem(SquaredError(), ElasticNet(strength), fit_intercept=fit_intercept)
    size = public.intercept_size * fit_intercept
    rows = MemorySource.of(X, y, None, None, size)
    context, ledger = PublicContext(public, problem, scale), Ledger(AdmitAll())
    oracle = Oracle(context, ledger, np.random.default_rng(0), rows, noise_source(0))
    coef = 0.7 * truth
    if fit_intercept:
        coef = np.vstack([coef, [[0.1 / size]]])
    return oracle, coef, X, y, size


@pytest.mark.parametrize("strength", [0.0, 0.3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_least_squares_along_the_prediction(rng, strength, fit_intercept):
    oracle, coef, X, y, size = setting(rng, strength, fit_intercept)
    found = Correction(clip_norm=1e6).run(oracle, Solution(coef, 1)).coef
    g = (X @ coef[:D])[:, 0]
    offset = coef[-1, 0] * size if fit_intercept else 0.0
    # By least squares on one column, the penalty as a row of its own.
    column = np.append(g, np.sqrt(N * strength) * np.linalg.norm(coef[:D]))[:, None]
    target = np.append(y[:, 0] - offset, 0.0)
    twin = LinearRegression(fit_intercept=False).fit(column, target)
    np.testing.assert_allclose(found[:D], twin.coef_[0] * coef[:D], rtol=1e-4)
    if fit_intercept:
        assert found[-1, 0] * size == pytest.approx(y.mean(), abs=1e-4)


def test_what_noise_may_have_done_changes_nothing(rng):
    oracle, coef, *_ = setting(rng, scale=1e5)
    found = Correction(clip_norm=3.0).run(oracle, Solution(coef, 1)).coef
    np.testing.assert_array_equal(found, coef)


def test_slope_and_shift_stay_within_their_limits(rng):
    oracle, coef, *_, size = setting(rng)
    for times in (0.1, 100.0):
        found = Correction(clip_norm=1e6).run(oracle, Solution(times * coef, 1)).coef
        ratio = found[0, 0] / (times * coef[0, 0])
        assert ratio == pytest.approx(MOST_RATIO if times < 1 else LEAST_RATIO)
        assert abs(found - ratio * times * coef)[-1, 0] * size <= MOST_SHIFT + times


def uncalibrated(model):
    """Return the same model without a calibration."""
    plain = type("Uncalibrated", (type(model),), {"_calibrates": False})
    return plain(**model.get_params(deep=False))


BOUNDS = skdp.PublicRange(-4.0, 4.0)  # whose fits have no releases for columns


def test_skewed_targets_are_predicted_better():
    """Capped residuals leave predictions of a lognormal target too small; mean of four draws."""
    gains, scores = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((8000, 5))
        y = np.exp(X @ np.full(5, 0.4) + rng.standard_normal(8000))
        model = skdp.DPLinearRegression(
            epsilon=0.3,
            privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        )
        scores.append(model.fit(X, y).score(X, y))
        with_it = model.set_params(clip_norm=0.5).fit(X, y).score(X, y)
        gains.append(with_it - uncalibrated(model).fit(X, y).score(X, y))
    assert np.mean(gains) > 0.005
    assert np.mean(scores) > 0.12  # without a clip norm of one's own; .154 without privacy


# ---------------------------------------------------------------------- where it is had


def is_corrected(model, **shape):
    return model.plan(2000, 6, **shape).releases[-1].kind == "calibration"


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_where_it_is_had(estimator):
    replace_one = skdp.Privacy(adjacency="replace_one")
    for parameters in (
        {}, {"privacy": replace_one}, {"scaling": skdp.PublicRange(target=9)}, {"solver": "gd"},
        {"max_iter": 30},
    ):  # fmt: skip
        assert is_corrected(estimator(**parameters))
    for parameters in ({"scaling": "none"}, {"scaling": skdp.RowNorm(2.0)}):
        assert not is_corrected(estimator(**parameters))
    assert not is_corrected(estimator(), n_outputs=2)
    assert not is_corrected(estimator(epsilon=np.inf))


def means(rng, power, scale=1e-9, mean=2.0):
    """Amounts with a log link, in units of their mean, a model with half their means, an oracle."""
    X, weights = rng.standard_normal((N, D)), rng.uniform(0.2, 2.0, N)
    margins = X @ [0.5, -0.3, 0.1]
    y = mean * np.exp(margins) * rng.gamma(2.0, 0.5, N)
    public = Public(N, D, 1, Adjacency.ZERO_OUT, 1.0, 1e-6, weighted=True)
    unit = 1.5
    problem = Problem(TweedieLog(power, unit=unit, base=1.0), ElasticNet())
    rows = MemorySource.of(X, ((y - 1) / unit)[:, None], weights, None, public.intercept_size)
    context, ledger = PublicContext(public, problem, scale), Ledger(AdmitAll())
    oracle = Oracle(context, ledger, np.random.default_rng(0), rows, noise_source(0))
    coef = np.array([[0.5, -0.3, 0.1, np.log(mean / 2) / public.intercept_size]]).T / unit
    return oracle, coef, public.intercept_size * unit, (margins, y, weights)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_without_noise_a_factor_makes_the_mean_residual_0(rng, power):
    oracle, coef, size, (margins, y, weights) = means(rng, power)
    found = MeanCorrection(0.1, reach=1e6).run(oracle, Solution(coef, 1)).coef
    # The slopes keep what an expected noise leaves of them.
    slopes = found[:D, 0] / coef[:D, 0]
    np.testing.assert_allclose(slopes, slopes[0])
    assert 0.99 < slopes[0] < 1
    predicted = np.exp(slopes[0] * margins + size * found[-1, 0])
    residuals = weights * (predicted - y) * predicted ** (1 - power)
    assert abs(residuals.mean()) < 1e-3


def test_what_noise_hides_is_the_prior_mean_of_the_factor(rng):
    oracle, coef, size, _ = means(rng, 1.0, scale=1e5)
    found = MeanCorrection(0.1).run(oracle, Solution(coef, 1)).coef
    assert size * (found - coef)[-1, 0] == pytest.approx(LOG_FACTOR, abs=0.01)


def test_the_mean_of_long_tailed_counts_is_corrected():
    """Without it log means were 0.57 too small here, and 0.37 with it."""
    corrected, plain = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2000, 4))
        y = rng.poisson(np.exp(0.3 * X[:, 0]) * rng.gamma(0.4, 2.5, 2000)).astype(float)
        model = skdp.DPPoissonRegressor(epsilon=0.2, privacy=seeded(seed))
        for one, found in ((model, corrected), (uncalibrated(model), plain)):
            found.append(np.log(one.fit(X, y).predict(X).mean() / y.mean()))
    assert np.mean(plain) < np.mean(corrected) - 0.1 < 0


@pytest.mark.parametrize(
    ("parameters", "needs"),
    [
        ({"scaling": "none"}, "scaling other than 'none'"),
        ({"delta": 0.0, "solver": "gd"}, "delta > 0"),
        ({"constraint": skdp.objective.L2Ball()}, "no constraint"),
    ],
)
def test_a_fit_that_cannot_be_corrected_says_so(parameters, needs):
    model = skdp.DPRidge(**parameters)
    (note,) = [n for n in model.plan(2000, 6).notes if "calibration" in n]
    assert not is_corrected(model)
    assert needs in note


# ---------------------------------------------------------------------- what leaves


def make(**parameters):
    privacy = seeded(adjacency="replace_one")
    return skdp.DPRidge(alpha=2.0, epsilon=20.0, privacy=privacy, **parameters)


def neighbours(rng):
    """Under replace-one: a null record of zero-out has weight 0, and weights are not corrected."""
    for pair in replays.neighbours("linear", *data_for("linear", rng), Adjacency.REPLACE_ONE):
        yield tuple((*one[:2], None) for one in pair)


@pytest.mark.parametrize("parameters", [{}, {"scaling": BOUNDS}, {"fit_intercept": False}], ids=str)
def test_nothing_but_releases(replay, rng, parameters):
    replay.check_each(lambda: make(**parameters), neighbours(rng), Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("model", REGRESSORS)
def test_there_is_no_correction_where_noise_is_all_it_would_add(model):
    """A shift is 1 size of the target at most; with 331 rows two noises on it are many."""
    for n, count in ((331, 0), (20_000, 1)):
        plan = model(epsilon=0.1).plan(n, 10)
        assert [release.kind for release in plan.releases].count("calibration") == count
