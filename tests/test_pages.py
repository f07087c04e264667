"""What pages, the README and the demonstration show is run; what they name exists."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import sklearn

import documentation
import readme
import solver_contract as contract
from benchmarks import table, verdict
from benchmarks.__main__ import COMMANDS, parse
from benchmarks.papers import report
from replays import ESTIMATORS, data_for, differing, each_row_once, neighbours
from skdp import __main__ as demo
from skdp import __version__, total_privacy
from skdp._oracle import GaussianNoise, NoisyStatistic, Solution
from skdp._oracle.releases import base
from skdp.accounting import Adjacency
from skdp.solvers import Solver, get_solver
from skdp.solvers.base import ALGORITHMS, REGISTRY

ROOT = Path(__file__).parents[1]
PAGES = documentation.pages()
TEXTS = {
    path.name: path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *documentation.files(".rst", ".inc"))
}

# ---------------------------------------------------------------- examples

SIGN = ".. code-block:: python"
# Whatever takes minutes, or starts workers (test_ledger.py does), in short.
SHORTER = {"n_fits=5000": "n_fits=200", "n_jobs=2": "cv=2, refit=False"}
OPTIONAL = ("skops", "skl2onnx", "onnxruntime")
# Its two lines belong to a solver; the release is run below.
NOT_RUN = {"development/add_a_release"}


@pytest.fixture(autouse=True)
def registry():
    """Solvers that an example registers are gone afterwards."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def snippets(page):
    """Code blocks of a page that are no doctests, in order."""
    blocks = re.findall(rf"^{re.escape(SIGN)}\n((?:    .*\n|\n)+)", PAGES[page] + "\n", re.M)
    return [re.sub("^    ", "", block, flags=re.M).strip() for block in blocks]


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page) and page not in NOT_RUN])
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
    if page == "how_to/publish":
        model, plain, X = names["model"], names["plain"], names["X"]
        assert (names["again"].predict_proba(X) == model.predict_proba(X)).all()
        assert names["probabilities"] == pytest.approx(plain.predict_proba(X), abs=1e-12)


@pytest.mark.slow  # .ci/run has a step for them
@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if ">>> " in text])
def test_examples_of_the_documentation_run(page):
    path = str(documentation.DOCS / f"{page}.rst")
    found = doctest.testfile(path, module_relative=False, encoding="utf-8")
    assert found.attempted > 0
    assert found.failed == 0


def test_the_readme_fits_and_scores_for_the_epsilon_that_it_prints(capsys):
    names = readme.run()
    assert capsys.readouterr().out.count("(1, 1e-06)-differentially private") == 1
    total = total_privacy(names["model"], names["scores"].privacy_, delta=1e-6)
    assert total.epsilon == pytest.approx(1.0, abs=1e-6)
    assert (names["pipeline"].predict(names["stays"]) == names["readmitted"]).mean() > 0.9


def test_the_readme_gives_the_commands_that_continuous_integration_runs():
    """.ci/run finds each command by the comment before it and by how its line begins."""
    (install,) = readme.command("install command")
    assert install.startswith("python3 -m venv .venv && .venv/bin/pip install")
    assert readme.command("test command")[1] == ".venv/bin/pytest -n 2"


def test_files_of_metadata_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation, recipe, zenodo = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("CITATION.cff", "recipe/meta.yaml", ".zenodo.json")
    )
    summary = project["description"]
    assert summary == readme.README.splitlines()[2]
    assert f'"skdp: {summary[0].lower()}{summary[1:-1]}"' in citation
    assert json.loads(zenodo)["title"] == f"skdp: {summary[0].lower()}{summary[1:-1]}"
    assert f"summary: {summary}\n" in recipe
    assert f"\nversion: {__version__}\n" in citation
    assert f'version = "{__version__}"' in recipe
    for license_ in (citation, recipe, zenodo):
        assert project["license"] in license_
    for package in project["dependencies"]:
        name, minimum = package.split(">=")
        assert f"    - {name} >={minimum}\n" in recipe
    assert project["requires-python"] == ">=3.11"
    assert "Python 3.11 or later" in readme.README


