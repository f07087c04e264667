"""Scores: right without noise, as noisy as they say, charged, and refused before the charge."""

from __future__ import annotations

import itertools
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import xlogy
from sklearn import metrics as plain
from sklearn.cluster import KMeans
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

import skdp
from skdp._oracle import Oracle
from skdp._stages.scores import RESOLUTION
from skdp.metrics import Score, evaluate, row_statistics
from skdp.metrics.requests import METRICS
from skdp.model_selection import DPSearchCV, dp_cross_validate

TWO = list(METRICS["classifier"])


@pytest.fixture
def asked(monkeypatch):
    """Releases about rows."""
    found, ask = [], Oracle.request

    def counted(self, release):
        if not self.is_rehearsal:
            found.append(release)
        return ask(self, release)

    monkeypatch.setattr(Oracle, "request", counted)
    return found


@pytest.fixture
def two_classes(rng):
    X = rng.standard_normal((2000, 3))
    y = np.where(X @ [2.0, -1.0, 0.5] + rng.logistic(size=2000) > 1.0, "yes", "no")
    return LogisticRegression().fit(X[:500], y[:500]), X, y


def seeded(model, X, y, metrics, seed=0, adjacency="zero_out", **options):
    privacy = skdp.Privacy(adjacency=adjacency, noise=skdp.SeededNoise(seed))
    return evaluate(model, X, y, metrics, privacy=privacy, **options)


def exact(model, X, y, metrics, **options):
    with pytest.warns(skdp.PrivacyWarning, match="epsilon=inf"):
        return evaluate(model, X, y, metrics, epsilon=math.inf, **options)


# ---------------------------------------------------------------- without noise


def test_exact_scores_of_several_classes(rng):
    X, y = rng.standard_normal((900, 4)), np.arange(900) % 3
    X[:, 0] += y
    model = LogisticRegression().fit(X, y)
    scores = exact(model, X, y, ["accuracy", "neg_log_loss"])
    assert scores["accuracy"].value == pytest.approx(model.score(X, y))
    loss = plain.log_loss(y, model.predict_proba(X))
    assert scores["neg_log_loss"].value == pytest.approx(-loss, abs=1e-5)
    recalls = exact(model, X, y, "accuracy", by=y, subgroups=range(3))
    for label, recall in enumerate(plain.recall_score(y, model.predict(X), average=None)):
        assert recalls[label]["accuracy"].value == pytest.approx(recall)


def test_exact_scores_of_positive_targets(rng):
    X = rng.standard_normal((500, 3))
    y = rng.gamma(4.0, np.exp(X @ [0.2, -0.2, 0.0])) + 0.1
    model, names = PoissonRegressor().fit(X, y), ["mean_poisson_deviance", "mean_gamma_deviance"]
    scores = exact(model, X, y, names, target_range=(0.0, 50.0))
    for name in names:
        expected = getattr(plain, name)(y, model.predict(X))
        assert scores[name].value == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ValueError, match=r"poisson deviance is for targets of at.*\(0, high"):
        evaluate(model, X, y, names[0], target_range=(-1.0, 50.0))


def test_several_predictions_for_a_row_are_refused(regression):
    X, y = regression
    model = LinearRegression().fit(X, np.c_[y, y])
    budget = skdp.PrivacyBudget(1.0, 1e-5)
    with pytest.raises(ValueError, match=r"one prediction for each row.*, 2\).*released"):
        evaluate(model, X, y, "r2", target_range=(-9.0, 9.0), privacy=skdp.Privacy(budget=budget))
    assert budget.n_fits == 0


def test_what_lies_out_of_range_is_cut(regression):
    X, y = regression
    model = LinearRegression().fit(X, y)
    wild = y.copy()
    wild[0] = 1e200
    one = exact(model, X, wild, "neg_mean_squared_error", target_range=(-4.0, 4.0))
    wild[0] = 4.0
    other = exact(model, X, wild, "neg_mean_squared_error", target_range=(-4.0, 4.0))
    assert one["neg_mean_squared_error"] == other["neg_mean_squared_error"]


def test_sampling_is_told_apart_from_noise(two_classes):
    model, X, y = two_classes
    score = exact(model, X, y, ["accuracy", "log_loss"])["accuracy"]
    assert score.sampling_std == pytest.approx(math.sqrt(score.value * (1 - score.value) / 2000))
    assert score.interval() == (score.value, score.value)
    low, high = score.interval(0.9, of="population")
    assert high - low == pytest.approx(2 * stats.norm.ppf(0.95) * score.sampling_std)


