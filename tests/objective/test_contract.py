"""What holds for every loss, penalty and constraint alike, as objects."""

from __future__ import annotations

import dataclasses
import pickle
from typing import get_args

import numpy as np
import pytest
from sklearn.base import clone

from skdp import objective
from skdp.objective import Constraint, Loss
from skdp.objective.losses import TargetKind


def _concrete(base):
    classes = [c for c in base.__subclasses__() if c.__module__.startswith("skdp.")]
    return {c for c in classes if not c.__name__.startswith("_")}.union(*map(_concrete, classes))


@pytest.mark.parametrize(("name", "base"), [("loss", Loss), ("constraint", Constraint)])
def test_every_class_is_tested_and_exported(cases, name, base):
    classes = _concrete(base)
    assert classes
    assert classes == {type(case) for case in cases[name]}
    assert {c.__name__ for c in classes} <= set(objective.__all__)


def _check_value_object(case):
    assert dataclasses.is_dataclass(case)
    assert eval(repr(case), {**vars(objective), "inf": float("inf")}) == case
    assert pickle.loads(pickle.dumps(case)) == case
    assert hash(dataclasses.replace(case)) == hash(case)
    for name in [f.name for f in dataclasses.fields(case)] or ["anything"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(case, name, 1.0)


def test_a_loss_of_labels_states_its_number_of_outputs(loss):
    assert loss.targets in get_args(TargetKind)
    assert loss.n_outputs is not None or loss.targets == "real"


def test_a_loss_is_a_value(loss):
    _check_value_object(loss)


def test_a_penalty_is_a_value(penalty):
    _check_value_object(penalty)


def test_a_constraint_is_a_parameter_object(constraint):
    """Searches clone constraints and set their parameters; fits compare them."""
    assert eval(repr(constraint), {**vars(objective), "inf": float("inf")}) == constraint
    for again in (clone(constraint), pickle.loads(pickle.dumps(constraint))):
        assert again is not constraint
        assert again == constraint
        assert hash(again) == hash(constraint)
        for name in again.get_params():
            again.set_params(**{name: 0.625})
            assert again != constraint


@pytest.mark.parametrize(
    ("make", "allowed"),
    [
        ("Huber(threshold={})", "positive and finite"),
        ("ElasticNet(strength={})", "finite and >= 0"),
        ("ElasticNet(strength={}, l1_ratio=0.5)", "finite and >= 0"),
        ("ElasticNet(strength=1.0, l1_ratio={})", r"\[0, 1\]"),
        ("L2Ball(radius={}).check()", r"from 1e-50 to 1e\+50"),
        ("L1Ball(radius={}).check()", r"from 1e-50 to 1e\+50"),
        ("Simplex(total={}).check()", r"from 1e-50 to 1e\+50"),
        ("Multinomial(n_classes={})", "integer >= 2"),
    ],
)
@pytest.mark.parametrize("bad", ["-0.5", "nan", "inf", "-inf", "'1'", "None", "1j"])
def test_bad_numbers_are_refused(make, allowed, bad):
    who = make.split("(")[0]
    what = make.split("={}")[0].replace("(", " ").split()[-1]
    names = {**vars(objective), "nan": float("nan"), "inf": float("inf")}
    with pytest.raises(ValueError, match=f"{who}: {what} must .*{allowed}, got {bad}"):
        eval(make.format(bad), names)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, 0.0),
        (float("nan"), 1.0),
        (0.0, float("nan")),
        ("0", 1.0),
        (0.0, None),
        (float("inf"), float("inf")),
        (-float("inf"), -float("inf")),
    ],
)
def test_a_bad_box_is_refused(low, high):
    with pytest.raises(ValueError, match=f"Box: low and high .*got low={low!r}, high={high!r}"):
        objective.Box(low, high).check()


def test_working_weights_keep_to_their_bound(loss):
    margins = np.array([-1e300, -50.0, -1.0, 0.0, 1.0, 50.0, 1e300, np.inf, -np.inf])[:, None]
    several = loss.weight_bound is not None and len(loss.contrasts) > 1
    if several:
        margins = np.clip(margins, -1e38, 1e38) * np.linspace(-1, 1, len(loss.contrasts))
    elif loss.n_outputs:
        margins = np.tile(margins, (1, loss.n_outputs))
    targets = np.ones(len(margins), dtype=int) if several else np.ones(margins.shape)
    if loss.weight_bound is None:
        with pytest.raises(ValueError, match="no working weight"):
            loss.working_weight(margins, targets)
        return
    for dtype in (np.float32, np.float64):
        with np.errstate(all="ignore"):
            weights = loss.working_weight(margins.astype(dtype), targets)
        if several:
            norms = np.linalg.norm(weights, axis=(1, 2))
            assert (np.linalg.eigvalsh(weights) > -1e-6).all()
            assert (norms <= loss.weight_bound * (1 + 1e-6)).all()
            continue
        assert weights.shape == margins.shape
        assert (weights >= 0).all()
        assert (weights <= loss.weight_bound).all()
