"""Rows of MNIST and of covertype: from a folder, from scikit-learn's fetchers, or small stand-ins.

The folder is that of `benchmarks.registry`, or what ``--data`` names. It may hold ``mnist.npz`` and
``covertype_16pct.npz``, with arrays ``X`` and ``y``. Without them scikit-learn downloads MNIST
(OpenML, mnist_784) and covertype (UCI), of which a sample of 16 per cent is taken, in which each
class has its share.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import fetch_covtype, fetch_openml, load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks import registry

LONGEST_ROW = 10.0  # norm of the longest public row
SHARE_OF_COVERTYPE, PUBLIC_OF_COVERTYPE = 0.16, 10_000


def from_folder(name):
    """Return X and y of a file in the folder, or None if it is not there."""
    path = registry.SHARED / name
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as data:
        return data["X"], data["y"]


def digits(wanted, n_columns, private, public, quick):
    """Return rows of some digits and their places in the list, then test rows.

    Centring, principal components and scale come from public rows, which no model is fitted to. On
    the training rows these steps would not be private.

    Parameters
    ----------
    wanted : sequence of int
        The digits.
    n_columns : int
        Number of principal components.
    private, public : slice
        Of the training rows with these digits.
    quick : bool
        Whether to use the 8 x 8 digits that come with scikit-learn.
    """
    if quick:
        X, y = load_digits(return_X_y=True)
        n_train, n_columns = 1200, min(n_columns, 30)
    else:
        X, y = from_folder("mnist.npz") or fetch_openml(
            "mnist_784", return_X_y=True, as_frame=False, parser="liac-arff"
        )
        n_train = 60_000
    X, y = X / X.max(), y.astype(int)
    train = np.flatnonzero(np.isin(y[:n_train], wanted))
    if quick:
        private, public = slice(len(train) // 2), slice(len(train) // 2, None)
    test = n_train + np.flatnonzero(np.isin(y[n_train:], wanted))
    change = PCA(n_columns, svd_solver="randomized", random_state=0).fit(X[train[public]])
    longest = np.linalg.norm(change.transform(X[train[public]]), axis=1).max()
    found = []
    for rows in (train[private], test):
        found += [
            change.transform(X[rows]) * (LONGEST_ROW / longest),
            np.searchsorted(wanted, y[rows]),
        ]
    return tuple(found)


def covertype(quick):
    """Return rows of covertype, standardised by others, and whether they are of class 2."""
    if quick:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((4000, 10)) @ rng.standard_normal((10, 10))
        X /= X.std(axis=0)
        return X, (X[:, 0] + 0.5 * X[:, 1] > rng.logistic(size=len(X))).astype(int)
    found = from_folder("covertype_16pct.npz")
    if found is None:
        X, y = fetch_covtype(return_X_y=True)
        X, _, y, _ = train_test_split(
            X, y, train_size=SHARE_OF_COVERTYPE, stratify=y, random_state=0
        )
    else:
        X, y = found
    order = np.random.default_rng(0).permutation(len(y))
    public, train = order[:PUBLIC_OF_COVERTYPE], order[PUBLIC_OF_COVERTYPE:]
    scaler = StandardScaler().fit(X[public].astype(float))
    return scaler.transform(X[train].astype(float)), (y[train] == 2).astype(int)
