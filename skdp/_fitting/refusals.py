"""Reword other libraries' refusals, which quote cells and, with groups, numbers of rows."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from skdp._fitting import tables
from skdp._numbers import Table

# Words in refusals of scikit-learn, and what is said instead: some of them quote cells, and the
# advice to impute missing values would have rows read without privacy.
UNUSABLE = {
    "Complex data not supported": "must hold real numbers (Complex data not supported)",
    "could not convert string": "holds text where numbers are needed",
    "Expected 2D array": (
        "must have two dimensions, rows and columns. Reshape your data: X.reshape(-1, 1) if there "
        "is one column, X.reshape(1, -1) if there is one row"
    ),
    "Expected a 2-dimensional container": (
        "must have two dimensions, rows and columns. Pass X.to_frame() if it is one column"
    ),
    "y contains NaN": (
        "holds missing values (NaN), which are not supported. Drop these rows before the fit. "
        "Filling them with a mean of the rows would not be private"
    ),
    "contains NaN": (
        "holds missing values (NaN), which are not supported. Fill them with "
        "skdp.DPTabularPreprocessor, or drop these rows. Means of the rows would not be private"
    ),
    "setting an array element with a sequence": "holds cells that are lists, not numbers",
    "fill value must be 0": (
        "holds sparse columns whose fill value is not 0. Pass X.sparse.to_dense(), or columns of "
        "the type pandas.SparseDtype(float, 0)"
    ),
    "contains infinity": "holds infinity (inf), or values that are too large for their type",
    "at least 1 dimension": "must have one entry for each row. It is a single one",
    "Feature names are only": (
        "holds columns whose names are of several types. Make all of them text, as by "
        "X.columns = X.columns.astype(str)"
    ),
    "at least one array or dtype": "must have at least one column",
    "unique column names": "holds columns of the same name. Rename them",
    "Singleton array": "must have one entry for each row. It is a single one",
}
NO_NUMBERS = "holds cells that are not numbers"
NO_FLOAT = "argument must be a string or a real number"  # Python's words, which name a type alone
NO_LABELS = (
    "holds labels that cannot be compared with each other or with the classes, such as numbers "
    "next to text"
)

ENCODE = (
    "A type's own levels were learnt from the rows, where a rare one would give somebody away. "
    "Encode categories that are public beforehand, by skdp.DPTabularPreprocessor or by "
    "sklearn.preprocessing.OneHotEncoder(categories=...)."
)

# A number that stands by itself in a message of scikit-learn: of rows, perhaps. Numbers of columns
# are public, and so is advice that it gives to everybody.
COUNT = re.compile(
    r"(?P<public>\b\d+ feature|a minimum of 1 is|dim <= 2|\.reshape\((?:-1, 1|1, -1)\))"
    r"|(?<![\w.])\d+(?:\.\d+)?(?!\w)"
)
# In every refusal of this package, and those of scikit-learn that are passed on: the rest of each
# consists of numbers of rows and columns, of types, and of names of columns.
END = "Nothing was released."
PUBLIC = re.compile(
    r"(Found (input variables|array) with|X has \d+ features, but|Unknown label type: [a-z-]+\."
    r"|The feature names should match|This \w+ estimator requires y|y should be a 1d array, got"
    r"|Sample weights must be 1D|Classification metrics can't handle a mix of) .*",
    re.DOTALL,
)
NO_MEMORY = "{}: a fit of this size needs more memory than there is."


class InputError(ValueError):
    """Refused input, in words of this package: it quotes no cell, and its numbers are public.

    Of groups the number of rows is private, so none of these messages contains it.
    """


class InputTypeError(InputError, TypeError):
    """The same where scikit-learn's contract wants a TypeError."""


@contextmanager
def refusing(who: str, end: str = END) -> Iterator[None]:
    """Begin the refusals of a block with a name, and end them with the state of the budget.

    Parameters
    ----------
    who : str
        The estimator or tool.
    end : str
        A sentence. A refusal that has it already is complete.

    Raises
    ------
    ValueError, TypeError
        As in the block.
    MemoryError
        Without a size, which may follow from private rows.
    """
    try:
        yield
    except MemoryError as error:
        is_own = END.rstrip(".") in _message_of(error)
        raise (error if is_own else MemoryError(f"{NO_MEMORY.format(who)} {end}")) from None
    except (ValueError, TypeError) as refusal:
        said = _message_of(refusal)
        if end != END:  # another tool's words, of rows that are read once more
            said = said.removesuffix(END).rstrip()
        if end.rstrip(".") not in said:
            begin = "" if who in said else f"{who}: "
            refusal.args = (f"{begin}{said} {end}",)
        raise


def quotes_no_cell(error: Exception) -> bool:
    """Whether the text of an error is one of this package, or consists of public facts.

    A cell may run code of its own when it is converted or compared, and an error of that may quote
    the cell. So the text of any other error is not passed on.
    """
    message = _message_of(error)
    is_own = isinstance(error, InputError) or END in message
    return is_own or PUBLIC.fullmatch(message) is not None


