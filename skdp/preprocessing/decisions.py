"""List the decisions that a table needs before a private fit, from public facts only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from numpy.typing import ArrayLike
from scipy import sparse

from skdp._fitting import tables
from skdp._fitting.refusals import refusing
from skdp._fitting.user_warnings import IDENTIFIER
from skdp._numbers import Table, listed

FILLED = "number", "date", "duration"  # uses of columns whose missing values get a fill_value


class Decisions(tuple[str, ...]):
    """Decisions before a fit, in sentences. Printed as a numbered list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(f"{number}. {text}" for number, text in enumerate(self, 1))


def uses_of_columns(X: Table) -> dict[Hashable, str]:
    """Return the possible use of each column of a table, by names and types.

    Returns
    -------
    dict of column to {"number", "date", "duration", "category", "none"}
    """
    uses = {}
    names = tables.names_of(X)
    for place, name in enumerate(range(X.shape[1]) if names is None else names):
        kinds = tables.kinds_in(X, place)
        read_as = {tables.BY_NAME[kind].read_as for kind in kinds} or {"number"}
        use = read_as.pop() if len(read_as) == 1 else ""
        is_label = tables.is_categorical(X, place) or kinds == {"text"}
        uses[name] = "category" if is_label else use or "none"
    return uses


def check(X: Table, y: ArrayLike | None = None) -> Decisions:
    """List the decisions to make before a private fit, without a look at any value.

    The list follows from names, types and shapes, which are public. No budget is spent.

    Parameters
    ----------
    X : data frame, Arrow table, array or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,) or None, default=None

    Returns
    -------
    tuple of str
        Printed as a numbered list.

    Examples
    --------
    >>> import pandas as pd
    >>> import skdp
    >>> frame = pd.DataFrame({"patient_id": [1, 2], "ward": ["a", "b"], "age": [31.0, 58.0]})
    >>> len(skdp.check(frame, [0, 1]))
    5
    """
    with refusing("check"):
        X = X if sparse.issparse(X) else tables.as_table(X)
        uses = uses_of_columns(X)
    n_rows, n_columns = X.shape
    persons = [name for name in uses if IDENTIFIER.fullmatch(str(name))]
    leave = f"leave {tables.columns_in_words(persons)} out of X, and " if persons else ""
    texts = [
        f"People: {leave}pass a label for each person as groups if a person may have several rows."
    ]
    advice = {
        (
            "category",
        ): "Categories: declare the labels of {} from a code book, or leave free text out",
        ("date",): "Dates: DPTabularPreprocessor turns {} into days since 2000-01-01",
        ("none",): "Other types: turn {} into columns of numbers, or leave them out",
        FILLED: "Missing values: if any may be missing, give fill_value a typical value for {}",
    }
    for use, text in advice.items():
        same = [name for name, own in uses.items() if own in use and name not in persons]
        texts += [f"{text.format(tables.columns_in_words(same))}."] if same else []
    texts += [] if y is None else [_target(y)]
    texts.append(
        f"Budget: choose epsilon (1 by default) and a delta well below 1/n = {1 / n_rows:.2g} "
        f"(1e-6 by default). plan({n_rows}, {n_columns}) of a model states what a fit costs."
    )
    return Decisions(texts)


def _target(y: ArrayLike) -> str:
    values = tables.as_array(y)
    if values.dtype.kind == "f":
        return (
            "Target: declare its range, scaling=PublicRange(target=(low, high)), or leave its "
            "estimation to a part of the budget."
        )
    labels = "declare all labels that are possible, classes=[...], without a look at y"
    if values.dtype.kind in "iu":
        return f"Target: if these integers are labels, {labels}. Counts suit DPPoissonRegressor."
    return f"Target: {labels}."


def template(X: Table) -> str:
    """Return the call of `DPTabularPreprocessor` for a table, with blanks for public facts."""
    uses = uses_of_columns(tables.as_table(X))
    uses |= {name: "none" for name in uses if IDENTIFIER.fullmatch(str(name))}

    def blanks(names: Iterable[Hashable], blank: str) -> str:
        return "".join(f"        {name!r}: {blank},\n" for name in names)

    labels = blanks((name for name, use in uses.items() if use == "category"), "[...]")
    others = [name for name, use in uses.items() if use in FILLED]
    left_out = [name for name, use in uses.items() if use == "none"]
    return (
        "DPTabularPreprocessor(\n"
        "    categories={  # all possible labels, from public knowledge\n"
        f"{labels}    }},\n"
        "    fill_value={  # a typical value, known without a look at the rows\n"
        f"{blanks(others, '...')}    }},\n"
        f"    missing={others!r},  # the columns in which values may be missing\n"
        f"){f'  # leave out of X: {listed(left_out)}' if left_out else ''}"
    )
