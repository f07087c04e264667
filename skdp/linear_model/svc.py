"""Differentially private linear support vector classification."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.svm import LinearSVC

from skdp._numbers import AnyArray
from skdp.fitting import parameters
from skdp.linear_model.classification import DPLinearClassifier
from skdp.linear_model.documentation import documented
from skdp.objective import Loss, Penalty, SmoothedHinge, net


@documented
@parameters.declared
class DPLinearSVC(DPLinearClassifier):
    """Differentially private linear support vector classification.

    Minimises ``|w|^2 / 2`` plus C times the sum of a smoothed hinge loss, as
    `sklearn.svm.LinearSVC` does with ``loss="hinge"``, but for the intercept, which is not
    penalised; ``fit`` is (epsilon, delta)-differentially private for each row. With more than two
    classes each has a model against the rest; all of them are one release at each step. A record's
    residuals are longer together than those of `DPLogisticRegression`, which add up to 0 and hence
    cost less accuracy: prefer it at small budgets.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, in scikit-learn's scale; positive, inf for no penalty.
    classes : array of shape (n_classes,) or None, default=None
        Public set of labels. None takes it from y, which a `PrivacyLeakWarning` says and the
        statement lists among the assumptions: a label that one record alone has would give it away.
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
    {references}
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

    C: float = 1.0
    classes: ArrayLike | None = None
    class_weight: Mapping[Any, float] | None = None

    def _targets_of_codes(self, codes: AnyArray, n_outputs: int, dtype: np.dtype[Any]) -> AnyArray:
        if n_outputs == 1:
            return super()._targets_of_codes(codes, n_outputs, dtype)
        return np.asarray(codes[:, None] == np.arange(n_outputs), dtype=dtype)

    def _plain_model(self) -> Any:
        plain = LinearSVC(C=self.C, loss="hinge", fit_intercept=self.fit_intercept)
        plain.classes_, plain.n_iter_ = self.classes_, self.n_iter_
        return plain

    def _loss(self, n_outputs: int) -> Loss:
        return SmoothedHinge(n_outputs)

    def _penalty(self, n_rows: int) -> Penalty:
        # scikit-learn's C times the sum of losses, divided by C n.
        return net(1 / (self.C * n_rows))
