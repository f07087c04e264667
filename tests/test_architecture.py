"""The house keeps its shape: imports, sizes, names and examples, read off the syntax trees.

Each law is a function from sources to what breaks it. It has to find nothing in the package but
what is listed here, all of which it has to find; and it has to find what is wrong in a made-up
package.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections import defaultdict
from pathlib import Path

from package_files import imports, made_up, read_package

ROOT = Path(__file__).parents[1]
MOST_LINES, FEW_LINES = 600, 40


SKDP = read_package(ROOT / "skdp")

# ---------------------------------------------------------------- who may import what


def forbidden_imports(package, room, forbidden):
    """Imports of files in a room from places that it must not know of."""
    return {
        (module, name)
        for module, file in package.items()
        if f"{module}.".startswith(f"{room}.")
        for name in file.imported
        if any(f"{name}.".startswith(f"{place}.") for place in forbidden)
    }


SOURCES = "skdp.oracle.sources"
NOT_FOR_SOURCES = ("skdp.objective", "skdp.oracle.kernels", "skdp.oracle.releases")


def test_rows_know_no_sums():
    assert any(module.startswith(f"{SOURCES}.") for module in SKDP)
    assert forbidden_imports(SKDP, SOURCES, NOT_FOR_SOURCES) == set()


def test_rows_that_know_sums_are_found():
    package = made_up(
        skdp__oracle__sources__stream="from skdp.oracle.releases.gradients import GradientSum",
        skdp__oracle__sources__memory="if x:\n    from skdp.oracle import kernels",
        skdp__oracle__sources__records="import numpy\nfrom skdp.oracle.noise import NoiseSource",
    )
    assert forbidden_imports(package, SOURCES, NOT_FOR_SOURCES) == {
        (f"{SOURCES}.stream", "skdp.oracle.releases.gradients.GradientSum"),
        (f"{SOURCES}.memory", "skdp.oracle.kernels"),
    }


def test_the_package_imports_neither_benchmarks_nor_tests():
    assert forbidden_imports(SKDP, "skdp", ("benchmarks", "tests")) == set()
    package = made_up(skdp__planning__bounds="from benchmarks.papers.theory import exact_budget")
    assert len(forbidden_imports(package, "skdp", ("benchmarks", "tests"))) == 1


def attributes_read(package, room, names):
    """Attributes of these names that files in a room read."""
    return {
        (module, node.attr)
        for module, file in package.items()
        if f"{module}.".startswith(f"{room}.")
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Attribute) and node.attr in names
    }


def test_no_solver_reads_the_budget():
    """They go by `Public.mu` and the like, so that no figure of theirs is a formula of its own."""
    assert any(module.startswith("skdp.solvers.") for module in SKDP)
    assert attributes_read(SKDP, "skdp.solvers", {"epsilon", "delta"}) == set()


def test_a_solver_that_reads_the_budget_is_found():
    package = made_up(
        skdp__solvers__greedy="def solve(oracle):\n    return oracle.public.epsilon / 2",
        skdp__solvers__modest="epsilon = public.mu",
        skdp__oracle__public="def mu(self):\n    return self.epsilon",
    )
    found = attributes_read(package, "skdp.solvers", {"epsilon", "delta"})
    assert found == {("skdp.solvers.greedy", "epsilon")}


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


CIRCLES: set[frozenset[str]] = set()


def test_files_do_not_import_each_other_in_circles():
    assert circles(SKDP) == CIRCLES


def test_a_circle_is_found():
    package = made_up(
        skdp__a="from skdp.b import B",
        skdp__b="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from skdp import c",
        skdp__c="import skdp.a",
        skdp__d="from skdp.a import A\ndef f():\n    import skdp.e",
        skdp__e="from skdp.d import D",
    )
    assert circles(package) == {frozenset({"skdp.a", "skdp.b", "skdp.c"})}


# ---------------------------------------------------------------- how large a file is


def long_files(package):
    """Files of more lines than a reader bears that are more than one class."""
    parts = ast.ClassDef | ast.FunctionDef
    return {
        module
        for module, file in package.items()
        if len(file.source.splitlines()) > MOST_LINES
        and sum(isinstance(node, parts) for node in file.tree.body) > 1
    }


def test_no_file_is_too_long():
    assert long_files(SKDP) == set()


def test_a_file_that_is_too_long_is_found():
    longer = "x = 1\n" * (MOST_LINES + 1)
    package = made_up(
        skdp__long=f"def f(): ...\nclass A: ...\n{longer}",
        skdp__one=f"class A: ...\n{longer}",
        skdp__short="def f(): ...\nclass A: ...",
    )
    assert long_files(package) == {"skdp.long"}


def small_files_for_one(package):
    """Files of few lines of code that one other file imports, beside those that hand names on."""
    importers = defaultdict(set)
    for module, targets in imports(package).items():
        if not package[module].is_package:
            for target in targets:
                importers[target].add(module)
    return {
        module
        for module, file in package.items()
        if not file.is_package and file.code_lines < FEW_LINES and len(importers[module]) == 1
    }


# And why each is a file of its own.
SMALL = {
    "skdp.planning.expected_loss": "constants that a benchmark fits, and writes anew",
}


def test_no_small_file_serves_one_other():
    assert small_files_for_one(SKDP) == set(SMALL)
    assert all(SMALL.values())


def test_a_small_file_for_one_other_is_found():
    long = "x = 1\n" * FEW_LINES
    package = made_up(
        skdp__small='"""What it is for."""\n' + "# a comment\n\n" * 99 + "y = 2",
        skdp__user=f"from skdp.small import y\nfrom skdp.tool import z\n{long}",
        skdp__tool="z = 3",
        skdp__other=f"from skdp import tool\n{long}",
        skdp__large=f"from skdp.user import x\n{long}",
        skdp="from skdp.small import y",
    )
    assert small_files_for_one(package) == {"skdp.small"}


# ---------------------------------------------------------------- what names mean


def names_with_two_meanings(package):
    """Public classes and functions that several files define, and the files."""
    found = defaultdict(set)
    for module, file in package.items():
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                found[node.name].add(module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


# And why the same word is right for both.
TWO_MEANINGS = {}


def test_a_name_has_one_meaning():
    assert set(names_with_two_meanings(SKDP)) == set(TWO_MEANINGS)
    assert all(TWO_MEANINGS.values())


def test_a_name_with_two_meanings_is_found():
    package = made_up(
        skdp__a="def price(): ...\nclass Plan: ...\ndef _own(): ...",
        skdp__b="class price: ...\ndef _own(): ...",
        skdp__c="from skdp.a import Plan\nclass Other:\n    def price(self): ...",
    )
    assert names_with_two_meanings(package) == {"price": {"skdp.a", "skdp.b"}}


# ---------------------------------------------------------------- what examples teach

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


def test_an_example_that_shows_a_leak_is_found():
    texts = {
        "leaky": "Text.\n\n>>> model = DPRidge()\n>>> model.fit(StandardScaler().fit_transform(X))",
        "over pages": ">>> model = DPRidge()\n\nText.\n\n>>> model.fit(scale(X))\n1",
        "readme": "Text.\n\n```python\nDPRidge().fit(PCA(2).fit_transform(X))\n```\n",
        "said before": "With public data:\n\n>>> DPRidge().fit(scale(X))",
        "said in the line": ">>> DPRidge().fit(scale(X))  # public data",
        "private scaler": ">>> make_pipeline(DPStandardScaler(), DPRidge())",
        "declared": ">>> make_pipeline(OneHotEncoder(categories=[[1, 2]]), DPRidge())",
        "no private estimator": ">>> Ridge().fit(scale(X))",
        "prose": "A StandardScaler() before a DPRidge() reads rows.",
    }
    assert leaky_examples(texts) == {
        ("leaky", "StandardScaler"),
        ("over pages", "scale"),
        ("readme", "PCA"),
    }


# ---------------------------------------------------------------- which words are used

# Words that readers of the field have to look up, by what they read instead.
DIALECT = {
    "ask asks asked asking": "request, query",
    "told tell tells telling": "signal, record, report",
    "found find finds": "the quantity's own name, estimate, search",
    "lack lacks lacking": "missing",
    "drown drowns drowned drowning": "noise exceeds",
    "surely believed believe": "confidence, estimate",
    "closer narrowed": "shrink, refine",
    "given_up": "skip",
    "twin twins": "compiled kernel, reference",
    "law laws": "distribution",
    "suit suits": "is compatible with",
    "mend mends": "correct, repair",
    "ends": "bounds, clip range",
    "holds": "is_valid, contains",
}
# In prose these are English: a guarantee holds, a range ends.
ONLY_IDENTIFIERS = {"ends", "holds", "find", "finds"}
WORDS = [word for line in DIALECT for word in line.split()]
IN_NAMES = re.compile(rf"(?:^|_)(?:{'|'.join(WORDS)})(?=_|$)", re.IGNORECASE)
IN_PROSE = re.compile(
    rf"\b(?:{'|'.join(word for word in WORDS if word not in ONLY_IDENTIFIERS)})\b", re.IGNORECASE
)
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
QUESTION = re.compile(r"(?:What|Whether|How|Which|Where)\b")


def names_defined(tree):
    """Names that a file gives: of variables, attributes, arguments, functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def dialect(package):
    """Names and first lines in words of DIALECT, and modules that open with a question, by file."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    hits = defaultdict(set)
    for module, file in package.items():
        names = {
            name for name in names_defined(file.tree) if IN_NAMES.search(CAPITAL.sub("_", name))
        }
        if names:
            hits[module] |= names
        for node in ast.walk(file.tree):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                line = text.splitlines()[0]
                opens = isinstance(node, ast.Module) and QUESTION.match(line)
                if opens or IN_PROSE.search(line):
                    hits[module].add(line)
    return hits


def test_names_and_first_lines_use_the_terms_of_the_field():
    hits = dialect(SKDP)
    assert not hits, f"{hits}; write instead: {DIALECT}"


def test_words_of_the_dialect_are_noticed():
    package = made_up(
        skdp__local="def f(x):\n    value_found = x",
        skdp__argument="def f(told): ...",
        skdp__constant="GIVEN_UP = 1",
        skdp__kernel="class HasTwin: ...",
        skdp__attribute="self.laws = 1",
        skdp__line='def f():\n    """Return all that was found."""',
        skdp__opening='"""Whether it rains."""',
        skdp__clean='"""Estimate scales."""\nfoundation = task = 1',
        skdp__prose='"""Check that a bound holds."""\n\ndef f():\n    """Sum.\n\n    As found."""',
    )
    words = "local argument constant kernel attribute line opening"
    assert set(dialect(package)) == {f"skdp.{word}" for word in words.split()}