def test_shares_and_f1_have_the_sampling_errors_of_the_delta_method(two_classes):
    """F1 counts true positives twice: its variance is F (1 - F) (2 - F) over what it divides by."""
    model, X, y = two_classes
    scores = exact(model, X, y, ["precision", "recall", "f1"])
    truth, predicted = y == "yes", model.predict(X) == "yes"
    n_true, n_predicted = truth.sum(), predicted.sum()
    for name, denominator in (("precision", n_predicted), ("recall", n_true)):
        value = scores[name].value
        expected = math.sqrt(value * (1 - value) / denominator)
        assert scores[name].sampling_std == pytest.approx(expected), name
    f1 = scores["f1"].value
    expected = math.sqrt(f1 * (1 - f1) * (2 - f1) / (n_true + n_predicted))
    assert scores["f1"].sampling_std == pytest.approx(expected)


DEVIANCES = {
    1: lambda y, m: 2 * (xlogy(y, y / m) - y + m),
    1.5: lambda y, m: 4 * (y / np.sqrt(m) - 2 * np.sqrt(y) + np.sqrt(m)),
    2: lambda y, m: 2 * (y / m - 1 - np.log(y / m)),
}


@pytest.mark.parametrize("power", DEVIANCES)
def test_d2_is_that_of_cut_targets(rng, power):
    """Its sampling error is that of what each row adds to the ratio of both deviances."""
    X = rng.standard_normal((2000, 3))
    y = rng.gamma(2.0, np.exp(X @ [0.4, -0.4, 0.0]) / 2)
    if power < 2:
        y *= rng.random(2000) < 0.9
    model = TweedieRegressor(power=power, alpha=0.1).fit(X, y)
    score = exact(model, X, y, "d2_tweedie", target_range=(0.0, 20.0))["d2_tweedie"]
    targets, means = np.maximum(y, 0.02 if power == 2 else 0.0), np.clip(model.predict(X), 0.02, 20)
    expected = plain.d2_tweedie_score(targets, means, power=power)
    assert score.value == pytest.approx(expected, abs=1e-5)
    null = DEVIANCES[power](targets, targets.mean())
    influence = DEVIANCES[power](targets, means) - (1 - expected) * null
    expected = influence.std() / null.mean() / math.sqrt(2000)
    assert score.sampling_std == pytest.approx(expected, rel=0.01)


@pytest.mark.filterwarnings("error", "ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize(
    ("name", "by"),
    [
        *itertools.product(["mean_poisson_deviance", "mean_gamma_deviance"], [None, "parity"]),
        ("d2_tweedie", None),
    ],
)
def test_no_warning_shows_a_subnormal_target(rng, name, by):
    """It counts as 0, which has no gamma deviance."""
    X, y = rng.standard_normal((200, 2)), rng.gamma(2.0, size=200)
    model, values = PoissonRegressor().fit(X, y), []
    for least in (5e-324 if "gamma" in name else 0.0, 5e-324, 1e-310):
        y[7] = least
        labels = {} if by is None else {"by": np.arange(200) % 2, "subgroups": [0, 1]}
        found = evaluate(model, X, y, name, epsilon=math.inf, target_range=(0.0, 9.0), **labels)
        values.append((found if by is None else found[1])[name].value)
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)


