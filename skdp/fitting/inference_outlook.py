"""Predict from public facts how many coefficients an inference will determine, and warn if none."""

import warnings

from skdp.fitting.noise_warning import NoiseWarning
from skdp.fitting.preparation import Prepared
from skdp.stages.inference.bounds import MOST_RELATIVE_ERROR, Bounds, enough
from skdp.stages.inference.stage import InferenceStage


def expectation(prepared: Prepared) -> tuple[str, bool] | None:
    """Return how many coefficients are likely to be determined, and whether any; None if not asked.

    A function of public facts: no row has been read.
    """
    stage = next((one for one in prepared.stages if isinstance(one, InferenceStage)), None)
    public, problem = prepared.public_after, prepared.problem
    if stage is None or not public.is_noisy:
        return None
    error = Bounds.of(public, problem, stage.share).relative_error
    count = public.n_features
    if error < MOST_RELATIVE_ERROR:
        text = (
            f"Inference: all {count} coefficients are likely to be determined, if columns are "
            f"little correlated and none is nearly constant (expected relative error {error:.2g} "
            f"of at most {MOST_RELATIVE_ERROR:g})."
        )
        return text, True
    records = enough(public, problem, stage.share, "n_rows")
    epsilon = enough(public, problem, stage.share, "epsilon")
    ways = [] if records is None else [f"about {float(f'{records:.2g}'):.0f} {public.unit}s"]
    ways += [] if epsilon is None else [f"an epsilon of about {epsilon:.2g}"]
    text = (
        f"Inference: none of the {count} coefficients is likely to be determined (expected "
        f"relative error {error:.2g}, of at most {MOST_RELATIVE_ERROR:g}). "
        f"{' or '.join([*ways, 'fewer columns']).capitalize()} would do, for columns that are "
        "little correlated."
    )
    return text, False


def warn_about_inference(who: str, prepared: Prepared) -> None:
    """Warn if no coefficient is likely to be determined, from public facts alone."""
    expected = expectation(prepared)
    if expected is not None and not expected[1]:
        warnings.warn(f"{who}: {expected[0]} No budget has been spent.", NoiseWarning, stacklevel=4)
