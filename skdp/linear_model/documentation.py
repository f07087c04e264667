"""The paragraphs that the docstrings of estimators and their methods have in common."""

from skdp._docstrings import fill

BUDGET_AND_STEPS = """
epsilon : float, default=1.0
    Privacy budget of one ``fit``, in nats; positive. Smaller is more private and noisier. inf adds
    no noise, for debugging on public data.
delta : float, default=1e-6
    Probability, in [0, 1), with which the epsilon guarantee may fail; well below 1/n_samples. 0
    asks for pure differential privacy: Laplace noise, which not every solver can work with.
solver : str or Solver, default="auto"
    A name from `skdp.solvers.available`, or a configured solver, whose own hyperparameters can
    be searched as ``solver__max_iter`` and so on. "auto" chooses one by public facts.
max_iter : int or "auto", default="auto"
    Number of steps. "auto" values here and below follow from public facts (n_samples, n_features,
    outputs, budget) and are found in ``solver_`` after fit.
learning_rate : float, str, tuple (str, dict), StepSchedule or "auto", default="auto"
    Step size, or a schedule by name: "polynomial", or ``("polynomial", {"a": 50.0})``.
momentum : float, str, tuple (str, dict), Momentum or "auto", default="auto"
    A number in [0, 1) is the beta of Polyak's heavy ball; ``("averaged", {"beta": 0.8})`` is the
    bias-corrected average of gradients.
batch_size : int, float or None, default=None
    Rows in a batch, as a number or a fraction of n_samples; None takes all rows at every step,
    which is the most accurate where the time allows it.
noise_schedule : str, NoiseSchedule, array of shape (max_iter,) or "auto", default="auto"
    How noisy the steps are next to each other. The scale always follows from the budget.
clip_norm : float, str, tuple (str, dict), ClippingRule or "auto", default="auto"
    Largest norm of one record's gradient: L2 for Gaussian noise, L1 for Laplace noise. Smaller
    means less noise and more bias. "adaptive" follows the gradients' norms by noisy counts, in
    solvers "gd" and "adp_sgd".
data_norm : float or None, default=None
    Public bound on a row's L2 norm, without the intercept. Longer rows are scaled down to it.
    None: rows whose standardised L2 norm exceeds ``2 * sqrt(n_features + 1)``, twice the
    typical one, are scaled down to it, unless epsilon is infinite.
"""

TARGET_BOUND = """
target_bound : float or None, default=None
    Public bound on the absolute value of a target, in the target's unit; larger targets are
    clipped to it. Predictions keep to it, too, and no budget is spent on the range of the targets.
    None: the range is found privately as part of the fit, as ``scaling`` says; with
    ``scaling="none"`` targets of about unit size are expected.
"""

CORRECTION = """
calibration : {"auto", "private", "none"}, default="auto"
    Whether the fit ends with a slope and a shift of its predictions, found by a noisy sum that
    takes 3 % of the budget, in mu squared. Capped residuals leave predictions of skewed targets too
    small and off centre; this mends it, as far as it stands out of its noise. "auto" is "private"
    where solver and hyperparameters are all "auto", with one target of unit size (or scaled to it),
    Gaussian noise, and without weights, a constraint or blocks; else "none".
"""

TERMS = """
adjacency : {"zero_out", "replace_one", "label"}, default="zero_out"
    Neighbouring data sets differ in one record, which is replaced by a null record or by any
    other. The number of records, of rows or of groups, is public in both; "replace_one" needs twice
    the noise. "label" replaces the target of one record and takes all of X for public, as in a
    survey of a known register: columns and their second moments are read without noise. No column
    may follow from the targets of these rows, as in `sklearn.multioutput.RegressorChain` or after a
    target encoder: a ``budget`` refuses a fit in which a column equals an earlier fit's target.
accountant : str, default="auto"
    Who prices the plan: "auto" for the one that needs the least noise, or a name.
budget : PrivacyBudget or None, default=None
    A budget that this fit shares with others: charged before the rows are used, and the fit is
    refused where it would overspend. Clones share it, too.
"""

CONSTRAINT = """
constraint : {"l2_ball", "l1_ball", "box", "simplex"} or None, default=None
    Set that the coefficients, taken as one vector, have to lie in; it costs no budget. "box" bounds
    every coefficient by ``radius``, "simplex" asks for coefficients of at least 0 whose sum is
    ``radius``. The intercept is free.
radius : float, default=1.0
    Size of the set; without a constraint it has no effect.
"""

COLUMNS = """
scaling : {"auto", "private", "none"}, default="auto"
    Whether columns, and the targets of a regression, are standardised as part of the fit.
    "private" finds their ranges, centres and sizes by noisy histograms, which are paid for from
    the same budget. Penalties act on the coefficients of standardised columns then, as after
    `sklearn.preprocessing.StandardScaler`; ``coef_`` and ``intercept_`` are in units of X and y.
    Sparse columns are not centred, and nothing is without an intercept. "none" takes records as
    they are. "auto" is "none" with ``data_norm``, a constraint or ``delta=0``, and leaves columns
    alone where their histograms would drown in noise, by a rule in public facts.
bounds : PublicSample, tuple (low, high), list of pairs, dict or None, default=None
    Public ends of the columns: ``(low, high)`` for all columns, each a number or one number for
    each column; a list with a pair for each column; or a dict with a pair for each column, by name
    in a data frame, by number else: ``{"age": (0, 120), ...}``. Two pairs for two columns can be
    read in two ways and are refused: number the columns. Columns are standardised by the ends,
    values outside are clipped, and no budget is spent on it. A `PublicSample` of rows that are not
    private tells the sizes of columns better, and their second moments, too.
"""

