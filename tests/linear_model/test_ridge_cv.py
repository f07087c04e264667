"""Ridge by noisy folds: right without noise, one price for any number of penalties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.linear_model import Ridge

import skdp
from replays import data_for, neighbours, seeded
from skdp.accounting import Adjacency
from skdp.solvers.core.fold_moments import FoldMoments

SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))

ALPHAS = (0.1, 10.0, 1000.0)


def exact(X, y, **options):
    model = skdp.DPRidgeCV(ALPHAS, epsilon=math.inf, scaling="none", **options)
    with pytest.warns(skdp.PrivacyWarning, match="epsilon=inf"):
        model.fit(X, y)
    return model


@pytest.mark.parametrize("n_targets", [0, 2])
def test_without_noise_it_is_ridge(regression, n_targets):
    X, y = regression
    y = y if n_targets == 0 else np.column_stack([y, 2 - y])
    model = exact(X, y)
    for alpha, coef in zip(ALPHAS, model.path_, strict=True):
        np.testing.assert_allclose(coef, Ridge(alpha).fit(X, y).coef_, atol=1e-8)
    best = Ridge(model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, best.intercept_, atol=1e-8)
    assert model.cv_errors_.argmin() == ALPHAS.index(model.alpha_)
    # Folds are random, but errors on hundreds of rows are not far from those of other folds.
    folds = np.array_split(np.random.default_rng(0).permutation(len(y)), 3)
    for alpha, error in zip(ALPHAS, model.cv_errors_, strict=True):
        squares = 0.0
        for rows in folds:
            others = np.setdiff1d(np.arange(len(y)), rows)
            fitted = Ridge(alpha).fit(X[others], y[others])
            squares += ((fitted.predict(X[rows]) - y[rows]) ** 2).sum()
        assert error == pytest.approx(squares / len(y), rel=0.1)


def test_errors_are_in_units_of_the_targets(rng):
    X = rng.standard_normal((20_000, 3))
    y = 500 + 100 * (X @ [1.0, 1.0, 0.0] + rng.standard_normal(20_000))
    model = skdp.DPRidgeCV(ALPHAS, epsilon=10.0, privacy=SEEDED).fit(X, y)
    assert model.alpha_ < 1000
    assert model.cv_errors_[0] == pytest.approx(100**2, rel=0.1)
    assert model.score(X, y) > 0.6


def test_the_score_is_poor_for_want_of_budget_alone():
    """On the rows of scikit-learn's check, whose least score the tag takes away."""
    X, y = make_regression(200, 10, n_informative=1, bias=5.0, noise=20, random_state=42)
    model = skdp.DPRidgeCV(epsilon=20.0, privacy=SEEDED)
    assert model.fit(X, (y - y.mean()) / y.std()).score(X, (y - y.mean()) / y.std()) > 0.5


def test_a_set_of_columns_is_chosen_at_the_same_price(rng):
    X = rng.standard_normal((20_000, 5))
    y = X @ [1.0, 0.0, -1.0, 0.0, 0.0] + rng.standard_normal(20_000)
    sets = [[1, 3, 4], [2, 0], [0]]
    options = {
        "epsilon": 3.0,
        "privacy": SEEDED,
    }
    model = skdp.DPRidgeCV(ALPHAS, column_sets=sets, **options).fit(X, y)
    np.testing.assert_array_equal(model.columns_, [0, 2])
    assert (model.coef_[[1, 3, 4]] == 0).all()
    np.testing.assert_allclose(model.coef_[[0, 2]], [1, -1], atol=0.1)
    assert model.cv_errors_.shape == (3, len(ALPHAS))
    assert model.path_.shape == (3, len(ALPHAS), 5)
    assert model.cv_errors_[1].min() == model.cv_errors_.min() == pytest.approx(1, rel=0.1)
    assert model.cv_errors_[2].min() == pytest.approx(2, rel=0.1)
    plain = skdp.DPRidgeCV(ALPHAS, **options).fit(X, y)
    assert model.privacy_.releases == plain.privacy_.releases
    np.testing.assert_array_equal(plain.columns_, range(5))


def test_one_candidate_has_an_error_too(rng):
    X = rng.standard_normal((20_000, 3))
    y = X @ [1.0, -1.0, 0.0] + rng.standard_normal(20_000)
    options = {
        "epsilon": 10.0,
        "privacy": SEEDED,
    }
    one = skdp.DPRidgeCV((1.0,), **options).fit(X, y)
    assert one.cv_errors_[0] == pytest.approx(1, rel=0.1)
    two = skdp.DPRidgeCV((1.0, 10.0), **options).fit(X, y)
    assert one.cv_errors_[0] == two.cv_errors_[0]
    np.testing.assert_array_equal(one.path_[0], two.path_[0])


