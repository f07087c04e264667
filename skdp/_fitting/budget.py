"""A budget across fits: charged before each of them, never copied.

It counts in the process that made it, or in a file that all processes share.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import secrets
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Self, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from scipy import sparse

from skdp import accounting
from skdp._fitting import assumptions, parts
from skdp._fitting import ledger as ledgers
from skdp._fitting.data import Data
from skdp._fitting.ledger import Identity, PrivacyBudgetError
from skdp._fitting.user_warnings import PrivacyWarning
from skdp._numbers import AnyArray, Table, are_numbers, require
from skdp._warnings import warn
from skdp.accounting.cost import Cost, Part
from skdp.accounting.interchange import from_plain, plain
from skdp.accounting.pricing import check_budget

# Theorems whose totals keep to a budget even if fits are chosen by looking at earlier models: for
# Gaussian DP, Smith and Thakurta 2022 and Koskela, Tobaben, Honkela 2023. For sums of epsilons,
# Rogers et al. 2016.
FILTERS = ("gdp", "pure")

NOT_NAMES = ("inf", "-inf", "nan")  # which files keep for numbers

IN_PROCESS = (
    "A budget without a ledger counts only in the process that made it. Fit there (n_jobs=1), or "
    'in its threads (with joblib.parallel_config(backend="threading"): ...), or make a budget in '
    'each worker, or one with a ledger, PrivacyBudget(..., ledger="charges.db"). Nothing was '
    "released."
)

SELECTED_RECORDS = (
    "PrivacyBudget: the fits in this block had different numbers of records, and no split by skdp "
    "explains them. If the records were chosen by looking at them, as by OneVsOneClassifier, "
    "RANSACRegressor, SelfTrainingClassifier, IterativeImputer and scikit-learn's searches, the "
    "total does not hold. Use dp_train_test_split, dp_cross_validate or DPSearchCV instead."
)
RETURNED_TARGET = (
    "{}: a column of X, or the offset, equals the target of an earlier fit in its budget, as in "
    "RegressorChain and ClassifierChain, and adjacency='label' treats it as public. Use "
    "adjacency='replace_one', or fit the targets separately (MultiOutputRegressor, "
    "MultiOutputClassifier). The fit was refused, nothing was released, and nothing was charged."
)
SHARED_ROWS = (
    "{}: some of these rows were fitted as another part of the people, and no person is in two "
    "parts of one budget. Fit on them outside of any part. It was refused, and nothing was "
    "released and nothing was charged."
)
CHANGING_WEIGHTS = (
    "PrivacyBudget: several fits in this block had sample weights that were not the same array. "
    "The total holds only if each weight is random, as in BaggingClassifier, or follows from its "
    "own record. The weights of AdaBoostClassifier follow from other records."
)

# Key of the fingerprints, new in each process, so that nobody can compare a guess with them.
_SECRET = secrets.token_bytes(32)

Connections: TypeAlias = dict[Path, sqlite3.Connection]
Rows: TypeAlias = tuple[Part, tuple[Table, ...]]  # the part that they are, and their arrays

_known: WeakValueDictionary[str, PrivacyBudget] = WeakValueDictionary()  # by key
_histories: WeakKeyDictionary[PrivacyBudget, FitHistory] = WeakKeyDictionary()

# Budgets whose ``with`` block is open. A context variable would not reach the threads of a pool, so
# a block charges the fits of all threads: it may count too much, never too little.
_open: list[PrivacyBudget] = []
_lock = threading.RLock()
_program = uuid.uuid4().hex


def process_id() -> str:
    """Name of this process, which its forks do not share."""
    return f"{_program}-{os.getpid()}"


class PrivacyBudget:
    """A budget that several fits share.

    Each fit is charged before it uses the rows. A fit that would bring the total over ``epsilon``
    is refused, and costs nothing. A fit that fails halfway stays charged. The total is the
    composition of all releases, which is less than the sum of the fits' epsilons.

    As a context manager it charges every fit of the process while its block is open, in all
    threads. In nested blocks all budgets are charged. Alternatively pass it to estimators as
    ``privacy=Privacy(budget=...)``, which clones share. Without a ledger it counts only in the
    process that made it, and refuses fits in other processes. With a ledger it charges the fits of
    all processes that share the file, also before a restart.

    Parameters
    ----------
    epsilon : float
        Positive. With inf, the budget refuses nothing and only counts.
    delta : float
        In [0, 1): the delta at which the total is priced.
    adjacency : {"zero_out", "replace_one", "label"}, default="zero_out"
        Fits under the other adjacency are refused.
    allow_seeded_noise : bool, default=False
        Whether to admit fits with `SeededNoise`, which are not private, for tests. Not with a
        ledger.
    unit : {"row", "group"} or None, default=None
        Unit of privacy. None means the unit of the first fit or, with a ledger, "row".
    ledger : str, path or None, default=None
        SQLite file on a local disk that keeps the charges, created if missing. A charge is
        committed before the fit uses rows.
    data : str, default="data"
        Name of the data in the ledger. The charges of one name and one unit share a budget, whose
        terms are recorded at its first use. Other terms are refused later.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    PrivacyBudgetError
        If the ledger cannot be used, or has other terms.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge, PrivacyBudget
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with PrivacyBudget(2.0, 1e-6) as budget:
    ...     models = [DPRidge(alpha, epsilon=1.0).fit(X, y) for alpha in (1.0, 10.0)]
    >>> round(budget.spent, 2)
    1.45
    """

    process: str | None  # that made it; None for a copy in another one
    _spent: float | None  # None if other processes were charged since

    def __init__(
        self,
        epsilon: float,
        delta: float,
        adjacency: str = "zero_out",
        *,
        allow_seeded_noise: bool = False,
        unit: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
        data: str = "data",
    ) -> None:
        check_budget(epsilon, delta)
        is_flag = isinstance(allow_seeded_noise, bool)
        require("allow_seeded_noise", allow_seeded_noise, "be True or False", is_flag)
        accounting.Adjacency.parse(adjacency, labels=True)
        require("unit", unit, "be None, 'row' or 'group'", unit in (None, "row", "group"))
        is_name = isinstance(data, str) and data.strip() == data != ""
        require("data", data, "be a name, without spaces around it", is_name)
        if ledger is not None:
            require("ledger", ledger, "be a path or None", isinstance(ledger, str | os.PathLike))
            allowed = "be False with a ledger, which counts private fits only"
            require("allow_seeded_noise", allow_seeded_noise, allowed, not allow_seeded_noise)
            ledger, unit = str(Path(ledger).resolve()), unit or "row"
        key = uuid.uuid4().hex if ledger is None else f"{ledger}\n{unit}\n{data}"
        terms = float(epsilon), abs(float(delta)), str(adjacency)
        self._set(Identity(key, process_id(), *terms, unit, ledger, data))
        self._allow_seeded_noise = allow_seeded_noise
        self.process = process_id()
        if self._account is not None:
            self._account.open()
        _known[self._key] = self  # now that the ledger has these very terms

    def _set(self, identity: Identity) -> None:
        """Set all attributes, as of a budget of another process that was charged nothing."""
        self._identity, self._key, self._unit = identity, identity.key, identity.unit
        self._allow_seeded_noise = False
        self._account = None if identity.ledger is None else ledgers.Account(identity)
        self._charged: Cost | None = None
        self._n_fits, self._spent = 0, 0.0
        self._seeds: set[str] = set()
        self.process = None

    epsilon = property(attrgetter("_identity.epsilon"), doc="Budget that may be spent.")
    delta = property(attrgetter("_identity.delta"), doc="Where the total is priced.")
    adjacency = property(attrgetter("_identity.adjacency"), doc="Relation of neighbouring data.")
    allow_seeded_noise = property(
        attrgetter("_allow_seeded_noise"), doc="Whether fits with reproducible noise are admitted."
    )

    # ------------------------------------------------------------------ what it tells

    @property
    def spent(self) -> float:
        """Certified epsilon of all fits so far, at the budget's delta."""
        self._look("reading what is spent")
        if self._spent is None:
            self._spent = 0.0 if self._charged is None else self._charged.price()[0]
        return self._spent

    @property
    def n_fits(self) -> int:
        """Number of fits, and of releases by other tools, that were charged."""
        self._look("counting the fits")
        return self._n_fits

    @property
    def statement(self) -> accounting.PrivacyStatement:
        """Privacy statement of all fits so far together."""
        self._look("reading the statement")
        said: list[str] = []
        if self._account is not None:
            said = [assumptions.IN_LEDGER.format(self._account.path.name, self._identity.data)]
        if self._charged is None:
            nothing = Cost((), self.delta, self.adjacency, assumptions=tuple(said))
            return nothing.certify(0.0, "none").statement()
        price = self._charged.price()
        is_filter = price[1] in FILTERS and self.epsilon < math.inf
        chosen = assumptions.ANY_ORDER if is_filter else assumptions.SETTLED
        returned = [assumptions.NO_RETURNED_TARGET] if self.adjacency == accounting.LABEL else []
        said = [assumptions.NOT_SCORES, chosen.format(self.epsilon), *said, *returned]
        every = (*said, *self._charged.assumptions)
        return replace(self._charged.certify(*price), assumptions=every).statement()

    def remaining_epsilon(self, delta: float | None = None) -> float:
        """Return the largest epsilon that one more fit of full-batch Gaussian releases may have.

        With a budget of ``delta=0``: one more fit with pure differential privacy.

        Parameters
        ----------
        delta : float or None, default=None
            That fit's delta. None for the budget's own.

        Returns
        -------
        float
            Usually more than ``epsilon - spent``, since compositions cost less than sums. 0.0 where
            no such fit is admitted. Fits with batches may be allowed more, or less.
        """
        delta = self.delta if delta is None else delta
        check_budget(1.0, delta)
        self._look("reading what is left")
        if math.isinf(self.epsilon):
            return math.inf
        if self.delta == 0:
            return max(0.0, self.epsilon - self.spent) if delta == 0 else 0.0
        mu = self._remaining_mu()
        return accounting.gaussian_epsilon(mu, delta) * (1 - 1e-9) if mu > 0 and delta > 0 else 0.0

    def _remaining_mu(self) -> float:
        adjacency = accounting.Adjacency.parse(self.adjacency, labels=True)
        charged = self._charged or Cost((), self.delta, self.adjacency)
        high = accounting.gaussian_mu(self.epsilon, self.delta)
        try:
            return math.sqrt(max(0.0, high**2 - accounting.event_mu(charged.event, adjacency) ** 2))
        except accounting.UnknownCost:
            pass  # other releases have no mu, and the price decides

        def admitted(mu: float) -> bool:
            noise = accounting.Gaussian(1.0).sensitivity(adjacency) / mu
            fit = accounting.ReleaseRecord.of("fit", accounting.Gaussian(noise))
            try:
                spent, _ = (charged + replace(charged, releases=(fit,))).price()
            except accounting.UnknownCost:
                return False
            return bool(spent <= self.epsilon)

        low = 0.0
        while high - low > 1e-3 * self.epsilon and high > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if admitted(middle) else (low, middle)
        return low

    def __repr__(self) -> str:
        head = f"<PrivacyBudget: epsilon={self.epsilon:g}, delta={self.delta:g}, {self.adjacency}"
        if self._account is None and self.process != process_id():
            return f"{head}, of another process>"
        try:
            spent = self.spent
        except PrivacyBudgetError:
            return f"{head}, with a ledger that cannot be read>"
        return f"{head}, {spent:.6g} spent by {self._n_fits} fit{'s' * (self._n_fits != 1)}>"

    # ------------------------------------------------------------------ as a context manager

    def __enter__(self) -> Self:
        self._require_process("opening its block")
        with _lock:
            _open.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        with _lock:  # blocks of several threads need not close in order
            del _open[max(place for place, item in enumerate(_open) if item is self)]
        if exception[:1] == (None,) and self in _histories:
            _histories[self].warn()

    @contextmanager
    def part(self, name: str) -> Iterator[Self]:
        """Charge the fits of a block to one part of the people, such as a region or a hospital.

        Fits in different parts cost their maximum (parallel composition, McSherry 2009, Thm 4).
        Fits in one part add up, and so do fits outside of any part, with all parts. Membership and
        sizes of the parts must be public, and no person may be in two parts of a budget. An array
        or table that comes back in another part is refused. Copies are not recognised.

        Parameters
        ----------
        name : str

        Yields
        ------
        PrivacyBudget
            This budget. The block of a part is also a block of its budget.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skdp import DPRidge, PrivacyBudget
        >>> X, y = load_diabetes(return_X_y=True)
        >>> budget = PrivacyBudget(1.0, 1e-6)
        >>> for name, rows in {"north": slice(0, 200), "south": slice(200, 442)}.items():
        ...     with budget.part(name):
        ...         model = DPRidge(epsilon=1.0).fit(X[rows], y[rows])
        >>> round(budget.spent, 2), budget.n_fits
        (1.0, 2)
        """
        is_name = isinstance(name, str) and name.strip() == name != "" and name not in NOT_NAMES
        require("PrivacyBudget.part: name", name, "be a name, without spaces around it", is_name)
        key = hashlib.blake2b(self._key.encode(), digest_size=16).hexdigest()
        people = accounting.Partition(0, None, shared=key)
        with self, parts.fits_on_people("PrivacyBudget.part", people, name):
            yield self

    # ------------------------------------------------------------------ never two of one

    def __copy__(self, *memo: object) -> Self:
        return self

    __deepcopy__ = __sklearn_clone__ = __copy__

    def __reduce__(self) -> tuple[Table, ...]:
        # No amount spent travels: what comes back is this very budget, one of the same ledger, or
        # one that admits nothing.
        return _recall, tuple(self._identity)

    # ------------------------------------------------------------------ the charge

    def _require_process(self, what: str) -> None:
        if self._account is None and self.process != process_id():
            raise PrivacyBudgetError(f"{self!r} refused {what} in this process. {IN_PROCESS}")

    def _catch_up(self, opened: Connections) -> None:
        """Read what other processes were charged since, nothing without a ledger."""
        if self._account is not None:
            charges, last = self._account.read(opened[self._account.path])
            for stated in charges:
                self._add(stated)
            # Last: were it interrupted before, charges are counted twice rather than never.
            self._account.last = last

    def _with(self, stated: accounting.PrivacyStatement) -> Cost:
        """Return the cost of all fits and one more, at the budget's delta."""
        cost = replace(Cost.of(stated), delta=self.delta)
        return cost if self._charged is None else self._charged + cost

    def _add(self, stated: accounting.PrivacyStatement, total: float | None = None) -> None:
        """Count one more fit, which brings the total to this epsilon if it is known."""
        self._charged, self._spent = self._with(stated), total
        self._n_fits += 1

    def _look(self, what: str) -> None:
        """Bring the total up to date. PrivacyBudgetError where it is not known."""
        self._require_process(what)
        if self._account is not None:
            with _lock, ledgers.reading(self._account.path) as connection:
                self._catch_up({self._account.path: connection})

    def _admit(self, who: str, stated: accounting.PrivacyStatement, seed: str | None) -> float:
        """Return the epsilon of all with one more fit, or raise and leave everything as it was."""
        self._require_process(f"a fit of {who}")
        plan = f"{who} requested epsilon={stated.epsilon:.6g}, delta={stated.delta:.6g}"
        end = "It was refused, and nothing was released and nothing was charged."
        unit = self._unit or (self._charged or stated).unit
        if (stated.adjacency, stated.unit) != (self.adjacency, unit):
            raise PrivacyBudgetError(
                f"{plan}, under {stated.adjacency!r} for each {stated.unit}, but its budget "
                f"{self!r} counts under {self.adjacency!r} for each {unit}. {end}"
            )
        if stated.noise_source == "seeded" and not self.allow_seeded_noise:
            raise PrivacyBudgetError(
                f"{plan}, with seeded noise, but its budget {self!r} counts private fits only. Use "
                f"noise='system', or allow it by PrivacyBudget(..., allow_seeded_noise=True). {end}"
            )
        if seed is not None and seed in self._seeds:
            raise PrivacyBudgetError(
                f"{plan}, with the seed of an earlier fit in its budget {self!r}: both would draw "
                f"the same noise. Use another seed, or noise='system'. {end}"
            )
        try:
            total, _ = self._with(stated).price()
        except accounting.UnknownCost as reason:
            raise PrivacyBudgetError(
                f"{plan}, which its budget {self!r} cannot price. {reason} {end}"
            ) from reason
        if not total <= self.epsilon:
            left = self.remaining_epsilon(stated.delta)
            room = f"One more full-batch fit can have epsilon={0.99999 * left:.6g} at most. "
            raise PrivacyBudgetError(
                f"{plan}, which would bring the total at delta={self.delta:g} to epsilon="
                f"{total:.6g}, but its budget allows {self.epsilon:.6g}, of which "
                f"{self.spent:.6g} is spent by {self._n_fits} fit{'s' * (self._n_fits != 1)}. "
                f"{room * (left > 0)}For a search use DPSearchCV, or price it before its fit: "
                f"privacy_of(search, n_samples=...). {end}"
            )
        return total

    def charge_external(self, event: Any, note: str) -> None:
        """Charge a release by another tool on the same data, before it is made.

        All budgets whose block is open are charged as well, or none.

        Parameters
        ----------
        event : Event
            The release: an event of `skdp.accounting`, such as ``Laplace(2.0, spread=1)`` for a
            count, or ``ApproximateDP(epsilon, delta)`` if only the guarantee is known. It is
            charged as stated.
        note : str
            Its description, for the statement and the ledger.

        Raises
        ------
        PrivacyBudgetError
            If a budget does not admit it. Nothing was charged: do not make the release.
        ValueError
            If it is no such event.
        """
        require("note", note, "say what is released", isinstance(note, str) and note.strip() != "")
        is_event = isinstance(event, accounting.Event)
        require("event", event, "be one of skdp.accounting, such as ApproximateDP", is_event)
        event = from_plain(plain(event))  # priced with the numbers that a ledger keeps
        with _lock:
            unit = self._unit or (self._charged.unit if self._charged is not None else "row")
        record = accounting.ReleaseRecord.of("external release", event)
        assumed = (assumptions.EXTERNAL.format(note),)
        part = parts.part_of(unit=str(unit))
        cost = Cost((record,), self.delta, self.adjacency, str(unit), None, assumed, part=part)
        charge("external", cost.statement(), self, None)


