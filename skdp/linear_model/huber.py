"""Differentially private regression that is robust to outliers in the targets."""

from skdp._numbers import is_real, require
from skdp.fitting import parameters
from skdp.fitting.privacy import Privacy
from skdp.linear_model import inference
from skdp.linear_model.documentation import documented
from skdp.linear_model.regression import DPLinearRegressor
from skdp.objective import L2, Huber, Loss, NoPenalty, Penalty

LARGEST_THRESHOLD = 1e50


@documented
class DPHuberRegressor(DPLinearRegressor):
    """Differentially private regression with Huber's loss.

    Minimises the mean of ``r^2 / 2`` where the residual r is at most ``threshold``, and of
    ``threshold (|r| - threshold / 2)`` where it is larger, plus ``alpha / (2 n) |w|^2``; ``fit`` is
    (epsilon, delta)-differentially private for each row. Outliers among the targets move it less
    than they move least squares, and as residuals are bounded, so are gradients: the noise need not
    cover them.

    Parameters
    ----------
    threshold : float, default=1.35
        Size of a residual beyond which the loss is linear (scikit-learn's ``epsilon``, which is the
        budget here), in units of ``scaling_.targets.scale``, the size of the targets that
        ``scaling`` estimates, or a quarter of ``target_bound``. Where ``scaling_`` or its
        ``targets`` is None, targets are not standardised, and it is in the unit of the targets:
        with ``scaling="none"`` or a `RowNorm`, and with a constraint; in ``fit_blocks``; and with
        ``delta=0``, unless a `PublicRange` and ``target_bound`` are both declared.
        scikit-learn's is in units of a scale that it estimates from the residuals.
    {parameters}

    Attributes
    ----------
    {coefficients}
    {fitted}
    {fitted_inference}

    References
    ----------
    {references}
    P. Huber: Robust Estimation of a Location Parameter. Annals of Mathematical Statistics, 1964.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPHuberRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPHuberRegressor(epsilon=5.0, target_bound=350).fit(X, y)
    >>> model.predict(X).shape
    (442,)
    """

    conf_int = inference.conf_int
    summary = inference.summary
    wald_test = inference.wald_test

    def __init__(
        self,
        threshold: float = 1.35,
        *,
        alpha: float = 0.0001,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        solver: parameters.SolverChoice = "auto",
        max_iter: int | parameters.Auto = "auto",
        learning_rate: parameters.StepSize = "auto",
        momentum: parameters.AnyMomentum = "auto",
        noise_schedule: parameters.RelativeNoise = "auto",
        clip_norm: parameters.ClipNorm = "auto",
        batch_size: int | float | None = None,
        scaling: parameters.Scaling = "auto",
        target_bound: float | None = None,
        constraint: parameters.ConstraintChoice = None,
        inference: parameters.InferenceChoice = None,
        fit_intercept: bool = True,
        privacy: Privacy | None = None,
        verbose: int = 0,
    ) -> None:
        self.threshold = threshold
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.solver = solver
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.noise_schedule = noise_schedule
        self.clip_norm = clip_norm
        self.batch_size = batch_size
        self.scaling = scaling
        self.target_bound = target_bound
        self.constraint = constraint
        self.inference = inference
        self.fit_intercept = fit_intercept
        self.privacy = privacy
        self.verbose = verbose

    def _check_own_parameters(self) -> None:
        fine = is_real(self.threshold) and 0 < self.threshold <= LARGEST_THRESHOLD
        allowed = f"be a positive number, at most {LARGEST_THRESHOLD:g}"
        require("threshold", self.threshold, allowed, fine)

    def _loss(self, n_outputs: int) -> Loss:
        return Huber(self.threshold)

    def _penalty(self, n_rows: int) -> Penalty:
        return L2(self.alpha / n_rows) if self.alpha > 0 else NoPenalty()
