"""Report the statement of a fit, a replay and canaries together."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skdp._numbers import MatrixLike
from skdp._version import __version__
from skdp.accounting import PrivacyStatement
from skdp.accounting.interchange import plain
from skdp.audit.black_box import CanaryReport, canaries, fitted_clone, statement_of
from skdp.audit.comparing import ReplayReport, Report
from skdp.audit.neighbours import made_up_data
from skdp.audit.replaying import audited_clone, replay

SCOPE = (
    "An audit finds bugs. It proves none absent. Replay holds for the records that it tried, "
    "canaries for one record and what was looked at. The figures on made-up rows may be shown to "
    "anybody. Those on private rows are not private."
)
CANARY_FIGURES = "epsilon_lower", "mu_lower", "epsilon_of_mu", "share", "n_fits", "confidence"


@dataclass(frozen=True)
class AuditReport(Report):
    """Report on one fit: its statement and the results of two audits.

    Attributes
    ----------
    statement : PrivacyStatement
    replay : ReplayReport
    canaries : CanaryReport
    """

    statement: PrivacyStatement
    replay: ReplayReport
    canaries: CanaryReport

    @property
    def ok(self) -> bool:
        """Whether neither audit raises an alarm."""
        return self.replay.ok and self.canaries.ok

    def __str__(self) -> str:
        title = f"Audit of {self.replay.estimator}: {'no alarm' if self.ok else 'ALARM'}"
        parts = [f"{name}\n{'-' * len(name)}\n{part}" for name, part in vars(self).items()]
        return "\n\n".join([title, *parts, SCOPE])


def report(
    estimator: BaseEstimator,
    folder: str | os.PathLike[str] | None = None,
    *,
    X: MatrixLike | None = None,
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_fits: int = 1000,
    confidence: float = 0.999,
    random_state: int | None = None,
) -> AuditReport:
    """Replay an estimator, put canaries into it, and return both with its statement.

    Parameters
    ----------
    estimator : estimator
        Clones of it are fitted, without their ``budget``. The statement is its own if it is fitted.
    folder : str or path, default=None
        Where to write ``audit.html`` for readers and ``audit.json`` for programs. It is created if
        it is missing. None writes nothing.
    X, y : arrays, default=None
        Rows to replay on. Small made-up data if None. Canaries are put into made-up rows in any
        case, where nothing hides them.
    groups : array of shape (n_samples,), default=None
        Whose record each of the rows is.
    n_fits, confidence, random_state
        Of `canaries`.

    Returns
    -------
    AuditReport

    Raises
    ------
    Exception
        Of the fit, if the estimator refuses the data.

    Examples
    --------
    >>> from skdp import DPLinearRegression, audit
    >>> model = DPLinearRegression(solver="gd", max_iter=2, scaling="none")
    >>> audit.report(model, n_fits=200).ok
    True
    """
    try:
        check_is_fitted(estimator)
        model = estimator
    except NotFittedError:
        data = made_up_data(estimator) if X is None else (X, y)
        given = {"X": data[0], "y": data[1], "groups": groups}
        present = {name: value for name, value in given.items() if value is not None}
        model = fitted_clone(audited_clone(estimator), present)
    audited = AuditReport(
        statement_of(model),
        replay(estimator, X, y, groups=groups),
        canaries(estimator, n_fits=n_fits, confidence=confidence, random_state=random_state),
    )
    if folder is not None:
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        shown = audited.canaries
        found = {
            "ok": audited.ok,
            "skdp": __version__,
            "statement": audited.statement.to_dict(),
            "replay": asdict(audited.replay),
            "canaries": {name: getattr(shown, name) for name in CANARY_FIGURES},
            "scope": SCOPE,
        }
        text = json.dumps(plain(found), indent=1, allow_nan=False)
        (place / "audit.json").write_text(text, encoding="utf-8")
        page = f"<!doctype html><meta charset='utf-8'><body>{audited._repr_html_()}</body>"
        (place / "audit.html").write_text(page, encoding="utf-8")
    return audited
