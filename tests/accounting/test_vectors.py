"""Every published or independently computed figure, within its tolerance."""

import math

import numpy as np
import pytest

from costs import by_pairs, cost
from skdp.accounting import (
    Adjacency,
    ApproximateDP,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Selected,
    Shuffled,
    calibrate,
    event_mu,
    gaussian_epsilon,
    gaussian_mu,
    price,
)
from skdp.accounting.pairs import SAFETY
from skdp.accounting.papers import approximate_delta, clone_delta, composed_epsilon, zcdp_epsilon

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
CLOSED_FORM = 1e-10
PLD = 2e-4  # the reference lattice is 1e-4 or coarser


def times(event, count):
    return Composed(((event, count),))


def costs_no_more(event, delta, adjacency, figure):
    """Whether the one price needs no more than a figure by another theorem."""
    return cost(event, delta, adjacency) <= figure * (1 + 1e-9)


def test_mu_to_fifteen_digits(vectors):
    for words, digits in vectors["mpmath_mu"].items():
        epsilon, delta = (float(part.split("=")[1]) for part in words.split(","))
        assert gaussian_mu(epsilon, delta) == pytest.approx(float(digits), rel=CLOSED_FORM)


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [  # Balle and Wang 2018, Thm 8, with 60 digits (mpmath)
        (1e-6, 1e-12, 2.4256976059658280711e-7),
        (1e-6, 1e-300, 2.7415295421594301572e-8),
        (1e-6, 0.01, 0.02506817987465333119),
        (1e-5, 1e-300, 2.7368078547808997019e-7),
        (1e-4, 1e-12, 0.000019951982722232506137),
        (1e-3, 1e-300, 0.000027274361183926801844),
        (0.1, 1e-5, 0.032520784056203911885),
        (1.0, 1e-5, 0.26805112321129421922),
        (8.0, 1e-6, 1.5315451175661451262),
    ],
)
def test_budgets_are_rounded_to_the_private_side_by_no_more_than_is_said(epsilon, delta, mu):
    assert 0.99 * SAFETY < 1 - gaussian_mu(epsilon, delta) / mu < 1.01 * SAFETY
    extra = gaussian_epsilon(mu, delta) - epsilon
    assert 0.9 * SAFETY * epsilon < extra < 1.1 * SAFETY * epsilon + 1.1e-14 * delta


def test_an_epsilon_of_nearly_0_is_above_what_rounding_hides():
    """The delta of epsilon 0 exceeds this one by 3e-15 of it (60 digits, mpmath)."""
    delta = 1.6697363790034976e-06
    assert 0 < gaussian_epsilon(4.185408418793212e-06, delta) < 1e-13 * delta


def test_one_gaussian_by_all_theorems(vectors):
    for row in vectors["q1_gdp_vs_zcdp_vs_rdp"]:
        epsilon, delta = row["eps"], row["delta"]
        exact = 1 / gaussian_mu(epsilon, delta)
        assert exact == pytest.approx(row["sigma_gdp"], rel=CLOSED_FORM)
        assert exact == pytest.approx(row["sigma_dp_accounting"], rel=CLOSED_FORM)
        assert zcdp_epsilon(row["rho_cks"], delta) == pytest.approx(epsilon, rel=1e-9)
        noise = row["ratio_rdp_default_orders"] * row["sigma_gdp"]
        assert costs_no_more(Gaussian(noise), delta, ZERO_OUT, epsilon)


def test_schedules_of_full_batch_gaussians(vectors):
    for row in vectors["q1_heterogeneous_full_batch"]:
        plan = Composed.of(Gaussian(sigma) for sigma in row["sigma_over_delta"])
        assert event_mu(plan, ZERO_OUT) == pytest.approx(row["mu"], rel=CLOSED_FORM)
        for delta, key in ((1e-5, "eps_1e5"), (1e-6, "eps_1e6")):
            assert cost(plan, delta, ZERO_OUT) == pytest.approx(row[key], rel=CLOSED_FORM)
        assert cost(plan, 1e-5, ZERO_OUT) == pytest.approx(row["dp_accounting_pld_1e5"], rel=1e-6)


def test_zcdp(vectors):
    for row in vectors["q2_zcdp"]:
        rho, delta = row["rho"], row["delta"]
        assert zcdp_epsilon(rho, delta) == pytest.approx(row["eps_cks"], rel=CLOSED_FORM)
        exact = gaussian_epsilon(math.sqrt(2 * rho), delta)
        assert exact == pytest.approx(row["eps_gaussian_exact"], rel=CLOSED_FORM)
        assert exact < zcdp_epsilon(rho, delta) < row["eps_bun_steinke"]
    for row in vectors["q2_zcdp_inverse"]:
        if "rho_cks" in row:
            found = zcdp_epsilon(row["rho_cks"], row["delta"])
            assert found == pytest.approx(row["eps"], rel=1e-9)


