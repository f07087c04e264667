"""What tests of several stages share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skdp.stages.inference.stage import InferenceStage


@pytest.fixture
def weights_are_taken(monkeypatch, raw_weights):
    """Let fits with an inference take weights, which they refuse: a null record has weight 0."""
    original = InferenceStage.applies

    def applies(public, *arguments):
        return original(replace(public, weighted=False), *arguments)

    monkeypatch.setattr(InferenceStage, "applies", applies)
