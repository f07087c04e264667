"""A dossier follows its schema, answers the checklist of the page, and promises nothing."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp.audit import dossier
from skdp.audit.dossier import CHECKLIST

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((Path(skdp.__file__).parent / "audit/dossier.schema.json").read_text("utf-8"))
EXAMPLE = ROOT / "docs/_static/dossier"
TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
    "integer": int, "number": (int, float),
}  # fmt: skip


def violations(value, schema, place=""):
    """What a JSON value has against a schema, of the keywords that ours uses."""
    unknown = set(schema) - {
        "$schema", "title", "description", "type", "const", "enum", "required", "properties",
        "additionalProperties", "items",
    }  # fmt: skip
    assert not unknown, unknown
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, TYPES[kind]) for kind in kinds):
        yield f"{place}: {value!r} is not of {kinds}"
    if value not in schema.get("enum", [schema.get("const", value)]):
        yield f"{place}: {value!r}"
    if isinstance(value, dict):
        yield from (f"{place}: no {name}" for name in set(schema.get("required", ())) - set(value))
        for name, part in value.items():
            rest = schema.get("additionalProperties", {})
            inner = schema.get("properties", {}).get(name, rest)
            if inner is False:
                yield f"{place}: {name} is not in the schema"
            else:
                yield from violations(part, inner, f"{place}.{name}")
    if isinstance(value, list):
        for number, part in enumerate(value):
            yield from violations(part, schema.get("items", {}), f"{place}[{number}]")


def text_of(page):
    return unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dossier")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    ledger = folder / "charges.db"
    with skdp.PrivacyBudget(3.0, 1e-6, ledger=ledger):
        model = skdp.DPLinearRegression(solver="gd", max_iter=2, scaling="none")
        model.fit(X, X.sum(axis=1))
    answers = {"storage": "<b>Erased</b>."}
    with pytest.MonkeyPatch.context() as patch:  # fresh noise raises a false alarm now and then
        patch.setattr(os, "urandom", rng.bytes)
        content = dossier(
            model, folder / "out", ledger=ledger, answers=answers, n_fits=100, random_state=0
        )
    return model, ledger, folder / "out", content


def test_it_follows_the_schema(written):
    model, _, folder, content = written
    stored = json.loads((folder / "dossier.json").read_text("utf-8"))
    assert stored == content
    assert not list(violations(stored, SCHEMA))
    assert skdp.PrivacyStatement.from_dict(stored["statement"]) == model.privacy_
    assert stored["audit"]["ok"]
    assert stored["ledger"]["charged_in_lines"] == [3]
    assert "storage" not in stored["open"]
    assert "tuning" in stored["open"]


def test_what_the_schema_forbids_is_noticed(written):
    content = written[3]
    for wrong in (
        {"schema": 2},
        {"extra": 1},
        {"ledger": {}},
        {"checklist": [{"question": "?", "answer": 1, "open": True}]},
        {"statement": {**content["statement"], "adjacency": "add_one"}},
    ):
        assert list(violations({**content, **wrong}, SCHEMA)), wrong


@pytest.mark.parametrize("example", [False, True])
def test_a_reader_meets_the_main_facts_first(written, example):
    folder = EXAMPLE if example else written[2]
    stored = json.loads((folder / "dossier.json").read_text("utf-8"))
    assert not list(violations(stored, SCHEMA))
    said = text_of((folder / "dossier.html").read_text("utf-8"))
    first = said[: said.index("Privacy statement")]
    for name in ("epsilon  1", "delta  1e-06", "Unit of privacy  one row", "replay on", "canaries"):
        assert name in first
    for assumption in stored["statement"]["assumptions"]:
        assert assumption in first
    assert re.search(r"head [0-9a-f]{64}", said)
    assert not re.search(r"compl(y|iant|ies|iance)|anonymous|certif(y|icate)|guaranteed", said)


def test_the_checklist_is_that_of_the_page():
    page = (ROOT / "docs/reviewers/checklist.rst").read_text("utf-8")
    questions = re.findall(r"\* - (.*\?)\n", page)
    assert [question for question, _, _ in CHECKLIST] == questions


def test_text_of_people_is_escaped(written):
    page = (written[2] / "dossier.html").read_text("utf-8")
    assert "&lt;b&gt;Erased" in page
    assert "<b>Erased" not in page


def test_refusals(written, tmp_path):
    model, ledger, *_ = written
    with pytest.raises(ValueError, match=r"answers has 'stroage'; allowed .*Nothing was"):
        dossier(model, tmp_path / "no", answers={"stroage": "here"})
    with pytest.raises(ValueError, match="must be text"):
        dossier(model, tmp_path / "no", answers={"storage": 3})
    changed = tmp_path / "changed.db"
    changed.write_bytes(ledger.read_bytes())
    with sqlite3.connect(changed) as connection:
        connection.execute("DROP TRIGGER line_is_not_updated")
        connection.execute("UPDATE line SET entry = replace(entry, '1.0', '0.1') WHERE number = 3")
    with pytest.raises(skdp.PrivacyBudgetError, match="line 3 or the one before"):
        dossier(model, tmp_path / "no", ledger=changed)
    assert not (tmp_path / "no").exists()
