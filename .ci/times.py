"""Compare the times of default fits between two environments, such as a change and its base.

    python .ci/times.py BASE_PYTHON CHANGED_PYTHON

runs the fits in turn in both environments, prints a table in Markdown, and fails if a fit of the
changed environment needs much more processor time.
"""

import json
import subprocess
import sys
import time

ROUNDS, MOST = 5, 1.3  # the shortest of the rounds counts; ratio of times that fails


def measure():
    """Print the least processor seconds of each fit, as JSON."""
    import numpy as np

    import skdp

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 20))
    y = X[:, 0] + rng.standard_normal(len(X))
    label, count = (y > 0).astype(int), rng.poisson(np.exp(0.3 * X[:, 0]))
    fits = {
        "DPRidge": lambda: skdp.DPRidge().fit(X, y),
        "DPLogisticRegression": lambda: skdp.DPLogisticRegression(classes=[0, 1]).fit(X, label),
        "DPPoissonRegressor": lambda: skdp.DPPoissonRegressor().fit(X, count),
        "DPRidge, 500 rows": lambda: skdp.DPRidge().fit(X[:500], y[:500]),
        "plan": lambda: skdp.DPRidge(solver="gd", max_iter=1000).plan(10_000, 20),
    }
    times = {}
    for name, fit in fits.items():
        fit()  # compiles, imports and fills caches
        for _ in range(3):
            start = time.process_time()
            fit()
            times[name] = min(times.get(name, np.inf), time.process_time() - start)
    print(json.dumps(times))


def main(base, changed):
    """Print the table, and return whether a fit became slower."""
    least = {base: {}, changed: {}}
    for _ in range(ROUNDS):
        for python in (base, changed):
            command = [python, "-W", "ignore", __file__, "measure"]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for name, seconds in json.loads(output).items():
                least[python][name] = min(least[python].get(name, seconds), seconds)
    print("| fit | base, ms | changed, ms | ratio |\n| --- | --- | --- | --- |")
    ratios = {name: seconds / least[base][name] for name, seconds in least[changed].items()}
    for name, ratio in ratios.items():
        before, after = 1000 * least[base][name], 1000 * least[changed][name]
        print(f"| {name} | {before:.1f} | {after:.1f} | {ratio:.2f} |")
    return max(ratios.values()) > MOST


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure()
    else:
        sys.exit(main(*sys.argv[1:]))
