"""Measure the structure of the package: sizes, types, constants, and how far one fit reaches.

PYTHONPATH=. python tests/shared/structure.py
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from pathlib import Path

from sklearn.datasets import load_diabetes

import skdp
from package_files import read_package

PACKAGE = Path(skdp.__file__).parent
NUMBER = re.compile(r"[+-]?[\d._]+(e[+-]?\d+)?$", re.IGNORECASE)


def parameters_of(function):
    """Names of the parameters of a function's syntax tree."""
    given = function.args
    return [arg.arg for arg in [*given.posonlyargs, *given.args, *given.kwonlyargs]]


def is_number(node):
    """Whether an expression is a number, or one computed from numbers alone."""
    parts = list(ast.walk(node))
    allowed = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    values = [part.value for part in parts if isinstance(part, ast.Constant)]
    return all(isinstance(part, allowed) for part in parts) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )


def numeric_constants(tree):
    """Names in capitals that a module or a class sets to a number, or to a tuple of numbers."""
    found = []
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in [*tree.body, *(inner for one in classes for inner in one.body)]:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            pairs = [(target, node.value) for target in targets]
            if isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(targets[0].elts, node.value.elts, strict=True))
            for target, value in pairs:
                is_name = isinstance(target, ast.Name) and target.id.upper() == target.id
                values = value.elts if isinstance(value, ast.Tuple) else [value]
                if is_name and values and all(map(is_number, values)):
                    found.append(target.id)
    return found


def import_lines(tree):
    """Lines of import statements."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum(node.end_lineno - node.lineno + 1 for node in imports)


def static_figures():
    """Figures read off the syntax trees of all files."""
    package = read_package(PACKAGE)
    trees = [file.tree for file in package.values()]
    code = sum(file.code_lines for file in package.values())
    functions = [
        (len(parameters_of(node)), f"{module}.{node.name}")
        for module, file in package.items()
        for node in ast.walk(file.tree)
        if isinstance(node, ast.FunctionDef) and node.name != "__init__"
    ]
    return {
        "files": len(package),
        "code lines": code,
        "uses of Any": sum(
            isinstance(node, ast.Name) and node.id == "Any"
            for tree in trees
            for node in ast.walk(tree)
        ),
        "numeric constants": sum(len(numeric_constants(tree)) for tree in trees),
        "imports, % of code": round(100 * sum(map(import_lines, trees)) / code, 1),
        "longest internal parameter list": max(
            pair for pair in functions if not is_public(pair[1], package)
        ),
    }


def is_public(name, package):
    """Whether a function is a user's: estimators and tools take scikit-learn's many parameters."""
    return name.rsplit(".", 1)[1] in exported()


def exported():
    """Names that the package exports to users."""
    from skdp import metrics, model_selection, preprocessing

    return {
        name for room in (skdp, metrics, model_selection, preprocessing) for name in room.__all__
    }


def longest_mro():
    """The estimator with the most classes in its method resolution order, and their number."""
    estimators = [value for value in vars(skdp).values() if inspect.isclass(value)]
    return max((len(one.__mro__), one.__name__) for one in estimators)


class Walk:
    """Files and frames of the package that a call enters.

    Left out are properties, ``__post_init__`` and validators (functions named ``check...`` and
    ``require...``), which are declarations rather than steps of the way.
    """

    def __init__(self):
        self.files, self.deepest, self._stack, self._properties = set(), [], [], properties()

    def __call__(self, frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(str(PACKAGE)) or event not in ("call", "return"):
            return
        name = code.co_qualname.rsplit(".", 1)[-1]
        left_out = (
            (code.co_filename, code.co_firstlineno) in self._properties
            or name == "__post_init__"
            or name.lstrip("_").startswith(("check", "require"))
        )
        if left_out:
            return
        if event == "return":
            self._stack.pop()
            return
        place = str(Path(code.co_filename).relative_to(PACKAGE))
        self._stack.append(f"{place} {code.co_qualname}")
        self.files.add(place)
        if len(self._stack) > len(self.deepest):
            self.deepest = list(self._stack)


def properties():
    """Places of the code of all properties, cached ones included."""
    for module in pkgutil.walk_packages(skdp.__path__, "skdp."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                getattr(one, "id", getattr(one, "attr", "")) in ("property", "cached_property")
                for one in node.decorator_list
            ):
                # A code object begins at its first decorator.
                found.add((str(file), node.decorator_list[0].lineno))
    return found


def walk_of_a_fit():
    """Walk of the second `DPRidge().fit` on diabetes, so that plans and kernels are ready."""
    X, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        skdp.DPRidge().fit(X, y)
        walk = Walk()
        sys.setprofile(walk)
        try:
            skdp.DPRidge().fit(X, y)
        finally:
            sys.setprofile(None)
    return walk


if __name__ == "__main__":
    for name, value in static_figures().items():
        print(f"{name}: {value}")
    print("method resolution order:", *longest_mro())
    walk = walk_of_a_fit()
    print(f"one fit: {len(walk.files)} files, {len(walk.deepest)} frames")
    print(*(f"  {frame}" for frame in walk.deepest), sep="\n")
