"""Declare each parameter and attribute of the estimators once: its type, its meaning, its check.

Docstrings, checks before a fit and the page of defaults follow from these entries. Which value
"auto" stands for follows from the solver and the stages, whose resolved values ``solver_`` and
``privacy_`` hold.

Parameters
----------
alpha : float
    Strength of the penalty, at least 0, in scikit-learn's scale. The intercept is not
    penalised.
l1_ratio : float
    Share of the L1 penalty, in [0, 1]: 0 is L2, 1 is L1.
epsilon : float
    Privacy budget of one ``fit``, in nats, positive. Smaller is more private and noisier. inf adds
    no noise, for debugging on public data.
delta : float
    Probability, in [0, 1), with which the epsilon guarantee may fail, well below 1/n_samples. 0
    requests pure differential privacy by Laplace noise, which not every solver supports.
solver : str, tuple (str, dict) or Solver
    Name from `skdp.solvers.available`, a name and hyperparameters such as ``("gd", {"batch_size":
    50})``, or a configured solver. A search sets hyperparameters of a configured solver as
    ``solver__batch_size``. "auto" chooses by public facts among the solvers that accept all
    hyperparameters set here.
max_iter : int or "auto"
    Number of steps. "auto" values here and below follow from public facts (n_samples, n_features,
    outputs, budget) and are in ``solver_`` after fit. Setting the same value gives the same fit.
learning_rate : float, str, tuple (str, dict) or "auto"
    Step size, or a schedule by name: "polynomial", or ``("polynomial", {"a": 50.0})``.
momentum : float, str, tuple (str, dict) or "auto"
    In [0, 1): Polyak's heavy ball. ``("averaged", {"beta": 0.8})`` is the bias-corrected average of
    gradients, in solvers "gd", "whitened" and "residual_budget".
noise_schedule : str, tuple (str, dict), array of shape (max_iter,) or "auto"
    Noise of the steps relative to each other. The scale always follows from the budget.
clip_norm : float or "auto"
    Largest norm of one record's gradient: L2 for Gaussian noise, L1 for Laplace noise. Smaller
    means less noise and more bias.
scaling : {"auto", "private", "none"}, PublicRange, PublicSample or RowNorm
    How columns, and the targets of a regression, are standardised in the fit. "private" estimates
    ranges, centres and scales by noisy histograms, within the same budget. `PublicRange` and
    `PublicSample` declare them at no cost. Both, and `RowNorm`, also declare the range of targets,
    as in ``PublicRange(target=(0, 300))``. Penalties act on the coefficients of standardised
    columns, as after `sklearn.preprocessing.StandardScaler`, but ``coef_`` and ``intercept_`` are
    in units of X and y. Sparse columns are not centred. Without an intercept no column is centred.
    Rows whose standardised L2 norm exceeds ``2 * sqrt(n_features + 1)``, twice the typical norm,
    are scaled down to it, unless epsilon is infinite. "none" leaves records as they are, and so
    does `RowNorm`, which bounds the norm of rows. "auto" is "private", except with a constraint,
    and for columns whose histograms would be mostly noise.
prior : PublicModel, fitted linear model, PublicSample or None
    Public model that the fit starts from: `PublicModel` of published coefficients, a fitted model
    of scikit-learn or skdp, or ``PublicSample(X, y=targets)``, to which a model is fitted. Three
    tenths of the budget fit a slope on its predictions, which tests the prior: it is near 0 if the
    prior is useless. The rest fits the difference, which penalties and shrinkage pull towards 0.
    The cost of a prior with a privacy statement of its own is added to ``privacy_``.
constraint : L2Ball, L1Ball, Box, Simplex, str, tuple (str, dict) or None
    Set in which the coefficients, as one vector, must lie. It costs no budget. ``("l2_ball",
    {"radius": 2.0})`` is short for ``L2Ball(2.0)``. The intercept is not constrained.
inference : bool, "coefficients", CoefficientInference or None
    True, or "coefficients", ends the fit with standard errors, intervals and p-values: a Newton
    step from the fitted coefficients that undoes their bias, with the covariance of rows and noise.
    `CoefficientInference` sets its share of the budget. It needs one target or two classes,
    Gaussian noise, no weights of labelled records, and no L1 penalty or constraint. A penalty is
    not part of the estimand.
fit_intercept : bool
    Whether to fit an intercept. It is part of the same release.
fixed_effects : bool
    Whether each group has its own intercept, which is neither estimated nor released: the means of
    a group, weighted by ``sample_weight``, are subtracted from its columns and targets inside the
    fit, before scaling (the within estimator of panels). It costs no budget and needs ``groups``.
    Declared ranges and norms are of deviations from the means. ``intercept_`` is 0, whatever
    ``fit_intercept`` is: the intercepts of groups replace it. Predictions are ``X @ coef_``, up to
    the intercept of the row's group, and are not clipped. Leave out columns that are constant
    within groups: their effects cannot be estimated.
privacy : Privacy or None
    Neighbouring relation, shared budget and source of noise, as a `Privacy` object. None means its
    defaults.
verbose : int
    Above 0: show each step of the fit, in a bar if tqdm is installed.

coefficients
------------
coef_ : array of shape (n_features,) or (n_targets, n_features)
    Coefficients.
intercept_ : float or array of shape (n_targets,)
    Intercept, 0.0 if ``fit_intercept`` is False.
prediction_range_ : tuple of two arrays of shape (n_targets,), or None
    Range of the targets: found privately, or declared, by ``scaling``.
    Predictions are clipped to it.

fitted
------
n_iter_ : int
    Steps taken.
n_gradients_ : float
    Gradients of single records that were released, random samples counted by their expected size.
solver_ : Solver
    The solver with the values that "auto" stood for.
scaling_ : Scaling or None
    Ranges, centres and sizes of ``columns`` and ``targets``. None if records were taken as given.
    By default a regression may widen the ranges halfway, if a private test says that it helps. With
    weights, ``scaling_.weights.scale`` is the weight that counts as 1, to which larger ones are
    clipped.
offset_fitted_ : bool
    Whether ``fit`` got an ``offset``: predictions then need one as well.
row_bound_ : float or None
    L2 norm to which rows with a larger norm are scaled down, in the fit and in predictions, after
    standardisation if there is any.
privacy_ : PrivacyStatement
    Releases, cost and assumptions.
n_features_in_ : int
    Number of columns.
feature_names_in_ : array of shape (n_features,)
    Column names, if X had any.

fitted_inference
----------------
coef_debiased_ : array of the shape of ``coef_``
    With ``inference="coefficients"``, as the following attributes: the estimates that intervals are
    about. For predictions ``coef_`` is the better choice.
intercept_debiased_ : float or array of the shape of ``intercept_``
    The intercept that belongs to them.
coef_std_error_ : array of shape (n_features,)
    Standard errors over rows and noise, inf if a coefficient is not determined. With several
    classes this array and the following ones have the shape of ``coef_``.
intercept_std_error_ : float
    Standard error of the intercept, inf unless all coefficients are determined.
coef_covariance_ : array of shape (n_features, n_features)
    Covariance of ``coef_debiased_.ravel()``. If a coefficient is not determined, its variance is
    inf and its covariances are nan.
determined_ : array of shape (n_features,), bool
    Whether the noise permits a useful interval.
p_values_ : array of shape (n_features,)
    Two-sided p-values of the hypothesis that a coefficient is 0, nan if it is not determined.
inference_ : DebiasedCoefficients
    All of these attributes, with the shares of the variances that are due to privacy.

cited
-----
M. Abadi et al.: Deep Learning with Differential Privacy. CCS 2016 (clipping).
J. Dong, A. Roth, W. Su: Gaussian Differential Privacy. JRSS B 2022 (accounting).

planned_shape
-------------
n_samples, n_features : int
    Shape of X. With ``n_groups`` the number of rows does not affect the plan and may be None.

of_a_plan
---------
sparse : bool, default=False
    Whether X is going to be sparse.
n_groups : int or None, default=None
    Number of groups, if ``fit`` is going to get ``groups``.
weighted : bool, default=False
    Whether ``fit`` is going to get ``sample_weight``: solver and stages may be others then.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import clone

from skdp._docstrings import Documented, fill, section_of
from skdp._fitting.privacy import Privacy, check_privacy
from skdp._numbers import is_integer, is_real, require
from skdp._stages.column_bounds import PublicRange, PublicSample, RowNorm
from skdp._stages.inference import CoefficientInference, inference_share
from skdp.accounting.pricing import check_budget
from skdp.objective import CONSTRAINTS, Constraint, Unconstrained
from skdp.solvers import Solver
from skdp.steps import AnyMomentum as AnyMomentum
from skdp.steps import Named, named
from skdp.steps import RelativeNoise as RelativeNoise
from skdp.steps import StepSize as StepSize

# Types of values in signatures, with those that solvers share.
Auto = Literal["auto"]
SolverChoice = str | Solver | tuple[str, Mapping[str, object]]
Scaling = Literal["auto", "private", "none"] | PublicRange | PublicSample | RowNorm
ConstraintChoice = Constraint | Named | None
InferenceChoice = bool | Literal["coefficients"] | CoefficientInference | None
T = TypeVar("T")


def check_number(
    name: str, allowed: str, is_valid: Callable[[float], bool]
) -> Callable[[object], None]:
    """Return a check that a value is a real number for which ``is_valid`` holds."""

    def check(value: object) -> None:
        require(name, value, allowed, is_real(value) and is_valid(value))

    return check


def check_bool(name: str) -> Callable[[object], None]:
    """Return a check that a value is True or False."""
    return lambda value: require(
        name, value, "be True or False", isinstance(value, bool | np.bool_)
    )


def check_verbose(value: object) -> None:
    """Raise ValueError unless ``value`` is a level of output."""
    is_level = isinstance(value, bool | np.bool_) or (is_integer(value) and value >= 0)
    require("verbose", value, "be an integer, at least 0", is_level)


def constraint_set(value: object) -> Constraint:
    """Return the set that coefficients have to lie in, as a copy: plans of fits outlive changes.

    Raises
    ------
    ValueError
        If the value names no set, or a parameter of the set is out of its range.
    """
    if value is None:
        return Unconstrained()
    constraint = value
    if not isinstance(constraint, Constraint):
        others = "None, a set such as L2Ball(2.0)"
        constraint = named("constraint", CONSTRAINTS, value, others)()
    constraint.check()
    copy: Constraint = clone(constraint)
    return copy


check_alpha = check_number("alpha", "be a finite number, at least 0", lambda v: 0 <= v < math.inf)

# The parameters in the order of signatures, with checks that raise ValueError for a value out of
# range. Solver and stages check the others.
PARAMETERS: Mapping[str, Callable[[Any], object] | None] = {
    "alpha": check_alpha,
    "l1_ratio": check_number("l1_ratio", "be a number in [0, 1]", lambda value: 0 <= value <= 1),
    "epsilon": lambda value: check_budget(value, 0.0),
    "delta": lambda value: check_budget(1.0, value),
    "solver": None,
    "max_iter": None,
    "learning_rate": None,
    "momentum": None,
    "noise_schedule": None,
    "clip_norm": None,
    "scaling": None,
    "prior": None,
    "constraint": constraint_set,
    "inference": inference_share,
    "fit_intercept": check_bool("fit_intercept"),
    "fixed_effects": check_bool("fixed_effects"),
    "privacy": check_privacy,
    "verbose": check_verbose,
}
_ENTRIES = section_of(sys.modules[__name__], "Parameters")
NAMES = "coefficients", "fitted", "fitted_inference", "cited", "planned_shape", "of_a_plan"
_filled = fill(
    **{name: "\n".join(section_of(sys.modules[__name__], name).values()) for name in NAMES}
)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def declared(estimator: type[T]) -> type[T]:
    """Give an estimator an ``__init__`` that stores its annotated attributes, by keyword.

    The signature begins with the parameters that are not in the table, which only some estimators
    have. Those in the table follow in its order.
    """
    made = dataclass(kw_only=True, eq=False, repr=False)(estimator)
    places = {name: place for place, name in enumerate(PARAMETERS)}
    signature = inspect.signature(made.__init__)
    itself, *several = signature.parameters.values()
    short = (str(one.annotation).replace("parameters.", "") for one in several)
    given = [one.replace(annotation=type_) for one, type_ in zip(several, short, strict=True)]
    given.sort(key=lambda parameter: (parameter.kind, places.get(parameter.name, -1)))
    made.__init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[itself, *given]
    )
    return made


def check_parameters(given: Mapping[str, object], labels: bool = True) -> None:
    """Raise ValueError if a value, by name, of a parameter in the table is out of range.

    Parameters
    ----------
    given : mapping
    labels : bool, default=True
        Whether there are targets, so that adjacency="label" means something.
    """
    for name, value in given.items():
        check = PARAMETERS.get(name)
        if check is not None:
            check(value)
    privacy = given.get("privacy")
    if isinstance(privacy, Privacy):
        privacy.check(labels)


def documented(method_or_estimator: Documented) -> Documented:
    """Fill in a docstring's paragraphs, and an estimator's ``{parameters}``.

    Those that the estimator's own docstring describes are left out.
    """
    entries, doc = [], method_or_estimator.__doc__ or ""
    own = {line.split(" : ")[0].strip() for line in doc.splitlines()}
    is_estimator = isinstance(method_or_estimator, type)
    for name, parameter in inspect.signature(method_or_estimator).parameters.items():
        if is_estimator and name in _ENTRIES and name not in own:
            first, _, text = _ENTRIES[name].partition("\n")
            default = parameter.default
            default = f'"{default}"' if isinstance(default, str) else repr(default)
            entries.append(f"{first}, default={default}\n{text}")
    return _filled(fill(parameters="\n".join(entries))(method_or_estimator))


def planned_records(who: str, n_samples: int | None, n_groups: int | None, **counts: object) -> int:
    """Return the number of records of a planned fit: of groups, if it is given, else of rows.

    The number of rows has no say in a plan with groups, as it is private. ValueError unless the
    number, and further counts, are integers of at least 1.
    """
    name, n_records = ("n_samples", n_samples) if n_groups is None else ("n_groups", n_groups)
    for what, value in {**counts, name: n_records}.items():
        is_count = is_integer(value) and value >= 1
        require(f"{who}: {what}", value, "be at least 1, an integer", is_count)
    assert n_records is not None
    return n_records
