"""Printed bounds and printed noise, by the papers' own formulas and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers import theory as papers
from skdp.accounting import gaussian_epsilon
from skdp.accounting.papers import zcdp_epsilon
from skdp.steps import PolynomialStep

FACTS = {"initial_gap": 0.7, "smoothness": 2.0, "gradient_norm": 1.5, "noise_effect": 0.3}


def test_the_general_bound_by_hand():
    """Thm 4.2, with b_t = eta / eta_t and eta divided out."""
    eta, alpha = np.array([0.5, 0.25]), np.array([1.0, 2.0])
    start = 0.7 + 2.0 * 1.5**2 / 2 * (0.25 + 0.0625)
    noise = 0.3 / 2 * (0.25 + 4 * 0.0625) * (1 + 0.25)
    found = papers.printed_adp_bound(eta, alpha, **FACTS)
    assert found == pytest.approx((start + noise) / 0.75)


@pytest.mark.parametrize("n_steps", [200, 20_000])
def test_polynomial_bounds_are_above_the_general_one(n_steps):
    """Prop. 5.1 follows from Thm 4.2, and its ratio grows as log T does."""
    rule = {"initial": 0.8, "a": 20.0, "c": 1.5}
    eta = PolynomialStep(**rule).sizes(n_steps)
    matched, uniform = papers.printed_polynomial_bounds(n_steps, **rule, **FACTS)
    assert papers.printed_adp_bound(eta, eta**-0.5, **FACTS) <= matched
    assert papers.printed_adp_bound(eta, np.ones(n_steps), **FACTS) <= uniform
    no_start = {**FACTS, "initial_gap": 0.0, "gradient_norm": 0.0}
    matched, uniform = papers.printed_polynomial_bounds(n_steps, **rule, **no_start)
    assert uniform / matched == pytest.approx(math.log1p(n_steps * 1.5 / 20))
    with pytest.raises(ValueError, match="at least"):
        papers.printed_polynomial_bounds(50, **rule, **FACTS)


def test_adaptive_bounds_by_hand():
    """Prop. 5.2 in its own letters, at L = 1."""
    T, eta, b0, nu, D, G, noise = 100, 0.5, 2.0, 0.1, 0.7, 1.5, 0.3
    W = 2 * G * (2 * G + eta / 2) * (1 + math.log(T * (G**2 + nu**2) / b0**2 + 1)) + 2 * G * D / eta
    # noise_effect = L d (16 G)^2 B / (n eps)^2, so d B / (n eps)^2 is this:
    unit = noise / (16 * G) ** 2
    matched = W / math.sqrt(T - 1) + 128 * G**3 * eta * unit * math.sqrt(T) / nu
    uniform = W / math.sqrt(T - 1)
    uniform += 32 * G**3 * eta * unit * math.sqrt(T) * math.log(1 + T * nu / b0**2) / nu
    found = papers.printed_adaptive_bounds(
        T, initial=eta, first=b0, least=nu, **FACTS | {"smoothness": 1.0}
    )
    assert found == pytest.approx((matched, uniform))


def test_true_risk_bounds_by_hand():
    found = papers.true_risk_in_probability(0.01, 2.0, 0.5, 1000, 0.1)
    assert found == pytest.approx(math.sqrt(2 * 4 / 500 * 0.01) + 4 * 4 / (0.1 * 500))
    assert [papers.repetitions(p) for p in (0.5, 0.05)] == [1, 5]
    assert papers.true_risk_by_stability(0.01, 2.0, 0.1, 50, 1000) == pytest.approx(0.03)


def test_printed_noise_and_what_it_costs():
    h22 = papers.printed_noise("H22", 4.0, 1e-8, n_rows=1000, n_steps=100)
    assert h22.multiplier == pytest.approx(math.sqrt(100 / 0.392704), rel=1e-5)
    assert h22.true_epsilon() == pytest.approx(gaussian_epsilon(0.392704**0.5, 1e-8), rel=1e-4)
    assert zcdp_epsilon(0.392704 / 2, 1e-8) <= 4.0
    # The published code passes a scale for a standard deviation: sqrt(2) epsilon.
    k22 = papers.printed_noise("K22", 1.0, 0.0, n_rows=10**5, n_steps=50)
    assert k22.true_epsilon() == pytest.approx(math.sqrt(2))
    # The figure of Wang, Ye, Xu (n = 82,962, T m = 75,000) is far beyond what its theorem allows.
    w17 = papers.printed_noise("W17 svrg", 0.2, 1e-3, n_rows=82_962, n_steps=75_000)
    assert w17.multiplier == pytest.approx(0.04338, rel=1e-3)
    assert w17.true_epsilon() > 1000
    wu21 = papers.printed_noise("Wu21", 0.1, 1e-5, 10_000, 300, batch_rows=256)
    assert wu21.true_epsilon() < 0.1 / 5
    # In their experiments C_epsilon = 16; the paper prints 0.29 for this one.
    cifar = papers.printed_noise("Wu21, section 6", 0.8, 1e-5, 50_000, 11_760, batch_rows=256)
    whole = papers.printed_noise("Wu21", 0.8, 1e-5, 50_000, 11_760, batch_rows=256)
    assert cifar.multiplier == pytest.approx(whole.multiplier / 16)
    assert 0.1 < cifar.true_epsilon() < 0.29
    # Remark 4.1 is there for budgets beyond those of the theorem.
    remark = papers.printed_noise("W17 svrg, Remark 4.1", 0.2, 1e-3, 200_000, 75_000)
    assert remark.multiplier == pytest.approx(0.01799 * math.log(75_000 / 1e-3), rel=1e-3)
    assert 0.2 < remark.true_epsilon() < 1.0
    v22 = papers.printed_noise("V22", 1.0, 1e-6, 50_000, 100)
    assert v22.multiplier == pytest.approx(2 * 2 * math.sqrt(math.log(1e6) + 1))
    assert v22.true_epsilon("replace_one") < 1.0
    gd = papers.printed_noise("W17 gd", 1.0, 1e-3, 1000, 50)
    assert gd.multiplier == pytest.approx(math.sqrt(50 * math.log(1e3)))
    with pytest.raises(ValueError, match="paper must be one of 'H22'"):
        papers.printed_noise("A16", 1.0, 1e-6, 10, 10)
