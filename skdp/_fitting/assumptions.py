"""Sentences of privacy statements on assumptions about the unit of privacy, rows and noise."""

import math

from skdp._oracle import Public

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
    "Which fits were made, and with which budgets, may have been decided by looking at the models "
    "before them. The whole budget, epsilon={:g}, is then the guarantee: totals of Gaussian "
    "releases on all rows or on disjoint blocks, and sums of epsilons, are privacy filters."
)
SETTLED = (
    "The budgets, batches and numbers of steps of these fits were not chosen by looking at the "
    "models before them. (Fits whose releases are all Gaussian, or all pure with delta=0, need no "
    "such assumption in a finite budget.)"
)
IN_LEDGER = (
    "What any process charged to the ledger {!r} for the data {!r} is counted. That the file "
    "was not deleted, copied or put back to an earlier state is assumed: compare its head with one "
    "kept elsewhere. Columns that equal targets of fits in other processes, or through another "
    "PrivacyBudget of the ledger, are not recognised."
)
EXTERNAL = "A release by another tool was charged as it was stated: {}"


def unit_assumptions(n_records: int, unit: str, result: str = "the model") -> list[str]:
    """Return a statement's sentences on the unit of privacy and the number of units.

    Parameters
    ----------
    n_records : int
    unit : {"row", "group"}
    result : str, default="the model"
        The result in which each group counts once.
    """
    if unit == "row":
        return [f"One record is one row. The number of rows, n = {n_records}, is public."]
    return [
        "One record is one group: all rows with the same value of `groups`. The number of "
        f"groups, n = {n_records}, is public. The numbers of their rows are not, and affect only "
        "the releases. (The time and the memory of a fit grow with the number of rows.)",
        "Each protected person has exactly one group label, and no two persons share one. The set "
        "of labels is public. The rows of each label are protected.",
        f"Each group counts once in {result}, whatever the number of its rows.",
    ]


def row_assumptions(public: Public) -> list[str]:
    """Return the facts about the rows that every statement lists as public."""
    sparse = (
        "The positions and the number of stored entries of sparse rows are private and affect only "
        "the releases. (The time and the memory of a fit grow with their number.)"
    )
    labels_alone = (
        "The features of every record are public. No column depends on the targets of these rows, "
        "as in chains or target encoders. The target of each record is protected."
    )
    return [
        *unit_assumptions(public.n_rows, public.unit),
        *([sparse] if public.sparse and not public.labels_alone else []),
        *([labels_alone] if public.labels_alone else []),
        f"The number of columns, {public.n_features}, their names and the type of X are public.",
        "Data with missing or infinite values are rejected, so the fit itself reveals that there "
        "were none.",
    ]


def noise_assumptions(noise_source: str, epsilon: float) -> list[str]:
    """Return how a seed, or no noise, affects the guarantee."""
    sentences = []
    if noise_source == "seeded":
        sentences.append(
            "The noise follows from a seed, which must stay secret: whoever knows the seed can "
            "subtract the noise."
        )
    if math.isinf(epsilon):
        sentences.append("There is NO privacy: epsilon is infinite and no noise was added.")
    return sentences


# What is declared, by the public fact of which the sentence is made.
DECLARED = {
    "clips_means": "rows_per_group = {0.rows_per_group:g} was guessed without looking at the rows. "
    "The mean gradient of a group is clipped, whatever the number of its rows.",
    "weighted": "It is public that weights are finite, not negative and not all 0. The weight of a "
    "record depends only on that record, unlike the weights of AdaBoost.",
    "has_offset": "The offset of a record depends only on that record and on public or released "
    "numbers. The margins of a model that was fitted to these rows without privacy depend on more.",
    "start": "The starting point, coef_init and intercept_init, is public: it was not learnt from "
    "these rows, or its cost is accounted for elsewhere.",
    "data_norm": "The bound on the norm of rows, {0.data_norm:g}, was chosen without looking at "
    "the rows. Rows with larger norms were shrunk to it.",
    "row_bound": "Standardised rows with an L2 norm above {0.row_bound:.4g} (twice the typical "
    "norm), or above row_bound_ if that is larger, were shrunk to that norm, both in fit and in "
    "predict. Set a different bound with RowNorm.",
}


def declared_assumptions(public: Public) -> list[str]:
    """Return the declarations about weights, the start, and norms of rows or sizes of groups."""
    given = {name: getattr(public, name) for name in DECLARED}
    if public.data_norm is not None:
        given["row_bound"] = None
    known = (name for name, value in given.items() if value is not None and value is not False)
    sentences = [DECLARED[name].format(public) for name in known]
    if public.has_offset and public.labels_alone:
        sentences.append("Offsets are public: they do not depend on the targets of these rows.")
    return sentences


def stream_assumptions(public: Public, n_rows: int) -> list[str]:
    """Return the assumptions about the blocks of a stream, for which ``n_rows`` was declared."""
    sentences = [
        f"Rows arrived block by block and were read once. n = {n_rows} was "
        f"declared. Places without a {public.unit} count as null records.",
        f"The order of arrival and the numbers of {public.unit}s in blocks did not depend "
        "on private values. The order is not secret, so nothing was amplified by "
        "shuffling.",
    ]
    if public.grouped:
        sentences.append(
            "All rows of a group arrived in one block. Labels of different blocks were not "
            "compared, since nothing of them is kept: whoever has rows in k blocks counts "
            "as k groups."
        )
    return sentences
