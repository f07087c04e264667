"""Fit models of diffprivlib, in its own environment: one line in, one line out.

Reads the path of an .npz file from each line of its input, fits, writes the answers beside it and
prints that path. Imports nothing of this project, which need not be installed there.
"""

import contextlib
import io
import json
import sys
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
        model = LogisticRegression(epsilon=epsilon, data_norm=bound, random_state=seed).fit(X, y)
        return {"classes": model.classes_, "chances": model.predict_proba(X_test)}
    limits = {}
    if bound is not None:
        cell, target = float(task["cell_bound"]), float(task["target_bound"])
        limits = {"bounds_X": (-cell, cell), "bounds_y": (-target, target)}
    model = LinearRegression(epsilon=epsilon, random_state=seed, **limits).fit(X, y)
    return {"predictions": model.predict(X_test)}


def main():
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        path = line.strip()
        if path == "versions":
            print(json.dumps(versions()), flush=True)
            continue
        try:
            with (
                np.load(path, allow_pickle=False) as task,
                contextlib.redirect_stdout(io.StringIO()),
            ):
                found = answer(dict(task))
        except Exception as reason:  # told to whoever asked
            print(f"failed: {type(reason).__name__}: {reason}".replace("\n", " "), flush=True)
            continue
        np.savez(path + ".answer.npz", **found)
        print(path + ".answer.npz", flush=True)


if __name__ == "__main__":
    main()
