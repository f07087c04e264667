"""Varshney, Thakurta, Jain 2022: does one pass with an adaptive clip reach the optimal rate?

The paper prints no experiment. This is the one that its claims describe: x ~ N(0, I),
y = <x, w*> + sigma z, |w*| = 1, no intercept. The excess risk is then |w - w*|^2. The solvers are
told what the theorems suppose to be known: curvature and condition number are 1. All else is by
default.
"""

from __future__ import annotations

import math

import numpy as np

import skdp
from benchmarks.papers.printed_noise import printed_noise
from benchmarks.papers.report import chosen, columns_of, cost_of_noise, shown
from skdp.solvers import AdaptiveShuffledSGD, GradientDescent, ShuffledSGD

DELTA = 1e-6
KNOWN = {"curvature": 1.0, "condition_number": 1.0}
BLOCKS = 8  # of DP-SSGD: the fewest that its default has
# So large a budget that privacy costs little in comparison with sigma^2 d / n, and so small a one
# that sigma^2 d / n is little in comparison with what DP-AMBSSGD pays for privacy.
NOISE = {"epsilon": 8.0, "sigma": 1.0, "d": 10, "n": 40_000}
PRIVACY = {"epsilon": 0.02, "sigma": 1.0, "d": 10, "n": 200_000}
MIDDLE = {"epsilon": 1.0, "sigma": 1.0, "d": 10, "n": 50_000}
SWEEPS = {
    # Settings, the varied one, its values, repetitions, and the slope of the theory.
    "noise-dominated": (NOISE, "n", (20_000, 40_000, 80_000, 160_000), 40, -1.0),
    "dimension": ({**NOISE, "n": 100_000}, "d", (5, 10, 20, 40), 24, 1.0),
    "privacy-dominated": (PRIVACY, "n", (100_000, 200_000, 400_000, 800_000), 20, -2.0),
    "sigma": (MIDDLE, "sigma", (1.0, 0.3, 0.1, 0.03, 0.01, 0.0), 12, None),
}
# Every n has the same share of a block for the counts there.
FIXED = {"privacy-dominated": {"stat_share": 0.3}}
MOST_ROWS_OF_QUICK = 2000


def solvers(extra):
    return {
        "DP-AMBSSGD": AdaptiveShuffledSGD(**KNOWN, **extra),
        "DP-SSGD": ShuffledSGD(max_iter=BLOCKS, **KNOWN),
        "gd": GradientDescent(),
    }


def draw_rows(n, d, sigma, rng):
    """Return rows, targets and the coefficients behind them."""
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((n, d))
    return X, X @ w + sigma * rng.standard_normal(n), w


def excess(solver, X, y, w, epsilon, seed):
    model = skdp.DPLinearRegression(
        solver=solver,
        epsilon=epsilon,
        delta=DELTA,
        fit_intercept=False,
        scaling="none",
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
    )
    return float(np.sum((model.fit(X, y).coef_ - w) ** 2))


def lower_bound(n, d, sigma, epsilon):
    return sigma**2 * d / n + sigma**2 * d**2 / (epsilon * n) ** 2


def sweep(report, name):
    """Excess risk of every method along one sweep; repetitions share their rows."""
    settings, varied, values, repetitions, _ = SWEEPS[name]
    methods = solvers(FIXED.get(name, {}))
    # All methods on few repetitions where rows are many; DP-AMBSSGD on all of them.
    few = 3 if name in ("privacy-dominated", "dimension") else 4
    if report.quick:
        values, repetitions = values[:2], 2
    for value in values:
        here = {**settings, varied: value}
        if report.quick:
            here["n"] = MOST_ROWS_OF_QUICK * (1 + values.index(value))
        found = {method: [] for method in methods}
        for seed in range(repetitions):
            rng = np.random.default_rng([seed, here["n"], here["d"]])
            X, y, w = draw_rows(here["n"], here["d"], here["sigma"], rng)
            for method in methods if seed < few else list(methods)[:1]:
                solver = methods[method]
                found[method].append(excess(solver, X, y, w, here["epsilon"], seed))
        for method, each in found.items():
            report.add(
                part=name,
                method=method,
                **here,
                runs=len(each),
                **columns_of("excess", each),
                lower_bound=f"{lower_bound(**here):.4g}",
            )


