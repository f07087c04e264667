"""What a budget is worth: shares of what there is to learn that are lost, by signal over noise.

Fitted on the cells of utility.csv and held_out.csv at default parameters, and for log links on
those of counts.csv, most of which are made up; one curve for each kind of target and quantile. The
constants are written into skdp/_fitting/user_warnings.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from benchmarks import counts, results_file, table
from benchmarks.utility import DELTA
from benchmarks.verdict import CONSTANT, DEFAULT, TWIN, is_classification, known
from skdp._fitting import user_warnings as model
from skdp.accounting import gaussian_mu

RESULTS = Path(__file__).parent / "results"
FILES = "utility.csv", "held_out.csv"
TRAINING_SHARE = 0.75  # of the rows of a cell, see benchmarks.columns.random_split
# R2, D2 or nats that the non-private model has to gain over a constant: shares of less say nothing.
LEAST_GAIN = 0.02
# Shares of the cells between the outer curves that are fitted to them. Of cells of data sets that
# were left out, about four in five lie there: fewer sets, or more different ones, need more.
FITTED = {"regression": 0.8, "skewed regression": 0.78, "log link": 0.85, "two classes": 0.78,
          "more classes": 0.86}  # fmt: skip
# Sets of regressions whose targets have a skewness above 2: counts, costs and delays. The next one
# below has 1.7.
SKEWED = frozenset({
    "AER.CreditCard", "AER.Fatalities", "AER.Guns", "AER.Medicaid1986", "AER.NMES1988",
    "AER.PhDPublications", "AER.RecreationDemand", "COUNT.azpro", "COUNT.mdvis", "COUNT.medpar",
    "COUNT.rwm5yr", "Ecdat.BudgetFood", "Ecdat.Clothing", "Ecdat.DoctorContacts", "Ecdat.MedExp",
    "Ecdat.VietNamI", "HSAUR.Forbes2000", "nycflights13.flights", "sampleSelection.RandHIE",
    "sandwich.InstInnovation", "wooldridge.k401ksubs",
})  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One data set, condition and epsilon.

    Attributes
    ----------
    kind : str
    signal : float
        mu n / p.
    lost : float
        Share of what the non-private model gains over a constant; in R2, D2 or log loss.
    """

    kind: str
    signal: float
    lost: float


def cells(folder: Path = RESULTS) -> list[Cell]:
    """Cells of the benchmarks in which there is something to learn."""
    found = log_link_cells(folder / "counts.csv")
    for name in FILES:
        rows = table.read(folder / name)[1]
        references = {
            (row["data"], row["condition"], row["method"]): row
            for row in rows
            if row["method"] in (CONSTANT, TWIN)
        }
        for row in rows:
            if row["method"] != DEFAULT:
                continue
            twin, constant = (
                references[row["data"], row["condition"], other] for other in (TWIN, CONSTANT)
            )
            kind, metric, sign = "regression", "score", 1
            if row["data"] in SKEWED:
                kind = "skewed regression"
            if is_classification(row):
                kind = "two classes" if known(row["auc"]) else "more classes"
                metric, sign = "log_loss", -1
            gain = sign * (twin[metric] - constant[metric])
            if gain < LEAST_GAIN:
                continue
            mu = gaussian_mu(row["epsilon"], row["delta"])
            signal = mu * TRAINING_SHARE * row["rows"] / (row["columns"] + 1)
            lost = sign * (twin[metric] - row[metric]) / gain
            found.append(Cell(kind, signal, lost))
    return found


def log_link_cells(path: Path) -> list[Cell]:
    """Cells of counts and amounts in which there is something to learn."""
    rows = results_file.read(path)[1]
    twins = {row["data"]: float(row["d2"]) for row in rows if row["method"] == TWIN}
    found = []
    for row in rows:
        gain, epsilon = twins[row["data"]], float(row["epsilon"])
        if row["method"] not in (counts.OURS, counts.TWEEDIE) or gain < LEAST_GAIN:
            continue
        n_rows, n_columns = int(row["rows"]), int(row["columns"])
        signal = gaussian_mu(epsilon, DELTA) * TRAINING_SHARE * n_rows / (n_columns + 1)
        found.append(Cell("log link", signal, (gain - float(row["d2"])) / gain))
    return found


def fitted(found: list[Cell], quantile: float) -> tuple[float, float]:
    """Return the curve that this share of the cells lies below: where it is 1, and its slope.

    Cutting shares and curve to a range does not bias it, as it is a quantile (Powell 1986,
    Censored regression quantiles). The loss is not differentiable.
    """
    signals = np.log([cell.signal for cell in found])
    lost = _log_cut([cell.lost for cell in found])

    def loss(curve):
        error = lost - np.clip(curve[1] * (curve[0] - signals), *_log_cut([0, np.inf]))
        return np.mean(np.maximum(quantile * error, (quantile - 1) * error))

    starts = [(start, slope) for start in (0.0, 2.0, 4.0) for slope in (0.5, 1.0, 2.0)]
    options = {"xatol": 1e-4, "fatol": 1e-8, "maxiter": 2000}
    best = min(
        (minimize(loss, start, method="Nelder-Mead", options=options) for start in starts),
        key=lambda end: end.fun,
    )
    return float(np.exp(best.x[0])), float(best.x[1])


def _log_cut(shares):
    return np.log(np.clip(shares, model.LEAST_LOSS, model.MOST_LOSS))


def curves(found: list[Cell], kind: str) -> dict[float, tuple[float, float]]:
    """Return the curves of a kind of target, by quantile over data sets that are left out."""
    of_kind = [cell for cell in found if cell.kind == kind]
    wider = FITTED[kind] / (model.QUANTILES[-1] - model.QUANTILES[0])
    return {
        quantile: fitted(of_kind, 0.5 + wider * (quantile - 0.5)) for quantile in model.QUANTILES
    }


def run() -> None:
    """Fit, print and put the constants in their place."""
    found, lines = cells(), []
    for kind in model.CURVES:
        own = curves(found, kind)
        entries = ", ".join(f"{q:g}: ({at:.3g}, {b:.3g})" for q, (at, b) in own.items())
        lines.append(f'    "{kind}": {{{entries}}},')
        print(f"{sum(cell.kind == kind for cell in found)} cells of {kind}: {entries}")
    path = Path(model.__file__)
    text = path.read_text(encoding="utf-8")
    block = "\n".join(["CURVES = {", *lines, "}"])
    path.write_text(re.sub(r"(?ms)^CURVES = \{.*?^\}", block, text), encoding="utf-8")
