"""The network of the papers' experiments clips what it says, and costs what it says."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def network(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("benchmarks.papers.h22_network")
    monkeypatch.setattr(module, "HIDDEN", 7)
    yield module
    for name in [name for name in sys.modules if name.startswith("benchmarks.papers")]:
        sys.modules.pop(name)


def loss_of_one(net, x, y, inner, outer):
    hidden = np.maximum(x @ inner[:-1] + inner[-1], 0.0)
    margin = hidden @ outer[:-1] + outer[-1]
    return np.logaddexp(0, margin) - y * margin


def test_sums_are_those_of_single_clipped_gradients(network, rng):
    """Gradients of single records by finite differences, each clipped by itself."""
    net = network.Network(3, rng)
    X, y = rng.standard_normal((6, 3)), np.array([0, 1, 0, 1, 1, 0])
    clip, step = 0.8, 1e-4
    wanted = [np.zeros(net.inner.shape), np.zeros(net.outer.shape)]
    inner, outer = net.inner.astype(float), net.outer.astype(float)
    lengths = []
    for row, target in zip(X, y, strict=True):
        found = []
        for weights in (inner, outer):
            gradient = np.zeros(weights.shape)
            for place in np.ndindex(weights.shape):
                values = []
                for sign in (1, -1):
                    weights[place] += sign * step
                    values.append(loss_of_one(net, row, target, inner, outer))
                    weights[place] -= sign * step
                gradient[place] = (values[0] - values[1]) / (2 * step)
            found.append(gradient)
        length = math.sqrt(sum(float(np.sum(g**2)) for g in found))
        lengths.append(length)
        for total, gradient in zip(wanted, found, strict=True):
            total += gradient * min(1.0, clip / length)
    assert min(lengths) < clip < max(lengths)  # some are clipped and some are not
    for total, found in zip(wanted, net.clipped_sum(X, y, clip), strict=True):
        assert found == pytest.approx(total, abs=1e-4)


def test_both_schedules_cost_the_budget(network):
    for _, _, _, multipliers in network.schedules():
        printed, exact = network.cost(multipliers)
        assert exact < printed <= 4.0 + 1e-3
