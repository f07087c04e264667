"""Coverage and width of intervals of private coefficients, on simulated rows whose truth is known.

    python -m benchmarks inference --runs 400               every cell 400 times: hours of one core
    python -m benchmarks inference --verdict                which cells miss the aims
    python -m benchmarks inference links --runs 400         log links, Huber's loss and several
                                                            classes: an hour

Columns have sizes from 0.05 to 100 and offsets of three sizes ("raw"; 0/1 columns hold 0 and 1),
and are scaled privately as part of the fit; or they are of unit size and taken as they are
("standardised", normal columns alone). Widths are standard errors over those of the non-private fit
of the same rows (HC0, the inverse information at the truth for logistic regression): medians over
runs, then the mean over coefficients. Of log links and Huber's loss they are next to the sandwich
of the truth, without HC1's factor. "naive" is the coverage of coef_ with the non-private
standard errors.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import norm

import skdp
from benchmarks import results_file
from benchmarks.table import mean_and_error
from skdp import SeededNoiseWarning

DELTA, LEVEL = 1e-6, 0.95
SIZES = [(n, d) for n in (2_000, 10_000, 100_000) for d in (5, 20)]
EPSILONS = (0.3, 1.0, 3.0)
CONDITIONS = ("raw", "standardised")
RATES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
FEW = 10  # runs of a cell in which nothing is determined
MODELS = {
    "linear": skdp.DPLinearRegression,
    "logistic": functools.partial(skdp.DPLogisticRegression, classes=[0, 1]),
    "poisson": skdp.DPPoissonRegressor,
    "gamma": skdp.DPGammaRegressor,
    "tweedie": functools.partial(skdp.DPTweedieRegressor, power=1.5),
    "huber": skdp.DPHuberRegressor,
    "multinomial": skdp.DPLogisticRegression,
}
# Columns and errors, or columns and classes.
DESIGNS = {
    "linear": [
        ("normal", "equal"),
        ("correlated", "equal"),
        ("heavy", "varying"),
        ("0/1", "varying"),
        ("normal", "skewed"),
    ],
    "logistic": [
        ("normal", "even"),
        ("correlated", "even"),
        ("heavy", "even"),
        ("0/1", "even"),
        ("correlated", "rare"),
    ],
}
# Likewise: columns, and counts with a mean below 0.1 ("rare") or rates that vary strongly; amounts;
# errors that are t with 3 degrees of freedom.
LINKS = {
    "poisson": [
        ("normal", "even"),
        ("correlated", "even"),
        ("0/1", "even"),
        ("normal", "rare"),
        ("normal", "varying"),
    ],
    "gamma": [("normal", "even")],
    "tweedie": [("normal", "even")],
    "huber": [("normal", "t3")],
}
# Columns, and classes: how many, and whether some are rare; numbers of columns.
CLASSES = [
    ("normal", "3 even", 3),
    ("correlated", "3 even", 3),
    ("normal", "3 unequal", 3),
    ("normal", "5 even", 5),
]
POWERS = {"poisson": 1.0, "tweedie": 1.5, "gamma": 2.0}  # of the mean in the variance
COLUMNS = (
    "problem", "condition", "columns", "errors", "n", "d", "epsilon", "runs", "determined",
    "relative_error", "coverage", "coverage_se", "coverage_middle", "least", "intercept", "width",
    "small_p", "naive",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One cell of the table: what is simulated, and the budget."""

    problem: str
    condition: str
    columns: str
    errors: str
    n: int
    d: int
    epsilon: float


