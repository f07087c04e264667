"""A ledger loses no charge and admits none too many, whatever happens to processes and files."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import runpy
import shutil
import signal
import sqlite3
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score

import skdp
from composition import DELTA, together
from skdp._fitting import budget as budgets
from skdp._fitting import estimator as path
from skdp._fitting import ledger
from skdp._oracle.oracle import Oracle
from skdp.accounting import ApproximateDP, Composed, Gaussian, Laplace, interchange
from skdp.solvers import ShuffledSGD

HERE = Path(__file__).parent
PLAN = skdp.DPRidge(epsilon=1.0, solver="whitened").plan(1000, 5)
SMALL = skdp.DPRidge(epsilon=0.01).plan(10**6, 5)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FORK = "ignore:.*fork.*:DeprecationWarning"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "charges.db"


def opened(file, epsilon=3.0, **terms):
    return skdp.PrivacyBudget(epsilon, DELTA, ledger=file, **terms)


def charge(budget, plan=PLAN):
    budgets.charge("DPRidge", plan, budget, None)


def in_child(function):
    """Process that runs a function in a fork."""
    process = multiprocessing.get_context("fork").Process(target=function)
    process.start()
    return process


def ledger_command(*arguments):
    return ledger.run_command([str(item) for item in arguments])


# ---------------------------------------------------------------- composition


def test_a_restart_continues_exactly(file, regression):
    """The same releases and the same epsilon, to the last bit, as one budget in one process."""
    blocks = ShuffledSGD(max_iter=4)
    models = [
        skdp.DPRidge(epsilon=0.5, max_iter=7, solver="gd"),
        skdp.DPRidge(epsilon=0.7, solver=blocks),
    ]
    plain = skdp.PrivacyBudget(3.0, DELTA)
    for model in [*models, *models]:
        with plain, opened(file):
            model.fit(*regression)
    again = opened(file)
    assert (again.spent, again.n_fits) == (plain.spent, plain.n_fits)
    assert again.statement.releases == plain.statement.releases
    assert set(plain.statement.assumptions) < set(again.statement.assumptions)
    assert again.remaining_epsilon() == plain.remaining_epsilon()
    with pytest.raises(skdp.PrivacyBudgetError, match=r"spent by 4 fits.*nothing was charged"):
        charge(again, skdp.DPRidge(epsilon=2.9).plan(1000, 5))


def test_names_and_units_are_counted_apart(file):
    first, other = opened(file, data="first"), opened(file, data="other")
    grouped = opened(file, data="first", unit="group")
    charge(first)
    assert (first.n_fits, other.n_fits, grouped.n_fits) == (1, 0, 0)
    with pytest.raises(skdp.PrivacyBudgetError, match="for each group"):
        charge(grouped)


@pytest.mark.parametrize("terms", [{"unit": "group"}, {"data": "other"}], ids=str)
def test_open_budgets_of_one_ledger_are_all_charged(file, regression, terms):
    """And a pickled one comes back as itself: neither is taken for the other."""
    outer, inner = opened(file), opened(file, **terms)
    for budget in (outer, inner):
        assert pickle.loads(pickle.dumps(budget)) is budget
    groups = np.arange(len(regression[0])) if "unit" in terms else None
    charged = (0, 0)
    with outer, inner:
        if groups is None:
            skdp.DPRidge(epsilon=0.1).fit(*regression)
            charged = (1, 1)
        else:  # one of the two counts rows and the other groups, so that both cannot be charged
            for given in ({}, {"groups": groups}):
                with pytest.raises(skdp.PrivacyBudgetError, match="for each"):
                    skdp.DPRidge(epsilon=0.1).fit(*regression, **given)
    assert (outer.n_fits, inner.n_fits) == charged


def test_nested_budgets_are_charged_together_or_not_at_all(file, tmp_path):
    year, project = opened(file, 1.4, data="year"), opened(tmp_path / "p.db", 9.0)
    inside = opened(file, 9.0, data="project")
    with year, project, inside, opened(file, 1.4, data="year"):  # the same budget counts once
        charge(None)
        with pytest.raises(skdp.PrivacyBudgetError, match=r"budget allows 1\.4"):
            charge(None)
    assert [one.n_fits for one in (year, project, inside)] == [1, 1, 1]


def test_a_refused_budget_takes_nobodys_place(file):
    budget = opened(file)
    with pytest.raises(skdp.PrivacyBudgetError) as refusal:  # keeps the refused budget alive
        opened(file, epsilon=4.0)
    assert refusal.traceback
    assert pickle.loads(pickle.dumps(budget)) is budget


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"allow_seeded_noise": True}, "allow_seeded_noise must be False with a ledger"),
        ({"unit": "person"}, "unit must be None, 'row' or 'group'"),
        ({"data": "trial "}, "data must be a name, without spaces around it"),
        ({"ledger": 3}, "ledger must be a path"),
    ],
)
def test_bad_arguments(file, terms, message):
    with pytest.raises(ValueError, match=message):
        skdp.PrivacyBudget(1.0, DELTA, **{"ledger": file, **terms})
    assert not file.exists()


def test_paths_that_cannot_be_ledgers(tmp_path):
    (tmp_path / "text").touch()
    for place, message in (
        ("no/charges.db", "its directory is, too"),
        ("text/charges.db", "its directory is, too"),
        ("x" * 250, "unable to open"),
        ("", "it is a directory"),
    ):
        with pytest.raises(skdp.PrivacyBudgetError, match=f"{message}.*Nothing was released"):
            opened(tmp_path / place)


# ---------------------------------------------------------------- other tools


def test_external_releases_are_charged(file):
    budget = opened(file)
    charge(budget)
    mu = skdp.accounting.gaussian_mu(1.0, DELTA)
    budget.charge_external(Gaussian(1 / mu, spread=1.0), "a mean by OpenDP")
    budget.charge_external(Gaussian(1 / mu, spread=1.0), "another")
    assert budget.spent == pytest.approx(together(1, 1, 1), rel=1e-6)
    assert "charged as it was stated: a mean by OpenDP" in str(opened(file).statement)
    with pytest.raises(skdp.PrivacyBudgetError, match="external requested epsilon=2"):
        budget.charge_external(ApproximateDP(2.0), "too much")
    with skdp.PrivacyBudget(0.1, DELTA), pytest.raises(skdp.PrivacyBudgetError, match=r"0\.1"):
        budget.charge_external(Laplace(2.0, spread=1), "the block around it has less")
    assert budget.n_fits == 3
    with pytest.raises(ValueError, match="event must be one of"):
        budget.charge_external(object(), "unknown")


class OwnEvent(Gaussian):
    """An event that no file can name."""


def test_an_event_that_cannot_be_read_again_is_refused(file):
    """It would shut every process out of the ledger."""
    budget = opened(file)
    with pytest.raises(ValueError, match="'OwnEvent'"):
        budget.charge_external(OwnEvent(3.0), "a mean")
    release = replace(PLAN.releases[0], event=OwnEvent(3.0))
    with pytest.raises(skdp.PrivacyBudgetError, match=r"'OwnEvent'.*Nothing was released"):
        charge(budget, replace(PLAN, releases=(release,)))
    budget.charge_external(Composed(((Gaussian(np.float32(3)), np.int64(2)),)), "two means")
    assert (budget.n_fits, opened(file).spent) == (1, budget.spent)


def test_a_line_of_a_newer_version(file, monkeypatch, capsys):
    """Its event is not known here: nothing is priced without it."""
    charge(opened(file))
    monkeypatch.delitem(interchange._KNOWN, "Gaussian")
    with pytest.raises(skdp.PrivacyBudgetError, match=r"Line 3 of the ledger, by skdp .*wrote"):
        charge(opened(file))
    assert ledger_command("verify", file) == 1


def test_an_interrupted_reading_forgets_no_charge(file, monkeypatch):
    budget = opened(file)
    charge(opened(file))  # as another process would

    def interrupted(self, *more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(skdp.PrivacyBudget, "_add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            budget.spent  # noqa: B018 - a property that reads
    assert budget.n_fits == 1


# ---------------------------------------------------------------- processes


def check_committed_first(file, data, monkeypatch):
    """When the first answer about rows is requested, another process can read the charge."""
    seen = []
    ask = Oracle.request

    def looked(self, release):
        if self._source is not None:
            seen.append(opened(file).n_fits)
        return ask(self, release)

    monkeypatch.setattr(Oracle, "request", looked)
    with opened(file):
        skdp.DPRidge(max_iter=2, solver="gd", scaling="none").fit(*data)
    assert seen == [1, 1]


def test_the_charge_is_committed_before_rows_are_read(file, regression, monkeypatch):
    check_committed_first(file, regression, monkeypatch)


def check_workers(file, data):
    """Fits of a search, of folds and of what a worker clones are charged in the workers."""
    model = skdp.DPRidge(epsilon=0.2, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.PrivacyWarning)
        with opened(file) as budget:
            search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2, n_jobs=2, error_score="raise")
            search.fit(*data)
            # What comes back carries nothing of it in the process of its budget.
            assert "_sent_budgets" not in vars(search.best_estimator_)
            assert budget.n_fits == 5
            cross_val_score(model, *data, cv=2, n_jobs=2, error_score="raise")
            assert budget.n_fits == 7
            BaggingRegressor(model, 2, n_jobs=2).fit(*data)
            own = model.set_params(privacy=skdp.Privacy(budget=budget))
            cross_val_score(own, *data, cv=2, n_jobs=2, error_score="raise")
    assert budget.n_fits == 11
    assert budget.spent == pytest.approx(together(*[0.2] * 11), rel=1e-5)
    # Three of five more fit in. Where a search raises errors, they end its workers: here it warns.
    search = GridSearchCV(model.set_params(epsilon=1.4), {"alpha": [0.1, 1.0]}, cv=2, n_jobs=2)
    with (
        opened(file) as budget,
        pytest.warns(match=r"1 fits failed(?s:.*)DPRidge requested epsilon=1\.4"),
        pytest.warns(match="non-finite"),
        pytest.raises(skdp.PrivacyBudgetError, match=r"allows 3, .* spent by 14 fits"),
    ):
        search.fit(*data)
    assert budget.spent <= 3.0


def test_workers_are_charged(file, regression):
    check_workers(file, regression)


@needs_fork
@pytest.mark.filterwarnings(FORK)
def test_races_overspend_nothing(file):
    """Two processes at once: three fits of epsilon 1 fit into 2, as in one process."""
    budget = opened(file, 2.0)
    admitted = multiprocessing.get_context("fork").Value("i", 0)

    def work():
        for _ in range(4):
            try:
                charge(budget)
            except skdp.PrivacyBudgetError:
                continue
            with admitted.get_lock():
                admitted.value += 1

    for process in [in_child(work), in_child(work)]:
        process.join()
        assert process.exitcode == 0
    assert admitted.value == budget.n_fits == 3
    assert budget.spent == pytest.approx(together(1, 1, 1), rel=1e-6)


@needs_fork
@pytest.mark.filterwarnings(FORK)
def test_a_killed_process_loses_no_charge(file):
    for number in range(6):
        budget = opened(file)
        before = budget.n_fits
        done = multiprocessing.get_context("fork").Value("i", 0, lock=False)

        def work(budget=budget, done=done):
            while True:
                charge(budget, SMALL)
                done.value += 1

        process = in_child(work)
        while not done.value:
            time.sleep(1e-3)
        time.sleep(1.7e-3 * number)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        after = opened(file)
        # The last charge may have been committed when the process was killed.
        assert 0 <= after.n_fits - before - done.value <= 1
        charge(after, SMALL)
    assert ledger_command("verify", file) == 0


# ---------------------------------------------------------------- faults of files


def check_cut_short(file):
    """A ledger without its last line is refused: by who read it, by who opens it, by verify."""
    budget = opened(file)
    charge(budget)
    head = ledger.all_lines(file)[-1].hash
    backup = file.with_name("backup.db")
    shutil.copy(file, backup)
    charge(budget)
    cut = file.with_name("cut.db")
    shutil.copy(file, cut)
    with sqlite3.connect(cut) as connection:
        connection.execute("DROP TRIGGER line_is_not_deleted")
        connection.execute("DELETE FROM line WHERE number = 4")
    with pytest.raises(skdp.PrivacyBudgetError, match="lines at its end were removed: 4 were"):
        opened(cut)
    last = ledger.all_lines(file)[-1].hash
    shutil.copy(backup, file)
    with pytest.raises(skdp.PrivacyBudgetError, match=r"does not contain line 4.*restored"):
        charge(budget)
    with pytest.raises(skdp.PrivacyBudgetError, match=r"does not contain line 4.*restored"):
        opened(file)  # anew, as a notebook does
    file.unlink()
    with pytest.raises(skdp.PrivacyBudgetError, match="restore its latest version"):
        opened(file)
    shutil.copy(backup, file)
    ledger._last_lines.clear()  # as in another process
    assert ledger_command("verify", file, "--head", head) == 0
    assert ledger_command("verify", file, "--head", last) == 1


def test_a_ledger_cut_short_is_refused(file, capsys):
    check_cut_short(file)
    assert "an earlier state was restored" in capsys.readouterr().out


def test_lines_are_neither_changed_nor_removed(file):
    charge(opened(file))
    for statement in ("UPDATE line SET entry = '{}'", "DELETE FROM line"):
        with sqlite3.connect(file) as connection, pytest.raises(sqlite3.Error, match="append-only"):
            connection.execute(statement)
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TRIGGER line_is_not_updated")
        connection.execute("UPDATE line SET entry = replace(entry, '3.0', '9.0') WHERE number = 2")
    with pytest.raises(skdp.PrivacyBudgetError, match="line 2 or the one before"):
        opened(file)


def damaged(change):
    def damage(file, monkeypatch):
        change(file)

    return damage


def without_permission(file, monkeypatch):
    connected = ledger._connected
    monkeypatch.setattr(ledger, "_connected", lambda file, mode: connected(file, "ro"))


def another_version(file):
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 2")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (without_permission, "readonly database"),
        (damaged(another_version), "its format is 2, and this version of skdp reads format 1"),
        (damaged(Path.unlink), "unable to open.*restore its latest version"),
        (damaged(lambda file: file.write_bytes(b"")), "no ledger of skdp"),
        (damaged(lambda file: file.write_text("x" * 5000)), "not a database"),
        (damaged(lambda file: os.truncate(file, 8192)), "malformed"),
    ],
)
def test_faults_refuse_the_fit(file, fault, message, regression, monkeypatch):
    budget = opened(file)
    charge(budget, skdp.DPRidge(solver="gd", max_iter=30).plan(1000, 5))
    backup = file.read_bytes()
    with monkeypatch.context() as patch:
        fault(file, patch)
        model = skdp.DPRidge(epsilon=0.5, privacy=skdp.Privacy(budget=budget))
        with pytest.raises(skdp.PrivacyBudgetError, match=f"{message}.*Nothing was released"):
            model.fit(*regression)
    assert not hasattr(model, "coef_")
    file.write_bytes(backup)
    assert (budget.n_fits, opened(file).n_fits) == (1, 1)
    charge(budget)
    assert opened(file).n_fits == 2


def test_a_lock_that_stays_is_an_error(file, monkeypatch):
    budget = opened(file)
    monkeypatch.setattr(ledger, "WAIT_SECONDS", 0.05)
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(skdp.PrivacyBudgetError, match="database is locked"):
            charge(budget)
        assert budget.n_fits == 0  # reading goes on
        other.execute("ROLLBACK")
    charge(budget)


def test_a_copy_elsewhere_does_not_begin_anew(file, regression):
    """A model that was pickled inside the block is refused where its ledger is not."""
    model = skdp.DPRidge()
    with opened(file):
        sent = model.__getstate__()["_sent_budgets"]
    model._sent_budgets = tuple(("other" + key, "x", *rest) for key, _, *rest in sent)
    file.unlink()
    with pytest.raises(skdp.PrivacyBudgetError, match="unable to open"):
        model.fit(*regression)
    assert not file.exists()


# ---------------------------------------------------------------- readers


def test_the_file_of_today_is_read(file, capsys):
    """Format 1, as it was first released; made by `python tests/fitting/test_ledger.py`."""
    kept = HERE / "ledger_format_1.db"
    before = kept.read_bytes()
    assert ledger_command("verify", kept) == 0
    shown = capsys.readouterr().out
    assert "trial, each row: epsilon=2.09854 of 3 at delta=1e-06, 3 charges" in shown
    assert "5 lines, chain complete, nothing overspent" in shown
    assert kept.read_bytes() == before
    shutil.copy(kept, file)
    assert opened(file, data="trial").n_fits == 3
    charge(opened(file, data="trial"), SMALL)


def test_the_command(file, monkeypatch, capsys):
    charge(opened(file))
    monkeypatch.setattr(sys, "argv", ["skdp", "ledger", "verify", str(file)])
    monkeypatch.delitem(sys.modules, "skdp.__main__", raising=False)
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_module("skdp", run_name="__main__")
    assert "data, each row: epsilon=1 of 3 at delta=1e-06, 1 charge\n" in capsys.readouterr().out


def late(monkeypatch):
    """The charge is made after the fit."""
    run, charged = path.run, []
    monkeypatch.setattr(path, "charge", lambda _, statement, *__: charged.append(statement))

    def run_and_charge(*settled):
        solution = run(*settled)
        budgets.charge("late", charged[-1], None, None)
        return solution

    monkeypatch.setattr(path, "run", run_and_charge)


if __name__ == "__main__":
    budget = opened(HERE / "ledger_format_1.db", data="trial")
    charge(budget)
    charge(
        budget,
        skdp.DPLogisticRegression(epsilon=0.5, solver=("auto", {"batch_size": 0.1})).plan(1000, 5),
    )
    budget.charge_external(Laplace(1.0, spread=1), "a count by another tool")
    print(budget)
