"""Groups of rows as the unit of privacy: what they change, what they refuse, what they tell."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import skdp
from grouped import PAIRS, grouped_data
from replays import ASKED_BY, ESTIMATORS, seeded
from skdp.fitting import parts
from skdp.fitting.estimator import PrivateEstimator
from skdp.fitting.grouping import GroupLabels
from skdp.fitting.refusals import without_row_counts
from skdp.oracle import GaussianNoise, NoisyStatistic
from skdp.oracle.releases import base as release_base
from skdp.oracle.releases.histograms import TableCounts
from skdp.oracle.sources.groups import GroupedMemorySource
from skdp.oracle.sources.memory import MemorySource
from skdp.preprocessing import DPStandardScaler
from skdp.solvers import GradientDescent

SEEDED = {"privacy": seeded(3)}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fits(kind, data, groups, **parameters):
    X, y, w, _ = data
    return ESTIMATORS[kind](**parameters).fit(X, y, w, groups=groups)


@pytest.mark.parametrize(("kind", "solver"), PAIRS)
def test_groups_of_one_row_change_nothing(rng, kind, solver):
    data, options = grouped_data(kind, rng), {"solver": solver, **ASKED_BY.get(solver, {})}
    plain = fits(kind, data, None, **options)
    grouped = fits(kind, data, 7 + np.arange(len(data[1])), **options)
    np.testing.assert_allclose(grouped.coef_, plain.coef_, rtol=1e-8, atol=1e-9)
    assert grouped.n_gradients_ == plain.n_gradients_


@pytest.mark.parametrize("kind", list(ESTIMATORS))
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_noise_at_n_groups_is_that_at_n_rows(rng, kind, adjacency):
    X, y, _, labels = grouped_data(kind, rng)
    n_groups = len(np.unique(labels))
    grouped = ESTIMATORS[kind](adjacency=adjacency).fit(X, y, groups=labels).privacy_
    plain = ESTIMATORS[kind](adjacency=adjacency).fit(X[:n_groups], y[:n_groups]).privacy_
    assert grouped.releases == plain.releases
    assert (grouped.epsilon, grouped.n_groups) == (plain.epsilon, plain.n_rows)


def test_a_group_counts_once(rng):
    """Without noise: the rows of a group, repeated, change nothing; weights 1 / k mean the same."""
    X, y, _, labels = grouped_data("ridge", rng)
    sizes = np.bincount(labels)[labels]
    model = {"epsilon": np.inf, "scaling": "none", "solver": "gd", "max_iter": 300}
    once = skdp.DPRidge(1.0, **model).fit(X, y, groups=labels)
    twice = labels == labels[0]
    again = skdp.DPRidge(1.0, **model).fit(
        np.vstack([X, X[twice]]), np.append(y, y[twice]), groups=np.append(labels, labels[twice])
    )
    # Sums of rows are divided by their number, which alpha is next to.
    n_rows, n_groups = len(y), len(np.unique(labels))
    weighted = skdp.DPRidge(n_rows / n_groups, **model).fit(X, y, n_rows / n_groups / sizes)
    np.testing.assert_allclose(again.coef_, once.coef_, rtol=1e-6)
    np.testing.assert_allclose(weighted.coef_, once.coef_, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    "labels",
    [
        lambda codes: codes,
        lambda codes: [f"person {code}" for code in codes],
        lambda codes: codes.astype(object),
        lambda codes: np.datetime64("2026-01-01") + codes,
        lambda codes: codes / 7,
    ],
    ids=["integers", "strings", "objects", "dates", "floats"],
)
def test_labels_of_any_kind(rng, labels):
    X, y, _, codes = grouped_data("ridge", rng)
    expected = skdp.DPRidge(**SEEDED).fit(X, y, groups=codes)
    found = skdp.DPRidge(**SEEDED).fit(X, y, groups=labels(codes))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=0.5)
    assert found.privacy_.n_groups == expected.privacy_.n_groups


SECRET = "Ada Lovelace"  # a label that must not be shown


@pytest.mark.parametrize(
    "bad",
    [
        np.nan, None, np.datetime64("NaT"), "masked", "two dimensions", "sparse", "short", "a list",
        "scalar",
    ],
    ids=str,
)  # fmt: skip
def test_labels_that_are_refused(bad):
    X, y = np.zeros((9, 2)), np.arange(9.0)
    labels = np.array([SECRET, *"abcdefgh"], dtype=object)
    if bad == "masked":
        labels = np.ma.masked_array(np.arange(9), mask=np.arange(9) == 3)
    elif bad == "two dimensions":
        labels = np.array([labels, labels]).T
    elif bad == "sparse":
        labels = sparse.csr_array(np.eye(9))
    elif bad == "short":
        labels = labels[:8]
    elif bad == "a list":
        labels[3] = [SECRET]
    elif bad == "scalar":
        labels = SECRET
    elif isinstance(bad, np.datetime64):
        labels = np.array([bad] * 9)
    else:
        labels[3] = bad
    budget = skdp.PrivacyBudget(1.0, 1e-6)
    with pytest.raises(ValueError, match=r"groups.*Nothing was released") as refusal:
        skdp.DPLinearRegression(privacy=skdp.Privacy(budget=budget)).fit(X, y, groups=labels)
    assert SECRET not in str(refusal.value)
    assert not any(number in str(refusal.value) for number in ("9", "8"))
    assert budget.n_fits == 0


@pytest.mark.parametrize("which", ["y", "sample_weight", "groups"])
def test_refusals_do_not_tell_how_many_rows(which):
    rows = {name: np.arange(987.0) % 5 for name in ("y", "sample_weight", "groups")}
    rows[which] = rows[which][:-3]
    with pytest.raises(ValueError, match="lengths differ") as refusal:
        skdp.DPLinearRegression().fit(np.ones((987, 2)), **rows)
    assert "98" not in str(refusal.value)


@pytest.mark.parametrize(
    ("X", "y"),
    [(np.ones((987, 0)), np.ones(987)), (np.ones((987, 2)), np.ones((987, 2)))],
    ids=["no columns", "wide labels"],
)
def test_refusals_of_scikit_learn_do_not_either(X, y):
    with pytest.raises(ValueError, match=r"shape") as refusal:
        skdp.DPLogisticRegression().fit(X, y, groups=np.arange(987) % 50)
    assert "987" not in str(refusal.value)


def test_counts_in_messages():
    message = "Expected 2D array, shape (987, 3), n=12 1.5 GiB x4; 3 features, .reshape(-1, 1)"
    shown = "Expected 2D array, shape (..., ...), n=... ... GiB x4; 3 features, .reshape(-1, 1)"
    with pytest.raises(ValueError, match=re.escape(shown)), without_row_counts(True):
        raise ValueError(message)


LOGISTIC, FIVE = skdp.DPLogisticRegression, np.arange(987) % 5


@pytest.mark.parametrize(
    ("model", "X", "y", "public"),
    [
        (LOGISTIC(classes=[10, 11]), np.ones((987, 2)), FIVE, "10, 11 (numbers; the number 1 and"),
        (LOGISTIC(classes=["10", "11"]), np.ones((987, 2)), FIVE, "'10', '11'"),
        (LOGISTIC(class_weight={7: 2.5}), np.ones((987, 2)), FIVE, "[7]"),
        (LOGISTIC(class_weight={1: -2.5}), np.ones((987, 2)), FIVE, "of length 1"),
        (LOGISTIC(), np.ones((987, 2)), np.ones(987), "at least 2 classes"),
        (LOGISTIC(), np.array([["a", 1, "b"]] * 987, dtype=object), FIVE, "columns 0, 2"),
        (LOGISTIC(), np.zeros((987, 2), dtype="M8[D]"), FIVE, "columns 0, 1"),
        (LOGISTIC(), np.ones(987), FIVE, "X.reshape(-1, 1)"),
        (
            LOGISTIC(),
            np.ones((987, 0)),
            FIVE,
            "0 feature(s) (shape=(..., ...)) while a minimum of 1",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_public_numbers_are_shown_with_groups(model, X, y, public):
    with pytest.raises(ValueError, match=re.escape(public)) as refusal:
        model.fit(X, y, groups=np.arange(987) % 50)
    assert "987" not in str(refusal.value)
    if "..." not in public:
        with pytest.raises(ValueError, match=re.escape(str(refusal.value))):
            model.fit(X, y)


@pytest.mark.parametrize("where", ["reading", "reserve", "run"])
def test_no_lack_of_memory_tells_how_much_there_is(rng, monkeypatch, where):
    def fail(*arguments, **options):
        raise MemoryError("Unable to allocate 3.2 GiB for an array with shape (987, 50)")

    owner, name = {
        "reading": (PrivateEstimator, "_read"),
        "reserve": (MemorySource, "reserve"),
        "run": (GroupedMemorySource, "total"),
    }[where]
    monkeypatch.setattr(owner, name, fail)
    X, y, _, labels = grouped_data("ridge", rng)
    with pytest.raises(MemoryError, match="needs more memory than there is") as refusal:
        skdp.DPRidge().fit(X, y, groups=labels)
    assert not any(figure in str(refusal.value) for figure in ("3.2", "987"))


def test_no_warning_compares_labels_with_rows():
    """scikit-learn warns where there are many labels for so few rows."""
    X, y = np.ones((30, 2)), np.arange(30) % 20
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        skdp.DPLogisticRegression(epsilon=5.0).fit(X, y, groups=np.arange(30) // 2)
    assert not [warning for warning in seen if "unique classes" in str(warning.message)]


def test_labels_are_not_kept(rng):
    X, y, _, codes = grouped_data("ridge", rng)
    labels = np.array([f"{SECRET} {code}" for code in codes])
    for model in (
        skdp.DPRidge().fit(X, y, groups=labels),
        DPStandardScaler().fit(X, groups=labels),
    ):
        assert SECRET.encode() not in pickle.dumps(model)
        assert SECRET not in str(vars(model)) + str(model.privacy_.to_dict())
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(GroupLabels("somebody", labels))


def test_statement_says_what_the_unit_is(rng):
    X, y, _, labels = grouped_data("logistic", rng)
    n_groups = len(np.unique(labels))
    statement = skdp.DPLogisticRegression(classes=[0, 1]).fit(X, y, groups=labels).privacy_
    assert (statement.unit, statement.n_groups, statement.n_rows) == ("group", n_groups, None)
    assert f"one of {n_groups} groups of rows" in str(statement)
    assert any("all rows with the same value of `groups`" in text for text in statement.assumptions)
    assert str(len(y)) not in str(statement)
    plain = skdp.DPLogisticRegression(classes=[0, 1]).fit(X, y).privacy_
    assert (plain.unit, plain.n_groups, plain.n_rows) == ("row", None, len(y))


@pytest.mark.parametrize("kind", list(ESTIMATORS))
def test_the_plan_is_that_of_the_fit(rng, kind):
    X, y, _, labels = grouped_data(kind, rng)
    n_outputs = (3,) if kind == "multinomial" else ()
    planned = ESTIMATORS[kind]().plan(None, 4, *n_outputs, n_groups=len(set(labels)))
    fitted = ESTIMATORS[kind]().fit(X, y, groups=labels).privacy_
    assert replace(planned, notes=()) == fitted
    again = ESTIMATORS[kind]().plan(10**6, 4, *n_outputs, n_groups=len(set(labels)))
    assert again == planned


def test_scaler(rng):
    X, _, _, labels = grouped_data("ridge", rng)
    scaler = DPStandardScaler(epsilon=50.0, **SEEDED).fit(X, groups=labels)
    assert scaler.privacy_ == DPStandardScaler(epsilon=50.0, **SEEDED).plan(
        None, 4, n_groups=len(set(labels))
    )
    # Each group counts once: many more rows of one group move next to nothing.
    many = np.append(labels, np.full(3000, labels[0]))
    again = DPStandardScaler(epsilon=50.0, **SEEDED).fit(
        np.vstack([X, np.full((3000, 4), 9.0)]), groups=many
    )
    assert np.abs(again.mean_).max() < 2


def test_budgets_do_not_mix_units(rng):
    X, y, _, labels = grouped_data("ridge", rng)
    budget = skdp.PrivacyBudget(3.0, 1e-6)
    skdp.DPRidge(privacy=skdp.Privacy(budget=budget)).fit(X, y, groups=labels)
    with pytest.raises(skdp.PrivacyBudgetError, match=r"for each row.*for each group.*refused"):
        skdp.DPRidge(privacy=skdp.Privacy(budget=budget)).fit(X, y)
    assert budget.n_fits == 1
    assert budget.statement.unit == "group"
    skdp.DPRidge(privacy=skdp.Privacy(budget=budget)).fit(X, y, groups=labels)
    assert budget.n_fits == 2


def test_totals_do_not_mix_units(rng):
    X, y, _, labels = grouped_data("ridge", rng)
    models = [skdp.DPRidge().fit(X, y, groups=groups) for groups in (labels, labels, None)]
    total = skdp.total_privacy(*models[:2], delta=1e-6)
    assert (total.unit, total.n_groups) == ("group", len(set(labels)))
    with pytest.raises(ValueError, match="single rows and some protect groups"):
        skdp.total_privacy(*models, delta=1e-6)


GROUP_STATISTICS = {
    "BinCounts", "CappedHessian", "CappedResiduals", "CutCount", "DirectionalSum", "GradientCount",
    "GradientDifference", "GradientSum", "GramSum", "InfluenceSquares", "LargestEigenvalue",
    "LogisticStep", "MagnitudeCounts", "ResidualCount", "ResidualSquares",
    "ScoreSquares", "ShrunkGradientSum", "SquaredNormSum", "TableCounts",
    "TailSum", "UnitSum", "WeightCounts", "WeightSums",
}  # fmt: skip


def test_a_statistic_takes_groups_only_if_it_says_so():
    """Each of these is replayed with groups; a new one is refused until it multiplies its rows."""
    audited = [cls for cls in release_base._AUDITED if issubclass(cls, release_base.Statistic)]
    assert {cls.__name__ for cls in audited if cls.takes_groups} == GROUP_STATISTICS
    assert not release_base.Statistic.takes_groups


def test_other_statistics_are_not_answered(rng, monkeypatch):
    monkeypatch.setattr(TableCounts, "takes_groups", False)

    class Asks(GradientDescent):
        def solve(self, oracle):
            count = NoisyStatistic(TableCounts(0, np.zeros(1)), GaussianNoise())
            oracle.request(count)
            return super().solve(oracle)

    X, y, _, labels = grouped_data("ridge", rng)
    releases = skdp.DPRidge(solver=Asks()).fit(X, y).privacy_.releases
    assert "table" in {release.kind for release in releases}
    with pytest.raises(ValueError, match=r"'table' release is for single rows.*Nothing was"):
        skdp.DPRidge(solver=Asks()).fit(X, y, groups=labels)


@pytest.mark.parametrize(
    "model", [skdp.DPElasticNet(0.1), skdp.DPLasso(0.1), skdp.DPHuberRegressor()], ids=str
)
@pytest.mark.parametrize("rows_per_group", [None, 3])
def test_other_estimators(rng, model, rows_per_group):
    X, y, w, labels = grouped_data("ridge", rng)
    terms = skdp.Privacy(rows_per_group=rows_per_group)
    model = clone(model).set_params(privacy=terms).fit(X, y, w, groups=labels)
    assert (model.privacy_.unit, model.privacy_.n_groups) == ("group", len(set(labels)))


class TestSplitsByRows:
    """A random split of rows may put rows of one group into both parts."""

    def test_fits_on_both_parts_add_up(self, rng):
        X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
        first, second, y_first, y_second = skdp.model_selection.dp_train_test_split(
            X, y, test_size=30
        )
        labels = np.arange(30) % 10
        models = [
            skdp.DPRidge(epsilon=1.0, scaling="none").fit(rows, target, groups=labels)
            for rows, target in ((first, y_first), (second, y_second))
        ]
        total = skdp.total_privacy(*models, delta=2e-6)
        assert total.unit == "group"
        assert total.epsilon > 1.2

    def test_a_fit_that_is_charged_with_others_has_their_unit(self, rng):
        X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
        with (
            parts.charged_as_a_whole(),
            pytest.raises(ValueError, match=r"protects a group.*Nothing was released"),
        ):
            skdp.DPRidge(scaling="none").fit(X, y, groups=np.arange(60) % 10)
        with (
            parts.charged_as_a_whole("group"),
            pytest.raises(ValueError, match=r"protects a row.*Nothing was released"),
        ):
            skdp.DPRidge(scaling="none").fit(X, y)


def test_the_rows_of_a_group_move_no_other_group():
    labels = np.array(["c", "a", "c", "b", "a"])
    assert GroupLabels("who", labels).codes.tolist() == [2, 0, 2, 1, 0]
    other = GroupLabels("who", np.array(["a", "a", "a", "c", "b", "c"])).codes  # more rows of "a"
    assert other.tolist() == [0, 0, 0, 2, 1, 2]
