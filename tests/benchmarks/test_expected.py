"""What plans say a budget is worth, against the cells of the benchmarks that it was fitted to."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import skdp
from benchmarks import expected
from skdp.planning.expected_loss import CURVES, QUANTILES, expected_loss, hopeless, signal_for

KINDS, FEW = tuple(CURVES), ("skewed regression", "more classes")


@pytest.fixture(scope="module")
def found():
    return expected.cells()


def test_the_curve_of_a_known_law_is_found(rng):
    """Shares (signal / 3) ** -0.8 times log-normal noise, whose quantiles are known."""
    signals = np.exp(rng.uniform(-1, 7, 4000))
    lost = (signals / 3) ** -0.8 * np.exp(0.5 * rng.standard_normal(4000))
    cells = [
        expected.Cell("made up", "raw", "regression", 1.0, *pair)
        for pair in zip(signals, lost, strict=True)
    ]
    for quantile, normal in ((0.1, -1.2816), (0.5, 0.0), (0.9, 1.2816)):
        at, slope = expected.fitted(cells, quantile)
        assert slope == pytest.approx(0.8, rel=0.05)
        assert at == pytest.approx(3 * np.exp(0.5 * normal / 0.8), rel=0.15)


@pytest.mark.parametrize("kind", KINDS)
def test_the_constants_are_those_of_the_committed_cells(found, kind):
    """If a benchmark was run anew: ``python -m benchmarks expected`` fits them again."""
    cells = [cell for cell in found if cell.kind == kind]
    assert len({cell.data for cell in cells}) > (5 if kind in FEW else 30)
    if kind not in FEW:
        inside = [place == 0 for _, place in expected.left_out(found, kind)]
        assert 0.77 < np.mean(inside) < 0.87  # four in five cells of data sets that are left out
    for quantile, curve in expected.curves(found, kind).items():
        for signal in (3.0, 30.0):
            own, new = (
                np.log(signal / at) * -slope for at, slope in (CURVES[kind][quantile], curve)
            )
            assert own == pytest.approx(new, abs=0.2)


def test_amounts_of_each_family_are_among_the_cells_of_log_links(found):
    cells = [cell for cell in found if cell.kind == "log link"]
    for condition in ("raw", "made up"):
        assert len({cell.data for cell in cells if cell.condition == condition}) > 15
    assert {cell.epsilon for cell in cells} == {0.1, 0.3, 1.0, 3.0}
    gamma = skdp.DPGammaRegressor().plan(2000, 10).expectations
    assert "in D2;" in gamma[0]


def test_fits_without_hope_are_worse_than_a_constant(found):
    """More than half of those that are warned about, of all kinds together."""
    lost = [cell.lost for cell in found if hopeless(cell.kind, cell.signal)]
    assert len(lost) > 20
    assert np.mean(np.greater(lost, 1.0)) > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_more_signal_never_loses_more(kind):
    losses = [expected_loss(kind, signal) for signal in np.geomspace(0.01, 1e5, 200)]
    for loss in losses:
        assert 0 <= loss.low <= loss.median <= loss.high <= 2
    for name in ("low", "median", "high"):
        shares = [getattr(loss, name) for loss in losses]
        assert shares == sorted(shares, reverse=True)
    assert expected_loss(kind, signal_for(kind, 0.25)).median == pytest.approx(0.25)
    assert len(QUANTILES) == 3


def loss_signal(text):
    return float(re.search(r"mu n / p, is ([\d.]+) ", text)[1])


MODELS = {
    "regression": skdp.DPRidge,
    "log link": skdp.DPPoissonRegressor,
    "two classes": skdp.DPLogisticRegression,
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_plan_says_what_the_budget_is_worth(kind):
    model = MODELS[kind](epsilon=0.5)
    plan = model.plan(2000, 10)
    assert skdp.PrivacyStatement.from_json(plan.to_json()) == plan
    worth, rows = plan.expectations
    loss = expected_loss(kind, loss_signal(worth))
    said = [float(share) / 100 for share in re.findall(r"([\d.]+)%", worth)]
    assert said[:3] == pytest.approx([loss.median, loss.low, loss.high], rel=0.05)
    if kind == "regression":  # nothing is known of a target beforehand
        skewed = expected_loss("skewed regression", loss_signal(worth))
        assert "skewness of at most 2" in worth
        assert said[4:6] == pytest.approx([skewed.low, skewed.high], rel=0.05)
    half, tenth = (int(number) for number in re.findall(r"about (\d+) rows", rows))
    for n_rows, share in ((half, 0.5), (tenth, 0.1)):
        text = model.plan(n_rows, 10).expectations[0]
        median = float(re.search(r"no more than ([\d.]+)%", text)[1]) / 100
        assert 0.85 * share < median <= share * 1.005


@pytest.mark.parametrize(
    "model",
    [
        skdp.DPRidge(solver="boosted_ssp"),
        skdp.DPRidge(epsilon=np.inf),
        skdp.DPLogisticRegression(max_iter=30),
    ],
)
def test_nothing_is_said_of_other_solvers_or_without_noise(model):
    assert model.plan(2000, 10).expectations == ()


@pytest.mark.parametrize(
    ("model", "unlike"),
    [
        (skdp.DPRidge(delta=0.0), "delta=0"),
        (skdp.DPPoissonRegressor(delta=0.0), "delta=0"),
        (skdp.DPLogisticRegression(delta=0.0), "delta=0"),
        (skdp.DPLinearSVC(delta=0.0), "this loss and delta=0"),
        (skdp.DPQuantileRegressor(), "this loss"),
        (skdp.DPHuberRegressor(), "this loss"),
        (skdp.DPLasso(), "this penalty or constraint"),
    ],
)
def test_fits_that_were_not_measured_are_expected_to_lose_what_others_do(model, unlike):
    """With delta=0 nothing standardises rows: a warning before the fit and the plan says so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", skdp.NoiseWarning)
        worth, _ = model.plan(2000, 10).expectations
    assert f"Fits with {unlike} were not measured" in worth
    raw = [str(one.message) for one in caught if "does not standardise" in str(one.message)]
    assert len(raw) == (model.delta == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", skdp.NoiseWarning)
        model.set_params(scaling="none").plan(2000, 10)


def test_groups_are_expected_to_lose_what_rows_do():
    worth, _ = skdp.DPRidge().plan(None, 10, n_groups=2000).expectations
    assert "2000 groups" in worth
    assert "Fits with groups were not measured" in worth


def test_totals_of_skewed_targets_are_said_to_be_too_low():
    for model in (skdp.DPRidge(), skdp.DPPoissonRegressor(), skdp.DPGammaRegressor()):
        assert "5% too low" in model.plan(2000, 10).expectations[0]
    for model in (skdp.DPRidge(scaling=skdp.PublicRange(target=9.0)), skdp.DPLogisticRegression()):
        assert "too low" not in model.plan(2000, 10).expectations[0]
