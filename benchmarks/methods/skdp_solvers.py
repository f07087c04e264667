"""skdp with each of its solvers by name, where the solver can do what is asked.

Solvers of papers in the library for study, not among those that a default would choose, run on
demand.
"""

from functools import partial

import skdp
from benchmarks.methods.skdp_auto import estimator
from benchmarks.registry import Method

GENERAL = {"boosted_ssp", "gd", "whitened"}


def with_solver(split, epsilon, delta, seed, solver):
    """An estimator with this solver; ridge regression where that needs a convex penalty."""
    model = estimator(split, epsilon, delta, seed, solver=solver)
    if split.is_classification or "strongly_convex" not in skdp.solvers.get_solver(solver).needs:
        return model
    return skdp.DPRidge(**model.get_params(deep=False))


def applies(split, solver):
    """Whether the solver can solve this problem: it says so before it sees a row."""
    shape = {"n_samples": split.X_train.shape[0], "n_features": split.X_train.shape[1]}
    if split.is_classification:
        shape["n_classes"] = len(split.classes)
    try:
        with_solver(split, 1.0, 1e-6, 0, solver).plan(**shape)
    except ValueError:
        return False
    return True


METHODS = [
    Method(
        f"skdp {name}",
        "solver",
        partial(with_solver, solver=name),
        partial(applies, solver=name),
        on_demand=name not in GENERAL,
    )
    for name in sorted(skdp.solvers.available())
]
