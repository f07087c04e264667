"""Data, estimators and the replay harness that the tests share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from skdp.oracle.releases.mechanisms import GaussianNoise


class Leak(AssertionError):  # noqa: N818
    """Something that depends on a row left by another way than a charged release."""


@dataclass
class Record:
    statistic: np.ndarray
    sensitivity: float
    std: float
    answer: np.ndarray


class Replay:
    """Fit on D and record every answer; fit on D' with the recorded answers forced.

    Whatever the second fit shows beyond the forced answers came from the rows on the side.
    """

    def __init__(self, monkeypatch):
        self._patch = monkeypatch

    def _fit(self, model, data, adjacency, forced=None):
        log = []

        def hide(mechanism, statistic, contribution, scale, source):
            spread = mechanism.event(contribution.spread).sensitivity(adjacency)
            std = mechanism.std(contribution, scale)
            if forced is None:
                noise = std * np.random.default_rng(len(log)).standard_normal(statistic.shape)
                answer = statistic + noise
            elif len(log) >= len(forced):
                raise Leak("more releases on the neighbour")
            else:
                answer = forced[len(log)].answer
                if answer.shape != statistic.shape:
                    raise Leak("the shape of an answer depends on the rows")
            log.append(Record(statistic, spread * contribution.bound, std, answer))
            return answer

        with self._patch.context() as patch:
            patch.setattr(GaussianNoise, "hide", hide)
            model.fit(*data)
        return model, log

    def check(self, make_model, data, neighbour, adjacency):
        """Raise `Leak` if the two fits differ by more than the ledger was told."""
        first, recorded = self._fit(make_model(), data, adjacency)
        second, replayed = self._fit(make_model(), neighbour, adjacency, recorded)
        if len(recorded) != len(replayed):
            raise Leak(f"{len(recorded)} releases, but {len(replayed)} on the neighbour")
        if not recorded:
            raise Leak("a fit without a release")
        for one, other in zip(recorded, replayed, strict=True):
            if (one.sensitivity, one.std) != (other.sensitivity, other.std):
                raise Leak("sensitivity or noise depends on the rows")
            # Scaled first, so that a huge difference does not overflow into a pass.
            moved = np.linalg.norm((one.statistic - other.statistic) / one.sensitivity)
            if not moved <= 1:
                raise Leak(f"a statistic moved by {moved:.6g} times its sensitivity")
        self._same(first, second)
        declared = first.privacy_.releases[0]
        if not math.isclose(sum(r.count for r in first.privacy_.releases), len(recorded)):
            raise Leak("the statement does not list every release")
        for one in recorded[:1]:
            unit = one.sensitivity / declared.event.sensitivity(adjacency)
            if one.std < declared.noise_multiplier * unit * (1 - 1e-12):
                raise Leak("less noise was added than the statement says")

    @staticmethod
    def _same(first, second):
        """Every fitted attribute, bit for bit."""
        if set(vars(first)) != set(vars(second)):
            raise Leak("fitted attributes differ")
        for name in vars(first):
            if not name.endswith("_"):
                continue
            one, other = getattr(first, name), getattr(second, name)
            if name == "solver_":
                one, other = str(one.get_params()), str(other.get_params())
            if isinstance(one, np.ndarray):
                same = one.shape == other.shape and one.tobytes() == other.tobytes()
            else:
                same = one == other
            if not same:
                raise Leak(f"{name} depends on the rows beyond the releases")


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
