"""Score fitted models on private rows."""

from skdp.metrics.evaluation import evaluate
from skdp.metrics.scores import Score, ScoreCurve, ScoreMatrix, Scores, SubgroupScores

__all__ = ["Score", "ScoreCurve", "ScoreMatrix", "Scores", "SubgroupScores", "evaluate"]
