"""Scores of rows in partitions: those of rows in memory, and refusals cost nothing."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from in_partitions import Held
from replays import data_for, neighbours
from skdp.accounting import Adjacency
from skdp.metrics import evaluate
from skdp.metrics.evaluation import PrivateScorer
from skdp.metrics.requests import METRICS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.standard_normal(2000)
LABELS = np.array(["n", "p"])[(Y > 0).astype(int)]
THIRDS = np.digitize(Y, [-1.0, 1.0])
FRAME = pd.DataFrame(X, columns=list("abc"))
SECRET = 123456.789


class Elsewhere(Held):
    """Partitions whose tasks and what these return are pickled."""

    def __init__(self, rows, targets, sizes=(0, 300, 1400, 0, 300)):
        super().__init__(rows, targets, numbered=False, sizes=sizes, elsewhere=True)


def numbers(scores):
    """All numbers of all scores, with their standard deviations."""
    found = []
    for score in scores.values():
        value = score.value
        found += [np.ravel(one) for one in (value if isinstance(value, tuple) else [value])]
        found += [np.ravel(getattr(score, "noise_std", 0.0))]
        found += [np.ravel(getattr(score, "sampling_std", 0.0))]
    return np.concatenate(found)


PRIVATE = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(3)), "epsilon": 3.0}
# Deviances are for positive targets.
OF_ANY_TARGETS = [name for name in METRICS["regressor"] if "deviance" not in name]
CASES = {
    "regressor": (LinearRegression().fit(X, Y), X, Y, OF_ANY_TARGETS),
    "two classes": (LogisticRegression().fit(X, LABELS), X, LABELS, list(METRICS["classifier"])),
    "several classes": (
        make_pipeline(StandardScaler(), LogisticRegression()).fit(X, THIRDS),
        X,
        THIRDS,
        ["accuracy", "neg_log_loss"],
    ),
    "names": (LinearRegression().fit(FRAME, Y), FRAME, pd.Series(Y), ["r2"]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["chunks", "elsewhere"])
def test_scores_are_those_of_rows_in_memory(name, kind):
    model, rows, targets, metrics = CASES[name]
    options = PRIVATE | ({"target_range": (-6.0, 6.0)} if targets.dtype == float else {})
    expected = evaluate(model, rows, targets, metrics, **options)
    if kind == "elsewhere":
        partitions = Elsewhere(rows, targets)
    else:
        partitions = skdp.data.Chunks(np.asarray(rows), np.asarray(targets), 700)
        model = LinearRegression().fit(X, Y) if name == "names" else model
    found = evaluate(model, partitions, metrics=metrics, **options)
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-9, atol=1e-9)
    one, other = found.privacy_, expected.privacy_
    assert (one.epsilon, one.releases, one.n_rows) == (other.epsilon, other.releases, other.n_rows)
    assert any("partitions" in text for text in one.assumptions)
    assert not any("partitions" in text for text in other.assumptions)


def test_a_private_model_leaves_its_budget_and_the_noise_here():
    with skdp.PrivacyBudget(9.0, 1e-3) as budget:
        model = skdp.DPRidge(privacy=skdp.Privacy(budget=budget)).fit(X, Y)
        evaluate(model, Elsewhere(X, Y), privacy=skdp.Privacy(budget=budget))
        assert budget.n_fits == 2
    scorer = PrivateScorer(model, **PRIVATE)
    assert scorer._reader().privacy.get_params() == skdp.Privacy().get_params()
    assert scorer.privacy.noise.seed == 3


# ---------------------------------------------------------------- refusals


class Given(ClassifierMixin, BaseEstimator):
    """A model whose predictions a function makes."""

    def __init__(self, function):
        self.function = function
        self.classes_ = np.array([0, 1])

    def predict(self, rows):
        return self.function(rows)


def fail(rows):
    raise ValueError(f"a cell is {rows[-1, 0]}")


def with_last(values, last):
    changed = values.copy()
    changed[-1] = last
    return changed


REFUSED = {
    "unknown label": (CASES["two classes"][0], with_last(LABELS, "q"), "none of the model's 2"),
    "labels of another type": (CASES["two classes"][0], Y > 0, "The classes of the model"),
    "infinite target": (CASES["regressor"][0], with_last(Y, np.inf), "finite numbers"),
    "missing target": (CASES["regressor"][0], with_last(Y, np.nan), "finite numbers"),
    "text in targets": (
        CASES["regressor"][0],
        with_last(Y.astype(object), f"x{SECRET}"),
        "finite numbers",
    ),
    "a failure": (Given(fail), (Y > 0).astype(int), "failed on these rows, with ValueError"),
    "another shape": (Given(lambda rows: np.zeros(3)), (Y > 0).astype(int), "one answer for each"),
    "unknown prediction": (
        Given(lambda rows: (rows[:, 0] == SECRET).astype(int) * 7),
        (Y > 0).astype(int),
        "predict holds a label",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refusals_are_those_of_rows_in_memory(kind):
    model, targets, match = REFUSED[kind]
    rows = X.copy()
    rows[-1, 0] = SECRET
    options = {"target_range": (-6.0, 6.0)} if kind.endswith(("target", "targets")) else {}
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        for given in ((skdp.data.Chunks(rows, targets, 700),), (rows, targets)):
            with pytest.raises(ValueError, match=rf"^evaluate: .*{match}") as refusal:
                evaluate(model, *given, **options)
            assert str(refusal.value).endswith("Nothing was released.")
            assert str(SECRET) not in str(refusal.value)
        assert budget.n_fits == 0


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"y": Y}, "Leave y out"),
        ({"groups": np.arange(2000)}, "Leave groups out"),
        ({"metrics": "r3"}, "must be among"),
    ],
)
def test_wrong_arguments_are_refused_unread(given, match):
    partitions = Elsewhere(X, Y)
    with pytest.raises(ValueError, match=rf"(?s)^evaluate: .*{match}.*Nothing was released\.$"):
        evaluate(CASES["regressor"][0], partitions, target_range=(-6.0, 6.0), **given)
    assert partitions.n_passes == 0


def test_a_model_that_fails_after_the_check_has_spent_the_budget():
    calls = []

    def fail_later(rows):
        calls.append(len(rows))
        return fail(rows) if len(calls) > 3 else np.zeros(len(rows), dtype=int)

    rows = X.copy()
    rows[-1, 0] = SECRET
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=r"ValueError. The budget of this fit is spent") as no:
            evaluate(Given(fail_later), skdp.data.Chunks(rows, (Y > 0).astype(int), 700))
        assert budget.n_fits == 1
    assert str(SECRET) not in str(no.value)


# ---------------------------------------------------------------- nothing else leaves


class InChunks(PrivateScorer):
    def fit(self, X, y, sample_weight=None):
        return super().fit(skdp.data.Chunks(X, y, 25))


def check(replay, kind, metrics, rng, **options):
    data, labels = data_for(kind, rng)
    model = (LinearRegression if kind == "linear" else LogisticRegression)().fit(data, labels)
    privacy = skdp.Privacy(adjacency="replace_one", noise=skdp.SeededNoise(0))
    replay.check_each(
        lambda: InChunks(model, metrics, epsilon=3.0, privacy=privacy, **options),
        neighbours(kind, data, labels, Adjacency.REPLACE_ONE),
        Adjacency.REPLACE_ONE,
    )


@pytest.mark.parametrize(
    ("kind", "options"), [("logistic", {}), ("linear", {"target_range": (-4.0, 4.0)})]
)
def test_no_row_shows_but_through_the_releases(replay, rng, kind, options):
    metrics = OF_ANY_TARGETS if kind == "linear" else METRICS["classifier"]
    check(replay, kind, list(metrics), rng, **options)


class InThreads(Elsewhere):
    """All partitions at once, in threads of this process, the first one started first."""

    def run(self, task, spread=map):
        def late(place):
            time.sleep(0.02 * place)
            return task(**self._parts[place])

        with ThreadPoolExecutor(len(self._parts)) as pool:
            return list(pool.map(late, range(len(self._parts))))


class Talking(RegressorMixin, BaseEstimator):
    # A regressor: in Python 3.11 cached properties, which classified rows have, lock threads out.
    def predict(self, rows):
        time.sleep(0.1)
        warnings.warn(f"a cell is {rows[0, 0]}", UserWarning, stacklevel=2)
        return np.zeros(len(rows))


def test_warnings_of_a_model_stay_silent_in_threads():
    filters = list(warnings.filters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inside = list(warnings.filters)
        evaluate(Talking(), InThreads(X, Y, (500, 500, 1000)), target_range=(-6.0, 6.0))
        assert warnings.filters == inside
    assert not [one for one in caught if one.category is UserWarning]
    assert warnings.filters == filters
