"""Choose steps, step size and noise by the utility bounds, given a guess of the condition number.

The bounds are for steps ``w - eta (mean gradient + noise)`` over all rows, of which the last
iterate is kept, on an M-smooth objective with ``|grad F|**2 >= 2 mu (F - F*)`` and kappa = M/mu:
gradient descent with steps of 1/M (Wang, Ye, Xu 2017, Thm 6.2, for uniform noise; Hong, Wang, Zhou
2022, Thms 4.3 and 4.5), or bias-corrected momentum with steps of eta0/(2M) (Thms 4.7 and 4.8). M is
a public bound on the curvature of the mean loss. A proximal step of 1/M on an L2 penalty lambda is
a plain step of ``1/(M + lambda)`` on the sum of both, so the bounds hold for that sum, too, with
its own kappa. They assume that no gradient is clipped. With other penalties, with constraints and
with momentum on a penalised problem they are a guide.
"""

import math

import numpy as np

from skdp import planning, steps
from skdp._numbers import is_real, require, shown
from skdp._warnings import warn
from skdp.solvers import base, checks
from skdp.solvers.base import Problem, Public, Settings, Solver
from skdp.solvers.defaults import count_within, expected_row_norm
from skdp.steps import ExponentialNoise, MomentumNoise, StepMatchedNoise

# Names of noise schedules that follow the solver's momentum and condition number.
ADAPTING_SCHEDULES = ("exponential", "momentum")
# Most steps of a random iterate's run; each is a pass over the rows.
MAX_STEPS = 100_000


def bound_rules(solver: Solver, public: Public, problem: Problem, values: Settings) -> Settings:
    """Return the values of "auto" by the bounds; none if no condition number is given.

    Parameters
    ----------
    solver : Solver
        Its ``condition_number`` and ``initial_gap`` are guesses of kappa and ``F(w_1) - F*``, both
        of which the number of steps requires.
    public, problem : Public, Problem
    values : dict
        The values of "auto" without the bounds.

    Raises
    ------
    ValueError
        If a guess is out of its range, or the bounds do not cover a setting of the solver.
    """
    kappa = _guess(solver, "condition_number", 1.0)
    gap = _guess(solver, "initial_gap", 0.0)
    if kappa is None:
        if gap is None:
            return {}
        if solver.averaging == "random":
            return _random_iterate(solver, public, problem, values, gap)
        raise _refusal(solver, "initial_gap goes with condition_number, which is None")
    _require_bounded_steps(solver)
    smoothness = assumed_curvature(public, problem)
    rule, step_arguments = _steps(solver, kappa, smoothness)
    if gap is not None and public.is_noisy and checks.is_auto(solver.max_iter):
        alpha = _noise(solver, public, smoothness, gap, values)
        schedule = rule["noise_schedule"]
        rule["max_iter"] = _best_number(solver, alpha, kappa, schedule, step_arguments)
        if rule["momentum"] > 0:
            plain = planning.number_of_steps(alpha, kappa, "dynamic")
            if rule["max_iter"] > 10 * plain:
                warn(
                    f"solver {solver.name!r}: the bounds with momentum={rule['momentum']:g} "
                    f"require {rule['max_iter']} steps of {rule['learning_rate']:.3g}, as they "
                    f"allow short steps only; without momentum they require {plain}, which was "
                    "better wherever it was tried. Set momentum=0, or max_iter and learning_rate.",
                    UserWarning,
                )
    return rule


def _random_iterate(
    solver: Solver, public: Public, problem: Problem, values: Settings, gap: float
) -> Settings:
    """Return the values of Wang, Ye, Xu (2017, Thm 6.3), which needs no condition number."""
    smoothness = assumed_curvature(public, problem)
    rule: Settings = {"momentum": 0.0, "noise_schedule": "uniform"}
    rule["learning_rate"] = 1 / smoothness
    if public.is_noisy:
        alpha = _noise(solver, public, smoothness, gap, values)
        rule["max_iter"] = count_within(1 / math.sqrt(alpha), (1, MAX_STEPS))
    return rule


