"""Cases of shapes and targets: columns that hang together, few rows and many, odd targets."""

from __future__ import annotations

import numpy as np

from benchmarks.cases.parts import Data, case, disguised, labels_of, normal, target_of

# ------------------------------------------------------------------ columns that hang together


@case()
def correlated(n, rng):
    """Columns with a common part of 99 %."""
    Z, coef = normal(n, 10, rng, correlation=0.99)
    signal = 10 * Z @ coef
    return Data(50 * Z + 100, target_of(signal, rng), labels_of(signal, rng))


@case()
def polynomial(n, rng):
    """Five powers of a column."""
    x = 10 * rng.random(n)
    X = np.column_stack([x**power for power in range(1, 6)])
    return Data(X, target_of(np.sin(x), rng, 0.3), labels_of(3 * np.sin(x), rng))


# ------------------------------------------------------------------ few rows and many


@case(200, 4_000)
def rows_200(n, rng):
    """200 rows to train on: a test half, so that the score is not all luck."""
    Z, coef = normal(n, 4, rng)
    return disguised(5 * Z + 20, Z, coef, rng)


@case(1_000, 4_000)
def rows_1000(n, rng):
    """A thousand, likewise."""
    Z, coef = normal(n, 5, rng)
    return disguised(5 * Z + 20, Z, coef, rng)


# ------------------------------------------------------------------ targets


def only_target(n, rng, change):
    """Standard columns and a target that is a function of the linear one."""
    Z, coef = normal(n, 10, rng)
    return Data(Z, change(target_of(Z @ coef, rng)))


@case(10_000)
def target_1e6(n, rng):
    """A deviation of 1 at a million."""
    return only_target(n, rng, lambda y: 1e6 + y)


@case()
def target_large(n, rng):
    """A deviation of 50 000 at 200 000."""
    return only_target(n, rng, lambda y: 2e5 + 5e4 * y)


@case()
def target_tiny(n, rng):
    """A deviation of 1e-9."""
    return only_target(n, rng, lambda y: 1e-9 * y)


@case()
def target_lognormal1(n, rng):
    """A lognormal target."""
    return only_target(n, rng, lambda y: np.exp(10 + y))


@case()
def target_lognormal2(n, rng):
    """One with a longer tail."""
    return only_target(n, rng, lambda y: np.exp(10 + 2 * y))


@case()
def target_poisson(n, rng):
    """Rare counts, of mean 0.1."""
    Z, coef = normal(n, 10, rng)
    return Data(Z, rng.poisson(np.exp(Z @ coef - 2.5)).astype(float))


@case()
def target_binary(n, rng):
    """A target of 0 and 1."""
    Z, coef = normal(n, 10, rng)
    return Data(Z, labels_of(3 * Z @ coef, rng).astype(float))


@case()
def rare_class(n, rng):
    """About one row in a hundred of class 1."""
    Z, coef = normal(n, 10, rng)
    return Data(30 * Z + 100, labels=labels_of(3 * Z @ coef - 7, rng))


@case()
def three_classes(n, rng):
    """Three classes in order, one of them rare."""
    Z, coef = normal(n, 10, rng)
    signal = Z @ coef
    classes = (signal > 0.5).astype(int) + (signal > 2.3)
    return Data(3 * Z + 9, labels=np.array(["a", "b", "c"])[classes])


@case()
def ten_classes(n, rng):
    """Ten classes, columns alike with a common mean of three deviations."""
    Z, weights = rng.standard_normal((n, 20)), rng.standard_normal((20, 10))
    labels = np.argmax(Z @ weights + rng.gumbel(size=(n, 10)), axis=1)
    return Data(3 * Z + 9, labels=labels)


@case()
def separable(n, rng):
    """Two classes on the two sides of a plane."""
    Z, coef = normal(n, 10, rng)
    return Data(3 * Z + 9, labels=(Z @ coef > 0).astype(int))
