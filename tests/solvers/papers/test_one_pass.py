"""The solvers that read each row once: what they ask, what it costs, and that it is of use."""

from __future__ import annotations

import math

import numpy as np
import pytest

import skdp
from skdp._oracle import Public, SolverStage, make_plan
from skdp.accounting import (
    Adjacency,
    Composed,
    Gaussian,
    Shuffled,
    calibrate,
    price,
)
from skdp.objective import Problem, SquaredError
from skdp.solvers import AdaptiveShuffledSGD, ShuffledSGD
from skdp.solvers.papers.varshney_2022 import (
    CANDIDATES,
    N_COUNTS,
    least_threshold,
)


def public_for(n_rows=20000, epsilon=1.0, adjacency=Adjacency.ZERO_OUT, **facts):
    return Public(n_rows, 5, 1, adjacency, epsilon, 1e-6, **facts)


def planned(solver, **facts):
    public, problem = public_for(**facts), Problem(SquaredError())
    resolved = solver.resolve(public, problem)
    return resolved, make_plan((SolverStage(resolved),), public, problem)


def gaussian(n, sigma, seed=0, d=5):
    rng = np.random.default_rng(seed)
    w = np.ones(d) / math.sqrt(d)
    X = rng.standard_normal((n, d))
    return X, X @ w + sigma * rng.standard_normal(n), w


def excess(solver, sigma, n=20000, epsilon=1.0, seed=0):
    X, y, w = gaussian(n, sigma, seed)
    model = skdp.DPLinearRegression(
        solver=solver,
        epsilon=epsilon,
        fit_intercept=False,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
    ).fit(X, y)
    return float(np.sum((model.coef_ - w) ** 2))


# ---------------------------------------------------------------------- the search


def test_a_search_without_noise_finds_the_least_threshold(rng):
    values = np.abs(rng.standard_normal(500)) * 10.0 ** rng.uniform(-4, 1)
    candidates = 16.0 * CANDIDATES
    asked = []

    def count(limit):
        asked.append(limit)
        return float((values <= limit).sum())

    for enough in (1, 250, 500):
        asked.clear()
        found = least_threshold(candidates, enough, count)
        fitting = [c for c in candidates if (values <= c).sum() >= enough]
        assert found == fitting[0]
        assert len(asked) == N_COUNTS


def test_as_many_counts_whatever_they_answer(rng):
    candidates = CANDIDATES
    assert candidates[-1] == 1.0
    assert candidates[0] == 2.0**-20
    for answers in (np.inf, -np.inf, None):
        asked = []

        def count(limit, answers=answers, asked=asked):
            asked.append(limit)
            return float(rng.standard_normal()) if answers is None else answers

        found = least_threshold(candidates, 0.0, count)
        assert found in candidates
        assert len(asked) == N_COUNTS
        if answers == -np.inf:
            assert found == candidates[-1]
        if answers == np.inf:
            assert found == candidates[0]


# ---------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_a_block_costs_the_larger_of_search_and_gradient(adjacency):
    solver, plan = planned(AdaptiveShuffledSGD(), adjacency=adjacency)
    alone = calibrate(Gaussian(1.0), 1.0, 1e-6, adjacency).scale
    # Not a whole search on top of a gradient, which would need sqrt(2) times the noise.
    assert plan.calibration.scale == pytest.approx(alone, rel=1e-6)
    counts = [entry for entry in plan.entries if entry.kind == "residual_count"]
    assert {entry.count for entry in counts} == {N_COUNTS}
    assert len(counts) == solver.max_iter
    search_alone = Composed(tuple((entry.event.event, entry.count) for entry in counts[:1]))
    spent, _ = price(search_alone.scaled(plan.calibration.scale), 1e-6, adjacency)
    assert spent == pytest.approx(1.0, rel=1e-6)


def test_index_sets_are_half_open_and_hold_every_row():
    solver, plan = planned(AdaptiveShuffledSGD(), n_rows=1003)
    (partition,) = {entry.event.partition for entry in plan.entries}
    cuts = partition.cuts
    assert cuts[0] == 0 and cuts[-1] == 1003  # noqa: PT018
    assert len(cuts) == 2 * solver.max_iter + 1
    blocks = [entry.event.block for entry in plan.entries]
    gradients = [e.event.block for e in plan.entries if e.kind == "gradient"]
    counted = [e.event.block for e in plan.entries if e.kind == "residual_count"]
    assert set(gradients).isdisjoint(counted)
    assert blocks == sorted(blocks)


def test_overlapping_parts_of_a_block_would_cost_their_sum(monkeypatch):
    """The mutant finds the clip on the rows that it then clips: the ledger charges both."""
    from skdp.solvers.papers import varshney_2022 as module

    original = module.Cut

    def same_rows(cuts, index):
        return original(cuts, index + (index + 1) % 2)

    same_rows.blocks = original.blocks
    honest = planned(AdaptiveShuffledSGD())[1].calibration.scale
    monkeypatch.setattr(module, "Cut", same_rows)
    assert planned(AdaptiveShuffledSGD())[1].calibration.scale == pytest.approx(
        honest * math.sqrt(2), rel=1e-6
    )


