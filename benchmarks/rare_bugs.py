"""Seeded bugs that show only for some rows: groups, labels, weights, or a later point."""

from __future__ import annotations

from dataclasses import replace

import skdp
from benchmarks.bug_seeding import GROUPS, bug
from benchmarks.releases import NOT_OF_LABELS, PROOFS, Asking
from skdp._fitting import budget, estimator
from skdp._oracle import Public
from skdp._oracle.releases import moments, record_sums
from skdp._oracle.releases.base import Statistic
from skdp._oracle.sources.memory import MemorySource
from skdp.objective import Multinomial

LABEL = skdp.Privacy(adjacency="label")
GROUPS["tails_no_group"] = GROUPS["multipliers_left_out"]


@bug("the halfway test adds the rows of a group", PROOFS[record_sums.TailSum].estimator)
def tails_no_group(patch):
    original = record_sums.record_sum

    def tails(records, *arguments):
        return original(replace(records, multipliers=None), *arguments)

    patch.setattr(record_sums, "record_sum", tails)


def _freed(kind):
    """Register the bug that a statistic is public for every loss if labels are private."""

    def estimator(adjacency):
        return skdp.DPGammaRegressor(solver=Asking(kind), scaling="private", privacy=LABEL)

    def seed(patch):
        patch.setattr(kind, "is_public", lambda self, about: about.public.features_are_public)

    seed.__name__ = f"label_{kind.__name__}_free"
    bug(f"{kind.__name__}: public for every loss under 'label'", estimator)(seed)


for _kind in sorted(NOT_OF_LABELS, key=lambda kind: kind.__name__):
    if issubclass(_kind, Statistic) and _kind.is_public is not Statistic.is_public:
        _freed(_kind)


def three_classes(adjacency):
    return skdp.DPLogisticRegression(classes=[0, 1, 2], solver="whitened", privacy=LABEL)


@bug("residuals of several classes 1 apart under 'label'", three_classes)
def label_multinomial_spread(patch):
    original = moments.capped_residuals_of

    def capped(context, cap):
        longest, spread = original(context, cap)
        if type(context.problem.loss) is Multinomial and context.public.features_are_public:
            longest = min(cap, 1.0)
            spread = min(2.0, 1 / longest)
        return longest, spread

    patch.setattr(moments, "capped_residuals_of", capped)


def asking_for_squares(adjacency):
    return PROOFS[moments.ScoreSquares].estimator("label")


@bug("second moments of several classes are multiples under 'label'", asking_for_squares)
def score_squares_label_multi(patch):
    original = moments.ScoreSquares.contribution

    def contribution(self, context, n_rows):
        found = original(self, context, n_rows)
        return replace(found, spread=1.0) if context.public.features_are_public else found

    patch.setattr(moments.ScoreSquares, "contribution", contribution)


@bug("a plan of unweighted rows is reused for weighted ones", three_classes)
def plan_ignores_weighted(patch):
    original = estimator._frozen

    def frozen(value):
        is_weighted = isinstance(value, Public) and value.weighted
        return original(replace(value, weighted=False) if is_weighted else value)

    patch.setattr(estimator, "_frozen", frozen)


@bug("values of rows at an earlier point are reused")
def per_row_stale(patch):
    original = MemorySource.per_row

    def per_row(self, function, *arguments):
        known = self._row_vectors.get(function)
        return original(self, function, *arguments) if known is None else known[1]

    patch.setattr(MemorySource, "per_row", per_row)


@bug("budgets of rows and of groups in one ledger are taken for one")
def two_data_one_key(patch):
    original = budget.PrivacyBudget._set

    def set_all(self, identity):
        if identity.ledger is not None:
            identity = identity._replace(key=f"{identity.ledger}\n{identity.data}")
        original(self, identity)

    patch.setattr(budget.PrivacyBudget, "_set", set_all)
