"""Interface of solvers to the rows: every answer is charged before it is computed."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from skdp._numbers import Array
from skdp._oracle.noise import NoiseSource
from skdp._oracle.public import Public
from skdp._oracle.releases import base
from skdp._oracle.releases.gradients import GradientDifference, noisy_gradient
from skdp._oracle.releases.mechanisms import (
    ALL_ROWS,
    Cut,
    GaussianNoise,
    NoisyStatistic,
    Sampler,
    mechanism_by_name,
)
from skdp._oracle.sources.base import RepeatableSource, Source, require_kind
from skdp._oracle.sources.column_map import Columns, Scaling, Weights
from skdp._oracle.sources.row_blocks import LONGEST_BASE
from skdp._oracle.sources.stream import StreamSource
from skdp.accounting import Adjacency, Event, Gaussian, ReleaseRecord
from skdp.objective import Problem

Checkpoint = Callable[[Array, float], None]


# ---------------------------------------------------------------- the ledger of debts


class PlanError(RuntimeError):
    """A solver requested something that its rehearsal did not announce."""


class BudgetError(RuntimeError):
    """A solver requested more than the rest of its budget."""


@dataclass(frozen=True)
class Entry:
    """A run of equal debts. Noise is relative: the calibrated scale is not in it."""

    kind: str
    event: Event
    count: int = 1

    def record(self, scale: float) -> ReleaseRecord:
        """Return the releases at a calibrated scale, for a statement.

        Returns
        -------
        ReleaseRecord
        """
        return ReleaseRecord.of(self.kind, self.event.scaled(scale), self.count)


class Guard(ABC):
    """Says whether the next debt may be made."""

    @abstractmethod
    def admit(self, kind: str, event: Event) -> None:
        """Record the next charge, or raise without any change."""


class AdmitAll(Guard):
    """The guard of a rehearsal, where there are no rows to protect."""

    def admit(self, kind: str, event: Event) -> None:
        """Admit it."""


class FollowPlan(Guard):
    """Admits the charges of a plan in their order. A run may stop early."""

    def __init__(self, plan: tuple[Entry, ...]) -> None:
        self._plan = plan
        self._position = 0
        self._used = 0

    def admit(self, kind: str, event: Event) -> None:
        """Admit the plan's next debt, and no other."""
        if self._position == len(self._plan):
            raise PlanError(
                f"the solver requested a {kind!r} release after the end of its plan. "
                "It was refused and nothing more was released."
            )
        expected = self._plan[self._position]
        if (kind, event) != (expected.kind, expected.event):
            raise PlanError(
                f"the solver requested a {kind!r} release with {event!r}, but its plan has a "
                f"{expected.kind!r} release with {expected.event!r} next. It was refused and "
                "nothing more was released."
            )
        self._used += 1
        if self._used == expected.count:
            self._position, self._used = self._position + 1, 0


class PrivacyFilter(Guard):
    """A privacy filter: Gaussian releases whose noise is decided on the way.

    Admits full-batch Gaussian releases while the sum of squared mu stays at most 1, in the relative
    units in which one gradient release with noise 1 spends the whole budget. It may be steered by
    earlier answers (Smith and Thakurta 2022, "Fully adaptive composition for Gaussian
    differential privacy", Thm 2): the sequence is mu-GDP as if it had been fixed beforehand.
    """

    # The papers print "runs if the step costs less than what is left". An exact schedule would lose
    # its last step to that, so equality up to rounding is admitted and the scale pays for it.
    SLACK = 1e-9

    def __init__(self, adjacency: Adjacency) -> None:
        self._adjacency = adjacency
        self.spent = 0.0

    @classmethod
    def whole_budget(cls) -> Gaussian:
        """Return the release that spends everything at once, the rounding slack included."""
        return Gaussian((1 + cls.SLACK) ** -0.5)

    def admit(self, kind: str, event: Event) -> None:
        """Admit a Gaussian release that fits in the rest of the budget."""
        if not isinstance(event, Gaussian):
            raise BudgetError(
                f"a privacy filter admits Gaussian releases over all rows only. The {kind!r} "
                f"release is {event!r}. Nothing more was released."
            )
        unit = Gaussian(1.0).sensitivity(self._adjacency)
        noise = event.noise_multiplier
        cost = (event.sensitivity(self._adjacency) / unit / noise) ** 2 if noise > 0 else math.inf
        if self.spent + cost > 1 + self.SLACK:
            raise BudgetError(
                f"the {kind!r} release would cost {cost:.6g} of the budget, of which "
                f"{max(0.0, 1 - self.spent):.6g} is left. Nothing more was released."
            )
        self.spent += cost


