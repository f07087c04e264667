"""Two-stage least squares: the textbook's without noise, its intervals, and its privacy."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skdp
from replays import seeded
from skdp import audit
from skdp.oracle import GramSum
from skdp.solvers.core.two_stage import LEAST_STRENGTH, Instruments, TwoStageLeastSquares

TRUE = np.array([1.0, 0.5, 0.0, 0.0])  # endogenous, exogenous, and two instruments
COLUMNS = {"endogenous": [0], "instruments": [2, 3]}


def draw(rng, n=20_000, strength=0.5, errors="equal"):
    """Rows in which the first column depends on the errors, in units of many sizes."""
    exogenous, error, own = rng.standard_normal((3, n))
    Z = rng.standard_normal((n, 2)) + 0.3 * exogenous[:, None]
    u = error * np.sqrt(0.3 + 0.7 * Z[:, 0] ** 2) if errors == "unequal" else error
    x = strength * (Z[:, 0] + 0.5 * Z[:, 1]) + 0.4 * exogenous + 0.6 * error + 0.8 * own
    if errors == "binary":
        x = (x > 0.5).astype(float)
    X = np.column_stack([x, exogenous, Z])
    return X, X @ TRUE + u + 1.0


def two_stages(X, y, constant=True):
    """The textbook's estimate, and its sandwich (HC1), with the constant last."""
    last = [np.ones(len(X))] if constant else []
    R, Z = np.column_stack([X[:, :2], *last]), np.column_stack([X[:, 1:], *last])
    fitted = Z @ np.linalg.lstsq(Z, R, rcond=None)[0]
    coef = np.linalg.lstsq(fitted, y, rcond=None)[0]
    inverse = np.linalg.inv(fitted.T @ fitted)
    scores = fitted * (y - R @ coef)[:, None]
    factor = len(X) / (len(X) - R.shape[1])
    return coef, factor * inverse @ (scores.T @ scores) @ inverse


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("scaling", ["none", "private"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_it_is_the_textbooks(rng, scaling, fit_intercept):
    X, y = draw(rng, 5000, errors="unequal")
    model = skdp.DP2SLS(
        **COLUMNS, epsilon=np.inf, scaling=scaling, fit_intercept=fit_intercept
    ).fit(X, y)
    coef, covariance = two_stages(X, y, fit_intercept)
    np.testing.assert_allclose(model.coef_[:2], coef[:2], rtol=1e-8)
    np.testing.assert_array_equal(model.coef_, model.coef_debiased_)
    np.testing.assert_array_equal(model.coef_[2:], 0.0)
    assert model.intercept_ == pytest.approx(coef[2] if fit_intercept else 0.0, rel=1e-7)
    np.testing.assert_allclose(model.coef_covariance_[:2, :2], covariance[:2, :2], rtol=1e-6)
    np.testing.assert_array_equal(model.coef_std_error_[2:], 0.0)


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_without_endogenous_columns_it_is_least_squares(rng):
    X, y = draw(rng, 3000)
    model = skdp.DP2SLS(epsilon=np.inf).fit(X, y)
    plain = skdp.DPLinearRegression(epsilon=np.inf, inference="coefficients").fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_debiased_, rtol=1e-7)
    np.testing.assert_allclose(model.coef_covariance_, plain.coef_covariance_, rtol=1e-5)


def first_stage_f(X, n_excluded):
    """The F test that the last columns have no effect on the first."""

    def squares(*columns):
        Z = np.column_stack([*columns, np.ones(len(X))])
        residuals = X[:, 0] - Z @ np.linalg.lstsq(Z, X[:, 0], rcond=None)[0]
        return residuals @ residuals

    full, least = squares(X[:, 1:]), squares(X[:, 1:-n_excluded])
    return (least - full) / n_excluded / (full / len(X))


@pytest.mark.parametrize("strength", [0.03, 0.2])
def test_the_strength_is_the_first_stage_f(rng, strength):
    X, _ = draw(rng, 4000, strength)
    Z = np.column_stack([X, np.ones(len(X))])
    parts = Instruments(np.array([0, 1, 4]), np.array([1, 2, 3, 4]))
    moments = Z.T @ Z / len(Z)
    exact = parts.first_stage_f(moments, np.eye(5), 0.0, len(Z))
    assert exact == pytest.approx(first_stage_f(X, 2), rel=1e-6)
    assert 0 < parts.first_stage_f(moments, np.eye(5), 0.02, len(Z)) < exact


def covered(n_fits, rng, epsilon, **design):
    hits, determined = [], []
    for seed in range(n_fits):
        X, y = draw(rng, 10_000, **design)
        model = skdp.DP2SLS(**COLUMNS, epsilon=epsilon, privacy=seeded(seed)).fit(X, y)
        low, high = model.conf_int()[:2].T
        hits.append((low <= TRUE[:2]) & (high >= TRUE[:2]))
        determined.append(model.determined_[:2])
    hits, determined = np.array(hits), np.array(determined)
    return hits[determined].mean(), determined.mean()


def test_intervals_cover():
    coverage, determined = covered(60, np.random.default_rng(0), 3.0)
    assert determined == 1
    assert coverage > 0.88  # three standard errors below .95, of 60 pairs


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize("errors", ["equal", "unequal"])
def test_intervals_cover_whatever_the_errors(epsilon, errors):
    coverage, determined = covered(400, np.random.default_rng(1), epsilon, errors=errors)
    assert determined == 1
    assert 0.925 < coverage < 0.975


def test_weak_instruments_are_not_determined(rng):
    X, y = draw(rng, 10_000, 0.01)
    with pytest.warns(skdp.NoiseWarning, match="instruments are weak"):
        model = skdp.DP2SLS(**COLUMNS, privacy=seeded()).fit(X, y)
    np.testing.assert_array_equal(model.determined_, [False, False, True, True])
    np.testing.assert_array_equal(model.conf_int()[0], [-np.inf, np.inf])
    assert np.isnan(model.p_values_[:2]).all()
    assert model.first_stage_f_ < LEAST_STRENGTH
    assert "not determined" in str(model.summary())
    assert np.isfinite(model.predict(X[:5])).all()
    # Without noise, the threshold is that of the F statistic.
    for strength in (0.04, 0.1):
        X, y = draw(rng, 10_000, strength)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = skdp.DP2SLS(**COLUMNS, epsilon=np.inf).fit(X, y)
        assert model.first_stage_f_ == pytest.approx(first_stage_f(X, 2), rel=1e-6)
        assert model.determined_[0] == (model.first_stage_f_ > LEAST_STRENGTH)


def test_what_a_fitted_model_offers(rng):
    X, y = draw(rng)
    frame = pd.DataFrame(X, columns=["years", "age", "offer", "distance"])
    by_name = skdp.DP2SLS(["years"], ["offer", "distance"], privacy=seeded())
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.NoiseWarning)  # no weak instruments
        model = by_name.fit(frame, y)
        by_number = clone(by_name).set_params(**COLUMNS).fit(frame, y)
    np.testing.assert_array_equal(model.coef_, by_number.coef_)
    assert by_name.endogenous == ["years"]
    plan = by_name.plan(len(X), 4)
    assert plan.releases == model.privacy_.releases
    assert "all coefficients are likely to be determined" in plan.expectations[0]
    assert "instruments are strong" in plan.expectations[0]
    np.testing.assert_allclose(model.coef_[:2], TRUE[:2], atol=0.15)
    assert "no regressor" in str(model.summary())
    assert model.wald_test([[1, -2, 0, 0]]).p_value > 1e-3
    assert model.wald_test([[1, 0, 0, 0]]).p_value < 1e-6
    with pytest.raises(ValueError, match="restricts nothing"):
        model.wald_test([[0, 0, 1, 0]])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
    means, errors = model.predict(frame[:3], return_std=True)
    np.testing.assert_allclose(means, model.to_sklearn().predict(frame[:3]))
    assert (errors > 0).all()
    # Other columns under the same names are other columns of the plan.
    turned = by_name.fit(frame[frame.columns[::-1]], y)
    np.testing.assert_array_equal(turned.coef_[:2], 0.0)


