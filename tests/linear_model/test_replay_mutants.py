"""Bugs that were seen in other libraries, seeded one by one: replay must catch each."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import skdp
from replays import N_STEPS, data_for, differing, make_logistic, opposite_records
from skdp import audit
from skdp.accounting import Adjacency, Gaussian
from skdp.linear_model import base, logistic
from skdp.oracle import Oracle
from skdp.oracle.kernels import clipped_gradients as kernels
from skdp.oracle.releases import gradients
from skdp.oracle.releases.gradients import GradientSum
from skdp.oracle.releases.mechanisms import GaussianNoise, NoisyStatistic
from skdp.solvers.clip_tracker import ClipTracker


def _patched_sum(monkeypatch, change):
    original = GradientSum.total
    monkeypatch.setattr(
        GradientSum, "total", lambda self, rows, context: change(original, self, rows, context)
    )


def mutant_intercept_not_clipped(monkeypatch):
    hypot = np.hypot
    monkeypatch.setattr(np, "hypot", lambda a, b: a if np.ndim(a) else hypot(a, b))


def mutant_no_clipping(monkeypatch):
    monkeypatch.setattr(kernels, "clip_l2", lambda residuals, clip_norm, inverse_norms: None)


def mutant_clip_twice_as_large(monkeypatch):
    original = kernels.clip_l2
    monkeypatch.setattr(
        kernels,
        "clip_l2",
        lambda residuals, clip_norm, inverse: original(residuals, 2 * clip_norm, inverse),
    )


def mutant_weights_after_clipping(monkeypatch):
    original = gradients.clipped_gradients

    def total(records, *arguments):
        plain = records.having(None, records.inverse_norms)
        return sum(
            weight * original(one, *arguments)
            for weight, one in zip(records.weights, plain.blocks(1), strict=True)
        )

    monkeypatch.setattr(gradients, "clipped_gradients", total)


def mutant_private_attribute(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        original(self, rows, *start)
        self.solver_.notes = {"mean": np.clip(X, -1e9, 1e9).mean()}
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_warning_about_the_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        if np.abs(X).max() > 1000:
            warnings.warn("X has outliers", UserWarning, stacklevel=2)
        return original(self, rows, *start)

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_less_noise_at_the_end(monkeypatch):
    ask, original, answered = Oracle.request, GaussianNoise.scale_of_noise, []

    def asked(self, release):
        if self._source is not None:
            answered.append(release)
        return ask(self, release)

    def scale_of_noise(self, contribution, scale):
        is_late = len(answered) % N_STEPS in (N_STEPS - 1, 0) and answered
        return original(self, contribution, scale) / (1000 if is_late else 1)

    monkeypatch.setattr(Oracle, "request", asked)
    monkeypatch.setattr(GaussianNoise, "scale_of_noise", scale_of_noise)


def mutant_mean_over_private_count(monkeypatch):
    def change(original, self, rows, context):
        return original(self, rows, context) / (1 + (rows.records.targets > 0).sum())

    _patched_sum(monkeypatch, change)


def mutant_step_size_from_the_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        self.max_iter = 12
        self.learning_rate = 1 / np.linalg.norm(np.where(np.abs(X) < 1e9, X, 1e9), 2) ** 2
        return original(self, rows, *start)

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_stopping_by_the_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        self.max_iter = 5 + int(np.abs(X).max() > 100)
        return original(self, rows, *start)

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_polished_without_noise(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        original(self, rows, *start)
        self.coef_ = self.coef_ + 1e-9 * np.clip(X, -1e9, 1e9).mean()
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_centred_by_the_rows(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        original(self, rows, *start)
        self.intercept_ = self.intercept_ - np.clip(X, -1e9, 1e9).mean(axis=0) @ self.coef_.ravel()
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


def mutant_classes_from_the_rows(monkeypatch):
    def read(self, y, dtype):
        return base.Targets((y > 0).astype(dtype)[:, None], 1, classes=np.unique(y))

    monkeypatch.setattr(logistic.DPLogisticRegression, "_read_targets", read)


def mutant_score_kept(monkeypatch):
    original = base.DPLinearModel._fit

    def fit(self, rows, *start):
        X = rows.X
        original(self, rows, *start)
        self.loss_ = float(np.clip(X, -1e9, 1e9).sum())
        return self

    monkeypatch.setattr(base.DPLinearModel, "_fit", fit)


MUTANTS = {name: value for name, value in globals().items() if name.startswith("mutant_")}


def check_all(replay, rng, adjacency):
    """Replay with one record that differs; the label 1 is in no other."""
    X, y = data_for("logistic", rng)
    y[:] = 0
    pairs = [
        differing(X, y, adjacency, 1, row, target, 40.0)[::-1]
        for row in (1e4 * np.ones(4), np.zeros(4), np.full(4, 3.0), -np.ones(4))
        for target in (0, 1)
    ]
    replay.check_each(
        lambda: make_logistic(adjacency=str(adjacency), clip_norm=0.3, scaling="none"),
        pairs,
        adjacency,
    )


@pytest.mark.usefixtures("raw_weights")
@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_replay_catches_mutants(replay, leak, rng, monkeypatch, mutant, adjacency):
    MUTANTS[mutant](monkeypatch)
    with pytest.raises(leak):
        check_all(replay, rng, adjacency)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_without_a_mutant_there_is_nothing_to_catch(replay, rng, adjacency):
    check_all(replay, rng, adjacency)


COMPILED_MUTANTS = {
    "no clipping": lambda norm, inverse: np.full(len(inverse), np.inf),
    "clipped at twice the norm": lambda norm, inverse: 2 * norm * inverse,
    "clipped by the mean norm": lambda norm, inverse: np.full(len(inverse), norm * inverse.mean()),
}


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("mutant", [None, *COMPILED_MUTANTS])
@pytest.mark.usefixtures("raw_weights")
def test_replay_catches_mutants_of_compiled_loops(
    compiled_kernels, replay, leak, rng, monkeypatch, mutant, adjacency
):
    if mutant is None:
        check_all(replay, rng, adjacency)
        return
    monkeypatch.setattr(kernels, "residual_limits", COMPILED_MUTANTS[mutant])
    with pytest.raises(leak):
        check_all(replay, rng, adjacency)


def test_replay_catches_forgotten_factor_of_replace_one(replay, leak, rng, monkeypatch):
    """Under replace-one a sum moves by twice the bound: halving that must be seen."""
    monkeypatch.setattr(Gaussian, "sensitivity", lambda self, adjacency: 1.0)
    with pytest.raises(leak, match="times its sensitivity"):
        replay.check(
            lambda: make_logistic(adjacency="replace_one", clip_norm=0.3),
            *opposite_records(rng),
            Adjacency.REPLACE_ONE,
        )


@pytest.mark.parametrize("is_stale", [False, True])
def test_replay_catches_a_kept_total_whose_gradients_had_a_larger_bound(monkeypatch, is_stale):
    original = NoisyStatistic.answer

    def answer(self, rows, context, noise_source):
        last = rows.last_total
        if last is not None and type(last[0]) is type(self.statistic):
            rows.last_total = self.statistic, context, last[2]
        return original(self, rows, context, noise_source)

    if is_stale:
        monkeypatch.setattr(NoisyStatistic, "answer", answer)

    def falling(self, oracle, point, rows):
        self._norm *= 0.6
        return self._norm

    monkeypatch.setattr(ClipTracker, "next", falling)
    model = skdp.DPRidge(solver="gd", max_iter=6, scaling="none")
    report = audit.replay(model)
    assert report.ok != is_stale
    assert ("times its sensitivity" in str(report)) == is_stale
