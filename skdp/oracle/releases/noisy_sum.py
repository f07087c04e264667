"""The release behind nearly every algorithm: a sum, over sampled rows, hidden by noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skdp.accounting import Event
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases.base import Array, Release, Terms, audited
from skdp.oracle.releases.mechanisms import Contribution, Mechanism
from skdp.oracle.releases.samplers import Everyone, Sampler
from skdp.oracle.releases.sums import Sum

if TYPE_CHECKING:
    from skdp.oracle.rows import Rows


@audited
@dataclass(frozen=True, eq=False)
class NoisySum(Release):
    """``what``, summed over the rows that ``sampler`` draws, plus the noise of ``mechanism``.

    Sensitivity: that of ``what``, which enforces it. The cost is the mechanism's, as seen through
    the sampler. The answer is the sum; :meth:`divisor` is the public number that makes it a mean.

    Parameters
    ----------
    what : Sum
    mechanism : GaussianNoise or LaplaceNoise
        Of the norm that ``what`` is bounded in.
    sampler : Sampler, default=Everyone()
    """

    what: Sum
    mechanism: Mechanism
    sampler: Sampler = field(default_factory=Everyone)

    @property
    def kind(self) -> str:
        return self.what.kind

    def parts(self) -> tuple[object, ...]:
        return self.what, self.mechanism, self.sampler

    def _contribution(self, terms: Terms) -> Contribution:
        # Asked for by event, std and answer in turn: remembered for the terms at hand.
        known = self.__dict__.get("_known")
        if known is None or known[0] is not terms:
            known = terms, self.what.contribution(terms, self.sampler.most(terms.public))
            object.__setattr__(self, "_known", known)
        contribution: Contribution = known[1]
        return contribution

    def event(self, terms: Terms) -> Event:
        spread = self._contribution(terms).spread
        return self.sampler.event(self.mechanism.event(spread), terms.public)

    def std(self, terms: Terms) -> float:
        return self.mechanism.std(self._contribution(terms), terms.scale)

    def divisor(self, terms: Terms) -> float:
        """Public number of rows in the sum, in expectation."""
        return self.sampler.divisor(terms.public)

    def answer(self, rows: Rows, terms: Terms, source: NoiseSource) -> Array:
        total = self.what.total(self.sampler.draw(rows, source), terms)
        return self.mechanism.hide(total, self._contribution(terms), terms.scale, source)

    def stand_in(self, terms: Terms, rng: np.random.Generator) -> Array:
        # As large as one record's part: enough to move a solver, too little to make it diverge.
        contribution = self._contribution(terms)
        noise = rng.standard_normal(self.what.shape(terms))
        spread = contribution.size if contribution.order == 1 else math.sqrt(contribution.size)
        return contribution.bound / spread * noise
