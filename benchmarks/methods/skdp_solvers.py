"""skdp with each solver by name that a default may choose, where it can do what is asked."""

from functools import partial

from benchmarks.methods.skdp_auto import estimator
from benchmarks.registry import Method


def applies(split, solver):
    """Whether the solver can solve this problem: it says so before it sees a row."""
    shape = {"n_samples": split.X_train.shape[0], "n_features": split.X_train.shape[1]}
    if split.is_classification:
        shape["n_classes"] = len(split.classes)
    try:
        estimator(split, 1.0, 1e-6, 0, solver=solver).plan(**shape)
    except ValueError:
        return False
    return True


METHODS = [
    Method(f"skdp {name}", "solver", partial(estimator, solver=name), partial(applies, solver=name))
    for name in ("boosted_ssp", "gd", "whitened")
]