def test_d2_has_the_power_of_its_model(rng):
    X, y = rng.standard_normal((300, 2)), rng.gamma(2.0, size=300) + 0.5
    for power, model in ((1, PoissonRegressor()), (2, GammaRegressor()), (0, LinearRegression())):
        scores = exact(model.fit(X, y), X, y, "d2_tweedie", target_range=(0.0, 30.0))
        expected = plain.d2_tweedie_score(y, model.predict(X), power=power)
        assert scores["d2_tweedie"].value == pytest.approx(expected, abs=1e-4)
        assert any(f"power {power}" in text for text in scores.privacy_.assumptions) == (power > 0)
    options = {"metrics": "d2_tweedie", "target_range": (0.0, 30.0)}
    with pytest.raises(ValueError, match=r"must be 0 or lie in \[1, 2\], got 3.*released"):
        evaluate(TweedieRegressor(power=3).fit(X, y), X, y, **options)
    with pytest.raises(ValueError, match=r"targets of at least 0.*\(0, high"):
        evaluate(PoissonRegressor().fit(X, y), X, y, "d2_tweedie", target_range=(-1.0, 30.0))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (LinearRegression(), "r2"),
        (TweedieRegressor(power=0), "r2"),
        (PoissonRegressor(), "d2_tweedie"),
        (make_pipeline(StandardScaler(), GammaRegressor()), "d2_tweedie"),
        (skdp.DPTweedieRegressor(power=1.5, epsilon=math.inf), "d2_tweedie"),
    ],
)
@pytest.mark.filterwarnings("ignore::skdp.PrivacyWarning")
def test_the_default_metric_is_that_of_score(rng, model, name):
    X = rng.standard_normal((500, 2))
    y = rng.gamma(5.0, np.exp(X @ [0.4, -0.4]) / 5)
    scores = exact(model.fit(X, y), X, y, None, target_range=(0.0, 2 * y.max()))
    assert list(scores) == [name]
    assert scores[name].value == pytest.approx(model.score(X, y), abs=0.01)


@pytest.mark.parametrize("errors", ["standard_normal", "standard_t", "standard_exponential"])
def test_r2_has_the_sampling_error_of_the_delta_method(rng, errors):
    """The standard error of what each row adds to the ratio, for errors of any distribution."""
    X = rng.standard_normal((20_000, 2))
    noise = getattr(rng, errors)(*([2.5] if errors == "standard_t" else []), size=len(X))
    y = 3.0 + X @ [1.0, -1.0] + noise - noise.mean()
    model = LinearRegression().fit(X, y)
    score = exact(model, X, y, "r2", target_range=(-7.0, 11.0))["r2"]
    cut, residuals = np.clip(y, -7, 11), np.clip(y, -7, 11) - np.clip(model.predict(X), -7, 11)
    influence = residuals**2 - (1 - score.value) * (cut - cut.mean()) ** 2
    rounding = 18.0**4 / 2 * RESOLUTION  # of a mean square up to that of the width of the range
    expected = math.sqrt((influence.var() + rounding) / len(X)) / cut.var()
    assert score.sampling_std == pytest.approx(expected, rel=2e-3)
    of_normal_errors = 2 * math.sqrt(score.value / len(X)) * (1 - score.value)
    ratio = score.sampling_std / of_normal_errors
    assert ratio == pytest.approx(1, abs=0.05) if errors == "standard_normal" else ratio > 1.1


# ---------------------------------------------------------------- with noise


def test_noise_is_as_large_as_it_says(two_classes):
    """The z-scores of 150 evaluations: mean 0, variance 1."""
    model, X, y = two_classes
    names = ["accuracy", "neg_log_loss", "roc_auc", "recall"]
    aims = exact(model, X, y, names)
    drawn = [seeded(model, X, y, names, seed) for seed in range(150)]
    for name in names:
        z = [(scores[name].value - aims[name].value) / scores[name].noise_std for scores in drawn]
        assert abs(np.mean(z)) < 0.3, name
        assert 0.8 < np.std(z) < 1.2, name


def test_centred_counts_halve_the_noise_of_an_accuracy(two_classes):
    """At (1, 1e-6), mu = .2367: half of 4.22 counts in n under zero-out, 4.22 under replace-one."""
    model, X, y = two_classes
    for adjacency, factor in (("zero_out", 0.5), ("replace_one", 1.0)):
        score = seeded(model, X, y, "accuracy", adjacency=adjacency)["accuracy"]
        expected = factor / skdp.accounting.gaussian_mu(1.0, 1e-6) / 2000
        assert score.noise_std == pytest.approx(expected, rel=1e-6)


