"""The one object that a solver gets: it answers releases, and every answer is charged first."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from skdp.accounting import Gaussian
from skdp.objective import Problem
from skdp.oracle.ledger import Ledger
from skdp.oracle.noise import NoiseSource
from skdp.oracle.public import Public
from skdp.oracle.releases import (
    GaussianNoise,
    LargestEigenvalue,
    NoisySum,
    Release,
    Sampler,
    Sum,
    Terms,
    noisy_gradient,
    require_audited,
)
from skdp.oracle.releases import noise as noise_law
from skdp.oracle.releases.base import Array, NotAudited
from skdp.oracle.rows import Rows
from skdp.oracle.scaling import Columns, Scaling


class Oracle:
    """Answers questions about rows that its user never sees.

    Attributes
    ----------
    public : Public
        What anyone may know.
    problem : Problem
        The loss, penalty and constraint of the fit.
    coins : numpy.random.Generator
        For a solver's own choices that need no secrecy, such as which iterate to return.
    n_gradients : float
        Gradients of single records taken so far, samples counted by their expected size.
    gradient_lengths : list of float
        Lengths of the gradients answered so far; where there is noise, none are kept.
    """

    def __init__(
        self,
        terms: Terms,
        ledger: Ledger,
        coins: np.random.Generator,
        rows: Rows | None = None,
        source: NoiseSource | None = None,
    ) -> None:
        self.public: Public = terms.public
        self.problem: Problem = terms.problem
        self.coins = coins
        self.n_gradients: float = 0.0
        self.gradient_lengths: list[float] = []
        self._terms, self._ledger, self._rows, self._source = terms, ledger, rows, source
        self._noise = 1.0

    def ask(self, release: Release) -> Array:
        """Charge a release to the ledger, then answer it.

        Parameters
        ----------
        release : Release
            Audited, and made of audited parts.

        Returns
        -------
        array
            The noisy answer; in a rehearsal, noise of the right shape.

        Raises
        ------
        NotAudited
            If the release or a part of it is not on the list. Nothing is charged.
        PlanError, BudgetError
            If the guard refuses the debt. Nothing is charged or released.
        """
        require_audited(release)
        for part in release.parts():
            require_audited(part)
        release.std(self._terms)  # raises where no such noise can be drawn, before the debt
        self._ledger.charge(release.kind, release.event(self._terms).scaled(self._noise))
        self.n_gradients += release.n_gradients(self._terms)
        if self._rows is None or self._source is None:
            return release.stand_in(self._terms, self.coins)
        return release.answer(self._rows, self._terms, self._source)

    def gradient(
        self,
        point: Array,
        clip_norm: float,
        noise: float = 1.0,
        sampler: Sampler | None = None,
        mechanism: str = "gaussian",
    ) -> Array:
        """Noisy mean gradient of the loss at ``point``; penalties are the solver's to add.

        Parameters
        ----------
        point : array of shape ``public.shape``
        clip_norm : float
            Bound of one record's gradient, in L2 norm for Gaussian and in L1 norm for Laplace
            noise.
        noise : float, default=1.0
            How noisy, relative to the solver's other releases.
        sampler : Sampler, default=Everyone()
            Which rows take part.
        mechanism : {"gaussian", "laplace"}, default="gaussian"
            Law of the noise.

        Returns
        -------
        array of shape ``public.shape``
        """
        release = noisy_gradient(point, clip_norm, noise, sampler, mechanism)
        gradient = self.ask(release) / release.divisor(self._terms)
        self.note_direction(gradient)
        return gradient

    def note_direction(self, direction: Array) -> None:
        """Keep the length of a gradient, or of the mean direction of many steps, without noise.

        A run without noise that diverges is told by them; see :func:`skdp.oracle.session.run`.
        """
        if not self.is_noisy:
            self.gradient_lengths.append(float(np.linalg.norm(direction)))

    def gradient_std(
        self,
        clip_norm: float,
        noise: float = 1.0,
        sampler: Sampler | None = None,
        mechanism: str = "gaussian",
    ) -> float:
        """Return the standard deviation of the noise on :meth:`gradient`, in each coordinate."""
        release = noisy_gradient(self.start(), clip_norm, noise, sampler, mechanism)
        return release.std(self._terms) / release.divisor(self._terms)

    def standardise(self, scaling: Scaling, share: float = 1.0) -> None:
        """Answer for standardised records from here on, and say so in :attr:`public`.

        It releases nothing: every record is mapped by itself, by numbers that are public.

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
        parts = [part for part in (scaling.columns, scaling.targets) if part is not None]
        if type(scaling) is not Scaling or any(type(part) is not Columns for part in parts):
            raise NotAudited("standardise: only Scaling and Columns, no subclasses, map records.")
        public = self.public.standardised(scaling.columns is not None, scaling.targets is not None)
        public = replace(public, share=share)
        if self._rows is not None:
            self._rows = self._rows.standardised(scaling, public.row_bound)
        self.public = public
        self._terms = replace(self._terms, public=public)

    def relate_noise(self, factor: float) -> None:
        """Take noise 1 for ``factor`` times what it was, in all that is asked from here on."""
        if not 0 < factor < math.inf:
            raise ValueError(f"relate_noise: factor must be positive and finite; got {factor!r}.")
        self._noise *= float(factor)
        self._terms = replace(self._terms, scale=self._terms.scale * float(factor))

    def std(self, release: Release) -> float:
        """Return the standard deviation of the noise in each coordinate of an answer."""
        return release.std(self._terms)

    def largest_eigenvalue(
        self, noise: float = 1.0, mechanism: str = "gaussian"
    ) -> tuple[float, float]:
        """Noisy largest eigenvalue of the rows' mean Gram matrix, and the noise's std.

        Parameters
        ----------
        noise : float, default=1.0
            How noisy, relative to the solver's other releases.
        mechanism : {"gaussian", "laplace"}, default="gaussian"
            Law of the noise.
        """
        hidden = noise_law(mechanism, noise)
        release = NoisySum(LargestEigenvalue(hidden.order), hidden)
        std = release.std(self._terms)
        answer = float(self.ask(release)[0])
        return answer / self.public.n_rows, std / self.public.n_rows

    def sum_of(self, what: Sum, share: float) -> tuple[Array, float]:
        """Noisy sum over all rows, and the standard deviation of its noise in a coordinate.

        Parameters
        ----------
        what : Sum
        share : float
            Of the squared Gaussian-DP parameter of the plan, next to the shares of the other
            releases; the noise that it takes depends on the adjacency.

        Returns
        -------
        answer : array
        std : float
        """
        spread = what.contribution(self._terms, self.public.n_rows).spread
        unit = Gaussian(1.0, spread).sensitivity(self.public.adjacency)
        release = NoisySum(what, GaussianNoise(unit / math.sqrt(share)))
        return self.ask(release), release.std(self._terms)

    @property
    def is_rehearsal(self) -> bool:
        """Whether there are no rows: answers are stand-ins that need no careful reading."""
        return self._rows is None

    @property
    def is_noisy(self) -> bool:
        """Whether answers carry noise: always, unless epsilon is infinite."""
        return self._terms.scale > 0

    def start(self) -> Array:
        """Return the zero parameter, where solvers begin."""
        return np.zeros(self.public.shape)
