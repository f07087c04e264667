"""Warn where a guarantee, or a fit, is weaker than its user may think."""

import math

from sklearn.exceptions import ConvergenceWarning

from skdp._warnings import warn
from skdp.oracle import Public, Solution

# Length of the last gradient without noise, next to the first, up to which a fit has converged:
# with "whitened" a sound fit ends below 1e-11, and Longley's data in raw units at 3e-6, where
# coefficients are off by 710 per cent; with "gd" they are right to three digits from about here on.
CONVERGED = 1e-6


class PrivacyWarning(UserWarning):
    """A guarantee is weaker than its user may think."""


class SeededNoiseWarning(PrivacyWarning):
    """The noise of a fit follows from a seed: whoever knows the seed can subtract the noise."""


def warn_about_seed(who: str, noise_source: str, epsilon: float) -> None:
    """Warn that the noise of a fit can be reproduced, where there is noise."""
    if noise_source == "seeded" and not math.isinf(epsilon):
        warn(
            f"{who}: noise=SeededNoise(seed) makes the noise reproducible: whoever knows the seed "
            "can subtract it, so the result is NOT private. Use it for tests and for research on "
            "public data; the default, noise='system', is secure.",
            SeededNoiseWarning,
        )


def warn_about_budget(who: str, epsilon: float, delta: float, n_rows: int) -> None:
    """Warn where a budget promises little."""
    if math.isinf(epsilon):
        warn(
            f"{who}: epsilon=inf adds no noise: the result is NOT private. Use it for debugging "
            "on public data only.",
            PrivacyWarning,
        )
    elif delta > 1 / n_rows:
        warn(
            f"{who}: delta={delta:g} is above 1/n = {1 / n_rows:g}: it allows a mechanism that "
            "publishes a whole record now and then. Choose delta well below 1/n.",
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
            PrivacyWarning,
        )


def warn_about_score(who: str, epsilon: float) -> None:
    """Warn that a score is computed from rows without noise."""
    if not math.isinf(epsilon):
        warn(
            f"{who}: score() is computed from these rows without noise, and no budget pays for it: "
            "publish it only if the rows are public. skdp.metrics.evaluate scores with noise; "
            "DPSearchCV and dp_cross_validate use such scores.",
            PrivacyWarning,
        )


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
