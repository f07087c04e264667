"""Callbacks of scikit-learn: they see the releases of a fit, and nothing that rows decide."""

from __future__ import annotations

import functools
import pickle

import pytest
from sklearn.pipeline import make_pipeline

import skdp
from replays import ASKED_BY, ESTIMATORS, data_for, hostile_records, neighbours
from skdp.accounting import Adjacency
from skdp.fitting.estimator import with_callbacks
from skdp.model_selection import DPSearchCV, dp_cross_validate
from skdp.solvers import available, get_solver


class Recorder:
    """Asks for all there is, and keeps it as bytes, whoever calls."""

    max_propagation_depth = None

    def __init__(self):
        self.calls = []

    def _note(self, name, estimator, context, **given):
        place = context.task_name, context.task_id, context.max_subtasks
        seen = {key: value for key, value in vars(estimator).items() if "_callback" not in key}
        assert [key for key, value in given.items() if value is not None] == []
        self.calls.append((name, place, pickle.dumps((given, seen))))

    def setup(self, estimator, context):
        self._note("setup", estimator, context)

    def teardown(self, estimator, context):
        self._note("teardown", estimator, context)

    def on_fit_task_begin(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        given = {"X": X, "y": y, "metadata": metadata, "fitted_estimator": fitted_estimator}
        self._note("begin", estimator, context, **given)

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        given = {"X": X, "y": y, "metadata": metadata, "fitted_estimator": fitted_estimator}
        self._note("end", estimator, context, **given)
        return True  # asks to stop, which no fit does


def recorded(estimator):
    recorder = Recorder()
    return estimator.set_callbacks(recorder), recorder


CLASSIFIER = functools.partial(skdp.DPLogisticRegression, classes=[0, 1])
REGRESSOR = skdp.DPRidge


@pytest.mark.parametrize("solver", ["auto", *sorted(available())])
@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
def test_each_release_is_a_task(solver, classification, regression):
    parameters = {"solver": solver, "epsilon": 2.0, "delta": 1e-6}
    if solver != "auto":
        parameters["scaling"] = "none"
        if "max_iter" in get_solver(solver).get_params():
            parameters["max_iter"] = 6
    parameters |= ASKED_BY.get(solver, {})
    both = [(CLASSIFIER(**parameters), classification), (REGRESSOR(**parameters), regression)]
    asked, data = next(pair for pair in both if solver in ("auto", *available(pair[0])))
    model, recorder = recorded(asked)
    model.fit(*data)
    stated = [kind for one in model.privacy_.releases for kind in [one.kind] * one.count]
    found = [place[0] for name, place, _ in recorder.calls if name == "end"][:-1]
    if not get_solver(solver if solver != "auto" else "gd").adaptive:
        assert found == stated
        assert recorder.calls[1][1][2] == len(stated)
    names = [name for name, *_ in recorder.calls]
    assert names == ["setup", "begin", *["begin", "end"] * len(found), "end", "teardown"]


def recording(kind, adjacency):
    return recorded(ESTIMATORS[kind](adjacency=str(adjacency)))[0]


def check(replay, rng, kind, adjacency):
    """The harness compares what the recorder keeps, as it compares all that hangs on a model."""
    X, y = data_for(kind, rng)
    pairs = neighbours(kind, X, y, adjacency, hostile_records(kind)[:12:4])
    replay.check_each(lambda: recording(kind, adjacency), pairs, adjacency)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_nothing_that_rows_decide_reaches_a_callback(replay, rng, kind, adjacency):
    check(replay, rng, kind, adjacency)


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
def test_private_searches_call_none(regression, search):
    """How many fits there are is secret, and a pipeline hands its callbacks the rows."""
    inner, recorder = recorded(skdp.DPRidge(solver="gd", max_iter=3))
    model = make_pipeline(inner).set_callbacks(recorder)
    if search:
        assert not hasattr(DPSearchCV(model), "set_callbacks")
        DPSearchCV(model, {"dpridge__alpha": [0.1, 1.0]}, n_candidates=3).fit(*regression)
    else:
        dp_cross_validate(model, *regression, epsilon=3.0, delta=1e-6, cv=3)
    assert recorder.calls == []
    assert model._skl_callbacks == [recorder], "the estimator that was given stays as it is"


def test_older_versions_have_none(monkeypatch, regression):
    monkeypatch.setattr("skdp.fitting.estimator._callback", None)
    assert not hasattr(skdp.DPRidge(), "set_callbacks")
    assert with_callbacks(print) is print
    skdp.DPRidge().fit(*regression)


def test_verbose_2_prints_the_progress(capsys, regression):
    skdp.DPRidge(solver="gd", max_iter=20, scaling="none", verbose=2).fit(*regression)
    lines = [line for line in capsys.readouterr().out.splitlines() if "release" in line]
    assert lines == [f"[DPRidge] release {step} of 20: gradient" for step in range(2, 21, 2)]
