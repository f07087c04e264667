"""The page on stages: its example is one class and one line of the sequence."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

import skdp
from skdp import audit
from skdp._stages import sequence

PAGE = Path(__file__).parents[2] / "docs" / "development" / "add_a_stage.rst"


@pytest.fixture
def stage(monkeypatch):
    block = re.search(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", PAGE.read_text())[1]
    page = types.ModuleType("add_a_stage")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    exec(re.sub("^    ", "", block, flags=re.MULTILINE), vars(page))
    monkeypatch.setattr(sequence, "STAGES", (*sequence.STAGES, page.CountHalfway))
    return page.CountHalfway


def test_a_fit_runs_it_and_keeps_its_result(stage, regression, capsys):
    X, y = regression
    model = skdp.DPRidge(epsilon=50.0).fit(X, y)
    kinds = [record.kind for record in model.privacy_.releases]
    assert "residual_count" in kinds
    assert kinds.index("gradient") < kinds.index("residual_count") < len(kinds) - 1
    assert model.privacy_.epsilon <= 50.0
    assert "residuals, give or take" in capsys.readouterr().out
    assert 0 < model.halfway_count_ <= 1.5 * len(y)
    assert any("A noisy count" in text for text in model.privacy_.assumptions)


def test_a_fit_that_it_does_not_apply_to_leaves_it_out(stage, regression):
    model = skdp.DPRidge(solver="gd").fit(*regression)
    assert hasattr(model, "halfway_count_")
    model.set_params(solver="boosted_ssp").fit(*regression)  # which forgets those of the fit before
    assert not hasattr(model, "halfway_count_")
    assert model.n_iter_ > 0


@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
def test_replay_covers_it(stage):
    report = audit.replay(skdp.DPRidge(solver="gd", max_iter=4, scaling="none"))
    # What it prints follows from an answer that was charged.
    assert report.ok, report
    assert "residual_count" in str(report)
