"""Parts of the people: fits in different parts cost their maximum, all others add up."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

import skdp
from composition import DELTA, together
from skdp._fitting import budget
from skdp.accounting import Gaussian
from skdp.metrics import evaluate
from skdp.model_selection import DPHoldout, DPSearchCV, dp_cross_validate

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 3))
Y = X.sum(axis=1)
NORTH, SOUTH, WEST = slice(0, 200), slice(200, 400), slice(400, 600)
SCALING = skdp.RowNorm(4.0, target=4.0)


def fit(rows, epsilon=1.0, **terms):
    return skdp.DPRidge(epsilon=epsilon, scaling=SCALING, max_iter=2, **terms).fit(X[rows], Y[rows])


def spent(shared, name, *epsilons, rows=NORTH):
    with shared.part(name):
        return [fit(rows, epsilon) for epsilon in epsilons]


def test_the_total_is_that_of_the_costliest_part():
    """The worst-off person pays for the fits on their part, and for the joint ones."""
    shared = skdp.PrivacyBudget(20.0, DELTA)
    north = spent(shared, "north", 1.0, 0.5)
    assert shared.spent == pytest.approx(together(1.0, 0.5), rel=1e-6)
    south = spent(shared, "south", 0.7, rows=SOUTH)
    assert shared.spent == pytest.approx(together(1.0, 0.5), rel=1e-6)
    south += spent(shared, "south", 1.0, rows=SOUTH)
    assert shared.spent == pytest.approx(together(1.0, 0.7), rel=1e-6)
    with shared:
        everyone = fit(slice(None), 2.0)
    assert shared.spent == pytest.approx(together(1.0, 0.7, 2.0), rel=1e-6)
    total = skdp.total_privacy(*north, *south, everyone, delta=DELTA)
    assert total.epsilon == pytest.approx(shared.spent, rel=1e-6)
    stated = shared.statement
    for text in ("the part 'north' of the people", "the part 'south'", "no person is in two parts"):
        assert any(text in one for one in stated.assumptions)
    assert "part 'north' of the people" in str(stated)
    assert skdp.PrivacyStatement.from_dict(stated.to_dict()).epsilon == stated.epsilon
    assert north[0].privacy_.epsilon == pytest.approx(1.0, rel=1e-6)


def test_parts_of_two_budgets_are_two_divisions():
    """A person of the north may be among the young."""
    one, other = skdp.PrivacyBudget(9.0, DELTA), skdp.PrivacyBudget(9.0, DELTA)
    models = spent(one, "north", 1.0) + spent(other, "young", 1.0)
    assert skdp.total_privacy(*models).epsilon == pytest.approx(together(1.0, 1.0), rel=1e-6)
    with one.part("north"), pytest.raises(ValueError, match="inside of another part"):
        spent(other, "young", 1.0)
    with one, other:  # a fit in a part is charged to other budgets as well
        spent(one, "south", 1.0, rows=SOUTH)
    assert other.spent == pytest.approx(together(1.0, 1.0), rel=1e-6)


def test_a_ledger_keeps_the_parts(tmp_path):
    terms = {"ledger": tmp_path / "charges.db", "data": "patients"}
    first = skdp.PrivacyBudget(9.0, DELTA, **terms)
    spent(first, "north", 1.0)
    budget._known.pop(first._key)  # as in another process
    again = skdp.PrivacyBudget(9.0, DELTA, **terms)
    spent(again, "south", 1.0, rows=SOUTH)
    assert again.spent == pytest.approx(1.0, rel=1e-6)
    spent(again, "north", 1.0)
    assert again.spent == pytest.approx(together(1.0, 1.0), rel=1e-6)


def test_all_that_is_charged_is_charged_to_the_part():
    ridge = skdp.DPRidge(scaling=SCALING, max_iter=2)
    uses = {
        "rows": lambda rows: ridge.fit(X[rows], Y[rows]),
        "groups": lambda rows: ridge.fit(X[rows], Y[rows], groups=np.arange(200) // 2),
        "chunks": lambda rows: ridge.fit(skdp.data.Chunks(X[rows], Y[rows])),
        "stream": lambda rows: skdp.DPLinearRegression(scaling=SCALING).fit_blocks(
            [(X[rows], Y[rows])], n_samples=200, n_features=3
        ),
        "scaler": lambda rows: skdp.DPStandardScaler().fit(X[rows]),
        "score": lambda rows: evaluate(MODEL, X[rows], Y[rows], "r2", target_range=(-4, 4)),
        "search": lambda rows: DPSearchCV(
            ridge, {"alpha": [1.0, 2.0]}, n_candidates=2, epsilon=3.0, target_range=(-4, 4)
        ).fit(X[rows], Y[rows]),
        "folds": lambda rows: dp_cross_validate(
            ridge, X[rows], Y[rows], "r2", epsilon=3.0, target_range=(-4, 4)
        ),
    }
    for name, use in uses.items():
        shared = skdp.PrivacyBudget(9.0, DELTA)
        for part, rows in (("north", NORTH), ("south", SOUTH)):
            with shared.part(part):
                use(rows)
        assert shared.spent == pytest.approx(3.0 if name in ("search", "folds") else 1.0), name


MODEL = fit(WEST)


def test_a_split_of_a_part_stays_in_it():
    shared = skdp.PrivacyBudget(9.0, DELTA)
    for part, rows in (("north", NORTH), ("south", SOUTH)):
        with shared.part(part):
            holdout = DPHoldout(X[rows], Y[rows])
            model = holdout.fit(skdp.DPRidge(scaling=SCALING))
        holdout.evaluate(model, "r2", target_range=(-4, 4), privacy=skdp.Privacy(budget=shared))
    assert shared.n_fits == 4
    assert shared.spent == pytest.approx(1.0, rel=1e-6)


def test_other_releases_and_other_threads():
    shared = skdp.PrivacyBudget(9.0, DELTA)
    noise = skdp.accounting.calibrate(Gaussian(1.0, spread=1.0), 1.0, DELTA, "zero_out").scale
    for part in ("north", "south"):
        with shared.part(part):
            shared.charge_external(Gaussian(noise, spread=1.0), "a count")
    assert shared.spent == pytest.approx(1.0, rel=1e-6)
    with shared.part("north"):  # a thread does not know of the part: it counts for all
        thread = threading.Thread(target=fit, args=(NORTH,))
        thread.start()
        thread.join()
    spent(shared, "south", 1.0, rows=SOUTH)
    assert shared.spent == pytest.approx(together(1.0, 1.0, 1.0), rel=1e-6)


FRAME = pd.DataFrame(X, columns=list("abc"))
ROWS = {
    "the same array": lambda: ((X, Y), (X, Y)),
    "a view": lambda: ((X[NORTH], Y[NORTH]), (X[150:], Y[150:])),
    "the targets": lambda: ((X.copy(), Y), (X.copy(), Y)),
    "a data frame": lambda: ((FRAME, Y.copy()), (FRAME[["a", "b"]], Y.copy())),
    "chunks": lambda: ((skdp.data.Chunks(X, Y),), (X, Y)),
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows_that_come_back_in_another_part_are_refused(kind):
    first, second = ROWS[kind]()
    shared = skdp.PrivacyBudget(9.0, DELTA)
    model = skdp.DPRidge(scaling="none", max_iter=2)
    with shared.part("north"):
        model.fit(*first)
    with shared.part("south"), pytest.raises(skdp.PrivacyBudgetError, match="another part of the"):
        model.fit(*second)
    assert shared.n_fits == 1
    with shared:
        skdp.DPRidge(scaling="none", max_iter=2).fit(*second)


@pytest.mark.filterwarnings("error:PrivacyBudget. the fits:skdp.PrivacyWarning")
def test_parts_may_have_different_numbers_of_rows():
    shared = skdp.PrivacyBudget(9.0, DELTA)
    spent(shared, "north", 1.0)
    spent(shared, "south", 1.0, rows=slice(200, 350))
    with pytest.raises(skdp.PrivacyWarning, match="different numbers of records"):
        spent(shared, "south", 1.0, rows=slice(200, 400))


@pytest.mark.parametrize("name", ["", " north", 1, None, "inf"])
def test_a_part_has_a_name(name):
    with pytest.raises(ValueError, match="be a name"), skdp.PrivacyBudget(1.0, DELTA).part(name):
        pass


@pytest.mark.parametrize("name", ["sample_weight", "offset"])
def test_weights_and_offsets_of_another_part_are_refused(name):
    shared, values = skdp.PrivacyBudget(9.0, DELTA), np.random.default_rng(1).uniform(size=600)
    for part, rows in {"north": NORTH, "south": SOUTH}.items():
        with shared.part(part):
            skdp.DPRidge().fit(X[rows], Y[rows], **{name: values[rows]})
    with shared.part("south"), pytest.raises(skdp.PrivacyBudgetError, match="another part"):
        skdp.DPRidge().fit(X[SOUTH], Y[SOUTH], **{name: values[NORTH]})
    assert shared.n_fits == 2