@contextmanager
def without_cells(what: str, X: Table = None, otherwise: str = NO_NUMBERS) -> Iterator[None]:
    """Validate arrays in the block. Neither a refusal nor a warning quotes a cell.

    Parameters
    ----------
    what : str
        Names of the arrays.
    X : table, default=None
        One of the arrays, whose columns of text are named in a refusal.
    otherwise : str
        Message in place of an error that may quote a cell.

    Raises
    ------
    ValueError, or an error of scikit-learn or of this package
        If validation fails.
    """
    try:
        # Sums of extreme values may overflow in there: a warning would tell of single records.
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (MemoryError, InputError):
        raise
    except Exception as refusal:
        message = _message_of(refusal)
        place = "" if X is None else tables.where(X, tables.has_objects, ",")
        if isinstance(refusal, TypeError) and NO_FLOAT in message:
            raise InputTypeError(f"{what} {NO_NUMBERS} ({NO_FLOAT}){place}.") from None
        why = next((why for sign, why in UNUSABLE.items() if sign in message), None)
        if isinstance(refusal, OverflowError):
            why = "holds a number that is too large for float64"
        elif why is None and quotes_no_cell(refusal):
            raise
        what = "y" if "Input y contains" in message else what
        no_columns = X is not None and 0 in np.shape(X)[1:]
        what = "X" if no_columns or "Feature names" in message else what
        is_of_X = X is not None and what != "y"
        if why is None:
            why = otherwise + (place if otherwise == NO_NUMBERS else "")
        elif what in ("sample_weight", "offset") and why == UNUSABLE["contains NaN"]:
            why = "holds missing values (NaN): give each row a number, 0 for one without effect"
        elif is_of_X and why == UNUSABLE["contains NaN"]:
            what, why = "X", why.replace(",", f"{tables.where(X, tables.has_missing)},", 1)
        elif is_of_X and why == UNUSABLE["contains infinity"]:
            what, why = "X", why + tables.where(X, tables.has_infinity, ",")
        raise InputError(f"{what} {why.rstrip('.')}.") from None


def _message_of(error: Exception) -> str:
    """Return the message of an error, or an empty one if its class cannot produce it."""
    try:
        return str(error)
    except Exception:
        return ""


def refuse_columns(what: str, values: object) -> None:
    """Raise ValueError for a table with columns that are no numbers, by the types of its cells.

    scikit-learn would misread some of them: dates for nanoseconds, lists for several columns.

    Parameters
    ----------
    what : str
        Name of the argument.
    values : table, array or sequence
    """
    tables.refuse_lazy(values, what)
    refuse_hidden(what, values)
    present = tables.no_numbers(values)
    if not present:
        return
    kinds = frozenset().union(*present.values())
    encode = f" {ENCODE}" if "text" in kinds else ""
    advice = encode if what == "X" else f" {what} must hold real numbers."
    said = f"{what} holds {tables.not_numbers(present)}{advice}"
    if "values of other types" in kinds:  # scikit-learn wants these words
        raise InputTypeError(f"{said} ({NO_FLOAT})")
    raise InputError(said)


def refuse_hidden(what: str, values: object) -> None:
    """Raise ValueError for a masked array that hides cells: they are missing, whatever they are."""
    if tables.has_hidden_cells(values):
        raise InputError(
            f"{what} is a masked array that hides cells, which are missing values. Leave such rows "
            f"out, or fill the cells by {what}.filled(numpy.nan) and skdp.DPTabularPreprocessor."
        )


def refuse_missing_targets(y: object) -> None:
    """Raise ValueError for objects with a missing one. Scikit-learn finds those among numbers."""
    values = np.empty(0) if y is None else tables.one_dimensional(y)
    if values.dtype.kind == "O" and any(map(tables.is_missing, values.ravel().tolist())):
        raise InputError(f"y {UNUSABLE['y contains NaN']}.")


def require_one_kind(what: str, kinds: frozenset[str]) -> None:
    """Raise ValueError for labels that are not all text, or all numbers.

    One person, or class, would become two, and labels of other types have no order.

    Parameters
    ----------
    what : str
        Name of the argument.
    kinds : frozenset of str
        Of all labels.
    """
    if len(kinds) > 1 or not kinds <= {"numbers", "text"}:
        raise InputError(
            f"{what} must hold labels of one kind, all text or all numbers, got "
            f"{tables.in_words(kinds)}. Make all of them text, as by pandas.Series({what}).astype"
            "(str). (The number 7 and the text '7' would be different labels. Complex data not "
            "supported.)"
        )


@contextmanager
def without_row_counts(grouped: bool) -> Iterator[None]:
    """Keep validation in the block from stating how many rows there are.

    With groups that number is private. Refusals of scikit-learn quote shapes, and one of its
    warnings compares the number of labels with that of rows. So a number is hidden unless the
    error is a `InputError`.
    """
    if not grouped:
        yield
        return
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except (ValueError, TypeError) as refusal:
        if isinstance(refusal, InputError):
            raise
        shown = COUNT.sub(lambda match: match["public"] or "...", str(refusal))
        raise type(refusal)(shown) from None
