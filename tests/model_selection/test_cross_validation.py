"""Private cross-validation: its price, its means, and that no row scores a model that saw it."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp._oracle import Plan
from skdp.accounting import Adjacency, event_mu
from skdp.linear_model.base import DPLinearModel
from skdp.metrics.evaluation import PrivateScorer
from skdp.model_selection import DPSearchCV, candidates, dp_cross_validate

RIDGE = partial(skdp.DPRidge, scaling=skdp.RowNorm(4.0, target=5.0), max_iter=3)
SEEDED = skdp.Privacy(noise=skdp.SeededNoise(0))
seeded = partial(dp_cross_validate, privacy=SEEDED)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_it_is_charged_once(regression, adjacency):
    with skdp.PrivacyBudget(1.0, 1e-6, str(adjacency)) as budget:
        found = dp_cross_validate(
            RIDGE(), *regression, cv=4, privacy=skdp.Privacy(adjacency=str(adjacency))
        )
        assert budget.n_fits == 1
        assert 0.999 < budget.spent <= 1.0
    assert [(line.kind, line.count) for line in found.privacy_.releases] == [
        ("fit without a fold", 3),
        ("scores", 1),
    ]
    total = skdp.total_privacy(found, delta=1e-6).epsilon
    assert total == pytest.approx(found.privacy_.epsilon)


def check_price_and_rows(monkeypatch, X, y, **beside):
    """What a row meets costs what was charged, and no model scores what it has seen."""
    X = X.copy()
    X[:, 4] = np.arange(len(y)) / len(y)  # tells rows apart
    met, seen, both = np.zeros(len(y)), [], set()
    cost, fit, score = Plan.cost, DPLinearModel._fit, PrivateScorer.fit
    state = {}

    def stated(self, *arguments):
        found = cost(self, *arguments)
        state["cost"] = event_mu(found.event, Adjacency.ZERO_OUT) ** 2
        return found

    def numbers(X):
        return np.rint(X[:, 4] * len(y)).astype(int)

    def fitted(self, rows, *start):
        done, X = fit(self, rows, *start), rows.X
        met[numbers(X)] += state["cost"]
        seen.append(set(numbers(X)))
        return done

    def scored(self, X, y, **beside):
        done = score(self, X, y, **beside)
        met[numbers(X)] += state["cost"]
        both.update(seen[-1] & set(numbers(X)))
        return done

    with monkeypatch.context() as patch:
        patch.setattr(candidates, "check_price", lambda *arguments: None)
        patch.setattr(Plan, "cost", stated)
        patch.setattr(DPLinearModel, "_fit", fitted)
        patch.setattr(PrivateScorer, "fit", scored)
        found = seeded(RIDGE(), X, y, cv=5, **beside)
    assert not both, "a model scored what it had seen"
    assert found.privacy_.epsilon <= 1.0, "it costs more than was asked for"
    charged = event_mu(found.privacy_.event, Adjacency.ZERO_OUT) ** 2
    assert met.max() <= charged * (1 + 1e-9), "a row meets more than was charged"
    assert met.min() >= charged * (1 - 1e-4)


def test_price_and_rows(regression, monkeypatch):
    check_price_and_rows(monkeypatch, *regression)
    check_price_and_rows(monkeypatch, *regression, sample_weight=np.arange(400.0))


def test_means_over_folds(classification):
    X, y = classification
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=5)
    names = ["accuracy", "neg_log_loss"]
    found = seeded(model, X, y, names, cv=3, epsilon=30.0)
    assert list(found) == names
    assert found["accuracy"].value == pytest.approx(
        np.mean([fold["accuracy"].value for fold in found.folds])
    )
    each = [fold["neg_log_loss"].noise_std for fold in found.folds]
    assert found["neg_log_loss"].noise_std == pytest.approx(math.hypot(*each) / 3)
    assert found["neg_log_loss"].value < 0 < found["accuracy"].value
    assert len(found.estimators) == 3
    seeds = {estimator.privacy.noise.seed for estimator in found.estimators}
    assert seeds == {0}, "no seed is kept"


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("cv must be", {"cv": 1}),
        ("cv must be at most", {"cv": 401}),
        ("delta must be above 0", {"delta": 0.0}),
        ("epsilon must be", {"epsilon": 0.0}),
        ("metrics of a regressor must be", {"metrics": "accuracy"}),
        ("adjacency must be", {"privacy": skdp.Privacy(adjacency="other")}),
        ("estimator must be", {"estimator": PrivateScorer(None)}),
    ],
)
def test_refused_before_the_charge(regression, message, options):
    with skdp.PrivacyBudget(5.0, 1e-6, allow_seeded_noise=True) as budget:
        with pytest.raises(ValueError, match=message):
            seeded(**{"estimator": RIDGE(), "X": regression[0], "y": regression[1], **options})
        assert budget.spent == 0


def search(model, X, y):
    return DPSearchCV(model, {}).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, "cell"])
@pytest.mark.parametrize("run", [dp_cross_validate, search])
def test_rows_are_refused_before_the_charge(regression, run, bad):
    X, y = regression
    X = X.astype(object)
    X[7, 2] = bad
    with skdp.PrivacyBudget(5.0, 1e-6) as budget:
        with pytest.raises(ValueError, match=r"Nothing was released") as refusal:
            run(skdp.DPRidge(), X, y)
        assert budget.spent == 0
    assert "'cell'" not in str(refusal.value)


@pytest.mark.parametrize("run", [dp_cross_validate, search])
@pytest.mark.parametrize("bad", [np.nan, 12345.0])
def test_targets_are_refused_before_the_charge(regression, classification, run, bad):
    with skdp.PrivacyBudget(5.0, 1e-6) as budget:
        for model, (X, y) in (
            (skdp.DPRidge(), regression),
            (skdp.DPLogisticRegression(classes=[0, 1]), classification),
        ):
            y = y.astype(float)
            y[7] = np.nan if isinstance(model, skdp.DPRidge) else bad
            with pytest.raises(ValueError, match=r"y holds .* Nothing was released") as refusal:
                run(make_pipeline(FunctionTransformer(), model), X, y)
            assert "12345" not in str(refusal.value)
        assert budget.spent == 0


def raising(*methods):
    """A cell of 1.0 that says what it holds where it is compared."""

    def fail(*cells):
        raise KeyError("SECRET")

    content = {"__float__": lambda self: 1.0, "__hash__": lambda self: 1}
    return type("Cell", (), content | dict.fromkeys(methods, fail))()


@pytest.mark.parametrize("run", [dp_cross_validate, search])
@pytest.mark.parametrize(
    "cell",
    [Decimal("sNaN"), raising("__lt__"), raising("__eq__"), raising("__ne__"), raising("__hash__")],
    ids=["signalling", "lt", "eq", "ne", "hash"],
)
@pytest.mark.parametrize(
    "model",
    [skdp.DPRidge, skdp.DPLogisticRegression, partial(skdp.DPLogisticRegression, classes=[0, 1])],
)
def test_cells_with_code_of_their_own_are_refused_before_the_charge(
    classification, run, cell, model
):
    X, y = classification
    y = y.astype(object)
    y[:] = cell
    y[3] = 0
    with skdp.PrivacyBudget(5.0, 1e-6) as budget:
        with pytest.raises(ValueError, match=r"\by\b.*Nothing was released") as refusal:
            run(model(), X, y)
        assert budget.n_fits == 0
    assert "SECRET" not in str(refusal.value)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-3), (1.0, 0.99), (1e-6, 0.5)])
@pytest.mark.parametrize("of", ["cross-validation", "search"])
def test_budgets_that_cannot_be_shared_are_refused(regression, epsilon, delta, of):
    terms = {"epsilon": epsilon, "delta": delta}
    run = {
        "cross-validation": lambda: dp_cross_validate(RIDGE(), *regression, **terms),
        "search": lambda: DPSearchCV(RIDGE(), {}, **terms).fit(*regression),
    }[of]
    with pytest.raises(ValueError, match=r"too small next to delta|no amount of noise meets"):
        run()


def fails(X):
    return np.where(X[0, 0] == X, np.nan, X)


def raises(X):
    raise KeyError(f"cell {X[0, 0]}")


@pytest.mark.parametrize("run", [dp_cross_validate, search])
@pytest.mark.parametrize("step", [fails, raises])
def test_steps_that_fail_are_refused_before_the_charge(regression, run, step):
    """Were it a run that failed, the choice would tell of the record that made it fail."""
    X, y = regression
    model = make_pipeline(
        FunctionTransformer(step), skdp.DPRidge(scaling=skdp.PublicRange(target=5.0))
    )
    with skdp.PrivacyBudget(5.0, 1e-6) as budget:
        with pytest.raises(ValueError, match="Nothing was released") as refusal:
            run(model, X, y)
        assert budget.spent == 0
    assert str(X[0, 0]) not in str(refusal.value)
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize("step", [fails, raises])
def test_a_failure_after_the_charge_says_so(regression, step):
    """What follows a private step is first tried once the folds are charged."""
    model = make_pipeline(skdp.DPStandardScaler(), FunctionTransformer(step), skdp.DPRidge())
    with skdp.PrivacyBudget(5.0, 1e-6) as budget:
        with pytest.raises(RuntimeError, match="cross-validation is spent") as refusal:
            dp_cross_validate(model, *regression, cv=2)
        assert budget.spent > 0
    assert refusal.value.__suppress_context__
    assert "Nothing was released" not in str(refusal.value)
    assert "cell" not in str(refusal.value)


def test_it_shows_its_means(regression):
    found = dp_cross_validate(skdp.DPRidge(), *regression, cv=2)
    head, score = repr(found).splitlines()
    assert head == "<CrossValidation at epsilon=0.999999, delta=1e-06>"
    assert score == str(found["r2"])


@pytest.mark.parametrize(
    ("target_range", "note"),
    [((-300.0, 300.0), "of targets clipped to [-300, 300]"), (None, "to ranges of their own")],
)
def test_means_say_what_clipped_scores_are_of(regression, target_range, note):
    found = dp_cross_validate(
        skdp.DPRidge(),
        *regression,
        "mean_squared_error",
        cv=2,
        target_range=target_range,
        epsilon=5.0,
    )
    assert note in repr(found)
