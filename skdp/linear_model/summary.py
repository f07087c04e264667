"""A table and a picture of coefficients with their errors."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from skdp._fitting.noise_warnings import COLLINEAR
from skdp._numbers import Array, Table, html_table, shown, text_table
from skdp.accounting import PrivacyStatement

NOT_DETERMINED, NO_REGRESSOR = "not determined", "no regressor"
ESTIMAND = (
    "Estimand: an unpenalised bounded-influence regression (rows with large norms are shrunk, "
    "large residuals are capped). If the model is correctly specified, it equals the usual "
    "coefficients. If the model is misspecified and the data are heavy-tailed, it can differ from "
    "ordinary least squares or maximum likelihood."
)
ONE_BY_ONE = "Intervals and p-values are not adjusted for multiple comparisons."


@dataclass(frozen=True, eq=False)
class CoefficientTable:
    """Coefficients with standard errors, p-values and intervals, as text, HTML or data frame.

    Attributes
    ----------
    title : str
    names : tuple of str
        Of the columns, and "(intercept)" last if there is one.
    coef, std_error, p_value, privacy_share : array of shape (n_rows,)
        ``std_error`` is inf, and ``p_value`` nan, where a coefficient is not determined.
        ``privacy_share`` is the noise's share of the squared standard error.
    interval : array of shape (n_rows, 2)
    level : float
        Of the intervals.
    cut : float
        Share of the records whose part was bounded. A noisy count.
    statement : PrivacyStatement
        Of the fit.
    """

    title: str
    names: tuple[str, ...]
    coef: Array
    std_error: Array
    p_value: Array
    interval: Array
    privacy_share: Array
    level: float
    cut: float
    statement: PrivacyStatement = field(repr=False)

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns of the table."""
        low, high = (f"{100 * p:.4g}%" for p in ((1 - self.level) / 2, (1 + self.level) / 2))
        return "", "coef", "std err", "z", "P>|z|", f"[{low}", f"{high}]", "privacy", ""

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for i, name in enumerate(self.names):
            coef, error, share = self.coef[i], self.std_error[i], self.privacy_share[i]
            if not math.isfinite(error):
                yield name, f"{coef:.5g}", "inf", "", "", "-inf", "inf", "", NOT_DETERMINED
                continue
            if coef == error == 0:
                yield name, "0", "", "", "", "", "", "", NO_REGRESSOR
                continue
            z = coef / error if error > 0 else math.copysign(math.inf, coef)
            low, high = self.interval[i]
            yield (
                name, f"{coef:.5g}", f"{error:.3g}", f"{z:.2f}", f"{self.p_value[i]:.3f}",
                f"{low:.5g}", f"{high:.5g}", f"{100 * share:.0f}%", "",
            )  # fmt: skip

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions of the table, in sentences."""
        one = self.statement
        cut = "records" if one.unit == "row" else "rows, those of each group counting as one,"
        lines = [
            f"n = {one.n_rows if one.unit == 'row' else one.n_groups}; ({one.epsilon:.4g}, "
            f"{one.delta:.4g})-differentially private for each {one.unit}, adjacency "
            f"{one.adjacency}.",
            "privacy: share of the squared standard error that is due to the noise added.",
            f"About {100 * self.cut:.0f}% of the {cut} were cut down to the bounds.",
            ESTIMAND,
            ONE_BY_ONE,
        ]
        if not np.isfinite(self.std_error).all():
            lines.append(
                f"{NOT_DETERMINED}: no usable interval. {COLLINEAR} Otherwise the noise is too "
                f"large: use more {one.unit}s, a larger epsilon or fewer columns."
            )
        return tuple(lines)

    def __str__(self) -> str:
        sides = "<" + ">" * (len(self.header) - 2) + "<"
        head, *body = text_table([self.header, *self._rows()], sides)
        rule = "-" * max(map(len, [head, *body]))
        return "\n".join([self.title, rule, head, rule, *body, rule, *self.notes])

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        table = html_table(self.header, self._rows())
        return f"<p><b>{html.escape(self.title)}</b></p>{table}<ul>{notes}</ul>"

    def rescaled(self, sizes: ArrayLike) -> Self:
        """Return the table for steps of other sizes than 1 in the columns.

        Coefficients in the units of X have lengths that do not compare. Multiplied by a typical
        size of each column, such as ``scaling_.columns.scale``, they do.

        Parameters
        ----------
        sizes : array of shape (n_rows,)
            Positive. 1 for the intercept.

        Returns
        -------
        CoefficientTable
        """
        sizes = np.asarray(sizes, dtype=float)
        if sizes.shape != self.coef.shape or not (np.isfinite(sizes) & (sizes > 0)).all():
            raise ValueError(
                f"rescaled: sizes must be positive, one for each of the {len(self.coef)} rows of "
                f"the table, got {shown(sizes)}."
            )
        coef, error = self.coef * sizes, self.std_error * sizes
        return replace(self, coef=coef, std_error=error, interval=self.interval * sizes[:, None])

    def to_frame(self) -> Table:
        """Return a pandas data frame with a row for each coefficient.

        Returns
        -------
        pandas.DataFrame
            Columns "coef", "std_error", "z", "p_value", "low", "high", "privacy_share" and
            "determined".
        """
        import pandas as pd

        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(np.isfinite(self.std_error), self.coef / self.std_error, np.nan)
        return pd.DataFrame(
            {
                "coef": self.coef,
                "std_error": self.std_error,
                "z": z,
                "p_value": self.p_value,
                "low": self.interval[:, 0],
                "high": self.interval[:, 1],
                "privacy_share": self.privacy_share,
                "determined": np.isfinite(self.std_error),
            },
            index=pd.Index(self.names, name="coefficient"),
        )


class CoefficientDisplay:
    """Coefficients with error bars in two parts: sampling, and the addition by privacy.

    The inner, thick bar is the interval that only the sampling of the rows would give. The outer,
    thin bar is the interval. Coefficients that are not determined are hollow and have no bar.

    Parameters
    ----------
    table : CoefficientTable
        As ``summary()`` returns it.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skdp import DPLinearRegression
    >>> from skdp.linear_model import CoefficientDisplay
    >>> X, y = make_regression(20000, 4, noise=10.0, random_state=0)
    >>> model = DPLinearRegression(inference="coefficients").fit(X, y)
    >>> display = CoefficientDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(self, table: CoefficientTable) -> None:
        self.table = table

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, level: float = 0.95, intercept: bool = False, ax: Any = None
    ) -> Self:
        """Draw the coefficients of a model that was fitted with ``inference="coefficients"``.

        Parameters
        ----------
        estimator : estimator
        level : float, default=0.95
            Of the intervals.
        intercept : bool, default=False
            Whether to draw also the intercept.
        ax : matplotlib Axes, default=None
            None for new ones.

        Returns
        -------
        CoefficientDisplay
        """
        return cls(estimator.summary(level)).plot(intercept=intercept, ax=ax)

    def plot(self, *, intercept: bool = False, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        intercept : bool, default=False
        ax : matplotlib Axes, default=None

        Returns
        -------
        self
        """
        import matplotlib.pyplot as plt

        table = self.table
        shown = [
            i for i, name in enumerate(table.names) if intercept or not name.endswith("(intercept)")
        ]
        coef = table.coef[shown]
        reach = float(stats.norm.isf((1 - table.level) / 2)) * table.std_error[shown]
        known = np.isfinite(reach)
        inner = reach * np.sqrt(1 - table.privacy_share[shown])
        places = np.arange(len(shown))[::-1]
        if ax is None:
            _, ax = plt.subplots(figsize=(6.0, 1.0 + 0.35 * len(shown)))
        ax.axvline(0.0, color="0.7", linewidth=0.8)
        ax.hlines(
            places[known], (coef - reach)[known], (coef + reach)[known], color="tab:orange",
            linewidth=1.5, label="sampling and privacy",
        )  # fmt: skip
        ax.hlines(
            places[known], (coef - inner)[known], (coef + inner)[known], color="tab:blue",
            linewidth=4.0, label="sampling alone",
        )  # fmt: skip
        ax.plot(coef[known], places[known], "o", color="black", markersize=4)
        if not known.all():
            # Their estimates say nothing, and would stretch the axis.
            ax.plot(
                np.zeros((~known).sum()), places[~known], "o", color="black", fillstyle="none",
                markersize=4, label=NOT_DETERMINED,
            )  # fmt: skip
        ax.set_yticks(places, [table.names[i] for i in shown])
        ax.set_xlabel(f"coefficient, {100 * table.level:g}% interval")
        ax.legend(loc="best", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
