"""A budget across fits: charged before each of them, never copied, bound to its process."""

from __future__ import annotations

import html
import math
import os
import threading
import uuid
from dataclasses import replace
from typing import Any, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

from skdp import accounting
from skdp._numbers import is_real, require, shown
from skdp.accounting.accountant import candidates
from skdp.fitting.assumptions import ANY_ORDER, NO_RETURNED_TARGET, NOT_SCORES, SETTLED
from skdp.fitting.between_fits import RETURNED_TARGET, FitData, FitHistory

# Accountants whose totals hold for budgets that are chosen on the way: for Gaussian DP, Smith and
# Thakurta 2022 and Koskela, Tobaben, Honkela 2023; for sums of epsilons, Rogers et al. 2016.
FILTERS = ("gdp", "pure")

IN_PROCESS = (
    "A budget counts in the process that made it, and nowhere else. Fit there (n_jobs=1), or in "
    'its threads (with joblib.parallel_config(backend="threading"): ...), or make a budget in each '
    "worker, their epsilons and deltas adding up to the whole. Nothing was released."
)

_known: WeakValueDictionary[str, PrivacyBudget] = WeakValueDictionary()  # by key
_histories: WeakKeyDictionary[PrivacyBudget, FitHistory] = WeakKeyDictionary()

# Budgets whose ``with`` block is open. A context variable would not reach the threads of a pool, so
# a block charges the fits of all threads: it may count too much, never too little.
_open: list[PrivacyBudget] = []
_lock = threading.RLock()
_program = uuid.uuid4().hex


class PrivacyBudgetError(ValueError):
    """A privacy budget refused a fit. Nothing was released and nothing was charged."""


def check_budget(epsilon: object, delta: object) -> None:
    """Raise ValueError unless epsilon > 0 and 0 <= delta < 1."""
    allowed = "be a positive number, or inf for no privacy at all"
    require("epsilon", epsilon, allowed, is_real(epsilon) and epsilon > 0)
    require("delta", delta, "be a number in [0, 1)", is_real(delta) and 0 <= delta < 1)


def process_id() -> str:
    """Name of this process, which its forks do not share."""
    return f"{_program}-{os.getpid()}"


