"""When a private search pays: the same total budget for a default fit and for searches.

Every method gets epsilon in all, and the models are compared on test rows that no method sees:

default              one fit at full budget, on all rows
DPSearchCV           the best of about ten fits by private scores, as the library does it
by Renyi DP          the same, priced by Papernot and Steinke 2022, Thm 2
a third of epsilon   the same, each run at a third of epsilon, by the rule of Liu and Talwar 2019
GridSearchCV         five folds and a refit, whose fits together cost epsilon by ``privacy_of``'s
                     rule; its scores are exact, so it is NOT private

Two grids: "strength and solver" holds the default and five others; "columns" holds the raw columns,
their signed logarithms, and both side by side.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from benchmarks import results_file
from benchmarks.registry import Unavailable, modules
from benchmarks.table import mean_and_error
from skdp import accounting
from skdp.model_selection import DPSearchCV

DATA = ("breast_cancer", "diabetes", "adult", "bank", "california_housing", "diamonds")
EPSILONS = (0.3, 1.0, 3.0)
MOST_ROWS, FOLDS = 10_000, 5
COLUMNS = ["data", "rows", "grid", "epsilon", "method", "score", "error", "gain", "gain_error"]


def logarithms(X):
    return np.sign(X) * np.log1p(np.abs(X))


def both(X):
    return np.hstack([X, logarithms(X)])


class ByRenyi(DPSearchCV):
    def _priced(self, n_records, unit="row"):
        run_budget, statement = super()._priced(n_records, unit)
        event = accounting.Selected(accounting.Gaussian(1.0, spread=1.0), float(self.n_candidates))
        relation = accounting.Adjacency.parse(self._terms.adjacency)
        scale = accounting.calibrate(event, self.epsilon, self.delta, relation, "rdp").scale
        return replace(run_budget, mu=1 / scale), statement


class ThirdOfEpsilon(DPSearchCV):
    def _priced(self, n_records, unit="row"):
        run_budget, statement = super()._priced(n_records, unit)
        mu = accounting.gaussian_mu(self.epsilon / 3, self.delta)
        return replace(run_budget, mu=mu), statement


SEARCHES = {"DPSearchCV": DPSearchCV, "by Renyi DP": ByRenyi, "a third of epsilon": ThirdOfEpsilon}


def grids(split):
    """By name: the default, a pipeline around it, and what is searched."""
    if split.is_classification:
        make, strength = skdp.DPLogisticRegression, {"C": [0.01, 1.0, 100.0]}
        options = {"classes": list(split.classes)}
        solvers = ["auto", "newton"]
    else:
        make, strength, options = skdp.DPRidge, {"alpha": [0.1, 1.0, 1000.0]}, {}
        solvers = ["auto", "boosted_ssp"]

    def model(**more):
        return Pipeline([("columns", FunctionTransformer()), ("fit", make(**options, **more))])

    strengths = {f"fit__{name}": values for name, values in strength.items()}
    maps = [FunctionTransformer(f) for f in (None, logarithms, both)]
    return model, {
        "strength and solver": {**strengths, "fit__solver": solvers},
        "columns": {"columns": maps},
    }


def run_one(method, split, grid, model, epsilon, delta, seed):
    """Score on test rows of what a method finds."""
    X, y = split.X_train, split.y_train
    if method == "default":
        found = model(epsilon=epsilon, delta=delta, fit_seed=seed)
    elif method == "GridSearchCV":
        n_fits = math.prod(len(values) for values in grid.values()) * (FOLDS - 1) + 1
        mu = accounting.gaussian_mu(epsilon, delta) / math.sqrt(n_fits)
        each = accounting.gaussian_epsilon(mu, delta)
        folds = KFold(FOLDS, shuffle=True, random_state=seed)
        found = GridSearchCV(model(epsilon=each, delta=delta, fit_seed=seed), grid, cv=folds)
    else:
        ends = None if split.is_classification else (float(y.min()), float(y.max()))
        found = SEARCHES[method](
            model(epsilon=epsilon),
            grid,
            epsilon=epsilon,
            delta=delta,
            privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
            target_range=ends,
        )
    return found.fit(X, y).score(split.X_test, split.y_test)


def capped(split, seed):
    """At most so many training rows."""
    kept = np.random.default_rng(seed).permutation(len(split.y_train))[:MOST_ROWS]
    return replace(split, X_train=split.X_train[kept], y_train=split.y_train[kept])


def run(output, command, names=(), epsilons=EPSILONS, delta=1e-6, runs=5):
    """Measure, print, and write a CSV file after each cell; returns its rows.

    Cells that the file has, of the same number of runs, stay as they are: a run can be taken up
    again. Remove the file once searches have changed.
    """
    warnings.simplefilter("ignore")
    available, rows, start = modules("datasets"), _kept(output, runs), time.time()
    done = {(row["data"], row["grid"], float(row["epsilon"])) for row in rows}
    for name in names or DATA:
        try:
            splits = [capped(available[name].load(seed), seed) for seed in range(runs)]
        except Unavailable as reason:
            print(f"{name}: left out, {reason}")
            continue
        model, searched = grids(splits[0])

        def make(fit_seed=0, model=model, **budget):
            return model(**budget, privacy=skdp.Privacy(noise=skdp.SeededNoise(fit_seed)))

        for grid in searched:
            for epsilon in epsilons:
                if (name, grid, epsilon) in done:
                    continue
                scores = {
                    method: np.array(
                        [
                            run_one(method, split, searched[grid], make, epsilon, delta, seed)
                            for seed, split in enumerate(splits)
                        ]
                    )
                    for method in ("default", *SEARCHES, "GridSearchCV")
                }
                for method, found in scores.items():
                    figures = [*mean_and_error(found), *mean_and_error(found - scores["default"])]
                    line = [name, len(splits[0].y_train), grid, epsilon, method]
                    rows.append(dict(zip(COLUMNS, [*line, *figures], strict=True)))
                    print(
                        f"{name:20}{grid:21}{epsilon:4g}  {method:19}{figures[0]:8.3f} +- "
                        f"{figures[1]:.3f}   beside the default {figures[2]:+.3f} +- "
                        f"{figures[3]:.3f}",
                        flush=True,
                    )
                if output is not None:
                    _write(output, command, runs, delta, rows)
    print(f"{time.time() - start:.0f} seconds")
    return rows


def _kept(output, runs):
    """Rows of the file, if they are of so many runs."""
    comments, rows = ([], []) if output is None else results_file.read(output)
    return rows if any(f"; {runs} runs, " in comment for comment in comments) else []


def _write(output, command, runs, delta, rows):
    made = f"made by: {command}; {runs} runs, delta {delta:g}"
    rounded = [
        {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows
    ]
    results_file.write(output, [made], COLUMNS, rounded)
