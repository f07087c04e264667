"""Steps from the utility bounds: what gd and residual_budget make of guesses of kappa and gap."""

from __future__ import annotations

import math

import numpy as np
import pytest

import skdp
from benchmarks.papers.theory import relaxed_number_of_steps
from skdp.accounting import Adjacency, gaussian_mu
from skdp.objective import L2, Multinomial, Problem, SquaredError
from skdp.oracle import Public
from skdp.planning import largest_momentum_step, noise_constant, utility_bound
from skdp.solvers import GradientDescent, ResidualBudget
from skdp.solvers.core.bound_rules import assumed_curvature
from skdp.solvers.defaults import descent_defaults
from skdp.steps import (
    AveragedGradient,
    ExponentialNoise,
    MomentumNoise,
    PolynomialStep,
    StepMatchedNoise,
)

PROBLEM = Problem(SquaredError(), L2(0.1))
KAPPA, GAP, CLIP = 20.0, 0.5, 3.0
GUESSES = {"condition_number": KAPPA, "initial_gap": GAP}


def facts(adjacency=Adjacency.ZERO_OUT, **known):
    known = {"n_rows": 400, "n_features": 5, "epsilon": 1.0, "delta": 1e-6, **known}
    known = {"data_norm": 2.0, "row_bound": 2.0, **known}
    return Public(n_outputs=1, adjacency=adjacency, **known)


def alpha_by_hand(public):
    sensitivity = CLIP * (2 if public.adjacency is Adjacency.REPLACE_ONE else 1)
    budget = gaussian_mu(public.epsilon, public.delta) ** 2
    smoothness = public.row_norm**2
    return 6 * sensitivity**2 / (2 * budget * smoothness * public.n_rows**2 * GAP)


def best_by_brute_force(alpha, schedule, **options):
    bounds = [utility_bound(n, alpha, KAPPA, schedule, **options) for n in range(1, 700)]
    return 1 + int(np.argmin(bounds))


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize("kind", [GradientDescent, ResidualBudget])
@pytest.mark.parametrize(
    ("schedule", "same"),
    [
        ("auto", "dynamic"),
        ("uniform", "uniform"),
        ("step_matched", "uniform"),
        (StepMatchedNoise(), "uniform"),
        (ExponentialNoise(0.9), ExponentialNoise(0.9)),
    ],
    ids=str,
)
def test_the_number_of_steps_makes_the_bound_least(kind, schedule, same, adjacency):
    public = facts(adjacency)
    ours = kind(noise_schedule=schedule, clip_norm=CLIP, **GUESSES).resolve(public, PROBLEM)
    assert ours.max_iter == best_by_brute_force(alpha_by_hand(public), same)
    assert ours.learning_rate == pytest.approx(1 / public.row_norm**2)
    assert (ours.momentum, ours.averaging) == (0.0, "last")
    if schedule == "auto":
        assert ours.noise_schedule.gamma == pytest.approx(1 - 1 / KAPPA)


@pytest.mark.parametrize("kind", [GradientDescent, ResidualBudget])
@pytest.mark.parametrize("schedule", ["auto", "uniform"])
def test_the_number_of_steps_with_momentum(kind, schedule):
    public = facts()
    solver = kind(
        momentum=("averaged", {"beta": 0.5}),
        noise_schedule=schedule,
        clip_norm=CLIP,
        **GUESSES,
    )
    ours = solver.resolve(public, PROBLEM)
    eta0 = largest_momentum_step(0.5, KAPPA)
    same = MomentumNoise(1 - eta0 / KAPPA, 0.5) if schedule == "auto" else "uniform"
    found = best_by_brute_force(alpha_by_hand(public), same, momentum=0.5, eta0=eta0)
    assert ours.max_iter == found
    assert ours.learning_rate == pytest.approx(eta0 / (2 * public.row_norm**2))
    if schedule == "auto":
        assert ours.noise_schedule.beta == 0.5


@pytest.mark.parametrize("pace", [0.3, 1.0, 1.7])
def test_a_step_size_of_the_users_own_enters_the_bound(pace):
    public = facts()
    size = pace / public.row_norm**2
    solver = GradientDescent(learning_rate=size, clip_norm=CLIP, **GUESSES)
    ours = solver.resolve(public, PROBLEM)
    assert ours.learning_rate == size
    assert ours.noise_schedule.gamma == pytest.approx(1 - pace * (2 - pace) / KAPPA)
    assert ours.max_iter == best_by_brute_force(alpha_by_hand(public), "dynamic", step=pace)


def test_uniform_noise_is_gradient_descent_under_the_pl_condition():
    """As many steps as in Wang, Ye, Xu, or more: their bound adds early noise up in full."""
    public = facts()
    ours = GradientDescent(noise_schedule="uniform", clip_norm=CLIP, **GUESSES)
    relaxed = relaxed_number_of_steps(alpha_by_hand(public), KAPPA)
    assert relaxed < ours.resolve(public, PROBLEM).max_iter < 3 * relaxed


