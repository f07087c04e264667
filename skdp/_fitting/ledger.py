"""A file that keeps the charges of budgets: append-only, chained by hash, one writer at a time.

Format 1 is an SQLite 3 database with ``application_id`` 0x736b6470 ("skdp") and the format's number
as ``user_version``. Its table ``line`` has the columns ``number`` (1, 2, ... without gaps),
``entry`` (a JSON object) and ``hash``: the SHA-256, in hexadecimal, of the hash of the line before
(64 zeros before the first), a line feed and the entry, in UTF-8. Entries have the keys ``kind``,
``time`` (UTC) and ``skdp`` (the version that wrote them), and by kind

``ledger``
    the first line: ``id``, which is random.
``budget``
    the terms of a budget: ``data`` and ``unit``, by which lines belong to it, ``epsilon``,
    ``delta`` and ``adjacency``.
``charge``
    ``data``, ``unit``, ``by`` (an estimator, or "external"), ``total`` (epsilon after the charge)
    and ``statement``, as `skdp.PrivacyStatement.to_dict` writes it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from skdp._numbers import counted, shown
from skdp._version import __version__
from skdp.accounting import PrivacyStatement
from skdp.accounting.cost import Cost, composed
from skdp.accounting.interchange import plain

Entry: TypeAlias = dict[str, Any]

FORMAT = 1
APPLICATION_ID = 0x736B6470
# A charge is priced while the file is locked. Prices of sampled batches take up to seconds.
WAIT_SECONDS = 60
_TABLE = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE line (
    number INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE TRIGGER line_is_not_updated BEFORE UPDATE ON line
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER line_is_not_deleted BEFORE DELETE ON line
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
"""
RESTORE = (
    "A ledger that is missing or damaged is not made anew, as that would forget what was spent: "
    "restore its latest version, and compare its head with one kept elsewhere"
)

# The last line of each ledger that this process read or wrote. Whoever opens the file anew notices
# that an earlier state was restored.
_last_lines: dict[Path, Line] = {}

# No process is forked while a connection is open: the child would take its locks for its own.
_in_use = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_in_use.acquire, after_in_parent=_in_use.release, after_in_child=_in_use.release
    )


class PrivacyBudgetError(ValueError):
    """A privacy budget refused a fit. Nothing was released and nothing was charged."""


class Identity(NamedTuple):
    """What a pickle says of a budget: its key, the process that made it, its terms, its ledger."""

    key: str
    process: str
    epsilon: float
    delta: float
    adjacency: str
    unit: str | None
    ledger: str | None
    data: str


@dataclass(frozen=True)
class Line:
    """A line of a ledger.

    Attributes
    ----------
    number : int
        From 1.
    entry : dict
        The entry in the file.
    hash : str
        Of this line and all before it.
    """

    number: int
    entry: Entry
    hash: str


def now() -> str:
    """Return the time, UTC, as lines show it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _refuse(path: Path, why: str) -> NoReturn:
    raise PrivacyBudgetError(f"The ledger {path.name} cannot be used: {why}. Nothing was released.")


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Open the file and close it, by which all that was not committed is undone."""
    with _in_use:
        try:
            connection = sqlite3.connect(
                f"{path.as_uri()}?mode={mode}", WAIT_SECONDS, isolation_level=None, uri=True
            )
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            _refuse(path, f"{error}. {RESTORE}")


def _require_format(path: Path, connection: sqlite3.Connection) -> None:
    (kind,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone()
        for name in ("application_id", "user_version")
    )
    if kind != APPLICATION_ID:
        _refuse(path, "it is no ledger of skdp")
    if version != FORMAT:
        _refuse(path, f"its format is {version}, and this version of skdp reads format {FORMAT}")


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger to read it, for which no permission to write is needed.

    With this permission SQLite undoes the half line of a writer that was killed.
    """
    with _connected(path, "rw") as connection:
        _require_format(path, connection)
        connection.execute("BEGIN")  # all statements see the same lines
        yield connection


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger as its only writer. Commit at the end of the block, unless it raises."""
    with _connected(path, "rw") as connection:
        # EXTRA: a committed line survives a power failure right after it. PERSIST: the journal is
        # overwritten, not deleted, which takes a quarter less time.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA journal_mode = PERSIST")
        connection.execute("BEGIN IMMEDIATE")
        _require_format(path, connection)
        yield connection
        connection.execute("COMMIT")


