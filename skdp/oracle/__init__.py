"""The trust boundary: the only code that sees a row."""

from skdp.oracle.ledger import BudgetError, Entry, PlanError
from skdp.oracle.noise import NoiseSource, noise_source
from skdp.oracle.oracle import Oracle
from skdp.oracle.public import Public
from skdp.oracle.releases.base import (
    Contribution,
    NotAudited,
    PublicContext,
    Release,
    Statistic,
    audited,
)
from skdp.oracle.releases.gradients import (
    GradientDifference,
    GradientSum,
    VertexSelection,
    noisy_gradient,
    smoothness,
)
from skdp.oracle.releases.histograms import BinCounts, MagnitudeCounts, TableCounts, WeightCounts
from skdp.oracle.releases.mechanisms import GaussianNoise, LaplaceNoise, NoisyStatistic
from skdp.oracle.releases.moments import (
    CappedHessian,
    Coordinates,
    GramSum,
    LogisticStep,
    ScoreSquares,
    ShrunkGradientSum,
    gradient_weight,
    unpack_gram,
)
from skdp.oracle.releases.record_sums import (
    CappedResiduals,
    CutCount,
    DirectionalSum,
    InfluenceSquares,
    ResidualCount,
    ResidualSquares,
    TailSum,
    UnitSum,
    WeightSums,
)
from skdp.oracle.releases.samplers import (
    AllRows,
    Block,
    Cut,
    FixedSize,
    IndexSampler,
    Poisson,
    Sampler,
)
from skdp.oracle.releases.shuffled_pass import ShuffledPass
from skdp.oracle.session import Plan, Solution, SolverStage, Stage, make_plan, public_after, run
from skdp.oracle.sources.column_map import Columns, Scaling, Weights
