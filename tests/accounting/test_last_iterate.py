"""The cost of a last iterate: published figures, exact cases, and the optimisation itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from skdp.accounting import Adjacency, Composed, Gaussian, GDPAccountant, calibrate, price
from skdp.accounting.events.last_iterate import HiddenIterates, last_iterate_factor

# (c, T, mu of the last iterate) at mu = 0.1 a step; the closed form of Bok, Su, Altschuler 2024.
STRONGLY_CONVEX = [
    (0.92, 10, 0.3076318969597429),
    (0.92, 100, 0.48978077316316737),
    (0.92, 1000, 0.48989794855663577),
    (0.96, 10, 0.3140824077020787),
    (0.96, 100, 0.6882887295464671),
    (0.96, 1000, 0.6999999999999997),
    (0.98, 100, 0.8707237339804994),
    (0.98, 1000, 0.9949874354320882),
    (0.99, 10, 0.316096111326877),
    (0.99, 100, 0.9610137446461975),
    (0.99, 1000, 1.4106126987421936),
    (0.995, 100, 0.9897358773049292),
    (0.995, 1000, 1.9842510708572538),
]

# (sensitivity of the mean gradient, step size, mu, steps from which it beats composition) for a set
# of diameter 1 and noise of size 8; from the code that goes with the paper.
DIAMETER = [
    (0.25, 0.1, 0.39528470752104744, 160),
    (0.5, 0.1, 0.5590169943749475, 80),
    (1.0, 0.1, 0.7905694150420949, 40),
    (0.5, 0.05, 0.7905694150420949, 160),
    (0.5, 0.2, 0.39528470752104744, 40),
]


@pytest.mark.parametrize(("contraction", "n_steps", "mu"), STRONGLY_CONVEX)
def test_strongly_convex_figures(contraction, n_steps, mu):
    assert 0.1 * last_iterate_factor(n_steps, contraction) == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize(("sensitivity", "step", "mu", "enough"), DIAMETER)
def test_diameter_figures(sensitivity, step, mu, enough):
    def cost(n_steps):
        factor = last_iterate_factor(n_steps, 1.0, reach=1.0 / (step * sensitivity))
        return sensitivity / 8 * factor

    assert cost(10_000) == pytest.approx(mu, rel=1e-9)
    assert cost(enough) == pytest.approx(mu, rel=1e-9)
    assert cost(enough // 2) == pytest.approx(sensitivity / 8 * math.sqrt(enough // 2), rel=1e-9)


def test_diameter_formula_of_the_paper_is_an_upper_bound():
    for reach in (0.01, 0.5, 1.0, 1.7, 20.0, 33.3):
        published = math.sqrt(3 * reach + math.ceil(reach))
        assert last_iterate_factor(10_000, 1.0, reach) <= published * (1 + 1e-9)


@pytest.mark.parametrize("contraction", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("n_steps", [1, 2, 7, 40])
def test_linear_maps_attain_it(contraction, n_steps):
    """y -> c y + s: the two ends are Gaussians of one variance, a known distance apart."""
    mean, variance = 0.0, 0.0
    for _ in range(n_steps):
        mean, variance = contraction * mean + 1, contraction**2 * variance + 1
    exact = mean / math.sqrt(variance)
    assert last_iterate_factor(n_steps, contraction) == pytest.approx(exact, rel=1e-9)
    assert last_iterate_factor(n_steps, contraction) >= exact * (1 - 1e-14)


def _by_optimisation(n_steps, contraction, reach):
    """Least norm of the shifts, over all starts, by a general solver."""
    best = math.inf
    for first, start in [(n_steps, 0.0)] + [(k, reach) for k in range(1, n_steps + 1)]:

        def path(shifts, start=start):
            z, left = start, []
            for t, shift in enumerate(shifts):
                z = (z if t == 0 else contraction * z) + 1 - shift  # points are 1-Lipschitz
                left.append(z)
            return np.array(left)

        found = minimize(
            lambda a: float(a @ a),
            np.append(1 + start, np.ones(first - 1)),  # feasible: make good for all at once
            bounds=[(0, None)] * first,
            constraints=[
                {"type": "ineq", "fun": lambda a: path(a)[:-1]},
                {"type": "eq", "fun": lambda a: path(a)[-1]},
            ],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-11},
        )
        assert abs(path(found.x)[-1]) < 1e-7
        assert path(found.x).min() > -1e-7
        best = min(best, math.sqrt(found.fun))
    return best


@pytest.mark.parametrize("contraction", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("reach", [0.3, 2.0, 5.5])
def test_no_shifts_are_better(contraction, reach):
    found = last_iterate_factor(8, contraction, reach)
    assert found == pytest.approx(_by_optimisation(8, contraction, reach), rel=1e-5)


def test_order():
    steps = [last_iterate_factor(t, 0.97) for t in range(1, 200)]
    assert (np.diff(steps) > 0).all()
    contractions = [last_iterate_factor(100, c) for c in np.linspace(0, 1, 50)]
    assert (np.diff(contractions) > 0).all()
    reaches = [last_iterate_factor(100, 0.99, r) for r in np.linspace(0, 60, 50)]
    assert (np.diff(reaches) >= 0).all()
    assert reaches[0] == pytest.approx(1.0)
    assert last_iterate_factor(1, 0.5) == 1.0


def test_never_more_than_composition_nor_less_than_one_step():
    for contraction in [0.0, 0.5, 1 - 1e-9, 1 - 1e-16, 1.0, 1.5]:
        for reach in [0.0, 1e-9, 3.0, 1e9, math.inf]:
            for n_steps in [1, 3, 10_000]:
                found = last_iterate_factor(n_steps, contraction, reach)
                assert 1 <= found <= math.sqrt(n_steps)


def test_without_contraction_or_set_it_is_composition():
    assert last_iterate_factor(50, 1.0) == math.sqrt(50)
    assert last_iterate_factor(50, 1.01, reach=0.1) == math.sqrt(50)  # z could grow: no theorem


@pytest.mark.parametrize("bad", [(0, 0.5, 1.0), (5, -0.1, 1.0), (5, math.nan, 1.0), (5, 0.5, -1.0)])
def test_refusals(bad):
    with pytest.raises(ValueError, match="last_iterate_factor: n_steps must be at least 1"):
        last_iterate_factor(*bad)


# The event.


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("reach", [0.7, 30.0, math.inf])
def test_event_costs_the_factor_under_both_relations(adjacency, reach):
    event = HiddenIterates(Gaussian(30.0), 400, 0.98, reach)
    unit = Gaussian(30.0).sensitivity(adjacency)
    expected = unit / 30.0 * last_iterate_factor(400, 0.98, reach / unit)
    assert GDPAccountant().mu(event, adjacency) == pytest.approx(expected, rel=1e-12)
    assert GDPAccountant().mu(event.scaled(3.0), adjacency) == pytest.approx(
        expected / 3, rel=1e-12
    )
    assert event.sensitivity(adjacency) == unit


def test_event_composes_and_is_calibrated():
    event = Composed(((HiddenIterates(Gaussian(1.0), 1000, 0.9), 1), (Gaussian(2.0), 3)))
    found = calibrate(event, 1.0, 1e-6, Adjacency.REPLACE_ONE)
    spent, _ = price(event.scaled(found.scale), 1e-6, Adjacency.REPLACE_ONE)
    assert 0.999 < spent <= 1.0
    shown = Composed(((Gaussian(1.0), 1000), (Gaussian(2.0), 3)))
    assert found.scale < calibrate(shown, 1.0, 1e-6, Adjacency.REPLACE_ONE).scale / 5


def test_no_noise_is_no_privacy():
    event = HiddenIterates(Gaussian(1.0), 10, 0.9).scaled(0.0)
    assert GDPAccountant().mu(event, Adjacency.ZERO_OUT) == math.inf


def test_event_takes_gaussian_steps_only():
    with pytest.raises(ValueError, match="event must be Gaussian"):
        HiddenIterates(Composed(), 10, 0.9)