def test_intervals_of_ratios_are_fiellers():
    score = Score("precision", 8.0, 10.0, (1.0, 0.5, 1.0), 0.0, (0.0, 1.0))
    square = stats.norm.ppf(0.975) ** 2
    for end in score.interval():
        off = (8.0 - end * 10.0) ** 2 - square * (1.0 - 2 * end * 0.5 + end**2)
        assert end == 1.0 or off == pytest.approx(0, abs=1e-9)
    assert score.interval()[1] < 1.0
    lost = Score("precision", 1.0, 1.5, (1.0, 0.5, 1.0), 0.0, (0.0, 1.0))
    assert lost.interval() == (0.0, 1.0)
    assert math.isnan(Score("recall", 1.0, -1.0, (1.0, 0.0, 1.0), 0.0, (0.0, 1.0)).value)
    assert math.isnan(lost)
    assert str(lost) == "precision nan (0 to 1: the noise hides this score)"
    one_sided = Score("precision", 1.0, 10.0, (4.0, 0.0, 0.0), 0.0, (0.0, 1.0))
    assert one_sided == 0.1
    assert "std of noise 0.2" in str(one_sided)
    for noise in ((9.0, 0.0, 0.0), (9.0, 0.0, 9.0)):  # R2 has no least value
        assert Score("r2", 1.0, 2.0, noise, 0.0, (-math.inf, 1.0)) == 0.5
    mean = Score("r2", math.nan, 1.0, (math.inf, 0.0, 0.0), 0.1, (0.0, 1.0))  # of folds, one lost
    assert (mean.noise_std, mean.interval()) == (math.inf, (0.0, 1.0))
    assert Score("neg_log_loss", 2.0, 1.0, (0.0, 0.0, 0.0), 0.0, (0.0, 6.0), -1).interval() == (
        -2.0,
        -2.0,
    )
    for level in (0, 1, "x", math.nan):
        with pytest.raises(ValueError, match="level must lie in"):
            score.interval(level)
    with pytest.raises(ValueError, match="of must be"):
        score.interval(of="all")


# ---------------------------------------------------------------- models, rows and budgets


def test_any_fitted_model_of_scikit_learn(two_classes, asked):
    _, X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abc"))
    models = {
        "pipeline": make_pipeline(FunctionTransformer(np.tanh), LogisticRegression()),
        "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
        "decision function": LinearSVC(),
    }
    for name, model in models.items():
        score = seeded(model.fit(frame, y), frame, y, "roc_auc", epsilon=5.0)["roc_auc"]
        assert score.value > 0.8, name
    assert len(asked) == 6


def test_the_range_of_targets_may_be_the_models_own(regression):
    X, y = regression
    private = skdp.DPRidge(epsilon=5.0).fit(X, y)
    bounded = skdp.DPRidge(epsilon=5.0, scaling=skdp.RowNorm(9.0, target=3.0)).fit(X, y)
    for model in (private, bounded, make_pipeline(FunctionTransformer(), private)):
        assert seeded(model, X, y, "r2", epsilon=10.0)["r2"].value > 0.3


def by_person(values, groups):
    """Mean over groups of the mean of what their rows have."""
    return pd.Series(np.asarray(values, dtype=float)).groupby(np.asarray(groups)).mean().mean()


def test_each_group_counts_once(two_classes, rng):
    model, X, y = two_classes
    groups = rng.permutation(np.append(np.arange(300), rng.integers(0, 40, 1700)))
    with pytest.warns(skdp.PrivacyWarning):
        found = evaluate(model, X, y, TWO, epsilon=math.inf, groups=groups)
    right = model.predict(X) == y
    chances = model.predict_proba(X)
    positive, said = y == "yes", model.predict(X) == "yes"
    losses = np.minimum(-np.log(np.where(positive, chances[:, 1], chances[:, 0])), 6.0)
    expected = {
        "accuracy": by_person(right, groups),
        "neg_log_loss": -by_person(losses, groups),
        "recall": by_person(positive & said, groups) / by_person(positive, groups),
        "precision": by_person(positive & said, groups) / by_person(said, groups),
    }
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value, rel=1e-6), name
    assert (found.privacy_.unit, found.privacy_.n_groups) == ("group", 300)
    assert "Each group counts once in a score" in str(found.privacy_.assumptions)


def test_r2_of_groups(regression, rng):
    X, y = regression
    groups = rng.integers(0, 50, len(y))
    model = LinearRegression().fit(X[:30], y[:30])
    with pytest.warns(skdp.PrivacyWarning):
        found = evaluate(model, X, y, epsilon=math.inf, groups=groups, target_range=(-9.0, 9.0))
    errors = by_person((y - model.predict(X)) ** 2, groups)
    spread = by_person(y**2, groups) - by_person(y, groups) ** 2
    assert found["r2"].value == pytest.approx(1 - errors / spread, rel=1e-5)


