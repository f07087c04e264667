"""Seeded bugs: one function each, which breaks privacy by pytest's monkeypatch."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

import skdp
from benchmarks.releases import PROOFS
from skdp import accounting
from skdp.accounting.events import Gaussian
from skdp.fitting import path
from skdp.linear_model import base, logistic
from skdp.oracle import Oracle, noise, session
from skdp.oracle.exact_sampling import SystemWords
from skdp.oracle.kernels import clipped_gradients as kernels
from skdp.oracle.noise import SystemSource
from skdp.oracle.releases import base as release_base
from skdp.oracle.releases import gradients, mechanisms, samplers, step_noise
from skdp.oracle.sources.memory import MemorySource

STEP = {"solver": "gd", "scaling": "none"}


def one_step(adjacency="zero_out", **parameters):
    return skdp.DPLinearRegression(
        max_iter=1, epsilon=4.0, delta=1e-5, adjacency=adjacency, **{**STEP, **parameters}
    )


def three_steps(adjacency):
    return skdp.DPLogisticRegression(
        max_iter=3, classes=[0, 1], clip_norm=0.3, calibration="none", adjacency=adjacency, **STEP
    )


def batches(adjacency, sampling="poisson"):
    solver = skdp.solvers.GradientDescent(max_iter=6, batch_size=20, sampling=sampling)
    return skdp.DPRidge(solver=solver, scaling="none", adjacency=adjacency)


BUGS = {}


def bug(what, estimator=three_steps):
    """Register a function that seeds a bug with pytest's monkeypatch."""

    def register(function):
        BUGS[function.__name__] = (what, function, estimator)
        return function

    return register


def in_fit(what, before=None, after=None, estimator=three_steps):
    """Seed a bug around the one path of all fits."""

    def seed(patch):
        original = base.DPLinearModel._fit

        def fit(self, X, y, *given, **checks):
            rows = np.clip(np.asarray(X.toarray() if hasattr(X, "toarray") else X), -1e9, 1e9)
            if before is not None:
                X = before(self, X, rows, y) if before(self, X, rows, y) is not None else X
            original(self, X, y, *given, **checks)
            if after is not None:
                after(self, rows, y)
            return self

        patch.setattr(base.DPLinearModel, "_fit", fit)

    BUGS[what.replace(" ", "_")] = (what, seed, estimator)


for kind, proof in PROOFS.items():
    BUGS[f"half_{kind.__name__}"] = (
        f"{kind.__name__}: {proof.mutant}",
        proof.halve,
        proof.estimator,
    )


@bug("factor 2 of replace-one forgotten", lambda adjacency: one_step("replace_one"))
def factor_forgotten(patch):
    patch.setattr(Gaussian, "sensitivity", lambda self, adjacency: 1.0)


@bug("gradients not clipped")
def no_clipping(patch):
    patch.setattr(kernels, "clip_l2", lambda residuals, clip_norm, inverse_norms: None)


@bug("clipped to twice the norm")
def clipped_to_twice(patch):
    original = kernels.clip_l2
    patch.setattr(kernels, "clip_l2", lambda r, clip, inverse: original(r, 2 * clip, inverse))


@bug("the sum is clipped, not its terms")
def clip_after_sum(patch):
    no_clipping(patch)
    original = gradients.GradientSum.total

    def total(self, rows, context):
        found = original(self, rows, context)
        most = self.clip_norm * context.public.n_rows
        return found * min(1.0, most / max(np.linalg.norm(found), 1e-300))

    patch.setattr(gradients.GradientSum, "total", total)


@bug("weights multiply after clipping")
def weights_after_clipping(patch):
    original = gradients.clipped_gradients

    def total(records, *arguments):
        if records.weights is None:
            return original(records, *arguments)
        plain = records.having(None, records.inverse_norms)
        parts = zip(records.weights, plain.blocks(1), strict=True)
        return sum(weight * original(one, *arguments) for weight, one in parts)

    patch.setattr(gradients, "clipped_gradients", total)


@bug("intercept left out of the norm")
def intercept_not_clipped(patch):
    hypot = np.hypot
    patch.setattr(np, "hypot", lambda a, b: a if np.ndim(a) else hypot(a, b))


@bug("draws half as large as they are said to be", one_step)
def noise_drawn_too_small(patch):
    original = SystemSource.gaussian
    patch.setattr(SystemSource, "gaussian", lambda s, a, n: np.rint(original(s, a, n) / 2))


