"""Groups of rows as the unit of privacy: what they change, what they refuse, what they tell."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import skdp
from grouped import PAIRS, grouped_data
from replays import ASKED_BY, ESTIMATORS
from skdp._fitting.grouping import GroupLabels
from skdp._fitting.refusals import without_row_counts
from skdp._oracle import GaussianNoise, NoisyStatistic
from skdp._oracle.releases import base as release_base
from skdp._oracle.releases.histograms import TableCounts
from skdp.preprocessing import DPStandardScaler
from skdp.solvers import GradientDescent

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


def test_counts_in_messages():
    message = "Expected 2D array, shape (987, 3), n=12 1.5 GiB x4; 3 features, .reshape(-1, 1)"
    shown = "Expected 2D array, shape (..., ...), n=... ... GiB x4; 3 features, .reshape(-1, 1)"
    with pytest.raises(ValueError, match=re.escape(shown)), without_row_counts(True):
        raise ValueError(message)


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
        pickle.dumps(GroupLabels(labels))


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
    "BinCounts", "CappedHessian", "CappedResiduals", "CutCount", "DirectionalSum",
    "GradientDifference", "GradientSum", "GramSum", "InfluenceSquares",
    "LogisticStep", "MagnitudeCounts", "ResidualCount", "ResidualSquares",
    "ScoreSquares", "ShrunkGradientSum", "TableCounts",
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


def test_the_rows_of_a_group_move_no_other_group():
    labels = np.array(["c", "a", "c", "b", "a"])
    assert GroupLabels(labels).codes.tolist() == [2, 0, 2, 1, 0]
    other = GroupLabels(np.array(["a", "a", "a", "c", "b", "c"])).codes  # more rows of "a"
    assert other.tolist() == [0, 0, 0, 2, 1, 2]
