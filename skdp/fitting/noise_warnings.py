"""Predict how much noise costs a fit, and warn if it leaves little of the signal."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skdp import accounting
from skdp._numbers import Array, Mask, listed
from skdp._warnings import warn
from skdp.fitting.preparation import Prepared
from skdp.fitting.user_warnings import NoiseWarning
from skdp.objective import Problem
from skdp.oracle import Plan, Public, Scaling, Solution
from skdp.planning.bounds import LEAST_LOSS, MOST_LOSS, expected_loss, hopeless, signal_for
from skdp.stages.calibration import SKEWED
from skdp.stages.inference.bounds import MOST_RELATIVE_ERROR, Bounds, enough
from skdp.stages.inference.stage import InferenceStage
from skdp.stages.scaling.stage import ScalingStage

WASTEFUL = 0.2  # of what larger batches tell for the same budget
# Shares of what there is to learn, R2, D2 or log loss over a constant, that half of the fits lose
# at most: messages say how many rows would do.
HALF, TENTH = 0.5, 0.1
# Kind of the measured fits with targets of a kind; and of those with a loss that was measured.
KINDS = {"real": "regression", "nonnegative": "log link", "label": "two classes"}
MEASURED_LOSSES = {"squared_error": "regression", "tweedie_log": "log link"}
MEASURED_LOSSES |= {"logistic": "two classes", "multinomial": "more classes"}
# There is a warning after a fit with mu n times the mean curvature of the loss below the first of
# two figures, if by the coefficients it gains less than the second over a constant, in the loss.
# Chosen on utility.csv and the development half of held_out.csv; `python -m benchmarks utility
# --verdict` and `held_out --verdict` count the warnings.
LEAST_GAINS = {"regression": (125.0, 0.0625), "two classes": (20.0, 0.0225)}

# ---------------------------------------------------------------- noise of batches


@dataclass(frozen=True)
class _Answers:
    """So many Gaussian answers on a share of the rows; whether their batches are disjoint."""

    count: int
    share: float
    noise: float
    disjoint: bool = False
    spread: float = 2.0

    @property
    def is_batch(self) -> bool:
        """True for means estimated from part of the rows, and not for counts, of spread 1."""
        return self.share < 1 and not (self.disjoint and self.spread <= 1)

    @property
    def information(self) -> float:
        """Inverse squared noise of one answer on all rows that is as informative about a mean."""
        return self.count * (self.share / self.noise) ** 2

    @property
    def cost(self) -> float:
        """Inverse squared noise that a row meets, as most rows do."""
        return self.count * (self.share if self.disjoint else 1.0) / self.noise**2


def warn_about_noise(who: str, plan: Plan, public: Public, problem: Problem) -> None:
    """Warn if batches carry little of the information that their part of the budget could buy.

    All figures are public: the plan's noise multipliers, n, the shape and the budget. Measured in
    units of one record's bound over n, answers on a share q of the rows with noise multiplier s
    tell of a mean as much as one answer on all rows with the noise ``1 / sqrt(sum (q / s)**2)``;
    answers on all rows, each step costing the same budget, would need no more than ``1 / mu``.

    *Random samples.* Once s falls below about 1, amplification by sampling is lost, and smaller
    batches need nearly the same noise for ever fewer rows: with mu what a budget is in Gaussian
    differential privacy, ``q = mu / sqrt(T)`` is about where that sets in (Dong, Roth, Su 2019,
    Cor. 5.4, whose ``mu**2 = q**2 T (exp(1 / s**2) - 1)`` gives s = 1.2 there).

    *Disjoint batches*, which cost their maximum, tell ``mu sqrt(q)`` in whole passes, and less in
    a part of one. That is the price of many steps for one; a warning is due where besides the noise
    on a step is longer than the clipping norm, so that steps go where the noise points.
    """
    scale = plan.calibration.scale
    if scale == 0:
        return
    if "unconstrained" in problem.provides:  # in a small set, noise may count for less
        _warn_about_signal(who, public, problem)
    if plan.adaptive or public.is_pure:
        return
    answers = [part for entry in plan.entries for part in _answers(entry.event, entry.count, scale)]
    batches = [part for part in answers if part.is_batch]
    if not batches:
        return
    mu = public.mu / public.sensitivity_factor
    elsewhere = sum(part.cost for part in answers if not part.is_batch)
    left = math.sqrt(max(mu**2 - elsewhere, 0.0))
    informative = math.sqrt(sum(part.information for part in batches))
    steps = sum(part.count for part in batches)
    noise = max(part.noise for part in batches)
    share = min(part.share for part in batches)
    rows, disjoint = share * public.n_rows, any(part.disjoint for part in batches)
    length = noise * math.sqrt(math.prod(public.shape)) / rows
    if informative >= WASTEFUL * left or (disjoint and length <= 1):
        return
    enough = max(WASTEFUL / math.sqrt(steps), WASTEFUL**2) if disjoint else left / math.sqrt(steps)
    sensible = max(math.ceil(2 * rows), math.ceil(enough * public.n_rows - 1e-6))
    sensible = min(public.n_rows, max(2, sensible))
    units = f"{public.unit}s"
    advice = (
        f"Larger batches, of about {sensible} {units} each, are sensible."
        if disjoint
        else f"With so many steps a batch_size of about {sensible} is sensible."
    )
    warn(
        f"{who}: {steps} steps on batches of about {rows:.0f} of {public.n_rows} {units} need "
        f"noise of {noise:.3g} times the clipping norm on every coordinate of a sum, so that the "
        f"noise on a step's mean gradient is {length:.3g} times as long as the clipping norm. They "
        f"yield {100 * informative / left:.2g} per cent of what this part of the budget buys with "
        f"larger batches. {advice} These figures come from the plan alone; no budget has been "
        "spent yet.",
        NoiseWarning,
    )


# ---------------------------------------------------------------- signal of a default fit


def warn_about_units(who: str, scaling: str, prepared: Prepared) -> None:
    """Warn that rows are not going to be standardised, unless units are declared.

    These are the rows of some streams, and all rows under pure differential privacy.
    """
    public = prepared.public
    is_scaled = any(isinstance(stage, ScalingStage) for stage in prepared.stages)
    is_raw = public.streamed or (public.is_pure and public.is_noisy)
    if is_scaled or not is_raw or scaling == "none":
        return
    what = "columns" if prepared.problem.loss.targets == "label" else "columns and targets"
    why = "" if public.streamed else " with delta=0"
    warn(
        f"{who}: this fit{why} does not standardise {what}: they have to be of about unit size, "
        "and with others the model can be far worse than a constant. Set scaling=PublicRange(low, "
        "high), divide them by public figures, or declare the largest length of a row by "
        "scaling=RowNorm(norm); scaling='none' confirms that they are of about unit size. No "
        "budget has been spent yet.",
        NoiseWarning,
    )


def _unlike_measured(prepared: Prepared) -> str:
    """Return in which respects a fit differs from the ones that were measured; "" if in none."""
    public, problem = prepared.public, prepared.problem
    facts = {
        "this loss": problem.loss.name not in MEASURED_LOSSES,
        "this penalty or constraint": not {"unconstrained", "smooth_penalty"} <= problem.provides,
        "groups": public.grouped,
        "delta=0": public.is_pure,
    }
    return " and ".join(name for name, is_so in facts.items() if is_so)


def signal_to_noise(public: Public) -> float:
    """Return ``mu n / p``: how far a fit of p parameters to n rows stands out of its noise.

    With pure differential privacy, mu is that of Gaussian noise of the same standard deviation.
    """
    mu = public.laplace_budget / math.sqrt(2) if public.is_pure else public.mu
    return mu / public.sensitivity_factor * public.n_rows / public.n_parameters


def rows_for(share: float, public: Public, kind: str) -> int:
    """Return how many rows half of the fits of a kind need to lose no more than this share."""
    wanted = signal_for(kind, share) / signal_to_noise(public) * public.n_rows
    digits = max(0, int(math.log10(max(wanted, 1))) - 1)  # two figures are more than is known
    return int(max(2, math.ceil(wanted / 10**digits) * 10**digits))


def expectations(prepared: Prepared, skewness: Array | None = None) -> tuple[str, ...]:
    """Return what a default fit is expected to lose, and how many rows would do, in sentences.

    All of it follows from the budget, the shape of X and, after a fit, the estimated skewness of
    the targets.
    """
    public, problem = prepared.public, prepared.problem
    kind = MEASURED_LOSSES.get(problem.loss.name, KINDS.get(problem.loss.targets))
    if kind is None or not public.is_noisy:
        return ()
    unlike = _unlike_measured(prepared)
    signal = signal_to_noise(public)
    score = {"regression": "R2", "log link": "D2"}.get(kind, "log loss")
    alike, others = "data sets", ""
    if kind == "regression" and skewness is not None and np.abs(skewness).max() > SKEWED:
        kind, alike = "skewed regression", "data sets whose targets have a skewness above 2"
        others = " The histogram of these targets suggests such a skewness."
    elif kind == "regression":
        alike = "data sets whose targets have no long tail"
        skewed = _interval("skewed regression", signal)
        others = " This assumes a skewness of at most 2: of targets beyond it, such as counts and "
        others += f"costs, four in five lose between {skewed}."
    if unlike:
        others += f" Fits with {unlike} were not measured: these figures are of fits without them."
    of_means = {"real", "nonnegative"} if problem.loss.name in MEASURED_LOSSES else set()
    is_skewed = skewness is None or np.abs(skewness).max() > SKEWED
    if problem.loss.targets in of_means and public.target_bound is None and is_skewed:
        others += (
            " Mean predictions of skewed targets, such as costs, are about 5% too low, and up to "
            "18% with very heavy tails, as the largest targets are clipped."
        )
        if problem.loss.targets == "real":
            others += " A declared range, scaling=PublicRange(target=(low, high)), avoids this."
    half = max(expected_loss(kind, signal).median, LEAST_LOSS)  # less counts as 0 there
    median = ("at least " if half == MOST_LOSS else "no more than ") + _percent(half)
    return (
        f"Signal over noise, mu n / p, is {signal:.3g} for {public.n_rows} {public.unit}s and "
        f"{public.n_parameters} parameters. At this figure, half of the default fits to other "
        f"{alike} lose {median} of what the same model gains over a constant without privacy, in "
        f"{score}; four in five lose between {_interval(kind, signal)}. (100% is as bad as a "
        f"constant.){others}",
        f"Half of such fits lose no more than {_percent(HALF)} from about "
        f"{rows_for(HALF, public, kind)} rows on, and no more than {_percent(TENTH)} from about "
        f"{rows_for(TENTH, public, kind)} rows on.",
    )


def expectations_after(prepared: Prepared, scaling: Scaling | None) -> tuple[str, ...]:
    """Return what a fit that estimated the skewness of its targets is expected to have lost."""
    targets = None if scaling is None else scaling.targets
    if targets is None or targets.skewness is None or inference_expectation(prepared) is not None:
        return ()
    return expectations(prepared, targets.skewness)


def warn_about_gain(who: str, prepared: Prepared, solution: Solution) -> None:
    """Warn if a fit gains little over a constant by its own coefficients.

    It is post-processing: half the variance of the margins, as of uncorrelated columns of unit
    size, times the mean curvature of the loss. That is a mean over margins which are normal around
    the intercept, or the one that a calibration has released, if less: where columns are far from
    0, the intercept does not show how rare a class is, whose coefficients are the noisier for it.
    """
    public, loss = prepared.public, prepared.problem.loss
    kind, ratio = MEASURED_LOSSES.get(loss.name, ""), signal_to_noise(public)
    if kind not in LEAST_GAINS:
        return  # nothing like it was measured
    is_alike = public.n_outputs == 1 and not public.start and not _unlike_measured(prepared)
    scaling = solution.scaling or Scaling()
    estimated = scaling.targets if kind == "regression" else scaling.columns
    is_of_unit_size = estimated is not None and estimated.skewness is not None
    is_measured = is_alike and is_of_unit_size
    if not is_measured or hopeless(kind, ratio) or inference_expectation(prepared):
        return  # nothing like it was measured, or warned of before
    spread = float(np.linalg.norm(solution.coef[: public.n_features]))
    places = np.linspace(-3, 3, 25)[:, None]
    margins = spread * places + public.intercept_size * public.has_intercept * solution.coef[-1]
    curvatures = loss.second_derivative(margins, np.zeros(len(places)))
    curvature = float(np.average(curvatures, weights=np.exp(-(places**2) / 2)))
    curvature = min(curvature, solution.mean_curvature)
    gain = spread**2 / 2 * curvature
    few, least = LEAST_GAINS[kind]
    if gain < least and ratio * curvature < few / public.n_parameters:
        warn(
            f"{who}: by its coefficients the model gains little over a constant. Of fits to other "
            "data sets that gained so little at so small a budget, half were worse than a "
            "constant. More rows, fewer columns or a larger epsilon would help.",
            NoiseWarning,
        )


def _interval(kind: str, signal: float) -> str:
    """Return an interval in words; curves are cut where it hardly matters how bad a fit is."""
    lost = expected_loss(kind, signal)
    limits = lost.low, max(lost.high, LEAST_LOSS)
    return " and ".join("more than " * (one == MOST_LOSS) + _percent(one) for one in limits)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 1 else f"{100 * share:.0f}%"


def _warn_about_signal(who: str, public: Public, problem: Problem) -> None:
    """Warn if there are so few rows, for the budget and the columns, that nothing can be learnt."""
    alike = KINDS.get(problem.loss.targets)
    kind, unit = MEASURED_LOSSES.get(problem.loss.name, alike), f"{public.unit}s"
    if kind is None:  # nothing like it was measured
        return
    signal, n_parameters = signal_to_noise(public), public.n_parameters
    if hopeless(kind, signal):
        what = (
            f"estimate {n_parameters} parameters from {public.n_rows} {unit}; do not expect "
            f"better predictions than those of a constant. About {rows_for(HALF, public, kind)} "
            f"{unit} would suffice for half of what there is to learn, as fits to other data sets "
            f"went, and about {rows_for(TENTH, public, kind)} for nine tenths; or fewer columns, "
            "or a larger epsilon"
        )
    elif alike == "two classes" and hopeless(alike, signal * n_parameters / public.n_outputs):
        what = (
            f"learn {public.n_outputs} classes from {public.n_rows} {unit}, as each class has "
            "parameters of its own. If the labels are numbers to be predicted, use a regressor; "
            "otherwise merge classes"
        )
    else:
        return
    budget = f"epsilon={public.epsilon:g} and delta={public.delta:g}"
    what = f"the noise is too large to {what}. No budget has been spent yet."
    warn(f"{who}: at {budget} {what}", NoiseWarning)


def _answers(event: accounting.Event, count: int, scale: float) -> Iterator[_Answers]:
    """Yield the Gaussian answers in an event, in the calibrated noise; others are left out."""
    for part, times in accounting.walk(event, into=accounting.Composed):
        n = count * times
        answer = part.event if isinstance(part, accounting.EventWrapper) else part
        if not isinstance(answer, accounting.Gaussian):
            continue
        noise, spread = scale * answer.noise_multiplier, answer.spread
        match part:
            case accounting.Gaussian():
                yield _Answers(n, 1.0, noise, spread=spread)
            case accounting.PoissonSampled() | accounting.FixedSizeSampled():
                yield _Answers(n, part.rate, noise, spread=spread)
            case accounting.OnBlock(partition=partition, block=block):
                share = 1 / partition.n_blocks
                if partition.cuts is not None:
                    cuts = partition.cuts
                    share = (cuts[block + 1] - cuts[block]) / max(1, cuts[-1] - cuts[0])
                yield _Answers(n, share, noise, share < 1, spread)
            case accounting.DisjointPass() | accounting.Shuffled():
                blocks = part.n_answers
                yield _Answers(blocks * n, 1 / blocks, noise, blocks > 1, spread)


# ---------------------------------------------------------------- inference


# What is true of columns that determine no coefficient, whatever the noise.
COLLINEAR = (
    "If columns are collinear (duplicates, all labels of a category) or constant, leave one out, "
    "such as by drop of DPTabularPreprocessor: no budget determines their coefficients."
)


def inference_expectation(prepared: Prepared) -> tuple[str, bool] | None:
    """Return whether coefficients are likely to be determined, in words, too; None without.

    A function of public facts: no row has been read.
    """
    stage = next((one for one in prepared.stages if isinstance(one, InferenceStage)), None)
    public, problem = prepared.public_after, prepared.problem
    if stage is None or not public.is_noisy:
        return None
    error = Bounds.of(public, problem, stage.share).relative_error
    if error < MOST_RELATIVE_ERROR:
        text = (
            "Inference: all coefficients are likely to be determined, if columns are little "
            f"correlated and none is nearly constant (expected relative error {error:.2g} "
            f"of at most {MOST_RELATIVE_ERROR:g}). {COLLINEAR}"
        )
        return text, True
    records = enough(public, problem, stage.share, "n_rows")
    epsilon = enough(public, problem, stage.share, "epsilon")
    ways = [] if records is None else [f"about {float(f'{records:.2g}'):.0f} {public.unit}s"]
    ways += [] if epsilon is None else [f"an epsilon of about {epsilon:.2g}"]
    text = (
        "Inference: no coefficient is likely to be determined (expected relative error "
        f"{error:.2g}, of at most {MOST_RELATIVE_ERROR:g}). "
        f"{' or '.join([*ways, 'fewer columns']).capitalize()} would do, for columns that are "
        "little correlated."
    )
    return text, False


def warn_about_collinear_columns(
    who: str, prepared: Prepared, determined: Mask, names: Sequence[object] | None
) -> None:
    """Warn of coefficients that are not determined although the noise would permit it.

    The plan expects them to be, from public facts, if columns are little correlated. Which are not
    follows from the releases of the inference.
    """
    expected, left = inference_expectation(prepared), np.flatnonzero(~np.ravel(determined))
    if expected is not None and expected[1] and len(left):
        columns = np.unique(left % prepared.public.n_features).tolist()
        named = listed([names[place] for place in columns] if names else columns)
        warn(
            f"{who}: the coefficients of columns {named} "
            "are not determined, although the noise is small enough for columns that are little "
            f"correlated. {COLLINEAR}",
            NoiseWarning,
        )


def warn_about_inference(who: str, prepared: Prepared) -> None:
    """Warn if no coefficient is likely to be determined, from public facts alone."""
    expected = inference_expectation(prepared)
    if expected is not None and not expected[1]:
        warn(f"{who}: {expected[0]} No budget has been spent yet.", NoiseWarning)