def create(path: Path) -> None:
    """Make a ledger with its first line, unless there is a file of this name."""
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        _refuse(path, "it is missing, and its directory is, too, or may not be written")
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with _connected(draft, "rwc") as connection:
            connection.executescript(_TABLE)
            append(connection, {"kind": "ledger", "id": uuid.uuid4().hex})
            connection.execute("COMMIT")
        # Whoever opens the file sees all of it. Of two processes the first one's file stays.
        with suppress(FileExistsError):
            os.link(draft, path)
    except OSError as error:
        _refuse(path, f"it could not be created ({error.strerror})")
    finally:
        with suppress(OSError):
            draft.unlink()


def append(connection: sqlite3.Connection, entry: Entry) -> Line:
    """Write a line, which counts once the connection has committed."""
    last = connection.execute("SELECT number, hash FROM line ORDER BY number DESC LIMIT 1")
    number, before = last.fetchone() or (0, "0" * 64)
    entry = {"kind": entry["kind"], "time": now(), "skdp": __version__, **entry}
    text = json.dumps(entry, allow_nan=False)
    line = Line(number + 1, entry, _hash(before, text))
    connection.execute("INSERT INTO line VALUES (?, ?, ?)", (line.number, text, line.hash))
    return line


def _statement_in(line: Line) -> PrivacyStatement:
    """Return the statement of a charge. PrivacyBudgetError if this version does not know it."""
    try:
        return PrivacyStatement.from_dict(line.entry["statement"])
    except (KeyError, TypeError, ValueError) as error:
        raise PrivacyBudgetError(
            f"Line {line.number} of the ledger, by skdp {line.entry['skdp']}, cannot be read by "
            f"skdp {__version__}: {error} Use the version that wrote it. Nothing was released."
        ) from error


