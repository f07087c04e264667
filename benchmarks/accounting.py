"""How much noise the accountants ask for, against references, and how long they take.

    python benchmarks/accounting.py

Three tables: (a) full-batch plans against the exact closed form, found by bisection of the
Gaussian trade-off with 50 digits where mpmath is installed; (b) sampled plans against the privacy
loss distributions of dp-accounting, where that is installed; (c) seconds. A ratio is the noise
multiplier that skdp asks for over the one that the reference asks for: 1 is equal, less is less
noise.
"""

import importlib.util
import math
import time

import numpy as np

from skdp.accounting import (
    Adjacency,
    Composed,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    calibrate,
)

ZERO_OUT, REPLACE_ONE = Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
HAS_REFERENCE = importlib.util.find_spec("dp_accounting") is not None
HAS_DIGITS = importlib.util.find_spec("mpmath") is not None


def repeated(event, count):
    return Composed(((event, count),))


def exact_mu(epsilon, delta):
    """Gaussian-DP parameter to 30 digits."""
    import mpmath

    mpmath.mp.dps = 50

    def excess(mu):
        near, far = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
        return mpmath.ncdf(near) - mpmath.exp(epsilon) * mpmath.ncdf(far) - mpmath.mpf(delta)

    low, high = mpmath.mpf("1e-6"), mpmath.mpf(50)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return float(low)


def full_batch():
    print("\n(a) full batch, noise multiplier over the exact closed form")
    if not HAS_DIGITS:
        print("    left out: mpmath is not installed")
        return
    print(f"{'epsilon':>8} {'delta':>7} {'steps':>6} {'relation':>12} {'ratio':>14}")
    worst = 0.0
    for epsilon in (0.1, 1.0, 8.0):
        for delta in (1e-5, 1e-8):
            mu = exact_mu(epsilon, delta)
            for steps in (1, 100):
                for adjacency, sensitivity in ((ZERO_OUT, 1), (REPLACE_ONE, 2)):
                    found = calibrate(repeated(Gaussian(1.0), steps), epsilon, delta, adjacency)
                    ratio = found.scale / (sensitivity * math.sqrt(steps) / mu)
                    worst = max(worst, ratio)
                    print(f"{epsilon:8g} {delta:7g} {steps:6d} {adjacency:>12} {ratio:14.10f}")
    print(f"    worst ratio {worst:.10f} (to reach: 1.000001)")


def reference_noise(rate, steps, epsilon, delta, relation, guess):
    """Noise multiplier at which dp-accounting's certified epsilon meets the budget."""
    import dp_accounting as dpa
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from scipy.optimize import brentq

    relations = {
        ZERO_OUT: dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
        REPLACE_ONE: dpa.NeighboringRelation.REPLACE_ONE,
    }

    def excess(noise):
        accountant = PLDAccountant(relations[relation])
        event = dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(noise))
        accountant.compose(event, steps)
        return accountant.get_epsilon(delta) - epsilon

    return brentq(excess, guess * 0.98, guess * 1.02, xtol=1e-5 * guess)


def sampled():
    print("\n(b) Poisson samples, noise multiplier over that of dp-accounting's PLD (lattice 1e-4)")
    if not HAS_REFERENCE:
        print("    reference left out: dp-accounting is not installed")
    header = (
        f"{'rate':>6} {'steps':>6} {'epsilon':>8} {'relation':>12} {'noise':>10} {'certified':>10}"
    )
    print(f"{header} {'ratio':>9} {'seconds':>8}")
    worst = 0.0
    for rate, steps in ((0.001, 3000), (0.01, 100), (0.01, 1000), (0.1, 100), (0.5, 20)):
        for epsilon in (0.5, 2.0, 8.0):
            for adjacency in Adjacency:
                plan = repeated(PoissonSampled(rate, Gaussian(1.0)), steps)
                start = time.perf_counter()
                found = calibrate(plan, epsilon, 1e-5, adjacency)
                took = time.perf_counter() - start
                ratio = math.nan
                if HAS_REFERENCE:
                    reference = reference_noise(rate, steps, epsilon, 1e-5, adjacency, found.scale)
                    ratio = found.scale / reference
                    worst = max(worst, ratio)
                print(
                    f"{rate:6g} {steps:6d} {epsilon:8g} {adjacency:>12} {found.scale:10.5f} "
                    f"{found.epsilon:10.6f} {ratio:9.6f} {took:8.3f}"
                )
    if HAS_REFERENCE:
        print(f"    worst ratio {worst:.6f} (to reach: 1.002)")


def timings():
    print("\n(c) seconds to calibrate to epsilon 1, delta 1e-5")
    levels = np.geomspace(1.0, 2.0, 1000).tolist()
    plans = {
        "full batch, 1000 levels": (Composed.of(map(Gaussian, levels)), ZERO_OUT),
        "full batch, 100 equal steps": (repeated(Gaussian(1.0), 100), REPLACE_ONE),
        "Poisson, 1000 equal steps": (
            repeated(PoissonSampled(0.01, Gaussian(1.0)), 1000),
            ZERO_OUT,
        ),
        "fixed size, 1000 equal steps": (
            repeated(FixedSizeSampled(100, 10_000, Gaussian(1.0)), 1000),
            REPLACE_ONE,
        ),
        "Laplace, 1000 equal steps": (repeated(Laplace(1.0), 1000), REPLACE_ONE),
        "Poisson, 100 levels": (
            Composed.of(PoissonSampled(0.01, Gaussian(level)) for level in levels[::10]),
            ZERO_OUT,
        ),
        "Poisson, 1000 levels": (
            Composed.of(PoissonSampled(0.01, Gaussian(level)) for level in levels),
            ZERO_OUT,
        ),
        "Poisson, 1000 levels, replace one": (
            Composed.of(PoissonSampled(0.01, Gaussian(level)) for level in levels),
            REPLACE_ONE,
        ),
    }
    for words, (plan, adjacency) in plans.items():
        start, used = time.perf_counter(), time.process_time()
        found = calibrate(plan, 1.0, 1e-5, adjacency)
        took, used = time.perf_counter() - start, time.process_time() - used
        print(
            f"{words:36} {took:9.4f} s ({used:.4f} s of processor time), {found.accountant}, "
            f"certified {found.epsilon:.6f}"
        )


if __name__ == "__main__":
    full_batch()
    sampled()
    timings()
