"""Fit a model of diffprivlib, in its own environment.

Reads a task from one .npz file and writes the answer to another. Imports nothing of this project,
which need not be installed there.
"""

import json
import sys
import time
import warnings

import numpy as np


def versions():
    """Versions of what decides the answers."""
    import diffprivlib
    import scipy
    import sklearn

    modules = {"diffprivlib": diffprivlib, "scikit-learn": sklearn, "numpy": np, "scipy": scipy}
    found = {name: module.__version__ for name, module in modules.items()}
    return {"python": sys.version.split()[0], **found}


def answer(task):
    """Predictions for the test rows; bounds, where there are any, come with the task."""
    from diffprivlib.models import LinearRegression, LogisticRegression

    epsilon, seed = float(task["epsilon"]), int(task["seed"])
    X, y, X_test = task["X_train"], task["y_train"], task["X_test"]
    bound = float(task["row_bound"]) if "row_bound" in task else None
    if bool(task["is_classification"]):
        model = LogisticRegression(epsilon=epsilon, data_norm=bound, random_state=seed)
        seconds = seconds_of_fit(model, X, y)
        chances = model.predict_proba(X_test)
        return {"classes": model.classes_, "chances": chances, "seconds": seconds}
    limits = {}
    if bound is not None:
        cell, target = float(task["cell_bound"]), float(task["target_bound"])
        limits = {"bounds_X": (-cell, cell), "bounds_y": (-target, target)}
    model = LinearRegression(epsilon=epsilon, random_state=seed, **limits)
    return {"seconds": seconds_of_fit(model, X, y), "predictions": model.predict(X_test)}


def seconds_of_fit(model, X, y):
    """Fit the model. Processor time of one thread."""
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1] == "versions":
        print(json.dumps(versions()))
        return
    with np.load(sys.argv[1], allow_pickle=False) as task:
        np.savez(sys.argv[2], **answer(dict(task)))


if __name__ == "__main__":
    main()
