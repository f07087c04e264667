"""Score a fitted model on private rows: one set of releases, priced and charged like a fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from threading import RLock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier

from skdp._fitting import refusals
from skdp._fitting.assumptions import declared_assumptions, noise_assumptions, unit_assumptions
from skdp._fitting.estimator import Fit, PrivateEstimator
from skdp._fitting.grouping import GroupLabels
from skdp._fitting.parts import is_of_another, was_fitted_on
from skdp._fitting.privacy import Privacy
from skdp._fitting.rows import read_data, read_plain
from skdp._fitting.tables import is_dask
from skdp._fitting.user_warnings import warn_about_scored_rows
from skdp._numbers import AnyArray, Array, MatrixLike
from skdp._oracle import Public, Solution, Stage
from skdp._oracle.sources.partitioned import Partitions
from skdp._stages.base import StageParameters
from skdp._stages.scaling.weights import WeightStage
from skdp._stages.sequence import Prepared
from skdp.metrics import requests
from skdp.metrics.requests import Subgroups, declared_subgroups, subgroup_labels
from skdp.metrics.scores import Scores
from skdp.objective import Problem, SquaredError

# A model's warnings are silenced while it predicts, for the whole process: threads that read
# partitions at once would let some through, and leave others silenced for good.
_ONE_PARTITION_AT_A_TIME = RLock()
WHO = "evaluate"


def evaluate(
    model: BaseEstimator,
    X: MatrixLike | Partitions,
    y: ArrayLike | None = None,
    metrics: str | Iterable[str] | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    groups: ArrayLike | None = None,
    by: str | int | ArrayLike | None = None,
    subgroups: Iterable[Any] | Mapping[str, Any] | None = None,
    privacy: Privacy | None = None,
    target_range: tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Scores:
    """Score a fitted model on private rows, with noise.

    The scores are (epsilon, delta)-differentially private for each of these rows. Rows that the
    model was fitted on were charged for the fit already: prices add up. Score it on other rows,
    such as the second part of `skdp.model_selection.dp_train_test_split`, to charge each row once.

    Parameters
    ----------
    model : fitted classifier or regressor
        Of skdp, of scikit-learn, a pipeline or a search. Its prediction for a row must not depend
        on other rows.
    X : array, sparse matrix or data frame of shape (n_samples, n_features), or Partitions
        Rows in partitions, such as `Chunks`, and collections of dask stay where they are: the
        model, which must be possible to pickle, predicts there, once for a check and once for each
        release.
    y : array of shape (n_samples,) or None, default=None
        Left out for partitions, which have the targets.
    metrics : str or iterable of str, default=None
        Names of scikit-learn's scorers or functions. For classifiers "accuracy" (the default) and
        "neg_log_loss" (or "log_loss"). For two classes also "balanced_accuracy", "precision",
        "recall", "f1", "roc_auc" and, for rare events, "average_precision". The recall of each of
        several classes is the accuracy ``by=y``. For regressors "r2",
        "d2_tweedie" of the model's ``power`` (R2 if it has none), "neg_mean_squared_error",
        "neg_root_mean_squared_error", "neg_mean_absolute_error", "neg_mean_poisson_deviance",
        "neg_mean_gamma_deviance" and "neg_mean_pinball_loss" (or without ``neg_``). The default is
        "r2" or "d2_tweedie", and of a model with a ``quantile`` "neg_mean_pinball_loss". A model of
        several quantiles has one score, the mean pinball loss over its quantiles. Log losses above
        6 count as 6. Deviances are clipped to the largest deviance of a target from about the
        centre of the targets, which the statement names. The budget is shared by all of them, so
        request only those that you need.
    epsilon : float, default=1.0
        Privacy budget of all scores together, positive. inf adds no noise.
    delta : float, default=1e-6
        In (0, 1).
    groups : array of shape (n_samples,) or None, default=None
        Labels of groups, such as persons. None may be missing. The guarantee is for a group then,
        with all of its rows. A group adds to a score the mean of its rows' contributions, so each
        group counts once: accuracy is the mean over persons of the share of their rows that are
        right. Partitions bring their own.
    by : column of X, array of shape (n_samples,) or None, default=None
        Labels of subgroups to score one by one, such as sexes: the name of a column of a data
        frame, the number of one of an array, or the labels themselves. For partitions a
        column. Which rows lie in which subgroup, and how many, is private.
    subgroups : iterable of labels, mapping from names to labels, or None, default=None
        Labels to look for, chosen without looking at the rows, needed with ``by``. A mapping gives
        each subgroup a name, and one label or a list of several. None stands for all labels that
        are not declared, as in ``{"north": [1, 2], "south": 3, "other": None}``. Without it rows
        with another label, or with none, are in no subgroup.
    privacy : Privacy or None, default=None
        Neighbouring relation, shared budget and source of noise. None means the defaults of
        `skdp.Privacy`.
    target_range : (low, high) or None, default=None
        Of regressors: range that targets and predictions are clipped to. Scores and their intervals
        are of clipped targets. Residuals are clipped to the largest distance of a target from the
        centre that a private fit estimated, or not at all if there is no such centre. It must be
        chosen without looking at the targets. None is the model's own range: the one that its
        ``scaling`` declares, or that a private fit estimated, at most four scales of the target on
        either side. A fit that widened this range for a long tail predicts beyond it, but a wider
        range here would add as much more noise to scores.
    offset : array of shape (n_samples,) or None, default=None
        Of the margins, which the model's predictions get. A regressor needs ``target_range``.
    sample_weight : array of shape (n_samples,) or None, default=None
        Weights of rows, not negative, in any unit: they are divided by a scale near the largest of
        them, as in a fit, and larger ones are clipped to it. A declared bound is
        ``Privacy(max_weight=...)``. Their sum is private.

    Returns
    -------
    Scores
        By the names in ``metrics``, ``privacy_`` lists the releases. With ``by`` a mapping from
        subgroups to such scores.

    Raises
    ------
    ValueError
        If a parameter, the model or the rows are refused. Nothing is released then.

    Notes
    -----
    Accuracy and mean losses are means with Gaussian noise. All that follows from predicted classes
    comes from one table of counts, and all that follows from the order of scores from another. The
    latter has bins with about as many rows each, estimated from a first, finer table with a fifth
    of the budget. Ties within a bin count one half. For "average_precision" half of the bins divide
    the predicted positives instead.

    With ``groups``, standard errors of sampling (``sampling_std``, and intervals of the
    "population") are for another draw of as many groups. They assume that the rows of a group are
    equal, and are too large if they differ. The model predicts in calls that hold a row of each
    group, so that its predictions for one group do not depend on the rows of others.

    With ``sample_weight``, a score is a ratio of weighted sums, both of them noisy, and its
    interval allows for that. Except for R2 and D2, standard
    errors of sampling assume that weights are independent of losses (Kish 1965). A group counts as
    the mean of the weights of its rows.

    With ``by``, every release is one table of all subgroups, to which a row adds one unit, in the
    part of its own. That costs as much as a table without subgroups, whatever their number: a row
    is in one subgroup under "zero_out", may move from one to another under "replace_one", and a
    group adds to each subgroup the share of its rows. Each score is a ratio, because the size of a
    subgroup is also private, and its interval accounts for that. R2 and D2 are refused: they divide
    by another variance in each.

    References
    ----------
    K. Boyd, E. Lantz, D. Page: Differential privacy for classifier evaluation. AISec 2015.
    E. Fieller: Some problems in interval estimation. J. R. Stat. Soc. B 16, 1954.
    L. Kish: Survey sampling. Wiley 1965.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> from skdp.metrics import evaluate
    >>> from skdp.model_selection import dp_train_test_split
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = dp_train_test_split(X, y)
    >>> model = DPLogisticRegression(classes=[0, 1]).fit(X_train, y_train)
    >>> scores = evaluate(model, X_test, y_test, ["accuracy"], epsilon=1.0, delta=1e-6)
    >>> low, high = scores["accuracy"].interval(0.95)
    >>> low <= scores["accuracy"].value <= high
    True
    """
    column = by if isinstance(by, str | int) else None
    with refusals.refusing(WHO):
        declared = declared_subgroups(column, by is not None, subgroups)
    scorer = PrivateScorer(
        model,
        list(metrics) if isinstance(metrics, Iterator) else metrics,
        subgroups=declared,
        epsilon=epsilon,
        delta=delta,
        privacy=privacy,
        target_range=target_range,
    )
    by = by if column is None else None
    return scorer.fit(X, y, sample_weight, groups=groups, by=by, offset=offset).scores_


@dataclass(eq=False, repr=False)
class PrivateScorer(PrivateEstimator):
    """Private fit whose result is scores, run by `evaluate`, which explains the parameters.

    Parameters
    ----------
    model, metrics, epsilon, delta, privacy, target_range
        Of `evaluate`.
    subgroups : Subgroups or None, default=None

    Attributes
    ----------
    scores_ : Scores
    privacy_ : PrivacyStatement
    """

    model: BaseEstimator
    metrics: str | Iterable[str] | None = None
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    privacy: Privacy | None = None
    target_range: tuple[float, float] | None = None
    subgroups: Subgroups | None = None

    _predicts_rows = True

    @property
    def _who(self) -> str:
        return WHO

    def fit(
        self,
        X: MatrixLike | Partitions,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        by: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Score the model. Rows of weight 0 are null records."""
        with refusals.refusing(self._who):
            labels = None if by is None else subgroup_labels(by)
            if labels is not None and (isinstance(X, Partitions) or is_dask(X)):
                raise ValueError(
                    "rows in partitions have subgroups by a column of X. Pass its name or number "
                    "as by."
                )
        if was_fitted_on(self.model, (X, y)):
            warn_about_scored_rows(self._who)
        beside = {"y": y, "sample_weight": sample_weight, "groups": groups, "offset": offset}
        by_label = {} if labels is None else {"by": labels}
        data = read_data(self, X, **beside, **by_label)
        if is_of_another(by, data.part, data.unit):
            raise ValueError(
                f"{self._who}: by has labels of other rows of a split than X. Pass those of the "
                "rows in X. Nothing was released."
            )
        return self._fit(data)

    # ------------------------------------------------------------------ before any row is read

    def _check_parameters(self) -> None:
        """Refuse what can be refused without rows."""
        self._check_shared_parameters()
        self._require_delta()
        self._request()

    def _request(self) -> requests.ScoreRequest:
        return requests.request_for(self.model, self.metrics, self.subgroups, self.target_range)

    def _read_rows(
        self,
        X: MatrixLike,
        y: ArrayLike,
        groups: GroupLabels | None = None,
        by: AnyArray | None = None,
        offset: AnyArray | None = None,
        **checks: object,
    ) -> tuple[Array, Array]:
        """Return the statistics of rows, and targets, which no release reads."""
        data = replace(read_plain(self._who, X, y, groups, offset=offset), by=by)
        if by is not None and len(by) != data.n_rows:
            raise ValueError(
                "by must have a label for each row. Its length differs from that of X."
            )
        with _ONE_PARTITION_AT_A_TIME:
            statistics = self._request().statistics_of(data)
        return statistics, np.zeros((len(statistics), 1))

    def _prepare(
        self, n_records: int, n_features: int, names: object = None, **facts: Any
    ) -> Prepared:
        has_range = self.target_range is not None or is_classifier(self.model)
        if facts["has_offset"] and not has_range:
            raise ValueError(
                "with an offset, declare target_range: the model knows the range of targets "
                "without their offsets."
            )

        def stages(public: Public) -> tuple[Stage, ...]:
            own = self._request().stage(public.weighted)
            if not public.weighted:
                return (own,)
            problem = Problem(SquaredError(), fit_intercept=False)
            parameters = StageParameters(self._who, has_weights=True)
            return WeightStage.of(public, problem, parameters), own

        max_weight = self._terms.max_weight
        return self._prepare_stages(stages, n_records, n_features, max_weight=max_weight, **facts)

    def _assumptions(self, prepared: Prepared) -> tuple[str, ...]:
        public = prepared.public
        return (
            *unit_assumptions(public.n_rows, public.unit, "a score"),
            "The model was trained on other data or is itself differentially private. Its "
            "prediction for a row depends only on that row and never raises an error.",
            *(text for stage in prepared.stages for text in stage.assumptions()),
            *declared_assumptions(public),
            *noise_assumptions(self._terms.noise_source, self.epsilon),
        )

    def _keep(self, solution: Solution, fit: Fit) -> None:
        self.privacy_ = fit.statement
        weights = None if solution.scaling is None else solution.scaling.weights
        by_name = self._request().scores(solution.results, weights)
        scores = [Scores(one.items(), fit.statement) for one in by_name]
        self.scores_ = scores[0]
        if self.subgroups is not None:
            self.scores_ = Scores(zip(self.subgroups.names, scores, strict=True), fit.statement)
