"""Paragraphs that docstrings share are put in at the right indentation."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

from skdp._docstrings import fill, section_of

PARAGRAPH = """
alpha : float
    Strength.
beta : float
    Weight.
"""
FILLED = """One line.

Parameters
----------
alpha : float
    Strength.
beta : float
    Weight.
gamma : float
    Rate.
"""


# Python 3.13 takes the indentation off docstrings when it compiles a class, older versions do not.
@pytest.mark.parametrize("indent", ["", "    "])
def test_filled_at_the_indentation_of_the_docstring(indent):
    lines = ["Parameters", "----------", "{shared}", "gamma : float", "    Rate."]
    doc = "One line.\n\n" + "".join(f"{indent}{line}\n" for line in lines) + indent
    cls = fill(shared=PARAGRAPH)(type("Documented", (), {"__doc__": doc}))
    assert cls.__doc__ == FILLED


def documented(alpha, beta):
    """Do something.

    Parameters
    ----------
    alpha : float
        Strength,
        in two lines.
    beta : float
        Weight.

    References
    ----------
    A. Author: Title. 2022.
    B. Author: Title. 2023.
    """


def test_a_section_and_its_entries():
    found = section_of(documented, "Parameters")
    alpha, beta = "alpha : float\n    Strength,\n    in two lines.", "beta : float\n    Weight."
    assert found == {"alpha": alpha, "beta": beta}
    assert list(section_of(documented, "References")) == [
        "A. Author: Title. 2022.",
        "B. Author: Title. 2023.",
    ]
    assert section_of(documented, "Notes") == {}
    assert section_of(object(), "Parameters") == {}


def introduced_by(module):
    """The public functions of a module, and the methods that its classes do not inherit."""
    for name in module.__all__:
        part = getattr(module, name)
        if inspect.isfunction(part):
            yield name, part
        elif inspect.isclass(part):
            inherited = {key for base in part.__mro__[1:] for key in vars(base)}
            for key, method in vars(part).items():
                if inspect.isfunction(method) and not key.startswith("_") and key not in inherited:
                    yield f"{name}.{key}", method


@pytest.mark.parametrize(
    "room", ["accounting", "audit", "objective", "oracle", "planning", "solvers", "steps"]
)
def test_what_extenders_call_documents_results_and_errors(room):
    module = importlib.import_module(f"skdp.{room}")
    missing = []
    for name, part in introduced_by(module):
        doc, source = part.__doc__ or "", inspect.getsource(part)
        returns = inspect.signature(part).return_annotation not in (None, "None", "NoReturn")
        if returns and not re.search(r"^ *(Returns|Yields)$", doc, re.M):
            missing.append(f"{name}: Returns")
        if re.search(r"^ +raise ", source, re.M) and not re.search(r"^ *Raises$", doc, re.M):
            missing.append(f"{name}: Raises")
    assert not missing
