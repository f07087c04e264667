"""scikit-learn's own estimator checks, at the default budget."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

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


@parametrize_with_checks(
    [skdp.DPLinearRegression(), skdp.DPRidge(), skdp.DPLogisticRegression()],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_estimator_checks(estimator, check):
    check(estimator)
