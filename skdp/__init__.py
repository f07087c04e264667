"""skdp: differentially private linear models for scikit-learn."""

import importlib
from typing import TYPE_CHECKING

from skdp import data as data
from skdp import solvers as solvers
from skdp._fitting.budget import PrivacyBudget
from skdp._fitting.ledger import PrivacyBudgetError
from skdp._fitting.privacy import Privacy, SeededNoise
from skdp._fitting.refusals import InputError as InputError
from skdp._fitting.refusals import InputTypeError as InputTypeError
from skdp._fitting.user_warnings import (
    ExactScoreWarning,
    NoiseWarning,
    NotPrivateWarning,
    PrivacyLeakWarning,
    PrivacyWarning,
    SeededNoiseWarning,
)
from skdp._stages.column_bounds import PublicRange, PublicSample, RowNorm
from skdp._stages.inference import CoefficientInference
from skdp._version import __version__ as __version__
from skdp.accounting import PrivacyStatement
from skdp.linear_model import (
    DPElasticNet,
    DPGammaRegressor,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
    DPTweedieRegressor,
)

__all__ = [
    "CoefficientInference",
    "DPElasticNet",
    "DPGammaRegressor",
    "DPHuberRegressor",
    "DPLasso",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPQuantileRegressor",
    "DPRidge",
    "DPStandardScaler",
    "DPTabularPreprocessor",
    "DPTweedieRegressor",
    "ExactScoreWarning",
    "NoiseWarning",
    "NotPrivateWarning",
    "Privacy",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyLeakWarning",
    "PrivacyStatement",
    "PrivacyWarning",
    "PublicRange",
    "PublicSample",
    "RowNorm",
    "SeededNoise",
    "SeededNoiseWarning",
    "privacy_of",
    "total_privacy",
]

for _thing in [*vars().values()]:
    if isinstance(_thing, type) and issubclass(_thing, Exception):
        _thing.__module__ = __name__  # the last line of a traceback names it, and so do pickles

if TYPE_CHECKING:
    from skdp.model_selection import privacy_of, total_privacy
    from skdp.preprocessing import DPStandardScaler, DPTabularPreprocessor
    from skdp.preprocessing import check as check
else:
    _LATER = "model_selection", "preprocessing", "metrics"  # no fit needs them

    def __getattr__(name):
        """Import a subpackage that no fit needs, or what is exported from it, at its first use."""
        if name in _LATER:
            return importlib.import_module(f"{__name__}.{name}")
        for later in _LATER if name in {*__all__, "check"} else ():
            module = importlib.import_module(f"{__name__}.{later}")
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__, *_LATER, "check"} - {"TYPE_CHECKING", "importlib"})
