"""From an event to its dominating pair: the relation table, with the factor 2 where it belongs.

For a Gaussian sum with noise multiplier z and a sampling rate q:

==========  ===========  ===========================================================================
sampling    relation     pair
==========  ===========  ===========================================================================
none        zero_out     ``(N(1/z), N(0))``
none        replace_one  ``(N(spread/z), N(0))``
Poisson     zero_out     ``((1-q) N(0) + q N(1/z), N(0))``, and the same reversed
Poisson     replace_one  ``((1-q) N(0) + q N(1/z), (1-q) N(0) + q N(-1/z))``
fixed size  replace_one  profile of ``((1-q) N(0) + q N(spread/z), N(0))`` in both directions
fixed size  zero_out     none: leaving a record out changes the number of rows
==========  ===========  ===========================================================================

A Poisson sample of counts (spread 1), of several sums, or of Laplace answers has, under
replace_one, the profile of the sample of fixed size.
"""

from __future__ import annotations

import math
from functools import singledispatch

from skdp.accounting.accountant import UnknownCost
from skdp.accounting.adjacency import Adjacency
from skdp.accounting.events import (
    ApproximateDP,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Selected,
)
from skdp.accounting.events.last_iterate import HiddenIterates
from skdp.accounting.pairs import (
    AntipodalPair,
    GaussianPair,
    LaplacePair,
    Pair,
    ResponsePair,
    SampledPair,
    SymmetricSampledPair,
)
from skdp.accounting.plan import Sequence, sequence_of, squared_mu
from skdp.accounting.pure import pure_epsilon


@singledispatch
def dominating_pair(event: Event, adjacency: Adjacency) -> Pair | None:
    """Return the pair that dominates ``event``; None where no finite epsilon holds.

    Raises
    ------
    UnknownCost
        If no theorem gives one.
    """
    raise UnknownCost(f"no dominating pair is known for {type(event).__name__} under {adjacency}.")


@dominating_pair.register
def _(event: Gaussian, adjacency: Adjacency) -> Pair | None:
    mu = event.mu(adjacency)
    return None if math.isinf(mu) else GaussianPair(mu)


@dominating_pair.register
def _(event: Laplace, adjacency: Adjacency) -> Pair | None:
    bound = event.pure_epsilon(adjacency)
    return None if math.isinf(bound) else LaplacePair(bound)


@dominating_pair.register
def _(event: ApproximateDP, adjacency: Adjacency) -> Pair | None:
    free = math.isinf(event.epsilon) or event.delta == 1
    return None if free else ResponsePair(event.epsilon, event.delta)


@dominating_pair.register
def _(event: PoissonSampled, adjacency: Adjacency) -> Pair | None:
    inner = sequence_of(event.event)
    if adjacency is Adjacency.ZERO_OUT:
        base = _base(inner, adjacency, event)
        return None if base is None else SampledPair(base, event.rate)
    if any(isinstance(part, ApproximateDP) for part in inner):
        raise UnknownCost(
            "a guarantee under replace_one says nothing of a record left out of the sample, so "
            "PoissonSampled of ApproximateDP has no theorem under replace_one."
        )
    if _hides_iterates(event):
        raise UnknownCost(
            "the antipodal pair is one of Gaussian sums; HiddenIterates only costs as much as one, "
            "so PoissonSampled of HiddenIterates has no theorem under replace_one."
        )
    base = _base(inner, adjacency, event)
    if base is None:
        return None
    (part, count), *more = inner.items()
    if isinstance(part, Gaussian) and part.spread > 1 and count == 1 and not more:
        return AntipodalPair(1 / part.noise_multiplier, event.rate)
    return SymmetricSampledPair(base, event.rate)


@dominating_pair.register
def _(event: FixedSizeSampled, adjacency: Adjacency) -> Pair | None:
    if adjacency is Adjacency.ZERO_OUT:
        raise UnknownCost(
            "FixedSizeSampled is amplified under replace_one only: a record left out changes the "
            "number of rows, and with it the rate."
        )
    base = _base(sequence_of(event.event), adjacency, event)
    return None if base is None else SymmetricSampledPair(base, event.rate)


@dominating_pair.register
def _(event: Selected, adjacency: Adjacency) -> Pair | None:
    try:
        bound = pure_epsilon(event, adjacency)
    except UnknownCost as refusal:
        raise UnknownCost(f"Selected has a dominating pair for pure runs only: {refusal}") from None
    return None if math.isinf(bound) else ResponsePair(bound)


def _hides_iterates(event: Event) -> bool:
    """Whether `HiddenIterates` stands anywhere inside ``event``."""
    if isinstance(event, Composed):
        return any(_hides_iterates(part) for part, _ in event.parts)
    inner = getattr(event, "event", None)
    return isinstance(event, HiddenIterates) or (inner is not None and _hides_iterates(inner))


def _base(inner: Sequence, adjacency: Adjacency, sampled: Event) -> Pair | None:
    """Pair of what is done to one sample: any sequence of Gaussian sums, or one other answer."""
    if all(isinstance(part, Gaussian) for part in inner):
        mu = math.sqrt(squared_mu(inner, adjacency))
        return None if math.isinf(mu) else GaussianPair(mu)
    if len(inner) > 1 or max(inner.values()) > 1:
        raise UnknownCost(
            f"{type(sampled).__name__} of several answers about the same sample is priced for "
            "Gaussian answers only."
        )
    (part,) = inner
    if not isinstance(part, (Laplace, ApproximateDP)):
        raise UnknownCost(
            f"{type(sampled).__name__} of {type(part).__name__} has no amplification theorem."
        )
    return dominating_pair(part, adjacency)
