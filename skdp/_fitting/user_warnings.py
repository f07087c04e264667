"""Warn of fits that are not private, have not converged, or are likely to be mostly noise."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skdp._numbers import Mask, Table, counted, listed
from skdp._oracle import Plan, Public, Solution
from skdp._stages.inference import InferenceStage
from skdp._stages.inference_bounds import MOST_RELATIVE_ERROR, Bounds
from skdp._stages.scaling.stage import ScalingStage
from skdp._stages.sequence import Prepared
from skdp._warnings import warn
from skdp.solvers.defaults import equivalent_mu

# Length of the last gradient without noise, next to the first, up to which a fit has converged:
# with "whitened" a sound fit ends below 1e-11, and Longley's data in raw units at 3e-6, where
# coefficients are off by 710 per cent. With "gd" they are right to three digits from about here on.
CONVERGED = 1e-6

REFITTED = (
    "This estimator was fitted {} times on the same rows, or on some of them, and each fit "
    "released something about them."
)
# Shares of what there is to learn, R2, D2 or log loss over a constant, that half of the fits lose
# at most: messages say how many rows would do.
HALF, TENTH = 0.5, 0.1
# Kind of the measured fits with targets of a kind, and of those with a loss that was measured.
KINDS = {"real": "regression", "nonnegative": "log link", "label": "two classes"}
MEASURED_LOSSES = {"squared_error": "regression", "tweedie_log": "log link"}
MEASURED_LOSSES |= {"logistic": "two classes", "multinomial": "more classes"}
LEAST_ROWS = 50  # below so few rows no median is stated

# Names of columns that identify a person: "patient_id", "MRN", "NHS number", "customerNo".
IDENTIFIER = re.compile(
    r"(.*[\W_])?(p?id|uuid|key|name|ssn|mrn|nino|email)|(?-i:.*[a-z]I[dD])|.*national[\W_]*insurance.*|"
    r"(.*[\W_])?(patient|person|client|customer|member|subject|employee|student|case|record|nhs|"
    r"hospital|insurance|security|passport|account)[\W_]*(id|no|nr|num|number)",
    re.IGNORECASE,
)

# Above this epsilon a guarantee hardly limits what an attacker learns.
LARGEST_EPSILON = 20


class PrivacyWarning(UserWarning):
    """A guarantee is weaker than its user may assume. The subclasses say in which way."""


class NotPrivateWarning(PrivacyWarning):
    """The result is not private, or the stated epsilon does not hold for it."""


class PrivacyLeakWarning(PrivacyWarning):
    """A fact about the rows is revealed exactly, such as which labels occur in them."""


class ExactScoreWarning(PrivacyWarning):
    """A score is computed from rows without noise. The model itself is private."""


class SeededNoiseWarning(NotPrivateWarning):
    """The noise of a fit follows from a seed: whoever knows the seed can subtract the noise."""


class NoiseWarning(UserWarning):
    """The noise is likely to make a model much worse than the budget would allow."""


# ---------------------------------------------------------------- privacy and convergence


def warn_about_seed(who: str, noise_source: str, epsilon: float) -> None:
    """Warn that the noise of a fit can be reproduced, where there is noise."""
    if noise_source == "seeded" and not math.isinf(epsilon):
        warn(
            f"{who}: whoever knows the seed of noise=SeededNoise(seed) can subtract the noise: the "
            "result is NOT private. Use it for tests and for research on public data.",
            SeededNoiseWarning,
        )


def warn_about_budget(who: str, epsilon: float, delta: float, n_rows: int) -> None:
    """Warn where a budget promises little."""
    if math.isinf(epsilon):
        warn(
            f"{who}: epsilon=inf adds no noise: the result is NOT private. Use public data only.",
            NotPrivateWarning,
        )
        return
    if epsilon > LARGEST_EPSILON:
        warn(
            f"{who}: epsilon={epsilon:g} is above {LARGEST_EPSILON}, which hardly protects "
            "anybody. An epsilon of at most 10 is usual.",
            PrivacyWarning,
        )
    if delta >= 1 / n_rows:
        warn(
            f"{who}: delta={delta:g} is not below 1/n = {1 / n_rows:g}. Such a delta permits "
            "publishing a randomly chosen record. Choose delta well below 1/n.",
            PrivacyWarning,
        )


def warn_about_label_set(who: str, reads_labels: bool, epsilon: float) -> None:
    """Warn that the set of labels comes from the rows.

    With an infinite epsilon there is no guarantee to weaken, and `warn_about_budget` says so.
    """
    if reads_labels and not math.isinf(epsilon):
        warn(
            f"{who}: classes=None takes the set of labels from y and releases it exactly, even a "
            "label of only one record. Declare the possible labels by classes=[...].",
            PrivacyLeakWarning,
        )


def warn_about_columns(who: str, X: Table, names: Sequence[str]) -> None:
    """Warn of columns that seem to identify persons, or to encode labels read from the rows."""
    persons = [name for name in names if IDENTIFIER.fullmatch(name)]
    if persons:
        warn(
            f"{who}: these columns seem to identify persons: {listed(persons)}. Leave them out of "
            "X. If a person may have several rows, pass the identifier as groups: otherwise the "
            "guarantee is for single rows.",
            PrivacyWarning,
        )
    typed = zip(names, getattr(X, "dtypes", ()), strict=False)
    flags = (name for name, dtype in typed if str(dtype).lower() in ("bool", "boolean"))
    counts = Counter(flag.rpartition("_")[0] for flag in flags)
    encoded = [f"{prefix}_..." for prefix, count in counts.items() if prefix and count > 1]
    if encoded:
        warn(
            f"{who}: the boolean columns {listed(encoded)} look like those of pandas.get_dummies, "
            "which reads labels from the rows: a rare label gives somebody away. Declare labels in "
            "skdp.DPTabularPreprocessor, or convert columns of declared labels by astype(float).",
            PrivacyLeakWarning,
        )


def warn_about_score(
    who: str, epsilon: float, what: str = "score() is computed from these rows"
) -> None:
    """Warn that a score is computed from rows without noise."""
    if not math.isinf(epsilon):
        warn(
            f"{who}: {what} without noise, and no budget covers it. Publish the score, or a "
            "choice made by it, only if the rows are public. skdp.metrics.evaluate scores with "
            "noise; DPSearchCV and dp_cross_validate use such scores.",
            ExactScoreWarning,
        )


def warn_about_refit(who: str, text: str, epsilon: float) -> None:
    """Warn that an estimator was fitted several times on the same rows."""
    warn(
        f"{who}: {text} The total is epsilon={epsilon:.4g}, as privacy_ says. Choose among fits by "
        "DPSearchCV, whose price does not grow with their number.",
        PrivacyWarning,
    )


def warn_about_scored_rows(who: str) -> None:
    """Warn that a model is scored on rows that it was fitted on."""
    warn(
        f"{who}: the model was fitted on these rows, or on some of them. Its scores are "
        "better than on new rows, and both prices add up. Score it on other rows, "
        "as skdp.model_selection.DPHoldout does.",
        PrivacyWarning,
    )


def warn_unless_converged(who: str, solution: Solution, public: Public) -> None:
    """Warn if a fit without noise ended before its minimum, by gradients that were answered.

    Where a start was given the first gradient says nothing, as the minimum may be next to it.
    """
    if public.is_noisy or not solution.slopes or public.start is not None:
        return
    first, last = solution.slopes[0], solution.slopes[-1]
    if last <= CONVERGED * first:
        return
    warn(
        f"{who}: the solver stopped before it reached the minimum: its last gradient is "
        f"{last / first:.2g} times as long as its first. Standardise columns, leave out those that "
        "nearly follow from others, or raise max_iter.",
        ConvergenceWarning,
    )


# ---------------------------------------------------------------- loss of a default fit

QUANTILES = 0.1, 0.5, 0.9  # over fits to different data, of the share that is lost
# Shares of the explainable part. Less than the first counts as nothing, more than the second as
# the second: a model is then worse than a constant by as much as one without privacy is better.
LEAST_LOSS, MOST_LOSS = 1e-3, 2.0
# Share that half of the fits lose, or more, where there is a warning before a fit. From 1 on they
# would be worse than a constant. The others, of which some gain much, are left to what a fit finds.
HOPELESS_LOSS = 1.4

# By kind and quantile (at, slope): the share lost is (signal / at) ** -slope, where the signal is
# mu n / p. Skewed regressions are those of targets with a skewness above 2, such as counts. Fitted
# to utility.csv, held_out.csv and, for log links, counts.csv in benchmarks/results by
# `python -m benchmarks expected`, which rewrites these lines.
CURVES = {
    "regression": {0.1: (0.204, 1.13), 0.5: (1.35, 1.22), 0.9: (2.07, 1.01)},
    "skewed regression": {0.1: (0.832, 1.85), 0.5: (2.91, 0.838), 0.9: (13.4, 0.672)},
    "log link": {0.1: (1.45, 1.55), 0.5: (2.17, 0.835), 0.9: (12.7, 0.401)},
    "two classes": {0.1: (0.398, 1.21), 0.5: (1.11, 0.964), 0.9: (2.47, 0.576)},
    "more classes": {0.1: (0.378, 0.812), 0.5: (0.58, 0.661), 0.9: (6.58, 0.708)},
}


def expected_loss(kind: str, signal: float) -> list[float]:
    """Return the share lost by default fits at a signal, by the fits of the benchmarks.

    It is the share of the gain of the same model without privacy over a constant prediction, in R2,
    with a log link in D2 or, for classifiers, in log loss. Shares above 1 are those of models that
    are worse than a constant.

    Parameters
    ----------
    kind : {"regression", "skewed regression", "log link", "two classes", "more classes"}
    signal : float
        ``mu n / p``: the Gaussian-DP parameter of the budget, times rows, over parameters of an
        output. Positive.

    Returns
    -------
    list of three floats
        The median is in the middle. Four in five fits to other data lie between the others.
    """
    at, slope = np.transpose([CURVES[kind][quantile] for quantile in QUANTILES])
    lost = np.exp(np.minimum(slope * (np.log(at) - math.log(signal)), math.log(MOST_LOSS)))
    # Curves may cross where a model is worse than a constant.
    return sorted(np.where(lost > LEAST_LOSS, lost, 0.0).tolist())


def signal_for(kind: str, share: float) -> float:
    """Return the signal at which half of the fits lose no more than this positive share."""
    at, slope = CURVES[kind][0.5]
    return float(at * share ** (-1 / slope))


def hopeless(kind: str, signal: float) -> bool:
    """Return whether half of the fits of a kind lose more than `HOPELESS_LOSS` at a signal."""
    return signal < signal_for(kind, HOPELESS_LOSS)


def warn_about_units(who: str, scaling: str, prepared: Prepared) -> None:
    """Warn that rows are not going to be standardised, unless units are declared.

    These are the rows of some streams, and under pure differential privacy those with so many
    columns that noise would exceed their counts.
    """
    public = prepared.public
    scalings = [stage for stage in prepared.stages if isinstance(stage, ScalingStage)]
    is_scaled = any(one.known.columns or one.features.n_columns for one in scalings)
    is_raw = public.streamed or public.has_laplace_noise
    if is_scaled or not is_raw or scaling == "none":
        return
    what = "columns" if prepared.problem.loss.targets == "label" else "columns and targets"
    why = "" if public.streamed else " with delta=0"
    warn(
        f"{who}: this fit{why} does not standardise {what}: if they are not of about unit size, "
        "the model can be far worse than a baseline. Set scaling=PublicRange(low, high) or "
        "RowNorm(norm), or confirm their size by scaling='none'. No budget has been spent yet.",
        NoiseWarning,
    )


def signal_to_noise(public: Public, plan: Plan) -> float:
    """Return ``mu n / p``: how far a fit of p parameters to n rows stands out of its noise.

    With pure differential privacy, mu is that of Gaussian noise of the same standard deviation as
    the average of the answers, but at most that of the least delta that plans distinguish from 0.
    """
    mu = public.mu
    if public.is_pure:
        mu = min(mu, equivalent_mu(public, sum(entry.count for entry in plan.entries)))
    return mu / public.sensitivity_factor * public.n_rows / public.n_parameters


def rows_for(share: float, signal: float, n_rows: int, kind: str) -> int:
    """Return how many rows half of the fits of a kind need to lose no more than this share.

    ``n_rows`` have the signal over noise ``signal``.
    """
    wanted = signal_for(kind, share) / signal * n_rows
    digits = max(0, int(math.log10(max(wanted, 1))) - 1)  # two figures are more than is known
    return int(max(2, math.ceil(wanted / 10**digits) * 10**digits))


def expectations(prepared: Prepared) -> tuple[str, ...]:
    """Return the expected loss of a default fit and the rows that it needs, in sentences.

    All of it follows from the budget and the shape of X.
    """
    public, problem = prepared.public, prepared.problem
    kind = _kind(prepared)
    if kind is None or not public.is_noisy:
        return ()
    if public.is_pure:
        return ("No loss is predicted with delta=0, as such fits were not measured.",)
    facts = {
        "this loss": problem.loss.name not in MEASURED_LOSSES,
        "this penalty or constraint": not {"unconstrained", "smooth_penalty"} <= problem.provides,
        "groups": public.grouped,
    }
    unlike = " and ".join(name for name, is_so in facts.items() if is_so)
    signal = signal_to_noise(public, prepared.plan)
    score = {"regression": "R2", "log link": "D2"}.get(kind, "log loss")
    others = ""
    if kind == "regression":
        others = (
            " This assumes a skewness of the targets of at most 2. With more skewed targets, such "
            "as counts and costs, 80% of the fits lose between "
            f"{_interval('skewed regression', signal)}."
        )
    if unlike:
        others += f" Fits with {unlike} were not measured. These figures are of fits without them."
    half = max(expected_loss(kind, signal)[1], LEAST_LOSS)  # less counts as 0 there
    median = ("at least " if half == MOST_LOSS else "no more than ") + _percent(half)
    needed = {one: rows_for(one, signal, public.n_rows, kind) for one in (HALF, TENTH)}
    medians = ", and ".join(
        f"at most {_percent(one)} from about {n_rows} rows on"
        for one, n_rows in needed.items()
        if n_rows >= LEAST_ROWS
    )
    return (
        f"Signal over noise, mu n / p, is {signal:.3g} for {counted(public.n_rows, public.unit)} "
        f"and {counted(public.n_parameters, 'parameter')}. At this figure, half of the "
        f"default fits to other data sets lose {median} of the non-private model's improvement "
        f"over a baseline, in {score}. 80% of them lose between {_interval(kind, signal)}. (A loss "
        f"of 100% is as bad as the baseline.){others}",
        *([f"The median loss is {medians}."] if medians else []),
    )


def _kind(prepared: Prepared) -> str | None:
    """Return the kind of the measured fits that a fit is alike, None if none is."""
    loss = prepared.problem.loss
    return MEASURED_LOSSES.get(loss.name, KINDS.get(loss.targets))


def _interval(kind: str, signal: float) -> str:
    """Return an interval in words. Curves are cut where it hardly matters how bad a fit is."""
    low, _, high = expected_loss(kind, signal)
    limits = low, max(high, LEAST_LOSS)
    return " and ".join("more than " * (one == MOST_LOSS) + _percent(one) for one in limits)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 1 else f"{100 * share:.0f}%"


def warn_about_noise(who: str, prepared: Prepared) -> None:
    """Warn if there are so few rows, for the budget and the columns, that nothing can be learnt.

    All figures are public.
    """
    plan, public, problem = prepared.plan, prepared.public, prepared.problem
    kind, unit = _kind(prepared), f"{public.unit}s"
    # Nothing else was measured, and in a small set noise may count for less.
    if plan.calibration.scale == 0 or kind is None or "unconstrained" not in problem.provides:
        return
    signal, n_parameters = signal_to_noise(public, plan), public.n_parameters
    if hopeless(kind, signal):
        half, most = (rows_for(share, signal, public.n_rows, kind) for share in (HALF, TENTH))
        advice = (
            f"In our benchmarks, models of this size needed about {half} {unit} to reach half of "
            f"the possible improvement, and about {most} to reach 90%. You can also use fewer "
            "columns or a larger epsilon"
        )
        if public.is_pure:
            advice = "Use fewer columns, a positive delta or a larger epsilon"
        what = (
            f"estimate {counted(n_parameters, 'parameter')} from "
            f"{counted(public.n_rows, public.unit)}: do not expect better "
            f"predictions than a baseline's. {advice}"
        )
    elif problem.loss.targets == "label" and hopeless(
        KINDS["label"], signal * n_parameters / public.n_outputs
    ):
        what = (
            f"learn {public.n_outputs} classes from {counted(public.n_rows, public.unit)}, as each "
            "class has parameters of its own. If the labels are numbers to be predicted, use a "
            "regressor. Otherwise merge classes"
        )
    else:
        return
    budget = f"epsilon={public.epsilon:g} and delta={public.delta:g}"
    what = f"the noise is too large to {what}. No budget has been spent yet."
    warn(f"{who}: at {budget} {what}", NoiseWarning)


# ---------------------------------------------------------------- inference


# What is true of columns that determine no coefficient, whatever the noise.
COLLINEAR = (
    "No budget determines the coefficients of collinear columns (duplicates, all labels of a "
    "category) or constant ones. Leave one column out, for example by drop of "
    "DPTabularPreprocessor. Events that occur in few rows are a further cause: use more rows."
)


def inference_expectation(prepared: Prepared) -> tuple[str, bool] | None:
    """Return whether coefficients are likely to be determined, also in words. None without.

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
    text = (
        "Inference: no coefficient is likely to be determined (expected relative error "
        f"{error:.2g}, of at most {MOST_RELATIVE_ERROR:g}). Use more {public.unit}s, a larger "
        "epsilon or fewer columns, and ask the plan again."
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
    """Warn if no coefficient is likely to be determined, by public facts."""
    expected = inference_expectation(prepared)
    if expected is not None and not expected[1]:
        warn(f"{who}: {expected[0]} No budget has been spent yet.", NoiseWarning)
