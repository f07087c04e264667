"""Every audited class has a test that fails when its sensitivity is halved."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.releases import OTHERS, PROOFS
from docs import release_table
from skdp import audit
from skdp.audit.neighbours import hostile_pairs, made_up_data
from skdp.audit.replaying import relation_of, takes_weights
from skdp.fitting import preparation
from skdp.oracle.releases import base

# Adjacencies in turn: sensitivities under both are tested with each release.
CASES = [(kind, ("zero_out", "replace_one")[turn % 2]) for turn, kind in enumerate(PROOFS)]


def test_every_audited_class_is_listed():
    assert set(PROOFS) | set(OTHERS) == base._AUDITED
    assert not set(PROOFS) & set(OTHERS)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize(
    ("kind", "adjacency"), CASES, ids=lambda one: getattr(one, "__name__", one)
)
def test_half_of_the_sensitivity_is_found(kind, adjacency, monkeypatch):
    """And the whole of it passes; of the pairs those are replayed again that moved farthest."""
    estimator = PROOFS[kind].estimator(adjacency)
    X, y = made_up_data(estimator)
    relation = relation_of(estimator)
    pairs = [*hostile_pairs(estimator, X, y, relation, None, takes_weights(estimator, X, y))]
    report = audit.replay(estimator, X, y, pairs)
    assert report.ok, report
    PROOFS[kind].halve(monkeypatch)
    preparation._plans.clear()
    farthest = {release.pair for release in report.releases}
    some = [one for one in pairs if one.name in farthest]
    assert not (audit.replay(estimator, X, y, some).ok and audit.replay(estimator, X, y, pairs).ok)


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
