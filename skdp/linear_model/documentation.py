"""The entries that docstrings of estimators have in common, by the name in braces.

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
row_bound_ : float or None
    L2 norm to which longer rows are scaled down, in the fit and in predictions. Of standardised
    rows, if they were.
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
    Standard errors over rows and noise. It is inf where a coefficient is not determined. Of several
    classes it has the shape of ``coef_``, as have the arrays that follow.
intercept_std_error_ : float
    The same of the intercept. It is inf unless all coefficients are determined.
coef_covariance_ : array of shape (n_features, n_features)
    Covariance of ``coef_debiased_``, of several classes of ``coef_debiased_.ravel()``. It is inf on
    the diagonal, nan beside it, where not determined.
determined_ : array of shape (n_features,), bool
    Whether the noise leaves an interval of use.
p_values_ : array of shape (n_features,)
    Two-sided, of coefficients of 0, nan where not determined.
inference_ : DebiasedCoefficients
    All of it in one object, with the shares of the variances that are due to privacy.

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

import sys

from skdp._docstrings import Documented, fill, section_of
from skdp._fitting.parameters import parameters_section

NAMES = "coefficients", "fitted", "fitted_inference", "cited", "planned_shape", "of_a_plan"
_filled = fill(
    **{name: "\n".join(section_of(sys.modules[__name__], name).values()) for name in NAMES}
)


def documented(method_or_estimator: Documented) -> Documented:
    """Fill in a docstring's paragraphs, and an estimator's ``{parameters}``."""
    if isinstance(method_or_estimator, type):
        section = parameters_section(method_or_estimator)
        fill(parameters=section)(method_or_estimator)
    return _filled(method_or_estimator)
