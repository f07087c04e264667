"""What estimators say about their coefficients: attributes, intervals, tables, refusals."""

from __future__ import annotations

import pickle
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import skdp
from skdp._stages.inference import DebiasedEstimate
from skdp.linear_model.inference import DebiasedCoefficients

mpl.use("Agg")
MODELS = [skdp.DPLinearRegression, skdp.DPRidge, skdp.DPLogisticRegression]
models = pytest.mark.parametrize("model", MODELS)


def data_for(model, n=4000, names=("age", "height", "<b>")):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, len(names))) + 1
    margins = X @ np.array([1.0, -0.5, 0.0])
    y = margins + rng.standard_normal(n)
    if model is skdp.DPLogisticRegression:
        y = np.where(y > 0.5, "yes", "no")
    return pd.DataFrame(X, columns=names), y


def fitted(model, X=None, y=None, **parameters):
    if X is None:
        X, y = data_for(model)
    parameters = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(3)), "epsilon": 3.0, **parameters}
    if model is skdp.DPLogisticRegression:
        parameters = {"classes": ["no", "yes"], **parameters}
    return model(inference="coefficients", **parameters).fit(X, y)


# ---------------------------------------------------------------- attributes


@models
def test_attributes_agree_with_each_other(model):
    found = fitted(model)
    assert found.coef_debiased_.shape == found.coef_.shape
    assert (found.coef_debiased_ != found.coef_).all()
    assert np.shape(found.intercept_debiased_) == np.shape(found.intercept_)
    coef, error = found.coef_debiased_.ravel(), found.coef_std_error_
    np.testing.assert_allclose(np.sqrt(np.diag(found.coef_covariance_)), error)
    np.testing.assert_allclose(found.p_values_, 2 * stats.norm.sf(abs(coef / error)))
    np.testing.assert_allclose(found.coef_covariance_, found.coef_covariance_.T)
    assert (np.linalg.eigvalsh(found.coef_covariance_) > 0).all()
    ends = np.asarray(found.conf_int(0.9, intercept=True))
    assert ends.shape == (4, 2)
    np.testing.assert_allclose(ends.mean(axis=1)[:3], coef)
    np.testing.assert_allclose(ends[:3, 1] - coef, 1.6448536 * error)
    assert ends[3].mean() == pytest.approx(np.ravel(found.intercept_debiased_)[0])
    np.testing.assert_array_equal(found.conf_int(), found.conf_int(0.95, intercept=True)[:3])
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.conf_int(), found.conf_int())
    assert str(again.summary()) == str(found.summary())


@models
def test_a_later_fit_without_forgets(model):
    found = fitted(model)
    X, y = data_for(model)
    found.set_params(inference=None).fit(X, y)
    names = {"coef_debiased_", "coef_std_error_", "determined_", "p_values_", "inference_"}
    assert not names & set(vars(found))
    for asked in (
        found.conf_int,
        found.summary,
        lambda: skdp.linear_model.CoefficientDisplay.from_estimator(found),
    ):
        with pytest.raises(AttributeError, match="inference='coefficients'"):
            asked()


def fitted_classes(**parameters):
    X, y = data_for(skdp.DPLinearRegression)
    labels = np.where(y > 1.0, "high", np.where(y < 0.0, "low", "middle"))
    model = skdp.DPLogisticRegression(
        classes=["high", "low", "middle"], inference="coefficients", epsilon=3.0,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(3)), **parameters,
    )  # fmt: skip
    assert "all coefficients are likely" in model.plan(4000, 3).expectations[0]
    return model.fit(X, labels)


