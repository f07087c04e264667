"""Groups that arrive in blocks, each of them as a whole: the fit of memory, replayed, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import skdp
from grouped import group_neighbours, grouped_data
from skdp._oracle.sources import stream
from skdp.accounting import Adjacency
from skdp.solvers import AdaptiveShuffledSGD, ShuffledSGD

both = pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
SOLVERS = {
    "shuffled": ShuffledSGD(max_iter=6),
    "adaptive": AdaptiveShuffledSGD(max_iter=6),
}


def in_blocks(X, y, groups, n_blocks=4):
    """Blocks of whole groups; a block of the solver takes parts of several."""
    for labels in np.array_split(np.unique(groups), n_blocks):
        rows = np.flatnonzero(np.isin(groups, labels))
        yield X[rows], y[rows], groups[rows]


class Streamed:
    """A model that is fitted by ``fit_blocks``, in the harness of the others."""

    def __init__(self, solver, adjacency="zero_out", classes=None):
        kind = skdp.DPLinearRegression if classes is None else skdp.DPLogisticRegression
        given = {} if classes is None else {"classes": classes}
        self.model = kind(
            solver=solver,
            scaling="none",
            privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
            **given,
        )

    def fit(self, X, y, sample_weight=None, groups=None):
        n_groups = len(np.unique(groups))
        self.model.fit_blocks(
            in_blocks(X, y, groups),
            n_groups=n_groups,
            n_features=X.shape[1],
            sparse=sparse.issparse(X),
        )
        return self

    def get_params(self, deep=True):
        return {}


def check(replay, rng, adjacency, solver, kind="ridge", change=lambda X: X, numbers=(1, 2, 9, 40)):
    classes = [0, 1] if kind == "logistic" else None
    data = grouped_data(kind, rng)
    for there, other in group_neighbours(kind, data, adjacency, rng, numbers):
        pair = [(change(X), y, None, labels) for X, y, _, labels in (there, other)]
        if adjacency is Adjacency.ZERO_OUT:  # no weights here, so a null row has a target of 0
            pair = [(X, np.where(w == 0, 0, y), None, g) for (X, y, _, g), (_, _, w, _) in
                    zip(pair, (there, other), strict=True)]  # fmt: skip
        replay.check(lambda: Streamed(solver, adjacency, classes), *pair, adjacency)


@both
@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_but_releases(replay, rng, adjacency, solver):
    check(replay, rng, adjacency, SOLVERS[solver])


def test_places_are_those_of_groups(rng):
    """However groups arrive, blocks hold whole groups, in the order of their arrival."""
    codes = rng.permutation(np.append(np.arange(50), rng.integers(0, 9, 150)))
    X = np.column_stack([codes, rng.standard_normal(200)])
    y = X[:, 1]
    seen = []

    def made(X, targets, weights, groups):
        seen.append((X[:, 0], groups))
        return stream.MemorySource.of(X, targets, weights, None, 0.0)

    pieces = [
        (block[0], block[1][:, None], None, np.unique(block[2], return_inverse=True)[1])
        for block in in_blocks(X, y, codes, 7)
    ]
    nothing = (X[:0], y[:0, None], None, np.zeros(0, dtype=int))
    source = stream.StreamSource(iter(pieces), 60, made, nothing)
    cuts = (0, 13, 26, 40, 55, 60)
    for index in range(5):
        source.block(cuts, index, None)
    edges = [0, 13, 26, 40, 50]
    for (found, groups), start, stop in zip(seen, edges, edges[1:], strict=False):
        assert sorted(set(found)) == list(range(start, stop))
        np.testing.assert_array_equal(found - start, groups)
        assert len(found) == np.isin(codes, np.arange(start, stop)).sum()
    assert len(seen[-1][0]) == 0, "places that no group arrives for are empty"


def test_the_statement(rng):
    X, y, _, labels = grouped_data("ridge", rng)
    model = skdp.DPRidge(scaling="none")
    model.fit_blocks(in_blocks(X, y, labels), n_groups=len(set(labels)), n_features=4)
    statement = model.privacy_
    assert (statement.unit, statement.n_groups) == ("group", len(set(labels)))
    assert statement.n_rows is None
    assert any("arrived in one block" in text for text in statement.assumptions)
    n, plain = len(set(labels)), skdp.DPRidge(scaling="none")
    plain.fit_blocks([(X[:n], y[:n])], n_samples=n, n_features=4)
    assert plain.privacy_.releases == statement.releases


REFUSED = {
    "n_groups must be": {"n_groups": 0},
    "n_samples must be": {},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused_before_the_charge(rng, message):
    X, y, _, labels = grouped_data("ridge", rng)
    budget = skdp.PrivacyBudget(3.0, 1e-6)
    with pytest.raises(ValueError, match=message):
        skdp.DPRidge(scaling="none", privacy=skdp.Privacy(budget=budget)).fit_blocks(
            in_blocks(X, y, labels), n_features=4, **REFUSED[message]
        )
    assert budget.n_fits == 0


def test_refusals_of_blocks_do_not_tell_the_number_of_rows(rng):
    X, y, _, labels = grouped_data("ridge", rng)
    blocks = {
        "must have one entry for each row": (X, y, labels[:-1]),
        "a tuple (X, y, groups)": (X, y),
        "holds missing": (np.where(X > 0, X, np.nan), y, labels),
        "inconsistent numbers": (X, y[:-1], labels[:-1]),
    }
    for message, block in blocks.items():
        with pytest.raises(ValueError, match="budget of this fit") as refusal:
            skdp.DPRidge(scaling="none").fit_blocks(iter([block]), n_groups=30, n_features=4)
        assert message in str(refusal.value) or "one entry" in str(refusal.value)
        assert str(len(y)) not in str(refusal.value)
    with pytest.warns(UserWarning, match=r"more groups arrived than the 9 .* as n_groups"):
        skdp.DPRidge(scaling="none").fit_blocks(in_blocks(X, y, labels), n_groups=9, n_features=4)
