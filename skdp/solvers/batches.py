"""Turn a batch size and a way of sampling into the samplers of all steps."""

import itertools
import math
from collections.abc import Callable, Iterator

from skdp._numbers import is_integer, is_real, shown
from skdp.oracle import AllRows, Block, FixedSize, IndexSampler, Poisson, Public
from skdp.solvers import checks

# Rows in a batch, as a number or a fraction; None is all rows.
BatchSize = int | float | None
AMPLIFIED = ("poisson", "fixed_size")  # ways of sampling that make answers cheaper


def batch_rows(batch_size: BatchSize, n_rows: int) -> int:
    """Turn a batch size into an expected number of rows.

    Raises
    ------
    ValueError
        If it is neither an integer in [1, n_rows] nor a fraction in (0, 1].
    """
    if is_integer(batch_size):
        if 1 <= batch_size <= n_rows:
            return int(batch_size)
    elif is_real(batch_size) and 0 < batch_size <= 1:
        return max(1, round(float(batch_size) * n_rows))
    raise ValueError(
        f"batch_size must be None, an integer in [1, {n_rows}] or a fraction of the rows in "
        f"(0, 1]; got {shown(batch_size)}."
    )


def batch_rate(batch_size: BatchSize, n_rows: int) -> float:
    """Return the expected fraction of the rows in a batch; 1 if ``batch_size`` is None."""
    return 1.0 if batch_size is None else batch_rows(batch_size, n_rows) / n_rows


def spent_on_batches(spent: float, batch_size: BatchSize, sampling: str, public: Public) -> float:
    """Return about what steps on batches take of the budget, by what they would on all rows.

    By mu squared. A row is in one of disjoint batches, and pays that often, at least once. T random
    samples with the rate q cost ``mu**2 = q**2 T (exp(sigma**-2) - 1)`` with a noise multiplier
    sigma (Bu, Dong, Long, Su 2020, sec. 3), which is that of the steps where mu is the whole
    budget; not where noise is so small that a row pays as often as it is drawn.
    """
    rate, budget = batch_rate(batch_size, public.n_rows), public.gradient_mu**2
    most = max(spent * rate, 1.0)
    if sampling not in AMPLIFIED or rate == 1:
        return most
    return min(most, budget / math.log1p(budget / (rate**2 * spent)))


def _epochs(size: int, n_rows: int) -> Iterator[IndexSampler]:
    n_blocks = max(1, n_rows // size)
    for epoch in itertools.count():
        for index in range(n_blocks):
            yield Block(epoch, n_blocks, index)


SAMPLINGS: dict[str, Callable[[int, int], Iterator[IndexSampler]]] = {
    "poisson": lambda size, n_rows: itertools.repeat(Poisson(size / n_rows)),
    "fixed_size": lambda size, n_rows: itertools.repeat(FixedSize(size)),
    "shuffled": _epochs,
}


def check_batches(batch_size: BatchSize, sampling: str, public: Public) -> None:
    """Raise ValueError if batches of this size cannot be drawn in this way."""
    if sampling == "with_replacement":
        raise ValueError(
            "sampling='with_replacement' is not offered: a row that is drawn k times moves the sum "
            "of a batch k times as far, which costs more for the same noise (Balle, Barthe, "
            "Gaboardi 2018, Thm 10), and no theorem here prices it. Papers that sample "
            "batches with replacement mean that a row may come back in the *next* batch: 'poisson' "
            "and 'fixed_size', which draw each batch afresh. Nothing was released."
        )
    checks.choice("sampling", sampling, SAMPLINGS)
    batch_rate(batch_size, public.n_rows)


def samplers(batch_size: BatchSize, sampling: str, public: Public) -> Iterator[IndexSampler]:
    """Return the samplers of the steps, one after the other, without end."""
    if batch_size is None:
        return itertools.repeat(AllRows())
    return SAMPLINGS[sampling](batch_rows(batch_size, public.n_rows), public.n_rows)