@pytest.mark.parametrize("noise", ["1.0", "2.0", "4.0"])
def test_sampling_schemes_with_equal_access(vectors, noise):
    row = vectors["q3_schemes_n10000_m100_T1000_delta1e5"][noise]
    base = Gaussian(row["nm"])
    poisson = times(PoissonSampled(0.01, base), 1000)
    fixed = times(FixedSizeSampled(100, 10_000, base), 1000)
    assert by_pairs(poisson, 1e-5, ZERO_OUT) == pytest.approx(row["dpacc_poisson"], abs=PLD)
    assert by_pairs(poisson, 1e-5, REPLACE_ONE) == pytest.approx(
        row["dpacc_poisson_replace"], abs=PLD
    )
    assert costs_no_more(poisson, 1e-5, ZERO_OUT, row["rdp_poisson"])
    assert costs_no_more(fixed, 1e-5, REPLACE_ONE, row["rdp_wor_replace"])
    # The figures on the coarse lattice 1e-3 lie above ours.
    assert by_pairs(poisson, 1e-5, ZERO_OUT) <= row["poisson_remove"]
    assert by_pairs(poisson, 1e-5, REPLACE_ONE) <= row["poisson_replace"]
    assert by_pairs(fixed, 1e-5, REPLACE_ONE) <= row["wor_replace_pld"]


def test_without_replacement_lies_in_its_bracket(vectors):
    for row in vectors["q3_wor_replace_one_bracket"]:
        plan = times(FixedSizeSampled(100, 10_000, Gaussian(row["nm"])), 1000)
        found = by_pairs(plan, 1e-5, REPLACE_ONE)
        assert row["lower"] < found
        assert found == pytest.approx(row["upper"], abs=PLD)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [100, 1000])
def test_distinct_noise_levels(vectors, steps):
    row = vectors["q3_heterogeneous_poisson_T"][f"T{steps}"]
    plan = Composed.of(
        PoissonSampled(0.01, Gaussian(float(s))) for s in np.geomspace(0.8, 1.6, steps)[::-1]
    )
    found = by_pairs(plan, 1e-5, ZERO_OUT)
    assert found == pytest.approx(row["pld_dpacc_h1e4"], rel=2e-4)
    if steps == 100:
        assert found < row["pld_h1e3"]
        assert found < row["prv_upper"]
        assert costs_no_more(plan, 1e-5, ZERO_OUT, row["rdp"])
        assert found > row["add_direction_only"]


def test_distinct_noise_levels_under_all_relations(vectors):
    row = vectors["q3_heterogeneous_subsampled"]
    noises = np.linspace(1, 3, 50)
    poisson = Composed.of(PoissonSampled(0.02, Gaussian(float(s))) for s in noises)
    fixed = Composed.of(FixedSizeSampled(2, 100, Gaussian(float(s))) for s in noises)
    for adjacency, key in ((ZERO_OUT, "poisson_add_remove"), (REPLACE_ONE, "poisson_replace_one")):
        found = by_pairs(poisson, 1e-5, adjacency)
        assert found == pytest.approx(row[key], abs=2e-5)
        assert found == pytest.approx(row[f"dp_accounting_{key}"], abs=2e-5)
    assert by_pairs(fixed, 1e-5, REPLACE_ONE) == pytest.approx(row["wor_replace_one"], abs=2e-5)


def laplace_plan(words):
    parts = [part.split("x") for part in words.split("+")]
    return Composed(tuple((Laplace(1 / float(epsilon)), int(count)) for count, epsilon in parts))


def test_laplace_compositions(vectors):
    for row in vectors["q4"]["laplace_composition"]:
        plan, delta = laplace_plan(row["case"]), row["delta"]
        assert cost(plan, 0.0, ZERO_OUT) == pytest.approx(row["pure"], rel=1e-9)
        assert by_pairs(plan, delta, ZERO_OUT) == pytest.approx(row["dpacc_pld"], abs=2e-5)
        responses = Composed(
            tuple((ApproximateDP(1 / one.noise_multiplier), count) for one, count in plan.parts)
        )
        assert price(responses, delta, ZERO_OUT)[0] == pytest.approx(row["kov_opt_rr"], abs=2e-5)
        steps = [(1 / one.noise_multiplier, 0.0, count) for one, count in plan.parts]
        advanced = row["kov_heterogeneous_closed"]
        assert composed_epsilon(steps, delta) == pytest.approx(advanced, rel=1e-9)
        assert costs_no_more(plan, delta, ZERO_OUT, row["rdp"])


