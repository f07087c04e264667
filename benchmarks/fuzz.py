"""Random estimators, solvers, shapes and hostile values through fit, predict, plan and pickle.

What must never be seen: a type of exception that users are not told of, a cell in a message, an
attribute that differs between neighbours under forced answers.
"""

from __future__ import annotations

import math
import pickle
import re
import traceback
import warnings

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier

import skdp
from skdp.accounting import Adjacency, UnknownCost
from skdp.audit.recording import ReplayMismatch, record
from skdp.audit.replaying import ReplayComparison

# What users are told that a refusal may be.
REFUSALS = (ValueError, TypeError, FloatingPointError, UnknownCost)
MARK = 8675309  # digits of a cell that no message may show
NUMBERS = [0.0, -0.0, 1.0, 1e5, -1e5, 1e300, -1.7e308, 5e-324, 1e-170, float(MARK), MARK + 0.25]
BAD_CELLS = [math.nan, math.inf, f"patient {MARK}", None, 10**400 + MARK, MARK + 1j]

COMMON = {
    "epsilon": [1.0, 1.0, 0.1, 8.0, 1e-6, 1e3, math.inf, 0.0, -1.0, math.nan, "one", None],
    "delta": [1e-6, 1e-6, 1e-5, 0.0, 1e-300, 0.5, 1.0, -1e-6, "small"],
}
PRIVACY = {
    "adjacency": ["zero_out", "replace_one", "zero_out", "replace_one", "add_remove", None],
}
BATCHES = [("auto", {"batch_size": size}) for size in (1, 7, 1000, 0)]
MODEL = {
    "solver": [*sorted(skdp.solvers.available()), *BATCHES, "auto", "auto", "auto", "sgd", None],
    "scaling": [
        *["auto", "auto", "none", "none", "private", "private", "all", None],
        *map(skdp.PublicRange, [-1.0, 0.0, 1.0, -math.inf], [1.0, 1e300, 1.0, 0.0]),
        *map(skdp.RowNorm, [1.0, 1e-50, 1e150, 0.0, "long"]),
        *[skdp.PublicRange(target=one) for one in (2.0, (0.0, 1e40), -1.0)],
    ],
    "fit_intercept": [True, False, True, False, 1],
    "max_iter": ["auto", "auto", 1, 2, 7, 30, 0, -3, 2.5],
    "clip_norm": ["auto", "auto", 0.1, 10.0, 1e-120, 1e99, "adaptive", -1.0],
    "learning_rate": ["auto", "auto", 0.1, 1e6, 1e-300, 0.0],
    "momentum": ["auto", "auto", 0.0, 0.9, 1.0],
    "constraint": [
        *[None, None, None, None, None, "l2_ball", ("simplex", {"total": 2.0}), "cube"],
        *[skdp.objective.L2Ball(2.0), skdp.objective.L1Ball(1.0), skdp.objective.Box(-1.0, 2.0)],
        *[skdp.objective.L2Ball(1e-200), skdp.objective.L1Ball(0.0), skdp.objective.Box(1.0, -1.0)],
    ],
    "verbose": [0, 0, 1],
}
OWN = {
    skdp.DPLinearRegression: {},
    skdp.DPRidge: {"alpha": [1.0, 0.0, 1e-300, 1e8, -1.0]},
    skdp.DPLogisticRegression: {
        "C": [1.0, 1e-8, 1e8, 0.0],
        "l1_ratio": [0.0, 0.5, 1.0, 2.0],
        "class_weight": [None, None, {0: 1.0, 1: 1e6}, "balanced"],
        "classes": [[0, 1], [0, 1, 2], [0, 1], None, [0], [1, 0, 1]],
    },
}


def choose(rng, values):
    return values[int(rng.integers(len(values)))]


