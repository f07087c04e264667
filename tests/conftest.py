"""Data, estimators and the replay harness that the tests share."""

from __future__ import annotations

import contextlib
import io
import itertools
import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from skdp.accounting import walk
from skdp.linear_model import preparation
from skdp.oracle.releases.mechanisms import GaussianNoise, LaplaceNoise
from skdp.oracle.releases.perturbed import PerturbedMinimum
from skdp.oracle.releases.step_noise import StepNoise, VaryingNoise

with contextlib.suppress(ImportError):  # its first import may warn, whatever the rows are
    import PLD_accounting  # noqa: F401


class Leak(AssertionError):  # noqa: N818
    """Something that depends on a row left by another way than a charged release."""


@dataclass
class Record:
    statistic: np.ndarray
    sensitivity: float
    std: float
    answer: np.ndarray
    order: int = 2  # of the norm that the sensitivity is in


class Replay:
    """Fit on D and record every answer; fit on D' with the recorded answers forced.

    Whatever the second fit shows beyond the forced answers came from the rows on the side: another
    attribute, a warning, a printed line.
    """

    def __init__(self, monkeypatch):
        self._patch = monkeypatch

    def _fit(self, model, data, adjacency, forced=None):
        log = []

        def answer_to(statistic, sensitivity, std, order=2):
            if forced is None:
                noise = std * np.random.default_rng(len(log)).standard_normal(statistic.shape)
                answer = statistic + noise
            elif len(log) >= len(forced):
                raise Leak("more releases on the neighbour")
            else:
                answer = forced[len(log)].answer
                if answer.shape != statistic.shape:
                    raise Leak("the shape of an answer depends on the rows")
            log.append(Record(statistic, sensitivity, std, answer, order))
            return answer

        def add_noise(mechanism, statistic, contribution, scale, noise_source):
            spread = mechanism.event(contribution.spread).sensitivity(adjacency)
            std = mechanism.std(contribution, scale)
            return answer_to(statistic, spread * contribution.bound, std, mechanism.order)

        def add_step_noise(noise, shifted, drawn):
            """One step of a pass: its statistic is on the grid already, which is charged for."""
            contribution = noise.contribution
            spread = noise.mechanism.event(contribution.spread).sensitivity(adjacency)
            bound = contribution.bound + noise.grid * contribution.size**0.5
            shifted[:] = answer_to(shifted - noise.shift, spread * bound, noise.std)
            return shifted

        def add_varying_noise(noise, cells):
            """One step of a pass whose statistic is in units of the grid, as is its noise."""
            spread = noise.mechanism.event(noise.contribution.spread).sensitivity(adjacency)
            sensitivity = spread * noise.contribution.bound * noise.cells
            cells[:] = answer_to(cells.copy(), sensitivity, noise.std)
            return cells

        def perturbed(release, source, context, noise_source):
            """The statistic is the perturbation that makes the answer the minimum."""
            if forced is None:
                b = release._perturbation(context, noise_source)
                answer = release._minimum(source, context, b)
                implied = release._gradient(source, context, b, answer)
                # By strong convexity, as if no eigenvalue were larger than the least.
                if not np.linalg.norm(implied) <= release.damping * release._distances(context)[0]:
                    raise Leak("the answer is farther from the minimum than the noise hides")
            elif len(log) >= len(forced):
                raise Leak("more releases on the neighbour")
            else:
                answer = forced[len(log)].answer
            statistic = release._gradient(source, context, 0.0, answer)
            unit = release.row_norm * (1 + 1e-9)
            spread = release.event(context).sensitivity(adjacency)
            std = release.std(context) * context.public.n_rows
            log.append(Record(statistic, spread * unit, std, answer))
            return answer

        printed = io.StringIO()
        with (
            self._patch.context() as patch,
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            # An accountant imports its reference at first use, which warns once, whatever the rows.
            warnings.simplefilter("ignore", ImportWarning)
            patch.setattr(GaussianNoise, "add_noise", add_noise)
            patch.setattr(LaplaceNoise, "add_noise", add_noise)
            patch.setattr(StepNoise, "add_noise", add_step_noise)
            patch.setattr(VaryingNoise, "add_noise", add_varying_noise)
            patch.setattr(PerturbedMinimum, "answer", perturbed)
            # X, y, weights, as many as there are, and labels of groups, if there are any.
            model.fit(*data[:3], **({"groups": data[3]} if len(data) > 3 else {}))
        told = [f"{warning.category.__name__}: {warning.message}" for warning in warned]
        return model, log, [*told, printed.getvalue()]

    def check(self, make_model, data, neighbour, adjacency):
        """Raise `Leak` if the two fits differ by more than the ledger was told."""
        first, recorded, told = self._fit(make_model(), data, adjacency)
        second, replayed, told_then = self._fit(make_model(), neighbour, adjacency, recorded)
        if len(recorded) != len(replayed):
            raise Leak(f"{len(recorded)} releases, but {len(replayed)} on the neighbour")
        if not recorded:
            raise Leak("a fit without a release")
        for one, other in zip(recorded, replayed, strict=True):
            if (one.sensitivity, one.std) != (other.sensitivity, other.std):
                raise Leak("sensitivity or noise depends on the rows")
            # Scaled first, so that a huge difference does not overflow into a pass.
            change = (one.statistic - other.statistic) / one.sensitivity
            moved = np.linalg.norm(change.ravel(), one.order)
            if not moved <= 1:
                raise Leak(f"a statistic moved by {moved:.6g} times its sensitivity")
        if told != told_then:
            raise Leak(f"warnings or prints differ: {told} and {told_then}")
        self._same(first, second)
        self._as_stated(first.privacy_, recorded, adjacency)

    @staticmethod
    def _as_stated(statement, recorded, adjacency):
        """Every release is listed, in order, and has the noise that is listed."""
        if [record.kind for record in statement.releases] == ["adaptive"]:
            # A run that decides its noise on the way states the whole budget, and keeps to it.
            spent = sum((one.sensitivity / one.std) ** 2 for one in recorded)
            if spent > statement.releases[0].event.mu(adjacency) ** 2 * (1 + 1e-12):
                raise Leak("more was spent than the statement says")
            return
        answers = iter(recorded)
        for record in statement.releases:
            # A pass is one release of several answers; the order within it is its own affair.
            for _ in range(record.count):
                parts = [(event, n) for event, n in walk(record.event) if not event.inner()]
                listed = [mechanism for mechanism, n in parts for _ in range(n)]
                found = list(itertools.islice(answers, len(listed)))
                if len(found) != len(listed):
                    raise Leak("the statement lists more than there was")
                noises = sorted(
                    # of L1 sums a multiplier is a scale, not a standard deviation
                    one.std / (np.sqrt(2) if one.order == 1 else 1) / one.sensitivity
                    for one in found
                )
                said = sorted(
                    event.noise_multiplier / event.sensitivity(adjacency) for event in listed
                )
                if any(a < b * (1 - 1e-12) for a, b in zip(noises, said, strict=True)):
                    raise Leak("less noise was added than the statement says")
        if next(answers, None) is not None:
            raise Leak("the statement does not list every release")

    @staticmethod
    def _same(first, second):
        """Everything that a fitted model holds, bit for bit."""
        if set(vars(first)) != set(vars(second)):
            raise Leak("fitted attributes differ")
        for name in vars(first):
            one, other = getattr(first, name), getattr(second, name)
            if pickle.dumps(one) != pickle.dumps(other):
                raise Leak(f"{name} depends on the rows beyond the releases")


@pytest.fixture(autouse=True)
def own_plans(monkeypatch):
    """Plans of earlier fits are kept by parameters and shape: a mutant's must stay in its test."""
    monkeypatch.setattr(preparation, "_plans", {})


@pytest.fixture
def replay(monkeypatch):
    return Replay(monkeypatch)


@pytest.fixture
def leak():
    return Leak


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def classification(rng):
    """A well-behaved binary problem of 400 rows."""
    X = rng.standard_normal((400, 5))
    y = (X @ np.array([2.0, -1.0, 0.5, 0.0, 0.0]) + 0.3 * rng.standard_normal(400) > 0.2).astype(
        int
    )
    return X, y


@pytest.fixture
def regression(rng):
    """A well-behaved regression problem of 400 rows."""
    X = rng.standard_normal((400, 5))
    return X, X @ np.array([1.0, -0.5, 0.25, 0.0, 0.0]) + 0.4 + 0.1 * rng.standard_normal(400)
