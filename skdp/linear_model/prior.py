"""Fit a model that starts from a public one: first a slope on its predictions, then the rest.

1. A share of the budget fits the targets on the margins of the prior, which are a column for each
   of its outputs. The slope is near 1 if the prior is right, near 0 if it is useless, and negative
   if its signs are reversed: it is the private test of the prior.
2. The rest of the budget fits the remainder, with these predictions as an offset. Its
   penalty and every shrinkage pull the difference towards 0, and so the model towards the prior.

Privacy: two private fits on the same rows, which compose. The second uses the released result of
the first, and the margins of a row follow from that row and from public numbers, so neighbours
remain neighbours.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _num_samples

from skdp._fitting import parts
from skdp._fitting.estimator import charge_fit, prepare_fit, with_earlier_fits
from skdp._fitting.partitions import MappedColumns, MappedPartitions
from skdp._fitting.privacy import Privacy, SeededNoise
from skdp._fitting.refusals import refusing
from skdp._fitting.rows import read_data
from skdp._fitting.user_warnings import NotPrivateWarning
from skdp._numbers import AnyArray, Array, Table, listed, shown
from skdp._oracle.noise import drawing_through
from skdp._oracle.sources.base import noting_reads
from skdp._oracle.sources.partitioned import PartitionRows, Partitions
from skdp._stages.column_bounds import PublicRange, PublicSample, declared_targets
from skdp.accounting import (
    Cost,
    PrivacyStatement,
    composed,
    gaussian_epsilon,
    gaussian_mu,
)
from skdp.linear_model.base import HANDED_ON
from skdp.objective.tweedie import LARGEST_OFFSET

# Share of mu squared for the slope. By `benchmarks prior`: with .3 useless priors cost more at
# epsilon .3, and with .15 the slope was too noisy at .1.
SHARE = 0.2
# Private rows may lie elsewhere than public ones: columns and predictions are clipped this many
# widths of public ranges farther away, and margins are taken for this many times as spread.
WIDTHS, SPREAD = 2.0, 1.3
# Ranges of the margins and of the targets are those of public rows only if mu times the number of
# records is below this: the private ones may be much wider.
LEAST_SIGNAL = 150.0
WIDEST = 4.0  # range of the difference, in widths of that of the targets
LARGEST_MARGIN = 1e50
ROOM = 1e-9  # by which the two epsilons are rounded down
PUBLIC = "The prior is public: its coefficients did not follow from these rows."
PRIVATE = "The prior was fitted to private rows: its cost is part of this total."


class PublicModel(BaseEstimator):
    """Coefficients that are public, such as a published risk score: for the parameter ``prior``.

    Parameters
    ----------
    coef : array of shape (n_features,) or (n_outputs, n_features)
        In the units of X, on the scale of the link: log odds, or logarithms of means.
    intercept : float or array of shape (n_outputs,), default=0.0

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge
    >>> from skdp.linear_model import PublicModel
    >>> X, y = load_diabetes(return_X_y=True)
    >>> score = PublicModel([0, -230, 520, 320, -190, 0, -150, 120, 500, 70], intercept=152)
    >>> model = DPRidge(prior=score, epsilon=1.0).fit(X, y)
    >>> model.score(X, y) > 0.3  # public rows: an exact score is fine
    True
    """

    def __init__(self, coef: Any, intercept: Any = 0.0) -> None:
        self.coef, self.intercept = coef, intercept


@dataclass(frozen=True, eq=False)
class Prior:
    """The margins of a public model.

    Attributes
    ----------
    coef : array of shape (n_features, n_margins)
    intercept : array of shape (n_margins,)
    sample : array of shape (n_rows, n_margins) or None
        Margins of public rows.
    costs : tuple of Cost
        Of a prior that was fitted on private rows.
    ranges : pair of array of shape (n_features,), or None
        Ranges to which columns are clipped: as by the prior itself, or those of public rows.
    limit : float
        Largest size of a margin.
    """

    coef: Array
    intercept: Array
    sample: Array | None = None
    costs: tuple[Cost, ...] = ()
    ranges: tuple[Array, Array] | None = None
    limit: float = LARGEST_MARGIN

    @classmethod
    def of(cls, model: Any) -> Prior:
        """Return the prior of an estimator. ValueError if it is none."""
        given, sample, ranges = model.prior, None, None
        costs: tuple[Cost, ...] = ()
        if isinstance(given, PublicSample):
            columns = given.columns(centred=True)
            wide = WIDTHS * (columns.high - columns.low)
            ranges = columns.low - wide, columns.high + wide
            sample = np.clip(np.asarray(given.rows, dtype=float), *ranges)
            given = _fit_of_sample(model, given, sample)
        elif isinstance(getattr(given, "privacy_", None), PrivacyStatement):
            costs, scaling = (Cost.of(given.privacy_),), getattr(given, "scaling_", None)
            if scaling is not None and scaling.columns is not None:
                ranges = scaling.columns.low, scaling.columns.high
        names = ("coef", "intercept") if isinstance(given, PublicModel) else ("coef_", "intercept_")
        try:
            coef, intercept = (np.array(getattr(given, name), dtype=float) for name in names)
            coef = np.atleast_2d(coef).T
            intercept = np.broadcast_to(intercept, coef.shape[1:]).copy()
            is_fine = bool(np.isfinite(coef).all() and np.isfinite(intercept).all())
        except (AttributeError, TypeError, ValueError):
            is_fine = False
        if not is_fine:
            raise ValueError(
                "prior must be a fitted linear model of skdp or scikit-learn, PublicModel(coef, "
                "intercept) with finite numbers, or PublicSample(X, y=targets); got "
                f"{shown(model.prior)}."
            )
        prior = cls(coef, intercept, None, costs, ranges)
        return prior if sample is None else replace(prior, sample=prior.margins(sample))

    def check(self, model: Any, n_features: int, names: Sequence[str] = ()) -> None:
        """Raise ValueError unless the prior has these columns, and the classes of the model."""
        if len(self.coef) != n_features:
            raise ValueError(
                f"prior has {len(self.coef)} coefficients; X has {n_features} columns."
            )
        if isinstance(model.prior, PublicSample):
            model.prior.check(n_features, names)
        of_prior = getattr(model.prior, "feature_names_in_", names)
        if names and list(of_prior) != list(names):
            raise ValueError(
                f"prior was fitted to the columns {listed(of_prior)}. X has {listed(names)}. "
                "Pass X[prior.feature_names_in_], with these columns in this order."
            )
        own, others = getattr(model, "classes", None), getattr(model.prior, "classes_", None)
        if own is not None and others is not None and list(own) != list(others):
            raise ValueError("prior has other classes than the model, or another order of them.")

    def margins(self, X: Any) -> AnyArray:
        """Return the margins of rows, each from its own row, in finite numbers."""
        zero = np.zeros(len(self.coef))  # a cell without an entry, clipped
        if self.ranges is not None and sparse.issparse(X):
            X, (low, high) = sparse.csr_array(X, copy=True), self.ranges
            zero = np.clip(zero, low, high)
            X.data = np.clip(X.data, low[X.indices], high[X.indices]) - zero[X.indices]
        elif self.ranges is not None:
            X = np.clip(X, *self.ranges)
        with np.errstate(all="ignore"):
            if sparse.issparse(X):
                margins = np.asarray(X @ self.coef, dtype=np.float64) + zero @ self.coef
            else:  # no product of matrices: see `Records.margins`
                X, columns = np.ascontiguousarray(X), np.ascontiguousarray(self.coef.T)
                margins = np.stack([np.einsum("ij,j->i", X, one) for one in columns], axis=1)
            margins = np.asarray(margins + self.intercept, dtype=np.float64)
        return np.clip(np.nan_to_num(margins), -self.limit, self.limit)

    def times(self, first: Any) -> Prior:
        """Return the prior whose margins are the predictions of the slope's fit."""
        slope = np.atleast_2d(first.coef_).T
        intercept = self.intercept @ slope + first.intercept_
        half = _limit(first) / 2
        return replace(self, coef=self.coef @ slope, intercept=intercept, sample=None, limit=half)