def _recall(*given: Any) -> PrivacyBudget:
    """Return a budget by its identity. In another process, without a ledger, it admits no fit."""
    identity = Identity(*given)
    held = _known.get(identity.key)
    if held is None:
        held = object.__new__(PrivacyBudget)
        held._set(identity)
        _known[held._key] = held
    return held


def charge(
    who: str,
    stated: accounting.PrivacyStatement,
    budget: PrivacyBudget | None,
    seed: str | None,
    sent: tuple[tuple[Any, ...], ...] = (),
    data: Data | None = None,
    rows: Rows = ((), ()),
) -> None:
    """Charge a fit, before it reads rows, to its own budget and to all budgets in open blocks.

    Parameters
    ----------
    who : str
        The estimator, for messages.
    stated : PrivacyStatement
        The plan of the fit.
    budget : PrivacyBudget or None
        The estimator's own.
    seed : str or None
        Fingerprint of the seed of its noise, if it has one.
    sent : tuple of tuple, default=()
        The budgets of another process in whose block the estimator was pickled.
    data : FitData or None, default=None
        The rows of one fit in memory.
    rows : tuple of (Part, tuple)
        The part of the rows, and the arrays that were given for them.

    Raises
    ------
    PrivacyBudgetError
        If a budget does not admit the fit, or cannot be reached. None is charged then.
    """
    around = [_recall(*identity) for identity in sent]
    if any(item._account is None for item in around):
        raise PrivacyBudgetError(
            f"{who} requested a fit or a score in a worker process, but its estimator was sent "
            "there from inside the block of a PrivacyBudget of another process, which would not be "
            f"charged. {IN_PROCESS}"
        )
    with _lock:
        every = [*_open, *around, *([] if budget is None else [budget])]
        budgets = list({item._key: item for item in every}.values())
        paths = {item._account.path for item in budgets if item._account is not None}
        with ExitStack() as files:
            # In one order, so that no two processes wait for each other.
            opened = {path: files.enter_context(ledgers.writing(path)) for path in sorted(paths)}
            for item in budgets:
                item._catch_up(opened)
            # All admit it, or none is charged.
            totals = [item._admit(who, stated, seed) for item in budgets]
            histories = [_histories.setdefault(item, FitHistory()) for item in budgets]
            if data is not None and any(one.refuses(data, stated) for one in histories):
                raise PrivacyBudgetError(RETURNED_TARGET.format(who))
            if any(one.shares_rows(*rows) for one in histories):
                raise PrivacyBudgetError(SHARED_ROWS.format(who))
            lines = [  # which take effect with the commit
                (item._account, item._account.write(opened[item._account.path], who, stated, total))
                for item, total in zip(budgets, totals, strict=True)
                if item._account is not None
            ]
        # From here on the debts stand, whatever becomes of the fit.
        for item, total in zip(budgets, totals, strict=True):
            item._add(stated, total)
            if seed is not None:
                item._seeds.add(seed)
        for account, line in lines:
            account.remember(line)
        for history in histories:
            history.add_rows(*rows)
            if data is not None:
                history.add(rows[0], data, stated)