INFERENCE = """
inference : {"none", "coefficients"}, default="none"
    "coefficients" ends the fit with standard errors, intervals and p-values: a Newton step from the
    fitted coefficients that undoes their bias, with the covariance of rows and noise. See the page
    on intervals. It needs one target or two classes, Gaussian noise, records without weights, and
    no L1 penalty or constraint; a penalty is not part of what is estimated.
inference_share : float, default=1/3
    Share of the budget, in mu squared, that the inference gets of what scaling leaves; in (0, 1).
    More of it makes intervals narrower and ``coef_`` noisier.
"""

PREDICTIONS_AND_NOISE = """
fit_intercept : bool, default=True
    Whether to fit an intercept; it is part of the same release.
linear_predictions : bool, default=False
    Whether predictions are linear everywhere: ``X @ coef_.T + intercept_``. False treats rows as
    the fit did: columns are clipped to their ranges and long rows are scaled down, and predictions
    of regressors are clipped to ``prediction_range_``. Rows like most others get the same
    prediction either way; rows far out get no far-fetched one, which is worth much where a column
    has a long tail. It changes neither the fit nor its privacy, so it can be set afterwards by
    ``set_params``; ``to_sklearn`` returns the linear model.
noise_source : {"system", "seeded"}, default="system"
    "system" draws the noise from the operating system's secure source, whatever ``random_state``
    is. "seeded" draws it from ``random_state``: it is reproducible, whoever knows the seed can
    subtract it, and the fit is not private. A `SeededNoiseWarning` and the privacy statement say
    so.
random_state : int, RandomState, Generator or None, default=None
    Seed of the noise if ``noise_source="seeded"``; without effect otherwise, so that a seed which a
    meta-estimator sets cannot make noise removable.
verbose : int, default=0
    1: print the plan before it is carried out. 2: also print how far the fit is. For a progress
    bar see ``set_callbacks``.
"""

GROUPS = """
rows_per_group : float or None, default=None
    For fits with ``groups``: a public guess of how many rows a group has, not taken from the data.
    With a guess above 1, solvers "gd", "adp_sgd" and the accelerated ones clip the mean gradient
    of a group, and the default clipping norm is smaller, as a mean is shorter than its rows: less
    noise. None clips the gradient of each row. The guarantee is the same, whatever the guess.
"""

COEFFICIENTS = """
coef_ : array of shape (n_features,) or (n_targets, n_features)
    Coefficients.
intercept_ : float or array of shape (n_targets,)
    Intercept, 0.0 if ``fit_intercept`` is False.
prediction_range_ : tuple of two arrays of shape (n_targets,), or None
    Range of the targets: found privately by ``scaling``, or ``target_bound`` on both sides.
    Predictions are clipped to it, unless ``linear_predictions`` is True.
"""

FITTED = """
n_iter_ : int
    Steps taken.
n_gradients_ : float
    Gradients of single records that were taken, random samples counted by their expected size.
solver_ : Solver
    The solver with the values that "auto" stood for.
scaling_ : Scaling or None
    Ranges, centres and sizes of ``columns`` and ``targets``; None if records were taken as given.
    By default a regression may widen the ranges halfway, if a private test says that it helps.
row_bound_ : float or None
    L2 norm to which longer rows are scaled down, in the fit and, unless ``linear_predictions`` is
    True, in predictions; of standardised rows, if they were.
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
    Standard errors over rows and noise; inf where a coefficient is not determined.
intercept_std_error_ : float
    The same of the intercept; inf unless all coefficients are determined.
coef_covariance_ : array of shape (n_features, n_features)
    Covariance of ``coef_debiased_``; inf on the diagonal, nan beside it, where not determined.
determined_ : array of shape (n_features,), bool
    Whether the noise leaves an interval of use.
p_values_ : array of shape (n_features,)
    Two-sided, of coefficients of 0; nan where not determined.
inference_ : CoefficientInference
    All of it in one object, with the shares of the variances that are due to privacy.
"""

REFERENCES = """
M. Abadi et al.: Deep Learning with Differential Privacy. CCS 2016 (clipping).
J. Dong, A. Roth, W. Su: Gaussian Differential Privacy. JRSS B 2022 (accounting).
"""

ROWS = """
X : array, sparse matrix or data frame of shape (n_samples, n_features)
    float64 or float32; sparse input is used as CSR. Or `Chunks` or other `Partitions`,
    which hold y, too; or a dask array or data frame, y being one as well.
"""

OF_A_FIT = """
sample_weight : array of shape (n_samples,), float or None, default=None
    Not negative. Scales a record's gradient before it is clipped, so that the guarantee
    does not depend on it; sums are still divided by n.
coef_init, intercept_init : array or None, default=None
    Where the solver starts, in the shapes and units of ``coef_`` and ``intercept_``; None
    is zero. Public by assumption, which the privacy statement lists: a point learnt from
    the same rows is a leak, unless what it cost is accounted for.
groups : array of shape (n_samples,) or None, default=None
    Labels of groups, such as persons, compared as the keys of a dictionary are: integers,
    strings, tuples; none may be missing, in whole or in part. The guarantee is for a group
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

documented = fill(
    budget_and_steps=BUDGET_AND_STEPS,
    target_bound=TARGET_BOUND,
    correction=CORRECTION,
    terms=TERMS,
    constraint=CONSTRAINT,
    columns=COLUMNS,
    inference=INFERENCE,
    predictions_and_noise=PREDICTIONS_AND_NOISE,
    groups=GROUPS,
    coefficients=COEFFICIENTS,
    fitted=FITTED,
    fitted_inference=FITTED_INFERENCE,
    references=REFERENCES,
    rows=ROWS,
    of_a_fit=OF_A_FIT,
    planned_shape=PLANNED_SHAPE,
    of_a_plan=OF_A_PLAN,
)