def _fit_of_sample(model: Any, sample: PublicSample, rows: Array) -> Any:
    """Return the fit of a model to public rows, without noise."""
    if sample.targets is None:
        raise ValueError("prior: the PublicSample has no targets; give it some, as in y=targets.")
    plain = clone(model).set_params(
        prior=None, epsilon=math.inf, solver="auto", scaling="auto", privacy=Privacy(), verbose=0
    )
    with (  # the sample is public: an audit records neither draws nor reads of its fit
        parts.charged_as_a_whole(),
        warnings.catch_warnings(),
        drawing_through(lambda source: source),
        noting_reads(lambda: None),
    ):
        warnings.simplefilter("ignore", NotPrivateWarning)
        return plain.fit(rows, sample.targets)


def fits_of(model: Any) -> tuple[Any, Any]:
    """Return the two estimators, which share the budget: of the slope, and of the difference."""
    first, second = clone(model), clone(model)
    for one, share, seed in ((first, SHARE, 1), (second, 1 - SHARE, 0)):
        terms = Privacy(**model._terms.get_params(deep=False) | {"budget": None})
        if isinstance(terms.noise, SeededNoise):
            drawn = np.random.SeedSequence((terms.noise.seed, seed))  # of no plain fit
            terms.noise = SeededNoise(int(drawn.generate_state(1, np.uint64)[0]))
        one.set_params(prior=None, privacy=terms, epsilon=_epsilon(model, share))
    targets = declared_targets(model.scaling)
    declared = "auto" if targets is None else PublicRange(target=targets)
    first.set_params(scaling=declared, solver="auto", **dict.fromkeys(HANDED_ON, "auto"))
    second.set_params(scaling=model.scaling if targets is None else "auto")
    if isinstance(model.prior, PublicSample) and str(second.scaling) == "auto":
        second.set_params(scaling=PublicSample(model.prior.rows))
    return first, second


