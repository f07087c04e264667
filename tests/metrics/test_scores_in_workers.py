"""Private scores in worker processes are charged to budgets whose blocks are open."""

import pytest
from joblib import Parallel, delayed
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp.metrics import evaluate
from skdp.model_selection import dp_cross_validate
from workers import sendable


def models(X, y):
    """Fitted models that contain private estimators in different ways."""
    ridge = skdp.DPRidge(epsilon=0.1)
    return {
        "estimator": ridge.fit(X, y),
        "last step": make_pipeline(FunctionTransformer(), skdp.DPRidge(epsilon=0.1)).fit(X, y),
        "first step": make_pipeline(skdp.DPStandardScaler(epsilon=0.1), LinearRegression()).fit(
            X, y
        ),
        "search": GridSearchCV(ridge, {"alpha": [1.0]}, cv=2).fit(X, y),
        "vote": VotingRegressor([("one", ridge)]).fit(X, y),
    }


def outcome(tool, model, X, y):
    """What a call in a worker ends in; an exception would end the worker, too."""
    try:
        tool(model, X, y, epsilon=0.1, target_range=(-9.0, 9.0))
    except skdp.PrivacyBudgetError as reason:
        return str(reason)
    return "charged"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scores_in_workers_are_charged_or_refused(regression, tmp_path):
    fitted = models(*regression)
    calls = [delayed(sendable(outcome))(evaluate, model, *regression) for model in fitted.values()]
    calls += [
        delayed(sendable(outcome))(dp_cross_validate, fitted[kind], *regression)
        for kind in ("estimator", "last step")
    ]
    with skdp.PrivacyBudget(9.0, 1e-6) as budget:
        messages = Parallel(n_jobs=2)(calls)
    assert all("in a worker process" in message for message in messages), messages
    assert all("Nothing was released" in message for message in messages)
    assert budget.n_fits == 0
    with skdp.PrivacyBudget(9.0, 1e-6, ledger=tmp_path / "charges.db") as budget:
        assert set(Parallel(n_jobs=2)(calls)) == {"charged"}
    assert budget.n_fits == len(calls)
    # A model that was sent outside of the block belongs to no budget.
    assert Parallel(n_jobs=2)(calls[:1]) == ["charged"]
    assert budget.n_fits == len(calls)
