"""Turn a batch size and a way of sampling into the samplers of all steps."""

from collections.abc import Callable, Iterator

from skdp._numbers import is_integer, is_real, shown
from skdp.oracle import AllRows, Bin, Block, FixedSize, IndexSampler, Poisson, Public
from skdp.solvers import checks

# Rows in a batch, as a number or a fraction; None is all rows.
BatchSize = int | float | None


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


def _poisson(size: int, n_rows: int) -> Iterator[IndexSampler]:
    while True:
        yield Poisson(size / n_rows)


def _fixed_size(size: int, n_rows: int) -> Iterator[IndexSampler]:
    while True:
        yield FixedSize(size)


def _divided(kind: type[Block] | type[Bin]) -> Callable[[int, int], Iterator[IndexSampler]]:
    def samplers(size: int, n_rows: int) -> Iterator[IndexSampler]:
        n_blocks, epoch = max(1, n_rows // size), 0
        while True:
            for index in range(n_blocks):
                yield kind(epoch, n_blocks, index)
            epoch += 1

    return samplers


SAMPLINGS: dict[str, Callable[[int, int], Iterator[IndexSampler]]] = {
    "poisson": _poisson,
    "fixed_size": _fixed_size,
    "shuffled": _divided(Block),
    "balls_and_bins": _divided(Bin),
}


def check_batches(batch_size: BatchSize, sampling: str, public: Public) -> None:
    """Raise ValueError if batches of this size cannot be drawn in this way."""
    if sampling == "with_replacement":
        raise ValueError(
            "sampling='with_replacement' is not offered: a row that is drawn k times moves the sum "
            "of a batch k times as far, which costs more for the same noise (Balle, Barthe, "
            "Gaboardi 2018, Thm 10), and no accountant here has that price. A row may come back in "
            "the *next* batch with 'poisson' and 'fixed_size', which draw each batch afresh; that "
            "is what papers mean that sample batches with replacement. Nothing was released."
        )
    checks.choice("sampling", sampling, SAMPLINGS)
    batch_rate(batch_size, public.n_rows)


def samplers(batch_size: BatchSize, sampling: str, public: Public) -> Iterator[IndexSampler]:
    """Yield the samplers of the steps, one after the other, without end."""
    if batch_size is None:
        while True:
            yield AllRows()
    yield from SAMPLINGS[sampling](batch_rows(batch_size, public.n_rows), public.n_rows)
