"""The package stays as small and as flat as it is, and its files keep a few laws."""

from __future__ import annotations

import ast
import doctest
import re
from collections import defaultdict
from pathlib import Path

import pytest

import structure
from package_files import imports, made_up, read_package

ROOT = Path(__file__).parents[1]
SKDP = read_package(ROOT / "skdp")

LIMITS = {
    "files": 128,
    "code lines": 21_095,
    "uses of Any": 276,
    "numeric constants": 369,
    "numeric literals": 929,
    "code lines of tests": 25_360,
    "code lines of benchmarks": 6_480,
    "imports, % of code": 9.1,
    "longest internal parameter list": 8,
}
MOST_CLASSES = 12
# Calls depend on the noise of a fit, by some hundreds.
FIRST_FIT = {"files": 65, "functions": 716, "calls": 11_300, "frames": 21}


@pytest.fixture(scope="module")
def figures():
    return structure.static_figures()


@pytest.mark.parametrize("name", LIMITS)
def test_a_figure_of_the_files_stays_within_its_limit(figures, name):
    figure = figures[name]
    assert (figure[0] if isinstance(figure, tuple) else figure) <= LIMITS[name], figure


def test_parameters_count_unless_they_are_documented_options_of_users():
    code = (
        'def f(a, *, b, c, d):\n    """Do.\n\n    b, c : int\n        With d : no entry.\n    """'
    )
    (node,) = ast.parse(code).body
    assert structure.counted_parameters(node, True) == ["a", "d"]
    assert structure.counted_parameters(node, False) == ["a", "b", "c", "d"]
    users = structure.functions_of_users()
    assert {"skdp.linear_model.base.fit_blocks", "skdp.metrics.evaluation.evaluate"} <= users
    assert not any(name.startswith("skdp._oracle") for name in users)


def test_estimators_inherit_from_few_classes():
    assert structure.longest_mro()[0] <= MOST_CLASSES


def test_the_first_fit_of_a_process_enters_few_files_functions_and_frames():
    found, deepest = structure.first_fit()
    assert found["files"] > 20
    assert all(found[name] <= FIRST_FIT[name] for name in FIRST_FIT), (found, deepest)


def forbidden_imports(package, room, forbidden):
    """Imports of files in a room from places that it must not know of."""
    return {
        (module, name)
        for module, file in package.items()
        if f"{module}.".startswith(f"{room}.")
        for name in file.imported
        if any(f"{name}.".startswith(f"{place}.") for place in forbidden)
    }


def test_the_package_imports_neither_benchmarks_nor_tests():
    assert forbidden_imports(SKDP, "skdp", ("benchmarks", "tests")) == set()


def test_no_solver_reads_the_budget():
    """They go by `Public.mu` and the like, so that no figure of theirs is a formula of its own."""
    read = {
        (module, node.attr)
        for module, file in SKDP.items()
        if module.startswith("skdp.solvers.")
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Attribute) and node.attr in ("epsilon", "delta")
    }
    assert read == set()


def circles(package):
    """Sets of files that import each other, directly or not."""
    graph = imports(package)
    reached = {}
    for start in graph:
        seen, left = set(), [start]
        while left:
            for target in graph[left.pop()] - seen:
                seen.add(target)
                left.append(target)
        reached[start] = seen
    return {
        frozenset(other for other in graph if other in reached[one] and one in reached[other])
        for one in graph
        if one in reached[one]
    }


def test_files_do_not_import_each_other_in_circles():
    assert circles(SKDP) == set()


