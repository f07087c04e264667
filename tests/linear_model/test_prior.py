"""Fits from a public model: accounting, all kinds of rows, wrong priors, replay and mutants."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model
from sklearn.metrics import r2_score

import skdp
from composition import DELTA, together
from replays import seeded
from skdp import audit
from skdp.accounting import Adjacency
from skdp.linear_model import PublicModel
from skdp.linear_model import prior as priors
from skdp.model_selection import DPSearchCV, dp_cross_validate, dp_train_test_split

pytestmark = pytest.mark.filterwarnings("ignore:.*adds no noise:skdp.NotPrivateWarning")

N_ROWS = 2_000
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N_ROWS + 400, 6))
SLOPES = np.array([1.0, -1.0, 0.5, 0.5, 0.0, 0.2])
Y = X @ SLOPES + RNG.standard_normal(len(X))
LABELS = (RNG.random(len(X)) < 1 / (1 + np.exp(-2 * (X @ SLOPES)))).astype(int)
COUNTS = RNG.poisson(np.exp(0.3 * (X @ SLOPES))).astype(float)
CLASSES = np.clip(np.round(Y), -1, 1).astype(int) + 1
X_PUBLIC, X_TEST, X_FIT = X[:200], X[200:400], X[400:]
RIGHT = PublicModel(SLOPES)
SAMPLE = skdp.PublicSample(X_PUBLIC, y=Y[:200])


def made(estimator=skdp.DPRidge, seed=0, **given):
    return estimator(privacy=seeded(seed), **{"prior": RIGHT, **given})


def test_two_fits_cost_what_one_does():
    with skdp.PrivacyBudget(1.0, DELTA) as budget:
        model = skdp.DPRidge(prior=RIGHT, delta=DELTA).fit(X_FIT, Y[400:])
    assert budget.n_fits == 1
    assert 0.999 < model.privacy_.epsilon == budget.spent <= 1.0
    both = skdp.total_privacy(model.prior_fit_, model._of_prior[1], delta=DELTA)
    assert both.epsilon == pytest.approx(model.privacy_.epsilon, rel=1e-6)
    assert model.privacy_.assumptions[0].startswith("The prior is public")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X_TEST), model.predict(X_TEST))
    with pytest.warns(skdp.PrivacyWarning, match="fitted 2 times on the same rows"):
        model.fit(X_FIT, Y[400:])
    assert model.privacy_.epsilon == pytest.approx(together(1.0, 1.0), rel=1e-3)


def test_fits_on_parts_of_a_split_cost_their_maximum():
    X_train, X_other, y_train, y_other = dp_train_test_split(X_FIT, Y[400:])
    with skdp.PrivacyBudget(9.0, DELTA) as budget:
        for rows in ((X_train, y_train), (X_other, y_other)):
            skdp.DPRidge(prior=RIGHT, delta=DELTA).fit(*rows)
    assert budget.spent == pytest.approx(1.0, rel=1e-3)


def test_a_refused_charge_spends_nothing():
    with skdp.PrivacyBudget(0.9, DELTA) as budget, pytest.raises(skdp.PrivacyBudgetError):
        skdp.DPRidge(prior=RIGHT, delta=DELTA).fit(X_FIT, Y[400:])
    assert budget.n_fits == 0


def test_targets_that_come_back_as_columns_are_refused():
    terms = {"delta": DELTA, "privacy": skdp.Privacy(adjacency="label")}
    for first, second in ((RIGHT, None), (None, RIGHT), (RIGHT, RIGHT)):
        with skdp.PrivacyBudget(9.0, DELTA, "label") as budget:
            skdp.DPRidge(prior=first, **terms).fit(X_FIT, Y[400:])
            columns = np.c_[X_FIT[:, :5], Y[400:]]
            with pytest.raises(skdp.PrivacyBudgetError, match="equals the target of an earlier"):
                skdp.DPRidge(prior=second, **terms).fit(columns, LABELS[400:])
        assert budget.n_fits == 1


@pytest.mark.parametrize("shape", [lambda y: y, lambda y: y[:, None], lambda y: y.tolist()])
@pytest.mark.parametrize("prior", [None, RIGHT])
def test_targets_that_come_back_as_offsets_are_refused(prior, shape):
    terms = {"delta": DELTA, "privacy": skdp.Privacy(adjacency="label")}
    with skdp.PrivacyBudget(9.0, DELTA, "label") as budget:
        skdp.DPRidge(**terms).fit(X_FIT, Y[400:])
        with pytest.raises(skdp.PrivacyBudgetError, match=r"or the offset, equals the target"):
            skdp.DPRidge(prior=prior, **terms).fit(X_FIT, LABELS[400:], offset=shape(Y[400:]))
        skdp.DPRidge(prior=prior, **terms).fit(X_FIT, LABELS[400:], offset=X_FIT[:, 0])
    assert budget.n_fits == 2


def test_a_private_prior_is_clipped_as_its_own_predictions_are():
    """Its raw coefficients would send rows of a heavy tail anywhere, and refits ever farther."""
    rows = X_FIT.copy()
    rows[:, 0] = np.exp(3 * rows[:, 0])
    first = skdp.DPRidge(privacy=seeded(), fit_intercept=True).fit(rows, Y[400:])
    prior = priors.Prior.of(made(prior=first))
    far = np.full((1, 6), 1e6)
    limits = first.scaling_.columns.low, first.scaling_.columns.high
    expected = np.clip(far, *limits) @ first.coef_ + first.intercept_
    np.testing.assert_allclose(prior.margins(far)[:, 0], expected)
    np.testing.assert_allclose(prior.margins(sparse.csr_array(rows)), prior.margins(rows))


def test_the_cost_of_a_private_prior_is_added():
    first = skdp.DPRidge(delta=DELTA).fit(X_PUBLIC, Y[:200])
    model = skdp.DPRidge(prior=first, delta=DELTA).fit(X_FIT, Y[400:])
    assert model.privacy_.epsilon == pytest.approx(together(1.0, 1.0), rel=1e-3)
    assert model.privacy_.assumptions[0] == priors.PRIVATE
    budget = skdp.PrivacyBudget(9.0, DELTA)
    with budget.part("north"):
        first = skdp.DPRidge(delta=DELTA).fit(X_PUBLIC, Y[:200])
    with budget.part("south"):
        model = skdp.DPRidge(prior=first, delta=DELTA).fit(X_FIT, Y[400:])
    assert budget.spent == pytest.approx(1.0, rel=1e-3)
    assert model.privacy_.epsilon == pytest.approx(1.0, rel=1e-3)


PRIORS = {
    "right": (RIGHT, (0.5, 1.4)),
    "scikit-learn": (linear_model.Ridge().fit(X_PUBLIC, Y[:200]), (0.5, 1.4)),
    "sample": (SAMPLE, (0.5, 1.4)),
    "of another unit": (PublicModel(100 * SLOPES, 7.0), (0.005, 0.014)),
    "reversed": (PublicModel(-SLOPES), (-1.4, -0.4)),
    "useless": (PublicModel([0, 0, 0, 0, 1.0, 0]), (-0.6, 0.6)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_the_slope_tests_the_prior(name):
    given, (low, high) = PRIORS[name]
    fits = [made(seed=k, prior=given, epsilon=0.3).fit(X_FIT, Y[400:]) for k in range(4)]
    assert all(low < one.prior_fit_.coef_[0] < high for one in fits)
    scores = [r2_score(Y[200:400], one.predict(X_TEST)) for one in fits]
    plain = [
        r2_score(
            Y[200:400], made(seed=k, prior=None, epsilon=0.3).fit(X_FIT, Y[400:]).predict(X_TEST)
        )
        for k in range(4)
    ]
    assert np.mean(scores) > np.mean(plain) - 0.05


def test_public_ranges_do_not_cap_predictions():
    """Public rows of the lower half of a column: private targets reach four times as far."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4_000, 3))
    rows[:, 0] = rng.exponential(size=len(rows))
    y = 3 * rows[:, 0] + 0.3 * rows[:, 1] + 0.2 * rng.standard_normal(len(rows))
    low = np.flatnonzero(rows[:2_000, 0] < np.median(rows[:, 0]))[:200]
    sample = skdp.PublicSample(rows[low], y=y[low])
    model = made(prior=sample, epsilon=0.1).fit(rows[2_000:], y[2_000:])
    assert r2_score(y, model.predict(rows)) > 0.9
    assert y[low].max() < 3 < model.predict(rows).max()
    declared = skdp.PublicRange(target=(0.0, 4.0))
    model = made(prior=sample, epsilon=0.1, scaling=declared).fit(rows[2_000:], y[2_000:])
    assert model.predict(rows).max() <= 4


