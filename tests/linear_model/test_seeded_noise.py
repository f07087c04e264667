"""Noise is reproducible only where SeededNoise asks for it."""

from __future__ import annotations

import functools
import pickle

import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
)
from sklearn.linear_model import RANSACRegressor

import skdp
from replays import seeded

LOGISTIC, RIDGE = functools.partial(skdp.DPLogisticRegression, classes=[0, 1]), skdp.DPRidge
SEEDED = {"privacy": seeded(3)}

# Meta-estimators that write a seed, or numpy's global generator, into their members.
SEEDING = {
    "BaggingClassifier": lambda: BaggingClassifier(LOGISTIC(), n_estimators=1, bootstrap=False),
    "BaggingRegressor": lambda: BaggingRegressor(RIDGE(), n_estimators=1, bootstrap=False),
    # AdaBoost's weights add up to 1, so that noise drowns gradients unless there is little of it.
    "AdaBoostClassifier": lambda: AdaBoostClassifier(LOGISTIC(epsilon=1e4), n_estimators=1),
    "AdaBoostRegressor": lambda: AdaBoostRegressor(RIDGE(), n_estimators=1),
    "RANSACRegressor": lambda: RANSACRegressor(RIDGE(), min_samples=300, max_trials=1),
}


def member_of(meta):
    return meta.estimator_ if isinstance(meta, RANSACRegressor) else meta.estimators_[0]


def refitted(member, data):
    """Attack: fit once more with all that the pickle of a member holds."""
    return clone(pickle.loads(pickle.dumps(member))).fit(*data)


@pytest.mark.filterwarnings("ignore:PrivacyBudget:skdp.PrivacyWarning")
@pytest.mark.parametrize("name", SEEDING)
def test_seeds_of_meta_estimators_do_not_make_noise_removable(name, classification, regression):
    data = classification if "Classifier" in name else regression
    with skdp.PrivacyBudget(1e5, 1e-6):
        member = member_of(SEEDING[name]().fit(*data))
    assert member.privacy_.noise_source == "system"
    assert (refitted(member, data).coef_ != member.coef_).any()


@pytest.mark.parametrize("make", [RIDGE, skdp.DPStandardScaler])
def test_seeded_noise_is_reproducible_and_warned_about(make, regression):
    fits = []
    for _ in range(2):
        with pytest.warns(skdp.SeededNoiseWarning, match="NOT private"):
            fits.append(make(**SEEDED).fit(*regression))
    one, other = fits
    shown = "coef_" if make is RIDGE else "scale_"
    assert (getattr(one, shown) == getattr(other, shown)).all()
    assert one.privacy_.noise_source == one.plan(400, 5).noise_source == "seeded"


def test_a_budget_refuses_seeded_noise_unless_it_allows_it(regression):
    with skdp.PrivacyBudget(3.0, 1e-6) as budget:
        with pytest.raises(skdp.PrivacyBudgetError, match=r"[Ss]eeded.*nothing was"):
            RIDGE(**SEEDED).fit(*regression)
        assert budget.n_fits == 0
    with skdp.PrivacyBudget(3.0, 1e-6, allow_seeded_noise=True) as budget:
        RIDGE(**SEEDED).fit(*regression)
    assert budget.statement.noise_source == "seeded"
    with pytest.raises(ValueError, match="allow_seeded_noise must be True or False"):
        skdp.PrivacyBudget(3.0, 1e-6, allow_seeded_noise="yes")
