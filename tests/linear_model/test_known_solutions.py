"""Without noise and scaling, fits are the solutions that other projects certify or test for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import make_low_rank_matrix, make_regression

import skdp

pytestmark = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
EXACT = {"epsilon": math.inf, "scaling": "none"}
SOLVERS = ["auto", "whitened", ("gd", {"max_iter": 2000})]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_poisson_ridge_of_glmnet(solver):
    """glmnet with alpha=0, standardize=F, s=1; in scikit-learn's ``_glm/tests/test_glm.py``."""
    X, y = np.array([[-2.0, 0.0], [-1, 0], [1, 1], [2, 1]]), [0, 1, 1, 2]
    model = skdp.DPPoissonRegressor(alpha=1.0, solver=solver, **EXACT).fit(X, y)
    np.testing.assert_allclose(model.coef_, [0.29019207995, 0.03741173122], atol=1e-8)
    assert model.intercept_ == pytest.approx(-0.12889386979, abs=1e-8)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_exact_exponentials(power, solver):
    """``log y = .2 x - .1``, as in scikit-learn's ``test_glm_log_regression``."""
    fit_intercept = (SOLVERS.index(solver) + 2 * power) % 2 == 0
    X = np.column_stack([np.arange(5.0), np.ones(5)])
    y = np.exp(X @ [0.2, -0.1])
    model = skdp.DPTweedieRegressor(
        power=power, solver=solver, fit_intercept=fit_intercept, **EXACT
    )
    model.fit(X[:, :1] if fit_intercept else X, y)
    np.testing.assert_allclose([*model.coef_, model.intercept_][:2], [0.2, -0.1], atol=1e-7)


@pytest.mark.parametrize("scaling", ["none", "auto"])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_exposure_as_a_weight_is_an_offset(solver, scaling):
    """Rates weighted by exposure, as in scikit-learn's examples, and counts with its logarithm."""
    rng = np.random.default_rng(0)
    X, exposure = rng.standard_normal((500, 2)), rng.uniform(0.2, 3.0, 500)
    y = rng.poisson(exposure * np.exp(X @ [0.5, -0.5] + 0.3))
    rows, expected = np.column_stack([X, np.ones(500)]), np.zeros(3)
    for _ in range(30):  # Newton's method for the model with an offset
        means = exposure * np.exp(rows @ expected)
        expected -= np.linalg.solve((rows.T * means) @ rows, rows.T @ (means - y))
    model = skdp.DPPoissonRegressor(solver=solver, epsilon=math.inf, scaling=scaling)
    model.fit(X, y / exposure, sample_weight=exposure)
    np.testing.assert_allclose([*model.coef_, model.intercept_], expected, atol=1e-8)


# ---------------------------------------------------------------- weights, in Stata and R

# J. Gill, Generalized Linear Models (2000): executions by state in 1997, income, poverty, black
# residents, log of violent crimes, south, degrees; in statsmodels' ``datasets/cpunish``.
EXECUTIONS = np.array(
    [
        [37, 34453, 16.7, 12.2, 644, 1, 0.16],
        [9, 41534, 12.5, 20, 351, 1, 0.27],
        [6, 35802, 10.6, 11.2, 591, 0, 0.21],
        [4, 26954, 18.4, 16.1, 524, 1, 0.16],
        [3, 31468, 14.8, 25.9, 565, 1, 0.19],
        [2, 32552, 18.8, 3.5, 632, 0, 0.25],
        [2, 40873, 11.6, 15.3, 886, 0, 0.25],
        [2, 34861, 13.1, 30.1, 997, 1, 0.21],
        [1, 42562, 9.4, 4.3, 405, 0, 0.31],
        [1, 31900, 14.3, 15.4, 1051, 1, 0.24],
        [1, 37421, 8.2, 8.2, 537, 0, 0.19],
        [1, 33305, 16.4, 7.2, 321, 0, 0.16],
        [1, 32108, 18.4, 32.1, 929, 1, 0.18],
        [1, 45844, 9.3, 27.4, 931, 0, 0.29],
        [1, 34743, 10, 4, 435, 0, 0.24],
        [1, 29709, 15.2, 7.7, 597, 0, 0.21],
        [1, 36777, 11.7, 1.8, 463, 0, 0.25],
    ]
)
# Stata's ``glm, family(poisson)``, without weights and with ``fweight``; the intercept last. In
# statsmodels' ``genmod/tests/results/results_glm_poisson_weights.py``.
OF_EXECUTIONS = {
    False: [
        *(0.00026110166569, 0.07781804809828, -0.09493110013466, 0.29693462055586),
        *(2.3011832004524, -18.722067603077, -6.8014789919532),
    ],
    True: [
        *(0.00025343868829, 0.09081422305585, -0.09416451429381, 0.27652273809506),
        *(2.239890838384, -18.842583191417, -6.5630017977416),
    ],
}


