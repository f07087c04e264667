"""Write the evidence on a fitted model into a folder, for the person who signs its release."""

import hashlib
import html
import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from sklearn.base import BaseEstimator

from skdp._numbers import listed, shown
from skdp._version import __version__
from skdp.accounting import PrivacyStatement
from skdp.accounting.records import plain
from skdp.audit.black_box import statement_of
from skdp.audit.reporting import SCOPE, AuditReport, report
from skdp.fitting.ledger import Line, all_lines, show

Content: TypeAlias = Mapping[str, Any]  # ready for JSON

# Version of dossier.schema.json, which lies beside this file.
SCHEMA = 1
_OPEN = "Not answered."
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib")


# Question, answer in terms of the registry entry, and the name of an answer that only people have.
CHECKLIST = (
    (
        "How large are epsilon and delta, and what do they mean?",
        "epsilon = {epsilon:.6g}, delta = {guarantee[delta]:g}: {guarantee[flavor]}. For "
        "neighbouring data, each result of a fit is at most exp(epsilon) times as probable, up to "
        "an added probability of delta.",
        "",
    ),
    (
        "What is the unit of privacy: a row, a person?",
        "It is {unit_of_privacy[unit]}. {stated}",
        "",
    ),
    ("Which neighbours are meant?", "{unit_of_privacy[adjacency]}.", ""),
    ("What is *not* protected?", "{unprotected}", ""),
    (
        "What does the guarantee not promise?",
        "That conclusions about groups do no harm, or that the model is fair or accurate.",
        "",
    ),
    ("Which mechanisms ran, and how often?", "{released}", ""),
    (
        "Who computed the total, by which theorem?",
        "Accountant {composition[accountant]}; {composition[scope]}.",
        "",
    ),
    ("Do all uses of the rows share one budget?", "", "other_uses"),
    ("Were hyperparameters tuned on the private rows?", "Assumed: {tuning}", "tuning"),
    ("Was anything done to the rows before the fit?", "", "preparation"),
    ("Is the noise secure, and fresh?", "{implementation[randomness]}.", ""),
    ("Is floating point dealt with?", "{implementation[floating_point]}", ""),
    (
        "Side channels: time, memory, messages?",
        "{implementation[timing]} {implementation[other_side_channels]}",
        "",
    ),
    ("Was the code tested against its claim?", "See the audit.", ""),
    ("Which trust model?", "{model[trust]}: whoever runs the fit sees the rows.", ""),
    ("Who may see the rows, how are they kept and deleted?", "", "storage"),
)


def dossier(
    model: BaseEstimator,
    folder: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | None = None,
    answers: Mapping[str, str] | None = None,
    n_fits: int = 1000,
    random_state: int | None = None,
) -> dict[str, Any]:
    """Write ``dossier.json`` and ``dossier.html`` on a fitted model into a folder.

    They contain the statement, a registry entry, the results of replay and canaries, versions and
    a hash of the package, the reviewer's checklist with answers, and the lines of a ledger. No row
    is read: replay and canaries fit clones to made-up rows.

    Parameters
    ----------
    model : fitted estimator
        With ``privacy_``, or a pipeline of such.
    folder : str or path
        Created if missing; a dossier in it is replaced.
    ledger : str, path or None, default=None
        That of the model's budget. It is verified, and not written to.
    answers : mapping of str to str or None, default=None
        What only people know: "other_uses", "tuning", "preparation" and "storage" of the checklist,
        and the fields "name", "deployer", "data_product", "data_source", "intended_use",
        "release_date" and "contact" of the registry entry. What is missing is listed as open.
    n_fits : int, default=1000
        Of `canaries`.
    random_state : int or None, default=None
        Of `canaries`.

    Returns
    -------
    dict
        What ``dossier.json`` contains, which follows ``skdp/audit/dossier.schema.json``.

    Raises
    ------
    ValueError
        If an answer has no question, or the model has no statement.
    PrivacyBudgetError
        If the ledger was changed or cannot be read.
    """
    statement = statement_of(model)
    registry: dict[str, Any] = statement.to_registry()
    answers = dict(answers or {})
    names = {name for _, _, name in CHECKLIST if name} | set(registry["deployment"])
    if unknown := sorted(set(answers) - names):
        raise ValueError(
            f"dossier: answers has {listed(unknown)}; allowed are {listed(sorted(names), 20)}. "
            "Nothing was written."
        )
    for name, value in answers.items():
        if not isinstance(value, str):
            raise ValueError(f"dossier: the answer to {name!r} must be text; got {shown(value)}.")
        if name in registry["deployment"]:
            registry["deployment"][name] = value
    lines = [] if ledger is None else all_lines(ledger)
    audited = report(model, n_fits=n_fits, random_state=random_state)
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "estimator": audited.replay.estimator,
        "statement": statement.to_dict(),
        "registry": registry,
        "audit": json.loads(json.dumps(_finite(audited.to_dict()), default=plain)),
        "software": _software(),
        "checklist": _completed(registry, answers),
        "ledger": None if ledger is None else _of_ledger(Path(ledger).name, lines, statement),
        "open": sorted(
            name
            for name in names
            if name not in answers and registry["deployment"].get(name) is None
        ),
    }
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, allow_nan=False)
    (place / "dossier.json").write_text(text, encoding="utf-8")
    (place / "dossier.html").write_text(_page(content, statement, audited, lines), encoding="utf-8")
    return content


