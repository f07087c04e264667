"""Keep the plans of fits: all that is settled before any row is read."""

import io
import pickle
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skdp.objective import Problem
from skdp.oracle import Plan, Public, public_after
from skdp.oracle.session import Stages
from skdp.solvers import Solver


@dataclass(frozen=True)
class Prepared:
    """All that is settled about a fit before any row is read.

    Attributes
    ----------
    public : Public
    problem : Problem
    stages : tuple of Stage
    plan : Plan
    solver : Solver or None
        The solver among the stages, resolved; None for a scaler alone.
    notes : tuple of str
        Which solver "auto" stands for, and which stages are left out, with the reasons.
    """

    public: Public
    problem: Problem
    stages: Stages
    plan: Plan
    solver: Solver | None = None
    notes: tuple[str, ...] = ()

    @property
    def public_after(self) -> Public:
        """Public facts about the records that the solver answers for."""
        return public_after(self.stages, self.public)


# Parameters that no plan depends on.
NOT_PLANNED = frozenset({"verbose"})

# Plans of fits that were prepared lately, by parameters and shape: the fits of a cross-validation
# share theirs. The oldest goes first.
MAX_PLANS = 64


_plans: dict[tuple[Any, ...], Prepared] = {}


class _Values(pickle.Pickler):
    """Pickles values, and refuses what is pickled by its name and may be defined anew."""

    def reducer_override(self, value: Any) -> Any:
        by_name = isinstance(value, types.FunctionType | type)
        if by_name and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value!r} may be defined anew under its name.")
        return NotImplemented


def planned_once(model: Any, facts: tuple[Any, ...], prepare: Callable[[], Prepared]) -> Prepared:
    """Return what a fit consists of; equal fits of one shape are planned once.

    Parameters
    ----------
    model : estimator
        Its parameters are part of the key.
    facts : tuple
        All other public facts that the plan depends on.
    prepare : callable
        Makes the plan.
    """
    parameters = model.get_params(deep=False) | {"privacy": model._terms.for_plans()}
    planned = {name: value for name, value in parameters.items() if name not in NOT_PLANNED}
    try:
        values = io.BytesIO()
        _Values(values).dump((planned, facts))
        key = type(model), values.getvalue()
    except (pickle.PicklingError, TypeError, AttributeError):
        return prepare()
    known = _plans.get(key)
    if known is None:
        known = prepare()
        while len(_plans) >= MAX_PLANS:
            _plans.pop(next(iter(_plans)), None)
        _plans[key] = known
    return known
