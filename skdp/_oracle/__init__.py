"""The trust boundary: the only code that sees a row."""

from skdp._oracle.noise import NoiseSource, noise_source
from skdp._oracle.oracle import BudgetError, Oracle, PlanError
from skdp._oracle.public import Public
from skdp._oracle.releases.base import (
    NotAudited,
    PublicContext,
    Statistic,
)
from skdp._oracle.releases.gradients import (
    GradientDifference,
    GradientSum,
    VertexSelection,
    smoothness,
)
from skdp._oracle.releases.histograms import BinCounts, MagnitudeCounts, TableCounts, WeightCounts
from skdp._oracle.releases.mechanisms import (
    AllRows,
    Cut,
    FixedSize,
    GaussianNoise,
    IndexSampler,
    LaplaceNoise,
    NoisyStatistic,
    Poisson,
    Sampler,
)
from skdp._oracle.releases.moments import (
    CappedHessian,
    Coordinates,
    GramSum,
    LogisticStep,
    ScoreSquares,
    ShrunkGradientSum,
    gradient_weight,
    unpack_gram,
)
from skdp._oracle.releases.record_sums import (
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
from skdp._oracle.releases.shuffled_pass import ShuffledPass
from skdp._oracle.session import Plan, Solution, SolverStage, Stage, make_plan, public_after, run
from skdp._oracle.sources.column_map import Columns, Scaling, Weights
