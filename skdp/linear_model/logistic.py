"""Differentially private logistic regression, binary and multinomial."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, log_softmax
from sklearn import linear_model

from skdp import objective
from skdp._numbers import Array
from skdp.fitting import parameters
from skdp.fitting.dask_collections import on_partitions
from skdp.linear_model import inference as intervals
from skdp.linear_model.classification import DPLinearClassifier
from skdp.linear_model.documentation import documented


@documented
@parameters.declared
class DPLogisticRegression(DPLinearClassifier):
    """Differentially private logistic regression.

    Minimises the mean log loss plus a penalty, as `sklearn.linear_model.LogisticRegression` does;
    ``fit`` is (epsilon, delta)-differentially private for each row. More than two classes are
    one multinomial model with one release a step: the budget is not split over classes.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, in scikit-learn's scale; positive, inf for no penalty.
    classes : array of shape (n_classes,) or None, default=None
        Public set of labels. None takes it from y, which a `PrivacyLeakWarning` says and the
        statement lists among the assumptions: a label that one record alone has would give it away.
        Estimators that fit on labels of their own making, such as
        `sklearn.multiclass.OneVsRestClassifier`, need those: declare [0, 1] there. With [0, 1, 2]
        there, each of its fits would be a model of three classes, which no fit can notice without
        reading the labels: its ``predict`` then fails, as arrays do not match.
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

    C: float = 1.0
    classes: ArrayLike | None = None
    class_weight: Mapping[Any, float] | None = None
    l1_ratio: float = 0.0
    inference: parameters.InferenceChoice = None

    conf_int = intervals.conf_int
    summary = intervals.summary
    wald_test = intervals.wald_test
    _calibrates = True
    marginal_effects = intervals.marginal_effects

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

    def _plain_model(self) -> Any:
        plain = linear_model.LogisticRegression(C=self.C, fit_intercept=self.fit_intercept)
        plain.classes_, plain.n_iter_ = self.classes_, np.array([self.n_iter_], dtype=np.int32)
        return plain

    def _loss(self, n_outputs: int) -> objective.Loss:
        return objective.Logistic() if n_outputs == 1 else objective.Multinomial(n_outputs)

    def _penalty(self, n_rows: int) -> objective.Penalty:
        # scikit-learn's C times the sum of losses, divided by C n.
        return objective.net(1 / (self.C * n_rows), self.l1_ratio)