def take_public_ranges(model: Any, first: Any, prior: Prior, n_records: int) -> None:
    """Let the slope's fit use the ranges of public rows, if noise would hide private ones."""
    if prior.sample is None or len(np.unique(prior.sample[:, 0])) == 1:
        return
    mu = math.inf
    if model.delta > 0 and not math.isinf(first.epsilon):
        mu = gaussian_mu(first.epsilon, first.delta)
    targets = declared_targets(model.scaling)
    if targets is None and mu * n_records < LEAST_SIGNAL:
        targets = prior_range(model)
    centre = prior.sample.mean(axis=0)
    wider = centre + SPREAD * (prior.sample - centre)
    first.set_params(scaling=PublicSample(wider, target=targets))


def prior_range(model: Any) -> tuple[float, float] | None:
    """Return the range of the targets of public rows, made wider by a tenth at both ends."""
    if model._loss(1).targets == "label" or not isinstance(model.prior, PublicSample):
        return None
    low, high = np.quantile(np.asarray(model.prior.targets, dtype=float), [0.0, 1.0])
    return float(low - 0.1 * (high - low)), float(high + 0.1 * (high - low))


def _epsilon(model: Any, share: float) -> float:
    if math.isinf(model.epsilon):
        return math.inf
    if model.delta == 0:
        return float(model.epsilon * share)
    mu = gaussian_mu(model.epsilon, model.delta) * math.sqrt(share)
    return gaussian_epsilon(mu, model.delta) * (1 - ROOM)


def fit_with_prior(
    model: Any, X: Table, y: Table, sample_weight: Table, groups: Table, offset: Table
) -> None:
    """Fit a model from its prior, and keep the result in it. See the head of this module."""
    with refusing(model._who):
        model._check_parameters()
        prior = Prior.of(model)
        first, second = fits_of(model)
    beside = {"sample_weight": sample_weight, "groups": groups}
    # 1. Rows and plans. Nothing has been charged.
    rows = read_data(second, X, y, **beside, offset=offset)
    with refusing(model._who):
        prior.check(model, rows.n_features, rows.names or ())
        take_public_ranges(model, first, prior, rows.n_records)
    is_apart = isinstance(rows.X, Partitions)
    if is_apart:
        margins = MappedPartitions(rows.X, MappedColumns(_Margins(prior, second)))
        of_first: dict[str, Any] = {"X": margins}
        known: Any = None
        of_second = read_data(second, MappedPartitions(rows.X, _ZeroOffset()))
        rows = replace(of_second, X=rows.X, part=rows.part, given=rows.given)
    else:
        known = np.zeros(rows.n_rows) if offset is None else np.array(offset)
        of_first = {"X": prior.margins(rows.X), "y": y, **beside, "offset": offset}
        for made in (of_first["X"], known):  # as the rows that they come from
            parts.remember(made, rows.part, rows.unit)
        rows = read_data(second, X, y, **beside, offset=known)
    plans = [
        prepare_fit(one, data)
        for one, data in ((first, read_data(first, **of_first)), (second, rows))
    ]
    total = _total(model, prior, [plan.statement for plan in plans])
    own = composed(model._who, [Cost.of(plan.statement) for plan in plans], model.delta)
    # 2. One charge for both fits.
    arrays = X, y, sample_weight, offset
    charge_fit(model, own.statement(), None if is_apart else rows, rows=(rows.part, arrays))
    stated = with_earlier_fits(model, (X, y), total)
    with parts.charged_as_a_whole(rows.unit):
        first.fit(**of_first)
        moved, limit = prior.times(first), _limit(model)
        if is_apart:
            second.fit(MappedPartitions(rows.X, _WithOffset(_Margins(moved, second), limit)))
        else:
            second.fit(X, y, **beside, offset=_sum(moved.margins(rows.X), known, limit))
    _leave_out_noise(first, second)
    _keep(model, moved, first, second, stated)


def _leave_out_noise(first: Any, second: Any) -> None:
    """Set a difference to 0 whose range is far wider than the public one of the targets.

    Noise chose that range, and is as large as it. In one of 40 fits at epsilon .1 R2 was -44
    instead of .58. Both ranges are public or released.
    """
    declared = declared_targets(first.scaling)
    if declared is None or second._loss(1).link != "identity":
        return
    (low, high), (least, most) = first.prediction_range_, second.prediction_range_
    if (most - least > WIDEST * (high - low)).any():
        second.coef_ = np.zeros_like(second.coef_)
        second.intercept_ = np.zeros_like(second.intercept_)[()]