def standard_columns(kind: str, n: int, d: int, rng) -> np.ndarray:
    """Columns of mean 0 and size 1, by known moments."""
    if kind == "normal":
        return rng.standard_normal((n, d))
    if kind == "correlated":  # all of them, 0.7
        return math.sqrt(0.3) * rng.standard_normal((n, d)) + math.sqrt(0.7) * rng.standard_normal(
            (n, 1)
        )
    if kind == "heavy":  # lognormal and t with 3 degrees of freedom, in turn
        X = rng.standard_t(3, size=(n, d)) / math.sqrt(3)
        skewed = np.exp(rng.standard_normal((n, (d + 1) // 2)))
        X[:, ::2] = (skewed - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1))
        return X
    rates = np.resize(RATES, d)
    return ((rng.random((n, d)) < rates) - rates) / np.sqrt(rates * (1 - rates))


def truth_of_classes(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of all classes, about 1 a class in length, and intercepts; both add up to 0."""
    n_classes = int(cell.errors[0])
    slopes = np.array([np.roll([1.0, -0.5, 0.25, 0.0, 0.5], k)[: cell.d] for k in range(n_classes)])
    slopes -= slopes.mean(axis=0)
    shares = np.ones(n_classes) if cell.errors.endswith("even") else np.array([16.0, 4.0, 1.0])
    return slopes / math.sqrt(np.square(slopes).sum() / n_classes), np.log(shares) - np.mean(
        np.log(shares)
    )


def truth(cell: Cell) -> tuple[np.ndarray, float]:
    """Slopes, for a prediction of standard deviation 1, or less with a log link, and intercept."""
    slopes = np.resize([1.0, -0.5, 0.25, 0.0, 0.5], cell.d)
    if cell.errors == "varying" and cell.problem in POWERS:
        return np.resize([1.0, 0.6, -0.4, 0.0, 0.0], cell.d), 0.0
    variance = slopes @ slopes
    if cell.columns == "correlated":
        variance = 0.3 * variance + 0.7 * slopes.sum() ** 2
    if cell.problem in POWERS:
        return 0.5 * slopes / math.sqrt(variance), -2.5 if cell.errors == "rare" else 0.5
    return slopes / math.sqrt(variance), -3.5 if cell.errors == "rare" else 0.3


def raw_units(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes and centres of raw columns."""
    if cell.columns == "0/1":
        rates = np.resize(RATES, cell.d)
        return np.sqrt(rates * (1 - rates)), rates
    unit = np.geomspace(0.05, 100.0, cell.d)
    return unit, 3.0 * unit


def simulate(cell: Cell, rng):
    """Return standardised columns and targets, R2 0.5 for a regression."""
    X = standard_columns(cell.columns, cell.n, cell.d, rng)
    if cell.problem == "multinomial":
        slopes, intercepts = truth_of_classes(cell)
        return X, (X @ slopes.T + intercepts + rng.gumbel(size=(cell.n, len(slopes)))).argmax(1)
    slopes, intercept = truth(cell)
    margins = X @ slopes + intercept
    if cell.problem == "logistic":
        return X, (rng.random(cell.n) < expit(margins)).astype(int)
    if cell.problem in POWERS:
        return X, amounts(cell.problem, np.exp(margins), rng)
    if cell.errors == "t3":
        return X, margins + rng.standard_t(3, cell.n)
    if cell.errors == "skewed":
        errors = rng.exponential(size=cell.n) - 1
    else:
        errors = rng.standard_normal(cell.n)
        if cell.errors == "varying":
            # Of mean square 1 for normal columns; the others come near.
            errors *= (0.5 + np.abs(X[:, 0])) / math.sqrt(1.25 + math.sqrt(2 / math.pi))
    return X, margins + errors


def amounts(problem: str, mean: np.ndarray, rng) -> np.ndarray:
    """Targets with these means: counts, sums of exponential amounts, or gamma of shape 2."""
    if problem == "gamma":
        return rng.gamma(2.0, mean / 2)
    if problem == "poisson":
        return rng.poisson(mean).astype(float)
    events = rng.poisson(2 * np.sqrt(mean))
    return np.where(events > 0, rng.gamma(np.maximum(events, 1), np.sqrt(mean) / 2), 0.0)


def residuals_and_weights(cell: Cell, X, y) -> tuple[np.ndarray, np.ndarray]:
    """Terms of the estimating equation at the truth, over the rows, and their derivatives."""
    slopes, intercept = truth(cell)
    margins = X @ slopes + intercept
    if cell.problem == "logistic":
        q = expit(margins)
        return q - y, q * (1 - q)
    if cell.problem in POWERS:
        mean, power = np.exp(margins), POWERS[cell.problem]
        return (mean - y) / mean ** (power - 1), mean ** (2 - power)
    residuals = margins - y
    if cell.problem == "huber":
        bound = 1.35 * np.median(np.abs(residuals)) / norm.ppf(0.75)
        return np.clip(residuals, -bound, bound), (np.abs(residuals) < bound).astype(float)
    return residuals, np.ones(cell.n)


def non_private_errors(cell: Cell, X, y) -> np.ndarray:
    """Standard errors of slopes and intercept without privacy; of several classes, row by row."""
    Z = np.column_stack([X, np.ones(cell.n)])
    if cell.problem == "multinomial":
        slopes, intercepts = truth_of_classes(cell)
        p = softmax(X @ slopes.T + intercepts, axis=1)
        weights = p[:, :, None] * (np.eye(len(slopes)) - p[:, None, :])
        information = np.einsum("njk,na,nb->jakb", weights, Z, Z, optimize=True)
        size = slopes.size + len(slopes)
        inverse = np.linalg.pinv(information.reshape(size, size), 1e-9, hermitian=True)
        return np.sqrt(np.diag(inverse)).reshape(len(slopes), -1)
    if cell.problem == "logistic":
        slopes, intercept = truth(cell)
        q = expit(X @ slopes + intercept)
        return np.sqrt(np.diag(np.linalg.inv((Z * (q * (1 - q))[:, None]).T @ Z)))
    if cell.problem in LINKS:
        return sandwich_errors(Z, *residuals_and_weights(cell, X, y))
    return least_squares_errors(X, y)


def sandwich_errors(Z, residuals, weights) -> np.ndarray:
    """Standard errors of the solution of an estimating equation (White 1980)."""
    inverse = np.linalg.inv((Z * weights[:, None]).T @ Z)
    scores = Z * residuals[:, None]
    return np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))


def least_squares_errors(X, y) -> np.ndarray:
    """Standard errors of slopes and intercept of least squares, by HC0."""
    Z = np.column_stack([X, np.ones(len(X))])
    return sandwich_errors(Z, y - Z @ np.linalg.lstsq(Z, y)[0], np.ones(len(y)))


def one_run(cell: Cell, seed: int, **options):
    """Return z values, what is determined, relative errors, width ratios, naive z values."""
    rng = np.random.default_rng([seed, cell.n, cell.d])
    X, y = simulate(cell, rng)
    several = cell.problem == "multinomial"
    slopes, intercept = truth_of_classes(cell) if several else truth(cell)
    errors = non_private_errors(cell, X, y)[..., :-1]
    unit, scaling = np.ones(cell.d), "none"
    if cell.condition == "raw":
        scaling, (unit, centre) = "private", raw_units(cell)
        X = X * unit + centre
        slopes = slopes / unit
        intercept = intercept - slopes @ centre
    model = MODELS[cell.problem]
    target_unit = 1.0
    if cell.problem == "linear":
        # A size of 1, or another one that the fit has to find.
        target_unit = 5.0 if cell.condition == "raw" else 1 / math.sqrt(2)
        y, slopes, intercept = y * target_unit, slopes * target_unit, intercept * target_unit
    if several:
        options = {"classes": range(len(slopes)), **options}
    model = model(
        epsilon=cell.epsilon, delta=DELTA, scaling=scaling, inference="coefficients",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)), **options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.simplefilter("ignore", skdp.NoiseWarning)
        model.fit(X, y)
    found = model.inference_
    last = (found.intercept - intercept) / found.intercept_std_error
    # Of several classes the intercept of the first one is looked at.
    z = np.append((found.coef - slopes.ravel()) / found.std_error, last[:1])
    units = np.ravel(unit / target_unit / errors)
    naive = (np.ravel(model.coef_) - slopes.ravel()) * units
    return z, found.determined, found.relative_error, found.std_error * units, naive


def measure(cell: Cell, runs: int, **options) -> dict:
    """Run a cell, no further where its first runs determine nothing, and return its line."""
    found: list[tuple] = []
    for seed in range(runs):
        if len(found) == FEW and not any(one[1].any() for one in found):
            break
        found.append(one_run(cell, seed, **options))
    return line(cell, found)


def line(cell: Cell, found) -> dict:
    """Figures of a cell, over determined slopes. The standard error is over runs."""
    z, known, error, widths, naive = (np.array(one) for one in zip(*found, strict=True))
    slopes, last = z[:, :-1], z[:, -1]
    figures = {
        **vars(cell), "runs": len(found), "determined": known.mean(),
        "relative_error": np.median(error), "naive": np.mean(np.abs(naive) <= 1.959964),
    }  # fmt: skip
    if known.mean() < 0.02:
        return figures
    covered = np.where(known, np.abs(slopes) <= 1.959964, np.nan)
    per_run = np.nanmean(covered[known.any(axis=1)], axis=1)
    figures["coverage"], figures["coverage_se"] = np.nanmean(covered), mean_and_error(per_run)[1]
    tight = np.where(error < 0.35, covered, np.nan)
    figures["coverage_middle"] = np.nanmean(tight) if np.isfinite(tight).any() else math.nan
    often = np.isfinite(covered).sum(axis=0) >= max(5, 0.2 * len(found))
    if often.any():
        figures["least"] = np.nanmin(np.nanmean(covered[:, often], axis=0))
    every = known.all(axis=1)
    if every.any():
        figures["intercept"] = np.mean(np.abs(last[every]) <= 1.959964)
    some = known.any(axis=0)
    figures["width"] = np.mean(np.nanmedian(np.where(known, widths, np.nan)[:, some], axis=0))
    figures["small_p"] = np.mean(np.abs(slopes[known]) > 3.290527)
    return figures


