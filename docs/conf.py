"""Sphinx configuration. No network is needed: MathJax is shipped, and there is no intersphinx."""

import functools
import importlib
import pkgutil
import re
import sys
import warnings
from pathlib import Path

import skdp

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "skdp"
author = "the skdp developers"
copyright = "the skdp developers"
release = version = skdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
]
exclude_patterns = ["_build", "examples"]
default_role = "py:obj"
# Every reference has to lead somewhere, or to something that exists: see `_find_reference`.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(sklearn|numpy|scipy|pandas|json)\..*"),  # there is no intersphinx
    ("py:.*", r"benchmarks/.*"),
    # In docstrings inherited from scikit-learn and from collections.
    ("py:.*", r"feature_names_in_|input_features|\[\"x0\".*"),
    ("py:class", r"D\[k\].*|.*set-like.*|.*object providing a view.*|None\.  .*|a shallow copy.*"),
]

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "subsection_order": [
        "examples/first_steps",
        "examples/budgets",
        "examples/judge",
        "examples/data",
    ],
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("skdp",),
    "reference_url": {"skdp": None},
    "backreferences_dir": "generated/backreferences",
    "reset_modules": ("pictures.gallery_style",),
    "default_thumb_file": str(Path(__file__).parent / "generated" / "pictures" / "boundary.png"),
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "download_all_examples": False,
}

html_theme = "furo"
html_title = f"skdp {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["style.css"]


# Names for users in the order of use. Everything else is for those who extend the package.
USERS = ("skdp", "skdp.data", "skdp.model_selection", "skdp.metrics", "skdp.audit")
TASKS = {
    "Estimators": (
        "DPLogisticRegression", "DPLinearRegression", "DPRidge", "DPLasso", "DPElasticNet",
        "DPHuberRegressor", "DPPoissonRegressor", "DPGammaRegressor", "DPTweedieRegressor",
        "DPQuantileRegressor", "DPLinearSVC",
    ),
    "Prepare columns": (
        "check", "DPTabularPreprocessor", "DPStandardScaler", "PublicRange", "PublicSample",
        "RowNorm", "PublicModel",
    ),
    "Split and score": (
        "DPHoldout", "dp_train_test_split", "evaluate", "Scores", "Score",
    ),
    "Price and budget": (
        "total_privacy", "privacy_of", "PrivacyBudget", "PrivacyStatement", "Privacy",
        "SeededNoise",
    ),
    "Intervals": ("CoefficientInference", "CoefficientDisplay"),
    "Choose between models": (
        "DPSearchCV", "dp_cross_validate", "CrossValidation",
    ),
    "Rows in files and on clusters": ("Chunks", "ParquetColumns", "Partitions"),
    "Warnings and errors": (
        "NoiseWarning", "PrivacyWarning", "NotPrivateWarning", "PrivacyLeakWarning",
        "ExactScoreWarning", "SeededNoiseWarning", "PrivacyBudgetError",
    ),
    "Audit": (),  # and names of the packages above that have no task
}  # fmt: skip
GUIDES = ("models", "how_to", "concepts", "reviewers", "papers")  # pages to see, in this order
OBJECT_PAGE = """{orphan}{name}
{line}

.. currentmodule:: {module}

.. auto{kind}:: {name}
"""
MEMBERS = """   :members:
   :inherited-members: BaseEstimator, Exception, str
   :exclude-members: score, fit_transform, get_metadata_routing, set_output, set_fit_request,
      set_score_request, set_predict_request, set_predict_proba_request,
      set_predict_log_proba_request,
      set_decision_function_request, set_transform_request, set_partial_fit_request,
      set_inverse_transform_request, add_note, with_traceback
"""
EXAMPLES = """
.. minigallery:: {module}.{name}
   :add-heading: Examples that use it
"""


def _exported():
    """Yield each public class and function once: its module, its name and itself."""
    found = pkgutil.walk_packages(skdp.__path__, "skdp.")
    packages = {part.name for part in found if part.ispkg and "._" not in part.name}
    seen = set()
    for module in [*USERS, *sorted(packages - {*USERS})]:
        imported = importlib.import_module(module)
        names = [name for name in vars(imported) if not name.startswith("_")]
        for name in sorted(getattr(imported, "__all__", names)):
            item = getattr(imported, name)
            if callable(item) and item.__module__.startswith("skdp") and id(item) not in seen:
                seen.add(id(item))
                yield module, name, item