def test_the_demonstration_draws_and_prints_what_it_promises(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="the extra 'demo' is not installed")
    some = {name: demo.EXPERIMENTS[name] for name in ("breast cancer: accuracy", "diabetes: R²")}
    monkeypatch.setattr(demo, "EXPERIMENTS", some)
    monkeypatch.setattr(demo, "EPSILONS", (1.0, 10.0))
    assert demo.main(["--quick", "--output", str(tmp_path / "picture.png")]) == 0
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    rows = re.findall(
        r"^(\S.*: \S+) +\d+ +\d+ +(\S+) +(\S+) \(.*\) +(\S+) +\S+$", printed, re.MULTILINE
    )
    assert [row[:2] for row in rows] == [
        (data, epsilon) for data in some for epsilon in ("1", "10")
    ]
    assert all(float(score) > float(best) - 0.15 for _, e, score, best in rows if e == "10")
    assert "guarantee: (1, 1e-06)-differentially private" in printed


def test_the_demonstration_refuses_a_place_that_is_not_there(tmp_path, capsys, monkeypatch):
    with pytest.raises(SystemExit):
        demo.main(["--output", str(tmp_path / "nowhere" / "picture.png")])
    assert "there is no directory" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        demo.main(["--quick"])
    assert "matplotlib is missing" in capsys.readouterr().err


# ---------------------------------------------------------------- code of the pages for extenders


def module_of(page, name, monkeypatch, *replacements):
    """Make a module of the first example of a page, word for word; prose ends the example."""
    text = (documentation.DOCS / page).read_text(encoding="utf-8")
    lines = []
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, doctest.Example):
            lines.append(part.source)
        elif lines and part.strip():
            break
    source = "".join(lines)
    for old, new in replacements:
        assert old in source
        source = source.replace(old, new)
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, page, "exec"), vars(module))
    return module


def test_the_loss_of_the_page_is_as_smooth_as_it_declares(monkeypatch, rng):
    loss = module_of("development/add_a_loss.rst", "expectile", monkeypatch).Expectile(0.9)
    m, y, h = 3 * rng.standard_normal((200, 2)), rng.standard_normal((200, 2)), 1e-5
    step = [h, 0.0]
    moved = loss.residual(m + step, y) - loss.residual(m, y)
    assert moved.max() / h == pytest.approx(loss.curvature)


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
def test_the_solver_of_the_page_keeps_the_contract(replay, rng, monkeypatch, adjacency):
    module_of("development/add_a_solver.rst", "fast_gradient", monkeypatch)
    solver = get_solver("fast_gradient")
    contract.check_a_scikit_learn_object_with_a_purpose(solver)
    contract.check_the_minimum_without_noise(solver)
    for problem in contract.PROBLEMS:
        assert contract.takes(solver, problem)
        contract.check_the_plan_costs_the_budget(solver, problem, adjacency)
    X, y = data_for("logistic", rng)
    make = lambda: ESTIMATORS["logistic"](adjacency=str(adjacency), solver=solver)  # noqa: E731
    replay.check_each(make, neighbours("logistic", X, y, adjacency), adjacency)


class Counting(Solver):
    """Ask for one count."""

    def __init__(self, statistic):
        self.statistic = statistic

    def automatic(self, public, problem):
        return {}

    def solve(self, oracle):
        point = np.ones(oracle.public.shape)
        count = oracle.request(NoisyStatistic(self.statistic(point), GaussianNoise()))
        return Solution(count[0] / oracle.public.n_rows + 0 * point, 1)


Counting.name = "counting"  # afterwards, so that it is not registered


@pytest.mark.usefixtures("raw_weights")
@pytest.mark.parametrize("adjacency", list(Adjacency), ids=str)
@pytest.mark.parametrize(
    "seeded",
    [
        None,
        ("int(np.count_nonzero(right))", "(right * block.weights).sum()"),
        ("Contribution(1.0, spread=1.0", "Contribution(0.5, spread=1.0"),
    ],
    ids=["as printed", "counts weights", "half the bound"],
)
def test_the_statistic_of_the_page_moves_as_it_says(
    replay, leak, rng, monkeypatch, seeded, adjacency
):
    changes = [("@dataclass", "@audited\n@dataclass"), *([seeded] if seeded else [])]
    home = "skdp._oracle.releases.correct"
    monkeypatch.setattr(base, "_AUDITED", {*base._AUDITED})
    module = module_of("development/add_a_release.rst", home, monkeypatch, *changes)
    X, y = data_for("logistic", rng)
    solver = Counting(module.CorrectCount)
    make = lambda: ESTIMATORS["logistic"](  # noqa: E731
        adjacency=str(adjacency), solver=solver, scaling="none"
    )
    pairs = [
        differing(X, y, adjacency, 1, row, target, weight)[::-1]
        for _, row, target in each_row_once("logistic")
        for weight in (1.0, 1e6)
    ]
    with pytest.raises(leak) if seeded else contextlib.nullcontext():
        replay.check_each(make, pairs, adjacency)


