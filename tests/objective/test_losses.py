"""Losses: their derivatives, their declared bounds, and their behaviour at the extremes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.special import softmax
from scipy.stats import logistic
from sklearn.metrics import log_loss, mean_tweedie_deviance

from skdp.objective import (
    Huber,
    Logistic,
    Multinomial,
    OffsetLogistic,
    OffsetMultinomial,
    SmoothedHinge,
    SquaredError,
    TweedieLog,
)
from skdp.objective.tweedie import LARGEST_FULL_RATIO, LARGEST_TARGET

pytestmark = pytest.mark.filterwarnings("error")
quick = settings(deadline=None, max_examples=30, database=None)

HUGE = {np.float32: 3e38, np.float64: 1.7e308}


def _n_outputs(loss, otherwise=3):
    return loss.n_outputs or otherwise


def _targets(loss, n, rng, size=3.0):
    """Valid targets, the discrete ones spread evenly."""
    if loss.targets == "real":
        return size * rng.standard_normal((n, _n_outputs(loss)))
    if loss.targets == "nonnegative":
        return rng.gamma(1.0, size, (n, 1))
    if loss.name == "smoothed_hinge":
        return (np.arange(n)[:, None] % 3 == np.arange(loss.n_classes)).astype(float)
    codes = np.arange(n) % max(2, _n_outputs(loss))
    if isinstance(loss, OffsetLogistic | OffsetMultinomial):
        return np.c_[codes, size * rng.standard_normal((n, loss.n_outputs))]
    return codes[:, None].astype(float) if loss.separable else codes


def _without_offset(loss, margins, targets):
    """Margins to which offsets were added, and targets without them."""
    if not isinstance(loss, OffsetLogistic | OffsetMultinomial):
        return margins, targets
    codes = targets[:, :1] if loss.separable else targets[:, 0].astype(int)
    return margins + targets[:, 1:], codes


def _margins(loss, n, rng, size=3.0):
    return size * rng.standard_normal((n, _n_outputs(loss)))


def _hostile(dtype, shape):
    """Margins of every magnitude, with the edges of the type favoured."""
    top = float(np.finfo(dtype).max)
    edges = [0.0, 1.0, 36.0, 40.0, 88.8, 103.0, 709.9, 745.2, 1e4, 1e30, top / 4]
    width = np.finfo(dtype).bits
    numbers = st.floats(-top / 4, top / 4, width=width)
    edges = [float(dtype(e)) for e in edges if e < top]
    return arrays(dtype, shape, elements=st.sampled_from(edges + [-e for e in edges]) | numbers)


# ---- residuals by others


def _of_classes(loss, m, y):
    return softmax(m, axis=1) - np.eye(loss.n_classes)[y]


def _of_deviance(loss, m, y, h=1e-5):
    """Difference quotients of half the deviance by scikit-learn."""
    ahead, behind = (
        [
            mean_tweedie_deviance(*pair, power=loss.power) / 2 / loss.unit**2
            for pair in zip(loss.base + loss.unit * y, np.exp(loss.unit * (m + s)), strict=True)
        ]
        for s in (h, -h)
    )
    return (np.array(ahead) - behind)[:, None] / (2 * h)


KNOWN = {
    "squared_error": lambda loss, m, y: m - y,
    "logistic": lambda loss, m, y: logistic.cdf(m) - y,
    "multinomial": _of_classes,
    "huber": lambda loss, m, y: np.clip(m - y, -loss.threshold, loss.threshold),
    "smoothed_hinge": lambda loss, m, y: (
        (1 - 2 * y) * logistic.cdf(1 - (2 * y - 1) * m, scale=loss.width)
    ),
    "smoothed_pinball": lambda loss, m, y: logistic.cdf(m - y, scale=loss.width) - loss.quantiles,
    "tweedie_log": _of_deviance,
}


def test_residuals_agree_with_scikit_learn_and_scipy(loss, rng):
    m, y = _margins(loss, 20, rng), _targets(loss, 20, rng)
    if loss.link == "log":  # within the ends of the link
        m, y = m / (10 * loss.unit), (y / 3 + 0.1) / max(loss.unit, 1)
    known = KNOWN[loss.name](loss, *_without_offset(loss, m, y))
    rtol, atol = (1e-6, 1e-7) if loss.link == "log" else (1e-12, 1e-15)
    np.testing.assert_allclose(loss.residual(m, y), known, rtol, atol)


@pytest.mark.parametrize("size", [0.1, 3.0, 1e3, 1e6])
def test_the_loss_is_convex(loss, rng, size):
    a, b, y = (
        _margins(loss, 500, rng, size),
        _margins(loss, 500, rng, size),
        _targets(loss, 500, rng),
    )
    turned = np.einsum("ij,ij->i", loss.residual(a, y) - loss.residual(b, y), a - b)
    assert (turned >= -1e-9 * size).all()
    assert turned.max() > 0


# ---- declarations


def test_the_mean_is_the_inverse_of_the_link(loss, rng):
    m = _margins(loss, 60, rng)
    mean = loss.mean(m)
    assert mean.shape == m.shape
    assert loss.mean(m.astype(np.float32)).dtype == np.float32
    if loss.link == "identity":
        assert (mean == m).all()
    elif loss.link == "log":
        np.testing.assert_allclose(np.log(mean), m, atol=1e-12)
    else:
        others = 1 - mean if m.shape[1] == 1 else np.exp(np.log(mean).mean(axis=1, keepdims=True))
        centred = m if m.shape[1] == 1 else m - m.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(np.log(mean / others), centred, atol=1e-9)
    hostile = loss.mean(np.full((2, m.shape[1]), 1e308) * [[1], [-1]])
    assert np.isfinite(hostile).all()
    assert loss.link != "logit" or loss.targets == "label"


def test_the_residual_of_a_canonical_link_is_the_mean_minus_the_target(loss, rng):
    if loss.name in ("squared_error", "logistic", "multinomial") or loss == TweedieLog():
        m, y = _margins(loss, 60, rng, 0.5), _targets(loss, 60, rng)
        moved, y_alone = _without_offset(loss, m, y)
        targets = np.eye(m.shape[1])[y_alone] if y_alone.ndim == 1 else y_alone
        np.testing.assert_allclose(loss.residual(m, y), loss.mean(moved) - targets, atol=1e-14)


def test_values_at_zero():
    """By the integral of the residual from where the loss vanishes."""
    hinge = SmoothedHinge(3, 0.5)
    rest = quad(lambda m: logistic.cdf(1 - m, scale=hinge.width), 0, 60)[0]
    assert hinge.value_at_zero == pytest.approx(3 * rest)
    assert Logistic().value_at_zero == log_loss([1], [[0.5, 0.5]], labels=[0, 1])
    assert Multinomial(5).value_at_zero == pytest.approx(np.log(5))
    assert OffsetLogistic().value_at_zero is OffsetMultinomial(3).value_at_zero is None


@pytest.mark.parametrize("unit", [1e-3, 1e4])
def test_real_targets_have_any_unit_and_origin(loss, unit, rng):
    if loss.targets == "real":
        m, y = _margins(loss, 60, rng), _targets(loss, 60, rng)
        own = "threshold" if loss.name == "huber" else "width"
        other = replace(loss, **{own: getattr(loss, own) * unit}) if hasattr(loss, own) else loss
        moved = [unit * (part + 7.0) for part in (m, y)]
        exact = unit ** (loss.degree - 1) * loss.residual(m, y)
        # A logistic function near its ends loses digits of a difference that has moved by 7 units.
        atol = (1e-10 if own == "width" and hasattr(loss, own) else 1e-12) * unit
        np.testing.assert_allclose(other.residual(*moved), exact, rtol=1e-9, atol=atol)


def test_declared_constants():
    table = {
        SquaredError(): (1.0, None, None),
        Logistic(): (0.25, 1.0, 1),
        Multinomial(7): (0.5, 2**0.5, 7),
        Huber(2.5): (1.0, 2.5, None),
        TweedieLog(1.0, 30.0): (30.0, None, 1),
        TweedieLog(2.0, 30.0): (30.0 * LARGEST_TARGET, None, 1),
    }
    for loss, declared in table.items():
        assert (loss.curvature, loss.residual_bound, loss.n_outputs) == declared


@quick
@given(data=st.data())
def test_no_residual_is_longer_than_the_bound(loss, data):
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    m = data.draw(_hostile(dtype, (6, _n_outputs(loss))))
    y = _targets(loss, 6, np.random.default_rng(0))
    residual = loss.residual(m, y.astype(dtype) if y.dtype == float else y)
    assert np.isfinite(residual).all()
    if loss.residual_bound is None:
        return
    if loss.separable:
        assert np.abs(residual.astype(np.float64)).max() <= loss.residual_bound
    else:
        lengths = np.linalg.norm(residual.astype(np.float64), axis=1)
        assert lengths.max() <= loss.residual_bound * (1 + 8 * np.finfo(dtype).eps)


def test_the_bound_is_reached(loss, rng):
    k = _n_outputs(loss)
    m = np.repeat(1e9 * np.vstack([np.eye(k), -np.eye(k)]), max(k, 2), axis=0)
    residual = loss.residual(m, _targets(loss, len(m), rng))
    worst = np.linalg.norm(residual, axis=1).max()
    if loss.residual_bound is None:
        assert worst > 1e8
    elif loss.separable:
        assert np.abs(residual).max() >= loss.residual_bound * (1 - 1e-12)
    else:
        assert worst >= loss.residual_bound * (1 - 1e-12)


@quick
@given(data=st.data())
def test_the_residual_moves_no_faster_than_the_curvature(loss, data):
    numbers = st.floats(-30, 30) | st.sampled_from([0.0, 1.35, 0.1, 1e-3])
    k = _n_outputs(loss)
    a, b = data.draw(arrays(float, (2, 6, k), elements=numbers))
    y = _targets(loss, 6, np.random.default_rng(0))
    moved = np.linalg.norm(loss.residual(a, y) - loss.residual(b, y), axis=1)
    # Residuals beyond the ends of a log link are large, and are rounded as such.
    rounding = 1e-13 if loss.link != "log" else 1e-15 * loss.curvature * 60
    assert (moved <= loss.curvature * np.linalg.norm(a - b, axis=1) + rounding).all()


def test_the_curvature_is_reached(loss):
    # Along the difference of two equally likely outputs, the others being impossible.
    k, h = _n_outputs(loss), 1e-4
    m, step = np.full((1, k), -60.0), np.zeros((1, k))
    m[0, :2], step[0, :2] = 0.0, [h, -h][:k]
    y = _targets(loss, 1, np.random.default_rng(0), size=0.0)
    if loss.name == "smoothed_hinge":
        m, step = 2 * y - 1, h * np.eye(k)[:1]  # at the kinks
    if loss.link == "log":
        if 1 < loss.power < 2:  # its bound is the sum of two suprema
            return
        m[:] = 5.0 if loss.power == 1 else -10.0
        y += LARGEST_TARGET / loss.unit
    moved = np.linalg.norm(loss.residual(m + step, y) - loss.residual(m - step, y))
    assert moved / np.linalg.norm(2 * step) == pytest.approx(loss.curvature, rel=1e-6)


def test_separable_means_that_outputs_do_not_meet(loss, rng):
    m, y = _margins(loss, 20, rng), _targets(loss, 20, rng)
    other = m.copy()
    other[:, 1:] += 1.0
    same = np.array_equal(loss.residual(m, y)[:, 0], loss.residual(other, y)[:, 0])
    assert same == loss.separable


def test_quadratic_means_one_hessian(loss, rng):
    y, step = _targets(loss, 200, rng), np.eye(_n_outputs(loss))[0]
    places = _margins(loss, 200, rng), _margins(loss, 200, rng)
    moves = [loss.residual(at + step, y) - loss.residual(at, y) for at in places]
    assert np.allclose(*moves) == loss.quadratic


def test_smooth_means_no_jump_of_the_second_derivative(loss):
    grid, h = np.arange(-8, 8, 1e-3), 1e-3
    most = (
        0.01 if loss.link != "log" else 0.03 * max(loss.unit, 1)
    )  # which may change by its own size in a unit
    m = np.zeros((grid.size, _n_outputs(loss)))
    m[:, 0] = grid
    y = np.repeat(_targets(loss, 1, np.random.default_rng(0), size=0.0), grid.size, axis=0)
    second = np.diff(loss.residual(m, y)[:, 0]) / h
    assert (np.abs(np.diff(second)).max() < most) == loss.smooth


# ---- extremes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_margins_give_finite_residuals_silently(loss, dtype, rng):
    k = _n_outputs(loss)
    m = np.array([[s * HUGE[dtype]] * k for s in (1, -1)] * k, dtype=dtype)
    m[: k // 2, 0] *= -1
    y = _targets(loss, len(m), rng)
    assert np.isfinite(loss.residual(m, y)).all()


def test_differences_beyond_the_type():
    m, y = np.array([[1.7e308], [-1.7e308]]), np.array([[-1.7e308], [1.7e308]])
    assert SquaredError().residual(m, y).tolist() == [[np.inf], [-np.inf]]
    assert Huber(2.0).residual(m, y).tolist() == [[2.0], [-2.0]]
    assert Huber(2.0).residual(np.zeros((2, 1), np.float32), y).tolist() == [[2.0], [-2.0]]


def test_saturated_residuals_are_exact():
    m, y = np.array([[1e4], [-1e4], [1e4], [-1e4]]), np.array([[1.0], [0.0], [0.0], [1.0]])
    assert Logistic().residual(m, y).tolist() == [[0.0], [0.0], [1.0], [-1.0]]
    m = np.array([[1e4, 0.0, -1e4], [0.0, 1e4, 1e4]])
    residual = Multinomial(3).residual(m, np.array([0, 0])).tolist()
    assert residual == [[0.0, 0.0, 0.0], [-1.0, 0.5, 0.5]]


def test_multinomial_residuals_ignore_a_common_shift(rng):
    m, y = _margins(Multinomial(5), 30, rng), _targets(Multinomial(5), 30, rng)
    shifted = Multinomial(5).residual(m + 2.0**20, y)
    np.testing.assert_allclose(shifted, Multinomial(5).residual(m, y), atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_record_never_changes_the_residual_of_another(loss, bad, rng):
    m, y = _margins(loss, 9, rng), _targets(loss, 9, rng)
    alone = np.vstack([loss.residual(m[i : i + 1], y[i : i + 1]) for i in range(9)])
    m[4] = bad
    with np.errstate(invalid="ignore"):
        together = loss.residual(m, y)
    others = np.arange(9) != 4
    assert (together[others] == alone[others]).all()


# ---- arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_of_the_margins_is_kept(loss, dtype, rng):
    m, y = _margins(loss, 12, rng).astype(dtype), _targets(loss, 12, rng)
    assert loss.residual(m, y).dtype == dtype
    exact = loss.residual(m.astype(np.float64), y)
    np.testing.assert_allclose(loss.residual(m, y), exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_out_may_be_the_margins(loss, dtype, order, rng):
    m, y = np.array(_margins(loss, 12, rng), dtype=dtype, order=order), _targets(loss, 12, rng)
    kept, own = m.copy(), np.empty_like(m)
    fresh = loss.residual(m, y)
    assert not np.shares_memory(fresh, m)
    assert (m == kept).all()
    assert loss.residual(m, y, out=own) is own
    assert (own == fresh).all()
    assert loss.residual(m, y, out=m) is m
    assert (m == fresh).all()


def test_wrong_shapes_are_refused_not_broadcast(loss, rng):
    k = _n_outputs(loss)
    m, y = _margins(loss, 6, rng), _targets(loss, 6, rng)
    wrong = [(m, y[:5]), (m[:, 0], y), (m, y[:1]), (m[:1], y)]
    wrong += [(m, y[:, None] if y.ndim == 1 else y[:, 0])]
    if loss.n_outputs:
        wrong += [(np.zeros((6, k + 1)), y if y.ndim == 1 else np.zeros((6, k + 1)))]
    else:
        wrong += [(m, y[:, :1])]
    for margins, targets in wrong:
        with pytest.raises(ValueError, match=rf"{loss.name}: .*shape.*got \("):
            loss.residual(margins, targets)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_bounded_weights_are_those_of_the_residuals(power):
    """Both are cut where means are large, by the same factor, which depends on no target."""
    plain = TweedieLog(power, unit=0.5, base=1.0)
    bounded = plain.with_bounded_weights
    assert SquaredError().with_bounded_weights == SquaredError()
    margins = np.array([-500.0, -9.0, -1.0, 0.0, 2.0, 3.0, 5.5, 6.5, 1e100])[:, None]
    weights = plain.working_weight(margins, margins)
    factors = np.minimum(1.0, bounded.weight_bound / weights)
    assert bounded.weight_bound == LARGEST_FULL_RATIO ** (2 - power)
    assert (factors < 1).any() == (power < 2)
    np.testing.assert_allclose(bounded.working_weight(margins, margins), factors * weights)
    for target in (-2.0, 0.3, 40.0):
        targets = np.full_like(margins, target)
        np.testing.assert_allclose(
            bounded.residual(margins, targets), factors * plain.residual(margins, targets)
        )