def test_several_classes_have_rows_of_their_own():
    model = fitted_classes()
    for name in ("coef_debiased_", "coef_std_error_", "determined_", "p_values_"):
        assert getattr(model, name).shape == model.coef_.shape == (3, 3)
    np.testing.assert_allclose(model.coef_debiased_.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_debiased_.sum(), 0, atol=1e-9)
    errors = np.sqrt(np.diag(model.coef_covariance_)).reshape(3, 3)
    np.testing.assert_allclose(errors, model.coef_std_error_)
    frame = model.conf_int(intercept=True)
    assert frame.index[7] == ("low", "(intercept)")
    intervals = frame.to_numpy().reshape(3, 4, 2)
    np.testing.assert_allclose(intervals[:, :3].mean(axis=2), model.coef_debiased_)
    np.testing.assert_allclose(intervals[:, 3].mean(axis=1), model.intercept_debiased_)
    np.testing.assert_array_equal(model.conf_int(), intervals[:, :3].reshape(-1, 2))
    frame = model.summary().to_frame()
    assert list(frame.index[[0, 5, 9, 11]]) == [
        "high: age", "low: <b>", "high: (intercept)", "middle: (intercept)",
    ]  # fmt: skip
    np.testing.assert_allclose(frame["coef"].iloc[:9], model.coef_debiased_.ravel())
    display = skdp.linear_model.CoefficientDisplay.from_estimator(model)
    assert len(display.ax_.get_yticklabels()) == 9
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.conf_int(), model.conf_int())
    assert fitted_classes(fit_intercept=False).conf_int(intercept=True).shape == (9, 2)


def test_intervals_have_the_names_of_the_columns():
    X, y = data_for(skdp.DPRidge)
    frame = fitted(skdp.DPRidge, X, y).conf_int(intercept=True)
    assert [*frame.index] == [*X.columns, "(intercept)"]
    assert [*frame.columns] == ["low", "high"]
    private = skdp.Privacy(noise=skdp.SeededNoise(3))
    model = skdp.DPRidge(inference=True, epsilon=3.0, privacy=private).fit(np.asarray(X), y)
    np.testing.assert_array_equal(model.conf_int(intercept=True), frame)
    assert isinstance(model.conf_int(), np.ndarray), "arrays have no names"
    assert not hasattr(skdp.DPRidge(inference=False).fit(X, y), "inference_")


def test_ridge_estimates_without_its_penalty():
    X, y = data_for(skdp.DPRidge)
    strong = fitted(skdp.DPRidge, X, y, alpha=4000.0)
    assert abs(strong.coef_[0]) < 0.7
    low, high = strong.conf_int(0.999).iloc[0]
    assert low < 1 < high


def test_without_an_intercept_there_is_none():
    X, y = data_for(skdp.DPLinearRegression)
    found = fitted(skdp.DPLinearRegression, X, y, fit_intercept=False)
    assert found.intercept_debiased_ == found.intercept_std_error_ == 0.0
    assert found.conf_int(intercept=True).shape == (3, 2)
    assert "capped_residuals" not in {one.kind for one in found.privacy_.releases}
    assert len(found.summary().names) == 3


# ---------------------------------------------------------------- the mean response


def test_the_error_of_the_mean_response():
    """It is that of a linear combination of the coefficients."""
    X, y = data_for(skdp.DPLinearRegression)
    found = fitted(skdp.DPLinearRegression, X, y, scaling="none")
    few = X.iloc[:50]
    mean, error = found.predict(few, return_std=True)
    expected = few.to_numpy() @ found.coef_debiased_ + found.intercept_debiased_
    np.testing.assert_allclose(mean, expected)
    origin = pd.DataFrame(np.vstack([np.zeros(3), np.eye(3)]), columns=X.columns)
    at, errors = found.predict(origin, return_std=True)
    assert at[0] == pytest.approx(found.intercept_debiased_)
    assert errors[0] == pytest.approx(found.intercept_std_error_)
    assert (error > 0).all()
    assert (found.predict(few) != mean).any()


def test_log_odds_have_errors_too():
    X, y = data_for(skdp.DPLogisticRegression)
    found = fitted(skdp.DPLogisticRegression, X, y)
    odds, error = found.decision_function(X[:20], return_std=True)
    assert odds.shape == error.shape == (20,)
    expected = X[:20].to_numpy() @ found.coef_debiased_[0] + found.intercept_debiased_
    np.testing.assert_allclose(odds, expected)


