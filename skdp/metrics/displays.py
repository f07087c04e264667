"""Draw private scores, in the form of scikit-learn's displays; this needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skdp.metrics.scores import ScoreCurve, ScoreMatrix, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes


AXES = {
    "roc_curve": ("False positive rate", "True positive rate"),
    "calibration_curve": ("Mean predicted probability", "Share of positives"),
}


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("displays need matplotlib: pip install matplotlib.") from None
    return pyplot.subplots()[1]


class ScoreCurveDisplay:
    """A private ROC or calibration curve, with a band that noise explains.

    Parameters
    ----------
    curve : ScoreCurve
    level : float, default=0.95
        Of the band at each point.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
    line_, band_ : matplotlib objects
        The curve, and the band around it.
    """

    def __init__(self, curve: ScoreCurve, *, level: float = 0.95) -> None:
        self.curve = curve
        self.level = level

    @classmethod
    def from_scores(
        cls, scores: Scores, name: str = "roc_curve", *, ax: Axes | None = None
    ) -> Self:
        """Draw a curve of `skdp.metrics.evaluate`.

        Parameters
        ----------
        scores : Scores
        name : {"roc_curve", "calibration_curve"}, default="roc_curve"
        ax : matplotlib axes, default=None

        Returns
        -------
        ScoreCurveDisplay
        """
        curve = scores[name]
        if not isinstance(curve, ScoreCurve):
            raise ValueError(f"{name!r} is not a curve; request one of {list(AXES)}.")
        return cls(curve).plot(ax)

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            None makes new ones.
        **options
            Of the line.

        Returns
        -------
        self
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        x, y, _ = self.curve.value
        x, y = (np.nan_to_num(values, nan=0.5) for values in (x, y))
        low, high = self.curve.band(self.level)
        (self.line_,) = self.ax_.plot(x, y, **{"marker": ".", **options})
        self.band_ = self.ax_.fill_between(x, low, high, alpha=0.2, color=self.line_.get_color())
        self.ax_.plot([0, 1], [0, 1], "--", color="grey", linewidth=0.8)
        horizontal, vertical = AXES[self.curve.name]
        self.ax_.set(xlabel=horizontal, ylabel=vertical, xlim=(0, 1), ylim=(0, 1))
        return self


class ScoreMatrixDisplay:
    """A private confusion matrix; each count with the half width of its interval.

    Parameters
    ----------
    matrix : ScoreMatrix
    level : float, default=0.95
        Of the intervals.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
    im_ : matplotlib image
    text_ : list of matplotlib texts
    """

    def __init__(self, matrix: ScoreMatrix, *, level: float = 0.95) -> None:
        self.matrix = matrix
        self.level = level

    @classmethod
    def from_scores(cls, scores: Scores, *, ax: Axes | None = None) -> Self:
        """Draw the confusion matrix of `skdp.metrics.evaluate`.

        Parameters
        ----------
        scores : Scores
        ax : matplotlib axes, default=None

        Returns
        -------
        ScoreMatrixDisplay
        """
        matrix = scores["confusion_matrix"]
        assert isinstance(matrix, ScoreMatrix)
        return cls(matrix).plot(ax)

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            None makes new ones.
        **options
            Of the image.

        Returns
        -------
        self
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        counts, (low, high) = self.matrix.value, self.matrix.interval(self.level)
        self.im_ = self.ax_.imshow(counts, **{"cmap": "Blues", **options})
        self.text_ = [
            self.ax_.text(
                column,
                row,
                f"{counts[row, column]:.0f}\n{low[row, column]:.0f} to {high[row, column]:.0f}",
                ha="center",
                va="center",
                color="white" if counts[row, column] > counts.max() / 2 else "black",
            )
            for row, column in np.ndindex(*counts.shape)
        ]
        ticks, labels = range(len(counts)), [str(label) for label in self.matrix.classes]
        self.ax_.set(xlabel="Predicted label", ylabel="True label")
        self.ax_.set_xticks(ticks, labels)
        self.ax_.set_yticks(ticks, labels)
        return self