class FitHistory:
    """Inputs of the fits of one budget, without their rows."""

    def __init__(self) -> None:
        self._targets: set[bytes] = set()  # keyed fingerprints
        self._lengths: set[int] = set()  # of these targets
        self._n_records: set[tuple[Part, int]] = set()
        self._last_weights: dict[Part, weakref.ref[object]] = {}
        self._weights_change = False
        self._places: dict[Part, list[parts.Place]] = {}  # of the rows of each part of the people

    def shares_rows(self, part: Part, arrays: tuple[Table, ...]) -> bool:
        """Return whether arrays of a part of the people hold rows of another part.

        Contents of arrays are not compared: see `places_of`.
        """
        if not _is_named(part):
            return False
        others = (held for other, held in self._places.items() if other != part[:1])
        mine = parts.all_places(arrays)
        return any(parts.meet(held, mine) for held in others)

    def refuses(self, data: Data, stated: accounting.PrivacyStatement) -> bool:
        """Return whether X is public, and a column equals a target of an earlier fit, row by row.

        An offset is compared as a column of X is.
        Columns are compared in the order of the rows, and to float32's precision. Order matters:
        a comparison that ignored it would find a public indicator column that merely has as many
        ones as the targets, and the refusal would reveal that number.
        """
        if stated.adjacency != accounting.LABEL or data.X.shape[0] not in self._lengths:
            return False
        offsets = (np.asarray(one, dtype=float) for one in data.given[3:] if one is not None)
        tables = data.X, *(one.reshape(len(one), -1) for one in offsets)
        columns = itertools.chain(*map(_columns, tables))
        return any(_fingerprint(*column, data.X.shape[0]) in self._targets for column in columns)

    def add_rows(self, part: Part, arrays: tuple[Table, ...]) -> None:
        """Remember which rows a fit on a part of the people was given."""
        if _is_named(part):
            self._places.setdefault(part[:1], []).extend(parts.all_places(arrays))

    def add(self, part: Part, data: Data, stated: accounting.PrivacyStatement) -> None:
        """Remember a fit that was charged."""
        if stated.adjacency == accounting.LABEL:
            coded = data.targets.values
            coded = coded[:, :1] if data.has_offset and coded.ndim == 2 else coded
            for target in filter(are_numbers, (np.asarray(data.y), coded)):
                for column in target.reshape(len(target), -1).T:
                    # Columns of one value occur in many tables, and say nothing of single rows.
                    if (column != column[0]).any():
                        self._targets.add(_fingerprint(np.arange(len(column)), column, len(column)))
                        self._lengths.add(len(column))
        # A split explains what differs from part to part, not what differs within one.
        self._n_records.add((part, data.n_records))
        weights = data.given[2]
        if isinstance(weights, np.ndarray):
            known = self._last_weights.get(part)
            self._weights_change |= known is not None and known() is not weights
            self._last_weights[part] = weakref.ref(weights)

    def warn(self) -> None:
        """Warn if the inputs of the fits may result from an operation on rows between them."""
        if len(self._n_records) > len({part for part, _ in self._n_records}):
            warn(SELECTED_RECORDS, PrivacyWarning)
        if self._weights_change:
            warn(CHANGING_WEIGHTS, PrivacyWarning)


