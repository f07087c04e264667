"""Reports on weights and rare labels, on large tables, and on statistics."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
from scipy import sparse
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import f1_score, r2_score, recall_score

from benchmarks.methods.simple_regression import NoisyStats, TheilSen
from benchmarks.registry import Split
from benchmarks.reports.verdicts import (
    SLOPES,
    at_least,
    classes_of,
    classifier,
    holds,
    near,
    r2_of,
    refused,
    report,
    rows,
    warned,
)
from skdp import (
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPPoissonRegressor,
    DPRidge,
    Privacy,
    PrivacyBudget,
    PrivacyWarning,
    PublicRange,
    SeededNoise,
)
from skdp.metrics import evaluate


def rare(seed=0, n=50_000):
    """One per cent of positives."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    margin = X @ [1.2, -1, 0.6, 0, 0, 0.3] - 5.8
    return X, (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int)


def strata(n=40_000, seed=0):
    """Two strata of equal numbers of rows: the second stands for a tenth of the people."""
    rng = np.random.default_rng(seed)
    second, x = rng.random(n) < 0.5, rng.standard_normal(n)
    y = np.where(second, 3.0, 1.0) * x + rng.standard_normal(n)
    chance = 1 / (1 + np.exp(-np.where(second, 2.0, 0.5) * x))
    return x[:, None], y, (rng.random(n) < chance).astype(int), np.where(second, 0.2, 1.8)


@report("weights", "scikit-learn #10352; LightGBM #2519", "weights / 1000, and of sum 1")
def small_weights():
    X, y = rows()
    _, labels = classes_of()
    thin = np.full(len(y), 0.001)
    right = LogisticRegression().fit(X, labels).score(X, labels)
    model = classifier().fit(X, labels, sample_weight=thin)
    return [
        near(model.score(X, labels), right, 0.01),
        near(r2_of(X, y, sample_weight=thin / thin.sum()), 0.84, 0.02),
    ]


@report("weights", "scikit-learn #27455, #5422", "class_weight {0: f, 1: 99 f}")
def scale_of_class_weight():
    (X, y), (X_new, y_new) = rare(0), rare(1)
    right = LogisticRegression(class_weight={0: 1, 1: 99}).fit(X, y).predict(X_new)
    found = []
    for factor in (0.01, 1, 50):
        weight = {0: factor, 1: 99 * factor}
        for make in (classifier, DPLinearSVC):
            model = make(epsilon=10.0, classes=[0, 1], class_weight=weight)
            found.append(model.fit(X, y).predict(X_new))
    return [
        near([recall_score(y_new, one) for one in found], recall_score(y_new, right), 0.05),
        near([f1_score(y_new, one) for one in found], f1_score(y_new, right), 0.03),
    ]


@report("weights", "scikit-learn #21305", "repeated rows, given as counts from 1 to 199")
def counts_as_weights():
    rng = np.random.default_rng(0)
    counts, x = rng.integers(1, 200, 20_000), rng.standard_normal(20_000)
    y = (rng.random(20_000) < 1 / (1 + np.exp(-(0.5 + counts / 100) * x))).astype(int)
    right = LogisticRegression(C=np.inf).fit(x[:, None], y, sample_weight=counts)
    found = [
        classifier(10.0, C=np.inf).fit(x[:, None], y, sample_weight=counts).coef_[0, 0]
        for _ in range(3)
    ]
    return near(found, right.coef_[0, 0], 0.05 * right.coef_[0, 0])


@report("weights", "notebooks on ACS PUMS; guides to survey weights", "means from 1e-4 to 30,000")
def survey_weights():
    X, y, labels, weights = strata()
    units = (1e-4, 1e-2, 1, 10, 100, 30_000)
    slopes = [
        DPLinearRegression(epsilon=10).fit(X, y, sample_weight=weights * unit).coef_[0]
        for unit in units
    ]
    logits = [
        classifier(10.0).fit(X, labels, sample_weight=weights * unit).coef_[0, 0] for unit in units
    ]
    right = LogisticRegression(C=np.inf).fit(X, labels, sample_weight=weights).coef_[0, 0]
    slope = LinearRegression().fit(X, y, sample_weight=weights).coef_[0]
    return [near(slopes, slope, 0.05), near(logits, right, 0.05)]


@report("weights", "scikit-learn #18059; statsmodels #2175, #1486, #175", "exposure in four units")
def units_of_exposure():
    rng = np.random.default_rng(0)
    age, years = rng.uniform(18, 80, (40_000, 1)), rng.uniform(0.1, 1, 40_000)
    claims = rng.poisson(years * np.exp(-1 - 0.03 * (age[:, 0] - 40)))
    found = []
    for unit in (1, 12, 365, 0.01):
        exposure = unit * years
        model = DPPoissonRegressor(epsilon=5).fit(age, claims / exposure, sample_weight=exposure)
        found.append((model.predict(age) * exposure).sum() / claims.sum())
    right = PoissonRegressor(alpha=0).fit(age, claims / years, sample_weight=years)
    return near(found, (right.predict(age) * years).sum() / claims.sum(), 0.05)