def _write(path, text):
    """Write a page if it changed; else it need not be built anew."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _table(names):
    """Lines of a table of objects, each with the first line of its docstring."""
    entries = [f"   ~{name}" for name in names]
    return [".. autosummary::", "   :nosignatures:", "", *entries, ""]


def _guides(name):
    """Pages that mention a class or function, the most specific ones first."""
    mention = re.compile(rf"`[\w.~]*\b{name}\b")
    folder = Path(__file__).parent
    pages = [page for part in GUIDES for page in sorted((folder / part).glob("*.rst"))]
    found = [page for page in pages if mention.search(page.read_text("utf-8"))]
    return [f":doc:`/{page.relative_to(folder).with_suffix('').as_posix()}`" for page in found][:4]


def _write_reference(folder):
    """Write a page for each object, and two tables of them to include: users, extenders.

    Pages of objects for users are in the navigation. The many others link to the table that lists
    them, since each entry of the navigation is repeated on every page.
    """
    objects = {name: (module, item) for module, name, item in _exported()}
    listed = {name for names in TASKS.values() for name in names}
    rest = [name for name, (module, _) in objects.items() if module in USERS and name not in listed]
    tasks = TASKS | {"Audit": (*TASKS["Audit"], *rest)}
    path_of = {name: f"{module}.{name}" for name, (module, _) in objects.items()}
    users = {
        task: [path_of[name] for name in names if name in path_of] for task, names in tasks.items()
    }
    extenders, pages = {}, set()
    for name, (module, item) in objects.items():
        kind = "class" if isinstance(item, type) else "function"
        is_for_users = name in listed or name in rest
        text = OBJECT_PAGE.format(
            orphan="" if is_for_users else ":orphan:\n\n",
            name=name, line="=" * len(name), module=module, kind=kind,
        )  # fmt: skip
        text += MEMBERS if kind == "class" else ""
        see = _guides(name) if is_for_users else []
        see += [":doc:`/reference/users`" if is_for_users else ":doc:`/reference/extenders`"]
        text += f"\n.. seealso:: {', '.join(see)}\n"
        if module == "skdp" and name.startswith(("DP", "Privacy")):
            text += EXAMPLES.format(name=name, module=module)
        page = folder / f"{module}.{name}.rst"
        _write(page, text)
        pages.add(page)
        if not is_for_users:
            extenders.setdefault(module, []).append(f"{module}.{name}")
    for old in {*folder.glob("skdp.*.rst")} - pages:
        old.unlink()
    lines = []
    for task, paths in users.items():
        lines += [task, "-" * len(task), "", *_table(paths)]
        entries = [f"   /generated/{path}" for path in paths]
        lines += [".. toctree::", "   :hidden:", "", *entries, ""]
    _write(folder / "users.inc", "\n".join(lines))
    lines = []
    for module, paths in extenders.items():
        summary = (importlib.import_module(module).__doc__ or module).splitlines()[0]
        lines += [module, "-" * len(module), "", summary.replace("skdp: ", ""), "", *_table(paths)]
    _write(folder / "extenders.inc", "\n".join(lines))


_generated = Path(__file__).parent / "generated"
_generated.mkdir(exist_ok=True)
_purposes = [f"   * - {name}\n     - {what}" for name, what in skdp.solvers.available().items()]
_head = ".. list-table::\n   :widths: 30 70\n\n"
_write(_generated / "solvers.inc", _head + "\n".join(_purposes) + "\n")
_write_reference(_generated)
sys.path.insert(0, str(Path(__file__).parent))
importlib.import_module("pictures").main()


def _quote_shapes(app, what, name, obj, options, lines):
    """Quote shapes such as (n_features_in_,), whose last underscore would make them a link."""
    lines[:] = [re.sub(r"\((\w+_),\)", r"(``\1``,)", line) for line in lines]


@functools.cache
def _names_without_a_page():
    """Names of modules, of what they define, and of scikit-learn: they exist, and have no page."""
    known = set()
    for part in ("ensemble", "linear_model", "model_selection", "preprocessing"):
        known |= set(importlib.import_module(f"sklearn.{part}").__all__)
    found = pkgutil.walk_packages(skdp.__path__, "skdp.")
    for part in ["skdp", *(one.name for one in found)]:
        try:
            defined = vars(importlib.import_module(part))
        except ImportError:  # of an extra that is not installed
            continue
        known.add(part)
        for name, item in defined.items():
            known |= {name, f"{part}.{name}"}
            if isinstance(item, type):
                members = {*dir(item), *getattr(item, "__annotations__", ())}
                known |= members | {f"{name}.{member}" for member in members}
    return known


def _find_reference(app, env, node, content):
    """Link a name that is written without its package; leave what has no page as it is."""
    target, domain = node.get("reftarget", ""), env.domains["py"]
    if node.get("refdomain") != "py" or not target:
        return None
    found = [name for name in domain.objects if name.endswith(f".{target}")]
    if found:
        name = min(found, key=lambda one: (one.count("."), one))
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    return content if target in _names_without_a_page() else None


def setup(app):
    app.connect("missing-reference", _find_reference)
    app.connect("autodoc-process-docstring", _quote_shapes, priority=100)  # before numpydoc