def _is_named(part: Part) -> bool:
    """Whether it is a part of the people, or a part of a split of one."""
    return bool(part) and isinstance(part[0][1], str)


def _columns(X: Table) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Yield the numbers of the rows that a column has entries in, and these."""
    if not sparse.issparse(X):
        places = np.arange(X.shape[0])
        for number in range(X.shape[1]):
            yield places, X[:, number]
        return
    by_column = sparse.csc_array(X)
    for start, stop in zip(by_column.indptr[:-1], by_column.indptr[1:], strict=True):
        yield by_column.indices[start:stop], by_column.data[start:stop]


def _fingerprint(places: AnyArray, values: AnyArray, n_rows: int) -> bytes:
    """Return a keyed fingerprint of a column, dense or sparse, to float32's precision."""
    nonzero = values != 0
    mantissa, exponent = np.frexp(values[nonzero].astype(np.float64))
    rounded = np.ldexp(mantissa.astype(np.float32).astype(np.float64), exponent)
    digest = hashlib.blake2b(n_rows.to_bytes(8, "little"), key=_SECRET, digest_size=16)
    digest.update(places[nonzero].astype(np.int64).tobytes())
    digest.update(rounded.tobytes())
    return digest.digest()


def identities_of_open_budgets(known: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
    """Return the open budgets that an estimator belongs to as it is pickled, and those known."""
    with _lock:
        return tuple(dict.fromkeys((*known, *(tuple(budget._identity) for budget in _open))))


def of_other_processes(sent: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
    """Return the budgets of other processes. This process knows its own open budgets."""
    return tuple(identity for identity in sent if Identity(*identity).process != process_id())


def _renew_lock() -> None:
    """In a forked process: another thread may have held the lock in that moment."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