def plan_with_prior(
    model: Any,
    n_samples: int | None,
    n_features: int,
    n_outputs: int,
    is_sparse: bool,
    n_groups: int | None,
    weighted: bool,
) -> PrivacyStatement:
    """Return the statement of a fit from a prior, before the fit."""
    with refusing(model._who):
        prior = Prior.of(model)
        prior.check(model, n_features)
        first, second = fits_of(model)
        take_public_ranges(model, first, prior, n_samples or n_groups or 1)
        nothing = np.zeros((1, 1))
        adds_weights = second._loss(n_outputs).with_offsets(nothing, nothing, None)[1] is not None
    of_second = n_features, n_outputs, is_sparse, n_groups, weighted or adds_weights
    statements = [
        first._plan(n_samples, prior.coef.shape[1], n_outputs, False, n_groups, weighted),
        second._plan(n_samples, *of_second),
    ]
    with refusing(model._who):
        return _total(model, prior, statements)


def _total(model: Any, prior: Prior, statements: list[PrivacyStatement]) -> PrivacyStatement:
    costs = [*prior.costs, *map(Cost.of, statements)]
    cost = composed(model._who, costs, model.delta)
    spent = composed(model._who, map(Cost.of, statements), model.delta).statement().epsilon
    if spent > model.epsilon * (1 + 1e-6):
        raise ValueError(
            f"{model._who}: with this solver, the two fits of a prior cost epsilon={spent:.4g} "
            "together. Leave solver and sampling to 'auto'. Nothing was released."
        )
    about = PRIVATE if prior.costs else PUBLIC
    return replace(cost, assumptions=(about, *cost.assumptions)).statement()


def _limit(model: Any) -> float:
    """Return the largest size of an offset that a fit does not refuse."""
    return LARGEST_OFFSET if model._loss(1).link == "log" else LARGEST_MARGIN


def _sum(margins: AnyArray, known: Any, limit: float) -> AnyArray:
    """Return the offsets of the second fit, within the limit beyond which it would refuse them.

    A row must not decide whether that fit runs, as both fits have been charged.
    """
    if known is not None:
        margins = margins + np.asarray(known, dtype=float).reshape(len(margins), -1)
    return np.clip(margins, -limit, limit)


@dataclass(frozen=True, eq=False)
class _ZeroOffset:
    """Mapping of a partition: rows without an offset get one of 0, as a plan needs them."""

    def __call__(self, rows: PartitionRows) -> PartitionRows:
        if rows.offset is not None:
            return rows
        return replace(rows, offset=np.zeros(_num_samples(rows.X)))


@dataclass(frozen=True, eq=False)
class _Margins:
    """The function from rows of a partition to the prior's margins."""

    prior: Prior
    model: Any

    def __call__(self, X: Any) -> AnyArray:
        return self.prior.margins(clone(self.model)._read("X", X))


@dataclass(frozen=True, eq=False)
class _WithOffset:
    """Mapping of a partition: the predictions of the first fit are added to its offsets."""

    margins: _Margins
    limit: float

    def __call__(self, rows: PartitionRows) -> PartitionRows:
        return replace(rows, offset=_sum(self.margins(rows.X), rows.offset, self.limit))


def _keep(model: Any, moved: Prior, first: Any, second: Any, stated: PrivacyStatement) -> None:
    """Store both fits, and the coefficients of their sum."""
    for name in [one for one in vars(model) if one.endswith("_")]:
        delattr(model, name)
    for name, value in vars(second).items():
        if name.endswith("_") and not name.startswith("_"):
            setattr(model, name, value)
    model.coef_ = second.coef_ + moved.coef.T.reshape(np.shape(second.coef_))
    model.intercept_ = second.intercept_ + moved.intercept.reshape(np.shape(second.intercept_))[()]
    if hasattr(first, "prediction_range_"):
        model.prediction_range_ = first.prediction_range_
        if declared_targets(first.scaling) != declared_targets(model.scaling):
            low, high = first.prediction_range_
            wide = WIDTHS * (high - low)
            model.prediction_range_ = low - wide, high + wide
    model.prior_fit_ = first
    model._of_prior = moved, second
    model.offset_fitted_ = first.offset_fitted_  # the second fit always has one
    model.privacy_ = stated


def margins_with_prior(model: Any, X: Table) -> AnyArray:
    """Return the margins of rows by both fits, without offsets."""
    moved, second = model._of_prior
    margins = moved.margins(model._read("X", X, reset=False))
    of_second = second._linear_predictor(X)
    return np.asarray(of_second + margins.reshape(np.shape(of_second)))
