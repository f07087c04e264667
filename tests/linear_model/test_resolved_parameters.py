"""A resolved value stands for itself: setting what "auto" stands for changes nothing."""

import skdp

FEW, MANY = (500, 6), (20_000, 6)


def resolved(model, shape):
    """Return the solver with values for "auto", None if the problem is not for it."""
    n_classes = len(getattr(model, "classes", ()) or ())
    try:
        return model._prepare(*shape, n_classes if n_classes > 2 else 1).solver
    except ValueError:
        return None


def test_a_hyperparameter_selects_the_best_solver_that_has_it():
    model = skdp.DPRidge()
    assert resolved(model, MANY).name == "whitened"
    assert model.plan(*MANY).notes[0] == "solver='auto' is 'whitened' here."
    model.set_params(solver=("auto", {"batch_size": 100}))
    assert resolved(model, MANY).name == "gd"
    assert "does not take batch_size=100" in model.plan(*MANY).notes[0]
