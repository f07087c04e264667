"""The demonstration, the README and the examples of the documentation do what they say."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import documentation
import readme
from skdp import demo
from skdp.solvers.base import REGISTRY

ROOT = Path(__file__).parents[1]
README = readme.README
PAGES = [name for name, text in documentation.pages().items() if ">>> " in text]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Output of the command; the extra "demo" is not part of what the tests need."""
    pytest.importorskip("matplotlib", reason="the extra 'demo' is not installed")
    place = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "skdp", "--quick", "--output", "picture.png"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=place, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in place.iterdir()] == ["picture.png"]
    assert (place / "picture.png").read_bytes().startswith(b"\x89PNG")
    return done.stdout


def test_the_table_has_a_row_for_every_data_set_and_epsilon(ran):
    """At a large budget a private model comes near its reference."""
    found = re.findall(
        r"^(\S.*: \S+) +\d+ +\d+ +(\S+) +(\S+) \(.*\) +(\S+) +\S+$", ran, re.MULTILINE
    )
    expected = [(data, f"{epsilon:g}") for data in demo.EXPERIMENTS for epsilon in demo.EPSILONS]
    assert [(data, epsilon) for data, epsilon, *_ in found] == expected
    for _, epsilon, score, reference in found:
        if epsilon == "10":
            assert float(score) > float(reference) - 0.15


def test_the_report_states_the_guarantee_of_one_model(ran):
    assert "guarantee: (1, 1e-06)-differentially private" in ran
    assert "n = 426, is public" in ran
    assert "skdp.total_privacy" in ran


def test_every_model_kept_to_its_budget():
    [data, *_] = demo.EXPERIMENTS
    result = demo.measure(data, demo.EPSILONS, 1)
    for epsilon, statement in zip(demo.EPSILONS, result.statements, strict=True):
        assert 0.999 * epsilon < statement.epsilon <= epsilon
        assert statement.noise_source == "system"


def test_a_fit_far_off_does_not_decide_the_score():
    """The range of targets is found wrong by far now and then, and R² has no lower limit."""
    bands = np.quantile([0.4] * 19 + [-9e14], demo.BAND)[:, None]
    result = demo.Result("diabetes: R²", (331, 10), bands, 0.5, 0.0, [])
    assert "  0.400 (0.400 to 0.400)  " in demo.table([result], [1.0])


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        demo.main(["--quick"])
    assert re.search(r"matplotlib is missing: .*\[demo\]", capsys.readouterr().err)


def test_a_place_that_is_not_there_is_refused_before_the_work(tmp_path, capsys):
    with pytest.raises(SystemExit):
        demo.main(["--output", str(tmp_path / "nowhere" / "picture.png")])
    assert "there is no directory" in capsys.readouterr().err


def test_the_readme_example_runs(capsys):
    names = readme.run()
    printed = capsys.readouterr().out
    assert printed.count("(1, 1e-06)-differentially private") == 1
    planned, fitted = names["model"].plan(426, 30).to_dict(), names["model"].privacy_.to_dict()
    for statement in (planned, fitted):
        for release in statement["releases"]:
            del release["event"]  # on a part of the rows, in the fit
    assert planned["releases"] == fitted["releases"]
    assert fitted["assumptions"][:-1] == planned["assumptions"]  # the last one is that of the split
    assert "part 1 of 2 of a random split" in fitted["assumptions"][-1]
    assert (names["pipeline"].predict(names["stays"]) == names["readmitted"]).mean() > 0.9


def test_the_readme_gives_the_commands_that_continuous_integration_runs():
    """.ci/run finds each command by the comment before it and by how its line begins."""
    install, *more = readme.command("install command")
    assert not more
    assert install.startswith("python3 -m venv .venv && .venv/bin/pip install")
    setup, test = readme.command("test command")
    assert ".venv/bin/pip install" in setup
    assert test == ".venv/bin/pytest -n 2"


def test_the_install_command_brings_every_package_that_the_first_pages_import():
    """Its extra is enough for the README's blocks, the landing page and the tutorial."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extra,) = re.findall(r"install \"\.\[(.*?)\]\"", readme.command("install command")[0])
    wanted = [*project["dependencies"], *project["optional-dependencies"][extra]]
    brought = {re.match(r"[\w-]+", line)[0] for line in wanted} | {"skdp"}
    pages = documentation.pages()
    texts = {name: pages[name] for name in ("index", "tutorial/first_private_model")}
    for name, text in texts.items():
        assert f'pip install ".[{extra}]"' in text, name
    for name, text in {**texts, "README": README}.items():
        found = re.findall(r"^ *(?:from (\w+)\S* import|import (\w+))", text, re.MULTILINE)
        packages = {first or second for first, second in found}
        assert packages, name
        assert {package.replace("sklearn", "scikit-learn") for package in packages} <= brought, name


def test_the_readme_is_short_and_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) >= 9  # a picture and eight pages
    for path in links:
        assert (ROOT / path).exists(), path
    text = re.sub(r"\]\([^)]+\)|<!--.*?-->", "", README)
    assert len(re.findall(r"\S*\w\S*", text)) <= 450


@pytest.fixture
def registry():
    """Solvers that an example registers are gone afterwards."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


@pytest.mark.slow  # .ci/run has a step for them
@pytest.mark.parametrize("page", PAGES)
def test_examples_of_the_documentation_run(registry, page):
    found = doctest.testfile(
        str(documentation.DOCS / f"{page}.rst"), module_relative=False, encoding="utf-8"
    )
    assert found.attempted > 0
    assert found.failed == 0
