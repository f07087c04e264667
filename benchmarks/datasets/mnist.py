"""MNIST, ten classes, in 49 columns: means over blocks of 4 by 4 pixels; on demand.

The first 10000 rows train and the official 10000 test; a seed varies the noise alone. Pooling does
not depend on the rows. All of MNIST would take an hour with methods that fit one model per class.
"""

from functools import cache

import numpy as np

from benchmarks.registry import Split, shared_file

ON_DEMAND = True
N_TRAIN, N_FIRST = 10000, 60000


@cache
def table():
    with np.load(shared_file("mnist.npz"), allow_pickle=False) as data:
        chosen = np.r_[:N_TRAIN, N_FIRST : len(data["y"])]
        pixels, y = data["X"][chosen].astype(float), data["y"][chosen].astype(int)
    return pixels.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49), y


def load(seed):
    X, y = table()
    return Split(X[:N_TRAIN], X[N_TRAIN:], y[:N_TRAIN], y[N_TRAIN:], is_classification=True)
