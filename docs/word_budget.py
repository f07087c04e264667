"""Count the words of every page as rendered, and compare them with their limits.

    python docs/word_budget.py docs/_build/html

Menus, the changelog, the gallery and the pages of single objects are not counted.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

SECTIONS = {
    "index": 250, "tutorial": 1070, "how_to": 8740, "concepts": 3120, "reviewers": 3000,
    "reference": 1300, "research": 3020, "development": 4160, "papers": 2950,
}  # fmt: skip
PAGE, TOTAL = 1400, 27_260
# Generated, and a table that is a file of its own.
UNCOUNTED = {
    "reference/changelog", "reference/users", "reference/extenders",
}  # fmt: skip


class Article(HTMLParser):
    """Text inside of the element <article>."""

    def __init__(self):
        super().__init__()
        self.words, self.inside = 0, 0

    def handle_starttag(self, tag, attrs):
        self.inside += tag in ("article", "script", "style") and (1 if tag == "article" else -9)

    def handle_endtag(self, tag):
        self.inside -= tag in ("article", "script", "style") and (1 if tag == "article" else -9)

    def handle_data(self, data):
        if self.inside > 0:
            self.words += len(re.findall(r"\S*\w\S*", data))


def words(page):
    """Number of words in the article of a page."""
    parser = Article()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.words


def count(folder):
    """Words of each page, by its name."""
    pages = [folder / "index.html"]
    for section in SECTIONS:
        pages += sorted((folder / section).glob("*.html"))
    found = {page.relative_to(folder).with_suffix("").as_posix(): words(page) for page in pages}
    return {name: number for name, number in found.items() if name not in UNCOUNTED}


def main(folder):
    """Print counts and return the number of limits that are exceeded."""
    found = count(Path(folder))
    over = 0
    for name, number in found.items():
        over += number > PAGE
        print(f"{number:6} {name}{'  too long' if number > PAGE else ''}")
    for section, limit in SECTIONS.items():
        number = sum(n for name, n in found.items() if name.split("/")[0] == section)
        print(f"{number:6} of {limit:6} {section}")
    total = sum(found.values())
    print(f"{total:6} of {TOTAL:6} in all")
    return over + (total > TOTAL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