class Ledger:
    """Debts in the order in which they were made."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._entries: list[Entry] = []

    def charge(self, kind: str, event: Event, count: int = 1) -> None:
        """Write a debt down, if the guard admits it. It cannot be undone."""
        self._guard.admit(kind, event)
        last = self._entries[-1] if self._entries else None
        if last is not None and last.kind == kind and last.event == event:
            self._entries[-1] = Entry(kind, event, last.count + count)
        else:
            self._entries.append(Entry(kind, event, count))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The debts, runs of equal ones merged."""
        return tuple(self._entries)


# ---------------------------------------------------------------- the oracle


class Oracle:
    """Answers questions about rows that its user never sees.

    Attributes
    ----------
    public : Public
        Public facts.
    problem : Problem
        The loss, penalty and constraint of the fit.
    rng : numpy.random.Generator
        For a solver's own choices that need no secrecy, such as which iterate to return.
    n_gradients : float
        Gradients of single records released so far, samples counted by their expected size.
    gradient_lengths : list of float
        Lengths of the gradients answered so far. Where there is noise, none are kept.
    scaling : Scaling or None
        How the records that it answers for are standardised.
    checkpoint : callable
        Lets the stages run that have their place after half of a solver's steps. Solvers call it
        that can continue from the same point with records that are clipped less. Arguments are that
        point, without much of the noise of the last steps, and the total share of the solver's own
        releases, in the unit of the shares of `with_share`.
    """

    def __init__(
        self,
        context: base.PublicContext,
        ledger: Ledger,
        rng: np.random.Generator,
        source: Source | None = None,
        noise_source: NoiseSource | None = None,
        on_release: Callable[[str], None] | None = None,
    ) -> None:
        self.public: Public = context.public
        self.problem: Problem = context.problem
        self.rng = rng
        self.n_gradients: float = 0.0
        self.gradient_lengths: list[float] = []
        self.scaling: Scaling | None = None
        self.checkpoint: Checkpoint = lambda point, spent: None
        self._context, self._ledger = context, ledger
        self._source, self._noise_source, self._on_release = source, noise_source, on_release
        self._given = source  # before any scaling
        self._held: Source | None = None  # first records of a stream
        self._scale, self._noise_unit = context.scale, 1.0
        self._last_event: tuple[Event, Event] | None = None
        self._last_rehearsed: tuple[object, tuple[str, Event, float, Array]] | None = None

    def request(self, release: base.Release) -> Array:
        """Charge a release to the ledger, then answer it.

        Parameters
        ----------
        release : Release
            Audited, and made of audited parts.

        Returns
        -------
        array
            The noisy answer. In a rehearsal, noise of the right shape.

        Raises
        ------
        NotAudited
            If the release or a part of it is not on the list. Nothing is charged.
        ValueError
            If it needs something that the place where the rows live does not provide. Nothing is
            charged.
        PlanError, BudgetError
            If the guard refuses the debt. Nothing is charged or released.
        """
        base.require_audited(release)
        for part in release.parts():
            base.require_audited(part)
        missing = release.needs - self.public.provides
        if missing:
            raise ValueError(
                f"a {release.kind!r} release needs {' and '.join(sorted(missing))}, which this "
                "fit does not have. Rows in memory have it. Nothing was released for it."
            )
        if self.public.grouped and not release.takes_groups:
            raise ValueError(
                f"a {release.kind!r} release is for single rows: its proof does not hold for "
                "groups of rows, or its code does not allow for them. Fit without groups, or with "
                "another solver, such as 'gd'. Nothing was released for it."
            )
        context = self._context
        release.std(context)  # raises where no such noise can be drawn, before the debt
        event = release.event(context)
        is_public = release.is_public(context)
        if not is_public:
            self._ledger.charge(release.kind, self._in_units_of_plan(event))
        self.n_gradients += release.n_gradients(context)
        if self._source is None or self._noise_source is None:
            return release.placeholder(context, self.rng)
        if not is_public:
            self._noise_source.record_charge(
                release.kind, self.public.event_on(event), context.scale, self.public.adjacency
            )
            if self._on_release is not None:
                self._on_release(release.kind)
        with self._noise_source.answering():
            return release.answer(self._source, context, self._noise_source)

    def _in_units_of_plan(self, event: Event) -> Event:
        """Return the event with its noise in units of the plan. Equal steps share one object."""
        if self._last_event is None or self._last_event[0] != event:
            on_records = self.public.event_on(event)
            self._last_event = event, on_records.scaled(self._noise_unit)
        return self._last_event[1]

    def gradient(
        self,
        point: Array,
        clip_norm: float,
        noise: float = 1.0,
        sampler: Sampler | None = None,
        mechanism: str = "gaussian",
    ) -> Array:
        """Noisy mean gradient of the loss at ``point``. Penalties are the solver's to add.

        Parameters
        ----------
        point : array of shape ``public.shape``
        clip_norm : float
            Bound of one record's gradient, in L2 norm for Gaussian and in L1 norm for Laplace
            noise.
        noise : float, default=1.0
            How noisy, relative to the solver's other releases.
        sampler : Sampler or None, default=None
            The rows to use. None means all.
        mechanism : {"gaussian", "laplace"}, default="gaussian"
            Distribution of the noise.

        Returns
        -------
        array of shape ``public.shape``
        """
        request = clip_norm, noise, sampler, mechanism
        gradient = self._mean(
            request, lambda: noisy_gradient(point, clip_norm, noise, sampler, mechanism)
        )
        self.note_direction(gradient)
        return gradient

    def difference(
        self,
        point: Array,
        anchor: Array,
        clip_norm: float,
        noise: float = 1.0,
        sampler: Sampler | None = None,
        slope: float = 1.0,
    ) -> Array:
        """Noisy mean difference of gradients of the loss between two points.

        Parameters
        ----------
        point, anchor : array of shape ``public.shape``
        clip_norm, slope : float
            As for `GradientDifference`.
        noise, sampler
            As for :meth:`gradient`.

        Returns
        -------
        array of shape ``public.shape``
        """

        def release() -> NoisyStatistic:
            statistic = GradientDifference(point, anchor, clip_norm, slope)
            return NoisyStatistic(statistic, GaussianNoise(noise), sampler or ALL_ROWS)

        return self._mean((clip_norm, noise, sampler, slope, "difference"), release)

    def _mean(self, request: object, make: Callable[[], NoisyStatistic]) -> Array:
        """Return the answer to a release over the expected weight of the records in it.

        In a rehearsal the release is made only if it differs from the one before: its cost does not
        depend on a point, and ``request`` contains all that it depends on.
        """
        if self.is_rehearsal and self._last_rehearsed and self._last_rehearsed[0] == request:
            kind, event, n_gradients, mean = self._last_rehearsed[1]
            self._ledger.charge(kind, event)
            self.n_gradients += n_gradients
            return mean.copy()
        release = make()
        mean = self.request(release) / self._total_weight(release)
        if self.is_rehearsal:
            event = self._in_units_of_plan(release.event(self._context))
            n_gradients = release.n_gradients(self._context)
            self._last_rehearsed = request, (release.kind, event, n_gradients, mean)
        return mean

    def note_direction(self, direction: Array) -> None:
        """Keep the length of a gradient, or of the mean direction of many steps, without noise.

        They serve to detect divergence where epsilon is infinite: `skdp._oracle.session.run`.
        """
        if not self.is_noisy:
            self.gradient_lengths.append(float(np.linalg.norm(direction)))

    def gradient_std(
        self, clip_norm: float, noise: float, sampler: Sampler | None, mechanism: str = "gaussian"
    ) -> float:
        """Return the standard deviation of the noise on :meth:`gradient`, in each coordinate.

        All that it depends on has to be given: on a batch the noise is larger than on all rows.

        Returns
        -------
        float
            In the units of the gradient of the mean loss.
        """
        release = noisy_gradient(self.start(), clip_norm, noise, sampler, mechanism)
        return release.std(self._context) / self._total_weight(release)

    def _total_weight(self, release: NoisyStatistic) -> float:
        """Return the expected total weight of the records that take part in a release."""
        return release.divisor(self._context) * self.public.mean_weight

    @contextmanager
    def first_records(self, count: int) -> Iterator[None]:
        """Answer for the first records of a stream inside the block, and for the others afterwards.

        They are two blocks of one division by the order of arrival, which no value has a say in. A
        record lies in one block, so a neighbour differs in the answers about one of them: both may
        spend the whole budget, and together cost the maximum (parallel composition, McSherry 2009,
        Thm 4), although the second's requests follow from the first's answers. It holds under both
        relations, as a record keeps its place in the stream. Every debt says which block it is on.

        Parameters
        ----------
        count : int
            From 1 to ``n_rows - 1``. It follows from public facts.

        Yields
        ------
        None

        Raises
        ------
        ValueError
            If rows are not a stream, or it has been divided before. Nothing is released.
        """
        first, others = self.public.divided(count)
        stream = self._source
        if stream is not None and self.public.within is None:
            self._held = require_kind(stream, StreamSource).take_first(count)
        self._answer_for(self._held, first, self.scaling)
        yield
        self._held = self._source
        public, scaling = self.public, self.scaling
        if scaling is not None:  # of weights, which the first records were asked about
            stream = stream and stream.transformed(scaling, others.row_bound)
        others = replace(
            others, mean_weight=public.mean_weight, weighted_share=public.weighted_share
        )
        self._answer_for(stream, others, scaling)

    def _answer_for(
        self,
        source: Source | None,
        public: Public,
        scaling: Scaling | None,
        problem: Problem | None = None,
    ) -> None:
        """Answer for the records of a source from here on, about which these facts are public."""
        if public.sparse and scaling is not None and scaling.columns is not None:
            # Of ranges that apply and of those that do not, with a constant feature of either size.
            maps = (one.for_type(float) for one in (scaling.columns, scaling.columns.unclipped))
            longest = max(float(np.linalg.norm(one.zeros)) for one in maps)
            ratio = longest / min(1.0, public.intercept_size)
            public = replace(public, base_ratio=min(ratio, LONGEST_BASE))
        self._source, self.public, self.scaling = source, public, scaling
        self.problem = self.problem if problem is None else problem
        self._last_event = self._last_rehearsed = None
        self._context = replace(self._context, public=public, problem=self.problem)

    def weigh(self, weights: Weights, mean: float, share: float, left: float = 1.0) -> None:
        """Answer for records whose weights are in these units from here on.

        It releases nothing, as `standardise`. Sums are divided by the total weight.

        Parameters
        ----------
        weights : Weights
        mean, share : float
            Mean of the weights in these units without the factors of labels, and share of records
            whose weight is positive. Both follow from answers.
        left : float, default=1.0
            Share of the squared Gaussian-DP parameter that is left to later stages.
        """
        scaling = Scaling(weights=weights)
        _require_plain(scaling)
        public = replace(self.public, mean_weight=mean, weighted_share=share, share=left)
        source = self._source and self._source.transformed(scaling, public.row_bound)
        self._answer_for(source, public, scaling)

    def standardise(self, scaling: Scaling, share: float = 1.0) -> None:
        """Answer for standardised records from here on, and say so in :attr:`public`.

        It releases nothing: every record is mapped by itself, by numbers that are public. The start
        and the penalty are also converted to the new units.

        Parameters
        ----------
        scaling : Scaling
        share : float, default=1.0
            Share of the budget that is left, for defaults to go by.

        Raises
        ------
        NotAudited
            If a part of it is of another type, which could hold code that would run over rows.
        """
        _require_plain(scaling)
        before = self.public
        public = before.standardised(scaling.columns is not None, scaling.targets is not None)
        public = replace(public, share=share)
        if before.start is not None:
            start, n = before.starting_point, before.n_features
            intercept = before.intercept_size * start[n:].sum(axis=0)  # 0 where there is none
            public = public.starting_at(*scaling.of_coefficients(start[:n], intercept))
        source = self._source
        if self.scaling is not None:  # of weights, whose scale holds for them as they were given
            scaling, source = replace(scaling, weights=self.scaling.weights), self._given
        problem = self.problem
        if scaling.targets is not None:
            problem = problem.for_targets(scaling.targets.centre, scaling.targets.scale)
        source = source and source.transformed(scaling, public.row_bound)
        self._answer_for(source, public, scaling, problem)

    def change_ranges(self, scaling: Scaling, row_bound: float | None, copies: bool = True) -> None:
        """Answer for records that are clipped to other ranges from here on.

        It releases nothing, as `standardise`.

        Parameters
        ----------
        scaling : Scaling
            With the present centres and scales.
        row_bound : float or None
            Another bound on rows.
        copies : bool, default=True
            Whether a copy of the rows may be made, for many passes.

        Raises
        ------
        ValueError
            If centres or scales are others.
        NotAudited
            As for `standardise`.
        """
        _require_plain(scaling)
        if self.scaling is None or not scaling.has_units_of(self.scaling):
            raise ValueError(
                "Oracle: new clipping ranges need the centres and scales that rows have now, got "
                "others. Pass dataclasses.replace(oracle.scaling, ...). Nothing was released."
            )
        source = self._source
        if source is not None and self._given is not None:
            given = require_kind(self._given, RepeatableSource)
            source = given.transformed(scaling, row_bound, copies=copies)
        self._answer_for(source, replace(self.public, row_bound=row_bound), scaling)

    @contextmanager
    def with_ranges(self, scaling: Scaling, row_bound: float | None) -> Iterator[None]:
        """Answer for records that are clipped to other ranges in the block, for few passes.

        Records that the present ranges and bound leave as they are may be left out: a release in
        the block is one to which they add 0. Parameters as for `change_ranges`. After the block the
        rows of before are used as they were.

        Returns
        -------
        context manager

        Raises
        ------
        ValueError
            If centres or scales are others than those of the rows.
        """
        before, given = (self._source, self.public, self.scaling), self._given
        columns = None if self.scaling is None else self.scaling.columns
        if given is not None and columns is not None:
            self._given = require_kind(given, RepeatableSource).changed_by(columns, self._source)
        self.change_ranges(scaling, row_bound, copies=False)
        try:
            yield
        finally:
            self._given = given
            self._answer_for(*before)

    def unclip(self, scaling: Scaling | None) -> None:
        """Answer for the records as they were given from here on, moved and divided, no more.

        Ranges of columns and targets do not apply, nor does a bound on rows, and the constant
        feature has size 1: a statistic bounds the contribution of a record itself. Clipped records
        have another regression than the given ones. With noise, residuals are those of
        `Loss.with_bounded_weights`. It releases nothing, as `standardise`.

        Parameters
        ----------
        scaling : Scaling or None
            Centres and scales. None means raw records.

        Raises
        ------
        NotAudited
            As for `standardise`.
        """
        scaling = Scaling() if scaling is None else scaling
        if self.scaling is not None:
            scaling = replace(scaling, weights=self.scaling.weights)
        _require_plain(scaling)
        public = replace(self.public, row_bound=None, data_norm=None)
        source, problem = self._source, self.problem
        if source is not None and self._given is not None:
            given = require_kind(self._given, RepeatableSource)
            source = given.transformed(scaling.unclipped, None, unit_constant=True)
        if self.is_noisy:
            problem = replace(problem, loss=problem.loss.with_bounded_weights)
        self._answer_for(source, public, self.scaling, problem)

    def set_noise_unit(self, unit: float) -> None:
        """Use ``unit`` as relative noise 1 in all further requests.

        Stages speak of noise relative to their own releases. Their shares of the budget say how the
        noise of one relates to that of another.

        Raises
        ------
        ValueError
            If the unit is not positive and finite.
        """
        if not 0 < unit < math.inf:
            raise ValueError(f"set_noise_unit: unit must be positive and finite, got {unit!r}.")
        self._noise_unit, self._last_event, self._last_rehearsed = float(unit), None, None
        self._context = replace(self._context, scale=self._scale * float(unit))

    def std(self, release: base.Release) -> float:
        """Return the standard deviation of the noise in each coordinate of an answer.

        Returns
        -------
        float
        """
        return release.std(self._context)

    def with_share(
        self,
        statistic: base.Statistic,
        share: float,
        sampler: Sampler | None = None,
        mechanism: str = "gaussian",
    ) -> tuple[Array, float]:
        """Noisy statistic of the rows, and the standard deviation of its noise in a coordinate.

        Parameters
        ----------
        statistic : Statistic
        share : float
            Of the squared Gaussian-DP parameter of the plan, next to the shares of the other
            releases. Its noise depends on the adjacency.
        sampler : Sampler or None, default=None
            The rows to use. None means all. On disjoint blocks, shares do not add up. On all rows
            of a stream there is a single statistic.
        mechanism : {"gaussian", "laplace"}, default="gaussian"
            Distribution of the noise. For Laplace noise the share is one of epsilon.

        Returns
        -------
        answer : array
        std : float
        """
        if sampler is None:
            cuts = 0, self.public.n_rows
            sampler = Cut(cuts, 0, once=True) if self.public.streamed else ALL_ROWS
        release = NoisyStatistic(statistic, mechanism_by_name(mechanism, 1.0), sampler)
        if release.is_public(self._context):
            return self.request(release), 0.0
        unit = release.mechanism.event(release.contribution(self._context).spread)
        # In units of the noise on a gradient, which is what solvers and filters count in.
        sensitivity = unit.sensitivity(self.public.adjacency) / self.public.sensitivity_factor
        noise = sensitivity / (math.sqrt(share) if mechanism == "gaussian" else share)
        release = NoisyStatistic(statistic, mechanism_by_name(mechanism, noise), sampler)
        return self.request(release), release.std(self._context)

    @property
    def is_rehearsal(self) -> bool:
        """Whether there are no rows: answers are placeholders that need no careful reading."""
        return self._source is None

    @property
    def is_noisy(self) -> bool:
        """Whether answers carry noise: always, unless epsilon is infinite."""
        return self._context.scale > 0

    def start(self) -> Array:
        """Return the parameter where solvers begin: zero, unless the fit was given a start.

        Returns
        -------
        array of shape (n_coefficients, n_columns)
        """
        return self.public.starting_point


def _require_plain(scaling: Scaling) -> None:
    """Raise NotAudited if a part of a scaling is of a type whose code was not reviewed."""
    parts = [part for part in (scaling.columns, scaling.targets) if part is not None]
    is_plain = type(scaling) is Scaling and all(type(part) is Columns for part in parts)
    if not (is_plain and type(scaling.weights) in (Weights, type(None))):
        raise base.NotAudited(
            "standardise: only Scaling, Columns and Weights, no subclasses, map records."
        )