def test_what_is_set_stays_and_without_guesses_nothing_changes():
    public = facts()
    assert GradientDescent(max_iter=7, **GUESSES).resolve(public, PROBLEM).max_iter == 7
    plain = GradientDescent().resolve(public, PROBLEM).get_params()
    for name, value in descent_defaults(public, PROBLEM).items():
        assert plain[name] == value
    # without noise there is no best number of steps: the default one
    quiet = facts(epsilon=math.inf)
    steps = GradientDescent(**GUESSES).resolve(quiet, PROBLEM).max_iter
    assert steps == GradientDescent().resolve(quiet, PROBLEM).max_iter


def test_curvature_of_rows_without_a_bound_is_that_of_unit_columns():
    public = facts(data_norm=None, row_bound=None)
    assert assumed_curvature(public, PROBLEM) == pytest.approx(5 + public.intercept_size**2)
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(50)] * 5)  # uncentred, and as correlated as can be
    Z = np.column_stack([Z, np.full(50, public.intercept_size)])
    assert np.linalg.eigvalsh(Z.T @ Z / 50)[-1] <= assumed_curvature(public, PROBLEM) * (1 + 1e-12)
    problem = Problem(Multinomial(3))
    p = rng.dirichlet(np.ones(3), 100)
    worst = max(np.linalg.eigvalsh(np.diag(q) - np.outer(q, q))[-1] for q in p)
    assert worst * (5 + public.intercept_size**2) <= assumed_curvature(public, problem)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"condition_number": 10.0, "initial_gap": None}, "together or not"),
        ({"condition_number": None, "initial_gap": 1.0}, "together or not"),
        ({"condition_number": 1.0}, "condition_number must be None or above 1"),
        ({"condition_number": math.inf}, "condition_number must be None or above 1"),
        ({"initial_gap": -1.0}, "initial_gap must be None or above 0"),
        ({"initial_gap": "big"}, "initial_gap must be None or above 0"),
        ({"batch_size": 32}, "need batch_size=None: batches add noise"),
        ({"averaging": "tail"}, "need averaging='last'"),
        ({"momentum": 0.5}, r"bias-corrected average, as in .*got momentum=0\.5"),
        ({"momentum": ("averaged", {"beta": 1.5})}, "momentum must be"),
        ({"learning_rate": 10.0}, "need steps shorter than 2/M"),
        ({"learning_rate": PolynomialStep()}, "one step size throughout"),
        (
            {"learning_rate": 1.0, "momentum": AveragedGradient(0.9)},
            "with momentum 0.9 the utility bounds need steps of .* or less",
        ),
        ({"clip_norm": "adaptive"}, "adaptive clipping follows noisy counts"),
        ({"noise_schedule": np.ones(9)}, "fits one number of steps only"),
    ],
    ids=str,
)
def test_where_no_bound_holds_it_is_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        GradientDescent(**{**GUESSES, **bad}).resolve(facts(), PROBLEM)


def test_the_residual_budget_takes_kappa_alone_but_not_the_gap():
    assert ResidualBudget(condition_number=9.0).resolve(facts(), PROBLEM).averaging == "last"
    with pytest.raises(ValueError, match="initial_gap goes with condition_number"):
        ResidualBudget(initial_gap=1.0).resolve(facts(), PROBLEM)


def test_fits_end_below_the_bound():
    """True kappa and gap of a ridge problem: the mean excess of 40 fits, with no clipping."""
    rng = np.random.default_rng(0)
    n_rows, penalty, clip_norm = 500, 0.3, 20.0
    X = rng.standard_normal((n_rows, 4))
    X *= 2 / np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ [1.0, -1.0, 0.5, 0.0]
    hessian = X.T @ X / n_rows
    smoothness = 4.0 + penalty
    best = np.linalg.solve(hessian + penalty * np.eye(4), X.T @ y / n_rows)

    def excess(w):
        return 0.5 * (w - best) @ (hessian + penalty * np.eye(4)) @ (w - best)

    kappa = smoothness / (np.linalg.eigvalsh(hessian)[0] + penalty)
    gap = excess(np.zeros(4))
    alpha = noise_constant(4, clip_norm, gaussian_mu(1.0, 1e-6) ** 2, 4.0, n_rows, gap)
    for schedule, same in (("auto", "dynamic"), ("uniform", "uniform")):
        solver = GradientDescent(
            condition_number=kappa, initial_gap=gap, clip_norm=clip_norm, noise_schedule=schedule
        )
        model = skdp.DPRidge(
            alpha=penalty * n_rows,
            epsilon=1.0,
            delta=1e-6,
            scaling=skdp.RowNorm(2.0),
            fit_intercept=False,
            solver=solver,
        )
        fits = [
            skdp.DPRidge(
                **model.get_params(deep=False)
                | {
                    "privacy": skdp.Privacy(noise=skdp.SeededNoise(s)),
                }
            )
            for s in range(40)
        ]
        left = np.mean([excess(fit.fit(X, y).coef_) for fit in fits]) / gap
        steps = fits[0].n_iter_
        bound = utility_bound(steps, alpha, kappa, same)
        assert 1 < steps < 300
        assert 0.02 * bound < left <= bound < 1
