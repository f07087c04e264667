"""Every tool takes every kind of rows, but for blocks, which most refuse before a charge.

What a tool finds with the same seed is the same in memory and in partitions.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from in_partitions import Held
from skdp import metrics, model_selection, preprocessing
from skdp.linear_model.base import DPLinearModel
from skdp.model_selection import DPHoldout, DPSearchCV, dp_cross_validate, dp_train_test_split

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.standard_normal(400)
BESIDE = {"groups": np.arange(400) // 2, "sample_weight": np.ones(400)}
KINDS = [
    *("arrays", "groups", "partitions", "weights in partitions", "groups in partitions"),
    *("dask", "groups in dask", "weights in dask", "blocks"),
]
RIDGE = skdp.DPRidge(scaling=skdp.PublicRange(target=10.0))
GRID = {"alpha": [1.0, 10.0]}
# Of few passes, for tools that fit often.
FAST = skdp.DPRidge(solver="gd", max_iter=2, scaling=skdp.RowNorm(3.0, target=10.0))
MODEL = skdp.DPRidge(epsilon=np.inf, scaling=skdp.RowNorm(1e3, target=10.0))
MSE = "neg_mean_squared_error"
SEEDED = skdp.Privacy(noise=skdp.SeededNoise(3))


@pytest.fixture(scope="module")
def fitted():
    with pytest.warns(skdp.PrivacyWarning, match="NOT private"):
        return MODEL.fit(X, Y)


# Tools by name: what they do with rows, and what may come beside X and y.
TOOLS = {
    "fit": (lambda _, *rows, **beside: RIDGE.fit(*rows, **beside), "groups sample_weight"),
    "DPStandardScaler": (
        lambda _, *rows, **beside: skdp.DPStandardScaler().fit(*rows, **beside),
        "groups",
    ),
    "evaluate": (lambda model, *rows, **beside: metrics.evaluate(model, *rows, **beside), "groups"),
    "dp_train_test_split": (
        lambda _, X, y, **beside: dp_train_test_split(X, *([] if y is None else [y]), **beside),
        "groups",
    ),
    "DPHoldout": (lambda _, *rows, **beside: DPHoldout(*rows, **beside), "groups"),
    "dp_cross_validate": (
        lambda _, *rows, **beside: dp_cross_validate(FAST, *rows, cv=2, **beside),
        "groups",
    ),
    "DPSearchCV": (
        lambda _, *rows, **beside: DPSearchCV(FAST, GRID, n_candidates=2).fit(*rows, **beside),
        "groups",
    ),
}
SPLITS = {"dp_train_test_split", "DPHoldout"}  # they charge nothing


# Collections of dask need a cluster where they are not computed: test_dask.py.
def rows_of_kind(kind):
    """Return X, y and what comes beside them."""
    beside, _, place = kind.rpartition(" in ")
    name = {"groups": "groups", "weights": "sample_weight"}.get(beside or place)
    rows = X, Y
    if beside and place == "partitions":
        return (Held(X, Y, BESIDE[name], names=("X", "y", name), sizes=[400]), None), {}
    if place == "partitions":
        rows = skdp.data.Chunks(X, Y), None
    if kind == "blocks":
        return (iter([(X[:150], Y[:150]), (X[150:], Y[150:])]), None), {}
    if place == "dask":
        array = pytest.importorskip("dask.array", reason="dask is not installed")
        rows = array.from_array(X, chunks=(200, 3)), array.from_array(Y, chunks=200)
        if beside:
            return rows, {name: array.from_array(BESIDE[name], chunks=200)}
    return rows, {} if name is None else {name: BESIDE[name]}


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_takes_a_kind_of_rows_or_refuses_it(tool, kind, fitted):
    use, possible = TOOLS[tool]
    rows, beside = rows_of_kind(kind)
    if not set(beside) <= set(possible.split()):
        pytest.skip(f"{tool} has no such parameter")
    is_taken = kind != "blocks"
    who = "DPRidge" if tool == "fit" else tool
    with skdp.PrivacyBudget(9.0, 1e-3) as budget:
        needs_cluster = kind.endswith("dask") and tool != "dp_train_test_split"
        if is_taken and not needs_cluster:  # see test_dask.py
            use(fitted, *rows, **beside)
        else:
            with pytest.raises(ValueError, match=rf"(?s)^{who}: .*Nothing was released\.$"):
                use(fitted, *rows, **beside)
            is_taken = False
        assert (budget.n_fits > 0) is (is_taken and tool not in SPLITS)


# ---------------------------------------------------------------- the same results

SIZES = 50, 70, 0, 130, 50, 98, 2  # even, so that pairs of rows stay together


def in_seven(X, y, **beside):
    """Rows in partitions of different sizes, one of them empty; tasks and results are pickled."""
    names = "X", "y", *beside
    return Held(X, y, *beside.values(), names=names, sizes=SIZES, elsewhere=True)


def weights_of_null_records():
    return np.where(np.arange(400) % 5 == 0, 0.0, RNG.uniform(0.5, 2.0, 400))


def coefficients_and_score(holdout):
    model = holdout.fit(clone(FAST).set_params(privacy=SEEDED))
    scores = holdout.evaluate(model, MSE, privacy=SEEDED)
    whole = skdp.total_privacy(model, scores.privacy_, delta=1e-6)
    assert whole.epsilon == pytest.approx(1.0, rel=1e-3)  # the maximum, not the sum
    return [*model.coef_, scores[MSE].value]


# Tools by name: a function of a fitted model and the rows, which returns numbers.
RESULTS = {
    "DPHoldout": lambda _, *rows, **beside: coefficients_and_score(
        DPHoldout(*rows, random_state=0, **beside)
    ),
    "dp_cross_validate": lambda _, *rows, **beside: [
        fold[MSE].value
        for fold in dp_cross_validate(FAST, *rows, MSE, cv=3, privacy=SEEDED, **beside).folds
    ],
    "DPSearchCV": lambda _, *rows, **beside: (
        DPSearchCV(FAST, GRID, n_candidates=2, privacy=SEEDED)
        .fit(*rows, **beside)
        .best_estimator_.coef_
    ),
    "DPStandardScaler": lambda _, *rows, **beside: (
        skdp.DPStandardScaler(privacy=SEEDED).fit(*rows, **beside).scale_
    ),
}


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning", "ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize("beside", ["", "groups", "sample_weight"])
@pytest.mark.parametrize("tool", RESULTS)
def test_results_in_memory_and_in_seven_partitions_are_equal(tool, beside, fitted):
    given = {
        "": {},
        "groups": {"groups": BESIDE["groups"]},
        "sample_weight": {"sample_weight": weights_of_null_records()},
    }[beside]
    if beside == "sample_weight" and tool in ("DPHoldout", "dp_cross_validate", "DPSearchCV"):
        pytest.skip(f"{tool} takes no weights in memory")
    found = RESULTS[tool](fitted, in_seven(X, Y, **given), None)
    if beside == "sample_weight" and tool == "DPStandardScaler":
        # In memory these take no weights, so that none is tested but that rows of weight 0 are
        # not counted: others in their place change nothing.
        other = np.where(given["sample_weight"][:, None] == 0, 1e3, X)
        expected = RESULTS[tool](fitted, in_seven(other, Y, **given), None)
    else:
        expected = RESULTS[tool](fitted, X, Y, **given)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_every_tool_is_in_the_table():
    rooms = skdp, skdp.data, metrics, model_selection, preprocessing
    exported = {name: getattr(room, name) for room in rooms for name in room.__all__}
    tools = {
        name
        for name, tool in exported.items()
        if callable(tool)
        and not (inspect.isclass(tool) and issubclass(tool, DPLinearModel | Warning | Exception))
        and "X" in inspect.signature(getattr(tool, "fit", tool)).parameters
    }
    # Kinds of rows, public rows, and tools that only use public facts.
    others = {"Chunks", "PublicSample", "check", "DPTabularPreprocessor"}
    displays = {name for name in tools if name.endswith("Display")}
    assert tools - others - displays <= set(TOOLS)
