"""Groups of rows in partitions: refusals, and passes over other groups."""

from __future__ import annotations

import re

import numpy as np
import pytest

import skdp
from in_partitions import (
    PEOPLE,
    RNG,
    LaterPasses,
    Pickled,
    X,
    Y,
    seeded,
)
from skdp._fitting import rows as partitions
from skdp._oracle.noise import SystemSource

# ---------------------------------------------------------------- groups of rows


def in_parts(*pairs):
    return Pickled(*pairs, beside=["groups"])


FIRST, SECOND = ((X[part], Y[part], PEOPLE[part]) for part in (slice(0, 900), slice(900, 2000)))


@pytest.mark.parametrize(
    ("second", "match"),
    [
        (SECOND[:2], "groups"),
        ((X[900:], Y[900:], np.where(Y[900:] > 2, None, PEOPLE[900:])), "missing labels"),
        ((X[900:], Y[900:-1], PEOPLE[900:]), "Their lengths differ"),
        ((X[900:], np.where(Y > 3, np.nan, Y)[900:], PEOPLE[900:]), "y"),
        ((X[900:, :0], Y[900:], PEOPLE[900:]), "0 feature"),  # scikit-learn quotes the shape
    ],
    ids=["no labels", "missing", "too few", "bad target", "no columns"],
)
def test_bad_groups_are_refused_before_the_charge_without_row_counts(second, match):
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=match) as refusal:
            skdp.DPRidge().fit(in_parts(FIRST, second))
        assert budget.n_fits == 0
    assert not {"900", "1100", "1099", "2000"} & set(re.findall(r"\d+", str(refusal.value)))
    assert "person" not in str(refusal.value)


ARRIVALS = X, Y, RNG.integers(0, 300, 2000)  # in no order of the persons
CUT = {
    "strings": (FIRST, (X[900:], Y[900:], PEOPLE[899:-1])),
    "unsorted": [tuple(one[part] for one in ARRIVALS) for part in (slice(1000), slice(1000, None))],
    "many": [(X, Y, np.arange(2000) + start) for start in (0, 1000)],
}


@pytest.mark.parametrize("kind", CUT)
def test_groups_that_are_cut_by_the_division_are_refused_before_the_charge(kind):
    with skdp.PrivacyBudget(3.0, 1e-5) as budget:
        with pytest.raises(ValueError, match=r"DPRidge: rows of one group lie in .*Nothing was"):
            skdp.DPRidge().fit(in_parts(*CUT[kind]))
        assert budget.n_fits == 0


def test_hash_values_of_labels_show_no_labels_and_no_more_than_some():
    """They change with the key, not with the type of equal labels or the number of their rows."""
    labels, key = np.arange(5000) % 2000, b"key"
    found = partitions.hashes_of_labels(labels, key)
    assert len(found) == partitions.MOST_HASHES
    assert not set(found) & set(partitions.hashes_of_labels(labels, b"other"))
    for same in (labels[:2000].astype(np.int32), labels.astype(object)):
        assert np.array_equal(partitions.hashes_of_labels(same, key), found)
    assert not set(found) & set(partitions.hashes_of_labels(labels.astype(str), key))


@pytest.mark.parametrize("kind", ["twice", "one more", "rows"])
def test_other_groups_in_later_passes(kind, monkeypatch):
    """Their number is compared; that of their rows is private, and a group keeps to its bound."""
    change = {
        "twice": lambda pairs: [FIRST, SECOND, FIRST],
        "one more": lambda pairs: [(*FIRST[:2], np.r_[["new"], FIRST[2][1:]]), SECOND],
        "rows": lambda pairs: [tuple(np.concatenate([one, one]) for one in FIRST), SECOND],
    }[kind]
    rows = LaterPasses(change, FIRST, SECOND)
    rows._beside = ["groups"]
    if kind == "rows":
        expected = seeded(skdp.DPRidge).fit(X, Y, groups=PEOPLE)
        found = seeded(skdp.DPRidge).fit(rows)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
        return
    drawn = []
    monkeypatch.setattr(SystemSource, "gaussian", lambda *figures: drawn.append(figures))
    with pytest.raises(ValueError, match=r"read the same rows.*budget of this fit is spent"):
        skdp.DPRidge().fit(rows)
    assert not drawn
