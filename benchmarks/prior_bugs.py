"""Seeded bugs of offsets, priors, and parts of the people."""

from __future__ import annotations

import itertools

import numpy as np

import skdp
from benchmarks.bug_seeding import bug
from skdp._fitting import budget
from skdp._oracle.kernels import clipped_gradients as kernels
from skdp.linear_model import PublicModel
from skdp.linear_model import prior as priors
from skdp.objective import Logistic, OffsetLogistic


class WithOffset(skdp.DPLogisticRegression):
    """A fit whose offsets are the first column, within limits."""

    def fit(self, X, y, **given):
        first = np.asarray(X[:, [0]].todense() if hasattr(X, "todense") else X)[:, 0]
        return super().fit(X, y, offset=np.clip(np.nan_to_num(first), -3.0, 3.0), **given)


def with_offset(adjacency):
    terms = skdp.Privacy(adjacency=adjacency)
    return WithOffset(classes=[0, 1], solver="gd", scaling="none", max_iter=2, privacy=terms)


def with_prior(adjacency):
    prior = PublicModel([1.0, -1.0, 0.5, 0.0], 0.1)
    return skdp.DPRidge(prior=prior, privacy=skdp.Privacy(adjacency=adjacency))


@bug("an offset escapes the clipping of gradients", with_offset)
def offset_escapes_clipping(patch):
    def residual(self, margins, targets, out):
        Logistic._residual(self, margins + targets[:, 1:], targets[:, :1], out)
        out += targets[:, 1:]

    patch.setattr(OffsetLogistic, "_residual", residual)
    patch.setattr(kernels, "clip_residuals", lambda *given: None)


@bug("the mean offset is kept in the model", with_offset)
def offset_kept(patch):
    original = skdp.DPLogisticRegression._with_offset

    def keep(self, targets, weights, offset):
        self.mean_offset = float(offset.mean())
        return original(self, targets, weights, offset)

    patch.setattr(skdp.DPLogisticRegression, "_with_offset", keep)


@bug("margins of the prior are centred by all rows", with_prior)
def prior_centred(patch):
    original = priors.Prior.margins

    def margins(self, X):
        found = original(self, X)
        return found - np.clip(found, -9.0, 9.0).mean(axis=0)

    patch.setattr(priors.Prior, "margins", margins)


@bug("the private test of the prior is not charged", with_prior)
def prior_test_not_charged(patch):
    original = priors.composed
    patch.setattr(priors, "composed", lambda who, costs, delta: original(who, [*costs][1:], delta))


@bug("parts of the people may share rows", with_prior)
def parts_share_rows(patch):
    patch.setattr(budget.FitHistory, "shares_rows", lambda *given: False)


@bug("each fit in a part of the people is a part of its own", with_prior)
def parts_of_one_fit(patch):
    original, numbers = budget.parts.fits_on_people, itertools.count()
    patch.setattr(budget.parts, "fits_on_people", lambda *of: original(*of[:2], f"{next(numbers)}"))