@report("weights", "scikit-learn #26164, #16298, #4297; abess #458", "up to 80 % of weights are 0")
def zero_weights():
    X, y = rows(6000)
    new = rows(4000, 1)
    found = []
    for share in (0.2, 0.37, 0.5, 0.8):
        weights = (np.arange(6000) >= share * 6000).astype(float)
        kept = weights > 0
        for model in (DPRidge(epsilon=2), DPLasso(alpha=0.01, epsilon=2)):
            with_zeros = r2_of(X, y, model, score_on=new, sample_weight=weights)
            without = r2_of(X[kept], y[kept], model, score_on=new)
            found.append(with_zeros[0] - without[0])
    return near(found, 0, 0.05)


@report("weights", "scikit-learn #34673", "bagging, which makes weights of 0")
def zeros_of_bagging():
    X, y = rows(6000)
    new, labels = rows(4000, 1), classes_of(6000)[1]
    halves = BaggingRegressor(DPRidge(epsilon=5), 5, bootstrap=False, max_samples=0.5)
    weights = (np.arange(6000) >= 100).astype(float)
    bags = BaggingClassifier(classifier(5.0), 5).fit(X, labels, sample_weight=weights)
    return [
        near(r2_of(X, y, halves, 3, score_on=new), 0.84, 0.03),
        near(bags.score(X, labels), LogisticRegression().fit(X, labels).score(X, labels), 0.02),
    ]


@report("weights", "scikit-learn #32277", "all weights are 0")
def no_weight():
    X, y = rows(2000)
    return refused(lambda: DPRidge().fit(X, y, sample_weight=np.zeros(2000)), "weight")


@report("weights", "scikit-learn #5150", "a declared class without rows")
def class_without_rows():
    X, y = classes_of()
    model = classifier(classes=[0, 1, 2]).fit(X, y)
    return near(model.predict_proba(X)[:, 2].mean(), 0, 0.02)


@report("weights", "scikit-learn #5422, #6795", 'class_weight="balanced"')
def balanced():
    X, y = classes_of(2000)
    model = classifier(class_weight="balanced")
    return refused(lambda: model.fit(X, y), "private", "dict")


@report("weights", "opacus #198, #600, #813", "resampling before the fit")
def resampling():
    from imblearn.over_sampling import SMOTE, RandomOverSampler
    from imblearn.pipeline import make_pipeline
    from imblearn.under_sampling import RandomUnderSampler

    X, _ = rows(5000)
    y = (X @ SLOPES > 4.5).astype(int)

    def fit(sampler):
        with PrivacyBudget(5.0, 1e-6):
            make_pipeline(sampler, classifier()).fit(X, y)

    samplers = RandomOverSampler(), SMOTE(), RandomUnderSampler()
    return [warned(lambda one=one: fit(one), PrivacyWarning) for one in samplers]


# ---------------------------------------------------------------------------- large tables


@report("scale", "scikit-learn #21067", "20,000 x 10,000 sparse ones")
def large_sparse():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 10_000, 20_000) * (rng.random(20_000) < 0.1)
    X = sparse.csr_matrix((np.ones(20_000), (np.arange(20_000), codes)), shape=(20_000, 10_000))
    y = (codes == 0).astype(int)
    return at_least(classifier().fit(X, y).score(X, y), y.mean() - 0.02)


@report("scale", "100 classes", "50,000 x 20 rows of 100 classes")
def hundred_classes(n_classes=100, n=50_000):
    rng = np.random.default_rng(0)
    centres = 1.2 * rng.standard_normal((n_classes, 20))
    y = rng.integers(0, n_classes, n)
    X = centres[y] + rng.standard_normal((n, 20))
    right = LogisticRegression(max_iter=50).fit(X[:10_000], y[:10_000])
    model = classifier(classes=range(n_classes)).fit(X, y)
    return at_least(model.score(X, y), right.score(X, y) - 0.05)


@report("scale", "scikit-learn #8769", "float32 rows are copied to float64; 200,000 x 50")
def memory_of_float32():
    X = np.random.default_rng(0).standard_normal((200_000, 50), dtype=np.float32)
    y = X[:, 0] + 1.0
    tracemalloc.start()
    DPRidge().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1] / X.nbytes
    tracemalloc.stop()
    return holds(peak < 2, "peak below twice the size of the rows", f"{peak:.2f} times")


