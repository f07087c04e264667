"""Names that were public before they were changed or moved still work, with a warning."""

from __future__ import annotations

import importlib
import re

import pytest

from skdp._renamed import FORMER_NAMES
from skdp.accounting import Gaussian


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [(module, *names) for module, table in FORMER_NAMES.items() for names in table.items()],
)
def test_a_former_name_warns_and_works(module, old, new):
    package = importlib.import_module(module)
    home, _, name = (new if "." in new else f"{module}.{new}").rpartition(".")
    told = f"{module}.{old} is now {home}.{name}; the old name will be removed."
    with pytest.warns(FutureWarning, match=re.escape(told)):
        found = getattr(package, old)
    assert found is getattr(importlib.import_module(home), name)
    assert old not in package.__all__


def test_a_former_name_can_be_imported():
    with pytest.warns(FutureWarning, match=r"is now skdp\.accounting\.DisjointPass"):
        from skdp.accounting import OnePass
    assert OnePass(5, Gaussian(1.0)).n_steps == 5


@pytest.mark.parametrize("module", FORMER_NAMES)
def test_other_names_are_unknown(module):
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'MadeUp'"):
        importlib.import_module(module).MadeUp  # noqa: B018
    with pytest.raises(ImportError):
        exec(f"from {module} import MadeUp")


@pytest.mark.parametrize("module", FORMER_NAMES)
def test_every_public_name_exists_and_is_listed_once(module):
    package = importlib.import_module(module)
    assert len(set(package.__all__)) == len(package.__all__)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
