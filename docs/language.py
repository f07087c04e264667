"""Count the words of pages, and habits that make sentences hard to read.

    python docs/language.py

prints the words of each page, the uses of each habit per 1,000 words of pages and of public
docstrings, and every single use.
"""

import ast
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
# Sections of the documentation, and the words that their pages may have together. Generated tables,
# which are files of their own (.inc), do not count.
PAGES = {
    ("index", "tutorial", "models", "how_to", "concepts", "reference", "papers"): 17_000,
    ("reviewers", "research", "development"): 8_000,
}
CHANGELOG = 600
# Pattern of a habit, and the most uses in 1,000 words.
HABITS = {
    "what as a noun": (r"\bwhat\b(?![^.?!]*\?)", 0.3),
    "semicolon": (r";", 1.0),
    "alone at the end": (r"\balone\b", 0.1),
    "take": (r"\b(?:take|takes|took|taken|taking)\b", 0.5),
    "too at the end": (r"\btoo(?=\s*[.,;:)!?])", 0.05),
}
DIRECTIVE = r"\s*\.\. ([\w-]+)::.*|\s*:[\w-]+:( .*)?|[=~^-]{3,}|\s*\.\. _.*"
CODE = ("code-block", "autosummary", "toctree", "raw", "math")


def words(text):
    """Words of a text."""
    return re.findall(r"\S*\w\S*", text)


def prose(text):
    """Text of a page or a docstring without code, formulas, options and addresses of links."""
    lines, block = [], None
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if block is not None and (not line.strip() or depth > block):
            continue
        block = None
        directive = re.fullmatch(DIRECTIVE, line)
        if directive:
            block = depth if directive[1] in CODE else None
        elif not line.lstrip().startswith((">>>", "... ")):
            lines.append(line)
            block = depth if line.rstrip().endswith("::") else None
    text = re.sub(r"```.*?```|<!--.*?-->", "", "\n".join(lines), flags=re.S)
    text = re.sub(r":math:`[^`]*`|``[^`]*``", "code", text)
    text = re.sub(r"`([^`<]*?)(?: <[^`>]*>)?`_*", r"\1", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def section(path):
    """Section of a page."""
    return path.relative_to(DOCS).with_suffix("").parts[0]


def pages():
    """Text of each page of the documentation, of what it includes, and of README and the like."""
    known = {name for names in PAGES for name in names}
    paths = [path for kind in ("rst", "inc") for path in DOCS.rglob(f"*.{kind}")]
    paths = [path for path in sorted(paths) if section(path) in known]
    return {path: path.read_text("utf-8") for path in (*paths, *sorted(ROOT.glob("*.md")))}


def docstrings():
    """Docstrings of modules and of their public classes and functions, by place."""
    found = {}
    for path in sorted((ROOT / "skdp").rglob("*.py")):
        stack = [ast.parse(path.read_text("utf-8"))]
        while stack:
            node = stack.pop()
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
            found[place] = ast.get_docstring(node) or ""
            stack += [
                part
                for part in node.body
                if isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name[0] != "_"
            ]
    return found


def length(path, text):
    """Words of a page: its code and tables count, its directives and links do not."""
    lines = [line for line in text.splitlines() if not re.fullmatch(DIRECTIVE, line)]
    return len(words(re.sub(r"<[^>`]*>`", "`", "\n".join(lines))))


def total(names, written):
    """Words of the pages of these sections."""
    own = [path for path in written if path.suffix == ".rst" and section(path) in names]
    return sum(length(path, written[path]) for path in own)


def uses(texts):
    """Every use of each habit, with the words around it."""
    found = {name: [] for name in HABITS}
    for place, text in texts.items():
        plain = prose(text)
        for name, (pattern, _) in HABITS.items():
            for use in re.finditer(pattern, plain, re.IGNORECASE):
                around = plain[max(0, use.start() - 70) : use.end() + 70]
                found[name].append(f"{place}: {' '.join(around.split())}")
    return found


def frequency(name, texts):
    """Uses of a habit in 1,000 words."""
    return 1000 * len(uses(texts)[name]) / sum(len(words(prose(text))) for text in texts.values())


def main():
    """Print all of it."""
    written, coded = pages(), docstrings()
    for path, text in written.items():
        print(f"{length(path, text):6} {path.relative_to(ROOT)}")
    for names, limit in PAGES.items():
        print(f"{total(names, written):6} of {limit} in {', '.join(names)}")
    for kind, texts in (("pages", written), ("docstrings", coded)):
        for name, found in uses(texts).items():
            print(f"{kind}: {name}: {frequency(name, texts):.2f} of {HABITS[name][1]}")
            if "--uses" in sys.argv:
                print(*found, sep="\n")


if __name__ == "__main__":
    main()
