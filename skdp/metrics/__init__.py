"""Score fitted models on private rows."""

from skdp.metrics.evaluation import evaluate
from skdp.metrics.scores import Score, ScoreMatrix, Scores

__all__ = ["Score", "ScoreMatrix", "Scores", "evaluate"]
