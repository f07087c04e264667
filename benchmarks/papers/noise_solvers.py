"""Are "adp_sgd" and "residual_budget" of use by default? Both beside "gd" on real data.

Run `python -m benchmarks.papers.noise_solvers`. Columns are standardised beforehand, which is not
part of the budget; every method sees the same splits and seeds, so that differences from "gd" are
paired.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import skdp
from benchmarks.datasets import adult, breast_cancer, california_housing
from benchmarks.papers.report import Report, errorbar, mean_and_error

EPSILONS, DELTA = (0.3, 1.0, 3.0), 1e-6
ROUNDING = 1e-6  # scores that are closer than this are equal
METHODS = {
    "gd": ("gd", {}),
    "adp_sgd": ("adp_sgd", {}),
    "adp_sgd, uniform": ("adp_sgd", {"noise_schedule": "uniform"}),
    "residual_budget": ("residual_budget", {}),
}
# Data set, and how often: the larger it is, the less chance there is in a run.
DATA = {breast_cancer: 20, california_housing: 10, adult: 3}
MANY_STEPS = 2000  # of "adp_sgd" on the larger two: twice as many as its default takes at most


def fit(split, name, parameters, epsilon, seed):
    """Test score and log loss (nan for regression) and steps of one fit."""
    kind, labels = skdp.DPLinearRegression, {}
    if split.is_classification:
        kind, labels = skdp.DPLogisticRegression, {"classes": split.classes}
    model = kind(
        **labels,
        solver=skdp.solvers.get_solver(name, **parameters),
        epsilon=epsilon,
        delta=DELTA,
        privacy=skdp.Privacy(noise=skdp.SeededNoise(seed)),
        scaling="none",
    ).fit(split.X_train, split.y_train)
    loss = np.nan
    if split.is_classification:
        loss = log_loss(split.y_test, model.predict_proba(split.X_test), labels=model.classes_)
    return model.score(split.X_test, split.y_test), loss, model.n_iter_


def standardised(split):
    scaler = StandardScaler().fit(split.X_train)
    return type(split)(
        scaler.transform(split.X_train),
        scaler.transform(split.X_test),
        split.y_train,
        split.y_test,
        split.is_classification,
    )


def name_of(dataset):
    return dataset.__name__.rpartition(".")[2]


def run(report, dataset, runs):
    loaded = dataset.load(0)
    fixed = standardised(loaded) if dataset is adult else None  # adult has one split
    splits = [fixed or standardised(dataset.load(seed)) for seed in range(runs)]
    for epsilon in EPSILONS:
        base = None
        for method, (name, parameters) in METHODS.items():
            if name == "adp_sgd" and dataset is not breast_cancer:
                parameters = {**parameters, "max_iter": MANY_STEPS}
            started = time.process_time()
            results = np.array(
                [fit(split, name, parameters, epsilon, s) for s, split in enumerate(splits)]
            )
            seconds = (time.process_time() - started) / runs
            base = results[:, 0] if base is None else base
            report.add(
                data=name_of(dataset),
                epsilon=epsilon,
                method=method,
                runs=runs,
                **mean_and_error("score", results[:, 0]),
                **mean_and_error("gain", results[:, 0] - base),
                log_loss=f"{results[:, 1].mean():.4f}",
                steps=f"{results[:, 2].mean():.0f}",
                seconds=f"{seconds:.2f}",
            )


def verdict(report):
    for method in list(METHODS)[1:]:
        rows = [row for row in report.rows if row["method"] == method]
        gains = [float(row["gain"]) for row in rows]
        errors = [max(2 * float(row["gain_error"]), ROUNDING) for row in rows]
        better = sum(gain > error for gain, error in zip(gains, errors, strict=True))
        worse = sum(gain < -error for gain, error in zip(gains, errors, strict=True))
        yield (
            f"{method}: next to gd it scores better in {better} and worse in {worse} of "
            f"{len(rows)} settings by more than two standard errors; from {min(gains):+.4f} to "
            f"{max(gains):+.4f}, {np.mean(gains):+.4f} on average."
        )


def draw(report, plt):
    names = list(dict.fromkeys(row["data"] for row in report.rows))
    figure, axes = plt.subplots(1, len(names), figsize=(4.2 * len(names), 4), layout="constrained")
    for ax, data in zip(np.atleast_1d(axes), names, strict=True):
        for method in METHODS:
            rows = [row for row in report.rows if (row["data"], row["method"]) == (data, method)]
            errorbar(ax, rows, "epsilon", "score", label=method)
        ax.set(xscale="log", xlabel="epsilon", title=data, ylabel="test score")
    axes[0].legend(fontsize=7)
    return figure


def main():
    report = Report("noise_solvers")
    for dataset, runs in DATA.items():
        report.attempt(name_of(dataset), run, dataset, runs)
    report.finish(verdict(report), draw)


if __name__ == "__main__":
    main()
