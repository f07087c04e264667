"""The paragraphs that the docstrings of estimators and their methods have in common."""

from skdp._docstrings import Documented, fill
from skdp.fitting.parameters import parameters_section

COEFFICIENTS = """
coef_ : array of shape (n_features,) or (n_targets, n_features)
    Coefficients.
intercept_ : float or array of shape (n_targets,)
    Intercept, 0.0 if ``fit_intercept`` is False.
prediction_range_ : tuple of two arrays of shape (n_targets,), or None
    Range of the targets: found privately, or declared, by ``scaling``.
    Predictions are clipped to it.
"""

FITTED = """
n_iter_ : int
    Steps taken.
n_gradients_ : float
    Gradients of single records that were released, random samples counted by their expected size.
solver_ : Solver
    The solver with the values that "auto" stood for.
scaling_ : Scaling or None
    Ranges, centres and sizes of ``columns`` and ``targets``; None if records were taken as given.
    By default a regression may widen the ranges halfway, if a private test says that it helps.
    With weights, ``scaling_.weights.scale`` is the weight that counts as 1, to which larger ones
    are clipped.
row_bound_ : float or None
    L2 norm to which longer rows are scaled down, in the fit and in predictions; of standardised
    rows, if they were.
privacy_ : PrivacyStatement
    What was released, what it cost, and what was assumed.
n_features_in_ : int
    Number of columns.
feature_names_in_ : array of shape (n_features,)
    Column names, if X had any.
"""

FITTED_INFERENCE = """
coef_debiased_ : array of the shape of ``coef_``
    With ``inference="coefficients"``, as what follows: the estimates that intervals are about. For
    predictions ``coef_`` is the better choice.
intercept_debiased_ : float or array of the shape of ``intercept_``
    The intercept that belongs to them.
coef_std_error_ : array of shape (n_features,)
    Standard errors over rows and noise; inf where a coefficient is not determined. Of several
    classes it has the shape of ``coef_``, as have the arrays that follow.
intercept_std_error_ : float
    The same of the intercept; inf unless all coefficients are determined.
coef_covariance_ : array of shape (n_features, n_features)
    Covariance of ``coef_debiased_``, of several classes of ``coef_debiased_.ravel()``; inf on the
    diagonal, nan beside it, where not determined.
determined_ : array of shape (n_features,), bool
    Whether the noise leaves an interval of use.
p_values_ : array of shape (n_features,)
    Two-sided, of coefficients of 0; nan where not determined.
inference_ : DebiasedCoefficients
    All of it in one object, with the shares of the variances that are due to privacy.
"""

REFERENCES = """
M. Abadi et al.: Deep Learning with Differential Privacy. CCS 2016 (clipping).
J. Dong, A. Roth, W. Su: Gaussian Differential Privacy. JRSS B 2022 (accounting).
"""

ROWS = """
X : array, sparse matrix or data frame of shape (n_samples, n_features)
    float64 or float32; sparse input is used as CSR. Or `Chunks` or other `Partitions`,
    which hold y, too, and weights and labels of groups, if there are any; or a dask array
    or data frame, what comes beside it being one as well.
"""

WEIGHTS_AND_START = """
sample_weight : array of shape (n_samples,), float or None, default=None
    Not negative. Only ratios of weights matter, as the loss is divided by the sum of the
    weights; in scikit-learn that sum also multiplies the loss next to most penalties. Weights
    are divided by a scale near the largest of them, which is estimated privately unless
    ``Privacy(max_weight=...)`` declares it; larger weights count as this scale.
coef_init, intercept_init : array or None, default=None
    Where the solver starts, in the shapes and units of ``coef_`` and ``intercept_``; None
    is zero. Public by assumption, which the privacy statement lists: a point learnt from
    the same rows is a leak, unless what it cost is accounted for.
"""

OF_A_FIT = """
groups : array of shape (n_samples,) or None, default=None
    Labels of groups, such as persons, which have an order: integers, strings, dates,
    tuples of these; none may be missing, in whole or in part. The guarantee is for a group
    then, with all of its rows, however many they are: the unit of privacy is all rows with
    one label. The number of groups is public and takes the place of n; the number of rows
    is not. Each group counts once in the model. None protects single rows.

Returns
-------
self

Raises
------
ValueError
    If a parameter or the data is refused. Nothing is released then.
"""

PLANNED_SHAPE = """
n_samples, n_features : int
    Shape of X; with ``n_groups`` the number of rows has no say in the plan, and None will
    do.
"""

OF_A_PLAN = """
sparse : bool, default=False
    Whether X is going to be sparse.
n_groups : int or None, default=None
    Number of groups, if ``fit`` is going to get ``groups``.
weighted : bool, default=False
    Whether ``fit`` is going to get ``sample_weight``: solver and stages may be others then.

Returns
-------
PrivacyStatement
"""

_filled = fill(
    coefficients=COEFFICIENTS,
    fitted=FITTED,
    fitted_inference=FITTED_INFERENCE,
    references=REFERENCES,
    rows=ROWS,
    weights_and_start=WEIGHTS_AND_START,
    of_a_fit=OF_A_FIT,
    planned_shape=PLANNED_SHAPE,
    of_a_plan=OF_A_PLAN,
)


def documented(method_or_estimator: Documented) -> Documented:
    """Fill in a docstring's paragraphs, and an estimator's ``{parameters}``."""
    if isinstance(method_or_estimator, type):
        section = parameters_section(method_or_estimator)
        fill(parameters=section)(method_or_estimator)
    return _filled(method_or_estimator)
