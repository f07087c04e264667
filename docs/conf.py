"""Sphinx configuration. No network is needed: there is no intersphinx."""

import re

import skdp

project = "skdp"
author = "the skdp developers"
copyright = "the skdp developers"
release = version = skdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "numpydoc",
]
exclude_patterns = ["_build"]
default_role = "py:obj"
nitpicky = False

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"skdp {release}"
html_copy_source = False


def _quote_shapes(app, what, name, obj, options, lines):
    """Quote shapes such as (n_features_in_,), whose last underscore would make them a link."""
    lines[:] = [re.sub(r"\((\w+_),\)", r"(``\1``,)", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _quote_shapes, priority=100)  # before numpydoc
