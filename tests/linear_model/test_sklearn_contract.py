"""scikit-learn's own estimator checks, at the default budget."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import skdp

PER_RECORD = (
    "Each record's gradient is clipped on its own, weight included, so that its influence stays "
    "bounded: a record of weight 2 is not two records, and one of weight 0 still counts in n. "
    "Were they the same, two copies of a row could add twice the bound."
)

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": PER_RECORD,
    "check_sample_weight_equivalence_on_sparse_data": PER_RECORD,
}

SECURE_NOISE = (
    "The check wants two fits to agree. Noise that a seed reproduces can be subtracted by whoever "
    "knows the seed, so it comes from a secure source unless privacy has SeededNoise. With it the "
    "check passes, here, too. The tag non_deterministic says as much, but these checks do not look "
    "at it."
)

NEED_ONE_NOISE = dict.fromkeys(
    (
        "check_classifier_data_not_an_array",
        "check_fit_idempotent",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_supervised_y_2d",
    ),
    SECURE_NOISE,
)


# At most 50 rows or so at epsilon 1: most fits pass, not all.
BY_CHANCE = {"check_class_weight_classifiers", "check_classifiers_train", "check_regressors_train"}

# The code of DPPoissonRegressor, with another power in the loss.
REPRESENTED = {"DPGammaRegressor", "DPTweedieRegressor"}
MODELS = [
    getattr(skdp, name)
    for name in skdp.__all__
    if hasattr(getattr(skdp, name), "fit_blocks") and name not in REPRESENTED
]


# The scaling before a fit is the same code for all models; these are checked with it.
SCALED = (
    skdp.DPRidge,
    skdp.DPLogisticRegression,
    skdp.DPPoissonRegressor,
)


# One check wants a score of 0.5 on 200 rows, which noise permits in one fit of two.
SEEDS = {skdp.DPPoissonRegressor: 2}

# The checks make up labels and declare none.
NO_CLASSES = pytest.mark.filterwarnings("ignore:.*classes=None:skdp.PrivacyWarning")


@NO_CLASSES
@parametrize_with_checks(
    [
        model(
            scaling="auto" if model in SCALED else "none",
            privacy=skdp.Privacy(noise=skdp.SeededNoise(SEEDS.get(model, 0))),
            **({} if model in SCALED else {"max_iter": 15}),
        )
        for model in MODELS
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_estimator_checks(estimator, check):
    if check.func.__name__ == "check_class_weight_classifiers":  # on 50 rows
        estimator = estimator.set_params(epsilon=20.0)
    if isinstance(estimator, skdp.DPQuantileRegressor):  # which is scored by D2, less than R2
        estimator = estimator.set_params(epsilon=20.0)
    check(estimator)


# The source of noise is chosen in one place for all models.
@NO_CLASSES
@pytest.mark.parametrize("model", [skdp.DPLogisticRegression])
def test_estimator_checks_with_secure_noise(model):
    failed = {
        result["check_name"]
        for result in check_estimator(
            model(scaling="none", max_iter=15), on_skip=None, on_fail=None
        )
        if result["status"] == "failed"
    }
    assert failed <= {*EXPECTED, *NEED_ONE_NOISE, *BY_CHANCE}