def named_noise(solver: Solver, public: Public, problem: Problem) -> base.RelativeNoise:
    """Return the noise schedule of a resolved solver; names follow its momentum and kappa."""
    schedule: base.RelativeNoise = solver.noise_schedule
    if not (isinstance(schedule, str) and schedule in ADAPTING_SCHEDULES):
        return schedule
    gamma = ExponentialNoise().gamma
    kappa = _guess(solver, "condition_number", 1.0)
    if kappa is not None:
        rule, _ = _steps(solver, kappa, assumed_curvature(public, problem))
        gamma = rule["noise_schedule"].gamma
    if schedule == "exponential":
        return ExponentialNoise(gamma)
    return steps.NOISE_SCHEDULES[schedule](gamma=gamma, beta=float(_momentum(solver).beta))


# ------------------------------------------------------------------ variance reduction


def svrg_rule(
    solver: Solver, public: Public, problem: Problem, clip_norm: float, doubling: bool
) -> Settings:
    """Return epochs, steps and their size by Wang, Ye, Xu (2017, Thms 4.2 and 4.4).

    *SVRG.* An epoch halves the excess where eq. (4) holds, which with ``a = 8 eta L`` requires

        m >= (8 kappa / (a (1 - a)) + a / (1 - a)) / (1/2 - a / (1 - a)),   a < 1/3,

    (so that steps are below 1/(24 L); the 1/(12 L) of the theorem cannot satisfy it): the a with
    the fewest steps m is taken, and as many epochs as bring the excess to its noise, ``log2`` of 1
    over ``2 kappa alpha``. *SVRG++.* Steps of 1/(13 L), m = kappa, which bounds L times the squared
    distance over twice the gap, and ``log2`` of 1 over ``sqrt(alpha)`` epochs.
    """
    kappa = _guess(solver, "condition_number", 1.0)
    gap = _guess(solver, "initial_gap", 0.0)
    if (kappa is None) != (gap is None):
        raise _refusal(solver, "condition_number and initial_gap go together")
    if kappa is None or gap is None:
        return {}
    smoothness = assumed_curvature(public, problem)
    alpha = _noise_constant(public, clip_norm, smoothness, gap)
    if doubling:
        inner, rate = math.ceil(kappa), 1 / (13 * smoothness)
        epochs = math.ceil(math.log2(max(2.0, alpha**-0.5)))
        total = (2 ** (epochs + 1) - 2) * inner
    else:
        a = np.linspace(0.01, 0.33, 321)
        odds = a / (1 - a)
        lengths = (8 * kappa / (a * (1 - a)) + odds) / (0.5 - odds)
        inner = math.ceil(float(lengths.min())) + 1
        rate = float(a[lengths.argmin()]) / (8 * smoothness)
        epochs = math.ceil(math.log2(max(2.0, 1 / (2 * kappa * alpha))))
        total = epochs * inner
    return {"inner_steps": inner, "learning_rate": rate, "max_iter": total}


def assumed_curvature(public: Public, problem: Problem) -> float:
    """Curvature of the mean loss for the longest rows, or, without a bound, for unit columns."""
    return problem.loss.curvature * (public.row_norm or expected_row_norm(public)) ** 2


def _guess(solver: Solver, name: str, least: float) -> float | None:
    value = getattr(solver, name, None)  # some have no such guess
    is_valid = value is None or (is_real(value) and least < value < math.inf)
    require(name, value, f"be None or above {least:g}", is_valid)
    return None if value is None else float(value)


def _refusal(solver: Solver, why: str) -> ValueError:
    return ValueError(f"solver {solver.name!r}: {why}. Nothing was released.")


def _require_bounded_steps(solver: Solver) -> None:
    """Raise ValueError if the bounds do not cover the solver's steps."""
    settings = solver.get_params(deep=False)
    wanted = {
        "batch_size": (None, "batches add noise of their own, and their budget is no sum"),
        "averaging": ("last", "they are for the last iterate"),
    }
    for name, (only, why) in wanted.items():
        value = settings.get(name, only)
        if checks.is_auto(value) or value == only:
            continue
        raise _refusal(
            solver,
            f"with condition_number the utility bounds decide, which need {name}={only!r}: {why}; "
            f"got {name}={shown(value)}",
        )
    momentum = _momentum(solver)
    if isinstance(momentum, steps.HeavyBall) and momentum.beta > 0:
        raise _refusal(
            solver,
            "with condition_number the utility bounds decide, which of momentum know the "
            f"bias-corrected average, as in momentum=('averaged', {{'beta': {momentum.beta:g}}}); "
            f"got momentum={shown(solver.momentum)}",
        )


