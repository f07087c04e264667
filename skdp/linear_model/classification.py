"""Private linear classifiers: logistic regression, support vectors, and their common part."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn import linear_model
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.svm import LinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skdp._fitting import parameters
from skdp._fitting.parameters import documented
from skdp._fitting.refusals import InputError
from skdp._fitting.targets import Targets, encode, largest_weight, sorted_labels, weights_by_label
from skdp._numbers import AnyArray, AnyType, Array, Table, is_integer, is_real, require, shown
from skdp.accounting import PrivacyStatement
from skdp.linear_model import inference as intervals
from skdp.linear_model.base import DPLinearModel
from skdp.objective import (
    ElasticNet,
    L2Ball,
    Logistic,
    Loss,
    Multinomial,
    SmoothedHinge,
    Unconstrained,
)

ClassWeight: TypeAlias = Mapping[Hashable, float] | None


@parameters.declared
class DPLinearClassifier(ClassifierMixin, DPLinearModel):
    """Base of the classifiers, whose labels are declared by ``classes`` or read from y."""

    C: float = 1.0
    classes: ArrayLike | None = None
    class_weight: ClassWeight = None
    l1_ratio: float = field(default=0.0, init=False)

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

        Returns
        -------
        PrivacyStatement
        """
        declared = None if self.classes is None else len(sorted_labels(self.classes))
        if n_classes is None:
            n_classes = 2 if declared is None else declared
        if not (is_integer(n_classes) and n_classes >= 2):
            raise ValueError(f"plan: n_classes must be at least 2, got {shown(n_classes)}.")
        if declared is not None and n_classes != declared:
            raise ValueError(f"plan: n_classes={n_classes}, but {declared} classes are declared.")
        return self._plan(n_samples, n_features, _n_outputs(n_classes), sparse, n_groups, weighted)

    def decision_function(
        self, X: Table, return_std: bool = False, *, offset: ArrayLike | None = None
    ) -> Table:
        """Return scores, positive for the second label where there are two.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the log odds by the *debiased* coefficients instead, with their
            standard errors. Needs a fit with ``inference="coefficients"``.
        offset : array of shape (n_samples,) or (n_samples, n_classes), or None, default=None
            Added to the margins, as in ``fit``.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            With ``return_std``, a pair of such arrays: log odds (of several classes, against their
            geometric mean) and standard errors, which are inf unless all coefficients are
            determined. `scipy.special.expit` of the ends of the intervals of two classes gives
            intervals of probabilities.
        """
        if return_std:
            if offset is not None:
                raise ValueError(f"{self._who}: add the offset to what return_std=True returns.")
            return intervals.mean_response(self, X)
        scores = self._linear_predictor(X)
        scores = scores + self._offset_of_rows(offset, len(scores))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Table, *, offset: ArrayLike | None = None) -> AnyArray:
        """Predict labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_classes), or None, default=None
            Added to the margins, as in ``fit``.

        Returns
        -------
        array of shape (n_samples,)
        """
        scores = self.decision_function(X, offset=offset)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def score(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return the share of labels that are predicted right, computed without noise.

        It is not private: an `ExactScoreWarning` says so. So are the scores of scikit-learn's
        searches and of `cross_val_score`. `skdp.metrics.evaluate` scores with noise.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None, default=None
        offset : array of shape (n_samples,) or None, default=None
            Added to each row's margin, as in ``fit``.

        Returns
        -------
        float
        """
        return self._exact_score(accuracy_score, X, y, sample_weight, offset)

    # ------------------------------------------------------------------ what the base asks

    def _read_targets(self, y: Table, dtype: AnyType) -> Targets:
        labels = column_or_1d(y, warn=True)
        if self.classes is None:
            check_classification_targets(labels)
            classes = np.unique(labels)
            if len(classes) < 2:
                raise InputError("at least 2 classes are needed. The data holds one class only.")
            codes = np.searchsorted(classes, labels)
        else:
            classes, codes = encode(labels, self.classes)
        weights: tuple[float, ...] = ()
        if self.class_weight is not None:
            weights = tuple(weights_by_label(self.class_weight, classes).tolist())
        n_outputs = _n_outputs(len(classes))
        values = self._targets_of_codes(codes, n_outputs, dtype)
        return Targets(values, n_outputs, weights, classes)

    def _targets_of_codes(self, codes: AnyArray, n_outputs: int, dtype: AnyType) -> AnyArray:
        """Return targets for the loss: codes, or for two classes a column of 0 and 1."""
        return codes.astype(dtype)[:, None] if n_outputs == 1 else codes

    def _unit_of_loss(self, n_outputs: int) -> float:
        """Return the largest weight of a label, by which those of records are divided."""
        return largest_weight(self.class_weight or {}, 2 if n_outputs == 1 else n_outputs)

    def _check_own_parameters(self) -> None:
        require("C", self.C, "be a positive number, or inf", is_real(self.C) and self.C > 0)
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} would have to count the private labels. Pass "
                "a dict of weights from public knowledge instead."
            )
        fine = self.class_weight is None or isinstance(self.class_weight, Mapping)
        require("class_weight", self.class_weight, "be None or a dict", fine)
        fine = self.classes is None or len(sorted_labels(self.classes)) >= 2
        require("classes", self.classes, "name at least 2 labels", fine)

    def _penalty(self, n_rows: int) -> ElasticNet:
        # scikit-learn's C times the sum of losses, divided by C n.
        return ElasticNet(1 / (self.C * n_rows), self.l1_ratio)

    def _declared_targets(self, n_outputs: int) -> Targets:
        if self.classes is None:
            raise ValueError("blocks do not show all labels at once. Declare them by classes=...")
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


def _n_outputs(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes


@documented
@parameters.declared
class DPLogisticRegression(intervals.Inference, DPLinearClassifier):
    """Differentially private logistic regression.

    Minimises the mean log loss plus a penalty, as `sklearn.linear_model.LogisticRegression` does.
    ``fit`` is (epsilon, delta)-differentially private for each row. More than two classes are one
    multinomial model with one release a step: the budget is not split over classes.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, in scikit-learn's scale. Positive, inf for no penalty.
    classes : array of shape (n_classes,) or None, default=None
        Public set of labels. None reads it from y, with a `PrivacyLeakWarning` and an assumption in
        the statement: a label of only one record would identify that record. Estimators that fit on
        labels of their own making, such as `sklearn.multiclass.OneVsRestClassifier`, need those:
        declare [0, 1] there. With [0, 1, 2] there, each of its fits would be a model of three
        classes, which no fit can notice without reading the labels: its ``predict`` then fails, as
        arrays do not match.
    class_weight : dict or None, default=None
        Weights by label, 1 where a label is missing. As in scikit-learn they multiply the loss
        next to the penalty. Only their ratios affect how gradients are clipped, so they may be of
        any size. "balanced" is refused: it would count the private labels.
    {parameters}

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted.
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Coefficients. Those of several classes add up to 0, unless an L1 norm is penalised or there
        is a constraint other than an L2 ball.
    intercept_ : array of shape (1,) or (n_classes,)
        Intercepts, 0 if ``fit_intercept`` is False. They add up to 0 where coefficients do.
    {fitted}
    {fitted_inference}

    References
    ----------
    {cited}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1], epsilon=1.0).fit(X, y)
    >>> model.score(X, y) > 0.85  # public rows: an exact score is fine
    True
    """

    l1_ratio: float = 0.0

    _calibrates = True
    marginal_effects = intervals.marginal_effects

    def predict_proba(self, X: Table, *, offset: ArrayLike | None = None) -> Array:
        """Predict the probability of every label, in the order of ``classes_``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_classes), or None, default=None
            Added to the margins, as in ``fit``.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X, offset=offset)
        if scores.ndim == 1:
            mean = self._loss(1).mean
            return np.column_stack([mean(-scores), mean(scores)])
        return self._loss(scores.shape[1]).mean(scores)

    def predict_log_proba(self, X: Table, *, offset: ArrayLike | None = None) -> Array:
        """Predict the logarithm of the probability of every label.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        offset : array of shape (n_samples,) or (n_samples, n_classes), or None, default=None
            Added to the margins, as in ``fit``.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X, offset=offset)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))

    def _show(self, coef: Array, intercept: Array, targets: Targets) -> None:
        # Probabilities of several classes do not depend on a shift that these share. Noise adds
        # one. Without it L2 norms are smallest, but not L1 norms, and it may lie outside of boxes.
        constraint = parameters.constraint_set(self.constraint)
        is_of_l2 = self.l1_ratio == 0 and isinstance(constraint, Unconstrained | L2Ball)
        if coef.shape[1] > 1 and is_of_l2:
            coef = coef - coef.mean(axis=1, keepdims=True)
            intercept = intercept - intercept.mean()
        super()._show(coef, intercept, targets)

    def _plain_model(self) -> Any:
        plain = linear_model.LogisticRegression(C=self.C, fit_intercept=self.fit_intercept)
        plain.classes_, plain.n_iter_ = self.classes_, np.array([self.n_iter_], dtype=np.int32)
        return plain

    def _loss(self, n_outputs: int) -> Loss:
        return Logistic() if n_outputs == 1 else Multinomial(n_outputs)


@documented
@parameters.declared
class DPLinearSVC(DPLinearClassifier):
    """Differentially private linear support vector classification.

    Minimises ``|w|^2 / 2`` plus C times the sum of a smoothed hinge loss, as
    `sklearn.svm.LinearSVC` does with ``loss="hinge"``, but for the intercept, which is not
    penalised. ``fit`` is (epsilon, delta)-differentially private for each row. With more than two
    classes each has a model against the rest. All of them are one release at each step. A record's
    residuals are longer together than those of `DPLogisticRegression`, which add up to 0 and hence
    cost less accuracy: prefer it at small budgets.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, in scikit-learn's scale. Positive, inf for no penalty.
    classes : array of shape (n_classes,) or None, default=None
        Public set of labels. None reads it from y, with a `PrivacyLeakWarning` and an assumption in
        the statement: a label of only one record would identify that record.
    class_weight : dict or None, default=None
        Weights by label, 1 where a label is missing. As in scikit-learn they multiply the loss
        next to the penalty. Only their ratios affect how gradients are clipped, so they may be of
        any size. "balanced" is refused: it would count the private labels.
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

    References
    ----------
    {cited}
    K. Chaudhuri, C. Monteleoni, A. Sarwate: Differentially Private Empirical Risk Minimization.
    JMLR 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLinearSVC(classes=[0, 1]).fit(X, y)
    >>> model.score(X, y) > 0.85  # public rows: an exact score is fine
    True
    """

    def _targets_of_codes(self, codes: AnyArray, n_outputs: int, dtype: AnyType) -> AnyArray:
        if n_outputs == 1:
            return super()._targets_of_codes(codes, n_outputs, dtype)
        return np.asarray(codes[:, None] == np.arange(n_outputs), dtype=dtype)

    def _plain_model(self) -> Any:
        plain = LinearSVC(C=self.C, loss="hinge", fit_intercept=self.fit_intercept)
        plain.classes_, plain.n_iter_ = self.classes_, self.n_iter_
        return plain

    def _loss(self, n_outputs: int) -> Loss:
        return SmoothedHinge(n_outputs)