def cells(smoke: bool = False) -> list[Cell]:
    """All cells, the ones of the same size side by side."""
    if smoke:
        return [Cell(problem, "raw", *DESIGNS[problem][0], 2_000, 3, 3.0) for problem in DESIGNS]
    return [
        Cell(problem, condition, *design, n, d, epsilon)
        for (n, d), epsilon, problem, condition in itertools.product(
            SIZES, EPSILONS, DESIGNS, CONDITIONS
        )
        for design in DESIGNS[problem]
        if condition == "raw" or design[0] == "normal"
    ]


def link_cells() -> list[Cell]:
    """Cells of log links and of Huber's loss."""
    return [
        Cell(problem, "raw", *design, n, 5, epsilon)
        for epsilon, n, problem in itertools.product((1.0, 3.0), (10_000, 2_000), LINKS)
        for design in LINKS[problem]
    ]


def class_cells() -> list[Cell]:
    """Cells of more than two classes."""
    return [
        Cell("multinomial", "raw", columns, classes, 20_000, d, epsilon)
        for epsilon in (1.0, 3.0)
        for columns, classes, d in CLASSES
    ]


def run(output: Path, command: str, runs: int, todo: list[Cell]) -> None:
    """Measure cells, and write after each of them."""
    lines = []
    for cell in todo:
        results_file.add(output, command, COLUMNS, lines, [measure(cell, runs)])


def verdict(path: Path) -> list[str]:
    """Say how many cells miss the aims, and which miss them by more than chance explains.

    Coverage is to lie in [.93, .97] where the relative error is at most 0.35, and in [.93, .985]
    up to 0.5.
    """
    commands, lines = results_file.read(path)
    lines = [one for one in lines if one["coverage"]]
    said = [f"{len(lines)} cells with determined coefficients, from {'; '.join(commands)}"]
    for low_error, high_error, most in ((0.0, 0.35, 0.97), (0.35, 0.5, 0.985)):
        some = [one for one in lines if low_error <= float(one["relative_error"]) < high_error]
        out = [one for one in some if not 0.93 <= float(one["coverage"]) <= most]
        surely = [one for one in out if _beyond_chance(one, most)]
        mean = np.average([float(one["coverage"]) for one in some] or [math.nan])
        said.append(
            f"relative error {low_error:g} to {high_error:g}: {len(some)} cells, mean coverage "
            f"{mean:.3f}; {len(out)} outside [0.93, {most:g}], {len(surely)} of them by more than "
            "two standard errors:"
        )
        said += [
            ", ".join(f"{name} {value}" for name, value in list(one.items())[:11]) for one in surely
        ]
    return said


def _beyond_chance(one: dict, most: float) -> bool:
    """Whether a coverage lies outside by more than two of its standard errors."""
    least_error = 0.22 / math.sqrt(float(one["runs"]) * float(one["d"]))
    error = 2 * max(float(one["coverage_se"] or 0.0), least_error)
    return not 0.93 - error <= float(one["coverage"]) <= most + error
