"""Score fitted models on private rows."""

from skdp.metrics.evaluation import evaluate
from skdp.metrics.scores import Score, Scores

__all__ = ["Score", "Scores", "evaluate"]
