"""Threads for passes over rows: ours over parts of the rows, instead of BLAS's inside each product.

Blocks that fit in a near cache are too small for BLAS to share out well; whole parts of the rows
are not. As many threads are used as BLAS was going to use, so that limits set by a user or by
joblib's workers hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _without_warnings(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function with numpy's floating-point warnings off, in whatever thread it runs.

    Threads do not inherit the setting of their caller, and an overflow shows that a record is
    there.
    """

    def quiet(part: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(part)

    return quiet


@contextmanager
def spread_over_threads() -> Iterator[Map]:
    """Hold BLAS to one thread, and give a ``map`` that uses the others."""
    blas = _controller().select(user_api="blas")
    n_threads = max((library["num_threads"] for library in blas.info()), default=1)
    with blas.limit(limits=1):
        if n_threads == 1:
            yield lambda function, parts: map(_without_warnings(function), parts)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            # Threads start here, not at their first task: the budget is charged in between.
            together = threading.Barrier(n_threads)
            list(pool.map(lambda _: together.wait(), range(n_threads)))
            yield lambda function, parts: pool.map(_without_warnings(function), parts)