@bug("every answer has the same noise")
def noise_reused(patch):
    kept, original = {}, SystemSource.gaussian
    patch.setattr(
        SystemSource, "gaussian", lambda s, a, n: kept.setdefault((a, n), original(s, a, n))
    )


@bug("secure noise is seeded in secret", one_step)
def secretly_seeded(patch):
    patch.setattr(noise, "_source_of", lambda state: noise.SeededSource(0))


@bug("random words repeat", one_step)
def words_repeat(patch):
    patch.setattr(
        SystemWords,
        "__call__",
        lambda self, n: np.random.default_rng(0).integers(0, 2**64, n, dtype=np.uint64),
    )


@bug("uniform noise of the right variance", one_step)
def uniform_noise(patch):
    def gaussian(self, scale, size):
        return np.rint(np.random.default_rng().uniform(-1, 1, size) * scale * 3**0.5)

    patch.setattr(SystemSource, "gaussian", gaussian)


@bug("only half of the coordinates get noise")
def some_without_noise(patch):
    original = SystemSource.gaussian

    def gaussian(self, scale, size):
        drawn = original(self, scale, size)
        drawn.ravel()[::2] = 0.0
        return drawn

    patch.setattr(SystemSource, "gaussian", gaussian)


@bug("less noise in later steps")
def less_noise_later(patch):
    original, calls = mechanisms.GaussianNoise.noisy, []

    def noisy(self, statistic, contribution, scale, source):
        calls.append(1)
        return original(self, statistic, contribution, scale / (1 + len(calls) % 3), source)

    patch.setattr(mechanisms.GaussianNoise, "noisy", noisy)


@bug("statistic not rounded to the grid", one_step)
def no_grid(patch):
    def noisy(self, statistic, contribution, scale, source):
        grid = self._grid(contribution, scale)
        drawn = source.gaussian(self.std(contribution, scale) / grid, statistic.shape)
        return statistic + grid * drawn

    patch.setattr(mechanisms.GaussianNoise, "noisy", noisy)


@bug("mean over the batch that came out", batches)
def batch_seen(patch):
    original = samplers.Poisson.draw

    def draw(self, source, noise_source):
        rows = original(self, source, noise_source)
        source_rows = np.clip(source.records.X, -1e3, 1e3)
        Oracle.seen = float(source_rows.mean())
        return rows

    patch.setattr(samplers.Poisson, "draw", draw)
    patch.setattr(samplers.Poisson, "divisor", lambda self, public: 20 + getattr(Oracle, "seen", 0))


@bug("batches drawn at twice the rate that is charged", batches)
def twice_the_rate(patch):
    original = SystemSource.bernoulli_subset
    patch.setattr(
        SystemSource, "bernoulli_subset", lambda s, n, rate: original(s, n, min(1.0, 2 * rate))
    )


@bug("amplification by the square of the rate", batches)
def rate_squared(patch):
    original = accounting.PoissonSampled

    def event(self, inner, public):
        return original(self.rate**2, inner)

    patch.setattr(samplers.Poisson, "event", event)


@bug("blocks of one epoch drawn anew each time", lambda a: batches(a, "shuffled"))
def partition_drawn_anew(patch):
    original = MemorySource.shuffled_block

    def block(self, *given):
        self._divisions.__init__(self.n_rows)
        return original(self, *given)

    patch.setattr(MemorySource, "shuffled_block", block)


@bug("epochs charged as one partition", lambda a: batches(a, "shuffled"))
def epochs_as_one(patch):
    from skdp.accounting import Partition

    original = samplers.Block.event

    def event(self, inner, public):
        found = original(self, inner, public)
        return replace(found, partition=Partition(0, found.partition.n_blocks))

    patch.setattr(samplers.Block, "event", event)


@bug("answers are not charged")
def not_charged(patch):
    from skdp.oracle.ledger import Ledger

    original = Ledger.charge

    def charge(self, kind, event, count=1):
        if count == 1 and len(self.entries) % 2:
            return None
        return original(self, kind, event, count)

    patch.setattr(Ledger, "charge", charge)


@bug("any class may answer as a release")
def nothing_audited(patch):
    patch.setattr(release_base, "require_audited", lambda part: None)


