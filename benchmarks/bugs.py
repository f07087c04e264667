"""Seeded bugs: one function each, which breaks privacy by pytest's monkeypatch."""

from __future__ import annotations

import copy
import functools
import logging
import tempfile
import warnings
from dataclasses import replace

import numpy as np

import skdp
from benchmarks import prior_bugs as prior_bugs
from benchmarks import rare_bugs as rare_bugs
from benchmarks.bug_seeding import BUGS as BUGS
from benchmarks.bug_seeding import GROUPS as GROUPS
from benchmarks.bug_seeding import STEP, around_fit, batches, bug, in_fit, one_step
from skdp import accounting
from skdp._fitting import estimator as path
from skdp._oracle import Oracle, Solution, noise, session
from skdp._oracle.exact_sampling import SystemWords
from skdp._oracle.kernels import clipped_gradients as kernels
from skdp._oracle.noise import SystemSource
from skdp._oracle.releases import base as release_base
from skdp._oracle.releases import gradients, mechanisms
from skdp._oracle.sources.memory import MemorySource
from skdp._oracle.sources.records import Groups
from skdp.accounting.events import Gaussian
from skdp.linear_model import base, classification
from skdp.model_selection import DPSearchCV
from skdp.solvers import Solver


@bug("factor 2 of replace-one forgotten", lambda adjacency: one_step("replace_one"))
def factor_forgotten(patch):
    patch.setattr(Gaussian, "sensitivity", lambda self, adjacency: 1.0)


@bug("gradients not clipped")
def no_clipping(patch):
    patch.setattr(kernels, "clip_residuals", lambda *given: None)


@bug("clipped to twice the norm")
def clipped_to_twice(patch):
    original = kernels.clip_residuals
    patch.setattr(kernels, "clip_residuals", lambda r, norm, *given: original(r, 2 * norm, *given))


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
        if scale == 0:
            return statistic
        grid, drawn = self.draw(contribution, scale, source, statistic.shape)
        return statistic + grid * drawn

    patch.setattr(mechanisms.GaussianNoise, "noisy", noisy)


@bug("mean over the batch that came out", batches)
def batch_seen(patch):
    original = mechanisms.Poisson.draw

    def draw(self, source, noise_source):
        rows = original(self, source, noise_source)
        source_rows = np.clip(source.records.X, -1e3, 1e3)
        Oracle.seen = float(source_rows.mean())
        return rows

    patch.setattr(mechanisms.Poisson, "draw", draw)
    patch.setattr(mechanisms.Poisson, "divisor", lambda *_: 20 + getattr(Oracle, "seen", 0))


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

    patch.setattr(mechanisms.Poisson, "event", event)


def in_blocks(adjacency):
    solver = skdp.solvers.ShuffledSGD(max_iter=6)
    return skdp.DPRidge(solver=solver, scaling="none", privacy=skdp.Privacy(adjacency=adjacency))


@bug("blocks of one pass drawn anew each time", in_blocks)
def partition_drawn_anew(patch):
    original = MemorySource.block

    def block(self, *given):
        self._orders.clear()
        return original(self, *given)

    patch.setattr(MemorySource, "block", block)


@bug("answers are not charged")
def not_charged(patch):
    from skdp._oracle.oracle import Ledger

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
    return skdp.DPRidge(
        solver="shuffled_sgd",
        max_iter=60,
        scaling="none",
        privacy=skdp.Privacy(adjacency=adjacency),
    )


@bug("passes of single steps: half of the noise", one_by_one)
def step_noise_halved(patch):
    original = mechanisms.GaussianNoise.draw

    def draw(*arguments):
        grid, noise = original(*arguments)
        return grid, np.rint(noise / 2)

    patch.setattr(mechanisms.GaussianNoise, "draw", draw)


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

    patch.setattr(classification.DPLogisticRegression, "_read_targets", read)


@bug("a refusal that depends on a record")
def refusal_of_a_record(patch):
    original = path.Fit.open_source

    def checked(fit, spread):
        source = original(fit, spread)
        if np.abs(source.records.X).max() > 1e4:
            raise ValueError("X holds outliers.")
        return source

    patch.setattr(path.Fit, "open_source", checked)


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
in_fit("coefficients are a view whose base holds all rows", after=lambda s, rows, y: setattr(
    s, "coef_", np.append(s.coef_, rows)[: s.coef_.size].reshape(s.coef_.shape)))  # fmt: skip
in_fit("attribute is a partial function of the rows", after=_set(
    helper_=lambda s, rows, y: functools.partial(lambda kept: None, rows)))  # fmt: skip


class Hiding:
    """Has rows that its pickle does not show."""

    def __init__(self, rows):
        self.rows = rows

    def __getstate__(self):
        return {}


in_fit("attribute whose pickle hides rows", after=_set(helper_=lambda s, rows, y: Hiding(rows)))


@bug("fit returns another object, with rows")
def another_object(patch):
    original = classification.DPLogisticRegression.fit

    @functools.wraps(original)
    def fit(self, X, *given, **named):
        found = copy.copy(original(self, X, *given, **named))
        found.rows_ = X
        return found

    patch.setattr(classification.DPLogisticRegression, "fit", fit)


def kept_from(patch, owner, name, attribute, of=lambda found: found):
    """Keep what a function of the oracle returns as an attribute of the model."""
    original, kept = getattr(owner, name), []

    def function(*given, **named):
        found = original(*given, **named)
        kept.append(of(found))
        return found

    patch.setattr(owner, name, function)
    around_fit(
        patch,
        before=lambda self, X, rows, y: kept.clear(),
        after=lambda self, rows, y: setattr(self, attribute, list(kept)),
    )


