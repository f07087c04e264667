"""The constants of the private reading of columns, found in its source, and other values for them.

All numbers that a module of ``skdp/stages/scaling`` assigns to a name in capitals at its top.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import skdp
from skdp.fitting import preparation

PACKAGE = "skdp.stages.scaling"

LEFT_OUT = {
    "stage.MANY_BINS": "time alone: more bins cost nothing",
    "stage.BINS_BY_NOISE": "pairs of a noise and the bins that go with it",
    "distributions.REACH_OCTAVES": "time alone: bins that are empty",
    "distributions.MAX_COLUMNS": "time alone: of more columns than most of these data have",
}
# Shares from about a third on have half and twice the odds; twice such a share may exceed 1.
ODDS = {
    "shares.MAX_SHARE_ALL", "distributions.ZERO_SHARES",
    "refinements.STANDARD_SHARE", "refinements.MAX_BODY_SHARE", "estimates.MAX_FILLED_SHARE",
}  # fmt: skip
# Others whose half or twice would mean nothing.
NEIGHBOURS = {
    "refinements.MIN_SPREAD": (2, 6),
    "distributions.EM_ITERATIONS": (2, 6),
    "shares.COSTS_COLUMNS": ((0.5,) * 4, (0.5,) * 8),
    "shares.COSTS_TARGETS": ((1.0,) + (0.4,) * 3, (1.0,) + (0.4,) * 7),
    "shares.COSTS_OF_FEWER": ((0.5, 0.5), (1.0,) * 3),  # one by magnitude is no fit
    "refinements.MIN_DISTANCE_RATIO": (1.5, 4.0),  # two distances in the ratio 1 are one
}
AT = {
    "half": ("half", "twice"),
    "odds": ("half the odds", "twice the odds"),
    "neighbour": ("next below", "next above"),
}
BELOW = tuple(below for below, _ in AT.values())  # the others are above


@dataclass(frozen=True)
class Variant:
    """A constant at another value.

    Attributes
    ----------
    module, constant : str
        The module without its package.
    at : str
        How the value follows from the constant as it is.
    value : int, float or tuple of them
    """

    module: str
    constant: str
    at: str
    value: object

    @property
    def name(self) -> str:
        return f"{self.module}.{self.constant}"


def assigned(tree: ast.Module) -> Iterator[str]:
    """Yield the names in capitals that a module assigns at its top, also several at once."""
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Name) and node.id.isupper():
                yield node.id


def is_numeric(value: object) -> bool:
    """Whether a value is a number, or a tuple of what is."""
    if isinstance(value, tuple):
        return bool(value) and all(map(is_numeric, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


@cache
def constants() -> dict[str, object]:
    """Values of all numeric constants of the package, by module and name."""
    found = {}
    for path in sorted(Path(importlib.import_module(PACKAGE).__file__).parent.glob("*.py")):
        if path.stem == "__init__":
            continue
        module = importlib.import_module(f"{PACKAGE}.{path.stem}")
        for name in assigned(ast.parse(path.read_text(encoding="utf-8"))):
            if is_numeric(getattr(module, name)):
                found[f"{path.stem}.{name}"] = getattr(module, name)
    return found


def scaled(value: object, factor: float, as_odds: bool) -> object:
    """Return a number, or each of a tuple, times a factor; or a share with so many times the odds.

    Integers stay integers.
    """
    if isinstance(value, tuple):
        return tuple(scaled(one, factor, as_odds) for one in value)
    if as_odds:
        return value * factor / (value * factor + 1 - value)
    return int(value * factor) if isinstance(value, int) else value * factor


def variants(names: list[str] | tuple[str, ...] = ()) -> list[Variant]:
    """Return all that is tried, or that of some constants, or modules, by name."""
    known = {name: value for name, value in constants().items() if name not in LEFT_OUT}
    found = []
    for name, value in known.items():
        how = "odds" if name in ODDS else "neighbour" if name in NEIGHBOURS else "half"
        pair = NEIGHBOURS.get(name) or [scaled(value, by, name in ODDS) for by in (0.5, 2.0)]
        found += [
            Variant(*name.split("."), at, other)
            for at, other in zip(AT[how], pair, strict=True)
            if other != value
        ]
    unknown = set(names) - {word for one in found for word in (one.module, one.constant, one.name)}
    if unknown:
        raise SystemExit(f"unknown constants {sorted(unknown)}; known: {sorted(known)}")
    return [
        one for one in found if not names or {one.module, one.constant, one.name} & set(names)
    ]  # fmt: skip


@cache
def importers() -> dict[str, list[tuple[str, str]]]:
    """Modules of skdp that import a constant by name, and what they call it."""
    home, found = Path(skdp.__file__).parent, {}
    for path in sorted(home.rglob("*.py")):
        module = ".".join(["skdp", *path.relative_to(home).with_suffix("").parts])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
                for name in node.names:
                    key = f"{node.module.removeprefix(f'{PACKAGE}.')}.{name.name}"
                    found.setdefault(key, []).append((module, name.asname or name.name))
    return found


@contextmanager
def changed(variant: Variant) -> Iterator[None]:
    """Give a constant another value inside the block, wherever it is known by a name."""
    places = [(f"{PACKAGE}.{variant.module}", variant.constant), *importers().get(variant.name, [])]
    found = [(importlib.import_module(module), name) for module, name in places]
    kept = [(module, name, getattr(module, name)) for module, name in found]
    plans = dict(preparation._plans)
    try:
        for module, name, _ in kept:
            setattr(module, name, variant.value)
        forget(module for module, _, _ in kept)
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
        forget(module for module, _, _ in kept)
        preparation._plans.update(plans)


def forget(changed_modules: Iterable[ModuleType]) -> None:
    """Empty the caches of modules, which may follow from their constants, and that of plans."""
    preparation._plans.clear()
    for module in changed_modules:
        for thing in vars(module).values():
            if hasattr(thing, "cache_clear") and thing.__module__ == module.__name__:
                thing.cache_clear()
