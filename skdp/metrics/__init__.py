"""Score fitted models on private rows."""

from skdp.metrics.evaluation import evaluate
from skdp.metrics.scores import (
    Score,
    ScoreCurve,
    ScoreCurveDisplay,
    ScoreMatrix,
    ScoreMatrixDisplay,
    Scores,
    SubgroupScores,
)

__all__ = [
    "Score",
    "ScoreCurve",
    "ScoreCurveDisplay",
    "ScoreMatrix",
    "ScoreMatrixDisplay",
    "Scores",
    "SubgroupScores",
    "evaluate",
]