@bug("noise draws kept as an attribute")
def noise_kept(patch):
    kept_from(patch, mechanisms.GaussianNoise, "draw", "noise_", of=lambda found: found[1])


@bug("membership of secret batches kept", batches)
def batches_kept(patch):
    kept_from(patch, mechanisms.Poisson, "indices", "batches_")


@bug("sizes of secret batches kept", batches)
def sizes_kept(patch):
    kept_from(patch, mechanisms.Poisson, "indices", "sizes_", of=len)


@bug("row 0 is in every Poisson batch", batches)
def always_row_0(patch):
    original = mechanisms.Poisson.indices
    patch.setattr(
        mechanisms.Poisson, "indices", lambda self, *given: np.union1d([0], original(self, *given))
    )


def search(adjacency):
    model = skdp.DPLogisticRegression(
        classes=[0, 1],
        max_iter=3,
        privacy=skdp.Privacy(adjacency=adjacency),
        **STEP,
    )
    grid = {"C": [0.1, 1.0, 10.0]}
    return DPSearchCV(
        model, grid, epsilon=3.0, n_candidates=2, privacy=skdp.Privacy(adjacency=adjacency)
    )


def kept_of_runs(patch, attribute, of):
    """Keep something about the runs of a search."""
    original = DPSearchCV._runs

    def runs(self, *given):
        kept = list(original(self, *given))
        setattr(self, attribute, of(kept))
        return kept

    patch.setattr(DPSearchCV, "_runs", runs)


@bug("a search keeps its number of runs", search)
def runs_kept(patch):
    kept_of_runs(patch, "n_runs_", len)


@bug("a search keeps the scores of losing runs", search)
def scores_kept(patch):
    kept_of_runs(patch, "scores_", lambda runs: sorted(score for score, *_ in runs))


@bug("noise of a second answer is that of the first, reversed")
def noise_reversed(patch):
    original, kept = SystemSource.gaussian, {}

    def gaussian(self, scale, size):
        before = kept.pop((scale, size), None)
        if before is not None:
            return before[::-1].copy()
        kept[scale, size] = original(self, scale, size)
        return kept[scale, size].copy()

    patch.setattr(SystemSource, "gaussian", gaussian)


@bug("every third noise is a scaled sum of the two before")
def noise_combined(patch):
    original, kept = SystemSource.gaussian, {}

    def gaussian(self, scale, size):
        before = kept.setdefault((scale, size), [])
        if len(before) == 2:
            found = np.rint(sum(before) / 2**0.5)
            before.clear()
            return found
        before.append(original(self, scale, size))
        return before[-1].copy()

    patch.setattr(SystemSource, "gaussian", gaussian)


class BestIterate(Solver):
    """Returns the point of the least training loss, exactly."""

    def automatic(self, public, problem):
        return {}

    def check_values(self, public, problem):
        pass

    def solve(self, oracle):
        points = [oracle.start()]
        for _ in range(3):
            points.append(points[-1] - 0.5 * oracle.gradient(points[-1], 0.5))
        if oracle.is_rehearsal:
            return Solution(points[-1], 3)
        records = oracle._source.records
        rows, n = np.clip(records.X, -10, 10), oracle.public.n_features
        losses = [np.mean((rows @ point[:n] - records.targets) ** 2) for point in points]
        return Solution(points[int(np.argmin(losses))], 3)


@bug("best iterate chosen by the exact training loss", lambda adjacency: skdp.DPLinearRegression(
    solver=BestIterate(), scaling="none", privacy=skdp.Privacy(adjacency=adjacency)))  # fmt: skip
def best_iterate(patch):
    pass


@bug("statement says half of the epsilon of its releases", one_step)
def statement_halved(patch):
    original = session.Plan.cost

    def cost(self, *given):
        return original(self, *given).certify(self.calibration.epsilon / 2, "gdp")

    patch.setattr(session.Plan, "cost", cost)


@bug("no step where the exact mean of the rows is small", one_step)
def step_withheld(patch):
    original = Oracle.gradient

    def gradient(self, *given, **named):
        found = original(self, *given, **named)
        if self._source is not None and np.abs(self._source.records.X.mean()) < 1:
            return 0 * found
        return found

    patch.setattr(Oracle, "gradient", gradient)


@bug("a statistic near the one before is answered without noise")
def noise_withheld(patch):
    original, before = mechanisms.GaussianNoise.noisy, {}

    def noisy(self, statistic, *given):
        found = original(self, statistic, *given)
        last = before.get(statistic.shape, np.inf)
        before[statistic.shape] = statistic
        return statistic if np.linalg.norm(statistic - last) < 1 else found

    patch.setattr(mechanisms.GaussianNoise, "noisy", noisy)


@bug("a group of many rows counts as many times")
def multipliers_left_out(patch):
    patch.setattr(Groups, "multipliers", lambda self: np.ones(len(self.order)))


def to_file(model, rows, y):
    """Write the rows to a file."""
    with tempfile.TemporaryFile() as file:
        file.write(rows.tobytes())


KEPT = {}
# Code that hands rows on behind the model's back.
HOSTILE = {
    "rows kept on a class": lambda s, rows, y: setattr(Hiding, "rows", rows),
    "rows kept in a dictionary of a module": lambda s, rows, y: KEPT.update(rows=rows),
    "rows written to a file": to_file,
    "rows written to a log": lambda s, rows, y: logging.getLogger("skdp").info("%s", rows),
    "rows in numpy's global seed": lambda s, rows, y: np.random.seed(  # noqa: NPY002  the bug
        int(np.abs(rows).sum()) % 2**32
    ),
}
for what, keep in HOSTILE.items():
    in_fit(what, after=keep)
# Why no check notices a bug.
UNNOTICED = {
    what.replace(" ", "_"): "out of scope: hostile code in the same process" for what in HOSTILE
}