# ---------------------------------------------------------------- figures and names


def script(name):
    """Import a script of the documentation."""
    spec = importlib.util.spec_from_file_location(name, documentation.DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("parameters_table", "reference/parameters_table"),
        pytest.param("noise_table", "research/noise_table", marks=pytest.mark.slow),
    ],
)
def test_tables_are_those_that_scripts_print(name, page, capsys):
    """If not: python docs/<name>.py > docs/<page>.inc."""
    script(name).main()
    written = (documentation.DOCS / f"{page}.inc").read_text(encoding="utf-8")
    assert capsys.readouterr().out == written


def test_pages_on_accuracy_are_those_of_the_results():
    """If not: python docs/accuracy_table.py."""
    page = script("accuracy_table")
    rows, others = table.read(page.RESULTS)[1], verdict.read(page.HELD_OUT, "test")
    for name, text in page.texts(rows, others).items():
        assert (documentation.DOCS / name).read_text(encoding="utf-8") == text, name
    assert readme.README.count(page.readme(rows)) == 1


@pytest.mark.parametrize("name", report.NAMES)
def test_the_verdict_on_a_page_is_that_of_the_table(name):
    """If not: python -m benchmarks papers <name> --verdict."""
    module = importlib.import_module(f"benchmarks.papers.{name}")
    lines = list(module.verdict(report.read(report.RESULTS / f"{name}.csv")))
    assert len(lines) >= 5
    written = (report.RESULTS / f"{name}.inc").read_text(encoding="utf-8")
    assert written == report.as_table(lines)


def test_every_paper_is_found_from_the_readme():
    """Its algorithms, under the authors' names, with the solver and the page of each."""
    index = (documentation.DOCS / "papers" / "index.rst").read_text(encoding="utf-8")
    rows = re.findall(
        r"\| (\S+) \| `DPRidge\(solver=\"(\S+)\"\)` \|.*\((docs/\S+)\)", readme.README
    )
    assert len(rows) == 10
    for algorithm, solver, page in rows:
        assert ALGORITHMS[algorithm][0] == solver
        text = (ROOT / page).read_text(encoding="utf-8")
        assert algorithm in text
        assert f'- {algorithm}\n     - ``"{solver}"``\n     - :doc:`{Path(page).stem}`' in index
    assert {solver for _, solver, _ in rows} == {
        name for name, solver in REGISTRY.items() if solver.paper
    }


def objection(command):
    """Say what is wrong with a command of this repository, or nothing."""
    first, *arguments = shlex.split(command, comments=True)
    if first != "-m":
        return None if (ROOT / first).is_file() else "no such file"
    module, *arguments = arguments
    if module.partition(".")[0] in ("benchmarks", "docs", "skdp"):
        place = ROOT.joinpath(*module.split("."))
        if not (place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()):
            return "no such module"
    if module != "benchmarks" or not arguments:
        return None
    try:
        _, options = parse(arguments)
    except SystemExit:
        return "no such option"
    return None if {*options.what[:1]} <= COMMANDS.keys() else "no such benchmark"


def test_commands_and_files_that_pages_name_exist():
    """The changelog names the commands of its time, and pages tell a reader to write two files."""
    wrong, named = {}, set()
    for page, text in TEXTS.items():
        words = re.sub(r"\s+", " ", text)
        named |= set(re.findall(r"(?<![\w/.])(?:benchmarks|docs|tests|skdp)/[\w/.]+\w", words))
        commands = re.findall(r"`(?:\S*/)?python3? (-m [^`]+|[\w/]+\.py[^`]*)`", words)
        commands += re.findall(r"^(?: {2,}|)(?:\S*/)?python3? (-m .*|[\w/]+\.py.*)$", text, re.M)
        if page != "CHANGELOG.md":
            wrong |= {(page, command): objection(command) for command in commands}
    assert len(wrong) > 20
    assert {key: why for key, why in wrong.items() if why} == {}
    assert objection("-m benchmarks inferences --runs 4") == "no such benchmark"
    assert {path for path in named if not (ROOT / path.rstrip(".")).exists()} <= {
        "skdp/solvers/core/fast_gradient.py",
        "skdp/_oracle/releases/correct.py",
        "docs/_build/html",
    }  # fmt: skip
