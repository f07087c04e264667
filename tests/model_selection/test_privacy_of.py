"""The price of plain searches: one table of figures, what they count, and what has no price."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skdp
from composition import DELTA, together
from skdp.model_selection.prices import memberships_of
from skdp.solvers import GradientDescent, ShuffledSGD

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning"),
]
RIDGE = partial(skdp.DPRidge, scaling="none", solver="gd", max_iter=5)
LOGISTIC = partial(skdp.DPLogisticRegression, classes=[0, 1], max_iter=5)
GRID = {"alpha": [0.1, 1.0], "epsilon": [0.1, 0.4]}
CS = {"C": [0.1, 1.0, 10.0]}
ALPHAS = {"alpha": [0.1, 1.0]}
SHAPE = {"n_samples": 400, "n_features": 5}
SCALED = make_pipeline(skdp.DPStandardScaler(epsilon=0.7), RIDGE())
READING = make_pipeline(StandardScaler(), FunctionTransformer(), RIDGE())
OF_STEPS = {"resource": "max_iter", "max_resources": 20, "random_state": 0}
BATCHES = GradientDescent(batch_size=30, sampling="poisson", max_iter=4)
BLOCKS = ShuffledSGD(batch_size=100)
UNSCALED = partial(skdp.DPRidge, scaling="none")

# ---------------------------------------------------------------- one table (tool, epsilon)

# Of 400 rows and 5 columns.
PRICES = {
    "grid": (GridSearchCV(RIDGE(), GRID), 1.3482419421748904),
    "predefined": (
        GridSearchCV(RIDGE(), {"alpha": [1.0]}, cv=PredefinedSplit(np.arange(400) % 7)),
        2.8898815819986874,
    ),
    "no refit": (
        GridSearchCV(RIDGE(), [{"alpha": [0.1]}, {"max_iter": [1, 9]}], cv=2, refit=False),
        1.8137839562338451,
    ),
    # The last rows are in no training.
    "time series": (
        GridSearchCV(RIDGE(), GRID, cv=TimeSeriesSplit(3), refit=False),
        together(*6 * [0.1, 0.4]),
    ),
    "several scores": (
        GridSearchCV(RIDGE(), GRID, cv=2, scoring=["r2", "neg_mean_squared_error"], refit="r2"),
        together(*2 * [0.1, 0.4], 0.4),
    ),
    "private scaler": (
        GridSearchCV(SCALED, {"dpridge__alpha": [0.1, 1.0]}, cv=4),
        3.642658953009456,
    ),
    "scaler": (GridSearchCV(READING, {"dpridge__alpha": [0.1, 1.0]}, cv=4), 2.8898815819986874),
    "classifier": (GridSearchCV(LOGISTIC(), CS, cv=4), 3.5247099758556826),
    "declared classes": (
        GridSearchCV(LOGISTIC(classes=[0, 1, 2]), {"C": [0.1]}, cv=KFold(2), refit=False),
        1.0,
    ),
    "default": (GridSearchCV(skdp.DPRidge(), ALPHAS), 3.323289511264411),
    "random": (
        RandomizedSearchCV(RIDGE(), GRID, n_iter=3, cv=4, random_state=3),
        1.156150656820418,
    ),
    "halving": (HalvingGridSearchCV(RIDGE(), GRID, random_state=0), 1.9093935196518321),
    "halving, eliminating": (
        HalvingGridSearchCV(RIDGE(), GRID, cv=3, min_resources=30, aggressive_elimination=True),
        1.3482419421748904,
    ),
    "halving, smallest": (
        HalvingGridSearchCV(LOGISTIC(), CS, cv=3, min_resources="smallest", factor=2),
        3.7179384957161603,
    ),
    "halving of steps": (
        HalvingGridSearchCV(RIDGE(), GRID, cv=2, refit=False, **OF_STEPS),
        0.8739983940764671,
    ),
    # All three may be the one that went on to the second round.
    "halving of budgets": (
        HalvingGridSearchCV(
            RIDGE(), {"epsilon": [0.1, 0.2, 1.0]}, cv=2, factor=3, min_resources=100
        ),
        together(0.1, 0.2, 1.0, 0.1, 0.2, 1.0, 1.0),
    ),
    "halving, random": (
        HalvingRandomSearchCV(RIDGE(), GRID, cv=3, random_state=1),
        1.3482419421748904,
    ),
    "batches": (GridSearchCV(UNSCALED(solver=BATCHES), ALPHAS, cv=KFold(3)), 1.7275677475092204),
    "blocks": (GridSearchCV(UNSCALED(solver=BLOCKS), ALPHAS, cv=2), together(1.0, 1.0, 1.0)),
}


@pytest.mark.parametrize("name", PRICES)
def test_price_of_a_search(name):
    search, expected = PRICES[name]
    parameters = {name: str(value) for name, value in search.get_params().items()}
    assert skdp.privacy_of(search, **SHAPE).epsilon == pytest.approx(expected, rel=1e-9)
    assert {name: str(value) for name, value in search.get_params().items()} == parameters
    assert not hasattr(search, "cv_results_")


# Scores can choose nothing that costs more than what they chose.
EXACT = {
    "random": clone(PRICES["random"][0]).set_params(refit=False),
    "repeated": GridSearchCV(RIDGE(), ALPHAS, cv=RepeatedKFold(n_splits=3, n_repeats=2)),
    "halving, one budget": HalvingGridSearchCV(RIDGE(), ALPHAS, cv=3, factor=2, random_state=0),
    "halving of steps": HalvingGridSearchCV(
        RIDGE(), ALPHAS, cv=2, factor=2, refit=False, **OF_STEPS
    ),
}
CHOSEN = ["halving", "halving, random", "halving, eliminating", "halving of budgets"]


@pytest.mark.parametrize("name", [*EXACT, *CHOSEN])
def test_price_of_a_search_is_that_of_its_fits_on_one_record(name, regression):
    search, (X, y), fits = clone(EXACT.get(name) or PRICES[name][0]), regression, []
    price = skdp.privacy_of(search, **SHAPE)
    fit = skdp.DPRidge.fit

    def counted(self, X, y):
        fits.append((set(X[:, 0]), fit(self, X, y).privacy_.epsilon))
        return self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skdp.DPRidge, "fit", counted)
        search.fit(X, y)
    met = {tuple(epsilon for rows, epsilon in fits if value in rows) for value in X[:, 0]}
    largest = max(together(*epsilons) for epsilons in met)
    assert largest <= price.epsilon * (1 + 1e-6)
    if name in EXACT:
        assert largest == pytest.approx(price.epsilon, rel=1e-6)
    n_candidates = len(search.cv_results_["params"])
    assert f"{n_candidates} candidates are trained on {search.n_splits_} splits" in str(price)
    assert skdp.privacy_of(search, **SHAPE) == price


@pytest.mark.parametrize("name", ["grid", "scaler", "private scaler", "classifier", "halving"])
def test_the_total_after_the_fit_is_the_price_before(name, regression, classification):
    search = clone(PRICES[name][0])
    X, y = classification if name == "classifier" else regression
    price = skdp.privacy_of(search, **SHAPE)
    assert skdp.total_privacy(search.fit(X, y)) == price
    assert skdp.total_privacy(search, search) == skdp.total_privacy(price, price)
    search.refit = False
    with pytest.raises(ValueError, match=r"total_privacy: .*has not refitted.*privacy_of"):
        skdp.total_privacy(clone(search).fit(X, y))


def test_a_search_that_made_other_fits_than_expected_has_no_total(classification):
    X, y = classification
    of_four = LOGISTIC(classes=[0, 1, 2, 3])
    halving = HalvingGridSearchCV(of_four, CS, cv=KFold(2), min_resources="smallest", factor=2)
    # Two classes do not occur, so the search begins with fewer rows and makes one round more.
    grid, weights = GridSearchCV(LOGISTIC(), {"C": [0.1, 1.0]}, cv=KFold(3)), np.ones(len(y))
    changed = [clone(grid).fit(X, y) for _ in range(4)]
    for search, (name, value) in zip(
        changed,
        {"param_grid": {"C": [0.1]}, "cv": 2, "refit": False, "estimator__epsilon": 0.1}.items(),
        strict=True,
    ):
        search.set_params(**{name: value})
    weighted = clone(grid).fit(X, y, sample_weight=weights)
    for search in (halving.fit(X[:30], y[:30]), weighted, *changed):
        with pytest.raises(ValueError, match=r"fits that are expected.*PrivacyBudget"):
            skdp.total_privacy(search)


def test_every_private_step_is_counted_or_refused():
    """Of two folds a record is in one fit, whose steps compose as those of `total_privacy`."""

    def price(first):
        search = GridSearchCV(make_pipeline(first, RIDGE()), {}, cv=2, refit=False)
        return skdp.privacy_of(search, **SHAPE).epsilon

    scaler = skdp.DPStandardScaler()
    both = skdp.total_privacy(scaler.plan(200, 5), RIDGE().plan(200, 5), delta=1e-6)
    assert price(scaler) == pytest.approx(both.epsilon, rel=1e-9)
    free = skdp.DPTabularPreprocessor()
    for first in (free, make_column_transformer((free, [0])), FrozenEstimator(scaler)):
        assert price(first) == price("passthrough")
    for hidden in (
        make_union(skdp.DPStandardScaler()),
        make_column_transformer((skdp.DPStandardScaler(), [0])),
    ):
        with pytest.raises(ValueError, match="that spend budget, which have to be steps"):
            price(hidden)


def test_price_of_groups():
    search = GridSearchCV(RIDGE(), ALPHAS, cv=GroupKFold(4, shuffle=True))
    price = skdp.privacy_of(search, n_groups=12, n_features=5)
    assert (price.unit, price.n_groups) == ("group", None)
    assert price.epsilon == pytest.approx(2.8898815819986874, rel=1e-9)


def test_a_budget_counts_all_trainings(regression):
    """A budget does not know the folds, so that it counts every training of a record."""
    search = GridSearchCV(RIDGE(), GRID, cv=4)
    price = skdp.privacy_of(search, **SHAPE)
    with skdp.PrivacyBudget(99.0, DELTA) as budget:
        search.fit(*regression)
    assert budget.n_fits == 4 * search.n_splits_ + 1
    # Scores may choose the cheaper candidate for the refit; the price is of the other.
    expected = together(*2 * 3 * [0.1, 0.4], 0.4)
    assert price.epsilon == pytest.approx(expected, rel=1e-6)
    assert budget.spent > price.epsilon


def test_statement_of_a_search(regression, classification):
    price = skdp.privacy_of(GridSearchCV(RIDGE(), {"alpha": [0.1, 1.0, 9.0]}, cv=4), **SHAPE)
    assert (price.delta, price.adjacency, price.accountant) == (DELTA, "zero_out", "gdp")
    text = " ".join(price.assumptions)
    for said in (
        "scores are NOT private", "best_params_", "refit on all rows", "n = 400", "n = 300",
        "3 candidates are trained on 4 splits each. A record takes part in at most 3",
    ):  # fmt: skip
        assert said in text
    assert "There was no refit" in str(skdp.privacy_of(PRICES["no refit"][0], **SHAPE))
    assert "Later rounds are counted as" in str(skdp.privacy_of(PRICES["halving"][0], **SHAPE))
    text = str(skdp.privacy_of(PRICES["scaler"][0], **SHAPE))
    assert "fitted on the rows: StandardScaler in 'standardscaler'. That is NOT" in text
    assert "DPStandardScaler" not in str(skdp.privacy_of(PRICES["private scaler"][0], **SHAPE))
    with pytest.warns(skdp.PrivacyWarning, match=r"looking at the labels \(StratifiedKFold\)"):
        skdp.privacy_of(PRICES["classifier"][0], **SHAPE)
    seeded = RIDGE(privacy=skdp.Privacy(noise=skdp.SeededNoise(0)))
    with pytest.warns(skdp.PrivacyWarning, match="does NOT hold for them"):
        price = skdp.privacy_of(GridSearchCV(seeded, ALPHAS, cv=2), **SHAPE)
    assert price.noise_source == "seeded"


# ---------------------------------------------------------------- which trainings a record is in


@pytest.mark.parametrize(
    ("splitter", "expected"),
    [
        (KFold(5), [{320: 4}]),
        (KFold(5, shuffle=True), [{320: 4}]),
        (StratifiedKFold(5), [{320: 4}]),
        (KFold(3), [{266: 1, 267: 1}, {267: 2}]),
        (StratifiedKFold(3, shuffle=True), [{266: 1, 267: 1}, {267: 2}]),
        (RepeatedKFold(n_splits=4, n_repeats=3), [{300: 9}]),
        (RepeatedStratifiedKFold(n_splits=4, n_repeats=2), [{300: 6}]),
        (
            RepeatedKFold(n_splits=3, n_repeats=2),
            [{266: 2, 267: 2}, {266: 1, 267: 3}, {267: 4}],
        ),
        (LeaveOneOut(), [{399: 399}]),
        (TimeSeriesSplit(3), [{100: 1, 200: 1, 300: 1}]),
        (PredefinedSplit([-1] * 200 + [0] * 100 + [1] * 100), [{300: 2}]),
        (ShuffleSplit(6, test_size=0.5), [{200: 6}]),
        (StratifiedShuffleSplit(6, test_size=0.25, random_state=0), [{300: 6}]),
    ],
    ids=str,
)
def test_memberships(splitter, expected):
    found = memberships_of(splitter, 400)
    assert all(Counter(membership) in found for membership in expected)
    assert all(any(membership <= Counter(most) for most in expected) for membership in found)


def test_memberships_agree_with_the_splits(rng):
    """Against counting, on labels that the bound does not know."""
    y = rng.integers(0, 3, 50)
    for splitter in (
        KFold(7, shuffle=True),
        StratifiedKFold(4),
        StratifiedKFold(4, shuffle=True),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2),
        ShuffleSplit(5),
        StratifiedShuffleSplit(5),
        TimeSeriesSplit(4),
    ):
        times = [Counter() for _ in range(50)]
        for train, _ in splitter.split(np.zeros((50, 1)), y):
            for row in train:
                times[row][len(train)] += 1
        bound = memberships_of(splitter, 50)
        assert all(any(membership <= other for other in bound) for membership in times), splitter


@pytest.mark.parametrize(("batch_size", "max_iter"), [(5, 20), (1, 5)])
def test_the_refit_that_makes_the_total_most_expensive_is_counted(batch_size, max_iter):
    """The candidate that is most expensive by itself need not be so beside the others."""
    ridge = skdp.DPRidge(delta=1e-5, scaling=skdp.RowNorm(3, target=3), max_iter=max_iter)
    grid = [
        {"solver": ["auto"], "epsilon": [0.99]},
        {"solver": [("auto", {"batch_size": batch_size})], "epsilon": [1.0]},
    ]
    priced = skdp.privacy_of(GridSearchCV(ridge, grid, cv=KFold(2)), n_samples=300, n_features=2)
    models = [skdp.DPRidge(**{**ridge.get_params(deep=False), **one}) for one in (
        {name: values[0] for name, values in space.items()} for space in grid
    )]  # fmt: skip
    trained = [model.plan(150, 2) for model in models]
    for model in models:
        total = skdp.total_privacy(*trained, model.plan(300, 2), delta=1e-5)
        assert total.epsilon <= priced.epsilon * (1 + 1e-9)


# ---------------------------------------------------------------- refusals


class Own(GridSearchCV):
    """Which fits it makes is not known."""


NO_PRICE = [
    (RIDGE(), SHAPE, "known for GridSearchCV.*got DPRidge"),
    (GridSearchCV(RIDGE(), GRID), {"n_features": 9}, "n_samples must be at least 1.*got None"),
    (GridSearchCV(RIDGE(), GRID), {**SHAPE, "n_samples": 0}, "n_samples must be.*got 0"),
    (GridSearchCV(skdp.DPLogisticRegression(), CS, cv=KFold(2)), SHAPE, "n_outputs is not known"),
    (HalvingGridSearchCV(skdp.DPLogisticRegression(), CS), SHAPE, "n_outputs is not known"),
    (
        HalvingGridSearchCV(skdp.DPLogisticRegression(), CS, cv=KFold(2)),
        {**SHAPE, "n_outputs": "2"},
        "n_classes must be at least 2, got '2'",
    ),
    (RandomizedSearchCV(RIDGE(), GRID), SHAPE, "Set its random_state to an integer"),
    (
        HalvingRandomSearchCV(RIDGE(), GRID, random_state=np.random.RandomState(0)),
        SHAPE,
        "Set its random_state to an integer",
    ),
    (Own(RIDGE(), GRID), SHAPE, "got Own over DPRidge.*PrivacyBudget"),
    (GridSearchCV(RIDGE(), GRID, cv=GroupKFold(3)), SHAPE, "GroupKFold.*PredefinedSplit"),
    (
        GridSearchCV(RIDGE(), GRID, cv=iter([([0], [1])])),
        SHAPE,
        "_CVIterableWrapper.*PredefinedSplit",
    ),
    (
        GridSearchCV(LogisticRegression(), {"C": [1.0]}),
        SHAPE,
        "over LogisticRegression",
    ),
    (
        GridSearchCV(CalibratedClassifierCV(LOGISTIC()), {"ensemble": [True]}),
        SHAPE,
        "over CalibratedClassifierCV",
    ),
    (GridSearchCV(RIDGE(), {"momentum": [0.5, 7.0]}), SHAPE, "momentum"),
    (
        GridSearchCV(RIDGE(), {"privacy": [None, skdp.Privacy(adjacency="replace_one")]}),
        SHAPE,
        r"different adjacencies \(\['replace_one', 'zero_out'\]\)",
    ),
    (
        GridSearchCV(
            make_pipeline(
                skdp.DPStandardScaler(privacy=skdp.Privacy(adjacency="replace_one")), RIDGE()
            ),
            {"dpridge__alpha": [1.0]},
        ),
        SHAPE,
        "different adjacencies",
    ),
    (
        GridSearchCV(RIDGE(), GRID, cv=GroupKFold(4)),
        {"n_groups": 60, "n_features": 5},
        "number of groups.*PrivacyBudget",
    ),
    (
        HalvingGridSearchCV(RIDGE(), GRID, cv=GroupKFold(4, shuffle=True)),
        {"n_groups": 60, "n_features": 5},
        "resource='n_samples'",
    ),
]


@pytest.mark.parametrize(("search", "known", "message"), NO_PRICE)
def test_what_has_no_price(search, known, message):
    with pytest.raises(ValueError, match=message):
        skdp.privacy_of(search, **known)
