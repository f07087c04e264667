"""Warn of fits and calls that are not private, and of fits that have not converged."""

import math
from types import FrameType
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from skdp._oracle import Public, Solution
from skdp._warnings import calls_around, warn

# Length of the last gradient without noise, next to the first, up to which a fit has converged:
# with "whitened" a sound fit ends below 1e-11, and Longley's data in raw units at 3e-6, where
# coefficients are off by 710 per cent. With "gd" they are right to three digits from about here on.
CONVERGED = 1e-6

REFITTED = (
    "This estimator was fitted {} times on the same rows, or on some of them, and each fit "
    "released something about them."
)
RESAMPLES = (
    "adds, repeats or removes rows by looking at them ({}.fit_resample). The result is NOT private "
    "as stated: whoever is in k of the rows is protected k times less, and rows that were made "
    "from others depend on several people. Leave that step out. For rare classes set class_weight "
    "to public weights, such as class_weight={{0: 1, 1: 20}}."
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
            f"{who}: noise=SeededNoise(seed) makes the noise reproducible: whoever knows the seed "
            "can subtract it, so the result is NOT private. Use it for tests and for research on "
            "public data. The default, noise='system', is secure.",
            SeededNoiseWarning,
        )


def warn_about_budget(who: str, epsilon: float, delta: float, n_rows: int) -> None:
    """Warn where a budget promises little."""
    if math.isinf(epsilon):
        warn(
            f"{who}: epsilon=inf adds no noise: the result is NOT private. Use it for debugging "
            "on public data only.",
            NotPrivateWarning,
        )
        return
    if epsilon > LARGEST_EPSILON:
        warn(
            f"{who}: epsilon={epsilon:g} is above {LARGEST_EPSILON}: a result may be "
            f"exp({LARGEST_EPSILON}) = {math.exp(LARGEST_EPSILON):.0e} times as probable with a "
            "record as without it, which hardly protects anybody. An epsilon of at most 10 is "
            "usual.",
            PrivacyWarning,
        )
    if delta >= 1 / n_rows:
        warn(
            f"{who}: delta={delta:g} is not below 1/n = {1 / n_rows:g}. With such a delta, even "
            "publishing a randomly chosen record would satisfy the definition. Choose delta well "
            "below 1/n.",
            PrivacyWarning,
        )


def warn_about_label_set(who: str, reads_labels: bool, epsilon: float) -> None:
    """Warn that the set of labels comes from the rows.

    With an infinite epsilon there is no guarantee to weaken, and `warn_about_budget` says so.
    """
    if reads_labels and not math.isinf(epsilon):
        warn(
            f"{who}: classes=None takes the set of labels from y and releases it exactly: a label "
            "that one record alone has gives that record away. Declare the labels that are "
            "possible, without looking at y, by classes=[...].",
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
        f"{who}: the model was fitted on these rows, or on some of them. Its scores are better "
        "than on new rows, and both prices add up: skdp.total_privacy(model, scores). Score it on "
        "rows that the fit did not use, as skdp.model_selection.DPHoldout does.",
        PrivacyWarning,
    )


def warn_about_calls(who: str, epsilon: float) -> None:
    """Warn of estimators that resample the rows of this fit, or score it without noise."""
    if math.isinf(epsilon):
        return
    for text in resampling_around():
        warn(f"{who}: {text}", NotPrivateWarning)
    if any(map(_scores_exactly, calls_around())):
        warn_about_score(who, epsilon, "scikit-learn scores this fit on other private rows")


def resampling_around() -> tuple[str, ...]:
    """Say which estimator around a fit resamples its rows, () if none does."""
    for frame in calls_around():
        if frame.f_code.co_varnames[:1] == ("self",) and "fit" in frame.f_code.co_name:
            meta = frame.f_locals["self"]
            sampler = resampler_in(meta)
            if sampler is not None:
                return (f"{type(meta).__name__} {RESAMPLES.format(sampler)}",)
    return ()


def resampler_in(meta: Any) -> str | None:
    """Return the name of the part of an estimator that has ``fit_resample``, if there is one."""
    parts = [] if isinstance(meta, type) else list(getattr(meta, "__dict__", {}).values())
    seen: set[int] = set()
    while parts:
        part = parts.pop()
        if isinstance(part, list | tuple):
            parts += [] if id(part) in seen else part
            seen.add(id(part))
        elif hasattr(type(part), "fit_resample"):
            return type(part).__name__
    return None


def _scores_exactly(frame: FrameType) -> bool:
    """Whether a call is one of scikit-learn that scores a fit, other than by its ``score``."""
    if not str(frame.f_globals.get("__name__")).startswith("sklearn."):
        return False
    for name in {"scorer", "curve_scorer"}.intersection(frame.f_code.co_varnames):
        scorer = frame.f_locals.get(name)
        for one in getattr(scorer, "_scorers", {name: scorer}).values():
            # What a function of the user computes may be private.
            is_exact = type(one).__module__.startswith("sklearn.")
            if is_exact and type(one).__name__ != "_PassthroughScorer":
                return True
    return False


def warn_about_row_counts(who: str, public: Public, rows_per_group: float | None) -> None:
    """Warn that a guess of the rows per group has no effect on a fit."""
    if rows_per_group is None or rows_per_group <= 1 or public.clips_means:
        return
    reason = "solver, unlike 'gd', clips single rows" if public.grouped else "fit has no groups"
    warn(f"{who}: rows_per_group={rows_per_group:g} has no effect, as this {reason}.", UserWarning)


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
        f"{last / first:.2g} times as long as its first, without noise. Coefficients may be far "
        "off. Standardise columns that are taken as they are (scaling='none'), leave out columns "
        "that nearly follow from others, or raise max_iter.",
        ConvergenceWarning,
    )


def warn_about_export(who: str, has_limits: bool) -> None:
    """Warn that a linear model predicts some rows otherwise than the one that it is made of."""
    if has_limits:
        warn(
            f"{who}: to_sklearn() returns a model that is linear everywhere. This one clips "
            "columns to the ranges of the fit and shrinks rows with large norms, so rows beyond "
            "these limits get other predictions. Clip columns first, which removes most of the "
            "difference: np.clip(X, scaling_.columns.low, scaling_.columns.high), or "
            "LEAST(GREATEST(x, low), high) in SQL.",
            UserWarning,
        )
