"""Differentially private logistic regression, binary and multinomial."""

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn import linear_model
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skdp import objective
from skdp._numbers import AnyArray, Array, MatrixLike, is_integer, is_real, require, shown
from skdp.accounting import PrivacyStatement
from skdp.fitting import parameters
from skdp.fitting.fit_warnings import warn_about_score
from skdp.fitting.labels import encode, sorted_labels, weights_by_label
from skdp.fitting.partitions import on_partitions
from skdp.fitting.privacy import Privacy
from skdp.fitting.refusals import public_refusal
from skdp.fitting.rows import rows_of
from skdp.fitting.units import Targets
from skdp.linear_model import inference
from skdp.linear_model.base import DPLinearModel
from skdp.linear_model.documentation import documented


@documented
class DPLogisticRegression(ClassifierMixin, DPLinearModel):
    """Differentially private logistic regression.

    Minimises the mean log loss plus a penalty, as `sklearn.linear_model.LogisticRegression` does;
    ``fit`` is (epsilon, delta)-differentially private for each row. More than two classes are
    one multinomial model with one release a step: the budget is not split over classes.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, in scikit-learn's scale; positive, inf for no penalty.
    l1_ratio : float, default=0.0
        Share of the L1 penalty, in [0, 1]: 0 is L2, 1 is L1.
    classes : array of shape (n_classes,) or None, default=None
        Public set of labels. None takes it from y, which a `PrivacyWarning` says and the statement
        lists among the assumptions: a label that one record alone has would give it away.
        Estimators that fit on labels of their own making, such as
        `sklearn.multiclass.OneVsRestClassifier`, need those: declare [0, 1] there. With [0, 1, 2]
        there, each of its fits would be a model of three classes, which no fit can notice without
        reading the labels: its ``predict`` then fails, as arrays do not match.
    class_weight : dict or None, default=None
        Weights by label, 1 where a label is missing. "balanced" is refused: it would count the
        private labels.
    {parameters}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts, 0 if ``fit_intercept`` is False.
    {fitted}
    {fitted_inference}

    References
    ----------
    {references}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1], epsilon=1.0).fit(X, y)
    >>> model.score(X, y) > 0.85  # public rows: an exact score is fine
    True
    """

    conf_int = inference.conf_int
    summary = inference.summary

    def __init__(
        self,
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        classes: ArrayLike | None = None,
        class_weight: Mapping[Any, float] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        solver: parameters.SolverChoice = "auto",
        max_iter: int | parameters.Auto = "auto",
        learning_rate: parameters.StepSize = "auto",
        momentum: parameters.AnyMomentum = "auto",
        noise_schedule: parameters.RelativeNoise = "auto",
        clip_norm: parameters.ClipNorm = "auto",
        batch_size: int | float | None = None,
        scaling: parameters.Scaling = "auto",
        calibration: parameters.Calibration = "auto",
        constraint: parameters.ConstraintChoice = None,
        inference: parameters.InferenceChoice = None,
        fit_intercept: bool = True,
        privacy: Privacy | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.classes = classes
        self.class_weight = class_weight
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.noise_schedule = noise_schedule
        self.clip_norm = clip_norm
        self.batch_size = batch_size
        self.scaling = scaling
        self.calibration = calibration
        self.constraint = constraint
        self.inference = inference
        self.fit_intercept = fit_intercept
        self.privacy = privacy
        self.verbose = verbose

    @documented
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
        groups: Any = None,
    ) -> Self:
        """Fit the model, spending its budget.

        Parameters
        ----------
        {rows}
        y : array of shape (n_samples,)
            Labels.
        {of_a_fit}
        """
        rows = rows_of(type(self).__name__, X, y, sample_weight, groups)
        return self._fit(rows, coef_init, intercept_init)

    @documented
    def plan(
        self,
        n_samples: int | None,
        n_features: int,
        n_classes: int | None = None,
        *,
        sparse: bool = False,
        n_groups: int | None = None,
        weighted: bool = False,
    ) -> PrivacyStatement:
        """Return the privacy statement of a fit that has not happened, without data.

        Parameters
        ----------
        {planned_shape}
        n_classes : int or None, default=None
            Number of labels. None: that of ``classes``, else 2.
        {of_a_plan}
        """
        declared = None if self.classes is None else len(sorted_labels(self.classes))
        if n_classes is None:
            n_classes = 2 if declared is None else declared
        if not (is_integer(n_classes) and n_classes >= 2):
            raise ValueError(f"plan: n_classes must be at least 2; got {shown(n_classes)}.")
        if declared is not None and n_classes != declared:
            raise ValueError(f"plan: n_classes={n_classes}, but {declared} classes are declared.")
        return self._plan(n_samples, n_features, _n_outputs(n_classes), sparse, n_groups, weighted)

    @on_partitions
    def decision_function(self, X: Any, return_std: bool = False) -> Any:
        """Return scores, positive for the second label where there are two.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the log odds by the *debiased* coefficients instead, with their
            standard errors. Needs a fit with ``inference="coefficients"``.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            With ``return_std``, a pair of arrays of shape (n_samples,): log odds and standard
            errors, which are inf unless all coefficients are determined. `scipy.special.expit` of
            the ends of their intervals gives intervals of probabilities.
        """
        if return_std:
            return inference.mean_response(self, X)
        scores = self._linear_predictor(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @on_partitions
    def predict(self, X: Any) -> AnyArray:
        """Predict labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of labels that are predicted right, computed without noise.

        It is not private: a `PrivacyWarning` says so. `skdp.metrics.evaluate` scores with noise.
        Searches and `cross_val_score` with a named ``scoring`` do not call this method: such
        scores are no more private, and nothing warns of them.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None, default=None

        Returns
        -------
        float
        """
        warn_about_score(type(self).__name__, self.epsilon)
        return float(super().score(X, y, sample_weight))

    @on_partitions
    def predict_proba(self, X: Any) -> Array:
        """Predict the probability of every label, in the order of ``classes_``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        scores = self._linear_predictor(X)
        mean = self._loss(scores.shape[1]).mean
        return np.hstack([mean(-scores), mean(scores)]) if scores.shape[1] == 1 else mean(scores)

    @on_partitions
    def predict_log_proba(self, X: Any) -> Array:
        """Predict the logarithm of the probability of every label.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))

    # ------------------------------------------------------------------ what the base asks

    def _read_targets(self, y: Any, dtype: np.dtype[Any]) -> Targets:
        labels = column_or_1d(y, warn=True)
        if self.classes is None:
            check_classification_targets(labels)
            classes = np.unique(labels)
            if len(classes) < 2:
                raise public_refusal(
                    "DPLogisticRegression needs at least 2 classes; the data holds one class only. "
                    "Nothing was released."
                )
            codes = np.searchsorted(classes, labels)
        else:
            classes, codes = encode(labels, self.classes)
        weights = None
        if self.class_weight is not None:
            by_class = weights_by_label(self.class_weight, classes)
            weights = np.asarray(by_class[codes])
        if len(classes) == 2:
            return Targets(codes.astype(dtype)[:, None], 1, weights, classes)
        return Targets(codes, len(classes), weights, classes)

    def _check_own_parameters(self) -> None:
        require("C", self.C, "be a positive number, or inf", is_real(self.C) and self.C > 0)
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} would have to count the private labels; pass "
                "a dict of weights from public knowledge instead. Nothing was released."
            )
        fine = self.class_weight is None or isinstance(self.class_weight, Mapping)
        require("class_weight", self.class_weight, "be None or a dict", fine)
        fine = self.classes is None or len(sorted_labels(self.classes)) >= 2
        require("classes", self.classes, "name at least 2 labels", fine)

    def _declared_targets(self, n_outputs: int) -> Targets:
        if self.classes is None:
            raise ValueError(
                f"{type(self).__name__}: blocks do not show all labels at once; declare them by "
                "classes=... . Nothing was released."
            )
        return self._read_targets(sorted_labels(self.classes), np.dtype(np.float64))

    def _target_assumptions(self) -> tuple[str, ...]:
        if self.classes is None:
            return (
                "The set of labels is public: it was taken from y. Declare it by classes=... if "
                "a rare label could give somebody away.",
            )
        return ("The set of labels is public, as declared, and every label in y lies in it.",)

    def _show(self, coef: Array, intercept: Array, targets: Targets) -> None:
        assert targets.classes is not None
        self.classes_: AnyArray = targets.classes
        self.coef_ = coef.T.copy()
        self.intercept_ = intercept.copy()

    def _plain_model(self) -> Any:
        plain = linear_model.LogisticRegression(C=self.C, fit_intercept=self.fit_intercept)
        plain.classes_, plain.n_iter_ = self.classes_, np.array([self.n_iter_], dtype=np.int32)
        return plain

    def _loss(self, n_outputs: int) -> objective.Loss:
        return objective.Logistic() if n_outputs == 1 else objective.Multinomial(n_outputs)

    def _penalty(self, n_rows: int) -> objective.Penalty:
        if math.isinf(self.C):
            return objective.NoPenalty()
        # scikit-learn's C times the sum of losses, divided by C n.
        strength = 1 / (self.C * n_rows)
        if self.l1_ratio == 0:
            return objective.L2(strength)
        return (
            objective.L1(strength)
            if self.l1_ratio == 1
            else objective.ElasticNet(strength, self.l1_ratio)
        )


def _n_outputs(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes
