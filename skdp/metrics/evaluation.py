"""Score a fitted model on private rows: one set of releases, priced and charged like a fit."""

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from skdp._numbers import Array, is_real, shown
from skdp.accounting import Adjacency
from skdp.fitting import grouping, parts, refusals
from skdp.fitting.assumptions import noise_assumptions, unit_assumptions
from skdp.fitting.estimator import PrivateEstimator
from skdp.fitting.preparation import Prepared
from skdp.metrics import facts, questions
from skdp.metrics.dataset import Dataset, read_dataset
from skdp.metrics.scores import Scores
from skdp.objective import Problem, SquaredError
from skdp.oracle import Public, make_plan
from skdp.oracle.sources.memory import Map, MemorySource


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    metrics: str | Iterable[str] | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    groups: Any = None,
    adjacency: str = "zero_out",
    accountant: str = "auto",
    budget: Any = None,
    target_range: tuple[float, float] | None = None,
    log_loss_bound: float = questions.LOG_LOSS_BOUND,
    noise_source: str = "system",
    random_state: Any = None,
) -> Scores:
    """Score a fitted model on private rows, with noise.

    The scores are (epsilon, delta)-differentially private for each of these rows. Rows that the
    model was fitted on have paid for the fit already: prices add up. Score it on other rows,
    such as the second part of `skdp.model_selection.dp_train_test_split`, and every row pays once.

    Parameters
    ----------
    model : fitted classifier or regressor
        Of skdp, of scikit-learn, a pipeline or a search. It has to predict each row by itself.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    metrics : str or iterable of str, default=None
        Names of scikit-learn's scorers or functions. For classifiers "accuracy" (the default),
        "balanced_accuracy", "confusion_matrix" and "neg_log_loss" (or "log_loss"); of two
        classes also "precision", "recall", "f1", "roc_auc", "roc_curve", "calibration_curve"
        and "neg_brier_score" (or "brier_score_loss"). For regressors "r2" (the default),
        "neg_mean_squared_error" and "neg_mean_absolute_error" (or without ``neg_``). The budget is
        shared by all of them, so ask only for what you need.
    epsilon : float, default=1.0
        Privacy budget of all scores together; positive. inf adds no noise.
    delta : float, default=1e-6
        In (0, 1).
    groups : array of shape (n_samples,) or None, default=None
        Labels of groups, such as persons; none may be missing. The guarantee is for a group then,
        with all of its rows. A group adds to a score the mean of what its rows would add, so each
        counts once: accuracy is the mean over persons of the share of their rows that are right.
    adjacency : {"zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation of the guarantee, as in `skdp.DPRidge`.
    accountant : str, default="auto"
        Who prices the releases.
    budget : PrivacyBudget or None, default=None
        A budget that the scores share with fits.
    target_range : (low, high) or None, default=None
        Of regressors: range that targets and predictions are cut to, residuals to half its width.
        It must be chosen without looking at the targets. None takes the model's own: its
        ``target_bound``, or the range that a private fit found, at most four sizes of the target on
        either side: a fit that widened it for a long tail predicts beyond, and a wider range here
        makes scores as much noisier.
    log_loss_bound : float, default=6.0
        Larger log losses count as this.
    noise_source : {"system", "seeded"}, default="system"
        As in `skdp.DPRidge`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the noise if ``noise_source="seeded"``.

    Returns
    -------
    Scores
        By the names that were asked for; ``privacy_`` says what was released.

    Raises
    ------
    ValueError
        If a parameter, the model or the rows are refused. Nothing is released then.

    Notes
    -----
    Accuracy and mean losses are means with Gaussian noise. All that follows from predicted classes
    comes from one table of counts, and all that follows from the order of scores from another. The
    latter has bins with about as many rows each, found by a first, finer table with a
    fifth of the budget; ties within a bin count one half.

    With ``groups``, standard errors of sampling (``sampling_std``, and intervals of the
    "population") are for another draw of as many groups. They take the rows of a group to be all
    alike, and are too large where those differ. The model is asked in calls that hold a row of
    each group, so that what it says of one group does not depend on the rows of others.

    References
    ----------
    K. Boyd, E. Lantz, D. Page: Differential privacy for classifier evaluation. AISec 2015.
    E. Fieller: Some problems in interval estimation. J. R. Stat. Soc. B 16, 1954.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> from skdp.metrics import evaluate
    >>> from skdp.model_selection import dp_train_test_split
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = dp_train_test_split(X, y)
    >>> model = DPLogisticRegression(classes=[0, 1]).fit(X_train, y_train)
    >>> scores = evaluate(model, X_test, y_test, ["accuracy"], epsilon=1.0, delta=1e-6)
    >>> low, high = scores["accuracy"].interval(0.95)
    >>> low <= scores["accuracy"].value <= high
    True
    """
    scorer = PrivateScorer(
        model,
        metrics,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        accountant=accountant,
        budget=budget,
        target_range=target_range,
        log_loss_bound=log_loss_bound,
        noise_source=noise_source,
        random_state=random_state,
    )
    return scorer.fit(X, y, groups=groups).scores_