def test_scores_are_charged(two_classes, asked):
    model, X, y = two_classes
    with skdp.PrivacyBudget(1.4, 1e-6) as budget:
        scores = evaluate(model, X, y, ["accuracy", "roc_auc"], epsilon=1.0)
        assert budget.spent == pytest.approx(1.0, rel=1e-6)
        assert budget.spent == pytest.approx(scores.privacy_.epsilon)
        done = len(asked)
        with pytest.raises(skdp.PrivacyBudgetError, match="nothing was released"):
            evaluate(model, X, y, "accuracy", epsilon=1.0)
        assert len(asked) == done
    own = skdp.PrivacyBudget(1.0, 1e-6)
    evaluate(model, X, y, "accuracy", epsilon=0.5, privacy=skdp.Privacy(budget=own))
    assert own.spent == pytest.approx(0.5)


WRONG = {
    "metrics of a classifier must be among": {"metrics": ["accuracy", "r2"]},
    "got none": {"metrics": []},
    "epsilon must be": {"epsilon": 0.0},
    "delta must be positive": {"delta": 0.0},
    "groups must have one entry for each row": {"groups": [1, 2]},
    "adjacency must be": {"privacy": skdp.Privacy(adjacency="add_remove")},
    "y holds a label that is none of": {"y": lambda y: np.where(y == "yes", "maybe", y)},
    "y holds labels that are numbers. The classes of the model are text": {
        "y": lambda y: (y == "yes").astype(int)
    },
    "There must be as many": {"y": lambda y: y[:-1]},
    "y is needed": {"y": lambda y: None},
    "predict failed on these rows, with ValueError": {"X": lambda X: X[:, :2]},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_input_is_refused_before_the_charge(two_classes, asked, message):
    model, X, y = two_classes
    options = dict(WRONG[message])
    X = options.pop("X", lambda X: X)(X)
    y = options.pop("y", lambda y: y)(y)
    with skdp.PrivacyBudget(9.0, 1e-6) as budget:
        with pytest.raises(ValueError, match=message):
            evaluate(model, X, y, **options)
        assert budget.spent == 0
    assert not asked


def test_a_refusal_does_not_quote_a_label_that_cannot_be_compared(two_classes):
    class Label:
        def __lt__(self, other):
            raise KeyError("a secret")

        __gt__ = __lt__

    model, X, y = two_classes
    labels = y.astype(object)
    labels[0] = Label()
    with skdp.PrivacyBudget(9.0, 1e-6) as budget:
        with pytest.raises(ValueError, match="y holds labels that are objects and text") as refusal:
            evaluate(model, X, labels, "accuracy")
        assert budget.spent == 0
    assert "secret" not in str(refusal.value)


def test_models_that_cannot_be_scored_are_refused(two_classes, regression, asked):
    _, X, y = two_classes
    rows, targets = regression
    line = LinearRegression().fit(rows, targets)
    tried = [
        (KMeans(2, n_init=1).fit(X), X, y, None, "fitted classifier or regressor"),
        (LogisticRegression(), X, y, None, "fit it first"),
        (LinearSVC().fit(X, y), X, y, "neg_log_loss", "no predict_proba"),
        (line, rows, targets, None, r"Pass target_range"),
        (LogisticRegression().fit(X, np.arange(2000) % 3), X, y, "roc_auc", "is for two classes"),
    ]
    for one, X, y, metrics, message in tried:
        with pytest.raises(ValueError, match=message):
            evaluate(one, X, y, metrics)
    for wrong in ((1.0, 1.0), (0.0, math.inf), "ab", 3.0):
        with pytest.raises(ValueError, match="target_range must be"):
            evaluate(line, rows, targets, target_range=wrong)
    targets[0] = math.nan
    with pytest.raises(ValueError, match=r"Nothing was released"):
        evaluate(line, rows, targets, target_range=(0, 1))
    assert not asked


# ---------------------------------------------------------------- a score is a number


def test_a_score_is_a_float(two_classes):
    scores = evaluate(*two_classes, ["accuracy", "neg_log_loss"], epsilon=5.0)
    score = scores["accuracy"]
    assert isinstance(score, float)
    assert float(score) == score.value == json.loads(json.dumps(score))
    assert f"{score:.3f}" == f"{score.value:.3f}"
    assert round(score, 2) == round(score.value, 2)
    assert score > 0.5 > scores["neg_log_loss"]
    assert np.mean([score, score]) == pytest.approx(score.value)
    assert score - 0.5 == pytest.approx(score.value - 0.5)
    assert "std of noise" in str(score) == repr(score)
    copy = pickle.loads(pickle.dumps(score))
    assert (copy, copy.interval(), copy.name) == (score, score.interval(), "accuracy")


def test_scores_as_a_table(two_classes):
    model, X, y = two_classes
    names = ["accuracy", "neg_log_loss"]
    scores = evaluate(model, X, y, names, epsilon=5.0)
    table = scores.to_frame(level=0.9)
    assert list(table.index) == ["accuracy", "neg_log_loss"]
    for name, row in table.iterrows():
        score = scores[name]
        expected = [score.value, *score.interval(0.9), score.noise_std, score.sampling_std]
        assert row.tolist() == expected
    several = evaluate(model, X, y, names, by=0, subgroups={"all": None, "one": [X[0, 0]]})
    table = several.to_frame(of="population")
    assert list(table.index) == [(one, name) for one in ("all", "one") for name in names]
    low, high = several["all"]["accuracy"].interval(of="population")
    assert table.loc[("all", "accuracy"), ["low", "high"]].tolist() == [low, high]


DOMAINS = {
    "mean_gamma_deviance": (0.0, {}),
    "neg_mean_poisson_deviance": (-1.0, {}),
    "d2_tweedie": (0.0, {"power": 2.0}),
}


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("kind", ["rows", "groups", "partitions", "search", "folds"])
def test_targets_without_a_deviance_are_refused_before_the_charge(name, kind):
    """As metrics of scikit-learn and fits of such models do, although targets are clipped."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = rng.poisson(3, 200) + 1.0
    wrong, given = DOMAINS[name]
    model = skdp.DPTweedieRegressor(**given) if given else skdp.DPRidge()
    fitted, bad = model.fit(X, y), np.where(np.arange(200) == 7, wrong, y)
    within = {"target_range": (0.0, 20.0)}
    run = {
        "rows": lambda y: evaluate(fitted, X, y, name, **within),
        "groups": lambda y: evaluate(fitted, X, y, name, groups=np.arange(200) // 2, **within),
        "partitions": lambda y: evaluate(fitted, skdp.data.Chunks(X, y, 90), None, name, **within),
        "search": lambda y: DPSearchCV(
            model, {}, scoring=f"neg_{name}".replace("neg_neg", "neg").replace("neg_d2", "d2"),
            n_candidates=2, epsilon=9.0, **within,
        ).fit(X, y),
        "folds": lambda y: dp_cross_validate(model, X, y, name, cv=2, **within),
    }[kind]  # fmt: skip
    with skdp.PrivacyBudget(99.0, 1e-6) as budget:
        with pytest.raises(ValueError, match=r"y must be .* everywhere.*Nothing was released"):
            run(bad)
        assert budget.spent == 0
        run(y)
        assert budget.spent > 0


def test_root_mean_squared_error_is_the_root_of_the_released_mean(regression):
    X, y = regression
    model, y = LinearRegression().fit(X, y), np.roll(y, 1)
    options = {"target_range": (-5.0, 7.0), "epsilon": 30.0}
    names = ["mean_squared_error", "root_mean_squared_error", "neg_root_mean_squared_error"]
    scores = seeded(model, X, y, names, **options)
    alone = seeded(model, X, y, names[0], **options)
    assert str(scores.privacy_) == str(alone.privacy_)
    square, root, negative = scores.values()
    assert root == math.sqrt(square) == -negative
    assert root.interval() == tuple(math.sqrt(end) for end in square.interval())
    assert negative.interval()[0] == -root.interval()[1]
    for std in ("noise_std", "sampling_std"):
        assert getattr(root, std) == pytest.approx(getattr(square, std) / (2 * root))
    right = plain.root_mean_squared_error(y, model.predict(X))
    precise = seeded(model, X, y, names[1], **options | {"epsilon": 1e9})
    assert precise[names[1]] == pytest.approx(right, rel=1e-4)
    shared = {"epsilon": 300.0, "cv": 2, "privacy": skdp.Privacy(noise=skdp.SeededNoise(0))}
    found = dp_cross_validate(skdp.DPRidge(), X, y, names[1:], target_range=(-5, 7), **shared)
    for name in names[1:]:
        assert found[name] == pytest.approx(np.mean([fold[name] for fold in found.folds]))
        low, high = found[name].interval()
        assert low < found[name] < high


@pytest.mark.parametrize("base", [0.0, -2.0, -4.0], ids=["balanced", "rare", "very rare"])
def test_average_precision(rng, base):
    X = rng.standard_normal((20_000, 3))
    y = (X @ [2.0, -1.0, 0.5] + rng.logistic(size=20_000) + base > 0).astype(int)
    model, X, y = LogisticRegression().fit(X[:10_000], y[:10_000]), X[10_000:], y[10_000:]
    right = plain.average_precision_score(y, model.predict_proba(X)[:, 1])
    name = "average_precision"
    assert seeded(model, X, y, name, epsilon=1e9)[name] == pytest.approx(right, abs=1e-3)
    # It is a function of the table from which the area under the ROC curve follows.
    prices = [
        str(seeded(model, X, y, one).privacy_) for one in (name, "roc_auc", [name, "roc_auc"])
    ]
    assert len(set(prices)) == 1
    scores = [seeded(model, X, y, name, seed, epsilon=2.0)[name] for seed in range(40)]
    intervals = [score.interval() for score in scores]
    assert sum(low <= right <= high for low, high in intervals) >= 35
    assert np.mean([high - low for low, high in intervals]) < 0.1


@pytest.mark.parametrize(
    "name", ["average_precision", "balanced_accuracy", "roc_auc", "recall", "accuracy", "log_loss"]
)
def test_a_score_that_noise_hides_is_nan(name, rng):
    """It is nan exactly where every value that it can have lies in its interval."""
    X = rng.standard_normal((300, 2))
    y = (np.arange(300) < 4).astype(int)  # few cases
    model = LogisticRegression().fit(X, y)
    for seed in range(10):
        for epsilon in (0.01, 0.3, 20.0):
            score = seeded(model, X, y, name, seed, epsilon=epsilon)[name]
            assert math.isnan(score) == (score.interval() == score.limits)
            assert math.isnan(score) == ("the noise hides this score" in str(score))


@pytest.mark.parametrize("make", [skdp.DPQuantileRegressor, QuantileRegressor])
def test_a_quantile_is_scored_by_its_pinball_loss(regression, make):
    X, y = regression
    model = make(quantile=0.9).fit(X, y)
    for given in (model, make_pipeline(FunctionTransformer(), model).fit(X, y)):
        scores = exact(given, X, y, None, target_range=(-20.0, 20.0))
        expected = -plain.mean_pinball_loss(y, given.predict(X), alpha=0.9)
        assert scores == {"neg_mean_pinball_loss": pytest.approx(expected, abs=1e-5)}


def test_the_score_of_a_quantile_is_that_of_its_loss(regression):
    X, y = regression
    model = skdp.DPQuantileRegressor(quantile=0.9, epsilon=20.0).fit(X, y)
    with pytest.warns(skdp.ExactScoreWarning):
        score = model.score(X, y)
    assert score == pytest.approx(plain.d2_pinball_score(y, model.predict(X), alpha=0.9))


def test_several_quantiles_of_one_fit(regression):
    X, y = regression
    quantiles = [0.1, 0.5, 0.9]
    model = skdp.DPQuantileRegressor(quantiles=quantiles, epsilon=20.0).fit(X, y)
    scores = exact(model, X, y, ["mean_pinball_loss", "neg_mean_pinball_loss"])
    ends = row_statistics.target_range(model, None)
    targets = np.clip(y, ends.low, ends.high)
    predicted = np.clip(model.predict(X), ends.low, ends.high)
    losses = [
        plain.mean_pinball_loss(targets, column, alpha=alpha)
        for alpha, column in zip(quantiles, predicted.T, strict=True)
    ]
    assert scores["mean_pinball_loss"] == pytest.approx(np.mean(losses), abs=1e-5)
    assert list(evaluate(model, X, y)) == ["neg_mean_pinball_loss"]
    with pytest.raises(ValueError, match="one score for all of them, 'mean_pinball_loss'"):
        evaluate(model, X, y, "r2")