@pytest.mark.parametrize("range_of_difference", [(-1e3, 1e3), (-4.0, 4.0)])
def test_a_difference_whose_range_is_absurd_is_left_out(range_of_difference, monkeypatch):
    model = made(prior=SAMPLE, epsilon=0.1)
    keep = skdp.DPRidge._keep

    def changed(self, solution, fit):
        keep(self, solution, fit)
        if fit.data.n_features == 6:
            self.prediction_range_ = tuple(np.array([end]) for end in range_of_difference)

    monkeypatch.setattr(skdp.DPRidge, "_keep", changed)
    moved, second = model.fit(X_FIT, Y[400:])._of_prior
    assert (np.abs(second.coef_).max() == 0) == (range_of_difference[1] == 1e3)
    np.testing.assert_allclose(model.coef_, moved.coef[:, 0] + second.coef_)


def test_a_sample_also_standardises_columns():
    """A useless prior of a sample costs a share of the budget, and saves that of the columns."""
    useless = skdp.PublicSample(X_PUBLIC, y=Y[:200][::-1])
    model = made(prior=useless).fit(X_FIT, Y[400:])
    kinds = [release.kind for release in model._of_prior[1].privacy_.releases]
    assert kinds.count("magnitudes") == 1  # of targets
    given = made(prior=useless, scaling=skdp.PublicRange(-5, 5)).fit(X_FIT, Y[400:])
    assert given._of_prior[1].scaling.high == 5


