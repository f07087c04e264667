"""The statistic of one step after the other: clipped differences of gradients over batches."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg.blas import daxpy, ddot, dscal

from skdp._numbers import Array, Indices
from skdp.objective import Loss, scalar_residual
from skdp.oracle.kernels.clipped_gradients import clipped_gradients
from skdp.oracle.noise import NoiseSource
from skdp.oracle.releases.base import PublicContext
from skdp.oracle.releases.samplers import IndexSampler
from skdp.oracle.sources.memory import MemorySource
from skdp.oracle.sources.records import block_rows

SumUp = Callable[[int, int, Array, float, float, Array], None]
"""sum_up(first, stop, away, bound, factor, out): write into ``out``, flat, ``factor`` times the sum
over the batch ``first:stop`` of the differences between the anchor and ``away`` from it, each cut
to ``bound``."""

LARGEST_CLIP = 1e20
LARGEST_QUOTIENT = 1e280  # no product with a clip, nor one with a row after it, leaves float64
BYTES_AT_ONCE = 1 << 20  # of rows copied side by side
ROWS_AT_ONCE = 1 << 12
# Row by row where a batch has at most FEW rows, unless batches have MANY rows on average.
FEW, MANY = 3, 8


def batches_in_blocks(
    samplers: tuple[IndexSampler, ...],
    n_steps: int,
    rows: MemorySource,
    context: PublicContext,
    noise_source: NoiseSource,
) -> Iterator[tuple[Indices, Indices, list[float]]]:
    """Yield row numbers of blocks of steps, where batches begin and end, and their divisors.

    Parameters
    ----------
    samplers : tuple of IndexSampler
        One for all steps, or one for each.
    n_steps : int
    rows, context, noise_source
        As the release has them.
    """
    public = context.public
    divisors = [item.divisor(public) for item in samplers]
    room = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE // (8 * public.n_parameters)))
    at_once = max(1, min(int(room / max(divisors)), ROWS_AT_ONCE, 2**46 // public.n_rows))
    for start in range(0, n_steps, at_once):
        count = min(at_once, n_steps - start)
        if len(samplers) == 1:
            indices, edges = samplers[0].draw_many(rows, count, noise_source)
            shares = divisors * count
        else:
            chosen = samplers[start : start + count]
            drawn = [item.indices(rows, noise_source) for item in chosen]
            indices = np.concatenate(drawn)
            edges = np.concatenate(([0], np.cumsum([len(one) for one in drawn])))
            shares = divisors[start : start + count]
        for first, stop in itertools.pairwise(edges if noise_source.keeps_record else ()):
            noise_source.record_batch(indices[first:stop], rows.n_rows)
        yield indices, edges, shares


def sums_of_differences(
    rows: MemorySource, indices: Indices, edges: Indices, context: PublicContext, anchor: Array
) -> SumUp:
    """Return how to sum up the batches of a block of steps, in numpy."""
    public, loss = context.public, context.problem.loss
    dense = not (rows.records.is_sparse or public.grouped) and public.n_outputs == 1
    widest = int(np.diff(edges).max())
    if dense and widest <= min(largest_batch(context), rows.n_rows - 1):
        one_by_one = len(indices) < MANY * (len(edges) - 1)
        return _side_by_side(rows, indices, loss, anchor[:, 0], one_by_one)
    return _through_the_kernel(rows, indices, loss, anchor)


def largest_batch(context: PublicContext) -> int:
    """Return the most rows that are summed up as one block of additions."""
    public = context.public
    return block_rows(public.n_rows, public.n_features, is_sparse=False, is_copied=False)


def _through_the_kernel(rows: MemorySource, indices: Indices, loss: Loss, anchor: Array) -> SumUp:
    """Any rows, by the pass that full gradients take."""

    def sum_up(first: int, stop: int, away: Array, bound: float, factor: float, out: Array) -> None:
        everyone = stop - first == rows.n_rows
        chosen = rows if everyone else rows.take(indices[first:stop])
        point = anchor + away.reshape(anchor.shape)
        total = chosen.total(clipped_gradients, loss, point, bound, anchor)
        np.multiply(total.ravel(), factor, out)

    return sum_up


def _side_by_side(
    source: MemorySource, indices: Indices, loss: Loss, anchor: Array, one_by_one: bool
) -> SumUp:
    """Dense rows and one output, copied side by side.

    A record's part is its row times its difference of residuals c, cut to ``|c| <= bound / |row|``,
    so no row adds more than ``bound``. What is not a number counts as 0, so that a null row, whose
    weight is 0, adds 0 where margins overflow, too. With a quotient of at most 1e280 and a clip of
    at most 1e20 every factor is finite.
    """
    records = source.records
    rows, targets = records.written_out(indices), records.targets[indices, 0].astype(np.float64)
    weights = None if records.weights is None else records.weights[indices]
    inverse = np.minimum(records.inverse_norms[indices], LARGEST_QUOTIENT)
    base = np.dot(rows, anchor)
    there = loss.residual(base[:, None], targets[:, None])[:, 0]
    one_residual = scalar_residual(loss) if one_by_one else None
    few, size = -1 if one_residual is None else FEW, rows.shape[1]
    if one_residual is not None:
        row_list = list(rows)
        bases, target_list, theres = base.tolist(), targets.tolist(), there.tolist()
        inverses = inverse.tolist()
        weight_list = None if weights is None else weights.tolist()

    def one(i: int, away: Array, bound: float) -> float:
        assert one_residual is not None
        c: float = one_residual(bases[i] + ddot(row_list[i], away), target_list[i]) - theres[i]
        if weight_list is not None:
            c *= weight_list[i]
        if c != c:
            return 0.0
        limit: float = bound * inverses[i]
        return min(max(c, -limit), limit)

    def sum_up(first: int, stop: int, away: Array, bound: float, factor: float, out: Array) -> None:
        if stop - first <= few:
            out.fill(0.0)
            for i in range(first, stop):
                daxpy(row_list[i], out, size, one(i, away, bound) * factor)
            return
        batch = rows[first:stop]
        margins = batch.dot(away)
        margins += base[first:stop]
        column = margins[:, None]
        loss.residual(column, targets[first:stop, None], out=column)
        margins -= there[first:stop]
        if weights is not None:
            margins *= weights[first:stop]
        np.copyto(margins, 0.0, where=np.isnan(margins))
        limits = inverse[first:stop] * bound
        np.minimum(margins, limits, out=margins)
        np.maximum(margins, np.negative(limits, out=limits), out=margins)
        np.dot(margins, batch, out)
        dscal(factor, out)

    return sum_up
