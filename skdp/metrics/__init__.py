"""Score fitted models on private rows."""

from skdp.metrics.displays import ScoreCurveDisplay, ScoreMatrixDisplay
from skdp.metrics.evaluation import evaluate
from skdp.metrics.scores import Score, ScoreCurve, ScoreMatrix, Scores, SubgroupScores

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
