"""A fit in a process that cannot reach its budget is refused, never forgotten."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor
from sklearn.model_selection import cross_validate

import skdp
from skdp._fitting import budget as budgets
from skdp._fitting.budget import PrivacyBudget
from workers import sendable

RIDGE = skdp.DPRidge
HOW = r"n_jobs=1.*threading.*budget in each worker.*[Nn]othing was released"
DELTA = 1e-6

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def check_workers(data, as_parameter):
    budget = PrivacyBudget(50.0, DELTA)
    estimator = RIDGE(max_iter=5, privacy=skdp.Privacy(budget=budget if as_parameter else None))
    block = contextlib.nullcontext() if as_parameter else budget
    with block, pytest.raises(skdp.PrivacyBudgetError, match=HOW):
        cross_validate(estimator, *data, cv=2, n_jobs=2, error_score="raise")
    assert budget.n_fits == 0


@pytest.mark.parametrize("as_parameter", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_workers_are_refused(regression, as_parameter):
    check_workers(regression, as_parameter)


@pytest.mark.slow
def test_what_a_worker_clones_is_refused(regression):
    ensemble = BaggingRegressor(RIDGE(max_iter=5), n_estimators=2, n_jobs=2)
    with PrivacyBudget(50.0, DELTA), pytest.raises(skdp.PrivacyBudgetError, match=HOW):
        ensemble.fit(*regression)


def test_workers_without_a_budget_are_free(regression):
    with PrivacyBudget(50.0, DELTA):
        pass
    cross_validate(RIDGE(max_iter=5), *regression, cv=2, n_jobs=2, error_score="raise")


def fit_in_worker(data):
    with PrivacyBudget(1.0, DELTA) as own:
        RIDGE(max_iter=5).fit(*data)
        return own.spent


def test_a_budget_in_each_worker(regression):
    spent = joblib.Parallel(n_jobs=2)(
        joblib.delayed(sendable(fit_in_worker))(regression) for _ in range(2)
    )
    assert spent == pytest.approx([1.0, 1.0], rel=1e-5)


def elsewhere(function):
    """Result of a function, or its error, from a forked process."""
    context = multiprocessing.get_context("fork")
    pipe, end = context.Pipe()

    def target():
        try:
            end.send(function())
        except Exception as error:
            end.send(error)

    process = context.Process(target=target)
    process.start()
    answer = pipe.recv()
    process.join()
    return answer


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("as_parameter", [True, False])
def test_forks_are_refused(regression, as_parameter):
    budget = PrivacyBudget(50.0, DELTA)
    if as_parameter:
        model = RIDGE(max_iter=5, privacy=skdp.Privacy(budget=budget))
        refusal = elsewhere(lambda: model.fit(*regression))
    else:
        with budget:
            refusal = elsewhere(lambda: RIDGE(max_iter=5).fit(*regression))
    assert isinstance(refusal, skdp.PrivacyBudgetError)
    assert "n_jobs=1" in str(refusal)
    assert budget.n_fits == 0
    assert "another process" in elsewhere(lambda: repr(budget))
    for look in (lambda: budget.spent, lambda: budget.statement, budget.__enter__):
        assert isinstance(elsewhere(look), skdp.PrivacyBudgetError)
    assert elsewhere(lambda: fit_in_worker(regression)) == pytest.approx(1.0, rel=1e-5)


@needs_fork
def test_a_fork_while_the_lock_is_held(regression):
    taken, done = threading.Event(), threading.Event()

    def hold():
        with budgets._lock:
            taken.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(10)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            assert elsewhere(lambda: fit_in_worker(regression)) == pytest.approx(1.0, rel=1e-5)
    finally:
        done.set()
        thread.join()


def in_fresh_process(data):
    """What a pickled object can do in a process that never saw its budget."""
    model, X, y = pickle.loads(data)
    said = [float(np.abs(model.predict(X)).max()), repr(model._terms.budget)]
    for attempt in (model, clone(model), pickle.loads(pickle.dumps(model))):
        try:
            attempt.fit(X, y)
            said.append("fitted")
        except ValueError as refusal:
            said.append(str(refusal))
    fresh = type(model)(max_iter=3).fit(X, y)
    return said, fresh.n_iter_, pickle.dumps(model)


@pytest.mark.parametrize("as_parameter", [True, False])
def test_a_pickled_model_holds_no_budget_that_starts_anew(regression, as_parameter):
    budget = PrivacyBudget(50.0, DELTA)
    with budget:
        terms = skdp.Privacy(budget=budget) if as_parameter else None
        model = RIDGE(max_iter=5, privacy=terms).fit(*regression)
        data = pickle.dumps((model, *regression))
    spent = budget.spent
    ((said, n_iter, back),) = joblib.Parallel(n_jobs=2)(
        [joblib.delayed(sendable(in_fresh_process))(data)]
    )
    assert said[0] > 0  # predictions are free
    assert all("n_jobs=1" in text for text in said[2:])
    assert n_iter == 3  # so is a model that has nothing to do with the budget
    if as_parameter:
        assert "another process" in said[1]
    returned = pickle.loads(back)
    assert returned._terms.budget is (budget if as_parameter else None)
    returned.fit(*regression)  # at home again
    assert (budget.spent > spent) == as_parameter
    assert vars(returned).keys() == vars(model).keys()


def test_a_budget_that_is_gone_admits_nothing(regression):
    data = pickle.dumps(RIDGE(privacy=skdp.Privacy(budget=PrivacyBudget(1.0, DELTA))))
    with pytest.raises(skdp.PrivacyBudgetError, match=HOW):
        pickle.loads(data).fit(*regression)
