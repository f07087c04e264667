"""Standardise columns by privately estimated ranges, centres and scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdp._fitting.assumptions import noise_assumptions, row_assumptions
from skdp._fitting.estimator import Fit, PrivateEstimator
from skdp._fitting.parameters import declared, planned_records
from skdp._fitting.partitions import transforms_partitions
from skdp._fitting.privacy import Privacy
from skdp._fitting.rows import read_data
from skdp._fitting.tables import is_dask
from skdp._numbers import AnyArray, Table, require
from skdp._oracle import Columns, Public, Scaling, Solution
from skdp._stages.column_bounds import (
    PublicRange,
    PublicSample,
    check_scaling,
    declared_bounds,
    declared_columns,
    declared_targets,
)
from skdp._stages.scaling.shares import SHARE_OF_COUNT, Histograms, signal_of
from skdp._stages.scaling.stage import ScalingStage, note_on_bounds
from skdp._stages.sequence import Prepared
from skdp.accounting import PrivacyStatement


@transforms_partitions
@declared
class DPStandardScaler(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Differentially private standardisation of columns.

    ``fit`` finds the range, centre and size of every column by noisy histograms and is (epsilon,
    delta)-differentially private for each row. ``transform`` clips values to the range, subtracts
    the centre and divides by the scale, as `sklearn.preprocessing.StandardScaler` does with means
    and deviations. The estimators of skdp do this inside their own ``fit``, within their budget.
    This class is for other models.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one ``fit``, positive. inf adds no noise, for debugging on public data.
    delta : float, default=1e-6
        Probability, in (0, 1), with which the epsilon guarantee may fail.
    scaling : "private", PublicRange or PublicSample, default="private"
        "private" estimates ranges, centres and scales by noisy histograms. `PublicRange` and
        `PublicSample` declare them, as if values were evenly spread in the ranges, or by rows that
        are not private: no budget is spent.
    privacy : Privacy or None, default=None
        Neighbouring relation, shared budget and source of noise. None means the defaults of
        `skdp.Privacy`.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        Centres of the bulk of the values, estimated privately, 0 for sparse input. In a skewed
        column a centre is not the mean.
    scale_ : array of shape (n_features,)
        Scales, estimated privately: about the standard deviation of the values within the range.
    low_, high_ : arrays of shape (n_features,)
        Ranges. Values outside are clipped.
    privacy_ : PrivacyStatement
        Releases, cost and assumptions.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X had any.

    Notes
    -----
    A heavy tail beyond the range is clipped. Sparse input stays sparse: it is clipped and divided,
    not centred. Three to six histograms of all columns are released: of sign and magnitude, of
    equal bins between the ends that follow, and of equal bins in smaller ranges where there are
    any. A record adds one to one bin of each column, so the noise on counts grows with the root of
    the number of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skdp.preprocessing import DPStandardScaler
    >>> X, y = load_digits(return_X_y=True)
    >>> scaler = DPStandardScaler(epsilon=1.0).fit(X)
    >>> scaler.transform(X).shape
    (1797, 64)
    >>> scaler.privacy_.epsilon <= 1.0
    True
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    scaling: Literal["private"] | PublicRange | PublicSample = "private"
    privacy: Privacy | None = None

    def fit(self, X: Table, y: Table = None, *, groups: Table = None) -> Self:
        """Find the ranges, centres and sizes, spending the budget.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or Partitions
            Rows in partitions, such as `Chunks`, and collections of dask are counted where
            they are.
        y : ignored, default=None
        groups : array of shape (n_samples,) or None, default=None
            Labels of groups, such as persons. None may be missing. The guarantee is for a group
            then, with all of its rows. Each group counts once in the histograms. Partitions bring
            their own. Of weights that partitions have, only those that are 0 matter: their rows are
            not counted, and the number of the other rows is one more release.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data is refused. Nothing is released then.
        """
        # A partition has an X and a y. Here y is not read.
        y = X if is_dask(X) else None
        return self._fit(read_data(self, X, y, None, groups))

    def _read_rows(
        self, X: Table, y: Table, groups: object = None, **checks: object
    ) -> tuple[Table, AnyArray]:
        X = self._read("X", X, reset=True, **checks)
        return X, np.zeros((X.shape[0], 1), dtype=X.dtype)  # records have targets, if only zeros

    def _keep(self, solution: Solution, fit: Fit) -> None:
        assert solution.scaling is not None
        assert solution.scaling.columns is not None
        columns = solution.scaling.columns
        self.low_, self.high_ = columns.low.copy(), columns.high.copy()
        self.mean_, self.scale_ = columns.centre.copy(), columns.scale.copy()
        self.privacy_ = fit.statement
        fit.data.keep_columns(self)

    def plan(
        self,
        n_samples: int | None,
        n_features: int,
        *,
        sparse: bool = False,
        n_groups: int | None = None,
    ) -> PrivacyStatement:
        """Return the releases and cost of ``fit``, without any rows.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of X. With ``n_groups`` the number of rows has no effect and may be None.
        sparse : bool, default=False
            Whether X would be sparse.
        n_groups : int or None, default=None
            Number of groups, if ``fit`` would get ``groups``.

        Returns
        -------
        PrivacyStatement
        """
        self._check_parameters()
        n_records = planned_records("plan", n_samples, n_groups, n_features=n_features)
        prepared = self._prepare(n_records, n_features, n_groups is not None, sparse=sparse)
        public, assumptions = prepared.public, self._assumptions(prepared)
        return prepared.plan.cost(public, assumptions, self._terms.noise_source).statement()

    def transform(self, X: Table) -> Table:
        """Clip to the ranges, centre and divide.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Or Partitions.

        Returns
        -------
        array or CSR matrix of the same shape and type
            Of partitions partitions, which are standardised where they are in every pass.
        """
        check_is_fitted(self, "scale_")
        is_matrix = isinstance(X, sparse.spmatrix)
        columns = Columns(self.low_, self.high_, self.mean_, self.scale_)
        scaled = columns.apply(self._read_new(X))
        # Of the kind that came in: "*" means another product for a matrix.
        return sparse.csr_matrix(scaled) if is_matrix else scaled

    def _check_parameters(self) -> None:
        self._check_shared_parameters()
        is_private = isinstance(self.scaling, str) and self.scaling == "private"
        if is_private:
            self._require_delta(", or declare scaling=PublicRange(low, high)")
        allowed = "be 'private', PublicRange(low, high) or PublicSample(rows), without a target"
        is_public = isinstance(self.scaling, PublicRange | PublicSample)
        is_known = is_private or (is_public and declared_targets(self.scaling) is None)
        require("scaling", self.scaling, allowed, is_known)
        check_scaling(self.scaling)

    def _prepare(
        self,
        n_records: int,
        n_features: int,
        grouped: bool = False,
        names: Sequence[str] | None = None,
        **facts: Any,
    ) -> Prepared:
        bounds = declared_bounds(self.scaling, n_features, names)
        if bounds is not None:
            facts["delta"] = 0.0

        def stages(public: Public) -> tuple[ScalingStage]:
            centred = not public.sparse
            columns = declared_columns(bounds, public.n_features, centred, public.sparse)
            if columns is not None:
                known, note = Scaling(columns), note_on_bounds(bounds)
                return (ScalingStage(known=known, standardises=False, note=note),)
            count = SHARE_OF_COUNT * public.weighted
            histograms = Histograms(public.n_features, 1 - count, signal=signal_of(public))
            stage = ScalingStage(histograms, centred=centred, standardises=False)
            return (replace(stage, share_of_count=count),)

        return self._prepare_stages(stages, n_records, n_features, grouped, **facts)

    def _assumptions(self, prepared: Prepared) -> tuple[str, ...]:
        texts = row_assumptions(prepared.public)
        texts += [text for stage in prepared.stages for text in stage.assumptions()]
        return (*texts, *noise_assumptions(self._terms.noise_source, self.epsilon))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