class PrivacyBudget:
    """A budget that several fits share.

    Each fit is charged before it uses the rows. The one which would bring the total over
    ``epsilon`` is refused, and costs nothing; a fit that fails half way keeps its debt. The total
    is that of all releases composed, which is less than the sum of the fits' epsilons.

    Use it as a context manager, which charges every fit of the process while its block is open,
    in whatever thread; where blocks are nested, all of the budgets are charged. Or pass it to
    estimators as ``budget``; clones share it. It counts in the process that made it: a fit in
    another process is refused, not forgotten.

    Parameters
    ----------
    epsilon : float
        Positive; inf refuses nothing and only counts.
    delta : float
        In [0, 1): the delta at which the total is priced.
    adjacency : {"zero_out", "replace_one", "label"}, default="zero_out"
        Fits under the other adjacency are refused.
    accountant : str, default="auto"
        Who prices the total; "auto" for the least certified epsilon. With "gdp" only fits of
        Gaussian releases, on all rows or on disjoint blocks, are admitted (with "pure", only those
        with pure guarantees), and the total holds even if the fits' own budgets are chosen by
        looking at earlier models (Koskela, Tobaben, Honkela 2023; Rogers et al. 2016).
    allow_seeded_noise : bool, default=False
        Whether to admit fits with `SeededNoise`, which are not private; for tests.

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

    def __init__(
        self,
        epsilon: float,
        delta: float,
        adjacency: str = "zero_out",
        accountant: str = "auto",
        *,
        allow_seeded_noise: bool = False,
    ) -> None:
        check_budget(epsilon, delta)
        candidates(accountant)
        if not isinstance(allow_seeded_noise, bool):
            raise ValueError(
                f"allow_seeded_noise must be True or False; got {shown(allow_seeded_noise)}."
            )
        accounting.Adjacency.parse(adjacency, labels=True)
        self._terms = float(epsilon), abs(float(delta)), str(adjacency), accountant
        self._allow_seeded_noise = allow_seeded_noise
        self._total: accounting.PrivacyStatement | None = None
        self._n_fits = 0
        self._seeds: set[str] = set()
        self.process: str | None = process_id()
        self._key = uuid.uuid4().hex
        _known[self._key] = self

    @property
    def epsilon(self) -> float:
        """What may be spent."""
        return self._terms[0]

    @property
    def delta(self) -> float:
        """Where the total is priced."""
        return self._terms[1]

    @property
    def adjacency(self) -> str:
        """Neighbouring relation of the total."""
        return self._terms[2]

    @property
    def accountant(self) -> str:
        """Who prices the total."""
        return self._terms[3]

    @property
    def allow_seeded_noise(self) -> bool:
        """Whether fits with reproducible noise are admitted."""
        return self._allow_seeded_noise

    # ------------------------------------------------------------------ what it tells

    @property
    def spent(self) -> float:
        """Certified epsilon of all fits so far, at the budget's delta."""
        self._require_process("reading what is spent")
        return 0.0 if self._total is None else self._total.epsilon

    @property
    def n_fits(self) -> int:
        """Number of fits that were charged."""
        self._require_process("counting the fits")
        return self._n_fits

    @property
    def statement(self) -> accounting.PrivacyStatement:
        """Privacy statement of all fits so far together."""
        self._require_process("reading the statement")
        if self._total is None:
            return accounting.PrivacyStatement(
                0.0, self.delta, self.adjacency, "none", (), (), "system"
            )
        chosen = ANY_ORDER.format(self.accountant) if self.accountant in FILTERS else SETTLED
        returned = [NO_RETURNED_TARGET] if self.adjacency == accounting.LABEL else []
        said = NOT_SCORES, chosen, *returned
        return replace(self._total, assumptions=(*said, *self._total.assumptions))

    def remaining_epsilon(self, delta: float | None = None) -> float:
        """Return the largest epsilon that one more fit of full-batch Gaussian releases may have.

        Parameters
        ----------
        delta : float or None, default=None
            That fit's delta; None for the budget's own.

        Returns
        -------
        float
            Usually more than ``epsilon - spent``, since compositions cost less than sums; 0.0 where
            no such fit is admitted. Fits with batches may be allowed more, or less.
        """
        delta = self.delta if delta is None else delta
        check_budget(1.0, delta)
        self._require_process("reading what is left")
        if math.isinf(self.epsilon):
            return math.inf
        mu = self._remaining_mu()
        return accounting.gaussian_epsilon(mu, delta) * (1 - 1e-9) if mu > 0 and delta > 0 else 0.0

    def _remaining_mu(self) -> float:
        _, delta, name, accountant = self._terms
        adjacency = accounting.Adjacency.parse(name, labels=True)
        event = accounting.Composed() if self._total is None else self._total.event
        high = accounting.gaussian_mu(self.epsilon, delta) if delta > 0 else 0.0
        exact = accounting.GDPAccountant()
        if accountant in ("auto", "gdp") and exact.why_unsupported(event, adjacency) is None:
            return math.sqrt(max(0.0, high**2 - exact.mu(event, adjacency) ** 2))

        def admitted(mu: float) -> bool:
            noise = accounting.Gaussian(1.0).sensitivity(adjacency) / mu
            try:
                spent, _ = accounting.price(
                    accounting.Composed(((event, 1), (accounting.Gaussian(noise), 1))),
                    delta,
                    adjacency,
                    accountant,
                )
            except accounting.UnknownCost:
                return False
            return spent <= self.epsilon

        low = 0.0
        while high - low > 1e-3 * self.epsilon and high > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if admitted(middle) else (low, middle)
        return low

    def __repr__(self) -> str:
        head = f"<PrivacyBudget: epsilon={self.epsilon:g}, delta={self.delta:g}, {self.adjacency}"
        if self.process != process_id():
            return f"{head}, of another process>"
        return f"{head}, {self.spent:.6g} spent by {self._n_fits} fit{'s' * (self._n_fits != 1)}>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.statement._repr_html_()}"

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

    # ------------------------------------------------------------------ never two of one

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # No amount spent travels: what comes back is this very budget, or one that admits nothing.
        return _recall, (self._key, *self._terms)

    # ------------------------------------------------------------------ the charge

    def _require_process(self, what: str) -> None:
        if self.process != process_id():
            raise PrivacyBudgetError(f"{self!r} refused {what} in this process. {IN_PROCESS}")

    def admit(
        self, who: str, stated: accounting.PrivacyStatement, seed: str | None
    ) -> accounting.PrivacyStatement:
        """Return the total with one more fit, or raise and leave everything as it was."""
        self._require_process(f"a fit of {who}")
        plan = f"{who} asked for epsilon={stated.epsilon:.6g}, delta={stated.delta:.6g}"
        end = "It was refused; nothing was released and nothing was charged."
        unit = (self._total or stated).unit
        if (stated.adjacency, stated.unit) != (self.adjacency, unit):
            raise PrivacyBudgetError(
                f"{plan}, under {stated.adjacency!r} for each {stated.unit}, but its budget "
                f"{self!r} counts under {self.adjacency!r} for each {unit}. {end}"
            )
        if stated.noise_source == "seeded" and not self.allow_seeded_noise:
            raise PrivacyBudgetError(
                f"{plan}, with seeded noise, but its budget {self!r} counts private fits "
                "only, and noise that can be reproduced can be subtracted. Leave noise="
                f"'system', or allow it by PrivacyBudget(..., allow_seeded_noise=True). {end}"
            )
        if seed is not None and seed in self._seeds:
            raise PrivacyBudgetError(
                f"{plan}, with the seed of an earlier fit in its budget {self!r}. Both would draw "
                "the same noise, which cancels in the difference of the two models; use "
                f"another seed, or noise='system'. {end}"
            )
        earlier = () if self._total is None else (self._total,)
        try:
            total = accounting.compose_statements(
                (*earlier, stated), delta=self.delta, accountant=self.accountant
            )
        except accounting.UnknownCost as reason:
            raise PrivacyBudgetError(
                f"{plan}, which its budget {self!r} cannot price. {reason} {end}"
            ) from reason
        if not total.epsilon <= self.epsilon:
            left = self.remaining_epsilon(stated.delta) if stated.delta > 0 else 0.0
            raise PrivacyBudgetError(
                f"{plan}, which would bring the total at delta={self.delta:g} to epsilon="
                f"{total.epsilon:.6g}, but its budget allows {self.epsilon:.6g}, of which "
                f"{self.spent:.6g} is spent by {self._n_fits} fit{'s' * (self._n_fits != 1)}. One "
                f"more full-batch fit can ask for epsilon={left:.6g} at most. For a search use "
                "DPSearchCV, or price it before its fit: privacy_of(search, n_samples=...). "
                f"{end}"
            )
        return total

    def record(self, total: accounting.PrivacyStatement, seed: str | None) -> None:
        """Write the debt down. There is no way to take it back."""
        self._total = total
        self._n_fits += 1
        self._seeds.update(() if seed is None else (seed,))


