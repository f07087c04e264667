"""What replay sees beside rows: secrets that a fit keeps, dependent noise, hidden parts, reads."""

from __future__ import annotations

import numpy as np
import pytest

import skdp
from benchmarks.bugs import BUGS, GROUPS
from skdp import audit
from skdp.audit.neighbours import hostile_pairs
from skdp.audit.randomness import tail_probabilities
from skdp.model_selection import DPSearchCV
from skdp.solvers import GradientDescent

FEW = {"solver": "gd", "max_iter": 4, "scaling": "none"}
SECRETS = "{} depends on the noise or secret choices beyond the releases"
QUICK = {
    "noise_drawn_too_small": "the noise that was drawn is too small",
    "noise_reused": "the noise of one answer came again in another one",
    "words_repeat": "the noise of one fit came again in another one",
}
SEEN = {
    "noise_kept": SECRETS.format("noise_"),
    "batches_kept": SECRETS.format("batches_"),
    "sizes_kept": SECRETS.format("sizes_"),
    "runs_kept": SECRETS.format("n_runs_"),
    "scores_kept": SECRETS.format("scores_"),
    "noise_reversed": "came again in another one",
    "noise_combined": "follows, in part, from that of earlier answers",
    "best_iterate": "rows were read while no release was being answered",
    "step_withheld": "rows were read while no release was being answered",
    "noise_withheld": "the noise that was drawn is too small",
    "statement_halved": "the statement says epsilon 2. The releases that it lists cost 4",
    "coefficients_are_a_view_whose_base_holds_all_rows": "coef_ depends on the rows",
    "attribute_is_a_partial_function_of_the_rows": "helper_ depends on the rows",
    "attribute_whose_pickle_hides_rows": "helper_ depends on the rows",
    "another_object": "what fit returned depends on the rows",
    "always_row_0": "batches do not hold records as often as was charged: 1 of the time",
    "twice_the_rate": "batches do not hold records as often as was charged",
    "rate_squared": "batches do not hold records as often as was charged",
    "multipliers_left_out": "a gradient statistic moved by",
    "tails_no_group": "a tails statistic moved by",
    "label_CappedHessian_free": "coef_ depends on the rows beyond the releases",
    "label_multinomial_spread": "a gradient statistic moved by 1.4",
    "offset_escapes_clipping": "a gradient statistic moved by",
    "offset_kept": "mean_offset depends on the rows",
    "prior_centred": "statistic moved by",
    "score_squares_label_multi": "a score_squares statistic moved by 1.4",
}


def test_every_bug_can_be_seeded():
    for _, seed, estimator in BUGS.values():
        with pytest.MonkeyPatch.context() as patch:
            seed(patch)
        assert hasattr(estimator("zero_out"), "fit")


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning", "ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize(
    ("name", "said"),
    [*QUICK.items(), *(pytest.param(*one, marks=pytest.mark.slow) for one in SEEN.items())],
)
def test_a_seeded_bug_is_seen(name, said, monkeypatch):
    _, seed, estimator = BUGS[name]
    seed(monkeypatch)
    report = audit.replay(estimator("zero_out"), groups=GROUPS.get(name))
    assert any(said in finding.text for finding in report.findings), report


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning", "ignore::skdp.PrivacyWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        DPSearchCV(
            skdp.DPLogisticRegression(classes=[0, 1], **FEW),
            {"C": [0.1, 1]},
            epsilon=3.0,
            n_candidates=2,
        ),
        skdp.DPRidge(solver=GradientDescent(max_iter=6, batch_size=20), scaling="none"),
        skdp.DPRidge(
            solver=GradientDescent(max_iter=6, batch_size=20, sampling="fixed_size"),
            privacy=skdp.Privacy(adjacency="replace_one"),
            scaling="none",
        ),
        skdp.DPRidge(
            solver="shuffled_sgd",
            max_iter=20,
            scaling="none",
            privacy=skdp.Privacy(noise=skdp.SeededNoise(0)),
        ),
    ],
    ids=["search", "poisson", "fixed size", "seeded pass"],
)
def test_secrets_that_are_not_kept_raise_no_alarm(estimator):
    report = audit.replay(estimator)
    assert report.ok, report
    assert not report.refused


@pytest.mark.parametrize("draw", ["standard_normal", "laplace"])
@pytest.mark.parametrize("shape", [(23, 4, 5), (1, 8, 5), (23, 3, 1)])
def test_independent_noise_looks_dependent_as_seldom_as_is_said(rng, draw, shape):
    found = np.concatenate(
        [
            tail_probabilities(getattr(rng, draw)(size=shape))
            for _ in range(60_000 // np.prod(shape))
        ]
    )
    for level in (0.1, 0.01):
        error = np.sqrt(level / len(found))
        assert (found < level).mean() < 1.3 * level + 4 * error


def test_noise_that_is_partly_that_of_the_answer_before_is_found(rng):
    noise = rng.standard_normal((23, 3, 5))
    noise[:, 2] = 0.6 * noise[:, 2] + 0.8 * noise[:, 0, ::-1]
    assert min(tail_probabilities(noise)) < 1e-11


def test_compiled_loops_are_replayed(compiled_kernels, monkeypatch):
    from skdp._oracle.kernels import clipped_gradients as kernel

    original = kernel._compiled_sum

    def too_long(*given, **named):
        total = original(*given, **named)
        return None if total is None else 1.5 * total

    monkeypatch.setattr(kernel, "_compiled_sum", too_long)
    found = {finding.pair for finding in audit.replay(skdp.DPRidge(**FEW)).findings}
    assert "long record among many" in found


@pytest.mark.parametrize("dtype", ["int64", "int16", "uint8"])
def test_targets_may_be_integers(dtype):
    X, y = audit.made_up_data(skdp.DPRidge())
    whole = np.clip(np.rint(3 * y), 0, 9).astype(dtype)
    pairs = list(hostile_pairs(skdp.DPRidge(), X, whole, skdp.accounting.Adjacency.REPLACE_ONE))
    assert {pair.data["y"].dtype for pair in pairs} == {whole.dtype}
    limits = {np.iinfo(dtype).min, min(np.iinfo(dtype).max, 10**12)}
    assert limits <= {value for pair in pairs for value in pair.data["y"].tolist()}
    report = audit.replay(skdp.DPRidge(**FEW), X, whole)
    assert report.ok, report