def make_estimator(rng):
    """An estimator; most of those that no data could be fitted with are drawn anew."""
    while True:
        estimator = random_estimator(rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plan = getattr(estimator, "plan", lambda *shape: None)
                plan(200, 4)
        except Exception:
            if rng.random() < 0.85:
                continue
        return estimator


def random_estimator(rng):
    """An estimator, most of its parameters at their defaults."""
    kind = choose(rng, [*OWN, *OWN, skdp.DPStandardScaler])
    space = dict(COMMON) if kind is skdp.DPStandardScaler else {**COMMON, **MODEL, **OWN[kind]}
    share = choose(rng, [0.1, 0.3, 0.6])
    given, terms = (
        {name: choose(rng, values) for name, values in some.items() if rng.random() < share}
        for some in (space, PRIVACY)
    )
    if terms:
        given["privacy"] = skdp.Privacy(**terms)
    if kind is skdp.DPLogisticRegression and rng.random() < 0.7:
        given["classes"] = [0, 1]
    if rng.random() < 0.6 and kind is not skdp.DPStandardScaler:
        given["solver"] = choose(rng, MODEL["solver"][:-2])
    return clone(kind(**given))  # other cases have the same objects


def make_data(rng, estimator):
    """Two neighbours as arguments of fit, and the relation between them."""
    n = int(choose(rng, [1, 2, 5, 20, 60, 200]))
    d = int(choose(rng, [1, 2, 4, 12]))
    scale = 10.0 ** choose(rng, [0, 0, 0, 3, -5, 150])
    X = rng.standard_normal((n, d)) * scale
    place = int(rng.integers(n))
    hostile = np.array([choose(rng, NUMBERS) for _ in range(d)])
    has_labels = is_classifier(estimator)
    y = rng.integers(2, size=n) if has_labels else rng.standard_normal(n)
    target = int(rng.integers(2)) if has_labels else choose(rng, NUMBERS)
    relation = choose(rng, list(Adjacency))
    there, other = ({"X": X.copy(), "y": y.copy()} for _ in range(2))
    there["X"][place], there["y"][place] = hostile, target
    if not isinstance(estimator, skdp.DPStandardScaler) and rng.random() < 0.6:
        weights = np.ones(n) if rng.random() < 0.7 else 10.0 ** rng.integers(-300, 300, n)
        there["sample_weight"], other["sample_weight"] = weights.copy(), weights.copy()
        there["sample_weight"][place] = choose(rng, [1.0, 0.0, 1e300, 5e-324, 1e6])
        if relation is Adjacency.ZERO_OUT:
            other["X"][place], other["y"][place], other["sample_weight"][place] = 0.0, 0, 0.0
    else:
        relation = Adjacency.REPLACE_ONE
    form = choose(rng, ["dense", "dense", "float32", "csr", "csr32", "integers", "fortran", "list"])
    for data in (there, other):
        data["X"] = in_form(data["X"], form)
    return there, other, relation


def in_form(X, form):
    with np.errstate(all="ignore"):
        if form in ("float32", "csr32"):
            X = np.clip(X, -1e38, 1e38).astype(np.float32)
        if form in ("csr", "csr32"):
            return sparse.csr_array(X)
        if form == "integers":
            return np.clip(X, -1e9, 1e9).astype(np.int64)
    if form == "fortran":
        return np.asfortranarray(X)
    return X.tolist() if form == "list" else X


def spoil(rng, data):
    """Put what has to be refused into data."""
    what = choose(rng, ["X", "y", "sample_weight", "shape", "empty"])
    X = data["X"]
    X = np.array(X.toarray() if sparse.issparse(X) else X, dtype=object)
    if what == "X":
        X[0, 0] = choose(rng, BAD_CELLS)
        return {**data, "X": X}
    if what == "shape":
        return {**data, "X": X[0]} if rng.random() < 0.5 else {**data, "y": data["y"][:-1]}
    if what == "empty":
        return {**data, "X": X[:, :0]} if rng.random() < 0.5 else {**data, "X": X[:0]}
    values = np.array(data.get(what, np.ones(len(data["y"]))), dtype=object)
    values[0] = choose(rng, [*BAD_CELLS, -1.0])
    return {**data, what: values}


def quotes(texts):
    """Whether a message shows the digits that mark a cell."""
    return any(re.search(str(MARK), text) for text in texts)


class Case:
    """One random case; what it found stands in ``findings``."""

    def __init__(self, seed):
        self.rng = np.random.default_rng([2026, seed])
        self.findings, self.outcome = [], "fitted"

    def run(self):
        rng = self.rng
        estimator = make_estimator(rng)
        self.text = re.sub(r"\s+", " ", repr(estimator))
        terms = skdp.Privacy() if estimator.privacy is None else estimator.privacy
        there, other, relation = make_data(rng, estimator)
        if isinstance(estimator, skdp.DPStandardScaler):
            there, other = {"X": there["X"]}, {"X": other["X"]}
        elif relation is Adjacency.ZERO_OUT and terms.adjacency == "replace_one":
            relation = Adjacency.REPLACE_ONE
        elif relation is Adjacency.REPLACE_ONE and "sample_weight" in there:
            estimator.set_params(privacy=clone(terms).set_params(adjacency="replace_one"))
        weights = [data["sample_weight"] for data in (there, other) if "sample_weight" in data]
        if not all(one.any() for one in weights):
            self.outcome = "all weights 0"  # refused openly, as docs/reviewers/guarantee.rst says
            return
        if getattr(estimator, "classes", ()) is None:  # the set of labels is public
            estimator.set_params(classes=[0, 1])
        if "y" in there and rng.random() < 0.2:
            self.refused(clone(estimator), spoil(rng, there))
            return
        if hasattr(estimator, "plan") and rng.random() < 0.3:
            self.call(lambda: clone(estimator).plan(*np.shape(there["X"])))
        first = record(clone(estimator), there)
        second = record(clone(estimator), other, first)
        self.messages(first)
        self.messages(second)
        if first.error is not None and isinstance(second.error, type(first.error)):
            self.outcome = type(first.error).__name__
            if not isinstance(first.error, REFUSALS):
                self.found(f"refused with {first.refusal}", first.error)
        elif estimator.epsilon == math.inf:
            self.outcome = "no noise"
        if estimator.epsilon != math.inf:
            comparison = ReplayComparison()
            comparison.compare("fuzz", first, second, relation)
            for finding in comparison.report("").findings:
                if "every fit was refused" not in finding.text:
                    self.found(finding.text)
        if first.error is None:
            self.use(first.model, there["X"])

    def refused(self, model, data):
        recording = record(model, data)
        self.messages(recording)
        self.outcome = "refused" if recording.error is not None else "fitted"
        if recording.error is not None and not isinstance(recording.error, REFUSALS):
            self.found(f"refused with {recording.refusal}", recording.error)

    def messages(self, recording):
        texts = [*recording.messages, recording.refusal]
        if quotes(texts):
            self.found(f"a message quotes a cell: {texts}")
        if recording.error is not None and not isinstance(
            recording.error, (*REFUSALS, ReplayMismatch)
        ):
            self.found(f"failed with {recording.refusal}", recording.error)

    def use(self, model, X):
        """Predict, pickle, predict again."""
        used = next(n for n in ("predict", "transform") if hasattr(model, n))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            now = self.call(lambda: getattr(model, used)(X))
            again = self.call(lambda: getattr(pickle.loads(pickle.dumps(model)), used)(X))
            str(model.privacy_), model.privacy_.to_dict()
        if quotes([str(warning.message) for warning in warned]):
            self.found("a warning of predict quotes a cell")
        now, again = (x.toarray() if sparse.issparse(x) else x for x in (now, again))
        if now is not None and not np.array_equal(now, again, equal_nan=now.dtype.kind == "f"):
            self.found("predictions change with a pickle")

    def call(self, function):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return function()
        except REFUSALS as refusal:
            if quotes([str(refusal)]):
                self.found(f"a message quotes a cell: {refusal}")
        except Exception as error:
            self.found(f"failed with {type(error).__name__}: {error}", error)
        return None

    def found(self, text, error=None):
        where = "" if error is None else "".join(traceback.format_tb(error.__traceback__)[-2:])
        self.findings.append(f"{text} {where}".strip())


def run(n_cases):
    """Run cases, print what was found, and return its number."""
    found = 0
    for seed in range(n_cases):
        case = Case(seed)
        case.run()
        found += len(case.findings)
        for finding in case.findings:
            print(seed, case.text, finding, flush=True)
    print(f"{n_cases} cases, {found} findings")
    return found