# ---------------------------------------------------------------- tests of several coefficients


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_wald_tests_are_those_of_least_squares_without_noise():
    """With HC1 errors, by the formula: White 1980, theorem 4."""
    X, y = data_for(skdp.DPLinearRegression)
    found = fitted(skdp.DPLinearRegression, X, y, epsilon=np.inf, scaling="none")
    Z = np.column_stack([X, np.ones(len(y))])
    inverse = np.linalg.inv(Z.T @ Z)
    beta = inverse @ Z.T @ y
    scores = Z * (y - Z @ beta)[:, None]
    covariance = len(y) / (len(y) - 4) * inverse @ (scores.T @ scores) @ inverse
    R, q = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]]), np.array([0.52, -0.48])
    distance = R @ beta[:3] - q
    expected = distance @ np.linalg.solve(R @ covariance[:3, :3] @ R.T, distance)
    test = found.wald_test(R, q)
    assert test.df == 2
    assert test.statistic == pytest.approx(expected, rel=1e-5)
    assert test.p_value == pytest.approx(stats.chi2.sf(expected, 2), rel=1e-4)
    # In other units of the restrictions, and with one that follows from the others.
    more = np.vstack([1e6 * R[0], 1e-6 * R[1], R[0] - R[1]])
    again = found.wald_test(more, [1e6 * q[0], 1e-6 * q[1], q[0] - q[1]])
    assert again.df == 2
    assert again.statistic == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="contradict"):
        found.wald_test([[1, 0, 0], [2, 0, 0]], [0.0, 1.0])


@models
def test_one_restriction_is_a_z_value_squared(model):
    found = fitted(model)
    z = found.coef_debiased_.ravel() / found.coef_std_error_
    for j in range(3):
        test = found.wald_test(np.eye(3)[j])
        assert test.statistic == pytest.approx(z[j] ** 2)
        assert test.p_value == pytest.approx(found.p_values_[j])
    last = found.wald_test([0, 0, 0, 1], np.ravel(found.intercept_debiased_)[0] - 1)
    assert last.statistic == pytest.approx(found.intercept_std_error_**-2)
    for R, q in (
        (np.eye(2), None), (np.eye(3), [0.0, 1.0]), (np.full(3, np.nan), None), (np.eye(3), np.inf),
        (np.zeros(3), None), (np.zeros((1, 1, 3)), None), ("x0 = 0", None),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="wald_test: "):
            found.wald_test(R, q)


def test_noise_between_restrictions_makes_no_statistic_larger(rng):
    """The mean of 1 + e' N^2 e, for errors e and a noise N off the diagonal of the covariance."""
    size, std = 4, 0.1
    estimate = DebiasedEstimate(np.zeros(size), np.eye(size), np.eye(size), np.zeros(size), 0.0)
    errors, statistics = rng.standard_normal((4000, size)), []
    for error in errors:
        noise = std * rng.standard_normal((size, size))
        noise = (noise + noise.T) / 2
        np.fill_diagonal(noise, 0.0)
        noisy = replace(estimate, covariance=np.eye(size) + noise, covariance_noise=std)
        found = DebiasedCoefficients.of(noisy, None, has_intercept=False)
        statistics.append(found.wald_test(np.eye(size), error).statistic)
    ratio = np.mean(statistics) / np.mean(np.square(errors).sum(axis=1))
    assert ratio == pytest.approx(1.0, abs=0.005)  # 1.015 without it


def test_what_is_not_determined_is_not_tested():
    X, y = data_for(skdp.DPLinearRegression, n=20_000)
    X["<b>"] = 0.0
    found = fitted(skdp.DPLinearRegression, X, y, scaling="none")
    assert np.isnan(found.wald_test([[1, 0, 0], [0, 0, 1]]).p_value)
    assert np.isnan(found.wald_test([0, 0, 0, 1]).statistic)
    assert found.wald_test([[1, 0, 0], [0, 1, 0]]).p_value < 1e-9


