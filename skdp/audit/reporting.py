"""Report a replay, canaries and the statement together."""

import html
from dataclasses import dataclass

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp._numbers import MatrixLike
from skdp.accounting import PrivacyStatement
from skdp.audit.black_box import CanaryReport, canaries, statement_of
from skdp.audit.comparing import ReplayReport
from skdp.audit.neighbours import made_up_data
from skdp.audit.recording import record
from skdp.audit.replaying import audited_clone, replay

SCOPE = (
    "An audit finds bugs; it proves none absent. Replay holds for the records that it tried, "
    "canaries for one record and what was looked at. The figures on made-up rows may be shown to "
    "anybody; those on private rows are not private."
)


@dataclass(frozen=True)
class AuditReport:
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

    def _parts(self) -> tuple[tuple[str, PrivacyStatement | ReplayReport | CanaryReport], ...]:
        return (("Statement", self.statement), ("Replay", self.replay), ("Canaries", self.canaries))

    def __str__(self) -> str:
        verdict = "no alarm" if self.ok else "ALARM"
        parts = [f"{title}\n{'-' * len(title)}\n{part}" for title, part in self._parts()]
        return "\n\n".join([f"Audit of {self.replay.estimator}: {verdict}", *parts, SCOPE])

    def _repr_html_(self) -> str:
        parts = "".join(f"<h3>{title}</h3>{part._repr_html_()}" for title, part in self._parts())
        verdict = "no alarm" if self.ok else "ALARM"
        who = html.escape(self.replay.estimator)
        return f"<h2>Audit of {who}: {verdict}</h2>{parts}<p>{html.escape(SCOPE)}</p>"

    def to_html(self) -> str:
        """Return the report as a page of its own.

        Returns
        -------
        str
        """
        return (
            "<!doctype html><html lang='en'><meta charset='utf-8'><title>Privacy audit</title>"
            f"<body>{self._repr_html_()}</body></html>"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain Python objects, ready for JSON.

        Returns
        -------
        dict
        """
        parts = {title.lower(): part.to_dict() for title, part in self._parts()}
        return {"ok": self.ok, **parts, "scope": SCOPE}


def report(
    estimator: BaseEstimator,
    X: MatrixLike | None = None,
    y: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    n_fits: int = 1000,
    confidence: float = 0.999,
    random_state: int | None = None,
) -> AuditReport:
    """Replay an estimator, put canaries into it, and return both with its statement.

    Parameters
    ----------
    estimator : estimator
        Clones of it are fitted, without their ``budget``.
    X, y : arrays, default=None
        Rows to replay on; small made-up data if None. Canaries are put into made-up rows in any
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
    plain = audited_clone(estimator)
    data = made_up_data(estimator) if X is None else (X, y)
    given = {"X": data[0], "y": data[1], "groups": groups}
    recording = record(plain, {name: it for name, it in given.items() if it is not None})
    if recording.error is not None:
        raise recording.error
    return AuditReport(
        statement_of(recording.model),
        replay(estimator, X, y, groups=groups),
        canaries(estimator, n_fits=n_fits, confidence=confidence, random_state=random_state),
    )
