"""Names that were public before they were changed still work, with a warning."""

import pytest

import skdp.accounting
from skdp.accounting import Gaussian

RENAMED = {
    "AdvancedComposition": "AdvancedCompositionAccountant",
    "BallsAndBinsModel": "BallsAndBinsAccountant",
    "GaussianDP": "GDPAccountant",
    "MixedComposition": "MixedAccountant",
    "ObjectiveModel": "ObjectivePerturbationAccountant",
    "OnePass": "DisjointPass",
    "OptimalComposition": "OptimalCompositionAccountant",
    "PrivacyLossDistribution": "PLDAccountant",
    "PureDP": "PureDPAccountant",
    "RenyiDP": "RDPAccountant",
    "SelectionModel": "SelectionAccountant",
    "ShuffleModel": "ShuffleAccountant",
    "ZeroConcentratedDP": "ZCDPAccountant",
    "knowing": "supporting_accountants",
}


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_old_names_warn_and_work(old, new):
    with pytest.warns(
        FutureWarning, match=rf"skdp\.accounting\.{old} is now skdp\.accounting\.{new};"
    ):
        found = getattr(skdp.accounting, old)
    assert found is getattr(skdp.accounting, new)
    assert old not in skdp.accounting.__all__


def test_old_names_can_be_imported():
    with pytest.warns(FutureWarning, match=r"is now skdp\.accounting\.DisjointPass"):
        from skdp.accounting import OnePass
    assert OnePass(5, Gaussian(1.0)).n_steps == 5


def test_unknown_names_are_still_unknown():
    with pytest.raises(AttributeError, match="no attribute 'MomentsAccountant'"):
        skdp.accounting.MomentsAccountant  # noqa: B018
    with pytest.raises(ImportError):
        from skdp.accounting import MomentsAccountant  # noqa: F401


def test_every_public_name_exists_and_is_listed_once():
    assert len(set(skdp.accounting.__all__)) == len(skdp.accounting.__all__)
    for name in skdp.accounting.__all__:
        assert hasattr(skdp.accounting, name)