def test_groups_and_partitions(rng):
    X, y = draw(rng)
    person = np.arange(len(X)) // 4
    X, y = X + rng.standard_normal((len(X) // 4, 1))[person], y  # rows of a person are alike
    model = skdp.DP2SLS(**COLUMNS, epsilon=5.0, privacy=seeded()).fit(X, y, groups=person)
    assert model.privacy_.unit == "group"
    assert model.determined_.all()
    parts = skdp.DP2SLS(**COLUMNS, epsilon=5.0, privacy=seeded()).fit(skdp.Chunks(X, y, 6000))
    whole = skdp.DP2SLS(**COLUMNS, epsilon=5.0, privacy=seeded()).fit(X, y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-6)


def panel(rng, n_groups):
    """Rows of persons whose own level moves all columns and the target; five of each."""
    X, y = draw(rng, 5 * n_groups)
    person = np.arange(len(X)) // 5
    level = rng.standard_normal(n_groups)[person]
    return X + level[:, None], y + 3 * level + level * TRUE.sum(), person


@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("scaling", ["none", "private"])
def test_fixed_effects_without_noise_are_the_textbooks(rng, scaling):
    X, y, person = panel(rng, 400)
    model = skdp.DP2SLS(**COLUMNS, epsilon=np.inf, fixed_effects=True, scaling=scaling)
    model.fit(X, y, groups=person)

    def within(values):
        of_persons = values.reshape(400, 5, -1)
        return (of_persons - of_persons.mean(axis=1, keepdims=True)).reshape(values.shape)

    coef, _ = two_stages(within(X), within(y), constant=False)
    np.testing.assert_allclose(model.coef_[:2], coef, rtol=1e-8)
    assert model.intercept_ == 0.0


def test_fixed_effects_undo_what_levels_of_persons_confound(rng):
    X, y, person = panel(rng, 3000)
    for fixed_effects in (True, False):
        given = {**COLUMNS, "fixed_effects": fixed_effects, "privacy": seeded()}
        model = skdp.DP2SLS(**given, epsilon=5.0).fit(X, y, groups=person)
        distance = np.abs((model.coef_debiased_ - TRUE)[:2] / model.coef_std_error_[:2])
        assert bool((distance < 4).all()) is fixed_effects, distance
    with pytest.raises(ValueError, match="DP2SLS: fixed_effects=True"):
        model.set_params(fixed_effects=True).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endogenous": [0]}, "at least as many columns of X as endogenous, 1; got 0"),
        (
            {"endogenous": [0], "instruments": [0]},
            "or an instrument; both are, by number: 0",
        ),
        ({"endogenous": [0], "instruments": [4]}, "from 0 to 3, .* got .0. and .4."),
        ({"instruments": [0, 1, 2, 3]}, "not all are instruments"),
        ({"instruments": [-1]}, "instruments must hold columns"),
        ({"instruments": [1, 1]}, "once each"),
        ({"instruments": [1, "a"]}, "all of them by name"),
        ({"instruments": "a"}, "instruments must hold columns"),
        ({"endogenous": 0}, "endogenous must hold columns"),
        ({"instruments": ["a"]}, "X is not a data frame"),
        ({"delta": 0.0}, "two-stage least squares has no other noise"),
    ],
    ids=str,
)
def test_refused_before_a_charge(rng, asked, options, message):
    X, y = draw(rng, 50)
    budget = skdp.PrivacyBudget(5.0, 1e-5)
    with pytest.raises(ValueError, match=message):
        skdp.DP2SLS(**options, privacy=skdp.Privacy(budget=budget)).fit(X, y)
    assert budget.n_fits == 0
    assert not asked


