"""Measure the structure of the package: sizes, types, constants, and how far one fit reaches.

PYTHONPATH=. python tests/shared/structure.py
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

from sklearn.datasets import load_diabetes

import skdp
from package_files import read_package

PACKAGE = Path(skdp.__file__).parent


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


def numeric_literals(tree):
    """Number of numeric literals other than 0, 1, 2, -1 and 0.5."""
    usual = (0, 1, 2, 0.5)
    return sum(
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
        and node.value not in usual
        for node in ast.walk(tree)
    )


def lines_of_folder(name):
    """Code lines of a folder beside the package."""
    return sum(file.code_lines for file in read_package(PACKAGE.parent / name).values())


def import_lines(tree):
    """Lines of import statements."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum(node.end_lineno - node.lineno + 1 for node in imports)


def static_figures():
    """Figures read off the syntax trees of all files."""
    package = read_package(PACKAGE)
    trees = [file.tree for file in package.values()]
    code = sum(file.code_lines for file in package.values())
    users = functions_of_users()
    functions = [
        (len(counted_parameters(node, f"{module}.{node.name}" in users)), f"{module}.{node.name}")
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
        "numeric literals": sum(map(numeric_literals, trees)),
        "code lines of tests": lines_of_folder("tests"),
        "code lines of benchmarks": lines_of_folder("benchmarks"),
        "imports, % of code": round(100 * sum(map(import_lines, trees)) / code, 1),
        "longest internal parameter list": max(functions),
    }


def counted_parameters(node, is_users):
    """Names of the parameters that a caller has to keep apart.

    Users pass options by name, and read about each in the docstring, as everywhere in
    scikit-learn. So keyword-only parameters of a function of theirs do not count if its docstring
    has an entry for them.
    """
    names = parameters_of(node)
    if not is_users:
        return names
    documented = {
        name.strip()
        for line in (ast.get_docstring(node) or "").splitlines()
        for name in line.partition(" : ")[0].split(",")
        if " : " in line and line[0] != " "
    }
    by_name = {arg.arg for arg in node.args.kwonlyargs}
    return [name for name in names if name not in by_name & documented]


def functions_of_users():
    """Functions that the package exports and methods of its classes, as `module.name`."""
    from skdp import metrics, model_selection, preprocessing

    rooms = skdp, metrics, model_selection, preprocessing
    exported = [getattr(room, name) for room in rooms for name in room.__all__]
    methods = [
        method
        for thing in exported
        if inspect.isclass(thing)
        for base in thing.__mro__
        for name, method in vars(base).items()
        if inspect.isfunction(method) and not name.startswith("_")
    ]
    functions = [thing for thing in exported if inspect.isfunction(thing)]
    return {f"{one.__module__}.{one.__name__}" for one in [*functions, *methods]}


def longest_mro():
    """The estimator with the most classes in its method resolution order, and their number."""
    estimators = [value for value in vars(skdp).values() if inspect.isclass(value)]
    return max((len(one.__mro__), one.__name__) for one in estimators)


class Walk:
    """Files, functions, calls and frames of the package that a call enters, all of them."""

    def __init__(self):
        self.files, self.functions, self.n_calls, self.deepest, self._stack = (
            set(),
            set(),
            0,
            [],
            [],
        )

    def __call__(self, frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(str(PACKAGE)) or event not in ("call", "return"):
            return
        if event == "return":
            if self._stack:  # else of a frame that was entered before
                self._stack.pop()
            return
        place = str(Path(code.co_filename).relative_to(PACKAGE))
        self._stack.append(f"{place} {code.co_qualname}")
        self.files.add(place)
        self.functions.add(self._stack[-1])
        self.n_calls += 1
        if len(self._stack) > len(self.deepest):
            self.deepest = list(self._stack)


def walk_of_a_fit():
    """Walk of `DPRidge().fit` on diabetes; in a new process, that of its first fit."""
    X, y = load_diabetes(return_X_y=True)
    walk = Walk()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(walk)
        try:
            skdp.DPRidge().fit(X, y)
        finally:
            sys.setprofile(None)
    return walk


def first_fit():
    """Figures of the first fit of a process, which plans and reads everything anew."""
    folder = Path(__file__).parent
    program = (
        "import json, structure\n"
        "walk = structure.walk_of_a_fit()\n"
        "print(json.dumps([len(walk.files), len(walk.functions), walk.n_calls, walk.deepest]))"
    )
    path = os.pathsep.join([str(PACKAGE.parent), str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    files, functions, calls, deepest = json.loads(done.stdout.splitlines()[-1])
    figures = {"files": files, "functions": functions, "calls": calls, "frames": len(deepest)}
    return figures, deepest


if __name__ == "__main__":
    for name, value in static_figures().items():
        print(f"{name}: {value}")
    print("method resolution order:", *longest_mro())
    figures, deepest = first_fit()
    print("first fit:", *(f"{value} {name}" for name, value in figures.items()))
    print(*(f"  {frame}" for frame in deepest), sep="\n")
