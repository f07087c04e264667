"""Plan an analysis under one budget before any row is read: split, search, fit and score."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self, SupportsIndex

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from skdp import accounting
from skdp._numbers import MatrixLike, Seed, is_integer, is_real, require, shown, text_table
from skdp.accounting.accountant import check_budget
from skdp.fitting.budget import PrivacyBudget
from skdp.fitting.ledger import PrivacyBudgetError
from skdp.fitting.privacy import Privacy
from skdp.metrics import Scores, SubgroupScores
from skdp.model_selection import candidates
from skdp.model_selection.holdout import DPHoldout
from skdp.model_selection.search import DPSearchCV
from skdp.oracle.sources.partitioned import Partitions

PARTS = {"search": 0, "fit": 0, "score": 1}  # which part of the split each step reads
# Relative room below the budget for the accountants' own rounding, where a search is composed.
ROOM = 2e-3


@dataclass(frozen=True)
class Step:
    """A step of an analysis.

    Attributes
    ----------
    name : {"search", "fit", "score"}
    epsilon : float
        Its own, at the delta of the analysis.
    share : float
        Of the squared Gaussian-DP parameter of its part, next to other steps on the same rows.
    spent : float or None, default=None
        Epsilon of its statement once it has run.
    """

    name: str
    epsilon: float
    share: float
    spent: float | None = None


class Analysis:
    """Plan of an analysis: a random split, a private search, a private fit, private scores.

    Every step gets its epsilon, and the price of the whole is known before any row is read. Steps
    on the first part share the budget; scores on the second part have it all, since a row is in
    one part only. A step that was not planned, or does not fit any more, is refused.

    Parameters
    ----------
    epsilon : float
        Privacy budget of the whole; positive.
    delta : float
        In (0, 1).
    steps : sequence of {"search", "fit", "score"}, default=("fit", "score")
        Without "fit" a search ends in the best model of the search.
    shares : dict of str to float or None, default=None
        How the steps on the first part share the budget; None for equal shares.
    n_candidates : int, default=10
        Expected number of runs of a search.
    test_size : float or int, default=0.25
        Of the second part. All rows are fitted on if there is no "score".
    adjacency : {"zero_out", "replace_one"}, default="zero_out"

    Attributes
    ----------
    budget : PrivacyBudget
        What the steps are charged to.
    steps : tuple of Step

    Examples
    --------
    >>> import skdp
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> analysis = skdp.Analysis(1.0, 1e-6)
    >>> print(analysis)
    Analysis at epsilon=1, delta=1e-06 (zero_out), 0 spent
      fit    part 1  epsilon 1  planned
      score  part 2  epsilon 1  planned
    >>> analysis = analysis.split(X, y)
    >>> model = analysis.fit(skdp.DPLogisticRegression(classes=[0, 1]))
    >>> scores = analysis.score(model, "accuracy")
    >>> print(analysis)
    Analysis at epsilon=1, delta=1e-06 (zero_out), 1 spent
      fit    part 1  epsilon 1  spent 1
      score  part 2  epsilon 1  spent 1
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        steps: Sequence[str] = ("fit", "score"),
        *,
        shares: Mapping[str, float] | None = None,
        n_candidates: int = 10,
        test_size: float | int = 0.25,
        adjacency: str = "zero_out",
    ) -> None:
        check_budget(epsilon, delta)
        fine = delta > 0 and not math.isinf(epsilon)
        require("delta", delta, "be above 0, and epsilon finite: noise is Gaussian", fine)
        names = [steps] if isinstance(steps, str) else list(steps)
        known = list(PARTS)
        if not names or names != sorted(set(names) & set(known), key=known.index):
            raise ValueError(
                "steps must be some of 'search', 'fit' and 'score', in this order; got "
                f"{shown(steps)}."
            )
        if names == ["score"]:
            raise ValueError("steps must hold 'search' or 'fit': there is nothing to score.")
        fine = is_integer(n_candidates) and n_candidates >= 2
        require("n_candidates", n_candidates, "be an integer of at least 2", fine)
        first = [name for name in names if PARTS[name] == 0]
        given = dict.fromkeys(first, 1.0) if shares is None else dict(shares)
        fine = sorted(given) == sorted(first) and all(
            is_real(share) and 0 < share < math.inf for share in given.values()
        )
        require("shares", shares, f"have a positive share for each of {first}", fine)
        self.n_candidates, self.test_size = n_candidates, test_size
        self.budget = PrivacyBudget(epsilon, delta, adjacency)
        whole = sum(given.values())
        self.steps = self._planned(
            [(name, given[name] / whole if name in given else 1.0) for name in names]
        )
        self._holdout: DPHoldout | None = None
        self._rows: tuple[MatrixLike | Partitions, ArrayLike | None, ArrayLike | None] | None = None

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled or copied: it holds rows and a budget."""
        raise TypeError("Analysis holds rows and cannot be pickled or copied; pickle models.")

    # ------------------------------------------------------------------ the plan

    def _planned(self, shares: list[tuple[str, float]]) -> tuple[Step, ...]:
        """Return the steps with their epsilons: as large as the price of the whole allows."""
        low, high = 0.0, 1.0
        if self._price(shares, 1.0) <= self.budget.epsilon:
            low = 1.0
        while low < 1.0 and high - low > 1e-4:
            middle = (low + high) / 2
            fits = self._price(shares, middle) <= self.budget.epsilon * (1 - ROOM)
            low, high = (middle, high) if fits else (low, middle)
        alone = 1.0 if "search" not in dict(shares) else 1 - ROOM
        steps = tuple(
            Step(name, self._epsilon(share, low if PARTS[name] == 0 else alone), share)
            for name, share in shares
        )
        for step in steps:
            self._run_budget(step).epsilon()  # refuses what no fit can be given
        return steps

    def _mu(self, share: float, factor: float) -> float:
        whole = accounting.gaussian_mu(self.budget.epsilon, self.budget.delta)
        return whole * factor * math.sqrt(share * (1 - candidates.MARGIN))

    def _epsilon(self, share: float, factor: float) -> float:
        return accounting.gaussian_epsilon(self._mu(share, factor), self.budget.delta)

    def _price(self, shares: list[tuple[str, float]], factor: float) -> float:
        """Epsilon of the steps on the first part, which fit and search share."""
        events: list[tuple[accounting.Event, int]] = []
        for name, share in shares:
            if name == "fit":
                answer = accounting.Gaussian(1 / self._mu(share, factor), spread=1.0)
                events.append((answer, 1))
            elif name == "search":
                epsilon = self._epsilon(share, factor)
                if epsilon == 0:  # such a plan is refused
                    continue
                delta, adjacency = self.budget.delta, self.budget.adjacency
                _, statement = candidates.priced_search(
                    self.n_candidates, epsilon, delta, adjacency, "system", 1
                )
                events.append((statement.event, 1))
        event = accounting.Composed(tuple(events))
        relation = accounting.Adjacency.parse(self.budget.adjacency)
        return accounting.price(event, self.budget.delta, relation)[0]

    def _run_budget(self, step: Step) -> candidates.RunBudget:
        """Return what a fit or score of a step gets."""
        mu = accounting.gaussian_mu(step.epsilon, self.budget.delta) if step.epsilon else 0.0
        return candidates.RunBudget(mu, self.budget.delta, self.budget.adjacency, "system")

    def _next(self, name: str) -> Step:
        """Return a step that is still to come, or refuse it."""
        step = next((one for one in self.steps if one.name == name), None)
        if step is None or step.spent is not None:
            why = "is not in the plan" if step is None else "has been made already"
            raise PrivacyBudgetError(
                f"Analysis: a {name} {why}; plan another analysis, with a budget of its own. "
                "Nothing was released and nothing was charged."
            )
        if self._rows is None:
            raise ValueError("Analysis: call split(X, y) first.")
        return step

    def _shared_terms(self) -> dict[str, Any]:
        return {"adjacency": self.budget.adjacency, "budget": self.budget}

    def _done(self, step: Step, privacy: accounting.PrivacyStatement) -> None:
        made = replace(step, spent=privacy.epsilon)
        self.steps = tuple(made if item.name == step.name else item for item in self.steps)

    # ------------------------------------------------------------------ the steps

    def split(
        self,
        X: MatrixLike | Partitions,
        y: ArrayLike | None = None,
        random_state: Seed = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Split the rows, or the groups, at random; see `skdp.model_selection.DPHoldout`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or Partitions
            Or collections of dask.
        y : array of shape (n_samples,) or None, default=None
            Left out for partitions, which have the targets.
        random_state : int, RandomState, Generator or None, default=None
        groups : array of shape (n_samples,) or None, default=None
            Labels of groups, such as persons: all steps protect groups then.

        Returns
        -------
        self
        """
        if self._rows is not None:
            raise ValueError("Analysis: the rows have been split already.")
        if any(step.name == "score" for step in self.steps):
            self._holdout = DPHoldout(
                X, y, test_size=self.test_size, random_state=random_state, groups=groups
            )
        self._rows = X, y, groups
        return self

    def _fitted(self, model: BaseEstimator) -> BaseEstimator:
        if self._holdout is not None:
            return self._holdout.fit(model)
        assert self._rows is not None
        return candidates.fitted("Analysis", model, *self._rows)

    def search(self, search: DPSearchCV) -> DPSearchCV:
        """Run a search on the first part, at its epsilon of the plan.

        Parameters
        ----------
        search : DPSearchCV
            Its epsilon, delta, adjacency, number of candidates and budget are replaced.

        Returns
        -------
        DPSearchCV
            A fitted clone.
        """
        step = self._next("search")
        fitted: DPSearchCV = clone(search).set_params(
            epsilon=step.epsilon,
            delta=self.budget.delta,
            n_candidates=self.n_candidates,
            privacy=Privacy(noise=search._terms.noise, **self._shared_terms()),
        )
        fitted = self._fitted(fitted)
        self._done(step, fitted.privacy_)
        return fitted

    def fit(self, model: BaseEstimator) -> BaseEstimator:
        """Fit a model on the first part, at its epsilon of the plan.

        Parameters
        ----------
        model : estimator of skdp, or Pipeline that ends in one
            Its epsilon, delta, adjacency, accountant, noise source and budget are replaced.

        Returns
        -------
        estimator
            A fitted clone.
        """
        step = self._next("fit")
        fitted = candidates.prepared_candidate("Analysis", model, {}, self._run_budget(step), None)
        for fit in candidates.private_fits("Analysis", fitted):
            fit.set_params(privacy__budget=self.budget)
        fitted = self._fitted(fitted)
        statements = [fit.privacy_ for fit in candidates.private_fits("Analysis", fitted)]
        self._done(step, accounting.compose_statements(statements, self.budget.delta))
        return fitted

    def score(
        self, model: BaseEstimator, metrics: str | Iterable[str] | None = None, **options: Any
    ) -> Scores | SubgroupScores:
        """Score a model on the second part, at its epsilon of the plan.

        Parameters
        ----------
        model : fitted classifier or regressor
        metrics : str or iterable of str, default=None
        **options
            Such as ``target_range``, of `skdp.metrics.evaluate`.

        Returns
        -------
        Scores or SubgroupScores
        """
        step = self._next("score")
        assert self._holdout is not None
        options |= {
            "epsilon": step.epsilon,
            "delta": self.budget.delta,
            "privacy": Privacy(**self._shared_terms()),
        }
        scores = self._holdout.evaluate(model, metrics, **options)
        self._done(step, scores.privacy_)
        return scores

    # ------------------------------------------------------------------ report

    def _lines(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                step.name,
                f"part {PARTS[step.name] + 1}",
                f"epsilon {step.epsilon:.4g}",
                "planned" if step.spent is None else f"spent {step.spent:.4g}",
            )
            for step in self.steps
        ]

    def _head(self) -> str:
        terms = f"epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}"
        return f"Analysis at {terms} ({self.budget.adjacency}), {self.budget.spent:.4g} spent"

    def __str__(self) -> str:
        return "\n".join([self._head(), *(f"  {line}" for line in text_table(self._lines()))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for step, line in zip(self.steps, self._lines(), strict=True):
            cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in line)
            colour = "#999" if step.spent is None else "#47a"
            width = 100 * min(1.0, step.epsilon / self.budget.epsilon)
            bar = f'<div style="background:{colour};height:1em;width:{width:.0f}px"></div>'
            rows.append(f"<tr>{cells}<td>{bar}</td></tr>")
        return f"<p><b>{html.escape(self._head())}</b></p><table>{''.join(rows)}</table>"