def test_other_rows_are_refused(rng):
    X, y = draw(rng, 50)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        skdp.DP2SLS().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="not in X: 'b'"):
        skdp.DP2SLS([], ["b"]).fit(pd.DataFrame(X, columns=list("acde")), y)
    with pytest.raises(ValueError, match="inference about coefficients is possible only with at"):
        skdp.DP2SLS().plan(50, 3000)
    with pytest.raises(ValueError, match="read"):
        skdp.DP2SLS().fit_blocks([(X, y)], n_samples=50, n_features=4)


# ---------------------------------------------------------------- privacy


def audited(rng, adjacency, groups=None, **options):
    X, y = draw(rng, 60)
    model = skdp.DP2SLS(**COLUMNS, epsilon=3.0, **options)
    return audit.replay(model, X, y, groups=groups, adjacency=adjacency)


@pytest.mark.parametrize(
    ("scaling", "adjacency"), [("none", "zero_out"), ("private", "replace_one")]
)
def test_nothing_but_releases(rng, scaling, adjacency):
    report = audited(rng, adjacency, scaling=scaling)
    assert report.ok, report
    assert {"gram", "hessian", "score_squares"} <= {one.kind for one in report.releases}


@pytest.mark.parametrize("fixed_effects", [True, False])
def test_nothing_but_releases_of_groups(rng, fixed_effects):
    given = {"groups": np.arange(60) // 3, "scaling": "none", "fixed_effects": fixed_effects}
    assert audited(rng, "replace_one", **given).ok


def mutant_moments_of_the_rows(patch):
    """The first stage is that of the rows themselves."""
    solve = TwoStageLeastSquares.solve

    def peeking(self, oracle):
        solution = solve(self, oracle)
        if oracle._source is None:
            return solution
        seen = 1e-9 * float(np.clip(oracle._source.records.X, -9, 9).mean())
        return replace(solution, coef=solution.coef * (1 + seen))

    patch.setattr(TwoStageLeastSquares, "solve", peeking)


def mutant_instruments_by_the_rows(patch):
    """Which instruments are used depends on the rows."""
    solve = TwoStageLeastSquares.solve

    def choosing(self, oracle):
        solution = solve(self, oracle)
        parts = solution.results["instruments"]
        if oracle._source is not None and np.abs(oracle._source.records.X).max() > 3.9:
            parts = replace(parts, instruments=np.delete(parts.instruments, 1))
        return replace(solution, results={"instruments": parts})

    patch.setattr(TwoStageLeastSquares, "solve", choosing)


def mutant_moments_with_half_the_noise(patch):
    contribution = GramSum.contribution

    def halved(self, *arguments):
        bounded = contribution(self, *arguments)
        return replace(bounded, bound=bounded.bound / 2)

    patch.setattr(GramSum, "contribution", halved)


@pytest.mark.parametrize(
    "mutant",
    [
        mutant_moments_of_the_rows,
        mutant_instruments_by_the_rows,
        mutant_moments_with_half_the_noise,
    ],
)
def test_mutants_are_caught(rng, monkeypatch, mutant):
    mutant(monkeypatch)
    assert not audited(rng, "replace_one", scaling="none").ok


def test_a_column_by_name_and_by_number_is_one_column(rng):
    X = pd.DataFrame(rng.standard_normal((100, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match="both are, by number: 0"):
        skdp.DP2SLS(endogenous=["a"], instruments=[0]).fit(X, X["b"])
