"""Replay fits on neighbours with forced answers. Whatever else differs is a leak."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from skdp._fitting.privacy import Privacy, terms_among
from skdp._numbers import MatrixLike
from skdp._oracle.sources.partitioned import Partitions
from skdp.accounting import LABEL, Adjacency
from skdp.audit import neighbours as pairs
from skdp.audit.comparing import ReplayComparison, ReplayReport
from skdp.audit.recording import RecordedRun, record


def replay(
    estimator: BaseEstimator,
    X: MatrixLike | None = None,
    y: ArrayLike | None = None,
    neighbours: Iterable[pairs.NeighbouringPair] | None = None,
    *,
    groups: ArrayLike | None = None,
    partitions: Callable[..., Partitions] | None = None,
    adjacency: str | None = None,
) -> ReplayReport:
    """Fit on data and record every answer, then on a neighbour with the recorded answers forced.

    Two data sets that differ in one record must then look alike in everything: every statistic
    moves by no more than the sensitivity that was charged, the noise is as charged, and all fitted
    attributes, warnings, printed lines and refusals are the same, bit for bit. Whatever differs has
    left by another way than a charged release. On one pair a third fit has the same rows and
    answers, and noise, batches and orders of its own: nothing may differ at all.

    It works for any estimator whose private fits go through `skdp`, with solvers of your own, in
    pipelines and in other estimators.

    Parameters
    ----------
    estimator : estimator
        Not changed: clones of it are fitted, without their ``budget``.
    X, y : arrays, default=None
        The other records, for a shape of your choice. If None, small made-up data, and one pair
        that is fitted by compiled loops if numba is installed.
    neighbours : iterable of skdp.audit.NeighbouringPair, default=None
        Pairs of data sets. If None, pairs with an extreme, null, duplicate, opposite, aligned,
        heavy, light or sparse record in one place.
    groups : array of shape (n_samples,), default=None
        Whose record each is: handed to ``fit``. All records of one person differ at once, and
        in some pairs so does their number.
    partitions : callable, default=None
        ``partitions(X, y, **beside)`` puts a data set in partitions, in a class of your own or in
        `skdp.data.Chunks`, which are fitted in place of it. ``beside`` are ``sample_weight`` and
        ``groups``, if any. Its result must divide rows only by their places or their groups.
    adjacency : {"zero_out", "replace_one", "label"}, default=None
        Relation to audit, set on the clones. None for the estimator's own.

    Returns
    -------
    ReplayReport

    Raises
    ------
    ValueError
        If the estimator adds no noise (epsilon is infinite), so that there is nothing to audit.

    Notes
    -----
    The report shows how far statistics moved, without noise. Use made-up or public rows: a report
    on private rows is not private.

    Of noise it tests the size and the independence of earlier noise, of batches how often they hold
    a record. All tests together raise a false alarm with a probability below 1e-7. It proves
    nothing about the distribution of noise, nor about records that it did not try. The proofs are
    in the docstrings of releases. It does not search elsewhere, such as in files that hostile code
    writes.

    Examples
    --------
    >>> from skdp import DPRidge, audit
    >>> report = audit.replay(DPRidge(solver="gd", max_iter=5))
    >>> report.ok, max(release.ratio for release in report.releases) <= 1
    (True, True)
    """
    plain = audited_clone(estimator, adjacency)
    is_made_up = X is None
    if is_made_up:
        X, y = pairs.made_up_data(estimator)
    relation = pairs.relation_of(plain)
    weighted = takes_weights(plain, X, y, groups)
    if neighbours is None:
        neighbours = pairs.hostile_pairs(plain, X, y, relation, groups, weighted)
        if is_made_up and groups is None:
            for_loops = pairs.pair_for_loops(plain, relation, weighted)
            neighbours = itertools.chain(neighbours, for_loops)
    comparison = ReplayComparison()
    is_fresh_due = True
    for pair in neighbours:
        made = clone(plain).set_params(**pair.parameters)
        data, neighbour = (in_partitions(one, partitions) for one in (pair.data, pair.neighbour))
        first = record(clone(made), data)
        comparison.compare(pair.name, first, record(clone(made), neighbour, first), pair.relation)
        if is_fresh_due and first.error is None:
            is_fresh_due = False
            runs: list[RecordedRun | None] = [*first.runs] or [None]
            others = (record(clone(made), data, first, fresh=True, run=run) for run in runs)
            comparison.compare_fresh(f"{pair.name}, the same with fresh draws", first, others)
    return comparison.report(type(estimator).__name__)


def in_partitions(
    data: Mapping[str, Any], partitions: Callable[..., Partitions] | None
) -> Mapping[str, Any]:
    """Return the arguments of ``fit`` for a data set, in partitions if there is a maker of them."""
    return data if partitions is None else {"X": partitions(**data)}


def audited_clone(estimator: BaseEstimator, adjacency: str | None = None) -> BaseEstimator:
    """Return a clone that charges no budget and states this adjacency."""
    plain = clone(estimator)
    parameters = plain.get_params()
    changes: dict[str, Privacy] = {}
    for name, terms in terms_among(parameters).items():
        given = terms.get_params(deep=False) | {"budget": None}
        if adjacency is not None:
            Adjacency.parse(adjacency, labels=True)
            given["adjacency"] = str(adjacency)
        changes[name] = Privacy(**given)
    for name, value in parameters.items():
        if name.rpartition("__")[2] == "epsilon" and value == math.inf:
            raise ValueError(
                f"{type(estimator).__name__}: epsilon is infinite, so no noise is added and there "
                "is nothing to audit. Set epsilon."
            )
    return plain.set_params(**changes)


def takes_weights(
    estimator: BaseEstimator, X: MatrixLike, y: ArrayLike | None, groups: ArrayLike | None = None
) -> bool:
    """Whether ``fit`` accepts weights, by a trial that also imports all that fits import."""
    given = {"X": X, "y": y, "groups": groups}
    data = {name: one for name, one in given.items() if one is not None}
    # Weights end what adjacency "label" has for free, which is to be audited above all.
    labels_alone = pairs.stated_adjacency(estimator) == LABEL
    if labels_alone or not has_fit_parameter(estimator, "sample_weight"):
        record(clone(estimator), data)
        return False
    weighted = {**data, "sample_weight": np.ones(np.shape(X)[0])}
    return record(clone(estimator), weighted).error is None or bool(
        record(clone(estimator), data).error
    )
