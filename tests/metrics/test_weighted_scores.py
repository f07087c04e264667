"""Scores of weighted rows: those of scikit-learn, in any unit of weights, for all kinds of rows."""

import numpy as np
import pytest
from sklearn import metrics as exact
from sklearn.linear_model import LinearRegression, LogisticRegression

from in_partitions import Pickled
from skdp import Privacy, SeededNoise
from skdp.metrics import evaluate
from skdp.metrics.requests import EXPLAINED, METRICS

N = 6_000
SCALES = [1e-6, 1.0, 1e6]
RANGE = (-9.0, 9.0)


def rows(kind):
    """Log-normal weights, a fifth of them 0; rows of large weights are predicted worse."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    weights = np.minimum(rng.lognormal(0.0, 1.0, N), 6.0) * (rng.uniform(size=N) < 0.8)
    noise = rng.normal(size=N) * (0.2 + 0.3 * np.minimum(weights, 4.0))
    y = np.clip(X @ [1.0, -1.0, 0.5] + noise, -8.0, 8.0)
    model = LinearRegression()
    if kind == "classifier":
        y, model = (y > 0).astype(int), LogisticRegression()
    return model.fit(X[:200], y[:200]), X, y, weights


def expected(model, X, y, weights, name):
    if "log_loss" in name:
        chances = model.predict_proba(X)[np.arange(len(y)), y.astype(int)]
        found = np.average(np.minimum(-np.log(chances), 6.0), weights=weights)
    elif name in RANKED:
        function = getattr(exact, f"{name}_score")
        found = function(y, model.predict_proba(X)[:, 1], sample_weight=weights)
    else:
        function = getattr(exact, f"{name}_score", None) or getattr(
            exact, name.removeprefix("neg_")
        )
        found = function(y, model.predict(X), sample_weight=weights)
    return -found if name.startswith("neg_") else found


RANKED = ("roc_auc", "average_precision")
NUMBERS = {
    "classifier": [name for name in METRICS["classifier"] if "curve" not in name],
    "regressor": ["r2", "mean_squared_error", "neg_mean_absolute_error", "mean_pinball_loss"],
}
kinds = pytest.mark.parametrize("kind", NUMBERS)
pytestmark = pytest.mark.filterwarnings("ignore:.*NOT private", "ignore:.*seed")


def scored(model, X, y, weights, metrics, epsilon=np.inf, seed=0, **options):
    terms = Privacy(noise=SeededNoise(seed))
    within = {"target_range": RANGE} if isinstance(model, LinearRegression) else {}
    given = {"sample_weight": weights, "privacy": terms, **within}
    return evaluate(model, X, y, metrics, epsilon=epsilon, **{**given, **options})


@kinds
@pytest.mark.parametrize("scale", SCALES)
def test_exact_scores_are_those_of_scikit_learn(kind, scale):
    model, X, y, weights = rows(kind)
    scores = scored(model, X, y, scale * weights, NUMBERS[kind])
    for name, score in scores.items():
        right = expected(model, X, y, scale * weights, name)
        rel = 4e-3 if name in RANKED else 1e-5  # ties of bins
        np.testing.assert_allclose(score.value, right, rtol=rel, err_msg=name)


@kinds
def test_noisy_scores_do_not_depend_on_the_unit(kind):
    model, X, y, weights = rows(kind)
    for scale in SCALES:
        for seed in range(3):
            scores = scored(model, X, y, scale * weights, NUMBERS[kind], 50.0, seed)
            for name, score in scores.items():
                right = expected(model, X, y, scale * weights, name)
                # Weights beyond the scale are clipped.
                near = 0.03 * np.abs(right) + 4 * score.noise_std
                assert (np.abs(score.value - right) <= near).all(), (name, scale)


@kinds
def test_rows_of_weight_0_and_equal_weights(kind):
    model, X, y, weights = rows(kind)
    used = weights > 0
    zeros = scored(model, X, y, 7.0 * used, NUMBERS[kind])
    plain = scored(model, X[used], y[used], None, NUMBERS[kind])
    for name in NUMBERS[kind]:
        np.testing.assert_allclose(zeros[name].value, plain[name].value, rtol=2e-3, err_msg=name)
        ratio = zeros[name].sampling_std / plain[name].sampling_std
        assert ratio == pytest.approx(1.0, rel=0.03), name


@kinds
def test_intervals_of_weighted_scores_cover(kind):
    """The exact score of the rows is in 95 % of the intervals; of 80, at least 68."""
    model, X, y, weights = rows(kind)
    X, y, weights = X[:1500], y[:1500], np.minimum(weights[:1500], 3.0)
    hits = dict.fromkeys(
        ("accuracy", "neg_log_loss", "recall")
        if kind == "classifier"
        else ("r2", "mean_squared_error"),
        0,
    )
    for seed in range(80):
        privacy = Privacy(noise=SeededNoise(seed), max_weight=3.0)
        scores = scored(model, X, y, weights, list(hits), 0.5, privacy=privacy)
        for name in hits:
            low, high = scores[name].interval()
            hits[name] += low <= expected(model, X, y, weights, name) <= high
    assert min(hits.values()) >= 68, hits


@kinds
def test_errors_of_sampling_cover_the_draw_of_weighted_rows(kind):
    """Standard errors are those of draws of rows: within a fifth, and for R2 exactly by weights."""
    model, X, y, weights = rows(kind)
    name = "accuracy" if kind == "classifier" else "r2"
    told = scored(model, X[:2000], y[:2000], weights[:2000], name)[name].sampling_std
    rng = np.random.default_rng(1)
    draws = [rng.integers(0, 2000, 2000) for _ in range(300)]
    spread = np.std([expected(model, X[one], y[one], weights[one], name) for one in draws])
    assert told == pytest.approx(spread, rel=0.2)


@kinds
def test_noisy_scores_say_where_weights_were_clipped(kind):
    model, X, y, weights = rows(kind)
    terms = Privacy(noise=SeededNoise(0), max_weight=2.0)
    for score in scored(model, X, y, weights, NUMBERS[kind], 1.0, privacy=terms).values():
        assert "weights clipped to 2;" in str(score)
        assert ("targets clipped to [-9, 9] and" in str(score)) == (kind == "regressor")
    assert "weights clipped" not in str(scored(model, X, y, weights, NUMBERS[kind]))


@kinds
def test_groups_count_with_the_mean_of_their_weights(kind):
    model, X, y, weights = rows(kind)
    person = np.arange(N) // 3
    found = scored(model, X, y, weights, NUMBERS[kind], groups=person)
    for name in NUMBERS[kind]:
        right = expected(model, X, y, weights / 3, name)
        rel = 1e-2 if name == "average_precision" else 2e-3  # its bins have few rows
        np.testing.assert_allclose(found[name].value, right, rtol=rel, err_msg=name)


@kinds
@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
def test_partitions_are_scored_as_rows_in_memory(kind, grouped):
    model, X, y, weights = rows(kind)
    person = np.arange(N) // 3
    groups = person if grouped else None
    in_memory = scored(model, X, y, weights, NUMBERS[kind], groups=groups)
    halves = [slice(0, 3000), slice(3000, None)]
    beside = ("sample_weight", "groups") if grouped else ("sample_weight",)
    parts = [(X[one], y[one], weights[one], *([person[one]] if grouped else [])) for one in halves]
    found = scored(model, Pickled(*parts, beside=beside), None, None, NUMBERS[kind])
    for name in NUMBERS[kind]:
        right = in_memory[name].value
        np.testing.assert_allclose(found[name].value, right, rtol=1e-9, err_msg=name)


@kinds
def test_subgroups_of_weighted_rows(kind):
    model, X, y, weights = rows(kind)
    sex = np.where(X[:, 1] > 0.3, "f", "m")
    names = [name for name in NUMBERS[kind] if name not in (*EXPLAINED, *RANKED)]
    found = scored(model, X, y, weights, names, by=sex, subgroups=["f", "m"])
    for label in ("f", "m"):
        chosen = sex == label
        for name in names:
            right = expected(model, X[chosen], y[chosen], weights[chosen], name)
            np.testing.assert_allclose(found[label][name].value, right, rtol=1e-5, err_msg=name)


@kinds
def test_bad_weights_are_refused(kind):
    model, X, y, weights = rows(kind)
    for bad in (-weights, np.zeros(N), weights[:-1], np.full(N, np.nan)):
        with pytest.raises(ValueError, match=r"[Ww]eight|numbers of samples"):
            scored(model, X, y, bad, None)


@pytest.mark.parametrize("size", [1e-300, 1e300, 1.7e308])
def test_targets_near_the_ends_of_float64(size):
    """Squares of errors of such targets are no floats; other scores are scored in their unit."""
    model, X, y, weights = rows("regressor")
    model.coef_, model.intercept_ = model.coef_ * size / 16, model.intercept_ * size / 16
    y = y * (size / 16)
    within = (-size / 2, size / 2)
    for given in (None, weights):
        scores = scored(
            model, X, y, given, ["r2", "mean_absolute_error"], 50.0, target_range=within
        )
        right = np.average(np.abs(y / size - model.predict(X) / size), weights=given)
        assert scores["mean_absolute_error"].value / size == pytest.approx(right, rel=0.05)
        assert np.isfinite(scores["mean_absolute_error"].interval(of="population")).all()
        assert scores["r2"].value > 0.5
        with pytest.raises(ValueError, match="squares of targets"):
            scored(model, X, y, given, "mean_squared_error", target_range=within)
