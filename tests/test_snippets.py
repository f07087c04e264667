"""The code blocks of the pages that are no doctests: each is run, word for word."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import sklearn

import documentation
import readme
import skdp

SIGN = ".. code-block:: python"
NOT_RUN = {
    "development/add_a_release": "two lines of a solver; test_documentation.py runs the release",
}
PAGES = [name for name, text in documentation.pages().items() if SIGN in text]
# Whatever takes minutes, or starts workers (test_ledger.py does), in short.
SHORTER = {"n_fits=5000": "n_fits=200", "n_jobs=2": "n_jobs=1"}
OPTIONAL = ("skops", "skl2onnx", "onnxruntime")


def snippets(page):
    """Code blocks of a page, in order."""
    found, block = [], None
    for line in documentation.pages()[page].splitlines():
        if line.startswith(SIGN):
            block = []
            found.append(block)
        elif block is not None and (not line or line.startswith("    ")):
            block.append(line[4:])
        else:
            block = None
    return ["\n".join(block).strip() for block in found]


@pytest.mark.parametrize("page", [page for page in PAGES if page not in NOT_RUN])
@pytest.mark.filterwarnings("ignore::skdp.NoiseWarning")
@pytest.mark.filterwarnings("ignore:PrivacyBudget:skdp.PrivacyWarning")  # of a search's scores
def test_the_snippets_of_a_page_run_in_a_blank_script(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    with sklearn.config_context():  # a page may set it
        for snippet in snippets(page):
            for package in OPTIONAL:
                if package in snippet:
                    pytest.importorskip(package, reason="the extra 'interchange' is not installed")
            for long, short in SHORTER.items():
                snippet = snippet.replace(long, short)
            exec(compile(snippet, page, "exec"), names)
    CHECKED.get(page, lambda names: None)(names)


def check_interchange(names):
    """The model that was saved is the same, and so are the probabilities by ONNX."""
    model, again, X = names["model"], names["again"], names["X"]
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert again.privacy_ == model.privacy_
    assert len(names["trusted"]) == len(names["types"]) > 3
    assert "(3, 1e-06)-differentially private" in Path("README.md").read_text(encoding="utf-8")
    assert names["probabilities"] == pytest.approx(names["plain"].predict_proba(X), abs=1e-12)
    assert (names["labels"] == names["plain"].predict(X)).mean() > 0.99


TOTAL = "print(total_privacy(model, scores.privacy_, delta=1e-6))  # epsilon 1"


def check_total(names, *blocks):
    """Fit and score cost epsilon 1 together, as the last line of every block prints."""
    total = skdp.total_privacy(names["model"], names["scores"].privacy_, delta=1e-6)
    assert total.epsilon == pytest.approx(1.0, abs=1e-6)
    assert all(block.splitlines()[-1].startswith(TOTAL) for block in blocks)


def check_first_page(names):
    """The last model is the regression; its score is private, and not bad."""
    assert 0.5 < names["scores"]["r2"].value < 0.95
    blocks = snippets("tutorial/first_private_model")
    assert max(sum(bool(line.strip()) for line in block.splitlines()) for block in blocks) <= 15
    check_total(names, blocks[-1])
    assert names["total"].epsilon == pytest.approx(1.0, abs=1e-6)  # of the classifier


CHECKED = {
    "how_to/publish": check_interchange,
    "tutorial/first_private_model": check_first_page,
    "index": lambda names: check_total(names, *snippets("index")),
    "how_to/score": lambda names: check_total(names, snippets("how_to/score")[0]),
}


def test_the_readme_fits_and_scores_for_the_epsilon_that_it_prints():
    """The model of its first block, and the pipeline and rows of its second."""
    names = readme.run()
    check_total(names, readme.blocks()[0])
    holdout = names["DPHoldout"](names["stays"], names["readmitted"])
    model = holdout.fit(names["pipeline"])
    check_total({"model": model, "scores": holdout.evaluate(model, epsilon=1.0, delta=1e-6)})


@pytest.mark.parametrize(
    "make", [skdp.DPRidge, lambda **given: skdp.DPRidge(inference="coefficients", **given)]
)
def test_regressors_go_through_skops_and_onnx(make, regression):
    skops = pytest.importorskip("skops.io", reason="the extra 'interchange' is not installed")
    pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, y = regression
    model = make(epsilon=3.0).fit(X, y)
    saved = skops.dumps(model)
    types = skops.get_untrusted_types(data=saved)
    assert {name.split(".")[0] for name in types} == {"skdp"}
    again = skops.loads(saved, trusted=types)
    assert (again.predict(X) == model.predict(X)).all()
    plain = model.to_sklearn()
    converted = importlib.import_module("skl2onnx").to_onnx(plain, X[:1])
    session = runtime.InferenceSession(converted.SerializeToString())
    (found,) = session.run(None, {"X": X})
    assert found[:, 0] == pytest.approx(plain.predict(X), abs=1e-12)
