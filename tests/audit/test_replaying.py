"""The replay that users run: what it finds, on what, and what it says."""

from __future__ import annotations

import json
import re
import threading

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skdp
from skdp import audit
from skdp._fitting import data
from skdp._oracle import Solution
from skdp._oracle.noise import SystemSource
from skdp._oracle.sources.memory import MemorySource
from skdp.accounting import Adjacency
from skdp.audit.neighbours import NeighbouringPair, hostile_pairs
from skdp.audit.recording import as_bytes
from skdp.model_selection import DPSearchCV
from skdp.solvers import Solver

FEW = {"solver": "gd", "max_iter": 4, "scaling": "none"}


class TwoSteps(Solver):
    """A third party's solver, private by construction."""

    def __init__(self, clip_norm=0.5):
        self.clip_norm = clip_norm

    def automatic(self, public, problem):
        return {}

    def check_values(self, public, problem):
        pass

    def solve(self, oracle):
        point = oracle.start()
        for _ in range(2):
            point = point - 0.5 * oracle.gradient(point, self.clip_norm)
        return Solution(point, 2)


class Peeking(TwoSteps):
    """One that keeps what it should not have."""

    def solve(self, oracle):
        found = super().solve(oracle)
        if oracle._source is not None:
            self.largest = float(np.clip(oracle._source.records.X, -1e9, 1e9).max())
            return Solution(found.coef + 1e-9 * self.largest, 2)
        return found


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_a_solver_of_a_third_party_is_replayed(adjacency):
    report = audit.replay(skdp.DPRidge(solver=TwoSteps()), adjacency=adjacency)
    assert report.ok, report
    assert len(report.pairs) >= 20
    assert [one.kind for one in report.releases].count("gradient") == 2
    # Hostile records reach the bound; an audit that never does would prove little.
    assert max(one.ratio for one in report.releases) == pytest.approx(1, abs=1e-6)
    assert max(one.ratio for one in report.releases) <= 1
    report = audit.replay(skdp.DPRidge(solver=Peeking(), scaling="none"), adjacency=adjacency)
    assert "coef_ depends on the rows beyond the releases" in str(report)


