"""Figures on the pages are those of their files, and the commands that pages name exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

import documentation
from benchmarks import results_file
from benchmarks.__main__ import COMMANDS, parse

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *documentation.files(".rst", ".inc")]
TABLES = {"parameters_table": "reference/parameters_table"}
# Files that a reader is told to write.
MADE_UP = {"skdp/solvers/core/fast_gradient.py", "skdp/oracle/releases/correct.py"}


def words(page):
    return re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))


def printed(script, capsys):
    """Print what a script of the documentation prints."""
    path = ROOT / "docs" / f"{script}.py"
    spec = importlib.util.spec_from_file_location(script, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    return capsys.readouterr().out


@pytest.mark.parametrize(("script", "page"), TABLES.items())
def test_tables_are_those_of_the_results(script, page, capsys):
    """If not: python docs/<script>.py > docs/<page>.inc."""
    written = (ROOT / "docs" / f"{page}.inc").read_text(encoding="utf-8")
    assert printed(script, capsys) == written


@pytest.mark.slow
def test_the_table_of_noise_is_that_of_the_accountants(capsys):
    """If not: python docs/noise_table.py > docs/research/noise_table.inc."""
    written = (ROOT / "docs" / "research" / "noise_table.inc").read_text(encoding="utf-8")
    assert printed("noise_table", capsys) == written


def commands():
    """Commands in backquotes, and in blocks of a shell, with the page that names them.

    The changelog is left out, as it names the commands of its time.
    """
    for page in PAGES:
        if page.name == "CHANGELOG.md":
            continue
        text = page.read_text(encoding="utf-8")
        found = re.findall(r"`(?:\S*/)?python3? (-m [^`]+|[\w/]+\.py[^`]*)`", words(page))
        found += re.findall(r"^(?: {2,}|)(?:\S*/)?python3? (-m .*|[\w/]+\.py.*)$", text, re.M)
        yield from ((page.name, command) for command in found)


def objection(command):
    """Say what is wrong with a command of this repository, or nothing."""
    first, *arguments = shlex.split(command, comments=True)
    if first != "-m":
        return None if (ROOT / first).is_file() else "no such file"
    module, *arguments = arguments
    package = module.partition(".")[0]
    if package in ("benchmarks", "docs", "skdp"):
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


def test_commands_that_pages_name_exist():
    found = list(commands())
    assert len(found) > 20
    wrong = {(page, command): objection(command) for page, command in found}
    assert {key: why for key, why in wrong.items() if why} == {}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("-m benchmarks inferences --runs 4", "no such benchmark"),
        ("-m benchmarks speed --fast", "no such option"),
        ("-m benchmarks.papers.h23", "no such module"),
        ("docs/acuracy_table.py", "no such file"),
        ("-m benchmarks utility adult --epsilon 1  # a comment", None),
    ],
)
def test_a_command_that_does_not_exist_is_found(command, why):
    assert objection(command) == why


def test_the_page_on_papers_says_what_the_printed_noise_costs():
    """Its table: the epsilon that is named, the epsilon that it costs, and the ratio of noises."""
    text = (ROOT / "docs" / "research" / "five_papers.rst").read_text(encoding="utf-8")
    found = re.findall(r"   \* - .+\n     - ([\d.]+)\n     - ([\d.]+)\n     - ([\d.]+) times", text)
    results = ROOT / "benchmarks" / "papers" / "results" / "printed.csv"
    measured = [
        (
            float(row["epsilon"]),
            float(row["true_epsilon"]),
            float(row["printed"]) / float(row["honest"]),
        )
        for row in results_file.read(results)[1]
        if row["printed"]
    ]
    assert len(found) == 7
    for row in found:
        wanted = pytest.approx([float(cell) for cell in row], rel=0.03)
        assert any(cells == wanted for cells in measured), row


def test_parts_of_the_papers_experiments_exist():
    """The page on five papers names modules and, in brackets, parts of them."""
    text = words(ROOT / "docs" / "research" / "five_papers.rst")
    lines = re.findall(r"\*Commands\.\*(.*?)\. \.\. image", text)
    assert len(lines) == 5
    for line in lines:
        source = ""
        for name in re.findall(r"``(\w+)``", line):
            path = ROOT / "benchmarks" / "papers" / f"{name}.py"
            if path.is_file():
                source = path.read_text(encoding="utf-8")
            else:
                assert f"def {name}(" in source, name


def test_files_that_pages_name_exist():
    named = {
        (page.name, path.rstrip("."))
        for page in PAGES
        for path in re.findall(r"(?<![\w/.])(?:benchmarks|docs|tests|skdp)/[\w/.]+\w", words(page))
    }
    missing = {(page, path) for page, path in named if not (ROOT / path).exists()}
    assert {path for _, path in missing} <= {*MADE_UP, "docs/_build/html"}, missing
