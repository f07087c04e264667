"""Selections and shuffled passes beside other events."""

import pytest

from costs import by_pairs, cost
from skdp.accounting import (
    Adjacency,
    Composed,
    Gaussian,
    PoissonSampled,
    Selected,
    Shuffled,
    calibrate,
    delta_at,
    gaussian_epsilon,
    price,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE


def test_a_selection_inside_a_plan():
    chosen, refit = Selected(Gaussian(8.0), 10), Gaussian(8.0)
    plan = Composed(((chosen, 1), (refit, 1)))
    found, name = price(plan, 1e-5, ZERO_OUT)
    once = cost(chosen, 1e-5, ZERO_OUT)
    assert name == "pld"
    halves = cost(chosen, 5e-6, ZERO_OUT) + gaussian_epsilon(1 / 8, 5e-6)
    assert once < found <= halves
    assert delta_at(plan, found, ZERO_OUT) <= 1.01e-5
    assert calibrate(plan, 1.0, 1e-5, REPLACE_ONE).epsilon == pytest.approx(1.0, rel=1e-3)


def test_a_shuffled_pass_and_a_polish():
    plan = Composed(((Shuffled(5000, Gaussian(6.0)), 1), (PoissonSampled(0.01, Gaussian(2.0)), 20)))
    found, name = price(plan, 1e-6, ZERO_OUT)
    assert name == "mixed"
    assert found < by_pairs(plan, 1e-6, ZERO_OUT)
