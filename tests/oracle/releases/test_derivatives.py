"""Derivatives along a direction against finite differences, and vectors clipped exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skdp._oracle.releases.record_sums import FINEST, derivatives, within_ball
from skdp._oracle.sources.records import Records
from skdp.objective import Logistic, Multinomial, SquaredError

ROUNDING = Fraction(2.0**-FINEST)

N = 40
CASES = [
    (Logistic(), False),
    (Logistic(), True),
    (SquaredError(), True),
    (SquaredError(), False),
    (Multinomial(3), False),
]


def margins_and_targets(loss, rng):
    shape = N, loss.n_outputs or 1
    y = rng.standard_normal(shape)
    if isinstance(loss, Multinomial):
        y = rng.integers(3, size=N)
    elif isinstance(loss, Logistic):
        y = (y > 0).astype(float)
    return rng.standard_normal(shape), rng.standard_normal(shape), y


def block_of(targets, weights=None):
    """Records of which only targets and weights matter."""
    return Records(np.empty((N, 0)), targets, weights, None, np.empty(N), 1.0)


def by_differences(loss, margins, along, y, weights, with_shift, h=2e-3):
    """Derivatives of each record's weighted loss in (a, b), from its residuals alone."""

    def slopes(a, b):
        residuals = weights[:, None] * loss.residual(margins + a * along + b, y)
        return np.stack([(residuals * along).sum(axis=1), residuals.sum(axis=1)])

    first = slopes(0, 0)
    (twice, _), (mixed, shifted) = (
        (slopes(*step) - slopes(*(-one for one in step))) / (2 * h) for step in ((h, 0), (0, h))
    )
    parts = [first[0], twice] + ([first[1], mixed, shifted] if with_shift else [])
    return np.stack(parts, axis=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loss", "with_shift"), CASES, ids=repr)
def test_derivatives_are_finite_differences(rng, loss, with_shift, weighted):
    margins, along, y = margins_and_targets(loss, rng)
    weights = rng.uniform(0, 3, N) if weighted else None
    found = derivatives(block_of(y, weights), loss, margins, along, with_shift)
    ones = np.ones(N) if weights is None else weights
    expected = by_differences(loss, margins, along, y, ones, with_shift)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("loss", "with_shift"), CASES, ids=repr)
def test_huge_margins_give_numbers_or_nothing(rng, loss, with_shift):
    """Neither a warning nor, once clipped, anything but a vector within the bound."""
    margins, along, y = margins_and_targets(loss, rng)
    sizes = rng.choice([0.0, 1.0, 1e3, 1e20, 4e307], (2, N, 1)) * rng.choice([-1, 1], (2, N, 1))
    margins, along = sizes * np.clip([margins, along], -1, 1)
    margins[0] = np.inf  # a row too long to be multiplied
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = derivatives(block_of(y), loss, margins, along, with_shift)
    usual = (np.abs(margins) <= 1e3).all(axis=1) & (np.abs(along) <= 1e3).all(axis=1)
    assert usual.any()
    assert np.isfinite(found[usual]).all()
    lengths = np.linalg.norm(within_ball(found.copy(), 2.0), axis=1)
    assert (lengths <= 2.0 * (1 + 1e-15)).all()
    assert (lengths[~np.isfinite(found).all(axis=1)] == 0).all()


@settings(max_examples=100, deadline=None)
@given(
    arrays(float, (1, 5), elements=st.floats(allow_nan=False, allow_infinity=False)),
    st.floats(1e-140, 1e300),
)
def test_a_clipped_vector_is_as_short_as_is_charged(vector, bound):
    """In exact arithmetic."""
    with np.errstate(over="ignore", under="ignore"):
        (cut,) = within_ball(vector.copy(), bound)
    exact = sum(Fraction(entry) ** 2 for entry in cut)
    assert exact <= (Fraction(bound) * (1 + ROUNDING)) ** 2
    before = sum(Fraction(entry) ** 2 for entry in vector[0])
    if before < Fraction(bound) ** 2 * (1 - ROUNDING):
        assert (cut == vector[0]).all()
        return
    assume(before > Fraction(bound) ** 2)
    longest = np.abs(vector).max()
    units, length = vector[0] / longest, np.linalg.norm(vector[0] / longest)
    np.testing.assert_allclose(cut / bound, units / length, atol=1e-13)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_not_a_number_adds_nothing(bad):
    vectors = np.ones((3, 5))
    vectors[1, 3] = bad
    assert within_ball(vectors, 9.0).sum(axis=1).tolist() == [5.0, 0.0, 5.0]
