"""Keep the plans of fits: all that is settled before any row is read."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from skdp._oracle import Plan, Public, public_after
from skdp._oracle.session import Stages
from skdp.objective import Problem
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
        The solver among the stages, resolved. None for a scaler.
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


_plans: dict[Hashable, Prepared] = {}


def _frozen(value: Any) -> Hashable:
    """Return a value of a parameter as a key. TypeError if its state may not be all in it.

    Objects of skdp are their attributes. Of other objects and of functions this is not known.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str) or isinstance(value, np.generic):
        return kind, value
    if isinstance(value, Enum):
        return kind, value.name
    if kind is np.ndarray and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if kind in (list, tuple):
        return kind, *map(_frozen, value)
    if kind is frozenset:
        return kind, frozenset(map(_frozen, value))
    if kind is dict:
        return kind, *((name, _frozen(inside)) for name, inside in value.items())
    if kind.__module__.partition(".")[0] == "skdp" and hasattr(value, "__dict__"):
        return kind, _frozen(vars(value))
    raise TypeError(f"{kind.__name__} is no key.")


def planned_once(
    model: Any, facts: tuple[object, ...], prepare: Callable[..., Prepared]
) -> Prepared:
    """Return the parts of a fit. Equal fits of one shape are planned once.

    Parameters
    ----------
    model : estimator
        Its parameters are part of the key.
    facts : tuple
        All other public facts that the plan depends on.
    prepare : callable
        Makes the plan from the facts.
    """
    parameters = model.get_params(deep=False) | {"privacy": model._terms.for_plans()}
    planned = {name: value for name, value in parameters.items() if name not in NOT_PLANNED}
    try:
        key = type(model), _frozen([planned, facts])
    except TypeError:
        return prepare(*facts)
    known = _plans.get(key)
    if known is None:
        known = prepare(*facts)
        while len(_plans) >= MAX_PLANS:
            _plans.pop(next(iter(_plans)), None)
        _plans[key] = known
    return known
