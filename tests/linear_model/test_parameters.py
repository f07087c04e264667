"""Parameters of estimators: their objects, nested names, and where they are documented."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skdp
from skdp._docstrings import section_of
from skdp._fitting.parameters import PARAMETERS
from skdp._numbers import shown

MODELS = [
    getattr(skdp, name) for name in skdp.__all__ if hasattr(getattr(skdp, name), "fit_blocks")
]
CONSTRAINED = {"constraint": skdp.objective.L2Ball(1.0)}
OBJECTS = {
    "privacy": skdp.Privacy(noise=skdp.SeededNoise(0)),
    "scaling": skdp.PublicRange(-4.0, 4.0),
    "inference": skdp.CoefficientInference(0.5),
}
# Parameters of an estimator, a nested name, and a new value.
NESTED = [
    (OBJECTS, "privacy__adjacency", "replace_one"),
    (OBJECTS, "privacy__noise__seed", 7),
    (OBJECTS, "scaling__low", -5.0),
    (OBJECTS, "scaling__high", np.array([3.0, 4.0, 5.0, 4.0, 3.0])),
    ({"scaling": skdp.RowNorm(2.0)}, "scaling__norm", 3.0),
    (OBJECTS, "inference__share", 0.25),
    (CONSTRAINED, "constraint__radius", 0.2),
    ({"constraint": skdp.objective.Box(-1.0, 1.0)}, "constraint__low", 0.0),
    ({"constraint": skdp.objective.Simplex(1.0)}, "constraint__total", 2.0),
]


@pytest.mark.parametrize("estimator", MODELS, ids=lambda cls: cls.__name__)
def test_each_parameter_is_documented_once(estimator):
    """In the table, or by the estimator's own docstring; by name, in the order of the signature."""
    names = list(inspect.signature(estimator).parameters)
    documented = section_of(estimator, "Parameters")
    assert list(documented) == names
    for name in set(names) & set(PARAMETERS):
        default = inspect.signature(estimator).parameters[name].default
        quoted = f'"{default}"' if isinstance(default, str) else repr(default)
        assert f"default={quoted}\n" in documented[name]


def test_the_table_has_no_entry_that_no_estimator_uses():
    used = {name for estimator in MODELS for name in inspect.signature(estimator).parameters}
    assert set(PARAMETERS) <= used


def test_there_are_few_names():
    """Sets, momentum, partitions and displays have one public place: their subpackages."""
    assert len(skdp.__all__) <= 30
    for room in (skdp.data, skdp.objective, skdp.steps):
        public = {name for name in vars(room) if not name.startswith("_")}
        assert all(vars(skdp).get(name) is not getattr(room, name) for name in public)


def test_there_are_few_parameters():
    most = {skdp.DPTweedieRegressor: 18, skdp.DPLogisticRegression: 19}
    for estimator in MODELS:
        n_parameters = len(inspect.signature(estimator).parameters)
        assert n_parameters <= most.get(estimator, 17), estimator


@pytest.mark.parametrize("estimator", [*MODELS, skdp.DPStandardScaler, skdp.DPTabularPreprocessor])
def test_parameters_are_declared_fields(estimator):
    """The signature has their defaults, in the order of the table, and ``__init__`` only stores."""
    signature = inspect.signature(estimator).parameters
    defaults = {one.name: one.default for one in dataclasses.fields(estimator) if one.init}
    assert {name: one.default for name, one in signature.items()} == defaults
    own = [name for name in signature if name not in PARAMETERS]
    shared = [name for name in PARAMETERS if name in signature]
    positional = [name for name, one in signature.items() if one.kind != one.KEYWORD_ONLY]
    assert list(signature)[len(positional) :] == [
        name for name in own + shared if name not in positional
    ]
    values = {name: object() for name in signature}
    assert vars(estimator(**values)) == values
    assert vars(estimator(*(values[name] for name in positional))) == {
        **defaults,
        **{name: values[name] for name in positional},
    }
    with pytest.raises(TypeError, match="positional"):
        estimator(*range(len(positional) + 1))