def _momentum(solver: Solver) -> steps.Momentum:
    """Return the solver's momentum; that of the bounds, for "auto", is none."""
    return steps.momentum_rule(0.0 if checks.is_auto(solver.momentum) else solver.momentum)


def _steps(solver: Solver, kappa: float, smoothness: float) -> tuple[Settings, dict[str, float]]:
    """Return the values by the theorems, and the step size as arguments of `utility_bound`."""
    beta = float(_momentum(solver).beta)
    _, given = checks.given_steps("auto", solver.learning_rate)
    if given is None and not checks.is_auto(solver.learning_rate):
        raise _refusal(
            solver,
            "with condition_number the utility bounds decide, which are for one step size "
            f"throughout; got learning_rate={shown(solver.learning_rate)}",
        )
    rule: Settings = {"momentum": beta, "averaging": "last"}
    if beta == 0:
        size = 1.0 if given is None else given * smoothness
        if not size < 2:
            raise _refusal(
                solver,
                f"the utility bounds need steps shorter than 2/M = {2 / smoothness:.4g}; "
                f"got learning_rate={shown(given)}",
            )
        gamma = 1 - size * (2 - size) / kappa
        rule["learning_rate"] = size / smoothness
        rule["noise_schedule"] = ExponentialNoise(gamma)
        return rule, {"step": size}
    eta0 = planning.largest_momentum_step(beta, kappa) if given is None else 2 * given * smoothness
    if not (eta0 < kappa and beta != 1 - eta0 / kappa) or (
        eta0 > planning.momentum_step_limit(beta, 1 - eta0 / kappa) * (1 + 1e-9)
    ):
        longest = planning.largest_momentum_step(beta, kappa) / (2 * smoothness)
        raise _refusal(
            solver,
            f"with momentum {beta:g} the utility bounds need steps of {longest:.4g} or less; "
            f"got learning_rate={shown(given)}",
        )
    rule["learning_rate"] = eta0 / (2 * smoothness)
    rule["noise_schedule"] = MomentumNoise(1 - eta0 / kappa, beta)
    return rule, {"momentum": beta, "eta0": eta0}


def _noise(
    solver: Solver, public: Public, smoothness: float, gap: float, values: Settings
) -> float:
    """Return alpha of the bounds, see `skdp.planning.noise_constant`."""
    clip = values["clip_norm"] if checks.is_auto(solver.clip_norm) else solver.clip_norm
    return _noise_constant(public, steps.constant_clip(clip), smoothness, gap)


def _noise_constant(public: Public, clip_norm: float, smoothness: float, gap: float) -> float:
    """Return alpha for the budget and the shape of a problem."""
    size, budget = math.prod(public.shape), (public.mu / public.sensitivity_factor) ** 2
    return planning.noise_constant(size, clip_norm, budget, smoothness, public.n_rows, gap)


def _best_number(
    solver: Solver,
    alpha: float,
    kappa: float,
    best: steps.NoiseSchedule,
    step_arguments: dict[str, float],
) -> int:
    """Return the number of steps that minimises the bound for the solver's noise schedule."""
    schedule = best if checks.is_auto(solver.noise_schedule) else solver.noise_schedule
    if isinstance(schedule, str) and schedule in ADAPTING_SCHEDULES:
        schedule = ExponentialNoise(best.gamma) if schedule == "exponential" else best
    schedule = steps.noise_rule(schedule)
    if isinstance(schedule, StepMatchedNoise) and schedule.steps is None:
        schedule = "uniform"  # all steps have the same size
    if isinstance(schedule, (list, tuple, np.ndarray)):
        raise _refusal(
            solver,
            "an array as noise_schedule fits one number of steps only; give max_iter, or a "
            "NoiseSchedule",
        )
    return planning.number_of_steps(alpha, kappa, schedule, **step_arguments)