# ---------------------------------------------------------------- average marginal effects


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_marginal_effects_are_those_of_the_formula_without_noise(rng):
    """The coefficients times the mean of p (1 - p), with errors by the delta method."""
    X = rng.standard_normal((5000, 3)) * [1.0, 10.0, 0.1] + [1.0, 0.0, 0.5]
    y = (X @ [0.8, -0.05, 0.0] - 0.5 + rng.logistic(size=5000) > 0).astype(int)
    found = fitted(skdp.DPLogisticRegression, X, y, classes=[0, 1], epsilon=np.inf)
    beta = np.append(found.coef_debiased_, found.intercept_debiased_)
    Z = np.column_stack([X, np.ones(5000)])
    q = 1 / (1 + np.exp(-Z @ beta))
    w, third = q * (1 - q), q * (1 - q) * (1 - 2 * q)
    inverse = np.linalg.inv((Z * w[:, None]).T @ Z)
    scores = Z * (q - y)[:, None]
    covariance = 5000 / 4996 * inverse @ (scores.T @ scores) @ inverse
    table = found.marginal_effects(0.9)
    np.testing.assert_allclose(table.coef, beta[:3] * w.mean(), rtol=1e-5)
    slope = third @ Z / 5000
    derivative = w.mean() * np.eye(4)[:3] + np.outer(beta[:3], slope)
    variances = np.diag(derivative @ covariance @ derivative.T)
    variances = variances + beta[:3] ** 2 * w.mean() * (0.25 - w.mean()) / 5000
    np.testing.assert_allclose(table.std_error, np.sqrt(variances), rtol=0.01)
    assert (table.privacy_share == 0).all()
    assert table.names == ("x0", "x1", "x2")
    reach = 1.6448536 * table.std_error
    np.testing.assert_allclose(table.interval[:, 1], table.coef + reach)


def test_marginal_effects_with_noise():
    X, y = data_for(skdp.DPLogisticRegression)
    found = fitted(skdp.DPLogisticRegression, X, y)
    table = found.marginal_effects()
    assert "Average marginal effects" in str(table)
    truth = stats.norm.pdf(0.0, scale=1.5)  # of a probit, which this is, by 1.25 + 1 = 1.5**2
    errors = (table.coef - truth * np.array([1.0, -0.5, 0.0])) / table.std_error
    assert np.abs(errors).max() < 4
    assert (table.privacy_share > 0.05).all()
    without = fitted(skdp.DPLogisticRegression, X, y, fit_intercept=False)
    assert np.isfinite(without.marginal_effects().std_error).all()
    with pytest.raises(ValueError, match="for two classes"):
        fitted_classes().marginal_effects()
    with pytest.raises(ValueError, match="level must lie"):
        found.marginal_effects(2.0)
    found.set_params(inference=None).fit(X, y)
    with pytest.raises(AttributeError, match="inference='coefficients'"):
        found.marginal_effects()


# ---------------------------------------------------------------- tables and pictures


@models
def test_the_table_says_what_it_rests_on(model):
    table = fitted(model).summary(0.9)
    text, html = str(table), table._repr_html_()
    for words in ("age", "(intercept)", "[5%", "95%]", "n = 4000", "(3, 1e-06)", "zero_out"):
        assert words in text
    assert "each row" in text
    assert "can differ from ordinary least squares" in text
    assert "not adjusted for multiple comparisons" in text
    assert "&lt;b&gt;" in html
    assert "<td><b>" not in html
    frame = table.to_frame()
    assert list(frame.index) == ["age", "height", "<b>", "(intercept)"]
    np.testing.assert_array_equal(frame[["low", "high"]].to_numpy(), table.interval)
    assert frame["determined"].all()
    assert frame["privacy_share"].between(0.01, 0.999).all()
    assert 0 < table.cut < 0.6


def test_the_table_flags_what_is_not_determined():
    X, y = data_for(skdp.DPLinearRegression, n=20_000)
    X["<b>"] = 0.0
    found = fitted(skdp.DPLinearRegression, X, y, scaling="none")
    table = found.summary()
    assert str(table).count("  not determined") == 2  # the intercept, too
    assert table.to_frame()["determined"].tolist() == [True, True, False, False]
    display = skdp.linear_model.CoefficientDisplay(table).plot()
    assert len(display.ax_.get_yticks()) == 3
    assert len(display.ax_.collections[0].get_segments()) == 2
    assert np.isinf(found.predict(X[:3], return_std=True)[1]).all()