def single_records(report):
    """DP-SSGD as printed, a record a step, beside blocks."""
    n, runs = (MOST_ROWS_OF_QUICK, 2) if report.quick else (200_000, 3)
    for epsilon in (0.1, 1.0, 8.0):
        for method, solver in (
            ("single records", ShuffledSGD(batch_size=1, **KNOWN)),
            ("blocks", ShuffledSGD(max_iter=BLOCKS, **KNOWN)),
        ):
            each = []
            for seed in range(runs):
                rng = np.random.default_rng([seed, n])
                each.append(excess(solver, *draw_rows(n, 10, 1.0, rng), epsilon, seed))
            report.add(
                part="records",
                method=method,
                epsilon=epsilon,
                n=n,
                runs=runs,
                **columns_of("excess", each),
            )


def run(report):
    noise = printed_noise("V22", 1.0, DELTA, 50_000, 100)
    report.add_noise("one pass, 100 blocks", noise, "replace_one")
    for name in SWEEPS:
        sweep(report, name)
    single_records(report)


def slope(rows, varied):
    """Return the slope of log excess on the log of what is varied, and its standard error."""
    x = np.log([row[varied] for row in rows])
    y = np.log([row["excess"] for row in rows])
    weights = np.array([row["excess"] / row["excess_error"] for row in rows])
    (found, _), covariance = np.polyfit(x, y, 1, w=weights, cov="unscaled")
    return float(found), math.sqrt(covariance[0, 0])


def verdict(rows):
    for name, (settings, varied, _, _, wanted) in SWEEPS.items():
        here = chosen(rows, part=name, method="DP-AMBSSGD")
        if wanted is None:
            first, last = here[0], here[-1]
            yield (
                "The excess of DP-AMBSSGD vanishes with the noise of the targets",
                f"{first['excess']:.2g} at sigma = {first['sigma']:g}, {last['excess']:.2g} at "
                f"{last['sigma']:g}",
                "holds" if last["excess"] < 1e-3 * first["excess"] else "does not hold",
            )
            continue
        found, error = slope(here, varied)
        yield (
            f"Its excess has the slope {wanted:g} in {varied} ({name}, epsilon "
            f"{settings['epsilon']:g})",
            f"{found:.2f}+-{error:.2f}",
            "holds" if abs(found - wanted) < max(0.15, 2 * error) else "does not hold",
        )
    here = chosen(rows, part="privacy-dominated")
    for end in (here[: len(here) // 2], here[len(here) // 2 :]):
        n_rows = (end[0] if end[0] is here[0] else end[-1])["n"]
        ratios = {
            row["method"]: row["excess"] / row["lower_bound"] for row in chosen(here, n=n_rows)
        }
        yield (
            f"It is near the lower bound (epsilon {here[0]['epsilon']:g}, n = {n_rows:,.0f})",
            f"{ratios['DP-AMBSSGD']:.0f} times the bound without its constants; solver 'gd' "
            f"{ratios['gd']:.0f} times",
            "up to constants" if ratios["gd"] < ratios["DP-AMBSSGD"] else "holds",
        )
    for row in chosen(rows, part="records", method="single records"):
        (blocks,) = chosen(rows, part="records", method="blocks", epsilon=row["epsilon"])
        yield (
            f"Shuffling single records amplifies privacy (DP-SSGD, epsilon {row['epsilon']:g})",
            f"excess {shown(row, 'excess')}; blocks {shown(blocks, 'excess')}",
            "holds" if row["excess"] < blocks["excess"] else "repays a part of small batches",
        )
    yield from cost_of_noise(rows)


def draw(rows, plt):
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
    for ax, (name, (_, varied, *_)) in zip(axes, SWEEPS.items(), strict=True):
        here = chosen(rows, part=name)
        for method in dict.fromkeys(row["method"] for row in here):
            points = chosen(here, method=method)
            ax.plot([r[varied] for r in points], [r["excess"] for r in points], ".-", label=method)
        points = chosen(here, method="gd")
        bounds = [row["lower_bound"] for row in points]
        ax.plot([row[varied] for row in points], bounds, "k--", label="lower bound")
        linear = {"linthresh": 0.01} if varied == "sigma" else {}
        ax.set_xscale("symlog" if varied == "sigma" else "log", **linear)
        ax.set(yscale="log", xlabel=varied, ylabel="excess risk", title=name)
    axes[0].legend(fontsize=8)
    return figure
