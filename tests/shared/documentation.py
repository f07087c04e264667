"""The pages of the documentation that are written by hand, and what they include."""

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = (
    "tutorial", "models", "how_to", "concepts", "reviewers", "reference", "research",
    "development", "papers",
)  # fmt: skip


def files(*suffixes):
    """Files of the pages with these suffixes, in order."""
    folders = [DOCS, *(DOCS / section for section in SECTIONS)]
    return [
        path
        for folder in folders
        for path in sorted(folder.glob("*"))
        if path.suffix in suffixes and path.stem != "sg_execution_times"  # made by the gallery
    ]


def pages():
    """Text of each page by its name, such as "how_to/score"."""
    return {
        path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in files(".rst")
    }
