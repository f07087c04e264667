"""How probable each shape is for each column, given its noisy counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skdp.scaling.templates import Templates

Array = NDArray[np.float64]

MISFIT = 0.01  # of shapes, as a share of the rows: no column is exactly one of them
ROUNDS, MOST_COLUMNS = 6, 64  # of fitting what columns have in common
OWN = 5.0  # weight of what is known beforehand, in columns


def _log_likelihood(counts: Array, std: Array, n_rows: int, templates: Templates) -> Array:
    """Of each column (row) under each shape (column), up to a constant."""
    variance = std[:, None] ** 2 + (MISFIT * n_rows) ** 2
    shapes = templates.shapes
    fit = n_rows * (counts @ shapes.T) - n_rows**2 * np.einsum("ij,ij->i", shapes, shapes) / 2
    return np.asarray(fit / variance)


def _common_prior(log_likelihood: Array, templates: Templates) -> Array:
    """Log prior with what the columns have in common: an empirical Bayes estimate.

    Columns share how often each kind of shape and each place occur, the two on their own, as there
    are too many shapes to count each of them. Each column gets a prior of its own, without what
    the column itself adds: otherwise a find in mere noise would vouch for itself.
    """
    n_columns = len(log_likelihood)
    some = np.arange(0, n_columns, -(-n_columns // MOST_COLUMNS))
    likelihood = log_likelihood[some]
    base = np.exp(templates.log_prior - logsumexp(templates.log_prior))
    kinds, places = (
        np.eye(labels.max() + 1)[labels] for labels in (templates.kinds, templates.places)
    )
    log_prior = np.log(base)[None, :]
    of_kinds = of_places = base[None, :]
    for _ in range(ROUNDS):
        posterior = likelihood + log_prior
        posterior = np.exp(posterior - logsumexp(posterior, axis=1, keepdims=True))
        of_kinds, of_places = posterior @ kinds, posterior @ places
        log_prior = _product(
            templates,
            OWN * (base @ kinds) + np.maximum(of_kinds.sum(axis=0) - of_kinds, 0.0),
            OWN * (base @ places) + np.maximum(of_places.sum(axis=0) - of_places, 0.0),
        )
    result = np.empty((n_columns, len(base)))
    result[:] = _product(
        templates,
        OWN * (base @ kinds) + of_kinds.sum(axis=0, keepdims=True),
        OWN * (base @ places) + of_places.sum(axis=0, keepdims=True),
    )
    result[some] = log_prior
    return result


def _product(templates: Templates, of_kinds: Array, of_places: Array) -> Array:
    """Log prior of every shape: that of its kind, and of its place among those of the kind."""
    place = of_places[:, templates.places]
    same_kind = np.zeros((len(place), of_kinds.shape[1]))
    for kind in range(of_kinds.shape[1]):
        same_kind[:, kind] = place[:, templates.kinds == kind].sum(axis=1)
    kind = of_kinds / of_kinds.sum(axis=1, keepdims=True) / same_kind
    return np.asarray(np.log(place * kind[:, templates.kinds]))


def posterior_of(
    counts: Array, std: Array, n_rows: int, templates: Templates, in_common: bool
) -> Array:
    """Probability of every shape (column) for every column of the data (row)."""
    log_likelihood = _log_likelihood(counts, std, n_rows, templates)
    log_prior = templates.log_prior
    if in_common and len(counts) > 1:
        log_prior = _common_prior(log_likelihood, templates)
    found = log_likelihood + log_prior
    found -= found.max(axis=1, keepdims=True)
    np.exp(found, out=found)
    found /= found.sum(axis=1, keepdims=True)
    return found