@pytest.mark.parametrize("weighted", OF_EXECUTIONS)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_poisson_with_frequency_weights_of_stata(solver, weighted):
    X, y = EXECUTIONS[:, 1:].copy(), EXECUTIONS[:, 0]
    X[:, 3] = np.log(X[:, 3])
    weights = np.array([1.0, 1, 1, 2, 2, 2, 3, 3, 3, 1, 1, 1, 2, 2, 2, 3, 3])
    model = skdp.DPPoissonRegressor(
        epsilon=math.inf, solver=solver, scaling=skdp.PublicRange(target=100.0)
    )
    model.fit(X, y, sample_weight=weights if weighted else None)
    expected = OF_EXECUTIONS[weighted]
    np.testing.assert_allclose([*model.coef_, model.intercept_], expected, rtol=2e-6)


# Stata's cancer drug trial: months of study, age and drug (``stata_cancer_glm.csv``).
MONTHS = [
    *(1, 1, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23, 6, 6, 7, 9, 10, 11, 13),
    *(15, 16, 19, 20, 22, 23, 32, 6, 10, 17, 19, 24, 25, 25, 28, 28, 32, 33, 34, 35, 39),
]
AGE = [
    *(61, 65, 59, 52, 56, 67, 63, 58, 56, 58, 52, 49, 50, 55, 49, 62, 51, 49, 57, 52, 67, 65, 58),
    *(56, 49, 61, 62, 50, 67, 50, 55, 58, 47, 52, 55, 54, 60, 49, 58, 50, 55, 57, 48, 56, 60, 62),
    *(48, 52),
]
# R's ``glm(family=Gamma(log))`` with weights (``res_R_var_weight.py``), and Stata's without
# (``results_glm.py``, CancerLog): age, second and third drug, intercept.
OF_CANCER = {
    True: [-0.038835175525200764, 0.54097404989168318, 1.0560051456310013, 4.3171222692811204],
    False: [-0.04477778, 0.57437126, 1.05210726, 4.64604002],
}


@pytest.mark.parametrize("weighted", OF_CANCER)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_gamma_with_variance_weights_of_r(solver, weighted):
    drug = np.repeat([1, 2, 3], [20, 14, 14])
    X = np.column_stack([AGE, drug == 2, drug == 3]).astype(float)
    weights = np.ones(48)
    weights[::5], weights[::13] = 5.0, 3.0
    model = skdp.DPGammaRegressor(
        epsilon=math.inf, solver=solver, scaling=skdp.PublicRange(target=100.0)
    )
    model.fit(X, MONTHS, sample_weight=weights if weighted else None)
    expected, rtol = OF_CANCER[weighted], 1e-7 if weighted else 3e-5  # Stata stops earlier
    np.testing.assert_allclose([*model.coef_, model.intercept_], expected, rtol=rtol)


# ---------------------------------------------------------------- quantiles


@pytest.mark.parametrize(
    ("quantile", "alpha", "intercept", "slope"),
    [(0.51, 0.0, 1.0, 10.0), (0.49, 0.0, 1.0, 1.0), (0.5, 100.0, 2.0, 0.0)],
)
def test_quantiles_of_three_rows(quantile, alpha, intercept, slope):
    """``test_quantile_toy_example`` of scikit-learn; smoothing moves kinks by a few widths."""
    X, y = np.array([[0.0], [1], [1]]), np.array([1.0, 2, 11])
    model = skdp.DPQuantileRegressor(
        quantile, alpha=alpha, epsilon=math.inf, scaling=skdp.PublicRange(target=20.0)
    )
    model.fit(X, y)
    np.testing.assert_allclose([model.intercept_, *model.coef_], [intercept, slope], atol=0.8)


@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.05])
def test_the_share_below_a_quantile(quantile):
    """``test_quantile_estimates_calibration`` of scikit-learn, with errors wider than a kink."""
    X, y = make_regression(n_samples=1000, n_features=20, random_state=0, noise=30.0)
    model = skdp.DPQuantileRegressor(quantile, epsilon=math.inf).fit(X, y)
    assert np.mean(y < model.predict(X)) == pytest.approx(quantile, abs=0.01)


@pytest.mark.parametrize("solver", ["auto", "whitened"])
def test_a_weighted_median(solver):
    """``test_quantile_sample_weight`` of scikit-learn."""
    X, y = make_regression(n_samples=1000, n_features=5, random_state=0, noise=10.0)
    weights = np.where(y > y.mean(), 100.0, 1.0)
    model = skdp.DPQuantileRegressor(epsilon=math.inf, solver=solver)
    below = y < model.fit(X, y, sample_weight=weights).predict(X)
    assert below.mean() > 0.5
    assert np.average(below, weights=weights) == pytest.approx(0.5, abs=0.03)


# ---------------------------------------------------------------- StRD, linear regression

