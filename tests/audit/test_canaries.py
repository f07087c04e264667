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


def test_perfect_guesses_of_many_coins_prove_the_mu_and_the_epsilon_that_they_can():
    """With n right guesses the bound on the rate of errors is 1 - error**(1/n)."""
    worst = 1 - 0.01 ** (1 / 500)
    epsilon, mu = black_box.bounds_from_errors(0, 500, 1e-5, 0.99)
    assert mu == pytest.approx(-2 * stats.norm.ppf(worst))
    # Randomised response with this epsilon and delta errs that often, and no mechanism seldomer.
    assert (1 - 1e-5) / (1 + math.exp(epsilon)) == pytest.approx(worst)
    assert stats.binom.cdf(
        77, 1000, 1 - stats.norm.cdf(black_box.bounds_from_errors(77, 1000, 0.0, 0.99)[1] / 2)
    ) == pytest.approx(0.01)
    assert black_box.bounds_from_errors(260, 500, 1e-5, 0.99) == (0.0, 0.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_one_step_shows_most_of_its_claim_and_no_more(adjacency):
    model = clone(ONE_STEP).set_params(privacy=skdp.Privacy(adjacency=adjacency))
    found = audit.canaries(model, n_fits=1600, random_state=0)
    assert found.ok
    assert found.claim.mu == pytest.approx(gaussian_mu(4.0, 1e-5))
    assert 0.6 * found.claim.mu < found.mu_lower <= found.claim.mu
    assert 0.3 < found.epsilon_lower < 4.0
    assert found.epsilon_of_mu == gaussian_epsilon(found.mu_lower, 1e-5)


def test_half_of_the_noise_is_an_alarm(monkeypatch):
    original = GaussianNoise.scale_of_noise
    monkeypatch.setattr(GaussianNoise, "scale_of_noise", lambda *given: 0.5 * original(*given))
    found = audit.canaries(ONE_STEP, n_fits=800, random_state=0)
    assert not found.ok
    assert "THE CLAIM IS BROKEN" in str(found)


def test_fits_with_one_seed_are_refused():
    with pytest.raises(ValueError, match="all fits have the same noise"):
        audit.canaries(skdp.DPRidge(privacy=skdp.Privacy(noise=skdp.SeededNoise(0))))