def test_laplace_without_replacement(vectors):
    for row in vectors["q4"]["laplace_wor"]:
        sampled = FixedSizeSampled(round(row["q"] * 1000), 1000, Laplace(2 / row["eps0"]))
        assert cost(sampled, 0.0, REPLACE_ONE) == pytest.approx(row["eps_step"])
        plan = times(sampled, row["T"])
        assert cost(plan, 0.0, REPLACE_ONE) == pytest.approx(row["pure_total"])
        for delta, key in ((1e-5, "wor_pld_1e5"), (1e-6, "wor_pld_1e6")):
            assert by_pairs(plan, delta, REPLACE_ONE) == pytest.approx(row[key], abs=PLD)
        poisson = times(PoissonSampled(row["q"], Laplace(1 / row["eps0"])), row["T"])
        assert by_pairs(poisson, 1e-6, ZERO_OUT) == pytest.approx(
            row["poisson_addremove_same_eps0_1e6"], abs=PLD
        )


def test_clones(vectors):
    for row in vectors["q5_shuffle_clones"]["clones"]:
        found = cost(Shuffled(row["n"], ApproximateDP(row["eps0"])), row["delta"], REPLACE_ONE)
        assert row["apple_lower"] <= found <= row["apple_upper"]
        if row["exact_clones"] is not None:
            assert found == pytest.approx(row["exact_clones"], rel=1e-5)
        if row["closed_form"] is not None:
            assert found < row["closed_form"]


def test_shuffled_gaussians(vectors):
    for row in vectors["q5_shuffle_clones"]["gauss"]:
        n, local = row["T"], row["eps0"]
        # (local epsilon, local delta) with a share of delta: recompute its parts.
        local_delta = row["frac"] * 1e-5 / n
        added = approximate_delta(n, local, local_delta, row["eps"])
        assert clone_delta(n, local, row["eps"]) <= row["total_delta"]
        assert added < row["total_delta"] * 3
        # Optimised over shares, ours is no worse. 2 nm, because replace-one doubles.
        event = Shuffled(n, Gaussian(2 * row["nm"]))
        assert cost(event, 1e-5, REPLACE_ONE) <= row["eps"] * 1.005
        alone = gaussian_epsilon(1 / row["nm"], 1e-5)
        assert alone == pytest.approx(row["parallel"], rel=1e-9)
        assert cost(event, 1e-5, REPLACE_ONE) <= alone


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("local", [1.0, 12.0, 30.0, 36.1, 37.0, 40.0, 200.0, 800.0])
def test_clones_at_large_local_epsilons(n, local):
    """Without a clone delta is that of one response, whose chance is at least that of no clone."""
    for share in (0.5, 0.9, 0.99, 1 - 1e-6):
        epsilon = share * local
        alone = -math.expm1(epsilon - local) / (1 + math.exp(-local))
        none = math.exp((n - 1) * math.log1p(-math.exp(-local)))
        assert clone_delta(n, local, epsilon) >= none * alone * (1 - 1e-9)
    assert approximate_delta(n, local, 1e-9, 1e6) == math.inf


def test_selection(vectors):
    for row in vectors["q6_selection"]:
        assert gaussian_mu(row["base_eps"], 1e-5) == pytest.approx(row["mu"], rel=CLOSED_FORM)
        base, mean = Gaussian(1 / row["mu"]), row["mean"]
        event = Selected(base, mean)
        assert event.gamma == pytest.approx(row["gamma_1.0"], rel=1e-6)
        assert cost(event, 1e-5, ZERO_OUT) == pytest.approx(row["pp_tnb1.0"], rel=1e-6)
        assert costs_no_more(event, 1e-5, ZERO_OUT, row["rdp_tnb1.0"])
        everything = times(base, mean)
        assert cost(everything, 1e-5, ZERO_OUT) == pytest.approx(row["naive"], rel=1e-9)


def test_selection_is_above_the_exact_cost(vectors):
    for row in vectors["q6_selection_exact_check"]:
        if row["eta"] != 1:
            continue
        event = Selected(Gaussian(1 / row["mu"]), row["mean"])
        bound = cost(event, row["delta"], ZERO_OUT)
        assert bound == pytest.approx(row["bound"], rel=1e-5)
        assert bound > row["exact_eps_when_score_is_output"]


def test_noise_of_a_private_search(vectors):
    for row in vectors["q6_recipe"]:
        if "eps_total" not in row:
            continue
        epsilon, delta = row["eps_total"], row["delta"]
        assert gaussian_mu(epsilon, delta) == pytest.approx(row["mu_no_tuning"], rel=CLOSED_FORM)
        for mean in (5, 10, 25):
            scale = calibrate(Selected(Gaussian(1.0), mean), epsilon, delta, ZERO_OUT).scale
            assert 1 / scale == pytest.approx(row[f"mu_base_eta1.0_m{mean}"], rel=5e-5)
