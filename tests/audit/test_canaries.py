"""Black-box bounds: exact where there is a closed form, below the truth, alarmed by bugs."""

from __future__ import annotations

import math

import pytest
from scipy import stats
from sklearn.base import clone

import skdp
from skdp import audit
from skdp._oracle.releases.mechanisms import GaussianNoise
from skdp.accounting import gaussian_epsilon, gaussian_mu
from skdp.audit import black_box

ONE_STEP = skdp.DPLinearRegression(solver="gd", max_iter=1, scaling="none", epsilon=4.0, delta=1e-5)


repeatable = pytest.mark.usefixtures("repeatable_noise")


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (77, 1000)])
def test_clopper_pearson_is_the_tail_of_the_binomial(k, n):
    lower, upper = black_box.clopper_pearson(k, n, 0.01)
    if k:
        assert stats.binom.sf(k - 1, n, lower) == pytest.approx(0.01)
    if k < n:
        assert stats.binom.cdf(k, n, upper) == pytest.approx(0.01)
    assert lower <= k / n <= upper


def test_rates_of_randomised_response_prove_its_epsilon():
    truth = math.exp(1.5) / (1 + math.exp(1.5))
    assert black_box.epsilon_from_rates(truth, 1 - truth, 0.0) == pytest.approx(1.5)
    assert black_box.epsilon_from_rates(0.3, 0.4, 0.0) == 0.0


def test_perfect_guesses_of_many_coins_prove_the_mu_that_they_can():
    """With n right guesses the bound on the rate of errors is 1 - error**(1/n)."""
    worst = 1 - 0.01 ** (1 / 500)
    assert black_box.mu_from_errors(0, 500, 0.01) == pytest.approx(-2 * stats.norm.ppf(worst))
    assert black_box.mu_from_errors(260, 500, 0.01) == 0.0


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


def test_fits_with_one_seed_are_refused():
    with pytest.raises(ValueError, match="all fits have the same noise"):
        audit.canaries(skdp.DPRidge(privacy=skdp.Privacy(noise=skdp.SeededNoise(0))))
