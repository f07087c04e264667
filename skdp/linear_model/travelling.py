"""What pickles, clones and refusals of an estimator keep to themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from skdp.linear_model.charging import is_here, open_elsewhere, seed_of
from skdp.oracle import NoiseSource, noise_source

GENERATORS = (np.random.RandomState, np.random.Generator)

# What scikit-learn's refusals contain, and what is said instead: some of them quote cells, and the
# advice to impute missing values would have rows read without privacy.
UNUSABLE = {
    "Complex data not supported": "must hold real numbers (Complex data not supported)",
    "could not convert string": "holds text where numbers are needed",
    "contains NaN": (
        "holds missing values (NaN), which are not supported. Fill them with constants that are "
        "chosen without looking at the rows, and add a column that marks them, or leave such rows "
        "out; means or medians of the rows, as an imputer takes them, would not be private"
    ),
    "contains infinity": "holds infinity (inf), or values that are too large for their type",
}

# Attribute of an estimator that was pickled inside the block of a budget of another process.
ELSEWHERE = "_budget_elsewhere"


class Travels(BaseEstimator):
    """Base of all that is fitted: its copies draw no noise twice and forget no open budget."""

    noise_source: str
    random_state: Any

    def _noise(self) -> tuple[NoiseSource, str | None]:
        """Return the source of a fit's noise, and a fingerprint of its seed if it has one."""
        if self.noise_source == "system":
            return noise_source(None), None
        return noise_source(self.random_state), seed_of(self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.noise_source == "system"
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without generators: their state would let a reader take the noise off.

        A generator given as ``random_state`` is dropped, so that two workers which receive the same
        pickled estimator do not draw the same noise; a seed is kept, as any parameter.
        """
        state = dict(super().__getstate__())
        if isinstance(state.get("random_state"), GENERATORS):
            state["random_state"] = None
        # An open budget cannot follow the estimator to a worker, so the estimator remembers it.
        note = open_elsewhere(state.get(ELSEWHERE))
        if note is not None:
            state[ELSEWHERE] = note
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickle; back in the process of the open budget there is nothing to remember."""
        note = state.get(ELSEWHERE)
        if note is not None and is_here(note):
            state = {name: value for name, value in state.items() if name != ELSEWHERE}
        super().__setstate__(state)

    def __sklearn_clone__(self) -> Self:
        """Clone; meta-estimators in a worker clone what they were sent.

        A generator is shared with the clone, not copied: two copies would draw the same noise.
        """
        twin: Self = super().__sklearn_clone__()
        if isinstance(self.random_state, GENERATORS):
            twin.random_state = self.random_state
        if ELSEWHERE in vars(self):
            setattr(twin, ELSEWHERE, vars(self)[ELSEWHERE])
        return twin


def validated(estimator: BaseEstimator, what: str, *arrays: Any, **checks: Any) -> Any:
    """Validate what a fit is given; neither a refusal nor a warning quotes what a cell holds.

    Parameters
    ----------
    estimator : BaseEstimator
    what : str
        Names of the arrays, for messages.
    *arrays, **checks
        As for `sklearn.utils.validation.validate_data`.
    """
    with without_cells(type(estimator).__name__, what):
        return validate_data(
            estimator, *arrays, accept_sparse="csr", dtype=[np.float64, np.float32], **checks
        )


@contextmanager
def without_cells(who: str, what: str) -> Iterator[None]:
    """Validate arrays in the block; neither a refusal nor a warning quotes what a cell holds.

    Parameters
    ----------
    who : str
        The estimator.
    what : str
        Names of the arrays.
    """
    try:
        # Sums of extreme values may overflow in there: a warning would tell of single records.
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (ValueError, TypeError, OverflowError) as refusal:
        said = str(refusal)
        why = next((why for sign, why in UNUSABLE.items() if sign in said), None)
        if isinstance(refusal, OverflowError):
            why = "holds a number that is too large for float64"
        if why is None:
            raise
        raise ValueError(f"{who}: {what} {why}. Nothing was released.") from None