def test_without_noise_coefficients_predict():
    for estimator, y in (
        (made(skdp.DPLinearRegression, epsilon=math.inf), Y),
        (made(skdp.DPPoissonRegressor, epsilon=math.inf), COUNTS),
    ):
        model = estimator.fit(X_FIT, y[400:])
        linear = X_TEST @ model.coef_ + model.intercept_
        expected = linear if y is Y else np.exp(linear)
        np.testing.assert_allclose(model.predict(X_TEST), expected, rtol=1e-6)
        plain = type(model)(epsilon=math.inf).fit(X_FIT, y[400:])
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=2e-3)


KINDS = {
    "csr": lambda model, y: model.fit(sparse.csr_array(X_FIT), y),
    "float32": lambda model, y: model.fit(X_FIT.astype(np.float32), y),
    "weights": lambda model, y: model.fit(X_FIT, y, np.ones(N_ROWS)),
    "offset": lambda model, y: model.fit(X_FIT, y, offset=np.zeros(N_ROWS)),
    "groups": lambda model, y: model.fit(X_FIT, y, groups=np.arange(N_ROWS)),
    "chunks": lambda model, y: model.fit(skdp.data.Chunks(X_FIT, y, 700)),
    "chunks with offsets": lambda model, y: model.fit(
        skdp.data.Chunks(X_FIT, y, 700, offset=np.zeros(N_ROWS))
    ),
}
TASKS = {
    "real": (skdp.DPRidge, {}, Y),
    "label": (skdp.DPLogisticRegression, {"classes": [0, 1]}, LABELS),
    "count": (skdp.DPPoissonRegressor, {}, COUNTS),
    "median": (skdp.DPQuantileRegressor, {}, Y),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_all_kinds_of_rows_and_losses(task, kind):
    estimator, given, y = TASKS[task]
    model = KINDS[kind](made(estimator, epsilon=20.0, **given), y[400:])
    exact = estimator(epsilon=math.inf, **given).fit(X_FIT, y[400:])
    found = np.corrcoef(model.coef_.ravel(), exact.coef_.ravel())[0, 1]
    assert found > 0.98
    beside = {"offset": np.zeros(200)} if "offset" in kind else {}
    assert model.predict(X_TEST, **beside).shape == (200,)


def test_classes_and_several_targets():
    public = linear_model.LogisticRegression().fit(X_PUBLIC, CLASSES[:200])
    model = made(skdp.DPLogisticRegression, prior=public, classes=[0, 1, 2], epsilon=5.0)
    model.fit(X_FIT, CLASSES[400:])
    assert np.mean(model.predict(X_TEST) == CLASSES[200:400]) > 0.6
    both = np.c_[Y, -Y]
    model = made(prior=linear_model.Ridge().fit(X_PUBLIC, both[:200]), epsilon=5.0)
    assert r2_score(both[200:400], model.fit(X_FIT, both[400:]).predict(X_TEST)) > 0.6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prior": 3.0}, "prior must be"),
        ({"prior": linear_model.Ridge()}, "prior must be"),
        ({"prior": PublicModel([np.nan] * 6)}, "finite"),
        ({"prior": PublicModel([1.0])}, "1 coefficients"),
        ({"prior": skdp.PublicSample(X_PUBLIC)}, "no targets"),
        ({"prior": RIGHT, "inference": "coefficients"}, "beside inference"),
        ({"prior": RIGHT, "constraint": ("l2_ball", {"radius": 1.0})}, "beside constraint"),
    ],
)
def test_what_is_no_prior_is_refused_before_the_charge(given, message):
    with skdp.PrivacyBudget(9.0, 1e-6) as budget, pytest.raises(ValueError, match=message) as error:
        skdp.DPRidge(**given).fit(X_FIT, Y[400:])
    assert budget.n_fits == 0
    assert str(error.value).startswith("DPRidge: ")
    blocks = [(X_FIT, Y[400:])]
    with pytest.raises(ValueError, match="beside fit_blocks"):
        skdp.DPRidge(prior=RIGHT).fit_blocks(blocks, n_samples=N_ROWS, n_features=6)
    with pytest.raises(ValueError, match=r"nor prior .* 'smoothed_hinge'\. Nothing was released"):
        skdp.DPLinearSVC(prior=RIGHT, classes=[0, 1]).plan(N_ROWS, 6)


