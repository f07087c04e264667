"""Names that moved to `skdp.planning.papers` can still be imported; no fit imports that package."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from skdp import planning
from skdp.planning import papers

# All that `skdp.planning` exported before the papers' tools had a package of their own.
FORMER_NAMES = [
    "HeavyBallCertificate",
    "HeavyBallChoice",
    "RetrainedInfluence",
    "batch_constant",
    "best_certificate",
    "estimator_trainer",
    "exact_budget",
    "find_certificate",
    "heavy_ball_bounds",
    "heavy_ball_excess",
    "heavy_ball_noise",
    "heavy_ball_rate",
    "improvement_ratio",
    "influence_by_retraining",
    "largest_momentum_step",
    "momentum_step_limit",
    "multistage_bounds",
    "multistage_sizes",
    "nesterov_bounds",
    "noise_constant",
    "number_of_steps",
    "plot_utility_bounds",
    "printed_adp_noise",
    "printed_budget",
    "printed_number_of_steps",
    "quadratic_excess",
    "quadratic_influence",
    "relaxed_number_of_steps",
    "tune_heavy_ball",
    "utility_bound",
]


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_every_former_name_is_found_and_a_moved_one_warns(name):
    if name in planning.__all__:
        assert name not in papers.__all__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(planning, name)
    else:
        with pytest.warns(FutureWarning, match=rf"is now skdp\.planning\.papers\.{name};"):
            assert getattr(planning, name) is getattr(papers, name)


def test_other_names_are_errors():
    with pytest.raises(AttributeError, match="has no attribute 'number_of_cows'"):
        planning.number_of_cows  # noqa: B018


def test_a_fit_does_not_import_the_papers_tools():
    program = """
import sys, numpy as np, skdp
X = np.random.default_rng(0).standard_normal((200, 3))
for solver in skdp.solvers.available():
    constraint = "l2_ball" if "bounded_set" in skdp.solvers.get_solver(solver).needs else None
    try:
        skdp.DPRidge(solver=solver, constraint=constraint, scaling="none").fit(X, X[:, 0])
    except ValueError as refusal:
        assert "Nothing was released" in str(refusal), solver
print([name for name in sys.modules if name.startswith("skdp.planning.papers")])
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, encoding="utf-8"
    )
    assert done.stdout == "[]\n", done.stderr
