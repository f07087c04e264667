"""The part that private linear classifiers share: labels, scores and predictions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skdp._numbers import AnyArray, Array, MatrixLike, is_integer, is_real, require, shown
from skdp.accounting import PrivacyStatement
from skdp.fitting.dask_collections import on_partitions
from skdp.fitting.labels import encode, largest_weight, sorted_labels, weights_by_label
from skdp.fitting.refusals import NO_LABELS, public_refusal, without_cells
from skdp.fitting.units import Targets
from skdp.fitting.user_warnings import warn_about_score
from skdp.linear_model import inference
from skdp.linear_model.base import DPLinearModel
from skdp.linear_model.documentation import documented


class DPLinearClassifier(ClassifierMixin, DPLinearModel):
    """Base of the classifiers, whose labels are declared by ``classes`` or read from y."""

    C: float
    classes: ArrayLike | None
    class_weight: Mapping[Any, float] | None

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
            With ``return_std``, a pair of such arrays: log odds (of several classes, against their
            geometric mean) and standard errors, which are inf unless all coefficients are
            determined. `scipy.special.expit` of the ends of the intervals of two classes gives
            intervals of probabilities.
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

        It is not private: an `ExactScoreWarning` says so. So are the scores of scikit-learn's
        searches and of `cross_val_score`. `skdp.metrics.evaluate` scores with noise.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None, default=None

        Returns
        -------
        float
        """
        warn_about_score(self._who, self.epsilon)
        predicted = self.predict(X)
        with without_cells(self._who, "y or sample_weight", otherwise=NO_LABELS):
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    # ------------------------------------------------------------------ what the base asks

    def _read_targets(self, y: Any, dtype: np.dtype[Any]) -> Targets:
        labels = column_or_1d(y, warn=True)
        if self.classes is None:
            check_classification_targets(labels)
            classes = np.unique(labels)
            if len(classes) < 2:
                raise public_refusal(
                    f"{self._who} needs at least 2 classes; the data holds one class "
                    "only. Nothing was released."
                )
            codes = np.searchsorted(classes, labels)
        else:
            classes, codes = encode(labels, self.classes)
        weights: tuple[float, ...] = ()
        if self.class_weight is not None:
            weights = tuple(weights_by_label(self.class_weight, classes).tolist())
        n_outputs = _n_outputs(len(classes))
        values = self._targets_of_codes(codes, n_outputs, dtype)
        return Targets(values, n_outputs, weights, classes)

    def _targets_of_codes(self, codes: AnyArray, n_outputs: int, dtype: np.dtype[Any]) -> AnyArray:
        """Return targets for the loss: codes, or for two classes a column of 0 and 1."""
        return codes.astype(dtype)[:, None] if n_outputs == 1 else codes

    def _unit_of_loss(self, n_outputs: int) -> float:
        """Return the largest weight of a label, by which those of records are divided."""
        return largest_weight(self.class_weight or {}, 2 if n_outputs == 1 else n_outputs)

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
                f"{self._who}: blocks do not show all labels at once; declare them by "
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


def _n_outputs(n_classes: int) -> int:
    return 1 if n_classes == 2 else n_classes