def _finite(value: object) -> object:
    """Return a value in which numbers that JSON has not are text."""
    if isinstance(value, Mapping):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return plain(value)


def _software() -> dict[str, Any]:
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(f"{file.relative_to(package).as_posix()}\n".encode())
        digest.update(file.read_bytes())
    return {
        "skdp": __version__,
        "sha256_of_package": digest.hexdigest(),
        "python": platform.python_version(),
        "system": platform.platform(),
        **{name: version(name) for name in _LIBRARIES},
    }


def _completed(registry: Content, answers: Mapping[str, str]) -> list[dict[str, str | bool]]:
    terms = {
        **registry,
        "epsilon": float(registry["guarantee"]["epsilon"]),
        "stated": " ".join(registry["unit_of_privacy"]["stated"]),
        "unprotected": " ".join(registry["unprotected_quantities"]),
        "tuning": " ".join(registry["tuning_and_preprocessing"]),
        "released": "; ".join(
            "{count} x {statistic} ({rows} rows), noise multiplier {noise_multiplier}".format(**one)
            for one in registry["mechanisms"]
        ),
    }
    return [
        {
            "question": question.replace("*", ""),
            "answer": f"{answer.format(**terms)} {answers.get(name, _OPEN * bool(name))}".strip(),
            "open": bool(name) and name not in answers,
        }
        for question, answer, name in CHECKLIST
    ]


def _of_ledger(name: str, lines: list[Line], statement: PrivacyStatement) -> dict[str, Any]:
    """Return the lines of a ledger without the charges' statements, and where this one is."""
    stated = statement.to_dict()
    return {
        "file": name,
        "head": lines[-1].hash,
        "charged_in_lines": [
            line.number for line in lines if line.entry.get("statement") == stated
        ],
        "lines": [
            {
                "number": line.number,
                "hash": line.hash,
                **{key: value for key, value in line.entry.items() if key != "statement"},
            }
            for line in lines
        ],
    }


def _page(
    content: Content, statement: PrivacyStatement, audited: AuditReport, lines: list[Line]
) -> str:
    """Return the dossier as a page that begins with what a reader looks for first."""
    registry = content["registry"]
    first = {
        "Model": content["estimator"],
        "epsilon": f"{statement.epsilon:.6g}",
        "delta": f"{statement.delta:g}",
        "Unit of privacy": (
            "one person, or other group of rows" if statement.unit == "group" else "one row"
        ),
        "Neighbouring data": registry["unit_of_privacy"]["adjacency"],
        "Assumed to be public, or true": " ".join(statement.assumptions),
        "Checked": (
            f"replay on {len(audited.replay.pairs)} pairs of neighbouring data sets, "
            f"{'no finding' if audited.replay.ok else 'FINDINGS'}; canaries, "
            f"{'no alarm' if audited.canaries.ok else 'ALARM'}. Both on made-up rows"
        ),
        "Left open": ", ".join(content["open"]) or "nothing",
        "Made": f"{content['made']} by skdp {content['software']['skdp']}",
    }
    tests = f"{audited.replay._repr_html_()}{audited.canaries._repr_html_()}"
    questions = {item["question"]: item["answer"] for item in content["checklist"]}
    parts = {
        "In short": _table(first),
        "Privacy statement": statement._repr_html_(),
        "Reviewer's checklist": _table(questions),
        "Deployment": _table(
            {name: value or _OPEN for name, value in registry["deployment"].items()}
        ),
        "Audit": f"<details>{tests}</details><p>{html.escape(SCOPE)}</p>",
        "Software": _table(content["software"]),
    }
    if lines:
        charged = content["ledger"]["charged_in_lines"]
        this = f"<p>Charges equal to this statement: lines {', '.join(map(str, charged))}.</p>"
        parts["Ledger"] = (this if charged else "") + f"<pre>{html.escape(show(lines))}</pre>"
    body = "".join(f"<h2>{title}</h2>{part}" for title, part in parts.items())
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Privacy dossier</title>"
        "<style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "td,th{text-align:left;vertical-align:top;padding:.2em 1em .2em 0}pre{overflow:auto}"
        f"</style></head><body><h1>Privacy dossier</h1>{body}</body></html>"
    )


def _table(rows: Content) -> str:
    cells = "".join(
        f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{cells}</table>"