def keeping(make):
    """A ridge regression that keeps what cannot be pickled."""

    class Keeping(skdp.DPRidge):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight)
            self.kept_ = make(X)
            return self

    return Keeping


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda X: MemorySource.of(X, np.zeros((len(X), 1))), "depends on the rows"),
        (lambda X: lambda: X[0], "depends on the rows"),
        (lambda X: [{"rows": lambda row=X[3]: row}], "depends on the rows"),
        (lambda X: threading.Lock(), "cannot be pickled, so what it holds is not known"),
    ],
)
def test_what_cannot_be_pickled_is_compared_all_the_same(make, said):
    report = audit.replay(keeping(make)(**FEW))
    assert any(finding.text.startswith(f"kept_ {said}") for finding in report.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        skdp.DPLogisticRegression(classes=[0, 1], solver=("gd", {"batch_size": 9}), max_iter=5),
        skdp.DPLinearRegression(solver="shuffled_sgd", max_iter=60),
        make_pipeline(skdp.DPStandardScaler(), skdp.DPRidge(**FEW)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_secure_noise_and_secret_coins_are_repeated(estimator):
    """Batches and orders are drawn from the same source; neighbours get the same ones."""
    report = audit.replay(estimator)
    assert report.ok, report
    assert report.releases
    assert len(report.refused) < len(report.pairs) / 2


class Failing(skdp.DPRidge):
    """One whose fit fails on a long row, once it has an answer."""

    def fit(self, X, y, sample_weight=None, **beside):
        super().fit(X, y, sample_weight, **beside)
        if np.max(X) > 50:
            raise ValueError
        return self


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore::UserWarning")
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
@pytest.mark.parametrize("search", ["private", "plain"])
def test_failures_that_a_search_hides(search, is_first):
    """Whichever of both data sets has the record on which fits fail."""
    model = Failing(**FEW, privacy=skdp.Privacy(adjacency="replace_one"))
    tool = GridSearchCV(model, {"alpha": [0.1, 1.0]}, error_score=0.0, cv=2, refit=False)
    if search == "private":
        terms = skdp.Privacy(noise=skdp.SeededNoise(0), adjacency="replace_one")
        within = {"target_range": (-2.0, 2.0), "holdout": 0.1, "privacy": terms}
        tool = DPSearchCV(model, {"alpha": [0.1, 1.0]}, n_candidates=2, **within)
    X, y = audit.made_up_data(model)
    bad = X.copy()
    bad[0] = 100.0
    sides = [{"X": rows, "y": y} for rows in ((bad, X) if is_first else (X, bad))]
    pair = NeighbouringPair("failing", *sides, Adjacency.REPLACE_ONE)
    report = audit.replay(tool, X, y, [pair])
    assert "depends on the rows" in str(report), report


@pytest.mark.parametrize("scaling", ["auto", "public"])
def test_a_prior_of_public_rows_is_no_finding(scaling):
    X, y = audit.made_up_data(skdp.DPRidge(), (120, 4))
    prior, declared = skdp.PublicSample(X, y=y), skdp.PublicSample(X, target=3.0)
    model = skdp.DPRidge(prior=prior, scaling=declared if scaling == "public" else scaling)
    report = audit.replay(model)
    assert report.ok, report


def test_equal_contents_have_equal_bytes():
    """Whether equal parts are one object, as those of a remembered plan, is not seen."""
    part, other = np.ones(3), np.ones(3)
    assert as_bytes([part, part]) == as_bytes([part, other])
    assert as_bytes([part, part]) != as_bytes([part, other[:2]])
    cycle = [part]
    cycle.append(cycle)
    assert as_bytes(cycle) is not None


def test_rows_of_a_persons_shape():
    X, y = audit.made_up_data(skdp.DPRidge())
    report = audit.replay(
        skdp.DPRidge(**FEW, privacy=skdp.Privacy(adjacency="replace_one")), X[:10], y[:10]
    )
    assert report.ok, report


def test_an_estimator_that_is_no_private_one_is_refused():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(ValueError, match="one adjacency is audited at a time"):
        audit.replay(LogisticRegression())


def test_without_noise_there_is_nothing_to_audit():
    with pytest.raises(ValueError, match="epsilon is infinite"):
        audit.replay(skdp.DPRidge(epsilon=np.inf))


def test_a_warning_about_the_weight_of_one_class_is_found(monkeypatch):
    model = skdp.DPLogisticRegression(**FEW)
    assert audit.replay(model).ok
    original = data.checked_weights

    def loud(*given, **named):
        weights = original(*given, **named)
        return weights if weights is None else np.minimum(1e10 * weights, 1e308)

    monkeypatch.setattr(data, "checked_weights", loud)
    report = audit.replay(model)
    assert not report.ok
    assert "heavy record in a heavy class" in str(report)


def test_persons_are_known_by_labels():
    rng = np.random.default_rng(0)
    labels = [f"member {k // 3}" for k in range(60)]
    X, y = rng.standard_normal((60, 4)), rng.standard_normal(60)
    pairs = [*hostile_pairs(skdp.DPRidge(), X, y, Adjacency.ZERO_OUT, labels)]
    # Other pairs change one row of a person, or the number of rows.
    complete = [one for one in pairs if not re.search("in parts|group of", one.name)]
    assert {int((pair.neighbour["sample_weight"] == 0).sum()) for pair in complete} == {3}
    report = audit.replay(skdp.DPRidge(**FEW), X, y, neighbours=pairs[:2], groups=labels)
    assert report.ok


@pytest.mark.parametrize(
    ("n_features", "distance", "sign"), [(1, 2, 1), (1, 7, -1), (3, 2, -1), (3, 7, 1)]
)
def test_noise_that_comes_again_later_is_found(
    raw_weights, monkeypatch, n_features, distance, sign
):
    drawn = []
    original = SystemSource.gaussian

    def gaussian(self, scale, size):
        drawn.append(original(self, scale, size))
        is_new = (len(drawn) - 1) // distance % 2 == 0
        return drawn[-1] if is_new else sign * drawn[-1 - distance]

    monkeypatch.setattr(SystemSource, "gaussian", gaussian)
    X = np.random.default_rng(0).standard_normal((30, n_features))
    model = skdp.DPRidge(**FEW, fit_intercept=False)
    assert "came again" in str(audit.replay(model, X, X[:, 0]))


def test_a_report_states_a_fit_and_is_written(tmp_path):
    """The statement is that of a fitted model, or of a fit on made-up rows."""
    model = skdp.DPLinearRegression(**FEW, epsilon=2.0)
    assert "(2, 1e-06)-differentially private" in str(audit.report(model, n_fits=100))
    model.fit(np.eye(3), np.arange(3))
    report = audit.report(model, tmp_path / "new", n_fits=200, random_state=0)
    assert report.ok
    assert report.statement is model.privacy_
    found = json.loads((tmp_path / "new" / "audit.json").read_text("utf-8"))
    assert skdp.PrivacyStatement.from_dict(found["statement"]) == model.privacy_
    assert found["canaries"]["mu_lower"] <= found["statement"]["mu"]
    kinds = {release["kind"] for release in found["replay"]["releases"]}
    assert {"weight_counts", "weight_sums", "gradient"} <= kinds
    assert found["replay"]["findings"] == []
    assert "no alarm" in (tmp_path / "new" / "audit.html").read_text("utf-8")
