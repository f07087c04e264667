"""Cases of columns: in odd units, far from 0, long-tailed, mostly 0."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.cases.parts import Data, case, disguised, labels_of, normal, target_of, unit

# ------------------------------------------------------------------ units and places of columns


@case()
def plain(n, rng):
    """Columns that are standardised already."""
    Z, coef = normal(n, 10, rng)
    return disguised(Z, Z, coef, rng)


@case()
def scales_1e12(n, rng):
    """Twelve orders of magnitude between the columns."""
    Z, coef = normal(n, 10, rng)
    return disguised(Z * 10.0 ** np.linspace(-6, 6, 10), Z, coef, rng)


@case()
def offset_1e6(n, rng):
    """All columns a million deviations from 0."""
    Z, coef = normal(n, 10, rng)
    return disguised(Z + 1e6, Z, coef, rng)


def with_first(n, rng, values, standardised):
    """One column that matters most, in other units than the rest."""
    Z, coef = normal(n, 10, rng)
    coef[0] = 1.0
    Z[:, 0] = standardised
    X = Z.copy()
    X[:, 0] = values
    return disguised(X, Z, coef, rng)


@case()
def offset_1e6_one(n, rng):
    """One column a million deviations from 0."""
    z = rng.standard_normal(n)
    return with_first(n, rng, z + 1e6, z)


@case()
def year_column(n, rng):
    """Years from 2000 to 2024."""
    years = rng.integers(2000, 2025, n)
    return with_first(n, rng, years, (years - 2012) / 7.2)


@case()
def timestamp_year(n, rng):
    """Seconds since 1970, within a year."""
    u = rng.random(n)
    return with_first(n, rng, 1.6e9 + 3.15e7 * u, (u - 0.5) * np.sqrt(12))


@case()
def timestamp_day(n, rng):
    """Seconds since 1970, within a day."""
    u = rng.random(n)
    return with_first(n, rng, 1.6e9 + 86400 * u, (u - 0.5) * np.sqrt(12))


@case()
def id_column(n, rng):
    """A column of numbers that mean nothing, far from 0."""
    Z, coef = normal(n, 10, rng)
    return disguised(np.column_stack([Z, 1e7 + rng.permutation(n)]), Z, coef, rng)


@case()
def alike_off_centre(n, rng):
    """All columns alike, with a common mean of three deviations."""
    Z, coef = normal(n, 20, rng)
    return disguised(3 * Z + 9, Z, coef, rng)


@case()
def uint8(n, rng):
    """Bytes."""
    Z, coef = normal(n, 10, rng)
    return disguised(np.clip(60 * Z + 128, 0, 255).astype(np.uint8), Z, coef, rng)


@case()
def float32_offset(n, rng):
    """Single precision, a thousand deviations from 0."""
    Z, coef = normal(n, 10, rng)
    found = disguised((10 * Z + 1e4).astype(np.float32), Z, coef, rng)
    return Data(found.X, found.target.astype(np.float32), found.labels)


# ------------------------------------------------------------------ shapes of columns


@case()
def pareto15(n, rng):
    """Infinite variance; the target depends on values up to a limit."""
    X = 100 * rng.pareto(1.5, (n, 8))
    coef = np.abs(rng.standard_normal(8))
    cut = np.minimum(X, 3000) / 300
    return Data(X, target_of(cut @ coef, rng, 1.0), labels_of(unit(cut) @ coef, rng))


@case()
def pareto3(n, rng):
    """Tails that fall off as the third power, on which the target depends linearly."""
    X = 1e4 * rng.pareto(3.0, (n, 8))
    signal = unit(X) @ rng.standard_normal(8)
    return Data(X, target_of(signal, rng, 1.0), labels_of(signal, rng))


@case()
def lognormal2(n, rng):
    """Logarithms matter, with a deviation of 2."""
    Z, coef = normal(n, 8, rng)
    signal = np.sqrt(8) * Z @ coef
    return Data(np.exp(2 * Z), target_of(signal, rng, 1.0), labels_of(signal, rng))


@case(30_000, 10_000)
def signal_ends(n, rng):
    """Long tails whose effect ends inside the range that large budgets see."""
    X = np.exp(1.3 * rng.standard_normal((n, 6)))
    signal = unit(np.minimum(X, 9.0)) @ np.array([1.0, -0.8, 0.6, 0.5, -0.4, 0.3])
    return Data(X * [1e3, 10, 1, 200, 5, 1], target_of(signal, rng, 1.3))


@case()
def idle_tail(n, rng):
    """One column of six has a long tail, and nothing depends on it."""
    Z = rng.standard_normal((n, 6))
    coef = np.array([0.6, -0.6, 0.6, -0.6, 0.6, 0.0])
    return disguised(np.column_stack([Z[:, :5], np.exp(3 * Z[:, 5])]), Z, coef, rng)


@case()
def constant_columns(n, rng):
    """Three columns of one value."""
    Z, coef = normal(n, 10, rng)
    X = np.column_stack([Z, np.full(n, 7.0), np.full(n, 1e6), np.zeros(n)])
    return disguised(X, Z, coef, rng)


@case()
def zeros_99(n, rng):
    """99 % zeros, else thousands."""
    X = (rng.random((n, 30)) < 0.01) * 1000 * np.exp(rng.standard_normal((n, 30)))
    Z = unit(X)
    coef = rng.standard_normal(30) / np.sqrt(30)
    signal = Z @ coef
    return Data(X, target_of(signal, rng), labels_of(3 * signal, rng))


@case()
def one_hot(n, rng):
    """Six columns in units of their own, and 40 indicators of a category."""
    Z, coef = normal(n, 6, rng)
    kind = rng.choice(40, n, p=[0.3, 0.2, *[0.5 / 38] * 38])
    numbers = Z * [1e5, 1, 1e-3, 10, 40, 500] + [2e5, 0, 0, 50, 40, 2e3]
    signal = np.sqrt(6) * Z @ coef + rng.standard_normal(40)[kind]
    labels = labels_of(2 * (signal - signal.mean()), rng)
    return Data(np.column_stack([numbers, np.eye(40)[kind]]), target_of(signal, rng), labels)


@case()
def boolean(n, rng):
    """True and False."""
    Z, coef = normal(n, 20, rng)
    X = Z > 0.5
    return Data(X, target_of(X @ coef, rng), labels_of(3 * (X - 0.3) @ coef, rng))


def indicators(n, rng):
    """300 rare indicators."""
    chances = np.exp(rng.uniform(np.log(0.003), np.log(0.1), 300))
    X = (rng.random((n, 300)) < chances).astype(float)
    signal = X @ rng.standard_normal(300)
    return Data(X, labels=labels_of(signal - signal.mean() - 3, rng))


@case(30_000, 10_000)
def indicators_standardised(n, rng):
    """Rare indicators that were standardised: their ones are 3 to 18."""
    found = indicators(n, rng)
    X = found.X - found.X.mean(axis=0)
    return Data(X / np.maximum(X.std(axis=0), 1e-3), labels=found.labels)


@case(30_000, 10_000)
def indicators_raw(n, rng):
    """Rare indicators as they are."""
    return indicators(n, rng)


@case(30_000, 10_000)
def indicators_sparse(n, rng):
    """The same, sparse."""
    found = indicators(n, rng)
    return Data(sparse.csr_array(found.X), labels=found.labels)


@case(30_000, 10_000)
def wide_counts(n, rng):
    """280 counts with long tails, driven by five factors; a target with rows far off."""
    rates = np.exp(1.5 * rng.standard_normal(280))
    factors, loadings = rng.standard_normal((n, 5)), rng.standard_normal((5, 280))
    spread = np.exp(0.6 * factors @ loadings / np.sqrt(5))
    X = rng.poisson(np.minimum(rates * spread, 1e5)).astype(float)
    y = rng.poisson(np.exp(1.2 * factors[:, 0] + 0.6 * factors[:, 1] - 0.5)).astype(float)
    return Data(X, y)
