"""Sentences of privacy statements on assumptions about the unit of privacy, rows and noise."""

import math

from skdp.oracle import Public

NOT_SCORES = (
    "Fits, and scores by skdp.metrics, are counted: other scores on these rows, and choices made "
    "by them, are not private and not part of this price. Nor are the operations that estimators "
    "around these fits perform between them, such as the selection of rows in "
    "OneVsOneClassifier, RANSACRegressor, SelfTrainingClassifier and IterativeImputer, or the "
    "weights of AdaBoost."
)
NO_RETURNED_TARGET = (
    "That no column of X equals a target of an earlier one of these fits is public: such a fit is "
    "refused. Targets in another order, of other rows or transformed are not recognised."
)
ANY_ORDER = (
    "Which fits were made, and with what budgets, may have been decided by looking at the models "
    "before them: what accountant {!r} adds up is a privacy filter."
)
SETTLED = (
    "The budgets, batches and numbers of steps of these fits were not chosen by looking at the "
    "models before them. (A budget with accountant='gdp', or with 'pure' for fits of pure "
    "guarantees, needs no such assumption.)"
)
IN_LEDGER = (
    "What any process charged to the ledger {!r} for the data {!r} is counted. That the file "
    "was not deleted, copied or put back to an earlier state is assumed: compare its head with one "
    "kept elsewhere. Columns that equal targets of fits in other processes, or through another "
    "PrivacyBudget of the ledger, are not recognised."
)
RENEWED = (
    "Only the present calendar month (UTC, by the time of the charge) is counted: no {} is in the "
    "fits of two months."
)
EXTERNAL = "A release by another tool was charged as it was stated: {}"


def unit_assumptions(n_records: int, unit: str, result: str = "the model") -> list[str]:
    """Return what a statement says of the unit of privacy, and of how many there are.

    Parameters
    ----------
    n_records : int
    unit : {"row", "group"}
    result : str, default="the model"
        What each group counts once in.
    """
    if unit == "row":
        return [f"One record is one row; the number of rows, n = {n_records}, is public."]
    return [
        "One record is one group: all rows with the same value of `groups`. The number of "
        f"groups, n = {n_records}, is public; the numbers of their rows are not, and no "
        "answer was computed from them but through the releases. (The time and the memory that "
        "a fit takes grow with the number of rows, as any computation's.)",
        "All rows of whoever is protected have one label, and no two of those share a label. Which "
        "labels there are is public: what is protected are the rows behind each.",
        f"Each group counts once in {result}, whatever the number of its rows.",
    ]


def row_assumptions(public: Public) -> list[str]:
    """Return what the statement of any fit says everybody may know of the rows."""
    sparse = (
        "Which entries of sparse rows are stored, and how many, is private: no answer was computed "
        "from it but through the releases. (The time and the memory that a fit takes grow with "
        "their number, as any computation's.)"
    )
    labels_alone = (
        "The features are public, of every record: no column follows from the targets of these "
        "rows, as in chains or target encoders. What is protected is the target of each record."
    )
    return [
        *unit_assumptions(public.n_rows, public.unit),
        *([sparse] if public.sparse and not public.labels_alone else []),
        *([labels_alone] if public.labels_alone else []),
        f"The number of columns, {public.n_features}, their names and the type of X are public.",
        "That no value is missing or infinite is public: such rows are refused.",
    ]


def noise_assumptions(noise_source: str, epsilon: float) -> list[str]:
    """Return what a seed does to the guarantee, and what no noise does."""
    sentences = []
    if noise_source == "seeded":
        sentences.append(
            "The noise follows from a seed, which stays secret: whoever knows it can subtract the "
            "noise."
        )
    if math.isinf(epsilon):
        sentences.append("There is NO privacy: epsilon is infinite and no noise was added.")
    return sentences
