"""Replays of every estimator with every solver, under every adjacency, of rows and of groups."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

import skdp
from skdp import audit, linear_model
from skdp._oracle.kernels import second_moments
from skdp.accounting import Adjacency
from skdp.audit.neighbours import hostile_pairs, made_up_data
from skdp.linear_model.base import DPLinearModel
from skdp.model_selection import DPSearchCV
from skdp.solvers import available, get_solver

N_RECORDS, N_COLUMNS = 60, 4
ESTIMATORS = {
    name: model
    for name in linear_model.__all__
    if isinstance(model := getattr(linear_model, name), type) and issubclass(model, DPLinearModel)
}
ALL_REFUSED = "all fits: every fit was refused: there is nothing to audit"
PARAMETERS = {name: model().get_params(deep=False).keys() for name, model in ESTIMATORS.items()}
WITH_SOLVER = [name for name, has in PARAMETERS.items() if "solver" in has]
SOLVERS = sorted(available())
ADJACENCIES = "zero_out", "replace_one", "label"
# Without weights there are no null records, and with them no features are public.
KINDS = {
    "zero_out": ["weighted rows", "groups"],
    "replace_one": ["rows", "groups"],
    "label": ["rows", "weighted rows", "groups"],
}
# What a solver needs of a problem, by the capability that it states.
PROVIDED = {
    "l1_ball": {"constraint": skdp.objective.L1Ball(2.0)},
    "vertices": {"constraint": skdp.objective.L1Ball(2.0)},
    "no_intercept": {"fit_intercept": False},
    "strongly_convex": {"alpha": 1.0},
}
# Values of parameters that change what is released, for the estimators that have these.
VARIANTS = {
    "default": {},
    "three classes": {"classes": [0, 1, 2], "solver": "whitened"},
    "weights by class": {"class_weight": {0: 0.0, 1: 1.0}},
    "inference": {"inference": "coefficients"},
    "inference of three classes": {"inference": "coefficients", "classes": [0, 1, 2]},
    "fixed effects": {"fixed_effects": True},
    "quantiles": {"quantiles": [0.2, 0.8]},
    "pure": {"delta": 0.0},
    "batches": {"solver": ("gd", {"batch_size": 15})},
    "declared bounds": {"scaling": skdp.RowNorm(1.5)},
}
# The same of what is set up before and after the steps, for the estimators of these names.
BOUNDS, SHARE = skdp.PublicRange(-1.5, 1.5), skdp.CoefficientInference(0.9)
LINEAR, EVERY = ("DPRidge", "DPLogisticRegression"), ("DPLinearRegression", "DPHuberRegressor")
EVERY += ("DPPoissonRegressor", *LINEAR)
AVERAGED = {"rows_per_group": 4, "scaling": "none"}
SETTINGS = {
    "scaling": (EVERY, {"scaling": "private", "fit_intercept": False}),
    "range of targets": (("DPRidge",), {"scaling": skdp.PublicRange(target=(-0.5, 0.1))}),
    "ranges": (EVERY, {"scaling": BOUNDS, "epsilon": 20.0}),
    "no penalty": (("DPLogisticRegression",), {"scaling": BOUNDS, "C": np.inf}),
    "pure, declared": (LINEAR, {"delta": 0.0, "scaling": skdp.RowNorm(1.5)}),
    "pure, batches": (LINEAR, {"delta": 0.0, "solver": ("gd", {"batch_size": 15})}),
    # So few rows can afford steps ahead of the inference only with such a budget.
    "inference, large budget": (
        EVERY,
        {"inference": SHARE, "scaling": "private", "epsilon": 500.0},
    ),
    "inference, ranges": (EVERY, {"inference": SHARE, "scaling": BOUNDS}),
    "inference, norm": (
        LINEAR,
        {"inference": "coefficients", "scaling": skdp.RowNorm(1.5), "epsilon": 20.0},
    ),
    **{
        f"{solver}, {options}": (
            LINEAR,
            {"solver": (solver, options), "max_iter": 9, "scaling": "none", "fit_intercept": False},
        )
        for solver, options in (
            ("gd", {"batch_size": 15, "sampling": "fixed_size"}),
            ("svrg", {"inner_steps": 6, "batch_size": 1}),
            ("svrg", {"inner_steps": 5, "batch_size": 9}),
            ("svrg", {"inner_steps": 4, "batch_size": 3, "sampling": "fixed_size"}),
            ("svrg++", {"inner_steps": 2, "batch_size": 20}),
        )
    },
    # Of groups with at most so many rows, sums of rows are averaged before they are clipped.
    **{
        f"average, {solver}, {options}": (LINEAR, {"solver": (solver, options)} | AVERAGED)
        for solver in sorted(available())
        if get_solver(solver).averages_groups(pure=False)
        for options in [{}, *[{"batch_size": 6}] * (solver == "gd")]
    },
    "average, inference": (LINEAR, {"solver": "gd", "inference": "coefficients"} | AVERAGED),
}
WITH_VARIANT = [
    (name, variant)
    for name, has in PARAMETERS.items()
    for variant, values in VARIANTS.items()
    if values.keys() <= has
]


def made(name, adjacency, parameters):
    """Return an estimator with those of the parameters that it has, after few steps."""
    declared = {"classes": [0, 1], "max_iter": 3, **parameters}
    terms = {name: declared.pop(name) for name in ("rows_per_group",) if name in declared}
    model = ESTIMATORS[name](privacy=skdp.Privacy(adjacency=adjacency, **terms))
    solver = declared.get("solver", "auto")
    if solver != "auto":
        solver = get_solver(solver)
        for need in solver.needs & PROVIDED.keys():
            declared |= PROVIDED[need]
        if "max_iter" not in solver.get_params():
            del declared["max_iter"]
    has = model.get_params(deep=False)
    return model.set_params(**{key: one for key, one in declared.items() if key in has})


def records_of(kind, model):
    """Return rows with long tails, targets, and what comes beside them."""
    n_rows = 2 * N_RECORDS if kind == "groups" else N_RECORDS
    X, y = made_up_data(model, (n_rows, N_COLUMNS))
    X = np.sinh(2 * X)
    groups = np.arange(n_rows) % N_RECORDS if kind == "groups" else None
    return X, y, groups


def pairs_of(kind, model, adjacency, turn, number):
    """Yield so many pairs of data sets of one kind, others in each turn."""
    X, y, groups = records_of(kind, model)
    relation = Adjacency.parse(adjacency, labels=True)
    weighted = kind == "weighted rows" and adjacency != "label"
    every = [
        pair
        for pair in hostile_pairs(model, X, y, relation, groups, weighted)
        if not pair.parameters  # others may be refused
        and not (adjacency == "label" and np.array_equal(pair.data["y"], pair.neighbour["y"]))
    ]
    for pair in every[turn % len(every) :: -(-len(every) // number)]:
        if kind == "weighted rows" and adjacency == "label":
            pair = with_weights_by_target(pair)
        yield replace(pair, name=f"{kind}: {pair.name}")


def with_weights_by_target(pair):
    """Return a pair whose weights, as by class, follow from what is protected."""

    def weighted(data):
        return {**data, "sample_weight": np.where(data["y"] >= 1, 1.0, 0.0)}

    return replace(pair, data=weighted(pair.data), neighbour=weighted(pair.neighbour))


def plan_every_shape(model):
    """Keep plans for as many records of every kind, those with the least noise first."""
    n_outputs = {"n_classes": len(model.classes)} if is_classifier(model) else {}
    for grouped, weighted in itertools.product([False, True], repeat=2):
        n_samples, n_groups = (None, N_RECORDS) if grouped else (N_RECORDS, None)
        shape = {"n_features": N_COLUMNS, "weighted": weighted, **n_outputs}
        with contextlib.suppress(ValueError):  # refused, as the fit will be
            model.plan(n_samples=n_samples, n_groups=n_groups, **shape)


def check(name, adjacency, parameters, turn, number=1):
    """Replay pairs of every kind of records, and tell those from others that are refused.

    Returns whether any kind was replayed.
    """
    model = made(name, adjacency, parameters)
    pairs = {
        kind: [*pairs_of(kind, model, adjacency, turn + place, number)]
        for place, kind in enumerate(KINDS[adjacency])
        if kind != "weighted rows" or has_fit_parameter(model, "sample_weight")
    }
    every = itertools.chain(*pairs.values())
    report = audit.replay(model, *records_of("rows", model)[:2], every)
    refused = {text.partition(":")[0] for text in report.refused}
    for kind in refused:
        assert {pair.name for pair in pairs[kind]} <= set(report.refused)
        with pytest.raises(ValueError, match="Nothing was released"):
            clone(model).fit(**pairs[kind][0].data)
    findings = [str(one) for one in report.findings]
    assert not findings or (refused == {*pairs} and findings == [ALL_REFUSED]), report
    return refused != {*pairs}


def in_turn():
    """Yield every estimator with every solver under every adjacency, a third of them quickly."""
    for place, case in enumerate(itertools.product(WITH_SOLVER, SOLVERS, range(3))):
        name, solver, which = case
        turn = (WITH_SOLVER.index(name) + SOLVERS.index(solver)) % 3
        marks = () if which == turn else pytest.mark.slow
        yield pytest.param(name, solver, ADJACENCIES[which], place, marks=marks)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize(("name", "solver", "adjacency", "turn"), [*in_turn()])
def test_every_solver(name, solver, adjacency, turn):
    check(name, adjacency, {"solver": solver}, turn)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("name", "variant"), WITH_VARIANT)
def test_every_variant(name, variant, adjacency):
    """With plans of all other kinds of records in the cache."""
    plan_every_shape(made(name, adjacency, VARIANTS[variant]))
    number = 2 if adjacency == "label" else 1
    check(name, adjacency, VARIANTS[variant], WITH_VARIANT.index((name, variant)), number)


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ADJACENCIES[:2])
@pytest.mark.parametrize(
    ("name", "setting"),
    [(name, setting) for setting, (names, _) in SETTINGS.items() for name in names],
)
def test_every_setting(name, setting, adjacency):
    turn = list(SETTINGS).index(setting)
    is_refused = "fixed_size" in setting and adjacency == "zero_out"
    assert check(name, adjacency, SETTINGS[setting][1], turn, number=3) != is_refused


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("adjacency", ADJACENCIES[:2])
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("name", [*LINEAR, "DPHuberRegressor"])
def test_with_compiled_loops(compiled_kernels, monkeypatch, name, delta, adjacency):
    monkeypatch.setattr(second_moments, "MOST_FILLED", 1.0)
    check(name, adjacency, {"solver": "gd", "delta": delta}, 0, number=6)


@pytest.mark.parametrize("adjacency", ADJACENCIES[:2])
def test_several_targets(adjacency):
    model = made("DPRidge", adjacency, {"scaling": "private"})
    X, y, _ = records_of("rows", model)
    Y = np.column_stack([y, -y])
    relation = Adjacency.parse(adjacency)
    report = audit.replay(model, X, Y, hostile_pairs(model, X, Y, relation, None, True))
    assert report.ok, report


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("adjacency", ADJACENCIES[:2])
@pytest.mark.parametrize("kind", ["rows", "groups"])
def test_weighted_searches(adjacency, kind):
    """All runs of a search, with weights in its fits and scores."""
    declared = skdp.RowNorm(2.0, target=2.0)
    model = skdp.DPRidge(solver="gd", max_iter=3, scaling=declared)
    X, y, groups = records_of(kind, model)
    relation = Adjacency.parse(adjacency)
    terms = skdp.Privacy(adjacency=adjacency, noise=skdp.SeededNoise(1))
    search = DPSearchCV(model, {"alpha": [0.1, 1.0]}, n_candidates=2, privacy=terms)
    every = [
        pair for pair in hostile_pairs(model, X, y, relation, groups, True) if not pair.parameters
    ]
    report = audit.replay(search, X, y, every[::3], groups=groups, adjacency=adjacency)
    assert report.ok, report
    assert "weight_counts" in str(report)
