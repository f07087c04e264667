"""What tests of several stages share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skdp.stages import choice


@pytest.fixture
def weights_are_taken(monkeypatch):
    """Let fits with an inference take weights, which they refuse: a null record has weight 0."""
    original = choice.lacking_for_inference

    def lacking(public, *arguments):
        return original(replace(public, weighted=False), *arguments)

    monkeypatch.setattr(choice, "lacking_for_inference", lacking)
