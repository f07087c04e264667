"""Draw scores against epsilon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import check_scoring

from skdp._numbers import AnyArray, Array, MatrixLike, require
from skdp.accounting import PrivacyStatement
from skdp.metrics.scores import axes_or_new
from skdp.model_selection.candidates import last_step
from skdp.model_selection.total import total_privacy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_REPEATS = 3  # fits at each epsilon


class PrivacyUtilityDisplay:
    """Score of a model against its privacy budget.

    Make it by `from_estimator`. It is for public data, or data made for the purpose: every fit
    spends its budget, and the scores are computed without noise.

    Parameters
    ----------
    epsilons : array of shape (n_epsilons,)
    scores : array of shape (n_epsilons, n_repeats)
        Of the private models.
    score_name : str, default="score"
    references : dict of str to float, default=None
        Scores of models without privacy, by name, drawn as lines.
    total : PrivacyStatement or None, default=None
        What all the fits cost together.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
        Both are there once `plot` has been called.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import PrivacyUtilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)  # public data
    >>> display = PrivacyUtilityDisplay.from_estimator(
    ...     DPLogisticRegression(classes=[0, 1]), X[:400], y[:400], X[400:], y[400:]
    ... )
    >>> display.scores.shape
    (5, 3)
    """

    def __init__(
        self,
        epsilons: ArrayLike,
        scores: ArrayLike,
        score_name: str = "score",
        references: dict[str, float] | None = None,
        total: PrivacyStatement | None = None,
    ) -> None:
        self.epsilons: Array = np.asarray(epsilons, dtype=float)
        self.scores: AnyArray = np.asarray(scores)
        self.score_name, self.references, self.total = score_name, references, total

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike,
        X_test: MatrixLike,
        y_test: ArrayLike,
        epsilons: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0),
        scoring: str | Callable[..., float] | None = None,
    ) -> Self:
        """Fit clones of an estimator three times at each of several budgets, and score them.

        Parameters
        ----------
        estimator : estimator
            A private model, or a pipeline that ends with a private model, which gets the budget.
        X, y : arrays
            Rows of the fits.
        X_test, y_test : arrays
            Other rows, to score on.
        epsilons : sequence of float
        scoring : str, callable or None, default=None
            As in scikit-learn; None for the estimator's own score.

        Returns
        -------
        PrivacyUtilityDisplay
            Not drawn yet; call `plot`.
        """
        require("epsilons", list(epsilons), "hold at least one number", len(epsilons) >= 1)
        scorer = check_scoring(estimator, scoring)
        models = []
        for epsilon in np.repeat(epsilons, N_REPEATS):
            model = clone(estimator)
            last_step(model).set_params(epsilon=float(epsilon))
            models.append(model.fit(X, y))
        scores = np.reshape([scorer(model, X_test, y_test) for model in models], (-1, N_REPEATS))
        name = scoring if isinstance(scoring, str) else "score"
        return cls(epsilons, scores, name, total=total_privacy(*models, delta=1e-6))

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the mean score at each epsilon, and the range of the repeats.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes a new figure.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        ax = axes_or_new(ax)
        mean = self.scores.mean(axis=1)
        ax.plot(self.epsilons, mean, marker="o", label="private")
        low, high = self.scores.min(axis=1), self.scores.max(axis=1)
        ax.fill_between(self.epsilons, low, high, alpha=0.2)
        for number, (name, score) in enumerate((self.references or {}).items()):
            ax.axhline(score, label=name, color=f"C{number + 1}", linestyle="--")
        ax.set(xscale="log", xlabel="epsilon", ylabel=self.score_name)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