# ---------------------------------------------------------------- plans and refusals


@models
def test_the_plan_is_what_happens(model):
    plan = model(inference="coefficients", epsilon=3.0).plan(4000, 3)
    done = fitted(model).privacy_
    listed = [(one.kind, one.count, one.noise_multiplier) for one in plan.releases]
    assert listed == [(one.kind, one.count, one.noise_multiplier) for one in done.releases]
    assert any("not clipped to ranges" in text for text in done.assumptions)
    (said,) = plan.expectations
    assert "all coefficients are likely to be determined" in said
    assert said in str(plan)
    assert said in plan._repr_html_()
    assert "expected" not in str(done)
    with pytest.warns(
        skdp.NoiseWarning, match=r"no coefficient .* Use more rows, a larger epsilon"
    ):
        model(inference="coefficients", epsilon=0.1).plan(1000, 3)


INFERENCE = skdp.CoefficientInference
REFUSED = [
    (skdp.DPLinearRegression, {"constraint": skdp.objective.L2Ball()}, "no constraint"),
    (skdp.DPLogisticRegression, {"l1_ratio": 0.5}, "no L1 penalty"),
    (skdp.DPLinearRegression, {"delta": 0.0}, "delta > 0"),
    (skdp.DPLogisticRegression, {"class_weight": {"yes": 2.0}}, "without weights"),
    (skdp.DPLinearRegression, {"solver": "residual_budget"}, "plans its noise beforehand"),
    (skdp.DPRidge, {"inference": "all"}, "inference must be a bool, None, 'coefficients' or Coef"),
    (skdp.DPRidge, {"inference": "none"}, "inference must be a bool, None, 'coefficients' or Coef"),
    (skdp.DPRidge, {"inference": INFERENCE(1.0)}, r"share must be a number in \(0, 1\)"),
    (skdp.DPRidge, {"inference": INFERENCE("most")}, "CoefficientInference: share must be"),
]


@pytest.mark.parametrize(("model", "parameters", "said"), REFUSED)
def test_what_cannot_be_had_is_refused_before_any_charge(model, parameters, said):
    budget = skdp.PrivacyBudget(epsilon=5.0, delta=1e-5)
    X, y = data_for(model)
    parameters = {"inference": "coefficients", **parameters}
    with budget, pytest.raises(ValueError, match=said):
        model(**parameters, privacy=skdp.Privacy(budget=budget)).fit(X, y)
    assert budget.spent == 0


def test_several_targets_weights_and_blocks_are_refused():
    X, y = data_for(skdp.DPLinearRegression)
    for model, target in ((skdp.DPLinearRegression, np.c_[y, y]), (skdp.DPRidge, np.c_[y, -y])):
        with pytest.raises(ValueError, match=r"one target\. Fit each target separately"):
            model(inference="coefficients").fit(X, target)
    with pytest.raises(ValueError, match="over the number of classes less one"):
        skdp.DPLogisticRegression(inference="coefficients").plan(10_000, 1001, n_classes=3)
    rows, labels = data_for(skdp.DPLogisticRegression)
    with pytest.raises(ValueError, match="sample_weight=None"):
        skdp.DPLogisticRegression(inference="coefficients").fit(rows, labels, np.ones(len(rows)))
    with pytest.raises(ValueError, match="fit_blocks"):
        skdp.DPLinearRegression(inference="coefficients").fit_blocks(
            [(X.to_numpy(), y)], n_samples=len(y), n_features=3
        )
    with pytest.raises(ValueError, match="at most 2000 columns"):
        skdp.DPLinearRegression(inference="coefficients").plan(10_000, 2001)


@pytest.mark.parametrize("level", [0.0, 1.0, "high", 95])
def test_levels_are_checked(level):
    with pytest.raises(ValueError, match="level must lie in"):
        fitted(skdp.DPLinearRegression).conf_int(level)
