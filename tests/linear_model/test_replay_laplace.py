"""Laplace noise: nothing but releases leaves, by L1 sensitivity, and mutants of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import skdp
from replays import (
    ESTIMATORS,
    LABELS,
    N_ROWS,
    data_for,
    differing,
    make_logistic,
    neighbours,
    opposite_records,
)
from skdp.accounting import Adjacency, Laplace
from skdp.oracle.kernels import clipped_gradients as kernels
from skdp.oracle.releases import gradients, spectral
from skdp.oracle.releases.gradients import GradientSum
from skdp.oracle.releases.mechanisms import Contribution, LaplaceNoise
from skdp.oracle.sources.records import quotient
from skdp.solvers import GradientDescent, HeavyBallDescent, MultistageNesterov, Nesterov


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("kind", ESTIMATORS)
class TestReplay:
    def check(self, replay, rng, kind, adjacency, convert=lambda data: data, **parameters):
        X, y = data_for(kind, rng)

        def make():
            return ESTIMATORS[kind](adjacency=str(adjacency), delta=0.0, **parameters)

        pairs = neighbours(kind, X, y, adjacency)
        replay.check_each(make, (map(convert, pair) for pair in pairs), adjacency)

    def test_nothing_but_releases(self, replay, rng, kind, adjacency):
        self.check(replay, rng, kind, adjacency)

    def test_with_declared_bounds(self, replay, rng, kind, adjacency):
        self.check(replay, rng, kind, adjacency, scaling=skdp.RowNorm(1.5), fit_intercept=False)

    def test_sparse_float32(self, replay, rng, kind, adjacency):
        def convert(data):
            Z, t, w = data
            return sparse.csr_array(np.clip(Z, -1e30, 1e30).astype(np.float32)), t, w

        self.check(replay, rng, kind, adjacency, convert)


# Kinds, mechanisms and adjacencies with solvers in turn: each pair of any two is there.
ACCELERATED = [HeavyBallDescent, MultistageNesterov, Nesterov]
CASES = [
    (kind, ACCELERATED[(i + j + k) % 3], delta, adjacency)
    for i, kind in enumerate(["logistic", "multinomial", "ridge"])
    for j, delta in enumerate([0.0, 1e-6])
    for k, adjacency in enumerate(Adjacency)
]


@pytest.mark.parametrize(("kind", "solver", "delta", "adjacency"), CASES)
def test_accelerated_solvers_that_ask_for_the_curvature(
    replay, rng, kind, solver, delta, adjacency
):
    X, y = data_for(kind, rng)

    def make():
        chosen = solver(max_iter=6, curvature="private")
        if kind == "ridge":
            return skdp.DPRidge(
                solver=chosen,
                delta=delta,
                privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
            )
        return skdp.DPLogisticRegression(
            classes=LABELS[kind],
            solver=chosen,
            delta=delta,
            privacy=skdp.Privacy(adjacency=str(adjacency), noise=skdp.SeededNoise(0)),
        )

    replay.check_each(make, neighbours(kind, X, y, adjacency), adjacency)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_replay_catches_an_eigenvalue_of_rows_as_they_are(
    replay, leak, rng, monkeypatch, adjacency
):
    original = spectral.second_moments.plain_gram
    monkeypatch.setattr(
        spectral.second_moments,
        "plain_gram",
        lambda records: original(replace(records, shrink=None)),
    )
    X, y = data_for("logistic", rng)
    long, other = X.copy(), X.copy()
    long[0], other[0] = 1e4, 0.0
    weights = np.ones(N_ROWS)
    with pytest.raises(leak, match="times its sensitivity"):
        replay.check(
            lambda: make_logistic(
                delta=0.0, adjacency=str(adjacency), solver=Nesterov(curvature="private")
            ),
            (long, y, weights),
            (other, y, weights),
            adjacency,
        )


@pytest.mark.parametrize("sampling", ["poisson", "fixed_size", "shuffled"])
def test_nothing_but_releases_on_batches(replay, rng, sampling):
    X, y = data_for("logistic", rng)

    def make():
        solver = GradientDescent(max_iter=9, batch_size=15, sampling=sampling)
        return skdp.DPLogisticRegression(
            classes=[0, 1],
            solver=solver,
            privacy=skdp.Privacy(adjacency="replace_one", noise=skdp.SeededNoise(0)),
            delta=0.0,
        )

    pairs = neighbours("logistic", X, y, Adjacency.REPLACE_ONE)
    replay.check_each(make, pairs, Adjacency.REPLACE_ONE)


# Each of these breaks the privacy of Laplace noise, and must be caught.


def mutant_wrong_norm_of_rows(monkeypatch):
    monkeypatch.setattr(gradients, "inverse_l1_norms", lambda records: records.inverse_norms)


def mutant_wrong_norm_of_residuals(monkeypatch):
    monkeypatch.setattr(kernels, "clip_l1", kernels.clip_l2)


def mutant_no_clipping(monkeypatch):
    monkeypatch.setattr(kernels, "clip_l1", lambda residuals, clip_norm, inverse_norms: None)


def mutant_intercept_not_in_the_norm(monkeypatch):
    def inverse(records):
        return quotient(1.0, np.abs(records.X).sum(axis=1) * records.shrink)

    monkeypatch.setattr(gradients, "inverse_l1_norms", inverse)


def mutant_sum_taken_for_an_l2_sum(monkeypatch):
    """Clipped in L2 norm and hidden by Laplace noise, which is told that it was L1."""
    monkeypatch.setattr(LaplaceNoise, "require_norm", lambda self, contribution: None)
    original = GradientSum.total

    def total(self, rows, context):
        return original(GradientSum(self.point, self.clip_norm, 2), rows, context)

    monkeypatch.setattr(GradientSum, "total", total)


def mutant_scale_taken_for_a_standard_deviation(monkeypatch):
    """The slip of the published code: noise sqrt(2) too small."""
    original = LaplaceNoise.scale_of_noise
    monkeypatch.setattr(
        LaplaceNoise,
        "scale_of_noise",
        lambda self, contribution, scale: original(self, contribution, scale) / np.sqrt(2),
    )


MUTANTS = {name: value for name, value in globals().items() if name.startswith("mutant_")}


def check_all(replay, rng, kind, adjacency):
    """Replay with one heavy record that differs: null there, or turned around, or relabelled."""
    X, y = data_for(kind, rng)
    pairs = []
    for row in (2 * np.ones(4), np.full(4, -1e4), np.zeros(4)):
        there, neighbour = differing(X, y, adjacency, 0, row, 1, 1e4)
        if adjacency is Adjacency.ZERO_OUT:
            pairs.append((there, neighbour))
            continue
        for sign, flip in itertools.product((-1, 1), (0, 1)):
            pairs.append((there, differing(X, y, adjacency, 0, sign * row, flip, 1e4)[0]))
    replay.check_each(
        lambda: ESTIMATORS[kind](adjacency=str(adjacency), delta=0.0, clip_norm=0.3),
        pairs,
        adjacency,
    )


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_replay_catches_mutants(replay, leak, rng, monkeypatch, mutant, adjacency):
    MUTANTS[mutant](monkeypatch)
    kind = "multinomial" if mutant == "mutant_wrong_norm_of_residuals" else "logistic"
    with pytest.raises(leak):
        check_all(replay, rng, kind, adjacency)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("kind", ["multinomial", "logistic"])
def test_without_a_mutant_there_is_nothing_to_catch(replay, rng, kind, adjacency):
    check_all(replay, rng, kind, adjacency)


def test_replay_catches_forgotten_factor_of_replace_one(replay, leak, rng, monkeypatch):
    monkeypatch.setattr(Laplace, "sensitivity", lambda self, adjacency: 1.0)
    with pytest.raises(leak, match="times its sensitivity"):
        replay.check(
            lambda: ESTIMATORS["logistic"](adjacency="replace_one", delta=0.0, clip_norm=0.3),
            *opposite_records(rng),
            Adjacency.REPLACE_ONE,
        )


def test_a_mechanism_refuses_the_other_norm():
    for order, noise in ((2, LaplaceNoise()), (1, skdp.oracle.GaussianNoise())):
        contribution = Contribution(1.0, 2.0, size=3, total=10.0, order=order)
        for scale in (0.0, 1.0):
            with pytest.raises(ValueError, match=f"bounded in the L{order} norm"):
                noise.std(contribution, scale)
            with pytest.raises(ValueError, match="Nothing was released"):
                noise.add_noise(np.zeros(3), contribution, scale, None)
