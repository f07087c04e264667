"""The files of a package as syntax trees, and what they import of each other."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class File:
    """A file of a package, by the name of its module."""

    module: str
    source: str
    is_package: bool = False

    @cached_property
    def tree(self):
        return ast.parse(self.source)

    @cached_property
    def imported(self):
        """Names that are imported outside of functions, in full; TYPE_CHECKING blocks included."""
        found, left = [], list(self.tree.body)
        while left:
            node = left.pop()
            if isinstance(node, ast.Import):
                found += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{self.module}: imports are written in full"
                found += [f"{node.module}.{alias.name}" for alias in node.names]
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                left += ast.iter_child_nodes(node)
        return found

    @cached_property
    def code_lines(self):
        """Number of lines that hold more than comments and docstrings."""
        silent = tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT
        lines = set()
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type not in (*silent, tokenize.ENDMARKER):
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
                first = node.body[0]
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    lines -= set(range(first.lineno, first.end_lineno + 1))
        return len(lines)


def read_package(folder):
    """The files of a package, by module."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        found[module] = File(module, path.read_text(encoding="utf-8"), is_package)
    return found


def made_up(**sources):
    """A package from sources; double underscores stand for dots."""
    names = {name.replace("__", "."): source for name, source in sources.items()}
    return {
        name: File(name, source, any(other.startswith(f"{name}.") for other in names))
        for name, source in names.items()
    }


def imports(package):
    """Modules of the package that each file of it imports."""
    found = {}
    for module, file in package.items():
        targets = set()
        for name in file.imported:
            # ``from a import b`` is module a.b if there is one, else a name in a.
            target = next((n for n in (name, name.rpartition(".")[0]) if n in package), None)
            if target is not None and target != module:
                targets.add(target)
        found[module] = targets
    return found
