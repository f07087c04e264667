"""Every audited class has a test that fails when its sensitivity is halved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from benchmarks.releases import NOT_OF_LABELS, OTHERS, PROOFS
from docs import release_table
from skdp import audit
from skdp._fitting import estimator as fits
from skdp._oracle import ShuffledPass
from skdp._oracle.releases import base, moments
from skdp.audit.neighbours import hostile_pairs, made_up_data, relation_of, stated_adjacency
from skdp.audit.recording import record
from skdp.audit.replaying import takes_weights

ADJACENCIES = "zero_out", "replace_one", "label"
GROUPS = np.arange(60) % 30  # whose rows have one label
NO_GROUPS = "is for single rows: its proof does not hold for groups"
OF_PUBLIC_ANSWERS = "there was no noise", "a fit without a release"
# Charged as if rows differed as well, by twice the distance of two labels.
CHARGED_TWICE = {(moments.LogisticStep, "label")}


def test_every_audited_class_is_listed():
    assert set(PROOFS) | set(OTHERS) == base._AUDITED
    assert not set(PROOFS) & set(OTHERS)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", PROOFS, ids=lambda kind: kind.__name__)
def test_half_of_the_sensitivity_is_found(raw_weights, kind, adjacency):
    """And the whole of it passes, for rows and for groups if the release is for groups."""
    estimator = PROOFS[kind].estimator(adjacency)
    X, y = made_up_data(estimator)
    pairs = pairs_of(estimator, X, y)
    report = audit.replay(estimator, X, y, pairs)
    expect_the_whole_to_pass(report, kind, adjacency)
    farthest = {release.pair for release in report.releases}
    if not is_unmoved(kind, adjacency):
        expect_the_half_to_be_found(kind, estimator, X, y, pairs, farthest)
    if refuses_groups(estimator, X, y) or kind is ShuffledPass:  # groups have plain requests
        return
    # Of groups those pairs that moved the sum of rows the farthest, and other numbers of rows.
    named = pairs_of(estimator, X, y, GROUPS, farthest)
    report = audit.replay(estimator, X, y, named, groups=GROUPS)
    expect_the_whole_to_pass(report, kind, adjacency)
    if is_unmoved(kind, adjacency) or (kind, adjacency) in CHARGED_TWICE:
        return
    farthest = {release.pair for release in report.releases}
    pairs = pairs_of(estimator, X, y, GROUPS)
    expect_the_half_to_be_found(kind, estimator, X, y, pairs, farthest, GROUPS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", PROOFS, ids=lambda kind: kind.__name__)
def test_every_pair_of_groups_passes(raw_weights, kind, adjacency):
    estimator = PROOFS[kind].estimator(adjacency)
    X, y = made_up_data(estimator)
    if not refuses_groups(estimator, X, y):
        pairs = pairs_of(estimator, X, y, GROUPS)
        report = audit.replay(estimator, X, y, pairs, groups=GROUPS)
        expect_the_whole_to_pass(report, kind, adjacency)


def refuses_groups(estimator, X, y):
    """Whether the release is for single rows, which the fit says."""
    refusal = record(clone(estimator), {"X": X, "y": y, "groups": GROUPS}).error
    assert refusal is None or NO_GROUPS in str(refusal)
    return refusal is not None


def pairs_of(estimator, X, y, groups=None, names=()):
    """Return the pairs of data sets of these names, or all."""
    weighted = takes_weights(estimator, X, y, groups)
    every = hostile_pairs(estimator, X, y, relation_of(estimator), groups, weighted)
    if stated_adjacency(estimator) == "label":  # with weights by class, no features are public
        every = (one for one in every if not one.parameters)
    return [one for one in every if not names or one.name in names or "group of" in one.name]


def is_unmoved(kind, adjacency):
    return adjacency == "label" and kind in NOT_OF_LABELS


def expect_the_whole_to_pass(report, kind, adjacency):
    findings = [str(one) for one in report.findings]
    if is_unmoved(kind, adjacency):
        assert min((release.ratio for release in report.releases), default=0.0) < 0.5
        findings = [text for text in findings if not text.endswith(OF_PUBLIC_ANSWERS)]
    assert not findings, report


def expect_the_half_to_be_found(kind, estimator, X, y, pairs, farthest, groups=None):
    """Of the pairs those are replayed again that moved farthest."""
    some = [one for one in pairs if one.name in farthest]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fits, "_plans", {})
        PROOFS[kind].halve(patch)
        assert not all(
            audit.replay(estimator, X, y, chosen, groups=groups).ok for chosen in (some, pairs)
        )


def test_the_page_of_releases_is_up_to_date():
    text = release_table.text()
    path = Path(release_table.__file__).parent / "reviewers" / "releases.inc"
    page = path.read_text(encoding="utf-8")
    assert page.strip() == text.strip()
    missing = [kind.__name__ for kind in base._AUDITED if f"* - `{kind.__name__}`\n" not in page]
    assert not missing


def test_tests_that_are_named_exist():
    root = Path(release_table.__file__).parents[1]
    for name in OTHERS.values():
        path, _, function = name.partition("::")
        source = (root / path).read_text(encoding="utf-8")
        assert f"def {function}" in source