# https://www.itl.nist.gov/div898/strd/lls/lls.shtml
NORRIS_X = [
    *(0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5),
    *(666.9, 338.0, 447.5, 11.6, 556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2),
    *(999.0, 779.0, 11.1, 118.3, 229.2, 669.1, 448.9, 0.5),
]
NORRIS_Y = [
    *(0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1),
    *(668.8, 339.3, 448.9, 10.8, 557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0),
    *(998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2, 0.2),
]
LONGLEY = np.array(
    [
        [60323, 83.0, 234289, 2356, 1590, 107608, 1947],
        [61122, 88.5, 259426, 2325, 1456, 108632, 1948],
        [60171, 88.2, 258054, 3682, 1616, 109773, 1949],
        [61187, 89.5, 284599, 3351, 1650, 110929, 1950],
        [63221, 96.2, 328975, 2099, 3099, 112075, 1951],
        [63639, 98.1, 346999, 1932, 3594, 113270, 1952],
        [64989, 99.0, 365385, 1870, 3547, 115094, 1953],
        [63761, 100.0, 363112, 3578, 3350, 116219, 1954],
        [66019, 101.2, 397469, 2904, 3048, 117388, 1955],
        [67857, 104.6, 419180, 2822, 2857, 118734, 1956],
        [68169, 108.4, 442769, 2936, 2798, 120445, 1957],
        [66513, 110.8, 444546, 4681, 2637, 121950, 1958],
        [68655, 112.6, 482704, 3813, 2552, 123366, 1959],
        [69564, 114.2, 502601, 3931, 2514, 125368, 1960],
        [69331, 115.7, 518173, 4806, 2572, 127852, 1961],
        [70551, 116.9, 554894, 4007, 2827, 130081, 1962],
    ]
)
OF_LONGLEY = [
    *(-3482258.63459582, 15.0618722713733, -0.0358191792925910, -2.02022980381683),
    *(-1.03322686717359, -0.0511041056535807, 1829.15146461355),
]
WAMPLER4 = [
    *(75901, -204794, 204863, -204436, 253665, -200894, 214131, -185192, 221249, -138370),
    *(315911, -27644, 455253, 197434, 783995, 608816, 1370781, 1303798, 2205519, 2408860, 3444321),
]


def strd():
    """Names, rows, certified coefficients (the intercept first), and digits that are to agree."""
    x = np.arange(21.0)
    powers = x[:, None] ** np.arange(6)
    ones, tenths = np.ones(6), 0.1 ** np.arange(6)
    noise = (np.array(WAMPLER4) - powers @ ones) / 100
    norris = np.array(NORRIS_X)[:, None], np.array(NORRIS_Y), [-0.262323073774029, 1.00211681802045]
    yield "norris", *norris, 11
    yield "longley", LONGLEY[:, 1:], LONGLEY[:, 0], OF_LONGLEY, 11
    yield "wampler1", powers[:, 1:], powers @ ones, ones, 8
    yield "wampler2", powers[:, 1:], powers @ tenths, tenths, 11
    # Of the fifth, numpy's least squares have 5.8 digits.
    for number, size, digits in ((3, 1.0, 8), (4, 100.0, 7), (5, 10000.0, 5.7)):
        yield f"wampler{number}", powers[:, 1:], powers @ ones + size * noise, ones, digits


@pytest.mark.parametrize(
    ("name", "X", "y", "expected", "digits"),
    list(strd()),
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_certified_coefficients(name, X, y, expected, digits):
    model = skdp.DPLinearRegression(epsilon=math.inf).fit(X, y)
    np.testing.assert_allclose([model.intercept_, *model.coef_], expected, rtol=10.0**-digits)


def test_columns_as_they_are_are_fitted():
    for _, X, y, expected, _ in strd():
        model = skdp.DPLinearRegression(**EXACT).fit(X, y)
        np.testing.assert_allclose([model.intercept_, *model.coef_], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "slope"),
    [
        (range(60, 71), range(130, 141), 2.07438016528926),
        ([4, 5, 6], [3, 4, 4], 0.727272727272727),
    ],
    ids=["noint1", "noint2"],
)
def test_certified_slopes_without_an_intercept(x, y, slope):
    model = skdp.DPLinearRegression(fit_intercept=False, **EXACT)
    model.fit(np.array(x, dtype=float)[:, None], np.array(y, dtype=float))
    np.testing.assert_allclose(model.coef_, [slope], rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(12, 4), (4, 12)])
def test_ridge_by_normal_equations(shape, seed):
    """``ols_ridge_dataset`` of scikit-learn: a low rank, a column of ones, and targets off it."""
    rng = np.random.RandomState(seed)
    X = make_low_rank_matrix(*shape, effective_rank=min(shape), random_state=rng)
    X[:, -1] = 1.0
    y = X @ rng.uniform(-10, 10, shape[1]) + rng.normal(size=shape[0]) ** 2
    penalty = np.eye(shape[1])
    penalty[-1, -1] = 0.0
    expected = np.linalg.solve(X.T @ X + penalty, X.T @ y)
    model = skdp.DPRidge(alpha=1.0, **EXACT).fit(X[:, :-1], y)
    np.testing.assert_allclose([*model.coef_, model.intercept_], expected, rtol=1e-6)
    if shape == (12, 4):
        expected = np.linalg.lstsq(X, y, rcond=None)[0]
        model = skdp.DPLinearRegression(**EXACT).fit(X[:, :-1], y)
        np.testing.assert_allclose([*model.coef_, model.intercept_], expected, rtol=1e-4)