def test_the_smaller_price_is_charged_and_named():
    """Amplification pays for single records at small epsilon, blocks at a large one."""
    small = skdp.DPLinearRegression(
        solver=ShuffledSGD(batch_size=1), epsilon=0.5, scaling="none"
    ).plan(10_000, 5)
    (record,) = small.releases
    assert small.accountant == "shuffle"
    assert isinstance(record.event, Shuffled)
    alone = calibrate(Gaussian(1.0), 0.5, 1e-6, Adjacency.ZERO_OUT).scale
    assert record.noise_multiplier < 0.5 * alone
    assert price(record.event, 1e-6, Adjacency.ZERO_OUT)[0] <= 0.5
    large = skdp.DPLinearRegression(
        solver=ShuffledSGD(batch_size=1), epsilon=9.0, scaling="none"
    ).plan(10_000, 5)
    assert large.accountant == "gdp"
    assert large.releases[0].noise_multiplier == pytest.approx(
        calibrate(Gaussian(1.0), 9.0, 1e-6, Adjacency.ZERO_OUT).scale
    )
    blocks = skdp.DPLinearRegression(
        solver=ShuffledSGD(batch_size=50), epsilon=0.5, scaling="none"
    ).plan(10_000, 5)
    assert blocks.releases[0].event.partition.n_blocks == 200


# ---------------------------------------------------------------------- use


def test_adaptive_error_vanishes_with_the_noise_of_the_data_and_fixed_clips_do_not():
    adaptive = AdaptiveShuffledSGD(curvature=1.0, condition_number=1.5)
    fixed = ShuffledSGD(curvature=1.0, condition_number=1.5)
    small = [np.mean([excess(s, 1e-3, seed=k) for k in range(3)]) for s in (adaptive, fixed)]
    large = [np.mean([excess(s, 1e-1, seed=k) for k in range(3)]) for s in (adaptive, fixed)]
    assert small[0] < 0.05 * large[0]
    assert small[1] > 0.2 * large[1]
    assert small[0] < 0.01 * small[1]


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"quantile": 0.0}, "quantile"),
        ({"stat_share": 1.0}, "stat_share"),
        ({"max_iter": 20001}, "max_iter"),
    ],
)
def test_impossible_hyperparameters_are_refused(parameters, said):
    both = (AdaptiveShuffledSGD, ShuffledSGD)
    takers = [make for make in both if set(parameters) <= set(make().get_params())]
    assert takers
    for make in takers:
        with pytest.raises(ValueError, match=said):
            make(**parameters).resolve(public_for(), Problem(SquaredError()))


def test_blocks_and_their_size_are_not_both_taken():
    with pytest.raises(ValueError, match="follow from each other"):
        ShuffledSGD(batch_size=5, max_iter=5).resolve(public_for(), Problem(SquaredError()))


# ---------------------------------------------------------------------- one record, one block


def blocks_that_move(monkeypatch, seed, place, row, target):
    """Numbers of the releases that a changed record moves, later answers being forced."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X @ np.ones(3)
    Z, t = X.copy(), y.copy()
    Z[place], t[place] = row, target
    log = []

    def fit(X, y, forced=None):
        seen = []

        def hide(mechanism, statistic, contribution, scale, source):
            noise = np.random.default_rng(len(seen)).standard_normal(statistic.shape)
            seen.append(statistic + noise if forced is None else forced[len(seen)])
            log.append(statistic / contribution.bound)
            return seen[-1]

        solver = AdaptiveShuffledSGD(max_iter=6)
        model = skdp.DPLinearRegression(
            solver=solver,
            scaling="none",
            privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
        )
        with monkeypatch.context() as patch:
            patch.setattr("skdp._oracle.GaussianNoise.add_noise", hide)
            return model.fit(X, y), seen

    model, answers = fit(X, y)
    other, _ = fit(Z, t, answers)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    half = len(log) // 2
    events = [r.event for r in model.privacy_.releases for _ in range(r.count)]
    moved = set()
    for event, one, two in zip(events, log[:half], log[half:], strict=True):
        # Replaced: a count by 1, a gradient by twice its bound.
        assert np.linalg.norm(one - two) <= event.event.spread * (1 + 1e-9)
        if (one != two).any():
            moved.add(event.block)
    return moved


@pytest.mark.parametrize("seed", range(4))
def test_a_record_moves_one_block_whatever_the_order(monkeypatch, seed):
    for place in (0, 33, 79):
        for row, target in ((1e5, -1e300), (0.0, 0.0), (5.0, 1e12)):
            assert len(blocks_that_move(monkeypatch, seed, place, row, target)) <= 1
    assert any(blocks_that_move(monkeypatch, seed, place, 5.0, 1e12) for place in range(5))