class PrivateScorer(PrivateEstimator):
    """What `evaluate` runs: a private fit whose result is scores. It explains the parameters.

    Attributes
    ----------
    scores_ : Scores
    privacy_ : PrivacyStatement
    """

    def __init__(
        self,
        model: Any,
        metrics: Any = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "zero_out",
        accountant: str = "auto",
        budget: Any = None,
        target_range: Any = None,
        log_loss_bound: float = questions.LOG_LOSS_BOUND,
        noise_source: str = "system",
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.metrics = metrics
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.accountant = accountant
        self.budget = budget
        self.target_range = target_range
        self.log_loss_bound = log_loss_bound
        self.noise_source = noise_source
        self.random_state = random_state

    @property
    def _who(self) -> str:
        return facts.WHO

    def fit(
        self, X: Any, y: Any, sample_weight: Array | None = None, *, groups: Any = None
    ) -> Self:
        """Score the model; rows whose weight is 0 are null records, all others count as one."""
        names, unit = self._check_parameters(), parts.unit_of(groups)
        part = parts.part_of(X, y, sample_weight, groups, unit=unit)
        scored = read_dataset(facts.WHO, X, y, groups, sample_weight=sample_weight)
        labels = scored.groups
        is_grouped = labels is not None
        with (
            refusals.without_sizes("evaluate", is_grouped),
            refusals.without_row_counts(is_grouped),
        ):
            question = self._question(names, scored)
            array = question.facts.array
        prepared = self._prepare(question, scored.n_records, unit)

        def rows(spread: Map) -> MemorySource:
            nothing = np.zeros((scored.n_rows, 1))
            codes = None if labels is None else labels.codes
            source = grouping.rows_in_memory(
                array, nothing, sample_weight, None, 0.0, spread, codes
            )
            source.reserve(transformed=False)
            return source

        assumptions = self._score_assumptions(prepared.public, question)
        solution, statement = self._carry_out(prepared, assumptions, rows, part)
        self.privacy_ = statement
        self.scores_ = Scores(question.scores(dict(solution.results)), statement)
        return self

    # ------------------------------------------------------------------ before any row is asked

    def check_terms(self) -> None:
        """Refuse what can be refused without a fitted model."""
        self._check_shared_parameters()
        if self.delta == 0 and not math.isinf(self.epsilon):
            raise ValueError(
                "evaluate: Gaussian noise needs delta > 0; got delta=0. Nothing was released."
            )
        if not (is_real(self.log_loss_bound) and 1 <= self.log_loss_bound <= 50):
            raise ValueError(
                f"log_loss_bound must lie between 1 and 50; got {shown(self.log_loss_bound)}."
            )

    def _check_parameters(self) -> questions.Metrics:
        """Refuse what can be refused without rows; return the metrics that are asked for."""
        self.check_terms()
        kind = facts.kind_of(self.model)
        if kind == "regressor":
            facts.target_range(self.model, self.target_range)
            return questions.metrics_of(kind, self.metrics, 1)
        return questions.metrics_of(kind, self.metrics, len(self.model.classes_))

    def _question(self, names: questions.Metrics, rows: Dataset) -> questions.Question:
        if facts.kind_of(self.model) == "regressor":
            ends = facts.target_range(self.model, self.target_range)
            return questions.of_regressor(self.model, names, rows, ends)
        bound = float(self.log_loss_bound)
        return questions.of_classifier(self.model, names, rows, bound)

    def _prepare(self, question: questions.Question, n_records: int, unit: str) -> Prepared:
        public = Public(
            n_rows=n_records,
            n_features=len(question.facts.columns),
            n_outputs=1,
            adjacency=Adjacency.parse(self.adjacency),
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            has_intercept=False,
            unit=unit,
        )
        problem = Problem(SquaredError(), fit_intercept=False)
        stages = (question.stage,)
        plan = make_plan(stages, public, problem, self.accountant)
        return Prepared(public, problem, stages, plan)

    def _score_assumptions(self, public: Public, question: questions.Question) -> tuple[str, ...]:
        return (
            *unit_assumptions(public.n_rows, public.unit, "a score"),
            "The model is public, or private by itself; it predicts every row by itself, whatever "
            "the others are, and fails on none.",
            *question.assumptions,
            *noise_assumptions(self.noise_source, self.epsilon),
        )
