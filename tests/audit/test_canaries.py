"""Black-box bounds: exact where there is a closed form, below the truth, alarmed by bugs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import skdp
from skdp import audit
from skdp.accounting import gaussian_epsilon, gaussian_mu
from skdp.audit import bounds
from skdp.oracle.releases.mechanisms import GaussianNoise

ONE_STEP = skdp.DPLinearRegression(solver="gd", max_iter=1, scaling="none", epsilon=4.0, delta=1e-5)


repeatable = pytest.mark.usefixtures("repeatable_noise")


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (77, 1000)])
def test_clopper_pearson_is_the_tail_of_the_binomial(k, n):
    lower, upper = bounds.clopper_pearson(k, n, 0.01)
    if k:
        assert stats.binom.sf(k - 1, n, lower) == pytest.approx(0.01)
    if k < n:
        assert stats.binom.cdf(k, n, upper) == pytest.approx(0.01)
    assert lower <= k / n <= upper


def test_rates_of_randomised_response_prove_its_epsilon():
    truth = math.exp(1.5) / (1 + math.exp(1.5))
    assert bounds.epsilon_from_rates(truth, 1 - truth, 0.0) == pytest.approx(1.5)
    assert bounds.epsilon_from_rates(0.3, 0.4, 0.0) == 0.0


def test_perfect_guesses_of_many_coins_prove_the_mu_that_they_can():
    """With n right guesses the bound on the rate of errors is 1 - error**(1/n)."""
    worst = 1 - 0.01 ** (1 / 500)
    assert bounds.mu_from_errors(0, 500, 0.01) == pytest.approx(-2 * stats.norm.ppf(worst))
    assert bounds.mu_from_errors(260, 500, 0.01) == 0.0


def test_one_run_bound_is_the_binomial_tail_without_delta():
    """r of r right: the p-value is (e^eps / (1 + e^eps))^r."""
    found = bounds.one_run_epsilon(100, 100, 1000, 0.0, 0.01)
    chance = 0.01 ** (1 / 100)
    assert found == pytest.approx(math.log(chance / (1 - chance)), abs=1e-6)
    assert bounds.one_run_epsilon(100, 100, 1000, 1e-4, 0.01) < found
    assert bounds.one_run_epsilon(50, 100, 1000, 0.0, 0.01) == 0.0


@pytest.mark.slow
def test_one_run_bound_holds_for_randomised_response(rng):
    """True epsilon 1: in 4000 runs the bound is passed about as often as it may be, 5 %."""
    chance = math.e / (1 + math.e)
    right = rng.binomial(400, chance, 4000)
    passed = np.mean([bounds.one_run_p_value(int(r), 400, 400, 1.0, 0.0) < 0.05 for r in right])
    assert passed < 0.06


def test_curves_meet_the_claim():
    """Every Gaussian curve lies above that of each pair (epsilon, delta) that it implies."""
    rates = np.linspace(0, 1, 101)
    mu = gaussian_mu(2.0, 1e-3)
    assert (bounds.gaussian_trade_off(rates, mu) >= bounds.trade_off(rates, 2.0, 1e-3) - 1e-9).all()


@pytest.mark.slow
@repeatable
@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_one_step_shows_most_of_its_claim_and_no_more(adjacency):
    model = clone(ONE_STEP).set_params(privacy=skdp.Privacy(adjacency=adjacency))
    found = audit.canaries(model, n_fits=1600, random_state=0)
    assert found.ok
    assert found.claim.mu == pytest.approx(gaussian_mu(4.0, 1e-5))
    assert 0.6 * found.claim.mu < found.mu_lower <= found.claim.mu
    assert 0.5 < found.epsilon_lower < 4.0
    assert found.epsilon_of_mu == gaussian_epsilon(found.mu_lower, 1e-5)


@repeatable
def test_half_of_the_noise_is_an_alarm(monkeypatch):
    original = GaussianNoise.scale_of_noise
    monkeypatch.setattr(GaussianNoise, "scale_of_noise", lambda *given: 0.5 * original(*given))
    found = audit.canaries(ONE_STEP, n_fits=800, random_state=0)
    assert not found.ok
    assert "THE CLAIM IS BROKEN" in str(found)


@repeatable
def test_one_fit_on_many_canaries():
    found = audit.canaries_in_one_fit(ONE_STEP, n_canaries=800, random_state=0)
    assert found.ok
    assert 0.3 < found.epsilon_lower < 4.0
    assert 0 < found.mu_lower < found.claim.mu


@repeatable
def test_one_fit_without_noise_to_speak_of_is_an_alarm(monkeypatch):
    original = GaussianNoise.scale_of_noise
    monkeypatch.setattr(GaussianNoise, "scale_of_noise", lambda *given: 0.1 * original(*given))
    found = audit.canaries_in_one_fit(ONE_STEP, n_canaries=800, confidence=0.95, random_state=0)
    assert not found.ok


def test_fits_with_one_seed_are_refused():
    with pytest.raises(ValueError, match="all fits have the same noise"):
        audit.canaries(skdp.DPRidge(privacy=skdp.Privacy(noise=skdp.SeededNoise(0))))


@repeatable
def test_a_picture_of_the_trade_off():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    found = audit.canaries(ONE_STEP, n_fits=200, random_state=0)
    display = found.plot()
    alarms, missed = display.curve()
    assert (alarms[0], missed[0]) == (1.0, 0.0)
    assert (alarms[-1], missed[-1]) == (0.0, 1.0)
    assert display.ax_.get_xlabel() == "false positives"