def _recall(
    key: str, epsilon: float, delta: float, adjacency: str, accountant: str
) -> PrivacyBudget:
    """Return the budget itself in the process that holds it, elsewhere one that admits nothing."""
    held = _known.get(key)
    if held is None:
        held = PrivacyBudget(epsilon, delta, adjacency, accountant)
        del _known[held._key]
        held._key, held.process = key, None
    return held


def charge(
    who: str,
    stated: accounting.PrivacyStatement,
    budget: PrivacyBudget | None,
    seed: str | None,
    foreign_process: str | None,
    data: FitData | None = None,
) -> None:
    """Charge a fit, before it uses rows, to its own budget and to all whose block is open.

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
    foreign_process : str or None
        The process with the open budget in whose block the estimator was pickled.
    data : FitData or None, default=None
        The rows of one fit in memory.

    Raises
    ------
    PrivacyBudgetError
        If a budget does not admit the fit, or cannot be reached. None is charged then.
    """
    if foreign_process is not None:
        raise PrivacyBudgetError(
            f"{who} asked for a fit in a worker process, but it was sent there from inside the "
            "block of a PrivacyBudget of another process, which would not be charged. "
            f"{IN_PROCESS} (For a fit that this budget has nothing to do with, make a new {who}.)"
        )
    with _lock:
        budgets = list(dict.fromkeys([*_open, *([] if budget is None else [budget])]))
        totals = [item.admit(who, stated, seed) for item in budgets]  # all do, or none is charged
        histories = [_histories.setdefault(item, FitHistory()) for item in budgets]
        if data is not None and any(history.has_target_among(data) for history in histories):
            raise PrivacyBudgetError(RETURNED_TARGET.format(who))
        # From here on the debts stand, whatever becomes of the fit.
        for item, total in zip(budgets, totals, strict=True):
            item.record(total, seed)
        if data is not None:
            for history in histories:
                history.add(data)


def process_of_open_budget(known: str | None) -> str | None:
    """Return the process whose open budgets an estimator belongs to as it is pickled, if any."""
    with _lock:
        return known or next((budget.process for budget in _open), None)


def _renew_lock() -> None:
    """In a forked process: another thread may have held the lock in that moment."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