@bug("budget turned into half of the noise", one_step)
def half_calibrated(patch):
    original = session.accounting.calibrate

    def calibrate(*given, **named):
        found = original(*given, **named)
        return replace(found, scale=found.scale / 2)

    patch.setattr(session.accounting, "calibrate", calibrate)


def one_by_one(adjacency):
    return skdp.DPRidge(solver="shuffled_sgd", max_iter=60, scaling="none", adjacency=adjacency)


@bug("passes of single steps: half of the noise", one_by_one)
def step_noise_halved(patch):
    original = step_noise.StepNoise.draw

    def draw(self, n, source):
        return (original(self, n, source) + self.shift) / 2 - self.shift

    patch.setattr(step_noise.StepNoise, "draw", draw)


@bug("divided by a private count")
def private_count(patch):
    original = gradients.GradientSum.total

    def total(self, rows, context):
        found = original(self, rows, context)
        return found / (1 + (np.abs(rows.records.X) > 3).sum())

    patch.setattr(gradients.GradientSum, "total", total)


@bug("clipping norm from the rows")
def bound_from_data(patch):
    original = Oracle.gradient

    def gradient(self, point, clip_norm, *rest, **named):
        if self._source is not None:
            clip_norm = clip_norm * (1 + np.clip(self._source.records.X, -1, 1).mean() / 10)
        return original(self, point, clip_norm, *rest, **named)

    patch.setattr(Oracle, "gradient", gradient)


@bug("warm start from the rows")
def warm_start(patch):
    original = Oracle.start

    def start(self):
        found = original(self)
        if self._source is not None:
            found += 1e-6 * np.clip(self._source.records.X, -9, 9).mean()
        return found

    patch.setattr(Oracle, "start", start)


@bug("a solver reads exact gradients")
def exact_direction(patch):
    original = Oracle.gradient

    def gradient(self, point, clip_norm, *rest, **named):
        found = original(self, point, clip_norm, *rest, **named)
        if self._source is not None:
            given = self.problem.loss, point, clip_norm
            found = found + 1e-3 * self._source.total(kernels.clipped_gradients, *given)
        return found

    patch.setattr(Oracle, "gradient", gradient)


@bug("classes from the labels that are there")
def classes_from_rows(patch):
    def read(self, y, dtype):
        return base.Targets((y > 0).astype(dtype)[:, None], 1, classes=np.unique(y) + y.sum())

    patch.setattr(logistic.DPLogisticRegression, "_read_targets", read)


@bug("a refusal that depends on a record")
def refusal_of_a_record(patch):
    original = path.PrivateEstimatorMixin._carry_out

    def carry_out(self, prepared, assumptions, make_source, *given):
        def checked(spread):
            source = make_source(spread)
            if np.abs(source.records.X).max() > 1e4:
                raise ValueError("X holds outliers.")
            return source

        return original(self, prepared, assumptions, checked, *given)

    patch.setattr(path.PrivateEstimatorMixin, "_carry_out", carry_out)


def _set(**values):
    return lambda self, rows, y: vars(self).update(
        {name: value(self, rows, y) for name, value in values.items()}
    )


in_fit("rows standardised without noise", before=lambda s, X, rows, y: (
    (rows - rows.mean(0)) / (rows.std(0) + 1)))  # fmt: skip
in_fit("number of steps from the rows", before=lambda s, X, rows, y: setattr(
    s, "max_iter", 3 + int(np.abs(rows).max() > 100)))  # fmt: skip
in_fit("step size from the rows", before=lambda s, X, rows, y: setattr(
    s, "learning_rate", 1 / (1 + np.linalg.norm(rows, 2)) ** 2))  # fmt: skip
in_fit("a warning about the rows", before=lambda s, X, rows, y: warnings.warn(
    f"{np.abs(rows).max():g}", UserWarning, stacklevel=2))  # fmt: skip
in_fit("a printed line about the rows", before=lambda s, X, rows, y: print(rows.mean()))
in_fit("training score kept", after=_set(score_=lambda s, rows, y: float(rows.sum())))
in_fit("rows kept in the model", after=_set(X_=lambda s, rows, y: rows))
in_fit("coefficients polished without noise", after=_set(
    coef_=lambda s, rows, y: s.coef_ + 1e-9 * rows.mean()))  # fmt: skip
in_fit("intercept from the mean of the rows", after=_set(
    intercept_=lambda s, rows, y: s.intercept_ - rows.mean(0) @ s.coef_.ravel()))  # fmt: skip