def test_columns_by_name(rng):
    pandas = pytest.importorskip("pandas")
    X = rng.standard_normal((20_000, 4))
    y = X @ [1.0, 0.0, -1.0, 0.0] + rng.standard_normal(20_000)
    X = pandas.DataFrame(X, columns=["age", "dose", "sex", "ward"])
    options = {
        "epsilon": 9.0,
        "privacy": SEEDED,
    }
    by_name = skdp.DPRidgeCV(ALPHAS, column_sets=[["dose"], ["sex", "age"]], **options)
    by_number = skdp.DPRidgeCV(ALPHAS, column_sets=[[1], [2, 0]], **options).fit(X, y)
    np.testing.assert_array_equal(by_name.fit(X, y).coef_, by_number.coef_)
    np.testing.assert_array_equal(by_name.columns_, [0, 2])
    # Names are those of this data frame, not of one that was fitted before.
    np.testing.assert_array_equal(by_name.fit(X[X.columns[::-1]], y).columns_, [1, 3])
    assert by_name.plan(20_000, 4) == by_number.plan(20_000, 4)
    assert by_name.column_sets == [["dose"], ["sex", "age"]]
    for columns, data, message in (
        (["age", "height"], X, "not in X: 'height'"),
        (["age", 1], X, "number all of them; not in X: 1"),
        (["age"], X.to_numpy(), "X is not a data frame"),
        (["age", "age"], X, "each of them once"),
    ):
        with pytest.raises(ValueError, match=rf"column_sets .*{message}"):
            skdp.DPRidgeCV(column_sets=[columns]).fit(data, y)


def test_without_noise_a_set_of_columns_is_ridge_on_them(regression):
    X, y = regression
    model = exact(X, y, column_sets=[[1, 2]])
    for alpha, coef in zip(ALPHAS, model.path_[0], strict=True):
        np.testing.assert_allclose(coef[[1, 2]], Ridge(alpha).fit(X[:, 1:3], y).coef_, atol=1e-8)


def test_the_path_as_a_picture(regression):
    pytest.importorskip("matplotlib")
    X, y = regression
    model = skdp.DPRidgeCV(ALPHAS, column_sets=[[0], range(X.shape[1])], epsilon=9.0).fit(X, y)
    display = skdp.RidgePathDisplay.from_estimator(model)
    lines = display.axes_[0].lines
    best = int(model.cv_errors_.min(axis=1).argmin())
    for column, line in zip(model.path_[best].T, lines, strict=False):
        np.testing.assert_allclose(line.get_ydata(), column)
        np.testing.assert_allclose(line.get_xdata(), ALPHAS)
    np.testing.assert_allclose(display.axes_[1].lines[0].get_ydata(), model.cv_errors_[best])
    assert display.axes_[0].lines[-1].get_xdata()[0] == model.alpha_
    several = skdp.DPRidgeCV(ALPHAS).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="several"):
        skdp.RidgePathDisplay.from_estimator(several)


def test_any_number_of_penalties_costs_the_same(regression):
    few = skdp.DPRidgeCV((1.0,)).fit(*regression)
    many = skdp.DPRidgeCV(np.geomspace(0.01, 100, 30)).fit(*regression)
    assert few.privacy_.releases == many.privacy_.releases
    assert [release.kind for release in many.privacy_.releases[-3:]] == ["gram"] * 3
    assert many.privacy_.epsilon <= 1.0


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_nothing_but_releases(replay, rng, adjacency):
    def make():
        terms = seeded(adjacency=str(adjacency))
        return skdp.DPRidgeCV(ALPHAS, privacy=terms, scaling="none")

    X, y = data_for("ridge", rng)
    replay.check_each(make, neighbours("ridge", X, y, adjacency), adjacency)


def mutant_exact_errors_choose(monkeypatch):
    """The penalty is chosen by errors on the rows themselves."""
    solve = FoldMoments.solve

    def peeking(self, oracle):
        found = solve(self, oracle)
        if oracle.is_rehearsal:
            return found
        targets = oracle._source.records.targets
        return skdp.oracle.Solution(
            found.coef, 1, results={**found.results, "best": int(abs(targets).max() > 10)}
        )

    monkeypatch.setattr(FoldMoments, "solve", peeking)


def test_a_mutant_is_caught(replay, leak, rng, monkeypatch):
    mutant_exact_errors_choose(monkeypatch)
    with pytest.raises(leak):
        test_nothing_but_releases(replay, rng, Adjacency.REPLACE_ONE)


@pytest.mark.parametrize(
    "options",
    [
        {"alphas": ()},
        {"alphas": 1.0},
        {"alphas": (-1.0,)},
        {"n_folds": 1},
        {"alphas": (math.inf,)},
        {"column_sets": []},
        {"column_sets": [[]]},
        {"column_sets": [[0, 99]]},
        {"column_sets": [[0, 0]]},
        {"column_sets": [0]},
        {"column_sets": ["age", "sex"]},
    ],
    ids=str,
)
def test_refused(regression, options):
    with pytest.raises(ValueError, match=r"(alphas|n_folds|column_sets) must be"):
        skdp.DPRidgeCV(**options).fit(*regression)