# ---------------------------------------------------------------------------- statistics


@report("statistics", "Opportunity Insights; Alabi et al. 2022", "30 to 1,000 families, delta 0")
def small_regressions():
    level, places = 0, np.array([[0.25], [0.75]])
    for n, epsilon in itertools.product((30, 100, 300, 1000), (1, 4, 8)):
        errors = []
        for seed in range(30):
            rng = np.random.default_rng([seed, n])
            x = rng.random(n)
            y = np.clip(0.35 + 0.3 * x + 0.25 * rng.standard_normal(n), 0, 1)
            right = np.polyval(np.polyfit(x, y, 1), places[:, 0])
            split = Split(x[:, None], places, y, right, False)
            scaling, noise = PublicRange(0, 1, target=(0, 1)), SeededNoise(seed)
            model = DPLinearRegression(
                epsilon=epsilon, delta=0, scaling=scaling, privacy=Privacy(noise=noise)
            )
            rivals = (method(split, epsilon, 0.0, seed) for method in (NoisyStats, TheilSen))
            fits = (one.fit(split.X_train, y).predict(places) for one in (model, *rivals))
            errors.append([np.abs(found - right).mean() for found in fits])
        gaps = np.array(errors)[:, :1] - np.array(errors)[:, 1:]
        level += all(gaps.mean(axis=0) <= 2 * gaps.std(axis=0, ddof=1) / len(gaps) ** 0.5)
    return holds(level >= 10, "behind neither method of the paper in 10 of 12", f"{level} of 12")


@report("statistics", "Mincer's equation", "a column and its square")
def collinear_powers():
    rng = np.random.default_rng(0)
    years, school = rng.uniform(0, 45, 20_000), rng.integers(6, 20, 20_000)
    X = np.column_stack([school, years, years**2])
    y = X @ [0.1, 0.08, -0.001] + 0.5 * rng.standard_normal(20_000)
    right = r2_score(y, LinearRegression().fit(X, y).predict(X))
    return near(r2_of(X, y, n_fits=3), right, 0.02)


@report("statistics", "linearmodels #191, #206, #276, #318, #543", "absorbed and equal columns")
def columns_without_information():
    X, y = rows()
    groups = np.repeat(np.arange(2000), 10)
    absorbed = np.column_stack([X, groups % 2])
    within = DPLinearRegression(fixed_effects=True).fit(absorbed, y, groups=groups)
    dummies = np.eye(3)[np.random.default_rng(1).integers(0, 3, len(y))]
    twice = DPRidge().fit(np.column_stack([X, X[:, 0]]), y)
    every = DPLinearRegression().fit(np.column_stack([X, dummies]), y)
    single = DPLinearRegression(fixed_effects=True).fit(X, y, groups=np.arange(len(y)))
    return [
        near(within.coef_, [*SLOPES, 0], 0.2),
        near(twice.coef_, [1, -1, 0.5, 1], 0.5),
        near(every.coef_, [*SLOPES, 0, 0, 0], 0.5),
        near(single.coef_, 0, 0.5),
    ]


@report("statistics", "add_constant of statsmodels", "constant columns of 1 and of 1e6")
def constant_columns():
    X, y = rows()
    table = np.column_stack([X, np.ones(len(y)), np.full(len(y), 1e6)])
    model = DPRidge().fit(table, y)
    return [near(model.coef_[:3], SLOPES, 0.1), near(model.coef_[3:], 0, 0)]


@report("statistics", "statsmodels: perfect separation", "y = x > 0")
def separation():
    x = np.random.default_rng(0).standard_normal((20_000, 1))
    y = (x[:, 0] > 0).astype(int)
    model = classifier().fit(x, y)
    finite = np.isfinite(model.coef_).all()
    return [holds(finite, "finite", model.coef_), at_least(model.score(x, y), 0.98)]


@report("statistics", "a first day: scores of skewed targets", "R2 of pure noise, private")
def score_of_skewed_noise():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 3))
    found, mean_errors = [], []
    for y in (np.exp(0.8 * rng.standard_normal(40_000)), rng.exponential(1, 40_000)):
        model = DPPoissonRegressor().fit(X, y)
        scores = evaluate(model, X, y, ["r2", "mean_squared_error"], epsilon=1.0, delta=1e-6)
        low, high = scores["r2"].interval(0.95)
        found += [max(low, 0), min(high, 0)]  # both 0 if the interval contains 0
        exact = np.mean((model.predict(X) - y) ** 2)
        mean_errors.append(scores["mean_squared_error"].value / exact)
    return [near(found, 0, 0.02), near(mean_errors, 1, 0.15)]