def names_with_two_meanings(package):
    """Public classes and functions that several files define, and the files."""
    found = defaultdict(set)
    for module, file in package.items():
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                found[node.name].add(module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_a_name_has_one_meaning():
    assert names_with_two_meanings(SKDP) == {}


# What learns from all rows what it does to each, and so tells of them.
READS_ROWS = re.compile(
    r"(?<![\w.])(StandardScaler|MinMaxScaler|MaxAbsScaler|RobustScaler|QuantileTransformer"
    r"|PowerTransformer|KBinsDiscretizer|SplineTransformer|SimpleImputer|KNNImputer|PCA"
    r"|IncrementalPCA|TruncatedSVD|KernelPCA|NMF|SelectKBest|SelectPercentile|SelectFromModel"
    r"|VarianceThreshold|TargetEncoder|TfidfVectorizer|CountVectorizer|LabelBinarizer"
    r"|OneHotEncoder|OrdinalEncoder|scale|minmax_scale|maxabs_scale|robust_scale"
    r"|quantile_transform|power_transform|get_dummies)\("
)
WITH_CATEGORIES = re.compile(r"\w+Encoder\([^)]*categories=[^)]*\)")
PRIVATE = re.compile(r"\bDP[A-Z]\w+")
FOR_PUBLIC = re.compile(r"public data", re.IGNORECASE)
FENCED = re.compile(r"```python\n(.*?)```", re.DOTALL)


def texts_with_examples(root):
    """Docstrings of the package and pages of the documentation, by place."""
    pages = [*sorted((root / "docs").glob("[a-z]*/*.rst")), root / "README.md"]
    found = {path.name: path.read_text(encoding="utf-8") for path in pages}
    for path in (root / "docs" / "examples").glob("*/*.py"):
        code = path.read_text(encoding="utf-8")
        found[path.name] = re.sub("^(?=[^# ])", ">>> ", code, flags=re.MULTILINE)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    for module, file in SKDP.items():
        for node in ast.walk(file.tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                name = getattr(node, "name", "")
                found[f"{module}.{name}".removesuffix(".")] = text
    return found


def examples_in(text):
    """Yield the last words before an example and its lines; prose ends an example."""
    before, lines = "", []
    fenced = FENCED.sub(lambda match: re.sub("^", ">>> ", match[1], flags=re.MULTILINE), text)
    for part in doctest.DocTestParser().parse(fenced):
        if isinstance(part, doctest.Example):
            lines += part.source.splitlines()
        elif part.strip():
            if lines:
                yield before, lines
            before, lines = part.strip().split("\n\n")[-1], []
    if lines:
        yield before, lines


def leaky_examples(texts):
    """Examples of private estimators that use what reads rows: where, and what it is."""
    found = set()
    for place, text in texts.items():
        examples = list(examples_in(text))
        # Names that one example of a page makes the next one uses.
        if not any(PRIVATE.search(line) for _, lines in examples for line in lines):
            continue
        for before, lines in examples:
            for line in lines:
                if not (FOR_PUBLIC.search(before) or FOR_PUBLIC.search(line)):
                    plain = WITH_CATEGORIES.sub("", line)
                    found |= {(place, match[1]) for match in READS_ROWS.finditer(plain)}
    return found


def test_examples_show_no_leak():
    """Who copies an example should not have to know that one line of it is not private."""
    assert not leaky_examples(texts_with_examples(ROOT))


def test_each_law_finds_what_breaks_it():
    package = made_up(
        skdp__a="from skdp.b import B\nfrom benchmarks import table\ndef price(): ...",
        skdp__b="from skdp import a\nclass price: ...",
    )
    assert circles(package) == {frozenset({"skdp.a", "skdp.b"})}
    assert names_with_two_meanings(package) == {"price": {"skdp.a", "skdp.b"}}
    assert forbidden_imports(package, "skdp", ["benchmarks"]) == {("skdp.a", "benchmarks.table")}
    leak = "Text.\n\n>>> model = DPRidge()\n\nText.\n\n>>> model.fit(scale(X))\n1"
    public = "With public data:\n\n>>> DPRidge().fit(scale(X))"
    assert leaky_examples({"leak": leak, "public": public}) == {("leak", "scale")}


def test_numeric_literals_are_counted():
    source = "A = [0, 1, 2, -1, 0.5, True, 3, -2.5]\nf(x, 4 * x)"
    assert structure.numeric_literals(ast.parse(source)) == 3


def test_numeric_constants_are_counted():
    source = """
A = 1
B, C = 2.0, "text"
D: float = 1 / 3
E = (1, 2)
f = 4
G = len("text")
class H:
    I = -1e-3
    j = 5
"""
    assert structure.numeric_constants(ast.parse(source)) == ["A", "B", "D", "E", "I"]
