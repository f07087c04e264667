"""The papers' experiments: their network, their verdicts, and what is skipped without data."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

from benchmarks import registry
from benchmarks.papers import h22_network, k22, report


@pytest.fixture
def network(monkeypatch):
    monkeypatch.setattr(h22_network, "HIDDEN", 7)
    return h22_network


def loss_of_one(net, x, y, inner, outer):
    hidden = np.maximum(x @ inner[:-1] + inner[-1], 0.0)
    scores = hidden @ outer[:-1] + outer[-1]
    if len(scores) == 1:
        return np.logaddexp(0, scores[0]) - y * scores[0]
    return np.log(np.sum(np.exp(scores))) - scores[y]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_are_those_of_single_clipped_gradients(network, rng, n_classes):
    """Gradients of single records by finite differences, each clipped by itself."""
    net = network.Network(3, rng, n_classes)
    X, y = rng.standard_normal((6, 3)), np.array([0, 1, 0, 1, 1, n_classes - 1])
    clip, step = 0.8 if n_classes == 2 else 1.4, 1e-4
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


@pytest.mark.parametrize("name", ["h22_network", "wu21_network", "w17_passes", "w17_literal"])
def test_an_experiment_without_the_shared_data_is_skipped(name, monkeypatch, tmp_path, capsys):
    """As in a clone: the reason is printed, no verdict is reached and no file is written."""
    module = importlib.import_module(f"benchmarks.papers.{name}")

    def not_fetched(**options):
        raise OSError

    def other_part(found):
        found.add(part="influence", step="1", influence="1", influence_error="1", slope="1")

    monkeypatch.setattr("benchmarks.papers.w17.fetch_covtype", not_fetched)
    monkeypatch.setattr(registry, "SHARED", tmp_path / "nowhere")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    if "influence" in getattr(module, "PARTS", {}):  # needs no data, but time
        monkeypatch.setitem(module.PARTS, "influence", other_part)
    module.main([])
    printed = capsys.readouterr().out
    assert "is not here: the shared data folder is absent" in printed
    assert "There is no verdict: parts are missing." in printed
    assert list(tmp_path.iterdir()) == []


def test_the_best_length_averages_draws_of_the_same_run():
    """Three caps T that give the same run are one length; the least of its draws is no estimate."""
    found = {
        ("gd", 100): (0.030, 0.001, 100),
        ("gd", 200): (0.025, 0.004, 200),
        ("gd", 500): (0.080, 0.020, 500),
        ("nesterov_opt", 100): (0.033, 0.002, 100),
        ("nesterov_opt", 200): (0.020, 0.003, 106),
        ("nesterov_opt", 500): (0.034, 0.004, 106),
    }
    best = k22.with_best_length(found)
    assert best["gd"] == (0.025, 0.004)
    assert best["nesterov_opt"] == pytest.approx((0.027, 0.0025))
