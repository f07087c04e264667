"""Pages and docstrings stay short, and keep few of the habits that make a sentence hard to read."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("language", ROOT / "docs" / "language.py")
language = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(language)
PAGES = language.pages()
TEXTS = {"pages": PAGES, "docstrings": language.docstrings()}


@pytest.mark.parametrize("habit", language.HABITS)
@pytest.mark.parametrize("kind", TEXTS)
def test_habits_are_rare(kind, habit):
    """If not: python docs/language.py --uses."""
    assert language.frequency(habit, TEXTS[kind]) <= language.HABITS[habit][1]


@pytest.mark.parametrize(
    ("sections", "limit"), language.PAGES.items(), ids=lambda value: str(value)
)
def test_pages_are_short(sections, limit):
    assert limit / 2 < language.total(sections, PAGES) <= limit


def test_the_changelog_and_the_glossary_are_short():
    changelog = PAGES[ROOT / "CHANGELOG.md"]
    assert language.length(ROOT / "CHANGELOG.md", changelog) <= language.CHANGELOG
    terms = PAGES[ROOT / "docs/concepts/glossary.rst"].splitlines()
    assert 20 < sum(line[:3] == "   " and line[3:4].isalpha() for line in terms) <= 40


def test_each_habit_is_counted():
    text = "Take what it holds; budgets alone, too. What is it? ``what; alone``"
    found = language.uses({"page": text})
    assert {name: len(places) for name, places in found.items()} == dict.fromkeys(
        language.HABITS, 1
    )
