"""Without noise and scaling, fits are the solutions that other projects certify or test for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import skdp

pytestmark = pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
EXACT = {"epsilon": math.inf, "scaling": "none"}
SOLVERS = ["whitened", ("gd", {"max_iter": 2000}), "newton"]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_poisson_ridge_of_glmnet(solver):
    """glmnet with alpha=0, standardize=F, s=1; in scikit-learn's ``_glm/tests/test_glm.py``."""
    X, y = np.array([[-2.0, 0.0], [-1, 0], [1, 1], [2, 1]]), [0, 1, 1, 2]
    model = skdp.DPPoissonRegressor(alpha=1.0, solver=solver, **EXACT).fit(X, y)
    np.testing.assert_allclose(model.coef_, [0.29019207995, 0.03741173122], atol=1e-8)
    assert model.intercept_ == pytest.approx(-0.12889386979, abs=1e-8)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_exact_exponentials(power, fit_intercept, solver):
    """``log y = .2 x - .1``, as in scikit-learn's ``test_glm_log_regression``."""
    X = np.column_stack([np.arange(5.0), np.ones(5)])
    y = np.exp(X @ [0.2, -0.1])
    model = skdp.DPTweedieRegressor(
        power=power, solver=solver, fit_intercept=fit_intercept, **EXACT
    )
    model.fit(X[:, :1] if fit_intercept else X, y)
    np.testing.assert_allclose([*model.coef_, model.intercept_][:2], [0.2, -0.1], atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_poisson_of_dobson(solver):
    """Dobson 1990, p. 93, and R's ``example(glm)``; the fit of a saturated margin is its mean."""
    y = np.array([18.0, 17, 15, 20, 10, 20, 25, 13, 12])
    outcome, treatment = np.arange(9) % 3, np.arange(9) // 3
    X = np.column_stack([outcome == 1, outcome == 2, treatment == 1, treatment == 2]).astype(float)
    model = skdp.DPPoissonRegressor(solver=solver, target_bound=25.0, **EXACT).fit(X, y)
    expected = [math.log(40 / 63), math.log(47 / 63), 0.0, 0.0]  # R: -.4543, -.2930, 0, 0
    np.testing.assert_allclose(model.coef_, expected, atol=1e-7)
    assert model.intercept_ == pytest.approx(math.log(21), abs=1e-7)  # 3.045


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
    model = skdp.DPPoissonRegressor(
        solver=solver, epsilon=math.inf, scaling=scaling, target_bound=50.0
    )
    model.fit(X, y / exposure, sample_weight=exposure)
    np.testing.assert_allclose([*model.coef_, model.intercept_], expected, atol=1e-8)


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


def test_columns_as_they_are_are_fitted_but_for_longley():
    """Its Gram matrix, of condition 2e19, exceeds double precision; that of "newton" is damped."""
    for name, X, y, expected, _ in strd():
        solver = "newton" if name == "longley" else "auto"
        model = skdp.DPLinearRegression(solver=solver, **EXACT).fit(X, y)
        np.testing.assert_allclose([model.intercept_, *model.coef_], expected, rtol=1e-6)


def test_ridge_with_orthogonal_columns():
    """Each coefficient is ``x'y / (n + alpha)``."""
    X = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    y = np.array([3.0, 1.0, 2.0, -2.0])
    model = skdp.DPRidge(alpha=6.0, **EXACT).fit(X, y)
    np.testing.assert_allclose([model.intercept_, *model.coef_], [1.0, 0.4, 0.6], atol=1e-12)