@pytest.mark.parametrize("kind", [linear_model.Ridge, skdp.DPRidge, skdp.PublicSample])
@pytest.mark.parametrize("held", ["frame", "chunks"])
@pytest.mark.parametrize("names", ["bacdef", "abcdeg"])
def test_a_prior_of_other_columns_is_refused_before_the_charge(kind, held, names):
    frame = pd.DataFrame(X[:300], columns=[*"abcdef"])
    prior = kind(frame, y=Y[:300]) if kind is skdp.PublicSample else kind().fit(frame, Y[:300])
    other = frame.set_axis([*names], axis=1)
    rows = (other, Y[:300]) if held == "frame" else (chunks(other, Y[:300]),)
    with skdp.PrivacyBudget(9.0, 1e-6) as budget, pytest.raises(ValueError, match="columns"):
        skdp.DPRidge(prior=prior).fit(*rows)
    assert budget.n_fits == 0


# ---------------------------------------------------------------- replay and mutants

SMALL = PublicModel([1.0, -1.0, 0.5, 0.0], 0.1)
REPLAYED = {
    "linear": lambda terms: skdp.DPRidge(prior=SMALL, privacy=terms),
    "logistic": lambda terms: skdp.DPLogisticRegression(prior=SMALL, classes=[0, 1], privacy=terms),
    "poisson": lambda terms: skdp.DPPoissonRegressor(prior=SMALL, privacy=terms),
}
quiet = pytest.mark.filterwarnings("ignore::skdp.NoiseWarning", "ignore::skdp.PrivacyWarning")


def replayed(name, adjacency="zero_out", every=1, groups=None):
    """Replay a fit on some of the hostile pairs, or on all of them."""
    estimator = REPLAYED[name](seeded(adjacency=adjacency))
    rows, y = audit.neighbours.made_up_data(estimator)
    relation = audit.neighbours.relation_of(estimator)
    pairs = audit.neighbours.hostile_pairs(
        estimator, rows, y, relation, groups, weighted=adjacency != "label"
    )
    return audit.replay(estimator, rows, y, neighbours=islice(pairs, 1, None, every), groups=groups)


def chunks(X, y, **beside):
    return skdp.data.Chunks(X, y, 20, **beside)


@quiet
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one", "label"])
@pytest.mark.parametrize("name", REPLAYED)
def test_rows_show_only_through_releases(name, adjacency, every):
    report = replayed(name, adjacency, every)
    assert report.ok, report