@pytest.mark.parametrize("estimator", MODELS, ids=lambda cls: cls.__name__)
def test_a_default_model_is_its_name(estimator):
    assert repr(estimator()) == f"{estimator.__name__}()"


def test_only_what_was_set_is_printed():
    model = skdp.DPRidge(epsilon=2.0, privacy=skdp.Privacy(adjacency="label"))
    assert repr(model) == "DPRidge(epsilon=2.0, privacy=Privacy(adjacency='label'))"
    assert (
        shown(skdp.PublicRange(0, np.ones(3))) == "PublicRange(high=ndarray of shape (3,), low=0)"
    )


@pytest.mark.parametrize(("given", "name", "value"), NESTED, ids=lambda value: str(value)[:30])
def test_a_nested_name_reaches_the_object(given, name, value):
    model = skdp.DPRidge(**clone(skdp.DPRidge(**given)).get_params(deep=False))
    first = model.get_params()[name]
    changed = clone(model).set_params(**{name: value})
    copies = (changed, clone(changed), pickle.loads(pickle.dumps(changed)))
    for copy in copies:
        np.testing.assert_array_equal(copy.get_params()[name], value)
    np.testing.assert_array_equal(model.get_params()[name], first)  # clones share no object
    outer = name.partition("__")[0]
    together = skdp.DPRidge().set_params(**{name: value, outer: getattr(clone(model), outer)})
    np.testing.assert_array_equal(together.get_params()[name], value)


def test_a_grid_reaches_sets_and_shares(regression):
    for given, name, values in (
        (CONSTRAINED, "constraint__radius", [0.1, 0.2]),
        ({"inference": skdp.CoefficientInference()}, "inference__share", [0.25, 0.5]),
    ):
        model = skdp.DPRidge(epsilon=20.0, **given)
        search = GridSearchCV(model, {name: values}, cv=2, error_score="raise").fit(*regression)
        assert search.best_estimator_.get_params()[name] in values
        (outer,) = given
        assert getattr(model, outer).get_params() == given[outer].get_params()


def test_no_terms_are_the_default_terms(regression):
    given = skdp.DPRidge(privacy=skdp.Privacy()).plan(400, 5)
    assert given == skdp.DPRidge().plan(400, 5)
    changed = skdp.DPRidge(privacy=skdp.Privacy(adjacency="replace_one")).plan(400, 5)
    assert changed.to_dict() != given.to_dict()


def test_help_shows_short_signatures():
    """Types are names, as unions of arrays would fill a screen."""
    rooms = (skdp, skdp.model_selection, skdp.metrics, skdp.preprocessing, skdp.solvers, skdp.steps)
    for room in rooms:
        for name in getattr(room, "__all__", vars(room)):
            thing = getattr(room, name)
            is_own = str(getattr(thing, "__module__", "")).startswith("skdp")
            is_error = isinstance(thing, type) and issubclass(thing, Exception)
            if callable(thing) and is_own and not is_error:
                assert len(str(inspect.signature(thing))) <= 600, name
            if hasattr(thing, "fit"):
                assert len(str(inspect.signature(thing.fit))) <= 150, name


@pytest.mark.parametrize("estimator", MODELS, ids=lambda cls: cls.__name__)
def test_errors_of_python_name_the_class_that_was_typed(estimator):
    name = estimator.__name__
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) got an unexpected .*'shape'"):
        estimator(shape=1)
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected .*'epochs'"):
        estimator().fit([[1.0]], [1.0], epochs=1)


def test_a_budget_in_place_of_the_terms_is_refused_in_a_grid(regression):
    model = skdp.DPRidge(privacy=skdp.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ValueError, match="privacy must be None or a Privacy object"):
        GridSearchCV(model, {"alpha": [1.0]}, cv=2, error_score="raise").fit(*regression)