def _hash(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()


def lines_after(path: Path, connection: sqlite3.Connection, known: Line | None) -> list[Line]:
    """Return the lines after a known one, or all, once their chain was verified.

    Raises
    ------
    PrivacyBudgetError
        If a line was changed or removed, the known one included, or the last one that this process
        read or wrote.
    """
    first = 1 if known is None else known.number
    rows = connection.execute(
        "SELECT number, entry, hash FROM line WHERE number >= ? ORDER BY number", (first,)
    ).fetchall()
    (most,) = connection.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()
    hashes = {number: digest for number, _, digest in rows}
    for line in (known, _last_lines.get(path)):
        if line is not None and line.number >= first and hashes.get(line.number) != line.hash:
            _refuse(
                path,
                f"it does not contain line {line.number} as this process read it. An earlier state "
                "was restored, or another file put in its place: restore the latest one",
            )
    if most != (rows[-1][0] if rows else 0) or not rows:
        _refuse(path, f"lines at its end were removed: {most} were written")
    before = "0" * 64
    lines = []
    for place, (number, text, digest) in enumerate(rows):
        if known is not None and place == 0:
            before = digest
            continue
        if number != first + place or digest != _hash(before, text):
            _refuse(path, f"line {number} or the one before it was changed or removed")
        before = digest
        lines.append(Line(number, json.loads(text), digest))
    if lines:
        _last_lines[path] = lines[-1]
    return lines


class Account:
    """The lines of one budget in a ledger, and how far they were read.

    Parameters
    ----------
    identity : Identity
        Of the budget. By data and unit lines belong to it.
    """

    def __init__(self, identity: Identity) -> None:
        self.path = Path(str(identity.ledger))
        self._key = {"data": identity.data, "unit": identity.unit}
        names = ("epsilon", "delta", "adjacency")
        self._terms = self._key | {name: plain(getattr(identity, name)) for name in names}
        self.last: Line | None = None

    def open(self) -> None:
        """Write the budget's terms, unless the ledger has them. Create the ledger if missing.

        Raises
        ------
        PrivacyBudgetError
            If the ledger has other terms, or cannot be used.
        """
        if self.path.is_dir():
            _refuse(self.path, "it is a directory. Pass the name of a file in it")
        if not self.path.exists():
            if self.path in _last_lines:
                _refuse(self.path, RESTORE)
            create(self.path)
        with reading(self.path) as connection:
            is_known = self._has_terms(lines_after(self.path, connection, None))
        if not is_known:
            with writing(self.path) as connection:
                if not self._has_terms(lines_after(self.path, connection, None)):
                    append(connection, {"kind": "budget", **self._terms})

    def _has_terms(self, lines: Sequence[Line]) -> bool:
        budgets = (one.entry for one in lines if one.entry["kind"] == "budget")
        recorded = next((entry for entry in budgets if self._is_mine(entry)), None)
        if recorded is None:
            return False
        recorded = {name: recorded[name] for name in self._terms}
        if recorded != self._terms:
            raise PrivacyBudgetError(
                f"PrivacyBudget: the ledger {self.path.name} has a budget with {recorded}, got "
                f"{self._terms}. Pass the recorded terms, or another name as data. Nothing was "
                "released."
            )
        return True

    def _is_mine(self, entry: Entry) -> bool:
        return all(entry.get(name) == value for name, value in self._key.items())

    def read(self, connection: sqlite3.Connection) -> tuple[list[PrivacyStatement], Line | None]:
        """Read on from ``last``.

        Returns
        -------
        charges : list of PrivacyStatement
            Since ``last``.
        last : Line or None
            The last line, which becomes ``last`` once the charges are counted.
        """
        lines = lines_after(self.path, connection, self.last)
        if self.last is None and not self._has_terms(lines):
            _refuse(self.path, f"it has no budget for data={self._key['data']!r}")
        mine = (one for one in charges_in(lines) if self._is_mine(one.entry))
        return [_statement_in(line) for line in mine], lines[-1] if lines else self.last

    def write(
        self, connection: sqlite3.Connection, by: str, stated: PrivacyStatement, total: float
    ) -> Line:
        """Write a charge, which counts once the connection has committed."""
        entry = {"kind": "charge", **self._key, "by": by}
        line = append(connection, {**entry, "total": plain(total), "statement": stated.to_dict()})
        _statement_in(line)  # what cannot be read again would make the whole ledger useless
        return line

    def remember(self, line: Line) -> None:
        """Remember a line of this process that was committed, for every later look at the file."""
        self.last = _last_lines[self.path] = line


# ---------------------------------------------------------------- for readers


def all_lines(path: str | os.PathLike[str], head: str | None = None) -> list[Line]:
    """Return all lines of a ledger, once it was verified.

    Parameters
    ----------
    path : str or path
    head : str or None, default=None
        Hash of a line that was the last one at some time, kept elsewhere.

    Returns
    -------
    list of Line

    Raises
    ------
    PrivacyBudgetError
        If a line was changed or removed, or no line has that hash.
    """
    file = Path(path).resolve()
    with reading(file) as connection:
        lines = lines_after(file, connection, None)
    if head is not None and head not in {line.hash for line in lines}:
        _refuse(file, f"no line has the hash {shown(head)}: an earlier state was restored")
    return lines


def charges_in(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that are charges."""
    return [line for line in lines if line.entry["kind"] == "charge"]


def verify(lines: Sequence[Line]) -> str:
    """Return the totals of a ledger's budgets, and its head, in words.

    Totals are computed anew from the statements, as for the charges, not read from the lines.

    Raises
    ------
    PrivacyBudgetError
        If a budget is overspent.
    """
    text = []
    for budget in (line.entry for line in lines if line.entry["kind"] == "budget"):
        key = budget["data"], budget["unit"]
        mine = [one for one in charges_in(lines) if (one.entry["data"], one.entry["unit"]) == key]
        costs = [Cost.of(_statement_in(line)) for line in mine]
        total = composed("ledger", costs, budget["delta"]).price()[0] if costs else 0.0
        said = (
            f"{key[0]}, each {key[1]}: epsilon={total:.6g} of {float(budget['epsilon']):g} at "
            f"delta={budget['delta']:g}, {counted(len(mine), 'charge')}"
        )
        if not total <= float(budget["epsilon"]):
            raise PrivacyBudgetError(f"The ledger is overspent: {said}.")
        text.append(said)
    head = f"{len(lines)} lines, chain complete, nothing overspent. head {lines[-1].hash}"
    return "\n".join([*text, head])


def run_command(arguments: Sequence[str]) -> int:
    """Run ``python -m skdp ledger``, which writes nothing to the file.

    Parameters
    ----------
    arguments : sequence of str

    Returns
    -------
    int
        Exit status: 1 if the ledger was changed, cut short or overspent.
    """
    parser = argparse.ArgumentParser(
        prog="python -m skdp ledger", description="Verify the ledger of a PrivacyBudget."
    )
    parser.add_argument("action", choices=["verify"])
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "--head", metavar="HASH", help="hash of a line, kept elsewhere, that must be there"
    )
    options = parser.parse_args(arguments)
    try:
        print(verify(all_lines(options.file, options.head)))
    except PrivacyBudgetError as error:
        print(error)
        return 1
    return 0