@quiet
@pytest.mark.slow
def test_groups_show_only_through_releases():
    report = replayed("linear", every=12, groups=np.arange(60) // 3)
    assert report.ok, report


def test_fits_that_cost_more_than_the_model_states_are_refused(monkeypatch):
    monkeypatch.setattr(priors, "_epsilon", lambda model, share: model.epsilon)
    with pytest.raises(ValueError, match=r"two fits of a prior cost epsilon=1\.4"):
        made(delta=DELTA, epsilon=1.0).fit(X_FIT, Y[400:])


def made_releases(*statements):
    """Return how often each event was charged, by its kind."""
    counts = Counter()
    for statement in statements:
        for release in statement.releases:
            counts[release.kind, str(release.event)] += release.count
    return counts


@quiet
def test_a_group_that_loses_rows_moves_no_margin_of_other_groups():
    """A product of matrices would round the others' margins by their places."""
    rng = np.random.default_rng(0)
    coef = rng.standard_normal(8)
    rows = 1e15 * rng.standard_normal((300, 8))
    rows[:, -1] = -(rows[:, :-1] @ coef[:-1]) / coef[-1]  # the terms cancel
    groups, y = np.arange(300) // 3, rng.choice([-1.0, 1.0], 300)
    fewer = [
        audit.NeighbouringPair(
            f"{k} rows fewer",
            {"X": rows, "y": y, "groups": groups},
            {"X": np.ascontiguousarray(rows[k:]), "y": y[k:], "groups": groups[k:]},
            Adjacency.parse("replace_one"),
        )
        for k in (1, 2)
    ]
    model = skdp.DPRidge(
        prior=PublicModel(coef), epsilon=30.0, privacy=skdp.Privacy(adjacency="replace_one")
    )
    report = audit.replay(model, rows, y, fewer, groups=groups)
    assert report.ok, report


def test_no_row_decides_whether_the_second_fit_runs():
    """Offset and prediction of a row exceed together the limit that each of them keeps."""
    rows, offset = X_FIT.copy(), np.zeros(N_ROWS)
    rows[0], offset[0] = [2.0, *5 * [0.0]], 50.0
    prior = PublicModel([1.0, *5 * [0.0]])
    model = skdp.DPPoissonRegressor(prior=prior, epsilon=3.0).fit(rows, COUNTS[400:], offset=offset)
    assert np.isfinite(model.coef_).all()


@quiet
@pytest.mark.parametrize("task", ["real", "label", "count"])
def test_the_plan_has_the_releases_that_are_made(task):
    estimator, given, y = TASKS[task]
    model = made(estimator, **given)
    planned = model.plan(N_ROWS, 6)
    for rows in ((X_FIT, y[400:]), (skdp.data.Chunks(X_FIT, y[400:], 500),)):
        model = made(estimator, **given).fit(*rows)
        charged = made_releases(model.privacy_)
        assert charged == made_releases(model.prior_fit_.privacy_, model._of_prior[1].privacy_)
    assert made_releases(planned) == made_releases(
        made(estimator, **given).fit(X_FIT, y[400:]).privacy_
    )
    assert planned.epsilon == pytest.approx(model.privacy_.epsilon, rel=1e-9)


@quiet
def test_searches_refuse_a_prior_that_costs():
    private = skdp.DPRidge(delta=DELTA).fit(X_FIT, Y[400:])
    for run in (
        lambda: DPSearchCV(skdp.DPRidge(prior=private), {"alpha": [0.1, 1.0]}).fit(X_FIT, Y[400:]),
        lambda: dp_cross_validate(skdp.DPRidge(prior=private), X_FIT, Y[400:]),
    ):
        with skdp.PrivacyBudget(100.0, DELTA) as budget:
            with pytest.raises(ValueError, match="prior was fitted privately"):
                run()
            assert budget.n_fits == 0


def test_offsets_are_no_targets_that_come_back():
    terms = {"epsilon": 1.0, "delta": DELTA}
    with skdp.PrivacyBudget(9.0, DELTA, adjacency="label"):
        skdp.DPRidge(**terms, privacy=skdp.Privacy(adjacency="label")).fit(
            X_FIT[:, 1:], Y[400:], offset=X_FIT[:, 0]
        )
        skdp.DPRidge(**terms, privacy=skdp.Privacy(adjacency="label")).fit(X_FIT, Y[400:])


def test_a_statement_says_that_offsets_follow_from_records():
    model = skdp.DPRidge(delta=DELTA).fit(X_FIT, Y[400:], offset=X_FIT[:, 0])
    assert any(
        text.startswith("The offset of a record depends") for text in model.privacy_.assumptions
    )


def test_noise_of_the_two_fits_is_that_of_no_other_seed():
    seeds = [fit._terms.noise.seed for seed in range(50) for fit in priors.fits_of(made(seed=seed))]
    assert len(set(seeds)) == 100
    assert min(seeds) > 50
